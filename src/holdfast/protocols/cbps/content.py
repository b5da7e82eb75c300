"""The content model: constraints, their conjunctions, and the set relations between these.

A subscription or advertisement is a *filter*: a box with a set of values in each of its fields.  A
notification is a filter in which every field has one value [B26], so one family of relations decides
everything: {subset, superset} of fields × {subset, superset, intersection} of the contents of the
common fields [B22].  Numbers compare by value: ``long`` is the whole numbers of 64 bits, ``double`` all
numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from hashlib import blake2b
from typing import Literal, NamedTuple, get_args

from ...errors import UsageError, did_you_mean
from .ranges import (
    EVERYTHING,
    LONG,
    TYPES,
    Range,
    Type,
    Value,
    Values,
    after,
    after_prefix,
    before,
    between,
    intersects,
    meet,
    only,
    subset,
    without,
)

Op = Literal["<", "<=", "=", ">=", ">", "!=", "any", "prefix"]
OPS: tuple[Op, ...] = get_args(Op)
Content = Mapping[str, Value]
"""What a notification says: a value for each name."""

Readings = Mapping[str, Value | None]
"""Content of which some may be missing: ``None``, or NaN."""

Box = Mapping[str, Values]
"""For each attribute that must be there, the values that it may have."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """What one attribute must be; ``any`` says only that it is there.  [B3, B4]"""

    name: str
    type: Type
    op: Op
    value: Value | None = None

    def __post_init__(self) -> None:
        if not self.name:
            raise UsageError("a constraint needs the name of an attribute")
        if self.type not in TYPES:
            raise _unknown(self.name, "type", self.type, TYPES)
        if self.op not in OPS:
            raise _unknown(self.name, "operator", self.op, OPS)
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
    def range(self) -> Range | None:
        """The values that satisfy it; for ``!=`` the values of its type, from which one is taken away."""
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


def _unknown(name: str, what: str, said: str, known: Iterable[str]) -> UsageError:
    hint = did_you_mean(said, known) or f"There is {', '.join(known)}."
    return UsageError(f"the constraint on '{name}' has an unknown {what} '{said}'. {hint}")


def _is_a(kind: Type, value: object) -> bool:
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
    """A conjunction of constraints: a box.  Several constraints on one attribute intersect.  [B2]"""

    constraints: tuple[Constraint, ...] = ()

    @cached_property
    def box(self) -> Box:
        """What it allows, attribute by attribute; ``!=`` leaves two ranges, and so is two boxes in one."""
        by_name = defaultdict[str, list[Constraint]](list)
        for constraint in self.constraints:
            by_name[constraint.name].append(constraint)
        return {name: allowed(constraints) for name, constraints in by_name.items()}

    @property
    def empty(self) -> bool:
        """Whether nothing can satisfy it."""
        return not all(self.box.values())

    @cached_property
    def digest(self) -> str:
        """Equal for filters that say the same in another order, at every broker.  [B44]"""
        said = sorted({(c.name, c.type, c.op, repr(c.value)) for c in self.constraints})
        return blake2b(repr(said).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def allowed(constraints: Iterable[Constraint]) -> Values:
    """The values that satisfy every one of some constraints on one attribute."""
    constraints = tuple(constraints)
    common: Range | None = reduce(
        lambda a, b: None if a is None or b is None else meet(a, b), (c.range for c in constraints)
    )
    excluded = [c.value for c in constraints if c.op == "!=" and c.value is not None]
    return () if common is None else without(common, excluded)


def satisfied(filter_: Filter, content: Readings) -> bool:
    """Whether a notification has every field of a filter, with a value that it allows.  [B8]"""
    return all(
        (value := content.get(name)) is not None and any(value in piece for piece in pieces)
        for name, pieces in filter_.box.items()
    )


def box_of(content: Readings) -> Box:
    """A notification as a box with one value in each field; a missing value is no field."""
    return {name: values for name, value in content.items() if value is not None and (values := only(value))}


# The relations

Fields = Literal["subset", "superset"]
Contents = Literal["subset", "superset", "intersection"]


class Relation(NamedTuple):
    """How a row item must lie to a column item: its fields, and its contents in the common fields."""

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
"""What an item is; deployment and express slips are slips of their type."""

MATCHES: Mapping[tuple[Kind, Kind], Relation] = {
    ("advertisement", "subscription"): Relation("superset", "intersection"),
    ("advertisement", "subscription slip"): Relation("superset", "intersection"),
    ("subscription", "advertisement"): Relation("subset", "intersection"),
    ("subscription", "notification slip"): Relation("subset", "superset"),
    ("subscription slip", "advertisement"): Relation("subset", "intersection"),
    ("notification", "subscription"): Relation("superset", "subset"),
    ("notification slip", "subscription"): Relation("superset", "subset"),
    ("context", "context filter"): Relation("superset", "subset"),
    ("context filter", "context"): Relation("subset", "superset"),
}
"""When a row item matches a stored column item; what is not here never does.  [B23, tables 6-2 to 6-5]"""

COVERED_BY: Mapping[Kind, Relation] = {
    "advertisement": Relation("subset", "subset"),
    "subscription": Relation("superset", "subset"),
}
"""When a row item is covered by a column item of its kind and source.  [B12]"""

COVERS: Mapping[Kind, Relation] = {
    "advertisement": Relation("superset", "superset"),
    "subscription": Relation("subset", "superset"),
}
"""When a row item covers a column item of its kind and source.  [B12]"""


def related(row: Box, column: Box, relation: Relation) -> bool:
    """Whether one box lies to another as a relation wants.  [B22]"""
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
    """Whether an item of one kind matches a stored one of another."""
    relation = MATCHES.get((row, column))
    return relation is not None and related(item.box, stored.box, relation)


def covers(kind: Kind, wide: Filter, narrow: Filter) -> bool:
    """Whether an item makes another one of its kind and source unnecessary."""
    return related(wide.box, narrow.box, COVERS[kind])
