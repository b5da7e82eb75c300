"""Recognition of messages and requests that the log already has, so that repetitions are not logged twice."""

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
    """The origins of the latest messages: digests that identify them. Can be used from two threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._recent = array("q")
        self._known: Counter[int] = Counter()

    def __contains__(self, origin: int) -> bool:
        return origin != NOWHERE and origin in self._known

    def add(self, origins: Iterable[int]) -> None:
        """Add the origins of messages that the log has. The oldest ones are forgotten."""
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
    """The digests of a request's idempotency key and of its body."""

    key: bytes
    body: bytes

    @classmethod
    def of(cls, key: Iterable[bytes], body: Iterable[bytes]) -> Request:
        """Return the identity of a request.

        ``key`` has the parts of the user's key, ``body`` everything that decides the meaning of the body.
        """
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
    """Raised for a request whose key was used before, for the same body (``is_same``) or for another."""

    def __init__(self, *, is_same: bool) -> None:
        super().__init__("this Idempotency-Key was used before" + ("" if is_same else " for another body"))
        self.is_same = is_same


class Requests:
    """The accepted requests with idempotency keys. Can be used from two threads.

    Requests that the database does not have yet are in memory; a restart reads them from the log.
    """

    def __init__(self, request_body: Callable[[bytes], bytes | None]) -> None:
        """Use `request_body` to look up the digest of a body in the database by the key of its request."""
        self._lock, self._body_of = Lock(), request_body
        self._fresh: dict[bytes, tuple[bytes, Instant]] = {}

    def find_repetition(self, request: Request, accepted: Mapping[bytes, bytes]) -> RepeatedRequest | None:
        """Return the error for a request whose key was used before, or ``None`` for a new key.

        `accepted` has the digests of bodies, by key, of the requests in the same group.
        """
        with self._lock:
            unsaved = self._fresh.get(request.key)
        body = accepted.get(request.key) or (self._body_of(request.key) if unsaved is None else unsaved[0])
        return None if body is None else RepeatedRequest(is_same=body == request.body)

    def add(self, requests: Iterable[Request], at: Instant) -> None:
        """Add requests that the log has, with their time of arrival."""
        with self._lock:
            self._fresh.update((origin.key, (origin.body, at)) for origin in requests)

    def unsaved(self) -> list[tuple[bytes, bytes, Instant]]:
        """Return the requests that the database does not have yet: key, body and time."""
        with self._lock:
            return [(key, *known) for key, known in self._fresh.items()]

    def forget(self, requests: Iterable[tuple[bytes, bytes, Instant]]) -> None:
        """Remove requests from memory, because the database now has them."""
        with self._lock:
            for key, *_ in requests:
                self._fresh.pop(key, None)
