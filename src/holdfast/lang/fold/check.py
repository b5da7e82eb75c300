"""Checking of folds: over what, in which cells, beyond how many."""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import DefinitionError
from ...model.space import Gazetteer
from ...model.topic import Attribute, Topic
from .. import scopes
from ..condition import Folded
from ..hearing import Heard, is_momentary, named, speaks_by_time
from ..ops import Fold, Number, place_of

OWN = (Attribute("members", "int"), Attribute("outline", "text"), Attribute("into", "text"))
"""What a fold tells beside the attributes of the event: how many hold there, the polygon around them, and of
what ends because a cell is told in its place, which."""

DEEPEST = 32
SQUARES = 4
"""How many lie directly in one of a quadtree."""


def folded(statement: Fold, made: Mapping[str, Heard], known: Gazetteer) -> Folded:
    """What a fold means, given the conditions that there are."""
    at = place_of(statement.over, statement.at)
    over = named(statement.over, made, at)
    if is_momentary(over):
        raise DefinitionError(
            f"'{over.name}' is over as it starts, so nobody holds at once",
            at,
            hint="Fold a state, which lasts.",
        )
    most = _whole(statement.most, statement)
    if statement.side is not None and most >= SQUARES:
        raise DefinitionError(
            f"a square has four in it, so more than {most} never hold",
            statement.most.at or statement.at,
            hint="As in: beyond 3",
        )
    fewer = most + 1 if statement.fewer is None else _whole(statement.fewer, statement)
    if fewer > most + 1:
        raise DefinitionError(
            f"'{statement.name}' would unfold as it folds: it ends below more than it starts at",
            statement.fewer.at if statement.fewer else statement.at,
            hint="Let it unfold below the number at which it folds, or a lower one.",
        )
    told = Topic(over.name, over.topic.attributes)
    kept = tuple(a for a in told.attributes if a.name not in {mine.name for mine in OWN})
    return Folded(
        statement.name,
        told,
        Topic(statement.name, (*kept, *OWN)),
        most,
        fewer,
        scopes.forest(statement.scope, known, statement.at) if statement.scope else None,
        _sides(statement),
        speaks_by_time(over),
    )


def _sides(statement: Fold) -> tuple[float, ...]:
    """The sides of squares, the smallest first, each twice as long as the one before."""
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
        raise DefinitionError(
            f"squares of {side:g} m do not fill one of {widest:g} m, doubled again and again",
            statement.at,
            hint=f"As in: cells {side:g} m within {near:g} m",
        )
    return tuple(sides)


def _whole(number: Number, statement: Fold) -> int:
    if number.unit is not None or not isinstance(number.value, int) or number.value < 1:
        raise DefinitionError("a storm is beyond a whole number above zero", number.at or statement.at)
    return number.value
