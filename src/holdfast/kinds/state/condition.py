"""Checked states and filters: plain ones, and those with minimum durations or no-data predicates.

The two classes have different machines: `toggle.py` and `duration/machine.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from ...lang.condition import ScopedCondition
from ...lang.ops import Expression, Levels, Truth
from ...model.guard import Care
from ...model.qos import Delivery
from ...model.space import Forest
from ...model.table import Table
from ...model.topic import Topic

KIND = "state"


@dataclass(frozen=True)
class StateCondition(ScopedCondition):
    """A checked state or filter without minimum durations: single readings start and end it."""

    kind: ClassVar[str] = KIND
    name: str
    topic: Topic
    enter: Expression
    exit: Expression
    keys: Levels
    forest: Forest | None
    delivery: Delivery
    tables: tuple[Table, ...] = ()

    @property
    def momentary(self) -> bool:
        """Whether the condition is ``[F; true]``, which passes every match and never sets the bit. [S3]"""
        return self.exit == Truth(True)

    @property
    def api_kind(self) -> str:
        return "filter" if self.momentary else "filters"

    @property
    def emits_by_time(self) -> bool:
        return False

    @property
    def summary(self) -> str:
        return f"{'filter' if self.momentary else 'state'} {self.name} on {self.topic.name}"


@dataclass(frozen=True)
class DurationCondition(ScopedCondition):
    """A checked state with minimum durations, no-data predicates or an initial value. Its scopes have one
    level.

    Its predicates may contain ``Silent``, directly or in a ``Not``. ``roster`` has the key values of every
    expected scope.
    """

    kind: ClassVar[str] = KIND
    name: str
    topic: Topic
    enter: Expression
    exit: Expression
    keys: Levels
    forest: Forest | None
    delivery: Delivery
    care: Care
    roster: tuple[tuple[str, ...], ...] = ()
    tables: tuple[Table, ...] = ()

    @property
    def api_kind(self) -> str:
        return "guarded"

    @property
    def summary(self) -> str:
        return f"state {self.name} on {self.topic.name}"


AnyState = StateCondition | DurationCondition


def split(conditions: Iterable[AnyState]) -> tuple[list[StateCondition], list[DurationCondition]]:
    """Return the plain states among conditions, and the states with minimum durations."""
    found = list(conditions)
    durations = [condition for condition in found if isinstance(condition, DurationCondition)]
    return [condition for condition in found if isinstance(condition, StateCondition)], durations
