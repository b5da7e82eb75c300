"""The information space: the knowledge that each query can select, and its validity. [F55, F57, F70]

Each query has its own view: for each key the sorted knowledge that the query can still select. A query
without a key uses the key `""`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from functools import cached_property

import msgspec
from msgspec.structs import replace

from ....model.event import Status
from ....model.instant import Instant
from ....model.query import (
    Aggregate,
    Closest,
    Index,
    MemberSet,
    Multiple,
    PooledDimension,
    Query,
    QueryRange,
)
from .knowledge import Knowledge, order, standing
from .query import Table
from .running_aggregate import RunningAggregate

Key = str


class InfoSpace(msgspec.Struct, dict=True):
    """The stored knowledge of a component.

    `points[query][key]` is sorted knowledge. `newest[topic][signature][status]` is the latest time of a
    status, which decides validity.
    """

    points: dict[str, dict[Key, list[Knowledge]]] = {}
    newest: dict[str, dict[str, dict[Status, Instant]]] = {}

    @cached_property
    def running(self) -> dict[tuple[str, Key], RunningAggregate]:
        """Aggregates over all time, updated incrementally. They are computed from `points` and are not part
        of a snapshot."""
        return {}


def insert(info: InfoSpace, query: str, key: Key, known: Knowledge) -> None:
    """Insert knowledge into the view of a query.

    Late knowledge removes the running aggregate, which is then computed again.
    """
    running = info.running.get((query, key))
    if running is not None and known.time <= running.until:
        del info.running[query, key]
    insort(info.points.setdefault(query, {}).setdefault(key, []), known, key=order)


def record_status(info: InfoSpace, known: Knowledge) -> None:
    """Record the time of a start or an end. Such an event can end the validity of earlier events in its
    scope."""
    if known.status == "atomic":
        return
    last = info.newest.setdefault(known.topic, {}).setdefault(known.signature or "", {})
    last[known.status] = max(known.time, last.get(known.status, known.time))


def visible(info: InfoSpace, query: str, key: Key, now: Instant) -> list[Knowledge]:
    """Return the knowledge that a query can select at an instant, with its validity at that instant. Later
    knowledge is left out."""
    stored = info.points.get(query, {}).get(key, ())
    judged = ((known, is_valid(info, known, now)) for known in stored if known.time <= now)
    return [known if valid == known.valid else replace(known, valid=valid) for known, valid in judged]


def running_table(
    info: InfoSpace, at: tuple[str, Key], made: Callable[[], RunningAggregate], now: Instant
) -> Table | None:
    """Return the result of an incremental aggregate over all time, or `None` if the aggregate cannot be used.

    `at` is the name of the query and the key; `made` creates a new aggregate.
    """
    name, key = at
    if at not in info.running:
        info.running[at] = made()
    points = info.points.get(name, {}).get(key, ())
    return info.running[at].table(points, now, lambda known: is_valid(info, known, now))


def is_valid(info: InfoSpace, known: Knowledge, now: Instant) -> bool:
    """Whether knowledge is valid at an instant.

    A reading is valid at its own time. A start or an end is valid until a later event of the same scope has
    another status. Knowledge that is no longer valid never becomes valid again. [F55]
    """
    if known.status == "atomic":
        return known.time == now
    statuses = info.newest.get(known.topic, {}).get(known.signature or "", {})
    return all(at <= known.time for status, at in statuses.items() if status != known.status)


# --- time: instants at which a view changes, and knowledge that it can never select again ---------


def change_instants(query: Query, known: Knowledge) -> Iterator[Instant]:
    """Yield the instants at which knowledge enters a delayed window and at which it leaves a window."""
    match query.time:
        case Aggregate(_, QueryRange(low, high)) | Multiple(_, QueryRange(low, high)):
            bounds = [(low, high)]
        case Aggregate(_, MemberSet(values)) | Multiple(_, MemberSet(values)):
            bounds = [(index, index) for index in values]
        case _:
            return
    for low, high in bounds:
        if high.relative and _offset(high) < 0:
            yield known.time - _offset(high)
        if low.relative:
            yield known.time - _offset(low) + 1


def discard(info: InfoSpace, name: str, key: Key, query: Query, now: Instant) -> None:
    """Discard knowledge that the query can never select again. [F70]"""
    view = info.points.get(name, {})
    stored = view.get(key)
    if stored is None:
        return
    remaining = _retained(query, stored, now)
    if remaining:
        view[key] = remaining
    else:
        del view[key]


def _retained(query: Query, stored: list[Knowledge], now: Instant) -> list[Knowledge]:
    """Return the knowledge that the query can still select at `now` or later."""
    match query.time:
        case Closest(index):
            return _nearest(query, index, stored, now)
        case Aggregate(_, QueryRange(low)) | Multiple(_, QueryRange(low)):
            return _since(_offset(low) + (now if low.relative else 0), stored)
        case Aggregate(_, MemberSet(values)) | Multiple(_, MemberSet(values)):
            return _since(min(_offset(v) + (now if v.relative else 0) for v in values), stored)
    return stored


def _since(first: Instant, stored: list[Knowledge]) -> list[Knowledge]:
    """Return the knowledge at or after `first`."""
    return stored if stored[0].time >= first else [known for known in stored if known.time >= first]


def _nearest(query: Query, index: Index, stored: list[Knowledge], now: Instant) -> list[Knowledge]:
    """Return the knowledge that is, or may become, the nearest in time to an index.

    Of each topic, place and status, these are the last points up to the index and all later ones. An absolute
    index needs only the first of the later ones. Pooled places count as one place, and pooled statuses as one
    status.
    """
    target = _offset(index) + (now if index.relative else 0)
    one_place = isinstance(query.location, PooledDimension) and not query.is_relative
    one_status = query.status == PooledDimension()

    def group(known: Knowledge) -> object:
        return (known.topic, one_status or known.status, one_place or standing(known))

    before = {group(known): known.time for known in stored if known.time <= target}
    after = {group(known): known.time for known in reversed(stored) if known.time > target}

    def is_retained(known: Knowledge) -> bool:
        if known.time <= target:
            return known.time == before[group(known)]
        return index.relative or known.time == after[group(known)]

    return [known for known in stored if is_retained(known)]


def _offset(index: Index) -> int:
    assert isinstance(index.value, int)
    return index.value
