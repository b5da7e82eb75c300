"""What covers all rows of a table: one condition without it, for whoever is far from the table.

While the cover does not hold, no row can: it starts wherever some row would start, and ends only where every
row would end and none would start.  So a publisher that has one bit for each scope need send nothing while
the bit is 0 and the reading does not set it; the exact match is made where the table is.  [E1, E12]
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..lang.app import App
from ..lang.condition import Condition
from ..lang.ops import (
    And,
    Compare,
    ComparisonSign,
    DeclareRegion,
    DeclareTopic,
    Expression,
    Name,
    Number,
    Or,
    Statement,
    Subscribe,
    Truth,
)
from ..lang.rewrite import both, either, names, negated
from ..lang.show import show
from ..machines.gate import Gate
from ..model.table import DEFAULT, Table
from ..model.topic import Topic
from . import scalar
from .columns import number

_MIRRORED: dict[str, ComparisonSign] = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True)
class Cover:
    """``condition`` holds wherever the one of some row does; what matters to some row while it holds
    satisfies its entrance or ``ends``."""

    condition: Condition
    ends: Expression


def covering(condition: Condition) -> Cover:
    """What covers all rows of the tables of a condition."""
    enter = _bounded(condition.enter, condition, some=True)
    every = _bounded(condition.exit, condition, some=False) if _has_a_row(condition) else Truth(False)
    exit = condition.exit if condition.momentary else both(every, negated(enter))
    cover = replace(condition, enter=enter, exit=exit, tables=())
    return Cover(cover, _bounded(condition.exit, condition, some=True))


def noticed(condition: Condition) -> tuple[Expression, ...]:
    """Predicates of which one holds of every event that matters to some row."""
    if not condition.tables:
        return (condition.enter,) if condition.momentary else (condition.enter, condition.exit)
    cover = covering(condition)
    return (cover.condition.enter,) if condition.momentary else (cover.condition.enter, cover.ends)


def gate(cover: Cover) -> Gate:
    """The cover at work, where events are born."""
    one = cover.condition
    enter, leave, ends = (scalar.predicate(op, one.topic) for op in (one.enter, one.exit, cover.ends))
    return Gate(enter, leave, ends, scalar.chain(one), one.momentary)


def in_writing(statements: Iterable[Statement], condition: Condition) -> str:
    """The cover of a condition among statements, as a definition of its own: a state, and a filter of what
    passes while it holds."""
    cover, name, topic = covering(condition), condition.name, condition.topic
    (said,) = (s for s in statements if isinstance(s, Subscribe) and s.name == name)
    state = replace(said, topic=topic.name, enter=cover.condition.enter, exit=cover.condition.exit)
    regions = (s for s in statements if isinstance(s, DeclareRegion))
    ends = () if condition.momentary else (passing(name, topic, cover.ends),)
    return show(App([DeclareTopic(topic), *regions, state, *ends]))


def passing(name: str, topic: Topic, ends: Expression) -> Subscribe:
    """The filter of a gate: what it lets pass while it is open."""
    return Subscribe(f"{name}_ends", topic.name, ends, Truth(True))


def _has_a_row(condition: Condition) -> bool:
    """Whether all events of an innermost scope that holds have a row: that of the scope, or the default.
    One without ends nothing, whatever its values."""
    inner: Collection[str] = condition.keys[0] if condition.keys else ()
    return all(set(table.by) <= set(inner) or _has_default(table) for table in condition.tables)


def _has_default(table: Table) -> bool:
    stars: Sequence[Any] = [pc.equal(key, DEFAULT) for key in table.keys]
    whole = stars[0]
    for star in stars[1:]:
        whole = pc.and_(whole, star)
    return bool(pc.any(whole).as_py())


def _bounded(op: Expression, condition: Condition, *, some: bool) -> Expression:
    """A predicate that holds if ``op`` does for some row; or only if it does for every row."""
    if not _looks_up(op):
        return op
    match op:
        case And(left, right):
            return both(_bounded(left, condition, some=some), _bounded(right, condition, some=some))
        case Or(left, right):
            return either(_bounded(left, condition, some=some), _bounded(right, condition, some=some))
        case Compare(sign, left, right) if not _looks_up(right):
            return _compared(_MIRRORED[sign], right, _column(left, condition), some)
        case Compare(sign, left, right) if not _looks_up(left):
            return _compared(sign, left, _column(right, condition), some)
        case _:
            return Truth(some)


def _looks_up(op: Expression) -> bool:
    return any("." in name for name in names(op))


def _column(op: Expression, condition: Condition) -> Any:
    """What an expression is in each row of the one table that it names; ``None`` if it needs more than that,
    or nobody can say it exactly."""
    used = set(names(op))
    for table in condition.tables:
        columns = dict(zip((a.name for a in table.attributes), table.data, strict=True))
        if used <= columns.keys():
            if isinstance(op, Name):
                return columns[op.name]
            if scalar.kind(op, condition.looked) == "float":
                rows = pa.RecordBatch.from_pydict({name: columns[name] for name in used})
                return pa.array(number(op, condition.looked)(rows))
    return None


def _compared(sign: ComparisonSign, left: Expression, column: Any, some: bool) -> Expression:
    """``left`` compared with the values of a column."""
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
