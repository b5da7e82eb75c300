"""The information space: what is known, for how long, and whether it is still so.  [F55, F57, F70]

Each query of a component has its own view: for each key that it keeps apart, the knowledge that it
can still look at, in order.  A query that keeps nothing apart has the one key ``""``.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from functools import cached_property

import msgspec

from ...model.event import Status
from ...model.instant import Instant
from ...model.query import Aggregate, Closest, Index, Members, Multiple, Pool, Query, Range
from .knowledge import Knowledge, order, standing
from .query import Table
from .running import Running

Key = str


class InfoSpace(msgspec.Struct, dict=True):
    """``points[query][key]`` is knowledge in order; ``newest[topic][signature][status]`` is when a
    component last said so, which decides what is valid."""

    points: dict[str, dict[Key, list[Knowledge]]] = {}
    newest: dict[str, dict[str, dict[Status, Instant]]] = {}

    @cached_property
    def running(self) -> dict[tuple[str, Key], Running]:
        """Aggregates over all time that are kept up, made of ``points``."""
        return {}


def insert(info: InfoSpace, query: str, key: Key, known: Knowledge) -> None:
    """Take knowledge into the view of a query."""
    running = info.running.get((query, key))
    if running is not None and known.time <= running.until:
        del info.running[query, key]
    insort(info.points.setdefault(query, {}).setdefault(key, []), known, key=order)


def witness(info: InfoSpace, known: Knowledge) -> None:
    """Remember when a lasting condition last started or ended, wherever that was."""
    if known.status == "atomic":
        return
    last = info.newest.setdefault(known.topic, {}).setdefault(known.signature or "", {})
    last[known.status] = max(known.time, last.get(known.status, known.time))


def visible(info: InfoSpace, query: str, key: Key, now: Instant) -> list[Knowledge]:
    """What a query may look at: nothing from the future, and each as valid as it is now."""
    stored = info.points.get(query, {}).get(key, ())
    return [_judged(info, known, now) for known in stored if known.time <= now]


def aggregated(
    info: InfoSpace, at: tuple[str, Key], made: Callable[[], Running], now: Instant
) -> Table | None:
    """What an aggregate over all time shows of the view of a query, if that can be kept up."""
    name, key = at
    if at not in info.running:
        info.running[at] = made()
    points = info.points.get(name, {}).get(key, ())
    return info.running[at].table(points, now, lambda known: is_valid(info, known, now))


def _judged(info: InfoSpace, known: Knowledge, now: Instant) -> Knowledge:
    valid = is_valid(info, known, now)
    return known if valid == known.valid else msgspec.structs.replace(known, valid=valid)


def is_valid(info: InfoSpace, known: Knowledge, now: Instant) -> bool:
    """Atomic knowledge is valid at its moment; a start or an end until a later one of the same name
    says otherwise.  Once false, never true again: time and ``newest`` only grow.  [F55]"""
    if known.status == "atomic":
        return known.time == now
    said = info.newest.get(known.topic, {}).get(known.signature or "", {})
    return all(at <= known.time for status, at in said.items() if status != known.status)


# --- time: when a view changes by itself, and what it will never show again --------------------


def moments(query: Query, known: Knowledge) -> Iterator[Instant]:
    """When knowledge comes into a window that lags behind, and when it has left a window."""
    match query.time:
        case Aggregate(_, Range(low, high)) | Multiple(_, Range(low, high)):
            bounds = [(low, high)]
        case Aggregate(_, Members(values)) | Multiple(_, Members(values)):
            bounds = [(index, index) for index in values]
        case _:
            return
    for low, high in bounds:
        if high.relative and _offset(high) < 0:
            yield known.time - _offset(high)
        if low.relative:
            yield known.time - _offset(low) + 1


def discard(info: InfoSpace, name: str, key: Key, query: Query, now: Instant) -> None:
    """Forget what the query can never show again: InfoS time only grows.  [F70, 5.20]"""
    view = info.points.get(name, {})
    stored = view.get(key)
    if stored is None:
        return
    kept = _kept(query, stored, now)
    if kept:
        view[key] = kept
    else:
        del view[key]


def _kept(query: Query, stored: list[Knowledge], now: Instant) -> list[Knowledge]:
    match query.time:
        case Closest(index):
            return _nearest(query, index, stored, now)
        case Aggregate(_, Range(low)) | Multiple(_, Range(low)):
            return _since(_offset(low) + (now if low.relative else 0), stored)
        case Aggregate(_, Members(values)) | Multiple(_, Members(values)):
            return _since(min(_offset(v) + (now if v.relative else 0) for v in values), stored)
    return stored


def _since(first: Instant, stored: list[Knowledge]) -> list[Knowledge]:
    return stored if stored[0].time >= first else [known for known in stored if known.time >= first]


def _nearest(query: Query, index: Index, stored: list[Knowledge], now: Instant) -> list[Knowledge]:
    """Of each topic, place and status the last before the index, and all after it; as an absolute
    index does not move, of those after it only the first.  Where places are pooled they are one, and so
    are statuses."""
    target = _offset(index) + (now if index.relative else 0)
    one_place = isinstance(query.location, Pool) and not query.is_relative
    one_status = query.status == Pool()

    def group(known: Knowledge) -> object:
        return (known.topic, one_status or known.status, one_place or standing(known))

    before = {group(known): known.time for known in stored if known.time <= target}
    after = {group(known): known.time for known in reversed(stored) if known.time > target}

    def is_kept(known: Knowledge) -> bool:
        if known.time <= target:
            return known.time == before[group(known)]
        return index.relative or known.time == after[group(known)]

    return [known for known in stored if is_kept(known)]


def _offset(index: Index) -> int:
    assert isinstance(index.value, int)
    return index.value
