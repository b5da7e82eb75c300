"""Knowledge selection: a query expression applied to an information space.  [F58–F62]"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from ...model.instant import Instant
from ...model.query import (
    WHOLE,
    Aggregate,
    Ball,
    Closest,
    Dimension,
    Function,
    Group,
    Index,
    Members,
    Multiple,
    Placeless,
    Pool,
    Query,
    Range,
    Whole,
)
from ...model.space import Point
from .aggregate import merged
from .knowledge import Knowledge, Where, order, standing

Table = list[Knowledge]

EVALUATED: tuple[Dimension, ...] = ("time", "location", "status", "topic")
"""The order in which dimensions are processed; closest and aggregate depend on it.  [F62]"""


def select(
    query: Query, known: Iterable[Knowledge], now: Instant, here: Where = None, collide: Function = "avg"
) -> Table:
    """``R_topic(R_status(R_location(R_time(InfoS))))``, in order."""
    table = one_per_cell(known, collide, query.each)
    for dimension, parameter in query.parameters():  # the group of a pool is chosen first
        if isinstance(parameter, Pool):
            table = _in_group(parameter.group, dimension, table, here)
    return _processed(EVALUATED, query, table, now, here)


def selected(query: Query, table: Table, now: Instant, here: Where) -> Table:
    """The same, of what ``R_time`` has shown."""
    return _processed(EVALUATED[1:], query, table, now, here)


def as_one(query: Query, table: Table, now: Instant, here: Where) -> Table:
    """The same, of what all dimensions but the topic have shown of each topic."""
    return _processed(EVALUATED[-1:], query, table, now, here)


def _processed(
    dimensions: Sequence[Dimension], query: Query, table: Table, now: Instant, here: Where
) -> Table:
    """Some dimensions, one after the other; those before them are processed, but for multiples, and pools
    keep nothing apart."""
    parameters = dict(query.parameters())
    before = set(EVALUATED).difference(dimensions)
    processed = pooled(query) | {d for d in before if not isinstance(parameters[d], Multiple)}
    for dimension in dimensions:
        origin: Any = now if dimension == "time" else here
        match parameters[dimension]:
            case Closest(index):
                table = _closest(index, dimension, table, origin, processed)
                processed.add(dimension)
            case Aggregate(functions, group):
                chosen = _in_group(group, dimension, table, origin)
                groups = _grouped(chosen, dimension, processed)
                table = [merged(some, functions, query.each, _VALUE[dimension]) for some in groups]
                processed.add(dimension)
            case Multiple(_, group):
                table = _in_group(group, dimension, table, origin)
            case Pool():
                pass
    return sorted(table, key=order)


def pooled(query: Query) -> set[Dimension]:
    """The dimensions that keep nothing apart."""
    return {dimension for dimension, parameter in query.parameters() if isinstance(parameter, Pool)}


def one_per_cell(known: Iterable[Knowledge], collide: Function, keys: Collection[str] = ()) -> Table:
    """At most one knowledge point for each topic, time, location and status: those that collide are
    merged by a function that is the same everywhere, but for keys, text and truth.  [F56]"""
    return [met(some, collide, keys) for some in cells(known)]


def cells(known: Iterable[Knowledge]) -> list[Table]:
    """Knowledge by topic, time, location and status."""
    found: dict[Any, Table] = {}
    for k in known:
        found.setdefault((k.topic, k.time, standing(k), k.status), []).append(k)
    return list(found.values())


def met(some: Table, collide: Function, keys: Collection[str]) -> Knowledge:
    """The knowledge of a cell."""
    if len(some) == 1:
        return some[0]
    said = [pair for k in some for pair in k.attributes.items()]
    numbers = {
        name for name, value in said if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
    others = {name for name, _ in said} - numbers  # of texts, and of what all lack, there is no function
    return replace(merged(some, collide, others.union(keys)), count=1)


# --- dimensions --------------------------------------------------------------------------------

_VALUE: dict[Dimension, Callable[[Knowledge], Any]] = {
    "topic": lambda k: k.topic,
    "time": lambda k: k.time,
    "location": standing,
    "status": lambda k: k.status,
}


def value(dimension: Dimension, known: Knowledge) -> Any:
    """What tells knowledge apart in a dimension."""
    return _VALUE[dimension](known)


def _grouped(table: Table, dimension: Dimension, processed: set[Dimension]) -> list[Table]:
    """Groups that agree in every other dimension that has not been processed: ``A^F − A^P − {a}``."""
    others = unprocessed(dimension, processed)
    groups: dict[Any, Table] = {}
    for known in table:
        groups.setdefault(tuple(of(known) for of in others), []).append(known)
    return list(groups.values())


def unprocessed(dimension: Dimension, processed: set[Dimension]) -> list[Callable[[Knowledge], Any]]:
    """What tells knowledge apart in every other dimension that has not been processed."""
    return [_VALUE[d] for d in EVALUATED if d != dimension and d not in processed]


def _closest(
    index: Index, dimension: Dimension, table: Table, origin: Any, processed: set[Dimension]
) -> Table:
    """The nearest of each group, the least of several; topic and status must be equal.  [F59]"""
    if dimension in ("topic", "status"):
        return [known for known in table if value(dimension, known) == index.value]
    there = absolute(index, origin)

    def far(known: Knowledge) -> float:
        return abs(known.time - there) if dimension == "time" else apart(known.location, there)

    near = [known for known in table if far(known) < math.inf]
    groups = _grouped(near, dimension, processed)
    return [min(some, key=lambda k: (far(k), value(dimension, k), order(k))) for some in groups]


def apart(a: Where, b: Where) -> float:
    """The distance of two locations; a place is only near itself."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return math.dist(a, b) if len(a) == len(b) else math.inf
    return 0.0 if a is not None and a == b else math.inf


