"""Outlines of several places: the smallest convex polygon around them, as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .space import Circle, Point, Polygon, Rectangle, Shape

_ROUND = 16
"""Corners of the polygon that replaces a circle."""


def corners(shape: Shape) -> tuple[Point, ...]:
    """Return points whose hull contains a shape in the plane. A circle is approximated by a polygon."""
    match shape:
        case Rectangle(low, high):
            (a, b), (c, d) = _flat(low), _flat(high)
            return ((a, b), (c, b), (c, d), (a, d))
        case Circle(centre, radius):
            x, y = _flat(centre)
            turns = (2 * math.pi * i / _ROUND for i in range(_ROUND))
            return tuple((x + radius * math.cos(turn), y + radius * math.sin(turn)) for turn in turns)
        case Polygon(points):
            return tuple(map(_flat, points))


def _flat(point: Sequence[float]) -> tuple[float, float]:
    return float(point[0]), float(point[1]) if len(point) > 1 else 0.0


def hull(points: Iterable[Sequence[float]]) -> list[tuple[float, float]]:
    """Return the corners of the smallest convex polygon around points, counterclockwise.

    >>> hull([(0, 0), (2, 0), (1, 0.5), (2, 2), (0, 2)])
    [(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0)]
    """
    some = sorted(set(map(_flat, points)))
    if len(some) < 3:
        return some
    return [*_half(some)[:-1], *_half(some[::-1])[:-1]]


def _half(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return one side of the hull, from the first point to the last. [Andrew's monotone chain]"""
    found: list[tuple[float, float]] = []
    for x, y in points:
        while len(found) > 1:
            (a, b), (c, d) = found[-2:]
            if (c - a) * (y - b) > (d - b) * (x - a):
                break
            found.pop()
        found.append((x, y))
    return found


def outline(points: Iterable[Sequence[float]]) -> str | None:
    """Return the hull of points as WKT text, or ``None`` if there are no points.

    >>> outline([(0, 0), (1, 0), (0, 1)])
    'POLYGON ((0 0, 1 0, 0 1, 0 0))'
    """
    found = hull(points)
    if not found:
        return None
    ring = [*found, found[0]] if len(found) > 1 else [found[0]] * 2
    ring += [ring[-1]] * (4 - len(ring))  # a ring has four points at least
    return f"POLYGON (({', '.join(f'{x:.12g} {y:.12g}' for x, y in ring)}))"
