"""Single events of a correlation, and a search for combinations among them in Python.

For a few events this search is faster than the kernel over columns.
"""

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
from .entries import Entries, StoredEntries

Matches = Sequence[tuple[int, int]]
"""Pairs of a slot and a word. The word has a bit for each correlation whose filter on the slot matches."""

_time = attrgetter("time")


@dataclass(slots=True)
class Arrival:
    """An event that matches at least one filter.

    `emitted` has a bit for each correlation that emitted the event. `fresh` is true until the first search
    that includes the event.
    """

    time: Instant
    event: Event
    matches: Matches
    emitted: int = 0
    fresh: bool = True

    @property
    def word(self) -> int:
        """The correlations with at least one filter that the event matches, as bits."""
        return reduce(or_, (word for _, word in self.matches))


def arrive(arrivals: list[Arrival], arrival: Arrival) -> None:
    """Insert an event into arrivals, which are sorted by time."""
    insort(arrivals, arrival, key=_time)


def older(arrivals: Sequence[Arrival], than: Instant) -> int:
    """Return the number of arrivals before a time."""
    return bisect_left(arrivals, than, key=_time)


def find_combinations(
    ready: Sequence[Arrival], fresh: Sequence[Arrival], needs: Sequence[int], within: Duration
) -> Iterator[tuple[Arrival, int]]:
    """Yield events with the correlations in which they newly take part because of fresh events.

    ``needs`` has for each slot the correlations with a filter on it. A window that contains a fresh event
    ends at that event or at an event less than ``within`` later. The events are marked as emitted and no
    longer fresh.
    """
    reached = (ready[older(ready, a.time) : older(ready, a.time + within)] for a in fresh)
    ends = {arrival.time for arrivals in reached for arrival in arrivals}
    for end in sorted(ends):
        window = ready[bisect_right(ready, end - within, key=_time) : bisect_right(ready, end, key=_time)]
        present = [~need for need in needs]
        for arrival in window:
            for slot, word in arrival.matches:
                present[slot] |= word
        complete = -1
        for word in present:
            complete &= word
        for arrival in window if complete else ():
            if new := arrival.word & complete & ~arrival.emitted:
                arrival.emitted |= new
                yield arrival, new
    for arrival in fresh:
        arrival.fresh = False


# --- conversion to columns and back ------------------------------------------------------------------


def to_columns(topic: Topic, arrivals: Sequence[Arrival]) -> StoredEntries:
    """Convert single events of one topic to columns."""
    found = [(row, *match) for row, arrival in enumerate(arrivals) for match in arrival.matches]
    rows, slots, words = zip(*found, strict=True)
    return StoredEntries(
        from_events(topic, [arrival.event for arrival in arrivals]),
        np.array([arrival.emitted for arrival in arrivals], np.uint64),
        np.array([arrival.fresh for arrival in arrivals]),
        Entries(np.array(rows), np.array(slots), np.array(words, np.uint64)),
    )


def to_arrivals(topic: Topic, stored: StoredEntries) -> Iterator[Arrival]:
    """Yield the events of columns as single events."""
    matches: list[list[tuple[int, int]]] = [[] for _ in range(len(stored.emitted))]
    for row, slot, word in zip(*(column.tolist() for column in stored.entries), strict=True):
        matches[row].append((slot, word))
    columns = matches, stored.emitted.tolist(), stored.fresh.tolist()
    for event, *row in zip(to_events(topic, stored.events), *columns, strict=True):
        yield Arrival(event.time, event, *row)
