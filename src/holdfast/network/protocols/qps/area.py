"""Parts of the plane with set operations, for the regions of subscriptions and advertisements and for scopes.

An area is a plain value that can be compared, stored and sent. It consists of polygons, each with its outer
ring and its holes, in a canonical order and without redundant corners. It includes its lower and left sides
but not its upper and right ones, like the scopes of a tree. So the parts of a whole never share a point, and
no point is lost between them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache, reduce
from math import hypot
from typing import Any

import shapely

from ....errors import UsageError
from ....model.space import Circle, Point, Polygon, Rectangle, Shape, geometry

Ring = tuple[tuple[float, float], ...]
"""The corners of a closed line. The first corner is not repeated at the end."""
Area = tuple[tuple[Ring, ...], ...]

NOTHING: Area = ()
SLIVER = 4e-15
"""Parts smaller than this share of the square of their coordinates are results of rounding and are
dropped.
"""
_CACHE_SIZE = 1 << 14


def box(low: Point, high: Point) -> Area:
    """Return the rectangle between two corners as an area."""
    return of(Rectangle(low, high))


def of(shape: Shape) -> Area:
    """Return a shape in the plane as an area; raise a `UsageError` if it is empty."""
    match shape:
        case Circle():
            raise UsageError("a region is a rectangle or a polygon; draw a polygon round the circle")
        case Rectangle(low, high) if len(low) != 2 or len(high) != 2:
            raise UsageError(f"a region lies in the plane, and has two coordinates: {low} {high}")
        case Rectangle(low, high) if not all(a < b for a, b in zip(low, high, strict=True)):
            raise UsageError(
                f"the region {region_text(shape)} is empty: its first corner is the lower left, "
                "its second the upper right one"
            )
        case Rectangle() | Polygon():
            area = _area(geometry(shape))
    if not area:
        raise UsageError(f"the region {region_text(shape)} is empty")
    return area


def region_text(shape: Shape) -> str:
    """Format a region for messages to users.

    >>> region_text(Rectangle((0.0, 0.5), (2.0, 2.0)))
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


@lru_cache(_CACHE_SIZE)
def intersection(a: Area, b: Area) -> Area:
    """Return the intersection of two areas."""
    if not a or not b or a == b:
        return a and b
    return _area(shapely.intersection(_geometry(a), _geometry(b)))


@lru_cache(_CACHE_SIZE)
def difference(a: Area, b: Area) -> Area:
    """Return the area ``a`` without the area ``b``."""
    if not a or not b or a == b:
        return NOTHING if a == b else a
    return _area(shapely.difference(_geometry(a), _geometry(b)))


@lru_cache(_CACHE_SIZE)
def union(a: Area, b: Area) -> Area:
    """Return the union of two areas."""
    if not a or not b or a == b:
        return a or b
    return _area(shapely.union(_geometry(a), _geometry(b)))


def union_of(areas: Iterable[Area]) -> Area:
    """Return the union of several areas."""
    return reduce(union, areas, NOTHING)


def is_within(a: Area, b: Area) -> bool:
    """Whether the area ``a`` lies within the area ``b``."""
    return not difference(a, b)


@lru_cache(_CACHE_SIZE)
def size(area: Area) -> float:
    """Return the surface of an area, in the square of the unit of its coordinates."""
    return float(_geometry(area).area)


@lru_cache(_CACHE_SIZE)
def centroid(area: Area) -> Point:
    """Return the centroid of an area."""
    middle = _geometry(area).centroid
    return (float(middle.x), float(middle.y))


def contains_point(area: Area, point: Point) -> bool:
    """Whether an area contains a point. Its lower and left sides belong to it; the upper and right ones do
    not.

    >>> square = box((0, 0), (2, 2))
    >>> [contains_point(square, point) for point in ((0, 0), (2, 1), (1, 2), (1, 1))]
    [True, False, False, True]
    """
    x, y = point[0], point[1]
    inside = False
    for (ax, ay), (bx, by) in _sides(area):
        if (ay > y) != (by > y) and x < (bx - ax) * (y - ay) / (by - ay) + ax:
            inside = not inside
    return inside


def corner_count(area: Area) -> int:
    """Return the number of corners of all rings."""
    return sum(len(ring) for polygon in area for ring in polygon)


def _sides(area: Area) -> Iterator[tuple[tuple[float, float], tuple[float, float]]]:
    for polygon in area:
        for ring in polygon:
            yield from zip(ring, (*ring[1:], ring[0]), strict=True)


@lru_cache(_CACHE_SIZE)
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
    """Return the corners of a line counterclockwise from the least corner, without corners on a straight
    line.
    """
    points = [(float(x), float(y)) for x, y in line.coords[:-1]]
    if not line.is_ccw:
        points.reverse()
    corners_left = [
        here
        for before, here, after in zip(
            points[-1:] + points[:-1], points, points[1:] + points[:1], strict=True
        )
        if (here[0] - before[0]) * (after[1] - here[1]) != (here[1] - before[1]) * (after[0] - here[0])
    ]
    if not corners_left:
        return ()
    first = corners_left.index(min(corners_left))
    return (*corners_left[first:], *corners_left[:first])
