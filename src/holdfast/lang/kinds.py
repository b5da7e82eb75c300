"""The types that expressions have: quantities, texts, conditions, and of components times and places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..model.topic import Topic
from ..model.unit import NONE, Unit
from .ops import Call, Expression, Number

ONE = Unit("1", NONE)
"""The unit of a ratio."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number.  ``bare``: a literal that takes the unit of what it meets.

    ``whole``: an int, or a sum, difference or product of ints.  ``difference``: the distance of two
    quantities; it is converted by scale alone (3.6 °F are 2 K).
    """

    core: Expression
    unit: Unit | None = None
    bare: bool = False
    whole: bool = False
    difference: bool = False

    @property
    def constant(self) -> bool:
        return isinstance(self.core, Number)


@dataclass(frozen=True, slots=True)
class Words:
    """A text."""

    core: Expression


@dataclass(frozen=True, slots=True)
class Predicate:
    """Something that holds or not."""

    core: Expression


@dataclass(frozen=True, slots=True)
class Moment:
    """A time, in microseconds."""

    core: Expression


@dataclass(frozen=True, slots=True)
class Position:
    """A location: a point, or the name of a place."""

    core: Expression


@dataclass(frozen=True, slots=True)
class Offset:
    """The way from one location to another; ``|…|`` is its length."""

    core: Expression


Typed = Quantity | Words | Predicate | Moment | Position | Offset
Parameters = Mapping[str, Typed]

CALLED = {
    Quantity: "a number", Words: "a text", Predicate: "a condition",
    Moment: "a time", Position: "a location", Offset: "a way",
}  # fmt: skip
"""What messages call a type."""

Members = Mapping[str, Typed | str]
"""What a query of a component shows, by name; a text says why something cannot be used."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that an expression may use: attributes of a topic (if any), parameters, in a component
    what its queries show, and in a relationship what is measured."""

    topic: Topic | None
    parameters: Parameters
    members: Mapping[str, Members] = field(default_factory=dict)
    measured: Callable[[Call], Typed] | None = None
