"""Which messages the log has: one that a broker or a client sends again is not taken twice."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from threading import Lock

from .feeds.submission import NOWHERE

REMEMBERED = 1 << 17
"""More than a broker can have on its way to us at a time, which is 65,535."""


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
