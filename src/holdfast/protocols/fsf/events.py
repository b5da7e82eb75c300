"""The events that a node has seen and not yet forgotten, in the order of time: the store U.  [J8]"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter

from ...model.correlation import Simple
from ...model.instant import Instant
from ...model.protocol import Peer
from .operator import Key

_time = attrgetter("time")


@dataclass(eq=False, slots=True)
class Seen:
    """An event, the link that it came over, and to whom it has been passed on."""

    event: Simple
    time: Instant
    origin: Peer
    passed: tuple[Peer, ...] = ()
    """The links that it crossed; each at most once."""
    told: dict[object, int] | None = None
    """For each group of operators, the rows of those whose result set it is in, a bit each."""
    names: frozenset[str] = frozenset()
    """The subscriptions for which it came, where events say so."""

    def first_for(self, group: object, rows: int) -> int:
        """Those of a group's operators whose result set it is in from now on."""
        if self.told is None:
            self.told = {}
        told = self.told.get(group, 0)
        self.told[group] = told | rows
        return rows & ~told


@dataclass(slots=True)
class Events:
    """Events by what filters can speak of, each list in the order of time."""

    _seen: dict[Simple, Seen] = field(default_factory=dict)
    _order: list[Seen] = field(default_factory=list)
    _by_key: dict[Key, list[Seen]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, events: Iterable[Simple], origin: Peer) -> list[Seen]:
        """Take in events; those that were not there, in the order of time."""
        new = []
        for event in sorted(events, key=_time):
            if event not in self._seen:
                seen = self._seen[event] = Seen(event, event.time, origin)
                new.append(seen)
        by_key: defaultdict[Key, list[Seen]] = defaultdict(list)
        for seen in new:
            for key in keys(seen.event):
                by_key[key].append(seen)
        for key, some in by_key.items():
            _merge(self._by_key.setdefault(key, []), some)
        _merge(self._order, new)
        return new

    def name(self, members: Iterable[tuple[Simple, Iterable[str]]]) -> list[Seen]:
        """Events have come for subscriptions: those that had not for all of them, in the order of time."""
        fresh = []
        for event, names in members:
            seen = self._seen[event]
            if not seen.names.issuperset(names):
                seen.names |= frozenset(names)
                fresh.append(seen)
        return sorted(fresh, key=_time)

    def between(self, key: Key, after: Instant, before: Instant) -> list[Seen]:
        """The events of a key strictly between two instants."""
        row = self._by_key.get(key, [])
        return row[bisect_right(row, after, key=_time) : bisect_left(row, before, key=_time)]

    def untell(self, group: object, row: int) -> None:
        """Another operator has come to a row: no event is in its result set."""
        for seen in self._order:
            if seen.told and group in seen.told:
                seen.told[group] &= ~(1 << row)

    def forget(self, horizon: Instant) -> None:
        """Drop the events up to an instant."""
        if not self._order or self._order[0].time > horizon:
            return
        old = self._order[: bisect_right(self._order, horizon, key=_time)]
        del self._order[: len(old)]
        for key in {key for seen in old for key in keys(seen.event)}:
            row = self._by_key[key]
            del row[: bisect_right(row, horizon, key=_time)]
        for seen in old:
            del self._seen[seen.event]


def _merge(row: list[Seen], some: list[Seen]) -> None:
    late = bool(row and some and some[0].time < row[-1].time)
    row += some
    if late:
        row.sort(key=_time)


def keys(event: Simple) -> tuple[Key, Key]:
    """What a filter that an event satisfies speaks of."""
    return (event.attribute, event.sensor), (event.attribute, None)
