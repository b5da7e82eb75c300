"""What a query shows: the attributes of its topics, as its functions leave them, and what all have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...model.query import Aggregate, Function, Query
from ...model.topic import FIXED, Attribute, Topic
from ..kinds import Members, Moment, Position, Predicate, Quantity, Typed, Words
from ..ops import Member
from ..types import of_attribute

UNSETTABLE = ("topic", "status", "valid", *FIXED)
"""What a component cannot compute of its events.  [F67]"""


class Spread(Attribute):
    """An attribute that is a distance of two values: it is converted by scale alone."""


@dataclass(frozen=True, slots=True)
class Unusable(Attribute):
    """An attribute that a function is not defined for; it is shown if all have the same value."""

    reason: str = ""


def members(owner: str, attributes: Mapping[str, Attribute], *, derived: bool) -> Members:
    """Everything that may stand behind a query's name and a point.

    Attributes of readings come before what every event has; of components, ``status`` and
    ``valid`` are always what the thesis says.
    """
    own = {
        name: one.reason if isinstance(one, Unusable) else typed(owner, one)
        for name, one in attributes.items()
    }
    every = _every(owner)
    return {**own, **every} if derived else {**every, **own}


def typed(owner: str, attribute: Attribute) -> Typed:
    """The type of an attribute of what a query shows."""
    found = replace(of_attribute(attribute), core=Member(owner, attribute.name))
    if isinstance(found, Quantity) and isinstance(attribute, Spread):
        return replace(found, difference=True)
    return found


def _every(owner: str) -> dict[str, Typed]:
    def of(name: str) -> Member:
        return Member(owner, name)

    coordinates: dict[str, Typed] = {axis: Quantity(of(axis)) for axis in ("x", "y", "z")}
    words: dict[str, Typed] = {name: Words(of(name)) for name in ("topic", "status", "source", "place")}
    return {
        "time": Moment(of("time")),
        "location": Position(of("location")),
        "valid": Predicate(of("valid")),
        "count": Quantity(of("count"), whole=True),
        **words,
        **coordinates,
    }


def attributes_of(query: Query, topics: Sequence[Topic], collide: Function) -> dict[str, Attribute]:
    """The attributes that all topics of a query have, after its functions; before them, readings of one
    moment and place become one, by a function too."""
    first, *others = topics
    found: dict[str, Attribute] = {}
    for attribute in first.attributes:
        alike = [topic.by_name.get(attribute.name) for topic in others]
        if all(one is not None and (one.kind, one.unit) == (attribute.kind, attribute.unit) for one in alike):
            found[attribute.name] = _after(_met(attribute, query, collide), query)
    return found


def _met(attribute: Attribute, query: Query, collide: Function) -> Attribute:
    """An attribute of readings that may have met: the mean of whole numbers need not be one."""
    halved = attribute.kind == "int" and collide in ("avg", "stddev") and attribute.name not in query.each
    return replace(attribute, kind="float") if halved else attribute


def _after(attribute: Attribute, query: Query) -> Attribute:
    if attribute.name in query.each:
        return attribute
    for function in _functions(query, attribute.name):
        if function == "count":
            attribute = Attribute(attribute.name, "int")
        elif isinstance(attribute, Unusable):
            continue
        elif attribute.kind in ("text", "bool"):
            reason = f"{function} of {attribute.kind} is not defined; only count is"
            attribute = Unusable(attribute.name, attribute.kind, reason=reason)
        elif function == "stddev":
            attribute = Spread(attribute.name, "float", attribute.unit)
        elif function == "avg":
            attribute = replace(attribute, kind="float")
    return attribute


def _functions(query: Query, name: str) -> Iterator[Function]:
    """The functions that are applied to an attribute, in the order of evaluation."""
    for parameter in (query.time, query.location, query.status, query.topic):
        if isinstance(parameter, Aggregate):
            if isinstance(parameter.functions, str):
                yield parameter.functions
            elif name in dict(parameter.functions):
                yield dict(parameter.functions)[name]
