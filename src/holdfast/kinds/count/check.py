"""Check counts: the counted condition, the quotas, the scopes, the roster.

Every error has the place of the word that causes it. Checks that other kinds also need are in
`kinds/checks.py`.
"""

from __future__ import annotations

from fractions import Fraction

from ...errors import DefinitionError
from ...lang import scopes
from ...lang.context import Context
from ...lang.ops import Number
from ...model.count import CountShare, Quota
from ...model.topic import Attribute, Topic
from ..checks import lasting_upstream, require_attributes, with_own
from .condition import CountCondition
from .roster import roster
from .syntax import DefineCount

OWN = (Attribute("members", "int"), Attribute("of", "int"), Attribute("first", "text"))
"""The attributes that a count adds to those of the event.

They are the number of active members, the number of all members, and the name of the first active member.
"""


def check_count(statement: DefineCount, context: Context) -> CountCondition:
    """Check one count. Raise a `DefinitionError` if it has a mistake."""
    over = lasting_upstream(statement.over, context.conditions, statement.at, "Count")
    topic = Topic(over.name, over.topic.attributes)
    require_attributes(statement.within, topic, statement.at)
    if statement.within and statement.scope:
        raise DefinitionError("a count is 'within' attributes or in the regions of a 'scope'", statement.at)
    forest = scopes.forest((statement.scope,), context.regions, statement.at) if statement.scope else None
    within = tuple(map(str, statement.within))
    return CountCondition(
        statement.name,
        topic,
        with_own(statement.name, topic, OWN),
        _quota(statement),
        within,
        forest,
        forest is None and set(within) <= set(over.routing_keys),
        statement.joined,
        roster(statement, over.scope_keys, within, forest, context.folder),
        statement.unknown,
        1 + (over.stage if isinstance(over, CountCondition) else 0),
        over.emits_by_time,
    )


# --- quotas ------------------------------------------------------------------------------------------


def _quota(statement: DefineCount) -> Quota:
    """Return the quota at which a count starts and ends. It must not end above the number at which it
    starts."""
    least = _share(statement.least, statement)
    fewer = least if statement.fewer is None else _share(statement.fewer, statement)
    if least.of_all == fewer.of_all and fewer.amount > least.amount:
        message = f"'{statement.name}' would end as it starts: it ends below more than it starts at"
        hint = "Let it end below the number at which it starts, or a lower one."
        raise DefinitionError(message, statement.fewer.at if statement.fewer else statement.at, hint=hint)
    return Quota(least, fewer)


def _share(number: Number, statement: DefineCount) -> CountShare:
    """Return a number of members, or a part of all members. A part of all needs a roster."""
    at = number.at or statement.at
    if number.unit not in (None, "%"):
        raise DefinitionError(f"{number.unit} does not count anything", at, hint="As in: at least 2, or 50 %")
    amount = Fraction(number.value)
    if number.unit is None and (amount.denominator != 1 or amount < 1):
        raise DefinitionError("a count is a whole number above zero", at, hint="A part of all is in %.")
    if number.unit == "%" and not 0 < amount <= 100:
        raise DefinitionError("a part of all lies above 0 % and is 100 % at most", at)
    if number.unit == "%" and statement.roster is None:
        message = f"'{statement.name}' is about a part of all, and nobody says who they are"
        hint = 'List them in a file beside the definition: roster "sensors.csv"'
        raise DefinitionError(message, at, hint=hint)
    return CountShare(amount / 100 if number.unit else amount, number.unit == "%")
