"""Checking correlations of states: which conditions, how they lie to one another, what is told."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from ...errors import DefinitionError
from ...model.topic import Attribute, Topic
from ..condition import Aligned, Correlated
from ..hearing import Heard, is_momentary, named, routing_keys
from ..kinds import Scope
from ..ops import Align, place_of
from ..types import unknown_attribute

_MAY_BE_MOMENTS = {
    "before": (True, True),
    "during": (True, False),
    "starts": (True, False),
    "ends": (True, False),
}
"""Of which of its two conditions it makes sense that they have no length."""


def aligned(statement: Align, made: Mapping[str, Heard]) -> Aligned:
    """What a correlation of conditions means, given those that there are."""
    over = [named(name, made, place_of(name, statement.at)) for name in statement.over]
    _refuse_unclear(statement, over)
    told = tuple(Topic(one.name, one.topic.attributes) for one in over)
    for i, name in enumerate(statement.per):
        if name in statement.per[:i]:
            raise DefinitionError(f"'{name}' stands twice in 'per'", place_of(name, statement.at))
        for topic in told:
            if name not in topic.by_name:
                raise unknown_attribute(name, Scope(topic, {}), place_of(name, statement.at))
        kinds = {topic.by_name[name].kind for topic in told}
        if len(kinds) > 1:
            message = f"'{name}' is {' here and '.join(sorted(kinds))} there, so nobody agrees in it"
            raise DefinitionError(message, place_of(name, statement.at))
    per = tuple(map(str, statement.per))
    return Aligned(
        statement.name,
        told,
        statement.relation,
        statement.within,
        math.inf if statement.near is None else statement.near,
        per,
        all(set(per) <= set(routing_keys(one)) for one in over),
        _published(statement.name, told, per),
    )


def _refuse_unclear(statement: Align, over: Sequence[Heard]) -> None:
    at, relation = statement.at, statement.relation
    for i, name in enumerate(statement.over):
        if name in statement.over[:i]:
            raise DefinitionError(
                f"'{name}' is correlated with itself",
                place_of(name, at),
                hint=f"Count its scopes: state … = at least 2 of {name}",
            )
    if statement.near is not None and not statement.near > 0:
        raise DefinitionError("the distance must be above zero: its bound is strict", at)
    if relation == "before" and statement.within is None:
        raise DefinitionError(
            "'before' needs to know how long before",
            at,
            hint=f"As in: {statement.over[0]} before {statement.over[1]} within 1 min",
        )
    may_be = _MAY_BE_MOMENTS.get(relation, (False,) * len(over))
    for name, one, may in zip(statement.over, over, may_be, strict=True):
        where = place_of(name, at)
        if isinstance(one, Correlated) and one.tell == "events" and len(one.listens) > 1:
            raise DefinitionError(
                f"'{name}' tells readings of several topics",
                where,
                hint="Let it tell one event of its own: tell all",
            )
        if is_momentary(one) and not may:
            raise DefinitionError(
                f"'{name}' is over as it starts, so it never is {_SAID.get(relation, 'that')} another",
                where,
                hint=f"Write what happens while the other holds: {name} during …",
            )


_SAID = {
    "overlapping": "overlapping", "overlaps": "overlapping", "during": "around", "starts": "started by",
    "ends": "ended by",
}  # fmt: skip


def _published(name: str, told: Sequence[Topic], per: Sequence[str]) -> Topic:
    """What is told: of each condition the scope, when it started and when it ended."""
    own = [told[0].by_name[key] for key in per]
    for label in (label for topic in told for label in labels(topic.name)):
        taken = {attribute.name for attribute in own}
        if label in taken:
            raise DefinitionError(f"'{name}' would tell two attributes '{label}'", hint="Rename a condition.")
        own.append(Attribute(label, "text"))
    return Topic(name, tuple(own))


def labels(name: str) -> tuple[str, str, str]:
    """The attributes that tell of a condition: its scope, its start, its end."""
    word = re.sub(r"\W", "_", name)
    return word, f"{word}_start", f"{word}_end"
