"""States with tables, specialised for one row: the values of the row replace the columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from math import isinf

from ...lang.expressions import event as scalar
from ...lang.expressions.tables import rows_of
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
from ...lang.rewrite import absolute, both, compare, compute, either, names, negative
from ...model.event import Value
from ...model.guard import Hold
from ...model.topic import Topic
from .condition import AnyState, DurationCondition
from .duration.machine import LONGEST

Row = tuple[tuple[str, Value], ...]
"""The columns of the tables of a state, with their values for one scope."""


def row_of(condition: AnyState) -> Callable[[str], Row | None]:
    """Return a function that returns the row of a scope, given its key.

    The function returns ``None`` if events of one scope may have different rows.
    """
    if any(condition.keys != (table.by,) for table in condition.tables):
        return lambda _key: None
    rows = [rows_of(table) for table in condition.tables]
    return lambda key: tuple(
        (name, None if value != value else value)  # NaN is missing
        for row in rows
        for name, value in row.of_key(key).items()
    )


def is_bounded(row: Row) -> bool:
    """Whether no number in a row is infinite. Predicates over infinite numbers are not analysed."""
    return not any(isinstance(value, float) and isinf(value) for _, value in row)


@lru_cache(maxsize=1_024)
def with_row(condition: DurationCondition, row: Row) -> DurationCondition:
    """Return the state of a scope with a given row."""
    values, topic = dict(row), condition.topic_with_rows
    enter, exit = (_held(hold, values) for hold in (condition.care.enter, condition.care.exit))
    return replace(
        condition,
        enter=_substitute(condition.enter, values, topic),
        exit=_substitute(condition.exit, values, topic),
        care=replace(condition.care, enter=enter, exit=exit),
        tables=(),
    )


def _held(hold: Hold, values: Mapping[str, Value]) -> Hold:
    """Return a minimum duration with the length that its column has in a row."""
    if hold.column is None:
        return hold
    length = values[hold.column]
    return Hold(LONGEST if length is None else min(int(length), LONGEST))


def _substitute(op: Expression, values: Mapping[str, Value], topic: Topic) -> Expression:
    """Replace names by values in a core predicate. A comparison with a missing value becomes false."""
    match op:
        case And(left, right):
            return both(_substitute(left, values, topic), _substitute(right, values, topic))
        case Or(left, right):
            return either(_substitute(left, values, topic), _substitute(right, values, topic))
        case _ if any(name in values and values[name] is None for name in names(op)):
            return Truth(False)
        case Name(name) if name in values:
            return Truth(bool(values[name]))
        case Not(Name(name)) if name in values:
            return Truth(not values[name])
        case Compare(sign, left, right):
            return compare(sign, _put(left, values, topic), _put(right, values, topic))
        case _:
            return op


def _put(op: Expression, values: Mapping[str, Value], topic: Topic) -> Expression:
    """Replace names by values in a computed expression."""
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
            return compute(sign, _put(left, values, topic), _put(right, values, topic), whole=whole)
        case _:
            return op
