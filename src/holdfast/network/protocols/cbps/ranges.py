"""Exact sets of values of one attribute.

A *cut* lies between two values, and a range contains the values between two cuts. Ranges have a normal form,
so that equal sets are equal ranges. A range of integers begins and ends with an integer. A text cut lies
before a text (the text after ``s`` is ``s + "\\0"``). Doubles are treated as real numbers, so a range may
count as non-empty although it contains no float. Routing then sends a message too many, never one too few.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

Type = Literal["long", "double", "text", "bool"]
TYPES: tuple[Type, ...] = get_args(Type)
Value = int | float | str | bool
Cut = tuple[Any, Any]
"""The position of a cut. For numbers: a number, and whether the cut comes after it. For texts: 0 and the text
after the cut, or ``(1, "")`` for the end.
"""

Line = Literal["number", "text", "bool"]
"""A set of comparable values; values of different lines are never related."""

LINE: Mapping[Type, Line] = {"long": "number", "double": "number", "text": "text", "bool": "bool"}

LONG = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The values of a type between two cuts; never empty."""

    type: Type
    low: Cut
    high: Cut

    def __contains__(self, value: Value | Fraction) -> bool:
        if LINE[self.type] != line_of(value):
            return False
        if self.type == "text":
            return self.low <= (0, value) < self.high
        if self.type == "long" and value % 1 != 0:
            return False
        return self.low <= (value, 0) and (value, 1) <= self.high

    @property
    def is_one(self) -> bool:
        """Whether the range contains a single value."""
        if self.type == "text":
            return self.high == (0, f"{self.low[1]}\0")
        return bool(self.low[0] == self.high[0])


Values = tuple[ValueRange, ...]
"""A set of values: disjoint ranges of one type, in order; the empty tuple is the empty set."""


EVERYTHING: Mapping[Type, ValueRange] = {
    "long": ValueRange("long", (LONG[0], 0), (LONG[-1], 1)),
    "double": ValueRange("double", (-math.inf, 0), (math.inf, 1)),
    "text": ValueRange("text", (0, ""), (1, "")),
    "bool": ValueRange("bool", (False, 0), (True, 1)),
}


def line(values: Values) -> Line:
    """Return the line of a non-empty set of values."""
    return LINE[values[0].type]


def before(kind: Type, value: Value) -> Cut:
    """Return the cut just below a value."""
    return (0, value) if kind == "text" else (value, 0)


def after(kind: Type, value: Value) -> Cut:
    """Return the cut just above a value."""
    return (0, f"{value}\0") if kind == "text" else (value, 1)


def after_prefix(prefix: str) -> Cut:
    """Return the cut above every text with a prefix."""
    stem = prefix.rstrip(chr(sys.maxunicode))
    return (0, stem[:-1] + chr(ord(stem[-1]) + 1)) if stem else (1, "")


def between(kind: Type, low: Cut, high: Cut) -> ValueRange | None:
    """Return the range between two cuts in normal form, or ``None`` if it is empty."""
    if kind in ("long", "bool"):
        return _integer_range(kind, low, high)
    if low >= high:
        return None
    if kind == "double" and low[0] == high[0] and low[0] in EVERYTHING["long"]:
        return ValueRange("long", (int(low[0]), 0), (int(low[0]), 1))
    return ValueRange(kind, low, high)


def _integer_range(kind: Type, low: Cut, high: Cut) -> ValueRange | None:
    """Return the range of integers or booleans between two cuts, or ``None`` if it is empty."""
    everything = EVERYTHING[kind]
    (begin, above), (end, below) = max(low, everything.low), min(high, everything.high)
    if begin > end:
        return None
    first = math.floor(begin) + 1 if above else math.ceil(begin)
    last = math.floor(end) if below else math.ceil(end) - 1
    if first > last:
        return None
    convert = bool if kind == "bool" else int
    return ValueRange(kind, (convert(first), 0), (convert(last), 1))


def single_value(value: Value) -> Values:
    """Return the set with one value; the empty set if it is missing (NaN)."""
    kind = type_of(value)
    found = between(kind, before(kind, value), after(kind, value)) if value == value else None
    return () if found is None else (found,)


def line_of(value: object) -> Line:
    """Return the line of comparable values to which a value belongs."""
    match value:
        case bool():
            return "bool"
        case str():
            return "text"
    return "number"


def type_of(value: Value) -> Type:
    """Return the type of a value.

    >>> [type_of(v) for v in (1, 1.0, "a", True)]
    ['long', 'double', 'text', 'bool']
    """
    match value:
        case bool():
            return "bool"
        case int() if value in LONG:
            return "long"
        case int() | float():
            return "double"
    return "text"


def without(range_: ValueRange, points: Iterable[Value]) -> Values:
    """Return a range without the given points of its type."""
    pieces, low = [], range_.low
    for point in sorted({point for point in points if point in range_}):
        pieces.append(between(range_.type, low, before(range_.type, point)))
        low = after(range_.type, point)
    pieces.append(between(range_.type, low, range_.high))
    return tuple(piece for piece in pieces if piece is not None)


def intersection(a: ValueRange, b: ValueRange) -> ValueRange | None:
    """Return the intersection of two ranges, or ``None`` if it is empty."""
    if not _comparable(a, b):
        return None
    return between(a.type if a.type == b.type else "long", max(a.low, b.low), min(a.high, b.high))


def subset(a: Values, b: Values) -> bool:
    """Whether every value of the first set is in the second."""
    if len(a) == len(b) == 1:
        (narrow,), (wide,) = a, b
        return _includes_type(wide, narrow) and wide.low <= narrow.low and narrow.high <= wide.high
    first = 0
    for piece in a:
        while first < len(b) and not _reaches(b[first], piece):
            first += 1
        low = piece.low
        for wide in b[first:]:
            if not _includes_type(wide, piece) or low >= piece.high:
                break
            if between(piece.type, low, min(piece.high, wide.low)) is not None:
                return False
            low = max(low, wide.high)
        if between(piece.type, low, piece.high) is not None:
            return False
    return True


def intersects(a: Values, b: Values) -> bool:
    """Whether two sets have a value in common."""
    i = j = 0
    while i < len(a) and j < len(b):
        if not _comparable(a[i], b[j]):
            return False
        if intersection(a[i], b[j]) is not None:
            return True
        if a[i].high <= b[j].high:
            i += 1
        else:
            j += 1
    return False


def _comparable(a: ValueRange, b: ValueRange) -> bool:
    return LINE[a.type] == LINE[b.type]


def _includes_type(wide: ValueRange, narrow: ValueRange) -> bool:
    return wide.type == narrow.type or (wide.type, narrow.type) == ("double", "long")


def _reaches(a: ValueRange, b: ValueRange) -> bool:
    return not _comparable(a, b) or a.high > b.low
