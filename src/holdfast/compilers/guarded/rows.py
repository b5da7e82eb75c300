"""A state with a table as one scope of it knows it: with the values of its row in the place of columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from math import isinf

from ...lang.condition import Condition, Guarded
from ...lang.ops import (
    Absolute,
    And,
    Arithmetic,
    Compare,
    Expression,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Text,
    Truth,
)
from ...lang.rewrite import absolute, both, compared, computed, either, names, negative
from ...machines.guard.machine import LONGEST
from ...model.event import Value
from ...model.guard import Hold
from ...model.topic import Topic
from .. import scalar
from ..tables import looked_up

State = Condition | Guarded
Row = tuple[tuple[str, Value], ...]
"""The columns of the tables of a state, and what a scope has there."""


def row_of(one: State) -> Callable[[str], Row | None]:
    """The row of each scope, by its key; nothing where events of a scope may have several."""
    if any(one.keys != (table.by,) for table in one.tables):
        return lambda _key: None
    rows = [looked_up(table) for table in one.tables]
    return lambda key: tuple(
        (name, None if value != value else value)  # NaN is missing
        for some in rows
        for name, value in some.of_key(key).items()
    )


def is_bounded(row: Row) -> bool:
    """Whether one can reason about a row: no number in it is infinite."""
    return not any(isinstance(value, float) and isinf(value) for _, value in row)


@lru_cache(maxsize=1_024)
def with_row(one: Guarded, row: Row) -> Guarded:
    """The state of a scope that has a row."""
    values, topic = dict(row), one.looked
    care = replace(one.care, enter=_held(one.care.enter, values), exit=_held(one.care.exit, values))
    return replace(
        one,
        enter=_given(one.enter, values, topic),
        exit=_given(one.exit, values, topic),
        care=care,
        tables=(),
    )


def _held(hold: Hold, values: Mapping[str, Value]) -> Hold:
    if hold.column is None:
        return hold
    length = values[hold.column]
    return Hold(LONGEST if length is None else min(int(length), LONGEST))


def _given(op: Expression, values: Mapping[str, Value], topic: Topic) -> Expression:
    """A core predicate in which some names have values; a comparison with what is missing never holds."""
    match op:
        case And(left, right):
            return both(_given(left, values, topic), _given(right, values, topic))
        case Or(left, right):
            return either(_given(left, values, topic), _given(right, values, topic))
        case _ if any(name in values and values[name] is None for name in names(op)):
            return Truth(False)
        case Name(name) if name in values:
            return Truth(bool(values[name]))
        case Not(Name(name)) if name in values:
            return Truth(not values[name])
        case Compare(sign, left, right):
            return compared(sign, _put(left, values, topic), _put(right, values, topic))
        case _:
            return op


def _put(op: Expression, values: Mapping[str, Value], topic: Topic) -> Expression:
    """What is computed, with the values that are known."""
    match op:
        case Name(name) if name in values:
            value = values[name]
            return Text(value) if isinstance(value, str) else Number(value)  # type: ignore[arg-type]
        case Negative(arg):
            return negative(_put(arg, values, topic))
        case Absolute(arg):
            return absolute(_put(arg, values, topic))
        case Arithmetic(sign, left, right):
            whole = scalar.kind(op, topic) == "int"
            return computed(sign, _put(left, values, topic), _put(right, values, topic), whole=whole)
        case _:
            return op
