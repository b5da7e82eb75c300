"""What is heard of conditions waits until its moment is over: they speak of one moment at several times, and
what they say of it is taken together, in one order whoever spoke first."""

from __future__ import annotations

import heapq

import msgspec

from ..model.event import Event
from ..model.instant import BEGINNING, NEVER, Instant

Held = tuple[Instant, int, str, int, int, Event]
"""One that waits: its moment, its rank, source and sequence, as how many came before it; and what it is."""


class Waiting(msgspec.Struct):
    """What waits, by time and rank, then as readings are ordered; and up to when moments are over."""

    held: list[Held] = []
    arrived: int = 0
    until: Instant = BEGINNING

    def add(self, event: Event, rank: int = 0) -> Held | None:
        """Let an event wait, as what it does then; nothing if it comes too late for that."""
        if event.time < self.until:
            return None
        held = event.time, rank, event.source, event.sequence, self.arrived, event
        heapq.heappush(self.held, held)
        self.arrived += 1
        return held

    @property
    def first(self) -> Instant:
        """The moment of the first that waits; ``NEVER`` if none does."""
        return self.held[0][0] if self.held else NEVER

    def take(self) -> Event:
        """The first, which waits no longer."""
        return heapq.heappop(self.held)[-1]

    def moment(self) -> list[Event]:
        """All of the first moment, which wait no longer, in the order in which they came."""
        at, found = self.first, []
        while self.held and self.first == at:
            found.append(heapq.heappop(self.held)[-2:])
        return [event for _, event in sorted(found, key=lambda pair: pair[0])]

    def passed(self, until: Instant) -> None:
        """Moments before an instant are over."""
        if until != NEVER:
            self.until = max(self.until, until)
