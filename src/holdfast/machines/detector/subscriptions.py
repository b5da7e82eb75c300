"""From queries to subscriptions: one for each topic, with the region that can matter.  [F64]"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...errors import UsageError
from ...model.query import Ball, Closest, Group, Index, Members, Query, Range
from ...model.space import Point, Rectangle


@dataclass(frozen=True, slots=True)
class Window:
    """How far round a place *closest* looks: so far at first, wider if nothing is there, up to a cap."""

    half: float
    most: float
    factor: float = 2.0

    def __post_init__(self) -> None:
        if not 0 < self.half <= self.most or not self.factor > 1:
            raise UsageError(f"a window of {self.half} to {self.most}, {self.factor} times wider each time")

    def wider(self) -> Window | None:
        """The next one; none if this is the widest."""
        return None if self.half >= self.most else replace(self, half=min(self.half * self.factor, self.most))


@dataclass(frozen=True, slots=True)
class Subscription:
    """A topic, and where."""

    topic: str
    region: Rectangle


def subscriptions(
    query: Query, here: Point | None, space: Rectangle, window: Window | None = None
) -> tuple[Subscription, ...]:
    """What a query that is asked here needs to hear; nothing where it can match nothing in space.

    Relative places are those of a host that stays here.  Named places are known to nobody who routes by
    coordinates: such a query hears all of space.
    """
    found = _region(query, here, space, window)
    return () if found is None else tuple(Subscription(topic, found) for topic in query.topics)


def _region(query: Query, here: Point | None, space: Rectangle, window: Window | None) -> Rectangle | None:
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
    """The place to which a query wants what is closest, if it does."""
    parameter = query.location
    return _point(parameter.index, here) if isinstance(parameter, Closest) else None


def _of_group(group: Group, here: Point | None) -> Rectangle | None:
    match group:
        case Range(low, high):
            first, last = _point(low, here), _point(high, here)
            return None if first is None or last is None else _box(first, last)
        case Ball(centre, radius):
            at = _point(centre, here)
            return None if at is None else _around(at, radius)
        case Members(values):
            points = [_point(value, here) for value in values]
            known = [at for at in points if at is not None]
            if not known or len(known) < len(points):
                return None
            return _box(*(tuple(f(c) for c in zip(*known, strict=True)) for f in (min, max)))
    return None


def _point(index: Index, here: Point | None) -> Point | None:
    if not isinstance(index.value, tuple):
        return None
    if not index.relative:
        return index.value
    assert here is not None
    by = (*index.value, *(0.0 for _ in here[len(index.value) :]))
    return tuple(a + b for a, b in zip(here, by, strict=False))


def _box(low: Point, high: Point) -> Rectangle:
    """A rectangle in the plane; what has one coordinate goes all the way along the other."""
    return Rectangle(
        (*low[:2], *(-math.inf for _ in range(2 - len(low)))),
        (*high[:2], *(math.inf for _ in range(2 - len(high)))),
    )


def _around(at: Point, half: float) -> Rectangle:
    return _box(tuple(c - half for c in at), tuple(c + half for c in at))


def _meet(wanted: Rectangle | None, space: Rectangle) -> Rectangle | None:
    """The part of space that is meant: without a wish all of it.  Both ends of a range belong to it, and
    only the lower ones to a region, so that it goes a little farther."""
    if wanted is None:
        return space
    low = tuple(max(a, b) for a, b in zip(wanted.low, space.low, strict=True))
    high = tuple(min(math.nextafter(a, math.inf), b) for a, b in zip(wanted.high, space.high, strict=True))
    return Rectangle(low, high) if all(_pairs(low, high)) else None


def _pairs(low: Point, high: Point) -> Iterator[bool]:
    return (a < b for a, b in zip(low, high, strict=True))
