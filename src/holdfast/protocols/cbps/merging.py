"""Merging of filters as in the study: two that differ in one attribute, and overlap there, are one.

Exact: the merged filter is satisfied by what satisfies one of the two.  [Fulcrum, §3.4.6; T4]
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from .content import Constraint, Filter, Op
from .ranges import EVERYTHING, Cut, Range, Type, Value, Values, after, between, intersects


def merge(a: Filter, b: Filter) -> Filter | None:
    """One filter in place of two, or nothing if they are not so alike."""
    if a.box.keys() != b.box.keys():
        return None
    different = [name for name in a.box if a.box[name] != b.box[name]]
    if not different:
        return a
    name, *others = different
    if others or not intersects(a.box[name], b.box[name]):
        return None
    united = union(a.box[name], b.box[name])
    if united is None:
        return None
    kept = tuple(constraint for constraint in a.constraints if constraint.name != name)
    return Filter((*kept, *constraints(name, united)))


def union(a: Values, b: Values) -> Values | None:
    """The values of either of two sets, or nothing if they are of different types."""
    pieces = sorted({*a, *b}, key=lambda piece: (piece.low, piece.high))
    if len({piece.type for piece in pieces}) > 1:
        return None
    united = pieces[:1]
    for piece in pieces[1:]:
        last = united[-1]
        if between(piece.type, last.high, piece.low) is None:
            united[-1] = Range(last.type, last.low, max(last.high, piece.high))
        else:
            united.append(piece)
    return tuple(united)


def constraints(name: str, values: Values) -> Iterator[Constraint]:
    """The constraints that allow these values: a range without some points."""
    kind = values[0].type
    first, last = values[0].low, values[-1].high
    if (first, last) == (EVERYTHING[kind].low, EVERYTHING[kind].high):
        yield Constraint(name, kind, "any")
    if first != EVERYTHING[kind].low:
        yield _bound(name, kind, first, (">=", ">"))
    if last != EVERYTHING[kind].high:
        yield _bound(name, kind, last, ("<", "<="))
    for piece, following in pairwise(values):
        for point in _between(kind, piece.high, following.low):
            yield Constraint(name, kind, "!=", point)


def _bound(name: str, kind: Type, cut: Cut, ops: tuple[Op, Op]) -> Constraint:
    """What a cut says: the one operator if it comes before its value, the other if it comes after."""
    if kind != "text":
        return Constraint(name, kind, ops[cut[1]], cut[0])
    text = cut[1]
    return Constraint(name, kind, ops[text.endswith("\0")], text.removesuffix("\0"))


def _between(kind: Type, low: Cut, high: Cut) -> Iterator[Value]:
    """The few values between two cuts."""
    while (gap := between(kind, low, high)) is not None:
        point = gap.low[1] if kind == "text" else gap.low[0]
        assert point in gap, "ranges that are further apart than some points are not one range"
        yield point
        low = after(kind, point)
