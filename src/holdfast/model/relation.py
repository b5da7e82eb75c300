"""Relationships between publishers: a measure of their latest readings, and tests that start and end them.

A *tie* is one relationship: its members, and the name of its scope. Its measure is known once every member
has published. A position with a limited accuracy makes the measure a range of numbers, and a test must be
certain for all of them. [B53–B72]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, overload

from .instant import Duration
from .scope import join_values

Strategy = Literal["range_ring", "parallel_line", "centre_of_mass", "counting", "hierarchy"]
"""How an overlay watches a relationship without a broker."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A number that configures a strategy, for all members or one of them.

    ``volatility`` is how much a member moves compared with the others. ``enlarged`` is how much larger a ring
    is that keeps its leading edge. [B55, B67]
    """

    word: str
    value: float
    of: str | None = None
    """The name of one member of a pair, or its source."""
    is_source: bool = False


@dataclass(frozen=True, slots=True)
class ReadingRange:
    """The numbers from ``low`` to ``high``, both included.

    A strict bound is stored as the next representable number.
    """

    low: float = -math.inf
    high: float = math.inf

    def holds(self, value: float, error: float = 0.0) -> bool:
        """Whether a number with an error of at most ``error`` is certainly in the range."""
        return self.low <= value - error and value + error <= self.high


@dataclass(frozen=True, slots=True)
class Test:
    """A test of a measure: it is in the range ``within``, and has been for ``hold`` microseconds."""

    within: ReadingRange
    hold: Duration = 0


@dataclass(frozen=True, slots=True)
class Participant:
    """A member of a relationship: its topic and source, and the attribute or position that is measured."""

    topic: str
    source: str
    attribute: str | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """A term of a sum: ``scale * x``, or ``scale / x``, for an attribute of a member. [B61]"""

    member: Participant
    scale: float = 1.0
    reciprocal: bool = False

    def of(self, x: float) -> float:
        """Return the value of the term for ``x``; NaN for a division by zero."""
        if not self.reciprocal:
            return self.scale * x
        return self.scale / x if x else math.nan


@dataclass(frozen=True, slots=True)
class Tie:
    """The members of one relationship.

    ``terms`` has one list for each alternative of a sum. ``pair`` has the two sources of a pair.
    """

    scope: str | None
    members: tuple[Participant, ...]
    terms: tuple[tuple[Term, ...], ...] = ()
    pair: tuple[str, ...] = ()


@dataclass(frozen=True)
class Pairs(Sequence[Tie]):
    """The ties of all pairs of sources of two topics.

    They are computed on access, so a million ties need two lists of names.
    """

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
        return Tie(join_values((a, b)), (Participant(topic, a), Participant(other, b)), pair=(a, b))


Kind = Literal["distance", "spread", "radius", "total", "best"]
"""What is measured: the distance of two members; the largest distance of a group from its centre; the
radius around a member that contains a number of them; a sum of values; or which of several sums is the
smallest."""
LENGTHS = ("distance", "spread", "radius")
"""Kinds whose measure is a length in metres, reported under the name of the kind."""


@dataclass(frozen=True)
class Relation:
    """A relationship to watch, compiled from a definition.

    ``ties`` are all ties. If it is ``None``, they are each source of the first ``roaming`` topic with each
    source of the second. ``accuracy`` is the attribute with the error of a position. For ``best``, the choice
    changes when an alternative is less by at least ``by``. For ``radius``, ``quorum`` members must be inside,
    ``around`` one source or around the member for which the radius is smallest.
    """

    kind: Kind
    enter: Test
    exit: Test
    ties: tuple[Tie, ...] | Pairs | None = None
    roaming: tuple[str, str] | None = None
    names: tuple[str, ...] = ()
    """The names of the two members of a pair, or of the alternatives."""
    accuracy: str | None = None
    by: float = 0.0
    quorum: int = 0
    around: str | None = None

    @property
    def measure(self) -> str:
        """The attribute of notifications that contains the measure."""
        return self.kind if self.kind in LENGTHS else "value"


Point = tuple[float, ...]


def whole(point: Point) -> Point:
    """Return a point with three coordinates. Missing coordinates are 0."""
    return (*point, 0.0, 0.0)[:3]


def apart(a: Point, b: Point) -> float:
    """Return the distance of two points. It is equal to the kernel's result to the last bit."""
    x, y, z = (p - q for p, q in zip(whole(a), whole(b), strict=True))
    return math.sqrt(x * x + y * y + z * z)


def spread(points: Sequence[Point]) -> float:
    """Return the largest distance of a point from the centre of all points."""
    middle = centre(points)
    return max(apart(point, middle) for point in points)


def radius(points: Sequence[Point], quorum: int, around: int | None = None) -> float:
    """Return the radius around one point that contains ``quorum`` points including itself.

    Without ``around`` it is the smallest such radius around any of the points.

    >>> radius([(0.0,), (3.0,), (4.0,), (9.0,)], 3)
    3.0
    """
    middles = points if around is None else [points[around]]
    return min(sorted(apart(middle, point) for point in points)[quorum - 1] for middle in middles)


def centre(points: Sequence[Point]) -> Point:
    """Return the mean of points, with three coordinates."""
    axes = zip(*map(whole, points), strict=True)
    return tuple(sum(axis) / len(points) for axis in axes)


def slow(nominal: float) -> float:
    """Return the duration in minutes from which a route of ``nominal`` minutes counts as slow. [B72]

    >>> slow(16)
    20.0
    """
    return nominal + math.log2(nominal)
