"""The members of a query in expressions: attributes of its topics after its functions, and fixed members.

A new fixed member needs a line in `_every` here and one in `member` of `compile.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ...kernels.functions import AGGREGATES
from ...lang.ops import Expression, MemberAttribute
from ...lang.rewrite import within
from ...lang.typed import Members, Position, Predicate, Typed, TypedQuantity, TypedTime, Words
from ...lang.types import of_attribute
from ...model.query import Aggregate, Function, Query
from ...model.topic import FIXED, Attribute, Topic

UNSETTABLE = ("topic", "status", "valid", *FIXED)
"""Members of a component's events that the component cannot set. [F67]"""


class DifferenceAttribute(Attribute):
    """An attribute that is a difference of two values. Its unit is converted by scale, without an offset."""


@dataclass(frozen=True, slots=True)
class Unusable(Attribute):
    """An attribute for which a function is not defined; it has a value only if all readings agree.

    `reason` is the message for its use in an expression.
    """

    reason: str = ""


def members(owner: str, attributes: Mapping[str, Attribute], *, derived: bool) -> Members:
    """Return all members of the query `owner`, by name.

    Attributes of readings take precedence over fixed members. For components (`derived`), fixed members take
    precedence.
    """
    items = attributes.items()
    own = {n: a.reason if isinstance(a, Unusable) else type_of_attribute(owner, a) for n, a in items}
    every = _every(owner)
    return {**own, **every} if derived else {**every, **own}


def members_in(op: Expression) -> list[MemberAttribute]:
    """Return the members of queries in an expression, in the order of the text."""
    return [part for part in within(op) if isinstance(part, MemberAttribute)]


def type_of_attribute(owner: str, attribute: Attribute) -> Typed:
    """Return the type of an attribute of the query `owner`."""
    found = replace(of_attribute(attribute), core=MemberAttribute(owner, attribute.name))
    if isinstance(found, TypedQuantity) and isinstance(attribute, DifferenceAttribute):
        return replace(found, difference=True)
    return found


def _every(owner: str) -> dict[str, Typed]:
    """Return the fixed members of the query `owner`."""

    def of(name: str) -> MemberAttribute:
        return MemberAttribute(owner, name)

    coordinates: dict[str, Typed] = {axis: TypedQuantity(of(axis)) for axis in ("x", "y", "z")}
    words: dict[str, Typed] = {name: Words(of(name)) for name in ("topic", "status", "source", "place")}
    return {
        "time": TypedTime(of("time")),
        "location": Position(of("location")),
        "valid": Predicate(of("valid")),
        "count": TypedQuantity(of("count"), whole=True),
        **words,
        **coordinates,
    }


def attributes_of(query: Query, topics: Sequence[Topic], collide: Function) -> dict[str, Attribute]:
    """Return the attributes that all topics of a query have, with their types after the functions of the
    query.

    Colliding readings are merged first, with the function `collide`.
    """
    first, *others = topics
    is_fraction = AGGREGATES[collide].result in ("float", "difference")
    found: dict[str, Attribute] = {}
    for attribute in first.attributes:
        alike = [topic.by_name.get(attribute.name) for topic in others]
        if all(one is not None and (one.kind, one.unit) == (attribute.kind, attribute.unit) for one in alike):
            if is_fraction and attribute.kind == "int" and attribute.name not in query.each:
                attribute = replace(attribute, kind="float")  # the mean of integers need not be one
            found[attribute.name] = _after(attribute, query)
    return found


def _after(attribute: Attribute, query: Query) -> Attribute:
    """Return an attribute with its type after the functions of a query."""
    if attribute.name in query.each:
        return attribute
    for function in _functions(query, attribute.name):
        result = AGGREGATES[function].result
        if result == "int":
            attribute = Attribute(attribute.name, "int")
        elif isinstance(attribute, Unusable):
            continue
        elif attribute.kind in ("text", "bool"):
            reason = f"{function} of {attribute.kind} is not defined; only count is"
            attribute = Unusable(attribute.name, attribute.kind, reason=reason)
        elif result == "difference":
            attribute = DifferenceAttribute(attribute.name, "float", attribute.unit)
        elif result == "float":
            attribute = replace(attribute, kind="float")
    return attribute


def _functions(query: Query, name: str) -> Iterator[Function]:
    """Yield the functions applied to an attribute, in the order of evaluation."""
    for parameter in (query.time, query.location, query.status, query.topic):
        if isinstance(parameter, Aggregate):
            if isinstance(parameter.functions, str):
                yield parameter.functions
            elif name in dict(parameter.functions):
                yield dict(parameter.functions)[name]
