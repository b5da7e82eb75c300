"""Query expressions: the events that a component selects, dimension by dimension. [F58]

A query has one parameter for each dimension of the information space: topic, time, location and status. An
index is absolute, or relative (``x^r``) to the time of the information space and the location of its host
[F57]. Times are microseconds; locations are points or names of places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from .space import Point

Dimension = Literal["topic", "time", "location", "status"]
Function = str
"""The name of an aggregate function (`kernels.functions.AGGREGATES`)."""
How = Literal["one", "all", "any", "separate"]

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
HOWS: tuple[How, ...] = get_args(How)

MOST_TICKS = 10_000
"""How many ticks after the latest reading that its queries can reach a component runs at most."""


@dataclass(frozen=True, slots=True)
class Index:
    """A value of a dimension: microseconds, a point, or a name. The notation of a relative one is ``x^r``."""

    value: int | Point | str
    relative: bool = False


NOW = Index(0, relative=True)
HERE = Index((), relative=True)
"""``0^r`` of time and of location. A point without coordinates is the origin of any space."""

# --- groups: which values of a dimension -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Whole:
    """The group of all values of a dimension: ``D_T``, ``D_L``, ``D_S``."""


@dataclass(frozen=True, slots=True)
class Placeless(Whole):
    """The part of a whole dimension that is at no point, but at a named place or without location."""


@dataclass(frozen=True, slots=True)
class QueryRange:
    """The group of all values from low to high, both included. For points, it is the box between them."""

    low: Index
    high: Index


@dataclass(frozen=True, slots=True)
class Ball:
    """The group of all locations within a distance of a point, including the boundary."""

    centre: Index
    radius: float


@dataclass(frozen=True, slots=True)
class MemberSet:
    """A group that consists of the listed values."""

    values: tuple[Index, ...]


Group = Whole | QueryRange | Ball | MemberSet
WHOLE = Whole()

# --- parameters: what becomes of a dimension ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Closest:
    """A parameter: the value nearest to an index. For topics and statuses it is the equal one. [F59]"""

    index: Index


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A parameter: one value for a group.

    ``functions`` has one function for all attributes, or one for each. [F60]
    """

    functions: Function | tuple[tuple[str, Function], ...]
    group: Group = WHOLE


@dataclass(frozen=True, slots=True)
class Multiple:
    """A parameter: each member of a group by itself. [F61]

    ``how`` is how many of them must satisfy the predicate.
    """

    how: How
    group: Group = WHOLE


@dataclass(frozen=True, slots=True)
class PooledDimension:
    """A parameter that treats all events of a group alike, wherever in the group they occur.

    It extends the thesis for locations and statuses. For statuses, the latest event of a place counts,
    whether it is a start or an end.
    """

    group: Group = WHOLE


Parameter = Closest | Aggregate | Multiple | PooledDimension


@dataclass(frozen=True, slots=True)
class Query:
    """The four parameters of a query.

    The default is the latest event of a topic, at any location and with any status. Every value of the
    attributes in ``each`` is a condition of its own; the thesis has ``separate`` for the four dimensions
    only.
    """

    topic: Closest | Aggregate | Multiple
    time: Closest | Aggregate | Multiple = Closest(NOW)
    location: Parameter = PooledDimension()
    status: Parameter = Multiple("any")
    each: tuple[str, ...] = ()

    def parameters(self) -> Iterator[tuple[Dimension, Parameter]]:
        """Yield each dimension with its parameter, in the order of the thesis' tables."""
        yield "topic", self.topic
        yield "time", self.time
        yield "location", self.location
        yield "status", self.status

    @property
    def separate(self) -> tuple[str, ...]:
        """The dimensions, then the attributes, of which every value is a condition of its own."""
        own = (d for d, p in self.parameters() if isinstance(p, Multiple) and p.how == "separate")
        return (*own, *self.each)

    @property
    def topics(self) -> tuple[str, ...]:
        """The names of the topics that the query reads."""
        match self.topic:
            case Closest(Index(str(name))):
                return (name,)
            case Aggregate(_, MemberSet(values)) | Multiple(_, MemberSet(values)):
                return tuple(str(index.value) for index in values)
        raise AssertionError(f"not a choice of topics: {self.topic}")

    @property
    def is_relative(self) -> bool:
        """Whether the query depends on the location of its host."""
        return any(index.relative for index in indices(self.location))


def indices(parameter: Parameter) -> tuple[Index, ...]:
    """Return the indices that a parameter contains."""
    if isinstance(parameter, Closest):
        return (parameter.index,)
    match parameter.group:
        case Whole():
            return ()
        case QueryRange(low, high):
            return (low, high)
        case Ball(centre):
            return (centre,)
        case MemberSet(values):
            return values
