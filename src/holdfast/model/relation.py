"""Relationships between publishers: a measure of their latest readings, and when it starts and ends to hold.

A *tie* is one relationship: its members, and the name of its scope.  Its measure is a number, known once
every member has been heard; a fix that is good to some metres makes it a range of numbers, and only what is
certain counts.  [B53–B72]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, overload

from .instant import Duration
from .scope import listed

Strategy = Literal["range_ring", "parallel_line", "centre_of_mass", "counting", "hierarchy"]
"""How an overlay watches a relationship by itself."""


@dataclass(frozen=True, slots=True)
class Setting:
    """How a strategy watches: a number, of all or of one.  ``volatility`` is how much one moves beside the
    others, ``enlarged`` how much larger a ring is that keeps its leading edge.  [B55, B67]"""

    word: str
    value: float
    of: str | None = None
    """What one of a pair is called, or its source."""
    is_source: bool = False


@dataclass(frozen=True, slots=True)
class Interval:
    """The numbers from ``low`` to ``high``, both included; a strict bound is the next number."""

    low: float = -math.inf
    high: float = math.inf

    def holds(self, value: float, error: float = 0.0) -> bool:
        """Whether a number lies in it for certain."""
        return self.low <= value - error and value + error <= self.high


@dataclass(frozen=True, slots=True)
class Test:
    """A measure lies in ``within``, and has done so for ``hold``."""

    within: Interval
    hold: Duration = 0


@dataclass(frozen=True, slots=True)
class Member:
    """Whose reading is looked at, and what of it: an attribute, or where it is."""

    topic: str
    source: str
    attribute: str | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """``scale * x``, or ``scale / x``, of an attribute of a member.  [B61]"""

    member: Member
    scale: float = 1.0
    reciprocal: bool = False

    def of(self, x: float) -> float:
        """Its value; divided by zero, there is none."""
        if not self.reciprocal:
            return self.scale * x
        return self.scale / x if x else math.nan


@dataclass(frozen=True, slots=True)
class Tie:
    """Members whose relationship is watched; ``terms`` where it is a sum, one list for each alternative;
    of a pair, the two sources."""

    scope: str | None
    members: tuple[Member, ...]
    terms: tuple[tuple[Term, ...], ...] = ()
    pair: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pairs(Sequence[Tie]):
    """The ties of pairs of sources of two topics: a million of them are two lists of names."""

    topics: tuple[str, str]
    first: tuple[str, ...]
    second: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.first)

    @overload
    def __getitem__(self, at: int) -> Tie: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Tie, ...]: ...
    def __getitem__(self, at: int | slice) -> Tie | tuple[Tie, ...]:
        if isinstance(at, slice):
            return tuple(self[i] for i in range(*at.indices(len(self))))
        a, b = self.first[at], self.second[at]
        (topic, other) = self.topics
        return Tie(listed((a, b)), (Member(topic, a), Member(other, b)), pair=(a, b))


Kind = Literal["distance", "spread", "radius", "total", "best"]
"""How far two are apart; how far the farthest of a group is from their centre; how far around one of a group
so many of it are; a sum of values; which of several sums is least."""
LENGTHS = ("distance", "spread", "radius")
"""What is told under its own name, in metres."""


@dataclass(frozen=True)
class Relation:
    """``ties`` are all that are watched; without them each source of the two ``roaming`` topics with each
    other.  ``accuracy`` is the attribute that says how good a fix is.  Of ``best`` another alternative is
    told when it is ``by`` less than the present one.  Of a ``radius``, ``quorum`` members must be in it, and
    it is ``around`` one source, or around whomever it is least."""

    kind: Kind
    enter: Test
    exit: Test
    ties: tuple[Tie, ...] | Pairs | None = None
    roaming: tuple[str, str] | None = None
    names: tuple[str, ...] = ()
    """Of pairs what the two are called; of the best one, the alternatives."""
    accuracy: str | None = None
    by: float = 0.0
    quorum: int = 0
    around: str | None = None

    @property
    def measure(self) -> str:
        """The attribute under which the measure is told."""
        return self.kind if self.kind in LENGTHS else "value"


Point = tuple[float, ...]


def whole(point: Point) -> Point:
    """A point in space: a coordinate that it lacks is 0."""
    return (*point, 0.0, 0.0)[:3]


def apart(a: Point, b: Point) -> float:
    """How far two points are apart, to the last bit as the kernel has it."""
    x, y, z = (p - q for p, q in zip(whole(a), whole(b), strict=True))
    return math.sqrt(x * x + y * y + z * z)


def spread(points: Sequence[Point]) -> float:
    """How far the farthest is from the centre of all."""
    middle = centre(points)
    return max(apart(point, middle) for point in points)


def radius(points: Sequence[Point], quorum: int, around: int | None = None) -> float:
    """How far around one point so many of all are, itself among them; of any point, the least.

    >>> radius([(0.0,), (3.0,), (4.0,), (9.0,)], 3)
    3.0
    """
    middles = points if around is None else [points[around]]
    return min(sorted(apart(middle, point) for point in points)[quorum - 1] for middle in middles)


def centre(points: Sequence[Point]) -> Point:
    """The middle of points."""
    axes = zip(*map(whole, points), strict=True)
    return tuple(sum(axis) / len(points) for axis in axes)


def slow(nominal: float) -> float:
    """From how many minutes on a route of so many is slow.  [B72]

    >>> slow(16)
    20.0
    """
    return nominal + math.log2(nominal)
