"""Events that come one by one, and which of them take part by now: the kernel's work for a single event."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import attrgetter, or_

import numpy as np

from ...model.batch import from_events, to_events
from ...model.event import Event
from ...model.instant import Duration, Instant
from ...model.topic import Topic
from .entries import Entries, Kept

Matches = Sequence[tuple[int, int]]
"""Slots, and of each the correlations whose filters there are matched."""

_time = attrgetter("time")


@dataclass(slots=True)
class Arrival:
    """An event that matches something, to which correlations it was told, and whether it was there at the
    last look."""

    time: Instant
    event: Event
    matches: Matches
    told: int = 0
    fresh: bool = True

    @property
    def word(self) -> int:
        """The correlations of which it matches some filter."""
        return reduce(or_, (word for _, word in self.matches))


def arrive(arrivals: list[Arrival], one: Arrival) -> None:
    """Put an event among the others, in order of time."""
    insort(arrivals, one, key=_time)


def older(arrivals: Sequence[Arrival], than: Instant) -> int:
    """How many are older."""
    return bisect_left(arrivals, than, key=_time)


def taking_part(
    ready: Sequence[Arrival], fresh: Sequence[Arrival], needs: Sequence[int], within: Duration
) -> Iterator[tuple[Arrival, int]]:
    """Whom the fresh ones bring together: the events, and the correlations in which they newly take part.

    A window that has one of the fresh ends at an event no earlier than it and less than ``within`` later.
    """
    ends = {
        other.time
        for one in fresh
        for other in ready[older(ready, one.time) : older(ready, one.time + within)]
    }
    for end in sorted(ends):
        window = ready[bisect_right(ready, end - within, key=_time) : bisect_right(ready, end, key=_time)]
        present = [~need for need in needs]
        for one in window:
            for slot, word in one.matches:
                present[slot] |= word
        complete = -1
        for word in present:
            complete &= word
        for one in window if complete else ():
            if new := one.word & complete & ~one.told:
                one.told |= new
                yield one, new
    for one in fresh:
        one.fresh = False


# --- one by one, and in columns --------------------------------------------------------------------


def in_columns(topic: Topic, arrivals: Sequence[Arrival]) -> Kept:
    """Events of one topic, in columns."""
    found = [(row, *match) for row, one in enumerate(arrivals) for match in one.matches]
    rows, slots, words = zip(*found, strict=True)
    return Kept(
        from_events(topic, [one.event for one in arrivals]),
        np.array([one.told for one in arrivals], np.uint64),
        np.array([one.fresh for one in arrivals]),
        Entries(np.array(rows), np.array(slots), np.array(words, np.uint64)),
    )


def singly(topic: Topic, kept: Kept) -> Iterator[Arrival]:
    """Events that are kept in columns, one by one."""
    matches: list[list[tuple[int, int]]] = [[] for _ in range(len(kept.told))]
    for row, slot, word in zip(*(column.tolist() for column in kept.entries), strict=True):
        matches[row].append((slot, word))
    rows = zip(to_events(topic, kept.events), matches, kept.told.tolist(), kept.fresh.tolist(), strict=True)
    for event, mine, told, fresh in rows:
        yield Arrival(event.time, event, mine, told, fresh)
