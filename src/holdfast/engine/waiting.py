"""Derived events wait until the watermark has passed their time, so that all events of one time are processed
together and in one order, whatever the order in which upstreams emitted them.

The events of one scope of a condition keep the order in which it emitted them: a start and its end cannot
change places. An event that is older than the last waiting event of its scope is processed together with that
one.
"""

from __future__ import annotations

import heapq
from functools import cached_property

import msgspec

from ..model.event import Event, Value
from ..model.instant import BEGINNING, NEVER, Instant
from .machine import SCOPE

Held = tuple[Instant, int, str, int, int, Event]
"""A waiting event with its place in the order: time, rank, source, sequence, number of arrival. The first
four are those of the last waiting event of its scope if that is later."""

ScopeKey = tuple[str, Value]


def key_of(event: Event) -> ScopeKey:
    """The condition and the scope that an event is about."""
    return event.topic, event.attributes.get(SCOPE)


class PendingEvents(msgspec.Struct, dict=True):
    """A heap of waiting events, and the time before which no event is accepted any more."""

    held: list[Held] = []
    arrived: int = 0
    until: Instant = BEGINNING

    @cached_property
    def _last(self) -> dict[ScopeKey, Held]:
        """The last waiting event of each scope."""
        return {key_of(held[-1]): held for held in sorted(self.held)}

    def add(self, event: Event, rank: int = 0) -> Held | None:
        """Add an event; return `None` if its time has passed. Events of one time are ordered by rank
        first."""
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
        """Accept no event before a time any more."""
        if until != NEVER:
            self.until = max(self.until, until)
