"""Recognize messages and requests that are in the log already, so that a repetition is not logged twice."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b
from threading import Lock
from typing import NamedTuple

from ..errors import UsageError
from ..model.instant import DAY, Instant
from .feeds.submission import NOWHERE

REMEMBERED = 1 << 17
"""How many origins are remembered: more than the 65,535 messages that a broker can have in flight."""
REMEMBERED_FOR = DAY
"""How long a request is remembered at least."""
_DIGEST = 16


class Origins:
    """The origins of the last messages. Safe to use from two threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._recent = array("q")
        self._known: Counter[int] = Counter()

    def __contains__(self, origin: int) -> bool:
        return origin != NOWHERE and origin in self._known

    def add(self, origins: Iterable[int]) -> None:
        with self._lock:
            for origin in origins:
                if origin != NOWHERE:
                    self._recent.append(origin)
                    self._known[origin] += 1
            surplus = max(0, len(self._recent) - REMEMBERED)
            for oldest in self._recent[:surplus]:
                self._known[oldest] -= 1
                if not self._known[oldest]:
                    del self._known[oldest]
            del self._recent[:surplus]

    def to_bytes(self) -> bytes:
        with self._lock:
            return self._recent.tobytes()

    def restore(self, raw: bytes) -> None:
        self.add(array("q", raw))


class Request(NamedTuple):
    """Digests of a request's key and body."""

    key: bytes
    body: bytes

    @classmethod
    def of(cls, key: Iterable[bytes], body: Iterable[bytes]) -> Request:
        """Digest a user's key, and everything that decides the meaning of the body."""
        return cls(_digest(key), _digest(body))

    def to_bytes(self) -> bytes:
        return self.key + self.body

    @classmethod
    def from_bytes(cls, raw: bytes) -> Request:
        return cls(raw[:_DIGEST], raw[_DIGEST:])


def _digest(parts: Iterable[bytes]) -> bytes:
    whole = blake2b(digest_size=_DIGEST)
    for part in parts:
        whole.update(len(part).to_bytes(8, "little") + part)
    return whole.digest()


class RepeatedRequest(UsageError):
    """A request with a key that was used before, for the same request or another."""

    def __init__(self, *, is_same: bool) -> None:
        super().__init__("this Idempotency-Key was used before" + ("" if is_same else " for another body"))
        self.is_same = is_same


class Requests:
    """The accepted requests. Safe to use from two threads.

    Requests that are not in the database yet are in the log after its snapshot.
    """

    def __init__(self, request_body: Callable[[bytes], bytes | None]) -> None:
        """`request_body` looks up the digest of a request's body in the database by its key."""
        self._lock, self._body_of = Lock(), request_body
        self._fresh: dict[bytes, tuple[bytes, Instant]] = {}

    def find_repetition(self, request: Request, accepted: Mapping[bytes, bytes]) -> RepeatedRequest | None:
        """The earlier request with the same key, among those `accepted` in the same group too; or nothing."""
        with self._lock:
            unsaved = self._fresh.get(request.key)
        body = accepted.get(request.key) or (self._body_of(request.key) if unsaved is None else unsaved[0])
        return None if body is None else RepeatedRequest(is_same=body == request.body)

    def add(self, requests: Iterable[Request], at: Instant) -> None:
        """Add requests that the log has."""
        with self._lock:
            self._fresh.update((origin.key, (origin.body, at)) for origin in requests)

    def unsaved(self) -> list[tuple[bytes, bytes, Instant]]:
        """The requests that are not in the database yet: key, body and time."""
        with self._lock:
            return [(key, *known) for key, known in self._fresh.items()]

    def forget(self, requests: Iterable[tuple[bytes, bytes, Instant]]) -> None:
        """Note that the database has these requests."""
        with self._lock:
            for key, *_ in requests:
                self._fresh.pop(key, None)
