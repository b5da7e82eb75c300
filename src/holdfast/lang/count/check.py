"""Checking of counts over states: over what, how many, within what."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from ...errors import DefinitionError
from ...model.count import Quota, Share
from ...model.folder import Folder
from ...model.space import Forest, Gazetteer
from ...model.topic import Attribute, Topic
from .. import scopes
from ..condition import Tallied
from ..hearing import Heard, is_momentary, keys_of, named, routing_keys, speaks_by_time
from ..kinds import Scope
from ..ops import Number, Tally, place_of
from ..types import unknown_attribute
from .roster import roster

OWN = (Attribute("members", "int"), Attribute("of", "int"), Attribute("first", "text"))
"""What a count tells beside the attributes of the event: how many hold, of how many, and who was first."""


def tallied(statement: Tally, made: Mapping[str, Heard], known: Gazetteer, folder: Folder) -> Tallied:
    """What a count means, given the conditions that there are."""
    at = place_of(statement.over, statement.at)
    over = named(statement.over, made, at)
    if is_momentary(over):
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
    keys = keys_of(over)
    within = tuple(map(str, statement.within))
    own = tuple(a for a in told.attributes if a.name not in {mine.name for mine in OWN})
    return Tallied(
        statement.name,
        told,
        Topic(statement.name, (*own, *OWN)),
        _quota(statement),
        within,
        forest,
        forest is None and set(within) <= set(routing_keys(over)),
        statement.joined,
        roster(statement, keys, within, forest, folder),
        statement.unknown,
        1 + (over.stage if isinstance(over, Tallied) else 0),
        speaks_by_time(over),
    )


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
