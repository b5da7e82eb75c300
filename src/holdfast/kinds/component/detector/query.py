"""Knowledge selection: evaluation of a query over an information space. [F58–F62]

This module defines the meaning of queries. `series.py` computes the same in columns; change both together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from msgspec.structs import replace

from ....model.instant import Instant
from ....model.query import (
    WHOLE,
    Aggregate,
    Ball,
    Closest,
    Dimension,
    Function,
    Group,
    Index,
    MemberSet,
    Multiple,
    Placeless,
    PooledDimension,
    Query,
    QueryRange,
    Whole,
)
from ....model.space import Point
from .aggregate import merge
from .knowledge import Knowledge, Where, order, standing

Table = list[Knowledge]
"""The knowledge that a query selects."""

EVALUATED: tuple[Dimension, ...] = ("time", "location", "status", "topic")
"""The order in which dimensions are processed; the results of `closest` and `aggregate` depend on it.
[F62]"""


def select(
    query: Query, known: Iterable[Knowledge], now: Instant, here: Where = None, collide: Function = "avg"
) -> Table:
    """Evaluate a query: `R_topic(R_status(R_location(R_time(InfoS))))`.

    `here` is the location of the host. `collide` merges knowledge of equal topic, time, location and status.
    The result is sorted.
    """
    table = one_per_cell(known, collide, query.each)
    for dimension, parameter in query.parameters():  # the group of a pool is chosen first
        if isinstance(parameter, PooledDimension):
            table = _in_group(parameter.group, dimension, table, here)
    return _process(EVALUATED, query, table, now, here)


def select_after_time(query: Query, table: Table, now: Instant, here: Where) -> Table:
    """Evaluate the dimensions after time of a query. `table` is the result of `R_time`."""
    return _process(EVALUATED[1:], query, table, now, here)


def merge_topics(query: Query, table: Table, now: Instant, here: Where) -> Table:
    """Evaluate the topic of a query. `table` has the results of all other dimensions for every topic."""
    return _process(EVALUATED[-1:], query, table, now, here)


def _process(dimensions: Sequence[Dimension], query: Query, table: Table, now: Instant, here: Where) -> Table:
    """Evaluate dimensions one after the other.

    Dimensions that come before them in `EVALUATED` count as processed, except those with a multiple.
    """
    parameters = dict(query.parameters())
    before = set(EVALUATED).difference(dimensions)
    processed = dimensions_pooled_by(query) | {d for d in before if not isinstance(parameters[d], Multiple)}
    for dimension in dimensions:
        origin: Any = now if dimension == "time" else here
        match parameters[dimension]:
            case Closest(index):
                table = _closest(index, dimension, table, origin, processed)
                processed.add(dimension)
            case Aggregate(functions, group):
                chosen = _in_group(group, dimension, table, origin)
                groups = _group(chosen, dimension, processed)
                table = [merge(some, functions, query.each, _VALUE[dimension]) for some in groups]
                processed.add(dimension)
            case Multiple(_, group):
                table = _in_group(group, dimension, table, origin)
            case PooledDimension():
                pass
    return sorted(table, key=order)


def dimensions_pooled_by(query: Query) -> set[Dimension]:
    """Return the dimensions whose members the query pools."""
    parameters = query.parameters()
    return {dimension for dimension, parameter in parameters if isinstance(parameter, PooledDimension)}


def one_per_cell(known: Iterable[Knowledge], collide: Function, keys: Collection[str] = ()) -> Table:
    """Return knowledge with one point for each cell: equal topic, time, location and status.

    The function `collide` merges the knowledge of a cell. `keys`, texts and truth values must agree;
    otherwise they are missing in the result. [F56]
    """
    return [merge_cell(cell, collide, keys) for cell in cells(known)]


def cells(known: Iterable[Knowledge]) -> list[Table]:
    """Return knowledge in groups with equal topic, time, location and status. Such a group is called a
    cell."""
    found: dict[Any, Table] = {}
    for k in known:
        found.setdefault((k.topic, k.time, standing(k), k.status), []).append(k)
    return list(found.values())


def merge_cell(cell: Table, collide: Function, keys: Collection[str]) -> Knowledge:
    """Return the knowledge of one cell as a single point, which counts as one reading."""
    if len(cell) == 1:
        return cell[0]
    pairs = [pair for k in cell for pair in k.attributes.items()]
    numbers = {name for name, v in pairs if isinstance(v, (int, float)) and not isinstance(v, bool)}
    others = {
        name for name, _ in pairs
    } - numbers  # texts, and attributes that are missing everywhere, have no function
    return replace(merge(cell, collide, others.union(keys)), count=1)


# --- dimensions --------------------------------------------------------------------------------

_VALUE: dict[Dimension, Callable[[Knowledge], Any]] = {
    "topic": lambda k: k.topic,
    "time": lambda k: k.time,
    "location": standing,
    "status": lambda k: k.status,
}


def value(dimension: Dimension, known: Knowledge) -> Any:
    """Return the coordinate of knowledge in a dimension."""
    return _VALUE[dimension](known)


def _group(table: Table, dimension: Dimension, processed: set[Dimension]) -> list[Table]:
    """Return groups of knowledge that agrees in every other unprocessed dimension: `A^F − A^P − {a}`."""
    others = other_dimensions(dimension, processed)
    groups: dict[Any, Table] = {}
    for known in table:
        groups.setdefault(tuple(of(known) for of in others), []).append(known)
    return list(groups.values())


def other_dimensions(dimension: Dimension, processed: set[Dimension]) -> list[Callable[[Knowledge], Any]]:
    """Return functions that compute the coordinates in all other unprocessed dimensions."""
    return [_VALUE[d] for d in EVALUATED if d != dimension and d not in processed]


def _closest(
    index: Index, dimension: Dimension, table: Table, origin: Any, processed: set[Dimension]
) -> Table:
    """Return the knowledge nearest to an index in each group; of several, the least.

    In the dimensions topic and status, only equal knowledge is selected. [F59]
    """
    if dimension in ("topic", "status"):
        return [known for known in table if value(dimension, known) == index.value]
    there = absolute(index, origin)

    def far(known: Knowledge) -> float:
        return abs(known.time - there) if dimension == "time" else distance(known.location, there)

    near = [known for known in table if far(known) < math.inf]
    groups = _group(near, dimension, processed)
    return [min(group, key=lambda k: (far(k), value(dimension, k), order(k))) for group in groups]


def distance(a: Where, b: Where) -> float:
    """Return the Euclidean distance of two locations, in units of the coordinates.

    A named place has distance 0 from itself. All other pairs without comparable coordinates have an infinite
    distance.
    """
    if isinstance(a, tuple) and isinstance(b, tuple):
        return math.dist(a, b) if len(a) == len(b) else math.inf
    return 0.0 if a is not None and a == b else math.inf


def absolute(index: Index, origin: Any) -> Any:
    """Convert an index to an absolute index. A relative index is added to `origin`, which is now or here.
    [F57]"""
    if not index.relative:
        return index.value
    if isinstance(index.value, int):
        return origin + index.value
    if isinstance(origin, tuple) and isinstance(index.value, tuple):
        return shift_point(origin, index.value)
    return origin if not index.value else None


def shift_point(origin: Point, by: Point) -> Point:
    """Return a point moved by a vector. Missing coordinates of the vector count as 0."""
    return tuple(c + (by[i] if i < len(by) else 0.0) for i, c in enumerate(origin))


def _in_group(group: Group, dimension: Dimension, table: Table, origin: Any) -> Table:
    """Return the knowledge that lies in a group."""
    if group == WHOLE:
        return table
    return [known for known in table if contains(group, dimension, known, origin)]


def contains(group: Group, dimension: Dimension, known: Knowledge, origin: Any) -> bool:
    """Whether knowledge lies in a group. Ranges include both ends. [5.7]"""
    at = known.location if dimension == "location" else value(dimension, known)
    match group:
        case Placeless():
            return known.at is None
        case Whole():
            return True
        case MemberSet(values):
            return any(at is not None and at == absolute(index, origin) for index in values)
        case Ball(centre, radius):
            return distance(at, absolute(centre, origin)) <= radius
        case QueryRange(low, high):
            return _between(absolute(low, origin), at, absolute(high, origin))


def _between(low: Any, at: Any, high: Any) -> bool:
    """Whether a time or a point lies between two limits, inclusive; `False` if any of the three is
    unknown."""
    if low is None or at is None or high is None or isinstance(at, str):
        return False
    if isinstance(at, int):
        return bool(low <= at <= high)
    enough: Sequence[Any] = at if len(at) >= max(len(low), len(high)) else ()
    sides = zip(low, enough, high, strict=False)
    return bool(enough) and all(lo <= c <= hi for lo, c, hi in sides)


def may_select(query: Query, known: Knowledge, here: Where) -> bool:
    """Whether a query can ever select knowledge, judged by its topic and location.

    `here` is the location of a stationary host. For a moving host it is `None`, and relative locations
    exclude nothing.
    """
    if known.topic not in query.topics:
        return False
    match query.location:
        case Aggregate(_, group) | Multiple(_, group) | PooledDimension(group):
            return (query.is_relative and here is None) or contains(group, "location", known, here)
    return True
