"""What a subscriber wants: a topic, a type, and constraints on the content.  [D4, D6]"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args

import msgspec

from ...errors import UsageError
from ...model.event import Value
from .level import Level
from .topic import Topic, Topics

Comparison = Literal["=", "<", ">", "<=", ">="]
COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


class Constraint(msgspec.Struct, frozen=True, array_like=True):
    """A field, compared with a value; a missing value satisfies none.  [D6]"""

    field: str
    comparison: Comparison
    value: float | int | str | bool

    def holds(self, values: Mapping[str, Value]) -> bool:
        found = values.get(self.field)
        if found is None or isinstance(found, str) != isinstance(self.value, str):
            return False
        return COMPARE[self.comparison](found, self.value)


def holds(where: Iterable[Constraint], values: Mapping[str, Value]) -> bool:
    """Whether a sample satisfies all constraints."""
    return all(constraint.holds(values) for constraint in where)


class Interest(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription as an application writes it: of a topic (and those below it), or of a type."""

    topic: str | None = None
    type: str | None = None
    where: tuple[Constraint, ...] = ()
    condition: str | None = None
    """Not the samples, but the starts and ends of this condition, found on the publisher's node."""
    level: Level | None = None
    """None: as the topic has it.  [D8]"""

    def concerned(self, topics: Topics) -> list[Topic]:
        """The topics that readers are needed for, one each.  [D7]"""
        if (self.topic is None) == (self.type is None):
            raise UsageError("an interest names a topic or a type, one of the two")
        found = topics.below(self.topic) if self.topic is not None else topics.of_type(str(self.type))
        for constraint in self.where:
            if constraint.comparison not in get_args(Comparison):
                raise UsageError(f"'{constraint.comparison}' compares nothing; there is {', '.join(COMPARE)}")
            for topic in found:
                topic.kind(constraint.field)
        return found
