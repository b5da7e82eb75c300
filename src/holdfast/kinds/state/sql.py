"""Relevant events of states in SQL."""

from __future__ import annotations

from collections.abc import Sequence

from ...lang.expressions.sql import Naming, predicate, quote_name
from ...model.topic import Topic
from .condition import DurationCondition, StateCondition
from .cover import relevant_predicates


def relevant(
    conditions: Sequence[StateCondition | DurationCondition], topic: Topic, named: Naming = quote_name
) -> list[str] | None:
    """Tests of which one is true for every relevant event of a topic: the predicates of its states. For
    states with tables they are bounds over all rows. ``None`` for minimum durations, for which every event is
    relevant.
    """
    if any(isinstance(condition, DurationCondition) and condition.topic == topic for condition in conditions):
        return None
    own_conditions = [
        condition
        for condition in conditions
        if isinstance(condition, StateCondition) and condition.topic == topic
    ]
    return [
        predicate(op, topic, named) for condition in own_conditions for op in relevant_predicates(condition)
    ]
