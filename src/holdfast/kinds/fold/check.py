"""Check folds: the folded condition, the cells, the number of siblings.

Checks that other kinds also need are in `kinds/checks.py`.
"""

from __future__ import annotations

from ...errors import DefinitionError
from ...lang import scopes
from ...lang.context import Context
from ...lang.ops import Number
from ...model.topic import Attribute, Topic
from ..checks import lasting_upstream, with_own
from .condition import FoldCondition
from .syntax import DefineFold

OWN = (Attribute("members", "int"), Attribute("outline", "text"), Attribute("into", "text"))
"""The attributes that a fold adds to those of the event.

They are the number of active members, the polygon around them, and for an end the cell that replaces the
ended name.
"""

DEEPEST = 32
SQUARES = 4
"""The number of children of a cell of a quadtree."""


def check_fold(statement: DefineFold, context: Context) -> FoldCondition:
    """Check one fold. Raise a `DefinitionError` if it has a mistake."""
    over = lasting_upstream(statement.over, context.conditions, statement.at, "Fold")
    most = _whole(statement.most, statement)
    if statement.side is not None and most >= SQUARES:
        message = f"a square has four in it, so more than {most} never hold"
        raise DefinitionError(message, statement.most.at or statement.at, hint="As in: beyond 3")
    fewer = most + 1 if statement.fewer is None else _whole(statement.fewer, statement)
    if fewer > most + 1:
        message = f"'{statement.name}' would unfold as it folds: it ends below more than it starts at"
        hint = "Let it unfold below the number at which it folds, or a lower one."
        raise DefinitionError(message, statement.fewer.at if statement.fewer else statement.at, hint=hint)
    topic = Topic(over.name, over.topic.attributes)
    return FoldCondition(
        statement.name,
        topic,
        with_own(statement.name, topic, OWN),
        most,
        fewer,
        scopes.forest(statement.scope, context.regions, statement.at) if statement.scope else None,
        _sides(statement),
        over.emits_by_time,
    )


def _sides(statement: DefineFold) -> tuple[float, ...]:
    """Return the sides of squares in metres, the smallest first. Each side is twice as long as the one
    before."""
    if statement.side is None or statement.widest is None:
        return ()
    side, widest = statement.side, statement.widest
    if not side > 0:
        raise DefinitionError("a cell has a side above zero", statement.at)
    sides = [side]
    while sides[-1] < widest and len(sides) <= DEEPEST:
        sides.append(2 * sides[-1])
    if sides[-1] != widest or len(sides) < 2:
        near = sides[-1] if len(sides) > 1 else 2 * side
        message = f"squares of {side:g} m do not fill one of {widest:g} m, doubled again and again"
        raise DefinitionError(message, statement.at, hint=f"As in: cells {side:g} m within {near:g} m")
    return tuple(sides)


def _whole(number: Number, statement: DefineFold) -> int:
    if number.unit is not None or not isinstance(number.value, int) or number.value < 1:
        raise DefinitionError("a storm is beyond a whole number above zero", number.at or statement.at)
    return number.value