def absolute(index: Index, origin: Any) -> Any:
    """The index as seen from here and now.  [F57]"""
    if not index.relative:
        return index.value
    if isinstance(index.value, int):
        return origin + index.value
    if isinstance(origin, tuple) and isinstance(index.value, tuple):
        return moved(origin, index.value)
    return origin if not index.value else None


def moved(origin: Point, by: Point) -> Point:
    """A point, by so much away; missing coordinates are no distance."""
    return tuple(c + (by[i] if i < len(by) else 0.0) for i, c in enumerate(origin))


def _in_group(group: Group, dimension: Dimension, table: Table, origin: Any) -> Table:
    if group == WHOLE:
        return table
    return [known for known in table if contains(group, dimension, known, origin)]


def contains(group: Group, dimension: Dimension, known: Knowledge, origin: Any) -> bool:
    """Whether knowledge lies in a group; the ends of a range belong to it.  [5.7]"""
    at = known.location if dimension == "location" else value(dimension, known)
    match group:
        case Placeless():
            return known.at is None
        case Whole():
            return True
        case Members(values):
            return any(at is not None and at == absolute(index, origin) for index in values)
        case Ball(centre, radius):
            return apart(at, absolute(centre, origin)) <= radius
        case Range(low, high):
            return _between(absolute(low, origin), at, absolute(high, origin))


def _between(low: Any, at: Any, high: Any) -> bool:
    if low is None or at is None or high is None or isinstance(at, str):
        return False
    if isinstance(at, int):
        return bool(low <= at <= high)
    enough: Sequence[Any] = at if len(at) >= max(len(low), len(high)) else ()
    sides = zip(low, enough, high, strict=False)
    return bool(enough) and all(lo <= c <= hi for lo, c, hi in sides)


def is_looked_at(query: Query, known: Knowledge, here: Where) -> bool:
    """Whether knowledge can ever lie in a query's topics and locations.

    ``here`` is where a stationary host is; of one that moves a relative location excludes nothing.
    """
    if known.topic not in query.topics:
        return False
    match query.location:
        case Aggregate(_, group) | Multiple(_, group) | Pool(group):
            return (query.is_relative and here is None) or contains(group, "location", known, here)
    return True
