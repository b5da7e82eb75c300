"""The types of expressions: quantities, texts and predicates, and in components times and places.

``types`` determines them. The field ``core`` of a type has the expression in the core.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..model.topic import Topic
from ..model.unit import NONE, Unit
from .ops import Call, Expression, Number

ONE = Unit("1", NONE)
"""The unit of a ratio."""


@dataclass(frozen=True, slots=True)
class TypedQuantity:
    """The type of a number.

    ``bare``: a literal that takes the unit of the value that it is combined with. ``whole``: an int, or a
    sum, difference or product of ints. ``difference``: the distance of two quantities, which is converted by
    scale alone (3.6 °F are 2 K).
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
    """The type of a text, with its expression in the core."""

    core: Expression


@dataclass(frozen=True, slots=True)
class Predicate:
    """The type of a predicate, with its expression in the core."""

    core: Expression


@dataclass(frozen=True, slots=True)
class TypedTime:
    """The type of a time in microseconds, with its expression in the core."""

    core: Expression


@dataclass(frozen=True, slots=True)
class Position:
    """The type of a location: a point, or the name of a place."""

    core: Expression


@dataclass(frozen=True, slots=True)
class Offset:
    """The type of the offset of one location from another. ``|…|`` is its length in metres."""

    core: Expression


Typed = TypedQuantity | Words | Predicate | TypedTime | Position | Offset
Parameters = Mapping[str, Typed]

CALLED = {
    TypedQuantity: "a number", Words: "a text", Predicate: "a condition",
    TypedTime: "a time", Position: "a location", Offset: "a way",
}  # fmt: skip
"""Names of types in messages."""

Members = Mapping[str, Typed | str]
"""The members of a component's query by name; a text is the reason why a member cannot be used."""


@dataclass(frozen=True, slots=True)
class NameScope:
    """The names that an expression may use.

    These are attributes of a topic, parameters, members of queries in a component, and measures in a
    relationship.
    """

    topic: Topic | None
    parameters: Parameters
    members: Mapping[str, Members] = field(default_factory=dict)
    measured: Callable[[Call], Typed] | None = None
