"""The interest of a subscriber: a topic or type, and constraints on the content.  [D4, D6]"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, get_args

import msgspec

from ....errors import UsageError
from ....model.event import Value
from .level import Level
from .topic import DdsTopic, TopicSet

Comparison = Literal["=", "<", ">", "<=", ">="]
COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


class FieldConstraint(msgspec.Struct, frozen=True, array_like=True):
    """A comparison of a field with a value. A missing value satisfies no comparison. [D6]"""

    field: str
    comparison: Comparison
    value: float | int | str | bool

    def is_satisfied_by(self, values: Mapping[str, Value]) -> bool:
        """Whether the values of a sample satisfy the comparison."""
        found = values.get(self.field)
        if found is None or isinstance(found, str) != isinstance(self.value, str):
            return False
        return COMPARE[self.comparison](found, self.value)


def satisfies_all(where: Iterable[FieldConstraint], values: Mapping[str, Value]) -> bool:
    """Whether a sample satisfies all constraints."""
    return all(constraint.is_satisfied_by(values) for constraint in where)


class Interest(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription of an application: to a topic with its descendants, or to a type."""

    topic: str | None = None
    type: str | None = None
    where: tuple[FieldConstraint, ...] = ()
    condition: str | None = None
    """A condition that the publisher's node evaluates. Its starts and ends are delivered in place of
    samples.
    """
    level: Level | None = None
    """The reliability level; ``None`` for the level of the topic. [D8]"""

    def matching_topics(self, topics: TopicSet) -> list[DdsTopic]:
        """Return the topics of the interest, each of which needs a reader. [D7]"""
        if (self.topic is None) == (self.type is None):
            raise UsageError("an interest names a topic or a type, one of the two")
        found = topics.descendants(self.topic) if self.topic is not None else topics.of_type(str(self.type))
        for constraint in self.where:
            if constraint.comparison not in get_args(Comparison):
                raise UsageError(f"'{constraint.comparison}' compares nothing; there is {', '.join(COMPARE)}")
            for topic in found:
                topic.kind(constraint.field)
        return found
