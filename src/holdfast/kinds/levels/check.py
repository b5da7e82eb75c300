"""Check levels: states of one topic in the same scopes, of which the highest active one is reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ...errors import DefinitionError
from ...lang.condition import BEFORE, LEVEL, Caution
from ...lang.context import Context
from ...model.qos import Correct
from ...model.topic import Attribute, Topic
from ..state.check import check_state, state_cautions
from ..state.condition import DurationCondition, StateCondition
from ..state.syntax import DefineState
from .condition import LevelsCondition
from .syntax import DefineLevels

MOST = 64
"""The attributes that levels add to those of the reading: the new level, and the level before."""


def _check_levels(
    statement: DefineLevels, condition: Callable[[DefineState], StateCondition | DurationCondition]
) -> LevelsCondition:
    """Check one statement; `condition` checks one of its states."""
    seen: set[str] = set()
    for rung in statement.rungs:
        if rung.name in seen:
            raise DefinitionError(f"'{statement.name}' has two levels '{rung.name}'", rung.at)
        seen.add(rung.name)
    if len(statement.rungs) > MOST:
        raise DefinitionError(f"'{statement.name}' has more than {MOST} levels", statement.rungs[MOST].at)
    rungs = tuple(map(condition, statement.rungs))
    for rung, checked in zip(statement.rungs, rungs, strict=True):
        if checked.momentary:
            raise DefinitionError(
                f"level '{rung.name}' of '{statement.name}' ends at once: nothing would hold it",
                rung.exit.at or rung.at,
                hint="Give it an exit, as in: warn [value > 25; value < 22]",
            )
    if isinstance(rungs[0].delivery.late, Correct):
        raise DefinitionError(
            f"levels cannot be corrected: '{statement.name}' has 'late correct'",
            statement.at,
            hint="It is late drop, or late apply.",
        )
    _require_beginning(statement)
    topic = _output_topic(statement, rungs[0].topic)
    return LevelsCondition(statement.name, rungs, topic, rungs[0].delivery)


def _require_beginning(statement: DefineLevels) -> None:
    """Refuse initial values and delayed forgetting: a scope starts without a level, and a forgotten one is
    forgotten at once.
    """
    care = statement.rungs[0].care
    if care.initially != "off" or care.quietly:
        raise DefinitionError(
            f"levels begin with none: '{statement.name}' has 'initially'",
            statement.at,
            hint="Leave it out; a state of its own can begin otherwise.",
        )
    if care.unknown is not None and care.forget is not None:
        raise DefinitionError(
            f"levels are unknown or forgotten: '{statement.name}' has 'unknown after' and 'forget after'",
            statement.at,
            hint="With 'forget after' alone a scope is told 'unknown' when it is forgotten.",
        )


def _output_topic(statement: DefineLevels, topic: Topic) -> Topic:
    """The output topic: the reading, with the new level and the level before."""
    for name in (LEVEL, BEFORE):
        if name in topic.by_name:
            raise DefinitionError(
                f"topic '{topic.name}' has an attribute '{name}', which '{statement.name}' is to tell",
                statement.at,
                hint="Rename the attribute (--map reads it from the column that it has).",
            )
    level_attributes = (Attribute(LEVEL, "text"), Attribute(BEFORE, "text"))
    return Topic(statement.name, (*topic.attributes, *level_attributes))


def check(statements: Sequence[DefineLevels], context: Context) -> list[LevelsCondition]:
    """Check the levels that statements define."""
    return [_check_levels(statement, lambda rung: check_state(rung, context)) for statement in statements]


def cautions(statements: Sequence[DefineLevels], context: Context) -> Iterator[Caution]:
    """Warn about states of levels that are probably mistakes."""
    for statement in statements:
        checked = context.conditions[statement.name]
        assert isinstance(checked, LevelsCondition)
        for rung, condition in zip(statement.rungs, checked.rungs, strict=True):
            yield from state_cautions(rung, condition, context.regions)
