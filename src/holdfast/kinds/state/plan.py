"""Operators of states: machines of single readings, and machines with minimum durations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...engine.operator import Operator
from ...model.topic import Topic
from . import plan_duration, plan_toggle
from .condition import DurationCondition, StateCondition


def operators(
    conditions: Iterable[StateCondition | DurationCondition], _topics: Sequence[Topic] = ()
) -> list[Operator]:
    """As few operators as possible."""
    found = list(conditions)
    return [
        *plan_toggle.operators(condition for condition in found if isinstance(condition, StateCondition)),
        *plan_duration.operators(
            condition for condition in found if isinstance(condition, DurationCondition)
        ),
    ]


def meaning(condition: StateCondition | DurationCondition) -> str:
    """A digest that is equal for states with equal meaning, whatever their names."""
    if isinstance(condition, StateCondition):
        return plan_toggle.meaning(condition)
    return plan_duration.meaning(condition)
