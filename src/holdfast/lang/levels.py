"""Checking levels: states of one topic in the same scopes, the highest of which is told."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import DefinitionError
from ..model.qos import Correct
from ..model.topic import Attribute, Topic
from .condition import Condition, Guarded, Leveled
from .ops import Ladder, Subscribe

MOST = 64
LEVEL, BEFORE = "level", "was"
"""What an event says beside its attributes: the level that it leads to, and the one that it leads from."""


def leveled(statement: Ladder, condition: Callable[[Subscribe], Condition | Guarded]) -> Leveled:
    """The levels that a statement declares, given how one of its states is checked."""
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
    topic = _published(statement, rungs[0].topic)
    return Leveled(statement.name, rungs, topic, rungs[0].delivery)


def _require_beginning(statement: Ladder) -> None:
    """A scope begins without a level, and is told when it has one; what is forgotten is so at once."""
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


def _published(statement: Ladder, topic: Topic) -> Topic:
    """What is told: the reading, and from which to which level it leads."""
    for name in (LEVEL, BEFORE):
        if name in topic.by_name:
            raise DefinitionError(
                f"topic '{topic.name}' has an attribute '{name}', which '{statement.name}' is to tell",
                statement.at,
                hint="Rename the attribute (--map reads it from the column that it has).",
            )
    own = (Attribute(LEVEL, "text"), Attribute(BEFORE, "text"))
    return Topic(statement.name, (*topic.attributes, *own))
