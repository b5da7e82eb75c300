"""The content model: constraints, their conjunctions, and set relations between them.

A subscription or advertisement is a *filter*: a box with a set of values in each of its fields. A
notification is a filter in which every field has one value [B26]. Therefore one family of relations decides
all matches: {subset, superset} of fields × {subset, superset, intersection} of the contents of the common
fields [B22]. Numbers compare by value: ``long`` contains the integers of 64 bits, ``double`` all numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from hashlib import blake2b
from typing import Literal, NamedTuple, get_args

from ....errors import UsageError, did_you_mean
from .ranges import (
    EVERYTHING,
    LONG,
    TYPES,
    Type,
    Value,
    ValueRange,
    Values,
    after,
    after_prefix,
    before,
    between,
    intersection,
    intersects,
    single_value,
    subset,
    without,
)

Op = Literal["<", "<=", "=", ">=", ">", "!=", "any", "prefix"]
OPS: tuple[Op, ...] = get_args(Op)
Content = Mapping[str, Value]
"""The content of a notification: a value for each name."""

Readings = Mapping[str, Value | None]
"""Content in which values may be missing: ``None``, or NaN."""

Box = Mapping[str, Values]
"""For each required attribute, the values that it may have."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint on one attribute; ``any`` requires only that it is present.  [B3, B4]"""

    name: str
    type: Type
    op: Op
    value: Value | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise UsageError("a constraint needs the name of an attribute")
        if self.type not in TYPES:
            raise _unknown_word(self.name, "type", self.type, TYPES)
        if self.op not in OPS:
            raise _unknown_word(self.name, "operator", self.op, OPS)
        if self.op == "prefix" and self.type != "text":
            raise UsageError(f"the constraint on '{self.name}': only a text has a prefix, not a {self.type}")
        if self.op == "any":
            if self.value is not None:
                raise UsageError(f"the constraint on '{self.name}': 'any' takes no value, not {self.value!r}")
        elif not _is_a(self.type, self.value):
            raise UsageError(f"the constraint on '{self.name}': {self.value!r} is not a {self.type}")
        elif self.type == "double":
            object.__setattr__(self, "value", float(self.value or 0))

    @property
    def range(self) -> ValueRange | None:
        """The range of values that satisfy the constraint. For ``!=`` it contains all values of the type,
        from which the caller excludes one value.
        """
        everything = EVERYTHING[self.type]
        if self.value is None:
            return everything
        below, above = before(self.type, self.value), after(self.type, self.value)
        match self.op:
            case "<":
                return between(self.type, everything.low, below)
            case "<=":
                return between(self.type, everything.low, above)
            case "=":
                return between(self.type, below, above)
            case ">=":
                return between(self.type, below, everything.high)
            case ">":
                return between(self.type, above, everything.high)
            case "prefix":
                return between(self.type, below, after_prefix(str(self.value)))
            case "!=" | "any":
                return everything


def _unknown_word(name: str, name_of_part: str, word: str, known: Iterable[str]) -> UsageError:
    hint = did_you_mean(word, known) or f"There is {', '.join(known)}."
    return UsageError(f"the constraint on '{name}' has an unknown {name_of_part} '{word}'. {hint}")


def _is_a(kind: Type, value: object) -> bool:
    """Return whether a value belongs to a type of the content model."""
    match kind, value:
        case "bool", bool():
            return True
        case _, bool():
            return False
        case "long", int():
            return value in LONG
        case "double", int():
            return value in LONG and float(value) == value
        case "double", float():
            return value == value
        case "text", str():
            return True
    return False


