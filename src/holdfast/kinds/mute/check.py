"""Check mutes: the muted conditions, the causes, and that no condition mutes itself.

Checks that other kinds also need are in `kinds/checks.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...errors import DefinitionError, Place
from ...lang.condition import Condition
from ...lang.context import Context
from ...lang.ops import place_of
from ...lang.upstream import upstream
from ...model.schedule import schedule
from ...model.topic import Attribute, Topic
from ..checks import require_attributes
from .condition import Cause, ClockCause, MuteCondition, ParentCause, StormCause
from .syntax import Beyond, DefineMute, During, While

OWN = (Attribute("missed", "int"), Attribute("scopes", "int"), Attribute("holding", "int"))
"""The attributes of a summary.

They are the number of intervals that were never reported, the number of their scopes, and how many of these
are active now.
"""


def check(statements: Sequence[DefineMute], context: Context) -> list[MuteCondition]:
    """Check statements and return one condition for each muted condition, with all its causes."""
    known = context.conditions
    together: dict[str, list[DefineMute]] = {}
    for statement in statements:
        target = upstream(statement.target, known, place_of(statement.target, statement.at))
        together.setdefault(target.name, []).append(statement)
    _require_no_circle(statements)
    return [_check_mute(known[name], same_target, context) for name, same_target in together.items()]


def _require_no_circle(statements: Sequence[DefineMute]) -> None:
    """Raise a `DefinitionError` if conditions mute one another in a cycle."""
    above: dict[str, list[str]] = {}
    for statement in statements:
        if isinstance(statement.cause, While):
            above.setdefault(statement.target, []).append(statement.cause.parent)
    for statement in reversed(statements):  # the last statement closes the cycle
        path = [str(statement.target)]
        waiting = [(path, parent) for parent in above.get(statement.target, ())]
        while waiting:
            path, name = waiting.pop()
            if name == statement.target:
                names = " while ".join(f"'{step}'" for step in (*path, name))
                message = f"mutes go in a circle: {names}"
                hint = "Let one of them be told."
                raise DefinitionError(message, place_of(statement.target, statement.at), hint=hint)
            if name not in path:
                waiting += [([*path, name], more) for more in above.get(name, ())]


def _check_mute(target: Condition, statements: Sequence[DefineMute], context: Context) -> MuteCondition:
    """Check the statements that mute the condition `target`."""
    at = statements[0].at
    if len(target.output_topics) > 1:
        message = f"'{target.name}' tells readings of several topics, which cannot be muted together"
        raise DefinitionError(message, at, hint="Let it tell one event of its own: tell all")
    (output,) = target.output_topics
    topic = Topic(target.name, output.attributes)
    return MuteCondition(
        f"mute {target.name}",
        target.name,
        topic,
        output.name,
        Topic(f"mute {target.name}", OWN),
        tuple(_cause(statement, topic, context.conditions) for statement in statements),
        max(statement.wait for statement in statements),
    )


def _cause(statement: DefineMute, topic: Topic, known: Mapping[str, Condition]) -> Cause:
    """Check the cause of one statement."""
    match statement.cause:
        case During(spans, zone, at):
            try:
                return ClockCause(schedule(spans, zone))
            except ValueError as error:
                raise DefinitionError(str(error), at or statement.at) from None
        case While(name):
            return _parent(upstream(name, known, at := place_of(name, statement.at)), at, topic)
        case Beyond(most, within):
            if most.unit is not None or not isinstance(most.value, int) or most.value < 1:
                raise DefinitionError("a storm is beyond a whole number above zero", most.at or statement.at)
            require_attributes(within, topic, statement.at)
            return StormCause(most.value, tuple(map(str, within)))


def _parent(parent: Condition, at: Place | None, topic: Topic) -> ParentCause:
    """Check a cause `while`. The parent must last, and the muted condition must have its keys as
    attributes."""
    if parent.momentary:
        message = f"'{parent.name}' is over as it starts, so nothing is muted while it holds"
        raise DefinitionError(message, at, hint="Name a state, which lasts.")
    if parent.spans_scopes:
        message = f"'{parent.name}' holds of several together, so of no scope of '{topic.name}'"
        hint = f"Count it: state Some = at least 1 of {parent.name}; mute … while Some"
        raise DefinitionError(message, at, hint=hint)
    keys, forest = parent.outer_scopes
    for key in (key for level in keys for key in level):
        if key not in topic.by_name:
            message = f"'{parent.name}' is per {key}, which '{topic.name}' does not tell"
            raise DefinitionError(message, at, hint=f"Give the topic of '{topic.name}' an attribute '{key}'.")
    return ParentCause(Topic(parent.name, parent.topic.attributes), keys, forest)
