"""Check levels: states of one topic in the same scopes. The highest active state is reported."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import DefinitionError
from ...lang.condition import BEFORE, LEVEL, Caution
from ...lang.context import Context
from ...model.qos import Correct
from ...model.topic import Attribute, Topic
from ..state import check as state
from ..state.check import check_state
from .condition import LevelsCondition
from .syntax import DefineLevels

MOST = 64
"""The maximal number of levels of one statement."""


def check_levels(statement: DefineLevels, context: Context) -> LevelsCondition:
    """Check one statement of levels. Raise a `DefinitionError` if it has a mistake."""
    seen: set[str] = set()
    for rung in statement.rungs:
        if rung.name in seen:
            raise DefinitionError(f"'{statement.name}' has two levels '{rung.name}'", rung.at)
        seen.add(rung.name)
    if len(statement.rungs) > MOST:
        raise DefinitionError(f"'{statement.name}' has more than {MOST} levels", statement.rungs[MOST].at)
    rungs = tuple(check_state(rung, context) for rung in statement.rungs)
    for rung, checked in zip(statement.rungs, rungs, strict=True):
        if checked.momentary:
            message = f"level '{rung.name}' of '{statement.name}' ends at once: nothing would hold it"
            hint = "Give it an exit, as in: warn [value > 25; value < 22]"
            raise DefinitionError(message, rung.exit.at or rung.at, hint=hint)
    if isinstance(rungs[0].delivery.late, Correct):
        message = f"levels cannot be corrected: '{statement.name}' has 'late correct'"
        raise DefinitionError(message, statement.at, hint="It is late drop, or late apply.")
    _require_beginning(statement)
    topic = _output_topic(statement, rungs[0].topic)
    return LevelsCondition(statement.name, rungs, topic, rungs[0].delivery)


def _require_beginning(statement: DefineLevels) -> None:
    """Raise a `DefinitionError` for an initial value, or for `unknown after` beside `forget after`.

    A scope starts without a level, and a scope that becomes unknown is either stored or forgotten.
    """
    care = statement.rungs[0].care
    if care.initially != "off" or care.quietly:
        message = f"levels begin with none: '{statement.name}' has 'initially'"
        hint = "Leave it out; a state of its own can begin otherwise."
        raise DefinitionError(message, statement.at, hint=hint)
    if care.unknown is not None and care.forget is not None:
        raise DefinitionError(
            f"levels are unknown or forgotten: '{statement.name}' has 'unknown after' and 'forget after'",
            statement.at,
            hint="With 'forget after' alone a scope is told 'unknown' when it is forgotten.",
        )


def _output_topic(statement: DefineLevels, topic: Topic) -> Topic:
    """Return the topic of the levels' events: the reading with the new level and the level before."""
    for name in (LEVEL, BEFORE):
        if name in topic.by_name:
            message = f"topic '{topic.name}' has an attribute '{name}', which '{statement.name}' is to tell"
            hint = "Rename the attribute (--map reads it from the column that it has)."
            raise DefinitionError(message, statement.at, hint=hint)
    level_attributes = (Attribute(LEVEL, "text"), Attribute(BEFORE, "text"))
    return Topic(statement.name, (*topic.attributes, *level_attributes))


def cautions(statement: DefineLevels, checked: LevelsCondition, context: Context) -> Iterator[Caution]:
    """Yield warnings about states of levels that are probably mistakes."""
    for rung, condition in zip(statement.rungs, checked.rungs, strict=True):
        yield from state.cautions(rung, condition, context)