@dataclass(frozen=True)
class Filter:
    """A conjunction of constraints: a box. Constraints on the same attribute intersect. [B2]"""

    constraints: tuple[Constraint, ...] = ()

    @cached_property
    def box(self) -> Box:
        """The allowed values of each attribute; ``!=`` gives two ranges."""
        by_name = defaultdict[str, list[Constraint]](list)
        for constraint in self.constraints:
            by_name[constraint.name].append(constraint)
        return {name: allowed_values(constraints) for name, constraints in by_name.items()}

    @property
    def is_empty(self) -> bool:
        """Return whether no content can satisfy the filter."""
        return not all(self.box.values())

    @cached_property
    def digest(self) -> str:
        """A digest that is equal at every broker for filters with the same constraints in any order. [B44]"""
        parts = sorted({(c.name, c.type, c.op, repr(c.value)) for c in self.constraints})
        return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def allowed_values(constraints: Iterable[Constraint]) -> Values:
    """Return the values that satisfy every constraint on one attribute."""
    constraints = tuple(constraints)
    common: ValueRange | None = reduce(
        lambda a, b: None if a is None or b is None else intersection(a, b), (c.range for c in constraints)
    )
    excluded = [c.value for c in constraints if c.op == "!=" and c.value is not None]
    return () if common is None else without(common, excluded)


def satisfies(filter_: Filter, content: Readings) -> bool:
    """Return whether a notification has every field of a filter, with a value that the filter allows. [B8]"""
    return all(
        (value := content.get(name)) is not None and any(value in piece for piece in pieces)
        for name, pieces in filter_.box.items()
    )


def box_of(content: Readings) -> Box:
    """Return a notification as a box with one value in each field; missing values are left out."""
    known = {name: single_value(value) for name, value in content.items() if value is not None}
    return {name: values for name, values in known.items() if values}


# The relations

Fields = Literal["subset", "superset"]
Contents = Literal["subset", "superset", "intersection"]


class BoxRelation(NamedTuple):
    """The required relation of a row item to a column item: of their fields, and of the contents of common
    fields.
    """

    fields: Fields
    contents: Contents


Kind = Literal[
    "advertisement",
    "subscription",
    "subscription slip",
    "notification",
    "notification slip",
    "context",
    "context filter",
]
"""The kind of an item. Deployment slips and express slips have the kind of their type."""

MATCHES: Mapping[tuple[Kind, Kind], BoxRelation] = {
    ("advertisement", "subscription"): BoxRelation("superset", "intersection"),
    ("advertisement", "subscription slip"): BoxRelation("superset", "intersection"),
    ("subscription", "advertisement"): BoxRelation("subset", "intersection"),
    ("subscription", "notification slip"): BoxRelation("subset", "superset"),
    ("subscription slip", "advertisement"): BoxRelation("subset", "intersection"),
    ("notification", "subscription"): BoxRelation("superset", "subset"),
    ("notification slip", "subscription"): BoxRelation("superset", "subset"),
    ("context", "context filter"): BoxRelation("superset", "subset"),
    ("context filter", "context"): BoxRelation("subset", "superset"),
}
"""The relation in which a row item matches a stored column item. Pairs that are not listed never match. [B23,
tables 6-2 to 6-5]
"""

COVERED_BY: Mapping[Kind, BoxRelation] = {
    "advertisement": BoxRelation("subset", "subset"),
    "subscription": BoxRelation("superset", "subset"),
}
"""The relation in which a column item of the same kind and source covers a row item. [B12]"""

COVERS: Mapping[Kind, BoxRelation] = {
    "advertisement": BoxRelation("superset", "superset"),
    "subscription": BoxRelation("subset", "superset"),
}
"""The relation in which a row item covers a column item of the same kind and source. [B12]"""


def is_related(row: Box, column: Box, relation: BoxRelation) -> bool:
    """Return whether two boxes are in a relation. [B22]"""
    few, many = (row, column) if relation.fields == "subset" else (column, row)
    if not few.keys() <= many.keys():
        return False
    match relation.contents:
        case "subset":
            return all(subset(row[name], column[name]) for name in few)
        case "superset":
            return all(subset(column[name], row[name]) for name in few)
        case "intersection":
            return all(intersects(row[name], column[name]) for name in few)


def matches(row: Kind, item: Filter, column: Kind, stored: Filter) -> bool:
    """Return whether an item of one kind matches a stored item of another kind."""
    relation = MATCHES.get((row, column))
    return relation is not None and is_related(item.box, stored.box, relation)


def covers(kind: Kind, wide: Filter, narrow: Filter) -> bool:
    """Return whether the item ``wide`` makes the item ``narrow`` of the same kind and source unnecessary."""
    return is_related(wide.box, narrow.box, COVERS[kind])
