"""SQL tests for the relevant events of states. Spark uses them to drop other rows while it reads files."""

from __future__ import annotations

from collections.abc import Sequence

from ...lang.expressions.sql import Naming, predicate, quote_name
from ...model.topic import Topic
from .condition import AnyState, split
from .cover import relevant_predicates


def relevant(conditions: Sequence[AnyState], topic: Topic, named: Naming = quote_name) -> list[str] | None:
    """Return SQL tests of which at least one is true for every relevant event of a topic.

    The tests are the predicates of the topic's states. For states with tables they are bounds over all rows.
    Return ``None`` for states with minimum durations, for which every event is relevant.
    """
    toggles, durations = split(condition for condition in conditions if condition.topic == topic)
    if durations:
        return None
    return [predicate(op, topic, named) for toggle in toggles for op in relevant_predicates(toggle)]
