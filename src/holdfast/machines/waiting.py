"""What is heard of conditions waits until its moment is over: they speak of one moment at several times, and
what they say of it is taken together, in one order whoever spoke first.

Of one scope a condition speaks in turn, and is heard in that order, whatever the times and the numbers of the
readings that made it speak: a start and its end cannot change places.  What is older than the last that waits
of its scope counts as if it had come with that.
"""

from __future__ import annotations

import heapq
from functools import cached_property

import msgspec

from ..model.event import Event, Value
from ..model.instant import BEGINNING, NEVER, Instant
from .machine import SCOPE

Held = tuple[Instant, int, str, int, int, Event]
"""One that waits: its moment, its rank, source and sequence, as how many came before it; and what it is.  All
but the last two are those of another where it counts as if it had come with that."""

Speaker = tuple[str, Value]


def speaker(event: Event) -> Speaker:
    """Who says something: a condition, of one of its scopes."""
    return event.topic, event.attributes.get(SCOPE)


class Waiting(msgspec.Struct, dict=True):
    """What waits, by time and rank, then as readings are ordered; and up to when moments are over."""

    held: list[Held] = []
    arrived: int = 0
    until: Instant = BEGINNING

    @cached_property
    def _last(self) -> dict[Speaker, Held]:
        """The last that waits of each scope."""
        return {speaker(held[-1]): held for held in sorted(self.held)}

    def add(self, event: Event, rank: int = 0) -> Held | None:
        """Let an event wait, as what it does then; nothing if it comes too late for that."""
        who = speaker(event)
        last = self._last.get(who)
        if event.time < self.until and last is None:
            return None
        key = event.time, rank, event.source, event.sequence
        held = (*(key if last is None else max(key, last[:4])), self.arrived, event)
        heapq.heappush(self.held, held)
        self._last[who] = held
        self.arrived += 1
        return held

    @property
    def first(self) -> Instant:
        """The moment of the first that waits; ``NEVER`` if none does."""
        return self.held[0][0] if self.held else NEVER

    def take(self) -> Event:
        """The first, which waits no longer."""
        last, held = self._last, heapq.heappop(self.held)
        event = held[-1]
        if last[speaker(event)] is held:
            del last[speaker(event)]
        return event

    def moment(self) -> list[Event]:
        """All of the first moment, which wait no longer, in order."""
        at, found = self.first, list[Event]()
        while self.held and self.first == at:
            found.append(self.take())
        return found

    def passed(self, until: Instant) -> None:
        """Moments before an instant are over."""
        if until != NEVER:
            self.until = max(self.until, until)
