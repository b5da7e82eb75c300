"""Every bundle once, though it may come again by another way."""

from __future__ import annotations

from dataclasses import dataclass, field

from .message import Key

WINDOW = 1_024
"""How many numbers of one origin are remembered one by one; what is older counts as known."""

MOST_ORIGINS = 100_000
"""Of how many origins anything is remembered; the one that was silent longest is forgotten first."""


@dataclass(slots=True)
class Once:
    """For each origin the highest number so far and, bit by bit, which of those just below it came."""

    _seen: dict[str, tuple[int, int]] = field(default_factory=dict)

    def first(self, key: Key) -> bool:
        """Whether a bundle comes for the first time."""
        highest, came = self._seen.get(key.origin, (key.sequence - 1, 0))
        ahead = key.sequence - highest
        if ahead > 0:
            came = (came << min(ahead, WINDOW) | 1) & ((1 << WINDOW) - 1)
            self._remember(key.origin, key.sequence, came)
            return True
        if -ahead >= WINDOW or came >> -ahead & 1:
            return False
        self._remember(key.origin, highest, came | 1 << -ahead)
        return True

    def _remember(self, origin: str, highest: int, came: int) -> None:
        self._seen.pop(origin, None)
        self._seen[origin] = (highest, came)
        if len(self._seen) > MOST_ORIGINS:
            del self._seen[next(iter(self._seen))]
