"""Query expressions: what a component looks at, dimension by dimension.  [F58]

A query has one parameter for each dimension of the information space: topic, time, location and
status.  An index is absolute, or relative (``x^r``) to the time of the information space and to
where its host is [F57].  Times are microseconds, locations points or names of places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from .space import Point

Dimension = Literal["topic", "time", "location", "status"]
Function = Literal["max", "min", "sum", "avg", "count", "stddev"]
How = Literal["one", "all", "any", "separate"]

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
FUNCTIONS: tuple[Function, ...] = get_args(Function)
HOWS: tuple[How, ...] = get_args(How)

MOST_TICKS = 10_000
"""So many ticks after the latest reading that its queries may look at, a component has no more."""


@dataclass(frozen=True, slots=True)
class Index:
    """A value of a dimension: microseconds, a point, or a name; relative if it is written ``x^r``."""

    value: int | Point | str
    relative: bool = False


NOW = Index(0, relative=True)
HERE = Index((), relative=True)
"""``0^r`` of time and of location; a point of no coordinates is the origin of any space."""

# --- groups: which values of a dimension -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Whole:
    """The whole domain, ``D_T``, ``D_L``, ``D_S``."""


@dataclass(frozen=True, slots=True)
class Placeless(Whole):
    """What of it is at no point, but at a named place or nowhere; one of the pieces of a whole."""


@dataclass(frozen=True, slots=True)
class Range:
    """From low to high, both included; of points, the box between them."""

    low: Index
    high: Index


@dataclass(frozen=True, slots=True)
class Ball:
    """Every location within a distance of a point, the boundary included."""

    centre: Index
    radius: float


@dataclass(frozen=True, slots=True)
class Members:
    """These values, one by one."""

    values: tuple[Index, ...]


Group = Whole | Range | Ball | Members
WHOLE = Whole()

# --- parameters: what becomes of a dimension ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Closest:
    """The nearest to an index; of topics and statuses the one that equals it.  [F59]"""

    index: Index


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One for all of a group.  ``functions`` is one for every attribute, or one for each.  [F60]"""

    functions: Function | tuple[tuple[str, Function], ...]
    group: Group = WHOLE


@dataclass(frozen=True, slots=True)
class Multiple:
    """Each of a group by itself, and how many of them must satisfy the predicate.  [F61]"""

    how: How
    group: Group = WHOLE


@dataclass(frozen=True, slots=True)
class Pool:
    """Beyond the thesis, for locations and statuses: what happens in a group counts alike, wherever in
    it; of statuses, the latest event of a place is one, whether it is a start or an end."""

    group: Group = WHOLE


Parameter = Closest | Aggregate | Multiple | Pool


@dataclass(frozen=True, slots=True)
class Query:
    """By default the latest of a topic, wherever it comes from, whatever its status.

    ``each`` names further attributes of which every value is a condition of its own; the thesis
    has only ``separate`` for the four dimensions.
    """

    topic: Closest | Aggregate | Multiple
    time: Closest | Aggregate | Multiple = Closest(NOW)
    location: Parameter = Pool()
    status: Parameter = Multiple("any")
    each: tuple[str, ...] = ()

    def parameters(self) -> Iterator[tuple[Dimension, Parameter]]:
        """The four parameters, in the order of the thesis' tables."""
        yield "topic", self.topic
        yield "time", self.time
        yield "location", self.location
        yield "status", self.status

    @property
    def separate(self) -> tuple[str, ...]:
        """What every value of is a condition of its own: dimensions first, then attributes."""
        own = (d for d, p in self.parameters() if isinstance(p, Multiple) and p.how == "separate")
        return (*own, *self.each)

    @property
    def topics(self) -> tuple[str, ...]:
        """The topics that the query looks at."""
        match self.topic:
            case Closest(Index(str(name))):
                return (name,)
            case Aggregate(_, Members(values)) | Multiple(_, Members(values)):
                return tuple(str(index.value) for index in values)
        raise AssertionError(f"not a choice of topics: {self.topic}")

    @property
    def is_relative(self) -> bool:
        """Whether it depends on where the host is."""
        return any(index.relative for index in indices(self.location))


def indices(parameter: Parameter) -> tuple[Index, ...]:
    """The indices that a parameter names."""
    if isinstance(parameter, Closest):
        return (parameter.index,)
    match parameter.group:
        case Whole():
            return ()
        case Range(low, high):
            return (low, high)
        case Ball(centre):
            return (centre,)
        case Members(values):
            return values
