"""Operators of states. `plan_toggle.py` makes those of plain states, `plan_duration.py` those with minimum
durations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...engine.operator import Operator
from ...model.topic import Topic
from . import plan_duration, plan_toggle
from .condition import AnyState, split


def operators(conditions: Iterable[AnyState], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """Return as few operators as possible for states."""
    toggles, durations = split(conditions)
    return [*plan_toggle.operators(toggles), *plan_duration.operators(durations)]
