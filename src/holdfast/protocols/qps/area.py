"""Parts of the plane that can be cut and joined: regions of subscriptions and advertisements, scopes.

An area is plain values, so that it can be compared, kept and sent: polygons, each its outer ring and its
holes, in one order only and without needless corners.  It has its lower and left sides and not its upper
and right ones, as the scopes of a tree have: so two parts of a whole never share a point, and none is lost
between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, reduce
from math import hypot
from typing import Any

import shapely

from ...errors import UsageError
from ...model.space import Circle, Point, Polygon, Rectangle, Shape, geometry

Ring = tuple[tuple[float, float], ...]
"""Corners; the first does not come again at the end."""
Area = tuple[tuple[Ring, ...], ...]

NOTHING: Area = ()
SLIVER = 4e-15
"""Parts that are smaller, as a share of the square of their coordinates, come from rounding."""
_KEPT = 1 << 14


def box(low: Point, high: Point) -> Area:
    """A rectangle."""
    return of(Rectangle(low, high))


def of(shape: Shape) -> Area:
    """A shape in the plane as an area; an error if it has none."""
    match shape:
        case Circle():
            raise UsageError("a region is a rectangle or a polygon; draw a polygon round the circle")
        case Rectangle(low, high) if len(low) != 2 or len(high) != 2:
            raise UsageError(f"a region lies in the plane, and has two coordinates: {low} {high}")
        case Rectangle(low, high) if not all(a < b for a, b in zip(low, high, strict=True)):
            raise UsageError(
                f"the region {said(shape)} is empty: its first corner is the lower left, its second the "
                "upper right one"
            )
        case Rectangle() | Polygon():
            found = _area(geometry(shape))
    if not found:
        raise UsageError(f"the region {said(shape)} is empty")
    return found


def said(shape: Shape) -> str:
    """A region, in a message to people.

    >>> said(Rectangle((0.0, 0.5), (2.0, 2.0)))
    '(0, 0.5) to (2, 2)'
    """
    match shape:
        case Rectangle(low, high):
            return " to ".join(map(_point, (low, high)))
        case Polygon(corners):
            return f"with the corners {', '.join(map(_point, corners))}"
    return str(shape)


def _point(point: Point) -> str:
    return f"({', '.join(f'{c:g}' for c in point)})"


@lru_cache(_KEPT)
def meet(a: Area, b: Area) -> Area:
    """What both have."""
    if not a or not b or a == b:
        return a and b
    return _area(shapely.intersection(_geometry(a), _geometry(b)))


@lru_cache(_KEPT)
def minus(a: Area, b: Area) -> Area:
    """What the first has and the second has not."""
    if not a or not b or a == b:
        return NOTHING if a == b else a
    return _area(shapely.difference(_geometry(a), _geometry(b)))


@lru_cache(_KEPT)
def join(a: Area, b: Area) -> Area:
    """What either has."""
    if not a or not b or a == b:
        return a or b
    return _area(shapely.union(_geometry(a), _geometry(b)))


def joined(areas: Iterable[Area]) -> Area:
    """What any of them has."""
    return reduce(join, areas, NOTHING)


def within(a: Area, b: Area) -> bool:
    """Whether the second has all of the first."""
    return not minus(a, b)


@lru_cache(_KEPT)
def size(area: Area) -> float:
    """How large it is."""
    return float(_geometry(area).area)


@lru_cache(_KEPT)
def centroid(area: Area) -> Point:
    """The middle of its surface."""
    middle = _geometry(area).centroid
    return (float(middle.x), float(middle.y))


def has(area: Area, point: Point) -> bool:
    """Whether the point is in the area: its lower and left sides are, the upper and right ones are not.

    >>> square = box((0, 0), (2, 2))
    >>> has(square, (0, 0)), has(square, (2, 1)), has(square, (1, 2)), has(square, (1, 1))
    (True, False, False, True)
    """
    x, y = point[0], point[1]
    inside = False
    for (ax, ay), (bx, by) in _sides(area):
        if (ay > y) != (by > y) and x < (bx - ax) * (y - ay) / (by - ay) + ax:
            inside = not inside
    return inside


def corners(area: Area) -> int:
    """How many corners it has."""
    return sum(len(ring) for polygon in area for ring in polygon)


def _sides(area: Area) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    for polygon in area:
        for ring in polygon:
            yield from zip(ring, (*ring[1:], ring[0]), strict=True)


@lru_cache(_KEPT)
def _geometry(area: Area) -> Any:
    parts = [shapely.Polygon(outer, holes) for outer, *holes in area]
    found = parts[0] if len(parts) == 1 else shapely.MultiPolygon(parts)
    if found.is_valid:
        return found
    return shapely.MultiPolygon(_polygons(shapely.make_valid(found)))  # by rounding a ring crosses itself


def _polygons(found: Any) -> list[Any]:
    parts = shapely.get_parts(shapely.get_parts(found))
    return [part for part in parts if part.geom_type == "Polygon"]


def _area(found: Any) -> Area:
    return tuple(sorted(filter(None, map(_polygon, _polygons(found)))))


def _polygon(part: Any) -> tuple[Ring, ...]:
    left, low, right, high = part.bounds
    least = SLIVER * hypot(max(abs(left), abs(right)), max(abs(low), abs(high))) ** 2
    if not part.area > least:
        return ()
    outer = _ring(part.exterior)
    holes = [ring for hole in part.interiors if len(ring := _ring(hole)) > 2]
    return (outer, *sorted(holes)) if len(outer) > 2 else ()


def _ring(line: Any) -> Ring:
    """Counterclockwise, from the least corner, without corners at which it goes straight on."""
    points = [(float(x), float(y)) for x, y in line.coords[:-1]]
    if not line.is_ccw:
        points.reverse()
    kept = [
        here
        for before, here, after in zip(
            points[-1:] + points[:-1], points, points[1:] + points[:1], strict=True
        )
        if (here[0] - before[0]) * (after[1] - here[1]) != (here[1] - before[1]) * (after[0] - here[0])
    ]
    if not kept:
        return ()
    first = kept.index(min(kept))
    return (*kept[first:], *kept[:first])
