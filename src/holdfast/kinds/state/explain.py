"""Explain states as text, for both of the machines that states may need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import explain_duration, explain_toggle
from .condition import AnyState, StateCondition, split


def explain(conditions: Sequence[AnyState]) -> Iterator[str]:
    """Yield an explanation of each machine that states need."""
    toggles, durations = split(conditions)
    yield from explain_toggle.explain(toggles)
    yield from explain_duration.explain(durations)


def explain_on_spark(conditions: Sequence[AnyState]) -> Iterator[Iterator[str]]:
    """Yield an explanation of each machine on Spark, line by line."""
    toggles, durations = split(conditions)
    yield from explain_toggle.explain_on_spark(toggles)
    yield from explain_duration.explain_on_spark(durations)


def describe(condition: AnyState) -> dict[str, str]:
    """Return the parts of a state as text, by name, for the comparison of revisions."""
    if isinstance(condition, StateCondition):
        return explain_toggle.describe(condition)
    return explain_duration.describe(condition)
