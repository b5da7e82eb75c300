"""Covers: conditions without tables that are active wherever the condition of some row of the tables is
active.

The cover starts wherever the condition of some row would start. It ends only where every row would end and
none would start. A publisher without the table stores one bit per scope and, while the bit is 0, sends only
the readings that set it. The exact condition is evaluated where the table is available.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ...engine.gate import Gate
from ...lang.expressions import event as scalar
from ...lang.expressions.batch import number
from ...lang.ops import (
    And,
    Compare,
    ComparisonSign,
    Expression,
    Name,
    Number,
    Or,
    Truth,
)
from ...lang.rewrite import both, either, names, negate
from ...model.table import DEFAULT, Table
from .condition import StateCondition

_MIRRORED: dict[str, ComparisonSign] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True)
class Cover:
    """The cover of a condition with tables.

    ``condition`` is active wherever the condition of some row is active. Readings that are relevant to some
    row while it is active satisfy its entrance or ``ends``.
    """

    condition: StateCondition
    ends: Expression


def covering(condition: StateCondition) -> Cover:
    """Return the cover of all rows of a condition's tables."""
    enter = _bound(condition.enter, condition, some=True)
    inner: Collection[str] = condition.keys[0] if condition.keys else ()
    has_rows = all(set(table.by) <= set(inner) or _has_default(table) for table in condition.tables)
    # An event without a row ends no scope. If each event has a row, it is the row of its scope or a default.
    every = _bound(condition.exit, condition, some=False) if has_rows else Truth(False)
    exit = condition.exit if condition.momentary else both(every, negate(enter))
    cover = replace(condition, enter=enter, exit=exit, tables=())
    return Cover(cover, _bound(condition.exit, condition, some=True))


def relevant_predicates(condition: StateCondition) -> tuple[Expression, ...]:
    """Return predicates of which at least one is true for every event that is relevant to some row."""
    if not condition.tables:
        return (condition.enter,) if condition.momentary else (condition.enter, condition.exit)
    cover = covering(condition)
    return (cover.condition.enter,) if condition.momentary else (cover.condition.enter, cover.ends)


def gate(cover: Cover) -> Gate:
    """Return the gate with which a publisher evaluates a cover."""
    condition = cover.condition
    predicates = condition.enter, condition.exit, cover.ends
    enter, leave, ends = (scalar.predicate(op, condition.topic) for op in predicates)
    return Gate(enter, leave, ends, scalar.chain(condition.keys, condition.forest), condition.momentary)


def _has_default(table: Table) -> bool:
    """Whether a table has a default row."""
    is_default = reduce(pc.and_, (pc.equal(key, DEFAULT) for key in table.keys))
    return bool(pc.any(is_default).as_py())


def _bound(op: Expression, condition: StateCondition, *, some: bool) -> Expression:
    """Return a predicate that is true if ``op`` is true for some row.

    With ``some=False``, return a predicate that is true only if ``op`` is true for every row.
    """
    if not _looks_up(op):
        return op
    match op:
        case And(left, right):
            return both(_bound(left, condition, some=some), _bound(right, condition, some=some))
        case Or(left, right):
            return either(_bound(left, condition, some=some), _bound(right, condition, some=some))
        case Compare(sign, left, right) if not _looks_up(right):
            return _compare_with_column(_MIRRORED[sign], right, _column(left, condition), some)
        case Compare(sign, left, right) if not _looks_up(left):
            return _compare_with_column(sign, left, _column(right, condition), some)
        case _:
            return Truth(some)


def _looks_up(op: Expression) -> bool:
    """Whether an expression names a column of a table."""
    return any("." in name for name in names(op))


def _column(op: Expression, condition: StateCondition) -> Any:
    """Return the values of an expression in the rows of the only table that it names.

    Return ``None`` if the expression uses other columns too, or if it is not exact.
    """
    used = set(names(op))
    for table in condition.tables:
        columns = dict(zip((a.name for a in table.attributes), table.data, strict=True))
        if used <= columns.keys():
            if isinstance(op, Name):
                return columns[op.name]
            if scalar.kind(op, condition.topic_with_rows) == "float":
                rows = pa.RecordBatch.from_pydict({name: columns[name] for name in used})
                return pa.array(number(op, condition.topic_with_rows)(rows))
    return None


def _compare_with_column(sign: ComparisonSign, left: Expression, column: Any, some: bool) -> Expression:
    """Return a comparison of ``left`` with the least or greatest value of a column.

    The result is true wherever the comparison is true for some row. With ``some=False`` it is true only where
    the comparison is true for every row.
    """
    if column is None or not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        return Truth(some)
    known = column.filter(pc.fill_null(pc.equal(column, column), False))  # neither missing nor NaN
    if not pc.all(pc.is_finite(known), min_count=0).as_py():
        return Truth(some)
    if not len(known) or (not some and len(known) < len(column)):
        return Truth(False)
    least, most = (Number(end.as_py()) for end in pc.min_max(known).values())
    if sign in (">", ">="):
        return Compare(sign, left, least if some else most)
    if sign in ("<", "<="):
        return Compare(sign, left, most if some else least)
    if sign == "==":
        inside = both(Compare(">=", left, least), Compare("<=", left, most))
        return inside if some or least == most else Truth(False)
    outside = either(Compare("<", left, least), Compare(">", left, most))
    return Truth(True) if some and least != most else outside
