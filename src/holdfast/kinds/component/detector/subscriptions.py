"""Subscriptions of a query: one for each topic, with the region that the query can select. [F64]

Brokers use them to receive only readings that a query can select.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ....errors import UsageError
from ....model.query import Ball, Closest, Group, Index, MemberSet, Query, QueryRange
from ....model.space import Point, Rectangle


@dataclass(frozen=True, slots=True)
class SearchWindow:
    """The half side length of the square around a point in which `closest` searches.

    The search starts with `half`. While it finds nothing, the window grows by `factor`, up to `most`.
    """

    half: float
    most: float
    factor: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.half <= self.most or not self.factor > 1:
            raise UsageError(f"a window of {self.half} to {self.most}, {self.factor} times wider each time")

    def wider(self) -> SearchWindow | None:
        """Return the next larger window, or `None` if this window is the largest."""
        return None if self.half >= self.most else replace(self, half=min(self.half * self.factor, self.most))


@dataclass(frozen=True, slots=True)
class TopicRegion:
    """A subscription to a topic in a region."""

    topic: str
    region: Rectangle


def subscriptions(
    query: Query, here: Point | None, space: Rectangle, window: SearchWindow | None = None
) -> tuple[TopicRegion, ...]:
    """Return the subscriptions that a query needs at a host; none if the query cannot match in `space`.

    Relative locations are those of a host that stays at `here`. Named places have no coordinates, so a query
    for them subscribes to all of `space`.
    """
    found = _region(query, here, space, window)
    return () if found is None else tuple(TopicRegion(topic, found) for topic in query.topics)


Region = Rectangle | None
"""A region in the plane; `None` stands for no restriction or, as a result of `_meet`, for an empty region."""


def _region(query: Query, here: Point | None, space: Rectangle, window: SearchWindow | None) -> Region:
    """Return the region in `space` that a query can select; `None` if there is no such region."""
    if query.is_relative and here is None:
        raise UsageError("a query with relative locations needs to know where its host is")
    parameter = query.location
    if not isinstance(parameter, Closest):
        return _meet(_of_group(parameter.group, here), space)
    at = middle(query, here)
    if at is None or window is None:
        return space
    return _meet(_around(at, window.half), space)


def middle(query: Query, here: Point | None) -> Point | None:
    """Return the point whose closest reading a query selects; `None` for other queries."""
    parameter = query.location
    return _point(parameter.index, here) if isinstance(parameter, Closest) else None


def _of_group(group: Group, here: Point | None) -> Region:
    """Return the region that encloses a group; `None` if the group does not restrict locations."""
    match group:
        case QueryRange(low, high):
            first, last = _point(low, here), _point(high, here)
            return None if first is None or last is None else _box(first, last)
        case Ball(centre, radius):
            at = _point(centre, here)
            return None if at is None else _around(at, radius)
        case MemberSet(values):
            points = [_point(value, here) for value in values]
            known = [at for at in points if at is not None]
            if not known or len(known) < len(points):
                return None
            return _box(*(tuple(f(c) for c in zip(*known, strict=True)) for f in (min, max)))
    return None


def _point(index: Index, here: Point | None) -> Point | None:
    """Return an index as absolute coordinates; `None` if the index is not a point."""
    if not isinstance(index.value, tuple):
        return None
    if not index.relative:
        return index.value
    assert here is not None
    by = (*index.value, *(0.0 for _ in here[len(index.value) :]))
    return tuple(a + b for a, b in zip(here, by, strict=False))


def _box(low: Point, high: Point) -> Rectangle:
    """Return a rectangle in the plane. A range with one coordinate covers the whole other axis."""
    return Rectangle(
        (*low[:2], *(-math.inf for _ in range(2 - len(low)))),
        (*high[:2], *(math.inf for _ in range(2 - len(high)))),
    )


def _around(at: Point, half: float) -> Rectangle:
    """Return the square with the centre `at` and half the side length `half`."""
    return _box(tuple(c - half for c in at), tuple(c + half for c in at))


def _meet(wanted: Region, space: Rectangle) -> Region:
    """Return the part of `wanted` in `space`; all of `space` if `wanted` is `None`.

    A range includes both ends, a region only the lower one. The region is therefore enlarged a little.
    """
    if wanted is None:
        return space
    low = tuple(max(a, b) for a, b in zip(wanted.low, space.low, strict=True))
    high = tuple(min(math.nextafter(a, math.inf), b) for a, b in zip(wanted.high, space.high, strict=True))
    return Rectangle(low, high) if all(a < b for a, b in zip(low, high, strict=True)) else None
