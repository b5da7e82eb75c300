"""Detection of bundles that arrive more than once over different paths, with bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from .message import BundleKey

WINDOW = 1_024
"""The number of recent sequence numbers that are stored for each origin. Older numbers count as
duplicates.
"""

MOST_ORIGINS = 100_000
"""The number of origins that are stored. The origin with the oldest last message is removed first."""


@dataclass(slots=True)
class DuplicateFilter:
    """A filter for repeated bundles. For each origin it stores the highest sequence number, and a bitmap of
    the numbers just below it.
    """

    _seen: dict[str, tuple[int, int]] = field(default_factory=dict)

    def is_first(self, key: BundleKey) -> bool:
        """Record a bundle; return whether it arrives for the first time."""
        highest, bitmap = self._seen.get(key.origin, (key.sequence - 1, 0))
        distance = key.sequence - highest
        if distance > 0:
            bitmap = (bitmap << min(distance, WINDOW) | 1) & ((1 << WINDOW) - 1)
            self._remember(key.origin, key.sequence, bitmap)
            return True
        if -distance >= WINDOW or bitmap >> -distance & 1:
            return False
        self._remember(key.origin, highest, bitmap | 1 << -distance)
        return True

    def _remember(self, origin: str, highest: int, bitmap: int) -> None:
        self._seen.pop(origin, None)
        self._seen[origin] = (highest, bitmap)
        if len(self._seen) > MOST_ORIGINS:
            del self._seen[next(iter(self._seen))]
