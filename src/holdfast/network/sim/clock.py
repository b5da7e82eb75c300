"""The clocks of a simulation: `Clock` orders all events, `LocalClock` is the clock of one node.

Simulated time is an integer in microseconds from 0. Events run in the order of (time, priority, sequence). A
symbol of 802.15.4 lasts exactly 16 µs. A frame at 38.4 kbit/s does not last a whole number of microseconds;
its airtime is rounded up once, for the whole frame.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from ...model.instant import Duration, Instant

SIGNAL_ENDS = 0
"""The priority of the end of a signal. Ends come first, so that a signal that starts at the same time does
not overlap.
"""
SIGNAL_STARTS = 1
TIMER = 2

Action = Callable[[Any], None]
Entry = list[Any]
"""A scheduled call: time, priority, sequence number, action, argument. A cancelled call has ``None`` as
action.
"""


class Clock:
    """The event queue of a simulation, and its current time ``now``."""

    __slots__ = ("_heap", "_sequence", "_until", "now")

    def __init__(self) -> None:
        self.now: Instant = 0
        self._heap: list[Entry] = []
        self._sequence = 0
        self._until: Instant = 0

    def at(self, time: Instant, action: Action, argument: Any = None, priority: int = TIMER) -> Entry:
        """Schedule ``action(argument)`` for a time that has not passed; return the entry for `cancel`."""
        assert time >= self.now, f"{time} µs has passed: it is {self.now} µs"
        self._sequence += 1
        entry = [time, priority, self._sequence, action, argument]
        heappush(self._heap, entry)
        return entry

    def after(self, delay: Duration, action: Action, argument: Any = None, priority: int = TIMER) -> Entry:
        """Schedule ``action(argument)`` after ``delay`` µs, which must not be negative; return the entry for
        `cancel`.
        """
        assert delay >= 0, f"{-delay} µs ago has passed"
        self._sequence += 1
        entry = [self.now + delay, priority, self._sequence, action, argument]
        heappush(self._heap, entry)
        return entry

    @staticmethod
    def cancel(entry: Entry) -> None:
        """Cancel a scheduled call. A call that has already run is not affected."""
        entry[3] = None

    def stop(self) -> None:
        """End the current `run` after the event that is being processed."""
        self._until = self.now - 1

    def run(self, until: Instant) -> int:
        """Process all events up to and including ``until``; return their number."""
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
    """A node's own clock. It may have an offset in µs and run fast or slow (in parts per billion)."""

    __slots__ = ("_anchor", "_drift", "_shown")

    def __init__(self, offset: Duration = 0, drift_ppb: int = 0) -> None:
        self._anchor: Instant = 0
        self._shown: Instant = offset
        self._drift = drift_ppb

    def local(self, now: Instant) -> Instant:
        """Return the time that this clock shows at the simulated time ``now``."""
        if not self._drift:
            return self._shown + now - self._anchor
        return self._shown + (now - self._anchor) * (BILLION + self._drift) // BILLION

    def when(self, local: Instant) -> Instant:
        """Return the first simulated time at which this clock shows at least ``local``."""
        ahead = local - self._shown
        if not self._drift:
            return self._anchor + ahead
        return self._anchor - (-ahead * BILLION // (BILLION + self._drift))

    def drift(self, now: Instant, drift_ppb: int) -> None:
        """Change the speed from ``now`` on. The shown time does not jump."""
        self._anchor, self._shown, self._drift = now, self.local(now), drift_ppb

    def step(self, now: Instant, offset: Duration) -> None:
        """Set the clock forward by ``offset`` µs (backward if negative)."""
        self._anchor, self._shown = now, self.local(now) + offset
