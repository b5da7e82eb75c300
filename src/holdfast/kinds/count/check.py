"""Check counts: the counted condition, the quotas, the scopes, the roster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from ...errors import DefinitionError
from ...lang import scopes
from ...lang.condition import Condition
from ...lang.context import Context
from ...lang.ops import Number, place_of
from ...lang.typed import NameScope
from ...lang.types import unknown_attribute
from ...lang.upstream import upstream
from ...model.count import CountShare, Quota
from ...model.folder import Folder
from ...model.space import Forest, Gazetteer
from ...model.topic import Attribute, Topic
from .condition import CountCondition
from .roster import roster
from .syntax import DefineCount

OWN = (Attribute("members", "int"), Attribute("of", "int"), Attribute("first", "text"))
"""The attributes that a count adds to those of the event: active members, all members, and the first
active one."""


def _check_count(
    statement: DefineCount, made: Mapping[str, Condition], known: Gazetteer, folder: Folder
) -> CountCondition:
    """Check one count, given the conditions that were checked before."""
    at = place_of(statement.over, statement.at)
    over = upstream(statement.over, made, at)
    if over.momentary:
        raise DefinitionError(
            f"'{over.name}' is over as it starts, so nobody holds at once",
            at,
            hint="Count a state, which lasts.",
        )
    topic = Topic(over.name, over.topic.attributes)
    for name in statement.within:
        if name not in topic.by_name:
            raise unknown_attribute(name, NameScope(topic, {}), place_of(name, statement.at))
    if statement.within and statement.scope:
        raise DefinitionError("a count is 'within' attributes or in the regions of a 'scope'", statement.at)
    forest = _forest(statement, known)
    keys = over.scope_keys
    within = tuple(map(str, statement.within))
    event_attributes = tuple(
        a for a in topic.attributes if a.name not in {attribute.name for attribute in OWN}
    )
    return CountCondition(
        statement.name,
        topic,
        Topic(statement.name, (*event_attributes, *OWN)),
        _quota(statement),
        within,
        forest,
        forest is None and set(within) <= set(over.routing_keys),
        statement.joined,
        roster(statement, keys, within, forest, folder),
        statement.unknown,
        1 + (over.stage if isinstance(over, CountCondition) else 0),
        over.emits_by_time,
    )


def _forest(statement: DefineCount, known: Gazetteer) -> Forest | None:
    return scopes.forest((statement.scope,), known, statement.at) if statement.scope else None


# --- quotas ------------------------------------------------------------------------------------------


def _quota(statement: DefineCount) -> Quota:
    least = _share(statement.least, statement)
    fewer = least if statement.fewer is None else _share(statement.fewer, statement)
    if least.of_all == fewer.of_all and fewer.amount > least.amount:
        raise DefinitionError(
            f"'{statement.name}' would end as it starts: it ends below more than it starts at",
            statement.fewer.at if statement.fewer else statement.at,
            hint="Let it end below the number at which it starts, or a lower one.",
        )
    return Quota(least, fewer)


def _share(number: Number, statement: DefineCount) -> CountShare:
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
    return CountShare(amount / 100 if number.unit else amount, number.unit == "%")


def check(statements: Sequence[DefineCount], context: Context) -> list[CountCondition]:
    """Check the counts that statements define, given the conditions over which they count."""
    return [
        _check_count(statement, context.conditions, context.regions, context.folder)
        for statement in statements
    ]
