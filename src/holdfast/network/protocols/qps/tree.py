"""The tree of scopes over a square, and the address of each logical broker. [F28, F29]

Every node can compute the tree and all addresses from the square, the number of levels and the topic's name.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ....errors import UsageError
from ....model.space import Point
from .area import NOTHING, Area, box, contains_point, intersection, is_within

MOST_LEVELS = 10
"""The greatest number of levels: a quarter of a million leaves. The hash has 16,384 positions on each axis of
a scope.
"""
AXIS = 14
"""The number of bits of the hash for each axis."""
CLOCKWISE = ((0, 0), (0, 1), (1, 1), (1, 0))
"""The quadrants of a scope, clockwise from the quadrant with the least coordinates. [notation c_i(u)]"""


class QuadScope(NamedTuple):
    """A square of the tree: its level (1 is the root), and its column and row in that level."""

    level: int
    column: int
    row: int

    def __str__(self) -> str:
        return f"{self.level}:{self.column},{self.row}"


ROOT = QuadScope(1, 0, 0)


@dataclass(frozen=True)
class ScopeTree:
    """A square of space, divided repeatedly into four quadrants."""

    low: Point
    """The corner with the least coordinates."""
    side: float
    levels: int

    def __post_init__(self) -> None:
        if len(self.low) != 2 or not all(map(math.isfinite, self.low)):
            raise UsageError(f"space is a square in the plane; its low corner is {self.low}")
        if not 0 < self.side < math.inf:
            raise UsageError(f"the side of the square is {self.side}; it must be above 0")
        if not 1 <= self.levels <= MOST_LEVELS:
            raise UsageError(
                f"a tree of {self.levels} levels; it has 1 to {MOST_LEVELS}: the lowest scopes should be "
                "about as wide as a radio reaches"
            )

    @property
    def area(self) -> Area:
        """The whole space as an area."""
        return self.cell(ROOT)

    def scopes(self) -> Iterator[QuadScope]:
        """Yield every scope, (4^N − 1) / 3 of them, level by level."""
        for level in range(1, self.levels + 1):
            across = 1 << (level - 1)
            for column in range(across):
                for row in range(across):
                    yield QuadScope(level, column, row)

    def is_leaf(self, scope: QuadScope) -> bool:
        """Whether a scope is on the lowest level."""
        return scope.level == self.levels

    def children(self, scope: QuadScope) -> tuple[QuadScope, ...]:
        """Return the four quadrants of a scope, clockwise from the least; none for a leaf."""
        if self.is_leaf(scope):
            return ()
        level, column, row = scope
        return tuple(QuadScope(level + 1, 2 * column + right, 2 * row + up) for right, up in CLOCKWISE)

    def corners(self, scope: QuadScope) -> tuple[Point, Point]:
        """Return the corners with the least and the greatest coordinates."""
        across = 1 << (scope.level - 1)
        at = (self._line(scope.column, across, 0), self._line(scope.row, across, 1))
        to = (self._line(scope.column + 1, across, 0), self._line(scope.row + 1, across, 1))
        return at, to

    def _line(self, number: int, across: int, axis: int) -> float:
        return self.low[axis] + self.side * number / across

    def cell(self, scope: QuadScope) -> Area:
        """Return a scope as an area."""
        return _cell(self, scope)

    def inside(self, point: Point) -> Point:
        """Return a point of space, moved inwards from the upper sides. Raise a `UsageError` if it is
        outside.
        """
        top = [corner + self.side for corner in self.low]
        if len(point) < 2 or not all(a <= p <= b for a, p, b in zip(self.low, point, top, strict=False)):
            raise UsageError(f"{point} is outside of space, {self.low} to {tuple(top)}")
        x, y = (p if p < b else math.nextafter(b, -math.inf) for p, b in zip(point, top, strict=False))
        return (x, y)

    def leaf(self, point: Point) -> QuadScope:
        """Return the leaf that contains a point."""
        place, scope = self.inside(point), ROOT
        while below := self.children(scope):
            scope = next(child for child in below if contains_point(self.cell(child), place))
        return scope

    def leaves(self, area: Area, below: QuadScope = ROOT) -> Iterator[QuadScope]:
        """Yield the leaves below a scope that an area reaches."""
        if intersection(area, self.cell(below)) == NOTHING:
            return
        if self.is_leaf(below):
            yield below
        for child in self.children(below):
            yield from self.leaves(area, child)

    def enclosing(self, area: Area) -> list[QuadScope]:
        """Return the scopes that contain an area, from the largest to the smallest."""
        found: list[QuadScope] = []
        scope: QuadScope | None = ROOT
        while scope is not None:
            found.append(scope)
            scope = next((c for c in self.children(scope) if is_within(area, self.cell(c))), None)
        return found

    def address(self, topic: str, scope: QuadScope) -> Point:
        """Return ``l(u) = hash_t(s(u))``: the point of the logical broker of a topic and scope, which lies in
        the scope.
        """
        return _address(self, topic, scope)

    def nearest(self, topic: str, area: Area, here: Point) -> QuadScope:
        """Return the nearest broker whose scope contains an area. Of equal distances, the larger scope is
        chosen.
        """
        return min(self.enclosing(area), key=lambda scope: math.dist(here, self.address(topic, scope)))


@lru_cache(1 << 14)
def _cell(tree: ScopeTree, scope: QuadScope) -> Area:
    return box(*tree.corners(scope))


@lru_cache(1 << 14)
def _address(tree: ScopeTree, topic: str, scope: QuadScope) -> Point:
    x, y = shares(f"{topic}{3 * f'{scope.level}{scope.column}{scope.row}'}")
    (left, low), (right, high) = tree.corners(scope)
    return (left + (right - left) * x, low + (high - low) * y)


def shares(text: str) -> tuple[float, float]:
    """Return a position in the unit square from the hash of a text: odd bits for one axis, even bits for the
    other.

    ELF moves a letter by four bits only. Of a text of seven or more letters, the first letters decide the
    upper bits and the last ones the lower bits. So a scope is written three times, and each axis gets bits of
    both.
    """
    number = elf(text)
    bits = [sum((number >> (2 * i + first) & 1) << i for i in range(AXIS)) for first in (1, 0)]
    return (bits[0] + 0.5) / (1 << AXIS), (bits[1] + 0.5) / (1 << AXIS)


def elf(text: str) -> int:
    """Return the hash of System V's object files, with 28 bits.

    >>> elf("printf")
    125371814
    """
    found = 0
    for byte in text.encode():
        found = (found << 4) + byte
        high = found & 0xF0000000
        found = (found ^ high >> 24) & ~high
    return found
