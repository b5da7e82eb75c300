"""Checking of counts over states: over what, how many, within what."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from pathlib import Path

from ...errors import DefinitionError, did_you_mean
from ...model.count import Quota, Share
from ...model.space import Forest, Gazetteer
from ...model.topic import Attribute, Topic
from .. import scopes
from ..condition import Component, Condition, Correlated, Guarded, Leveled, Related, Tallied
from ..kinds import Scope
from ..ops import Number, Tally, place_of
from ..types import unknown_attribute
from .roster import roster

Countable = Condition | Guarded | Component | Correlated | Related | Leveled | Tallied

OWN = (Attribute("members", "int"), Attribute("of", "int"), Attribute("first", "text"))
"""What a count tells beside the attributes of the event: how many hold, of how many, and who was first."""


def tallied(
    statements: Sequence[Tally], others: Iterable[Countable], known: Gazetteer, folder: Path
) -> tuple[Tallied, ...]:
    """The counts, in the order of the text; they may build on one another."""
    made: dict[str, Countable] = {one.name: one for one in others}
    waiting = {statement.name: statement for statement in statements}
    while waiting:
        ready = [one for one in waiting.values() if one.over not in waiting]
        if not ready:
            raise _circle(next(iter(waiting.values())), waiting)
        for statement in ready:
            made[statement.name] = _tallied(statement, made, known, folder)
            del waiting[statement.name]
    return tuple(one for s in statements if isinstance(one := made[s.name], Tallied))


def _circle(first: Tally, waiting: dict[str, Tally]) -> DefinitionError:
    path = [first.name]
    while path.count(path[-1]) < 2:
        path.append(waiting[path[-1]].over)
    names = " over ".join(f"'{name}'" for name in path[path.index(path[-1]) :])
    return DefinitionError(
        f"counts go in a circle: {names}",
        place_of(waiting[path[-1]].over, first.at),
        hint="Let one of them count a state of readings.",
    )


def _tallied(statement: Tally, made: dict[str, Countable], known: Gazetteer, folder: Path) -> Tallied:
    at = place_of(statement.over, statement.at)
    over = made.get(statement.over)
    if over is None:
        hint = did_you_mean(statement.over, made)
        raise DefinitionError(f"unknown condition '{statement.over}'", at, hint=hint)
    if isinstance(over, Correlated) or getattr(over, "momentary", False):
        raise DefinitionError(
            f"'{over.name}' is over as it starts, so nobody holds at once",
            at,
            hint="Count a state, which lasts.",
        )
    told = Topic(over.name, over.topic.attributes)
    for name in statement.within:
        if name not in told.by_name:
            raise unknown_attribute(name, Scope(told, {}), place_of(name, statement.at))
    if statement.within and statement.scope:
        raise DefinitionError("a count is 'within' attributes or in the regions of a 'scope'", statement.at)
    forest = _forest(statement, known)
    keys = _keys(over)
    within = tuple(map(str, statement.within))
    own = tuple(a for a in told.attributes if a.name not in {mine.name for mine in OWN})
    return Tallied(
        statement.name,
        told,
        Topic(statement.name, (*own, *OWN)),
        _quota(statement),
        within,
        forest,
        forest is None and set(within) <= set(keys),
        statement.joined,
        roster(statement, keys, within, forest, folder),
        statement.unknown,
        1 + (over.stage if isinstance(over, Tallied) else 0),
        _speaks_by_time(over),
    )


def _speaks_by_time(over: Countable) -> bool:
    """Whether a condition says things that no reading of that moment makes it say."""
    match over:
        case Condition():
            return False
        case Leveled():
            return any(map(_speaks_by_time, over.rungs))
        case Tallied():
            return over.waits
        case _:
            return True


def _keys(over: Countable) -> tuple[str, ...]:
    """By what the members of a count are kept apart."""
    match over:
        case Condition() | Guarded():
            return over.keys[-1] if over.keys and over.forest is None else ()
        case Leveled():
            return _keys(over.rungs[0])
        case Tallied():
            return over.within
        case _:
            return ()


def _forest(statement: Tally, known: Gazetteer) -> Forest | None:
    return scopes.forest((statement.scope,), known, statement.at) if statement.scope else None


# --- how many ----------------------------------------------------------------------------------------


def _quota(statement: Tally) -> Quota:
    least = _share(statement.least, statement)
    fewer = least if statement.fewer is None else _share(statement.fewer, statement)
    if least.of_all == fewer.of_all and fewer.amount > least.amount:
        raise DefinitionError(
            f"'{statement.name}' would end as it starts: it ends below more than it starts at",
            statement.fewer.at if statement.fewer else statement.at,
            hint="Let it end below the number at which it starts, or a lower one.",
        )
    return Quota(least, fewer)


def _share(number: Number, statement: Tally) -> Share:
    at = number.at or statement.at
    if number.unit not in (None, "%"):
        raise DefinitionError(f"{number.unit} does not count anything", at, hint="As in: at least 2, or 50 %")
    amount = Fraction(number.value)
    if number.unit is None and (amount.denominator != 1 or amount < 1):
        raise DefinitionError("a count is a whole number above zero", at, hint="A part of all is in %.")
    if number.unit == "%" and not 0 < amount <= 100:
        raise DefinitionError("a part of all lies above 0 % and is 100 % at most", at)
    if number.unit == "%" and statement.roster is None:
        raise DefinitionError(
            f"'{statement.name}' is about a part of all, and nobody says who they are",
            at,
            hint='List them in a file beside the definition: roster "sensors.csv"',
        )
    return Share(amount / 100 if number.unit else amount, number.unit == "%")
