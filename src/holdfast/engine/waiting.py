"""Derived events that wait until the watermark has passed their time.

All events of one time are then processed together and in one order, which does not depend on the order in
which upstreams emitted them.

The events of one scope of a condition stay in the order in which the condition emitted them: a start and its
end cannot change places. An event that is older than the last waiting event of its scope is processed
together with that event.
"""

from __future__ import annotations

import heapq
from functools import cached_property

import msgspec

from ..model.event import Event, Value
from ..model.instant import BEGINNING, NEVER, Instant
from .machine import SCOPE

Held = tuple[Instant, int, str, int, int, Event]
"""A waiting event with its sort key: time, rank, source, sequence, number of arrival.

The first four are those of the last waiting event of its scope if that event is later.
"""

ScopeKey = tuple[str, Value]
"""A derived topic and the label of a scope."""


def key_of(event: Event) -> ScopeKey:
    """Return the condition and the scope of a derived event."""
    return event.topic, event.attributes.get(SCOPE)


class PendingEvents(msgspec.Struct, dict=True):
    """A heap of waiting events. Events before `until` are not accepted any more."""

    held: list[Held] = []
    arrived: int = 0
    until: Instant = BEGINNING

    @cached_property
    def _last(self) -> dict[ScopeKey, Held]:
        """The last waiting event of each scope."""
        return {key_of(held[-1]): held for held in sorted(self.held)}

    def add(self, event: Event, rank: int = 0) -> Held | None:
        """Add an event; return `None` if the watermark has passed its time.

        Events of one time are ordered by rank first. A late event is still accepted if an event of its scope
        is waiting.
        """
        who = key_of(event)
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
        """The time of the first waiting event; `NEVER` if none waits."""
        return self.held[0][0] if self.held else NEVER

    def take(self) -> Event:
        """Remove and return the first event."""
        last, held = self._last, heapq.heappop(self.held)
        event = held[-1]
        if last[key_of(event)] is held:
            del last[key_of(event)]
        return event

    def take_first_time(self) -> list[Event]:
        """Remove and return all events of the first time, in order."""
        at, found = self.first, list[Event]()
        while self.held and self.first == at:
            found.append(self.take())
        return found

    def drop_before(self, until: Instant) -> None:
        """Accept no further event before `until`. Waiting events stay."""
        if until != NEVER:
            self.until = max(self.until, until)
