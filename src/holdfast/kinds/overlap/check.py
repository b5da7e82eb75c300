"""Check overlaps, which are correlations of conditions: the conditions, their relation in time, the output
topic.

Checks that other kinds also need are in `kinds/checks.py`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from ...errors import DefinitionError
from ...lang.condition import Condition
from ...lang.context import Context
from ...lang.ops import place_of
from ...lang.upstream import upstream
from ...model.topic import Attribute, Topic
from ..checks import require_attributes
from .condition import OverlapCondition
from .syntax import DefineOverlap

_MAY_BE_MOMENTS = {
    "before": (True, True),
    "during": (True, False),
    "starts": (True, False),
    "ends": (True, False),
}
"""For each relation, whether the first and the second condition may be momentary."""


def check_overlap(statement: DefineOverlap, context: Context) -> OverlapCondition:
    """Check one overlap. Raise a `DefinitionError` if it has a mistake."""
    over = [upstream(name, context.conditions, place_of(name, statement.at)) for name in statement.over]
    _refuse_unclear(statement, over)
    topics = tuple(Topic(condition.name, condition.topic.attributes) for condition in over)
    for i, name in enumerate(statement.per):
        if name in statement.per[:i]:
            raise DefinitionError(f"'{name}' stands twice in 'per'", place_of(name, statement.at))
        for topic in topics:
            require_attributes((name,), topic, statement.at)
        kinds = {topic.by_name[name].kind for topic in topics}
        if len(kinds) > 1:
            message = f"'{name}' is {' here and '.join(sorted(kinds))} there, so nobody agrees in it"
            raise DefinitionError(message, place_of(name, statement.at))
    per = tuple(map(str, statement.per))
    return OverlapCondition(
        statement.name,
        topics,
        statement.relation,
        statement.within,
        math.inf if statement.near is None else statement.near,
        per,
        all(set(per) <= set(condition.routing_keys) for condition in over),
        _output_topic(statement.name, topics, per),
    )


def _refuse_unclear(statement: DefineOverlap, over: Sequence[Condition]) -> None:
    """Raise a `DefinitionError` for a clause that does not fit the relation or the conditions."""
    at, relation = statement.at, statement.relation
    for i, name in enumerate(statement.over):
        if name in statement.over[:i]:
            hint = f"Count its scopes: state … = at least 2 of {name}"
            raise DefinitionError(f"'{name}' is correlated with itself", place_of(name, at), hint=hint)
    if statement.near is not None and not statement.near > 0:
        raise DefinitionError("the distance must be above zero: its bound is strict", at)
    if relation == "before" and statement.within is None:
        hint = f"As in: {statement.over[0]} before {statement.over[1]} within 1 min"
        raise DefinitionError("'before' needs to know how long before", at, hint=hint)
    may_be = _MAY_BE_MOMENTS.get(relation, (False,) * len(over))
    for name, condition, may in zip(statement.over, over, may_be, strict=True):
        where = place_of(name, at)
        if len(condition.output_topics) > 1:
            message = f"'{name}' tells readings of several topics"
            raise DefinitionError(message, where, hint="Let it tell one event of its own: tell all")
        if condition.momentary and not may:
            message = f"'{name}' is over as it starts, so it never is {_SAID.get(relation, 'that')} another"
            hint = f"Write what happens while the other holds: {name} during …"
            raise DefinitionError(message, where, hint=hint)


_SAID = {
    "overlapping": "overlapping", "overlaps": "overlapping", "during": "around", "starts": "started by",
    "ends": "ended by",
}  # fmt: skip


def _output_topic(name: str, topics: Sequence[Topic], per: Sequence[str]) -> Topic:
    """Return the topic of an overlap's events, with the scope, the start and the end of each condition."""
    scope_attributes = [topics[0].by_name[key] for key in per]
    for label in (label for topic in topics for label in labels(topic.name)):
        taken = {attribute.name for attribute in scope_attributes}
        if label in taken:
            raise DefinitionError(f"'{name}' would tell two attributes '{label}'", hint="Rename a condition.")
        scope_attributes.append(Attribute(label, "text"))
    return Topic(name, tuple(scope_attributes))


def labels(name: str) -> tuple[str, str, str]:
    """Return the names of the attributes for a condition: its scope, its start, its end."""
    word = re.sub(r"\W", "_", name)
    return word, f"{word}_start", f"{word}_end"
