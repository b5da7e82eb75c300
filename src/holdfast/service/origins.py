"""Which messages and requests the log has: one that a broker or a client sends again is not taken twice."""

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
"""More than a broker can have on its way to us at a time, which is 65,535."""
REMEMBERED_FOR = DAY
"""How long a repeated request is known at least."""
_DIGEST = 16


class Origins:
    """The origins of the last messages; safe to use from two threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._recent = array("q")
        self._known: Counter[int] = Counter()

    def __contains__(self, origin: int) -> bool:
        return origin != NOWHERE and origin in self._known

    def add(self, origins: Iterable[int]) -> None:
        with self._lock:
            for one in origins:
                if one != NOWHERE:
                    self._recent.append(one)
                    self._known[one] += 1
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
    """Digests of a request's key and of what it brought."""

    key: bytes
    body: bytes

    @classmethod
    def of(cls, key: Iterable[bytes], body: Iterable[bytes]) -> Request:
        """The request under a user's key, with everything that decides what its body means."""
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


class Repeated(UsageError):
    """A request with a key that was used before, for the same request or another."""

    def __init__(self, *, is_same: bool) -> None:
        super().__init__("this Idempotency-Key was used before" + ("" if is_same else " for another body"))
        self.is_same = is_same


class Requests:
    """The requests that were taken; safe to use from two threads.  Those that the database does not have yet
    are in the log behind its snapshot."""

    def __init__(self, body_of: Callable[[bytes], bytes | None]) -> None:
        """``body_of`` asks the database what the request with a key brought."""
        self._lock, self._body_of = Lock(), body_of
        self._fresh: dict[bytes, tuple[bytes, Instant]] = {}

    def repeated(self, request: Request, others: Mapping[bytes, bytes]) -> Repeated | None:
        """Whether the key was used before, or is by one of those that are just being taken."""
        with self._lock:
            fresh = self._fresh.get(request.key)
        body = others.get(request.key) or (self._body_of(request.key) if fresh is None else fresh[0])
        return None if body is None else Repeated(is_same=body == request.body)

    def add(self, requests: Iterable[Request], at: Instant) -> None:
        """The log has them."""
        with self._lock:
            self._fresh.update((one.key, (one.body, at)) for one in requests)

    def fresh(self) -> list[tuple[bytes, bytes, Instant]]:
        """Those that the database does not have yet: key, body and when they came."""
        with self._lock:
            return [(key, *known) for key, known in self._fresh.items()]

    def kept(self, requests: Iterable[tuple[bytes, bytes, Instant]]) -> None:
        """The database has them now."""
        with self._lock:
            for key, *_ in requests:
                self._fresh.pop(key, None)
