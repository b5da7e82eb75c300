"""Simulated time: whole microseconds from 0; things happen in order of (time, priority, sequence).

A symbol of 802.15.4 lasts 16 µs exactly.  A frame at 38.4 kbit/s does not last a whole number of
microseconds; its airtime is rounded up once, for the frame.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from ..model.instant import Duration, Instant

SIGNAL_ENDS = 0
"""A signal that ends at the moment at which another starts does not meet it."""
SIGNAL_STARTS = 1
TIMER = 2

Action = Callable[[Any], None]
Entry = list[Any]
"""What waits: time, priority, sequence, action (none once cancelled), argument."""


class Clock:
    """The events that are to come, and the time of the one that happens now."""

    __slots__ = ("_heap", "_sequence", "_until", "now")

    def __init__(self) -> None:
        self.now: Instant = 0
        self._heap: list[Entry] = []
        self._sequence = 0
        self._until: Instant = 0

    def at(self, time: Instant, action: Action, argument: Any = None, priority: int = TIMER) -> Entry:
        """Have ``action(argument)`` called at a time that has not passed."""
        assert time >= self.now, f"{time} µs has passed: it is {self.now} µs"
        self._sequence += 1
        entry = [time, priority, self._sequence, action, argument]
        heappush(self._heap, entry)
        return entry

    def after(self, delay: Duration, action: Action, argument: Any = None, priority: int = TIMER) -> Entry:
        """Have ``action(argument)`` called when ``delay``, which is not negative, has passed."""
        assert delay >= 0, f"{-delay} µs ago has passed"
        self._sequence += 1
        entry = [self.now + delay, priority, self._sequence, action, argument]
        heappush(self._heap, entry)
        return entry

    @staticmethod
    def cancel(entry: Entry) -> None:
        """Forget what waits; what has happened already stays as it is."""
        entry[3] = None

    def stop(self) -> None:
        """End the present run after the event that happens now."""
        self._until = self.now - 1

    def run(self, until: Instant) -> int:
        """Let everything happen up to and including ``until``; say how many events that were."""
        heap, happened = self._heap, 0
        self._until = until
        while heap and heap[0][0] <= self._until:
            time, _, _, action, argument = heappop(heap)
            if action is not None:
                self.now = time
                action(argument)
                happened += 1
        if self._until == until:
            self.now = max(self.now, until)
        return happened


BILLION = 1_000_000_000


class LocalClock:
    """A node's own clock: it may be set differently and run fast or slow (parts per billion)."""

    __slots__ = ("_anchor", "_drift", "_shown")

    def __init__(self, offset: Duration = 0, drift_ppb: int = 0) -> None:
        self._anchor: Instant = 0
        self._shown: Instant = offset
        self._drift = drift_ppb

    def local(self, now: Instant) -> Instant:
        """What it shows."""
        if not self._drift:
            return self._shown + now - self._anchor
        return self._shown + (now - self._anchor) * (BILLION + self._drift) // BILLION

    def when(self, local: Instant) -> Instant:
        """The first moment at which it shows at least ``local``."""
        ahead = local - self._shown
        if not self._drift:
            return self._anchor + ahead
        return self._anchor - (-ahead * BILLION // (BILLION + self._drift))

    def drift(self, now: Instant, drift_ppb: int) -> None:
        """From now on it runs at another speed; what it shows does not jump."""
        self._anchor, self._shown, self._drift = now, self.local(now), drift_ppb

    def step(self, now: Instant, offset: Duration) -> None:
        """What it shows jumps by ``offset``."""
        self._anchor, self._shown = now, self.local(now) + offset
