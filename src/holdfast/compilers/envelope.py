"""What covers all rows of a table: one condition without it, for whoever is far from the table.

While the cover does not hold, no row can: it starts wherever some row would start, and ends only where every
row would end and none would start.  So a publisher that has one bit for each scope need send nothing while
the bit is 0 and the reading does not set it; the exact match is made where the table is.  [E1, E12]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..lang.condition import Condition
from ..lang.ops import And, Compare, ComparisonSign, Expression, Name, Number, Or, Truth
from ..lang.rewrite import both, either, names, negated
from ..model.event import Event
from . import scalar

_MIRRORED: dict[str, ComparisonSign] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def covering(condition: Condition) -> Condition:
    """The condition that holds wherever the one of some row does."""
    values = {
        attribute.name: column
        for table in condition.tables
        for attribute, column in zip(table.attributes, table.data, strict=True)
    }
    enter = _bounded(condition.enter, values, some=True)
    exit = _bounded(condition.exit, values, some=False)
    return replace(condition, enter=enter, exit=both(exit, negated(enter)), tables=())


def passing(cover: Condition, events: Iterable[Event]) -> Iterator[Event]:
    """The events that a publisher sends that knows the cover alone: those while it holds, and what starts
    and ends it."""
    enter, leave = (scalar.predicate(op, cover.topic) for op in (cover.enter, cover.exit))
    chain: Callable[[Event], Any] = scalar.chain(cover)
    holding: set[str] = set()
    for event in events:
        keys = chain(event)
        if keys is None:
            continue
        if keys[-1] in holding:
            yield event
            if leave(event):
                holding.discard(keys[-1])
        elif enter(event):
            yield event
            holding.add(keys[-1])


def _bounded(op: Expression, values: dict[str, Any], *, some: bool) -> Expression:
    """A predicate that holds if ``op`` does for some row; or only if it does for every row."""
    if not any(name in values for name in names(op)):
        return op
    match op:
        case And(left, right):
            return both(_bounded(left, values, some=some), _bounded(right, values, some=some))
        case Or(left, right):
            return either(_bounded(left, values, some=some), _bounded(right, values, some=some))
        case Compare(sign, Name(name), other) if name in values and not _looks_up(other, values):
            return _compared(_MIRRORED[sign], other, values[name], some)
        case Compare(sign, other, Name(name)) if name in values and not _looks_up(other, values):
            return _compared(sign, other, values[name], some)
        case _:
            return Truth(some)


def _looks_up(op: Expression, values: dict[str, Any]) -> bool:
    return any(name in values for name in names(op))


def _compared(sign: ComparisonSign, left: Expression, column: Any, some: bool) -> Expression:
    """``left`` compared with the values of a column."""
    if not pa.types.is_floating(column.type) and not pa.types.is_integer(column.type):
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
