"""The store U of a node's recent events, in the order of time. [J8]"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter

from ....model.correlation import Simple
from ....model.instant import Instant
from ....model.protocol import Peer
from .operator import Key

_time = attrgetter("time")


@dataclass(eq=False, slots=True)
class StoredEvent:
    """An event in the store, with the link from which it came and the links to which it was forwarded."""

    event: Simple
    time: Instant
    origin: Peer
    crossed_links: tuple[Peer, ...] = ()
    """The links to which the event was forwarded, each at most once."""
    result_rows: dict[object, int] | None = None
    """For each group of operators, a bit mask of the rows whose result set contains it."""
    subscriptions: frozenset[str] = frozenset()
    """The subscriptions for which the event came, if the policy names them in messages."""

    def first_for(self, group: object, rows: int) -> int:
        """Add the event to the result sets of ``rows``, a bit mask. Return the rows for which the event is
        new.
        """
        if self.result_rows is None:
            self.result_rows = {}
        known_rows = self.result_rows.get(group, 0)
        self.result_rows[group] = known_rows | rows
        return rows & ~known_rows


@dataclass(slots=True)
class EventStore:
    """The events of a node by attribute and sensor; each list is in the order of time."""

    _seen: dict[Simple, StoredEvent] = field(default_factory=dict)
    _order: list[StoredEvent] = field(default_factory=list)
    _by_key: dict[Key, list[StoredEvent]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, events: Iterable[Simple], origin: Peer) -> list[StoredEvent]:
        """Store events and return the new ones in the order of time."""
        new = []
        for event in sorted(events, key=_time):
            if event not in self._seen:
                seen = self._seen[event] = StoredEvent(event, event.time, origin)
                new.append(seen)
        by_key: defaultdict[Key, list[StoredEvent]] = defaultdict(list)
        for seen in new:
            for key in keys(seen.event):
                by_key[key].append(seen)
        for key, some in by_key.items():
            _merge(self._by_key.setdefault(key, []), some)
        _merge(self._order, new)
        return new

    def add_names(self, members: Iterable[tuple[Simple, Iterable[str]]]) -> list[StoredEvent]:
        """Record the subscriptions for which events came. Return the events with new subscriptions, in the
        order of time.
        """
        fresh = []
        for event, names in members:
            seen = self._seen[event]
            if not seen.subscriptions.issuperset(names):
                seen.subscriptions |= frozenset(names)
                fresh.append(seen)
        return sorted(fresh, key=_time)

    def between(self, key: Key, after: Instant, before: Instant) -> list[StoredEvent]:
        """Return the events of a key strictly between two times."""
        row = self._by_key.get(key, [])
        return row[bisect_right(row, after, key=_time) : bisect_left(row, before, key=_time)]

    def clear_row(self, group: object, row: int) -> None:
        """Remove all events from the result set of a row, because the row now belongs to another operator."""
        for seen in self._order:
            if seen.result_rows and group in seen.result_rows:
                seen.result_rows[group] &= ~(1 << row)

    def forget(self, horizon: Instant) -> None:
        """Drop the events up to and including the time ``horizon``."""
        if not self._order or self._order[0].time > horizon:
            return
        old = self._order[: bisect_right(self._order, horizon, key=_time)]
        del self._order[: len(old)]
        for key in {key for seen in old for key in keys(seen.event)}:
            row = self._by_key[key]
            del row[: bisect_right(row, horizon, key=_time)]
        for seen in old:
            del self._seen[seen.event]


def _merge(row: list[StoredEvent], some: list[StoredEvent]) -> None:
    late = bool(row and some and some[0].time < row[-1].time)
    row += some
    if late:
        row.sort(key=_time)


def keys(event: Simple) -> tuple[Key, Key]:
    """Return the two keys of filters that an event may satisfy: for its sensor, and for any sensor."""
    return (event.attribute, event.sensor), (event.attribute, None)
