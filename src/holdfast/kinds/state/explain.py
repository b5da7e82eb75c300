"""The plan of states in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import explain_duration, explain_toggle
from .condition import DurationCondition, StateCondition

Conditions = Sequence[StateCondition | DurationCondition]


def _apart(conditions: Conditions) -> tuple[list[StateCondition], list[DurationCondition]]:
    toggles = [condition for condition in conditions if isinstance(condition, StateCondition)]
    return toggles, [condition for condition in conditions if isinstance(condition, DurationCondition)]


def explain(conditions: Conditions) -> Iterator[str]:
    """Explain every machine that states need."""
    toggles, durations = _apart(conditions)
    yield from explain_toggle.explain(toggles)
    yield from explain_duration.explain(durations)


def explain_on_spark(conditions: Conditions) -> Iterator[Iterator[str]]:
    """Explain every machine on Spark, line by line."""
    toggles, durations = _apart(conditions)
    yield from explain_toggle.explain_on_spark(toggles)
    yield from explain_duration.explain_on_spark(durations)


def describe(condition: StateCondition | DurationCondition) -> dict[str, str]:
    """Describe the parts of a state, for the comparison of revisions."""
    if isinstance(condition, StateCondition):
        return explain_toggle.describe(condition)
    return explain_duration.describe(condition)
