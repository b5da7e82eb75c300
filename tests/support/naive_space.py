"""The position of a point by its distance and with a margin; shares no code with ``model.space``."""

from __future__ import annotations

import math
from itertools import product

from holdfast.model.space import Circle, Polygon, Rectangle

MARGIN = 1e-6


def depth(shape, point):
    """How far inside the shape the point lies; negative outside."""
    match shape:
        case Rectangle(low, high):
            return min(min(p - lo, hi - p) for lo, hi, p in zip(low, high, point, strict=False))
        case Circle(centre, radius):
            return radius - math.sqrt(sum((p - c) ** 2 for p, c in zip(point, centre, strict=False)))
        case Polygon(corners):
            sides = list(zip(corners, corners[1:] + corners[:1], strict=True))
            edge = min(_distance(point[:2], a, b) for a, b in sides)
            crossed = sum(_crosses(point[0], point[1], a, b) for a, b in sides)
            return edge if crossed % 2 else -edge


def _distance(p, a, b):
    """From a point to a side."""
    (px, py), (ax, ay), (bx, by) = p, a, b
    length = (bx - ax) ** 2 + (by - ay) ** 2
    along = max(0.0, min(1.0, ((px - ax) * (bx - ax) + (py - ay) * (by - ay)) / length))
    return math.hypot(px - ax - along * (bx - ax), py - ay - along * (by - ay))


def _crosses(x, y, a, b):
    """Whether a ray to the right meets the side."""
    (ax, ay), (bx, by) = a, b
    return (ay > y) != (by > y) and x < ax + (y - ay) * (bx - ax) / (by - ay)


def witnesses(a, b, low=-1, high=7):
    """Classify points in the middle of every unit cell, and near its corners, for two shapes: whether a
    point is clearly in both, only in ``a``, only in ``b``."""
    both = only_a = only_b = False
    axes = max(map(_dimensions, (a, b)))
    grid = [cell + at for cell in range(low, high) for at in (0.0625, 0.5, 0.9375)]
    for point in product(grid, repeat=axes):
        in_a, in_b = depth(a, point), depth(b, point)
        both |= in_a > MARGIN and in_b > MARGIN
        only_a |= in_a > MARGIN and in_b < -MARGIN
        only_b |= in_b > MARGIN and in_a < -MARGIN
    return both, only_a, only_b


def _dimensions(shape):
    match shape:
        case Rectangle(low, _):
            return len(low)
        case Circle(centre, _):
            return len(centre)
        case Polygon():
            return 2
