"""Operators of states: machines of single readings, and machines with minimum durations.

`plan_toggle.py` and `plan_duration.py` make them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...engine.operator import Operator
from ...model.topic import Topic
from . import plan_duration, plan_toggle
from .condition import AnyState, split


def operators(conditions: Iterable[AnyState], _topics: Sequence[Topic] = ()) -> list[Operator]:
    """As few operators as possible."""
    toggles, durations = split(conditions)
    return [*plan_toggle.operators(toggles), *plan_duration.operators(durations)]
