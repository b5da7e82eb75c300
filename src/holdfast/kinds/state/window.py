"""State filters as a database query without Python: a filter and a window function.

This form requires that entrance and exit cannot both be true. An event that satisfies one of them then sets
or resets the bit, regardless of its value. The event is a transition if the last such event of its scope did
the opposite. In SQL, this is a filter and ``lag``.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...lang.expressions.sql import Naming, keys, matching, predicate, quote_name, readable_scope
from ...lang.ops import And
from ...model.topic import Topic
from ..kind import FilterSql, WindowForm, WindowQuery
from .condition import StateCondition
from .reason import satisfiable


def reason_against(conditions: Sequence[StateCondition], published: Sequence[Topic]) -> str | None:
    """Return the reason why filters with the same scopes cannot run as a window query, or `None` if they can.

    `published` are all output topics; the output has columns for all of them.
    """
    first = conditions[0]
    if any(condition.tables for condition in conditions):
        return "only Python knows the rows of a table"
    if first.forest is not None:
        return "only Python can tell in which region an event lies"
    if len(first.keys) > 1:
        return "scopes are nested"
    if keys(first) is None:
        return "only Python can write a float as a key"
    kinds = {(attribute.name, attribute.kind) for topic in published for attribute in topic.attributes}
    for name in (attribute.name for attribute in first.topic.attributes if attribute.kind == "float"):
        if any((name, other) in kinds for other in ("int", "text", "bool")):
            return f"only Python can write {name} as text, which it is beside another topic's"
    for condition in conditions:
        both = And(condition.enter, condition.exit)
        if not condition.momentary and satisfiable(both, condition.topic) is not False:
            return f"entrance and exit of {condition.name} may both hold"
    return None


def window_query(conditions: Sequence[StateCondition], named: Naming = quote_name) -> WindowQuery:
    """Return the query of filters that share their scopes. Call `reason_against` first."""
    first = conditions[0]
    tests = [op for c in conditions for op in ([c.enter] if c.momentary else [c.enter, c.exit])]
    return WindowQuery(
        matching(tests, first.topic, named),
        tuple(named(name) for level in first.keys for name in level),
        readable_scope(first, named),
        tuple(
            FilterSql(
                predicate(condition.enter, condition.topic, named),
                None if condition.momentary else predicate(condition.exit, condition.topic, named),
            )
            for condition in conditions
        ),
    )


WINDOW_FORM = WindowForm(reason_against, window_query)
