"""Sets of values of one attribute, exactly.

A *cut* lies between two values.  A range is what lies between two cuts, in a normal form, so that
equal sets are equal ranges: whole numbers begin and end with a number, and a text cut lies before a
text (the text after ``s`` is ``s + "\\0"``).  Doubles are treated as the reals, so a range may be
called non-empty though no float lies in it: routing then sends once too often, never too seldom.
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
"""A number and whether the cut comes after it; or 0 and the text it comes before; or ``(1, "")``, the end."""

Line = Literal["number", "text", "bool"]
"""What values can be compared with: values of another line are never related."""

LINE: Mapping[Type, Line] = {"long": "number", "double": "number", "text": "text", "bool": "bool"}

LONG = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Range:
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
        """Whether it holds a single value."""
        if self.type == "text":
            return self.high == (0, f"{self.low[1]}\0")
        return bool(self.low[0] == self.high[0])


Values = tuple[Range, ...]
"""A set of values: disjoint ranges of one type, in order; none is the empty set."""


EVERYTHING: Mapping[Type, Range] = {
    "long": Range("long", (LONG[0], 0), (LONG[-1], 1)),
    "double": Range("double", (-math.inf, 0), (math.inf, 1)),
    "text": Range("text", (0, ""), (1, "")),
    "bool": Range("bool", (False, 0), (True, 1)),
}


def line(values: Values) -> Line:
    """With what the values of a set that is not empty can be compared."""
    return LINE[values[0].type]


def before(kind: Type, value: Value) -> Cut:
    """The cut just below a value."""
    return (0, value) if kind == "text" else (value, 0)


def after(kind: Type, value: Value) -> Cut:
    """The cut just above a value."""
    return (0, f"{value}\0") if kind == "text" else (value, 1)


def after_prefix(prefix: str) -> Cut:
    """The cut above every text that begins so."""
    stem = prefix.rstrip(chr(sys.maxunicode))
    return (0, stem[:-1] + chr(ord(stem[-1]) + 1)) if stem else (1, "")


def between(kind: Type, low: Cut, high: Cut) -> Range | None:
    """The range between two cuts in normal form, or nothing if it is empty."""
    if kind in ("long", "bool"):
        return _whole(kind, low, high)
    if low >= high:
        return None
    if kind == "double" and low[0] == high[0] and low[0] in EVERYTHING["long"]:
        return Range("long", (int(low[0]), 0), (int(low[0]), 1))
    return Range(kind, low, high)


def _whole(kind: Type, low: Cut, high: Cut) -> Range | None:
    everything = EVERYTHING[kind]
    (begin, above), (end, below) = max(low, everything.low), min(high, everything.high)
    if begin > end:
        return None
    first = math.floor(begin) + 1 if above else math.ceil(begin)
    last = math.floor(end) if below else math.ceil(end) - 1
    if first > last:
        return None
    made = bool if kind == "bool" else int
    return Range(kind, (made(first), 0), (made(last), 1))


def only(value: Value) -> Values:
    """The set of one value; of none if it is missing (NaN)."""
    kind = type_of(value)
    found = between(kind, before(kind, value), after(kind, value)) if value == value else None
    return () if found is None else (found,)


def line_of(value: object) -> Line:
    """With what a value can be compared."""
    match value:
        case bool():
            return "bool"
        case str():
            return "text"
    return "number"


def type_of(value: Value) -> Type:
    """The type that a value has on its own.

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


def without(range_: Range, points: Iterable[Value]) -> Values:
    """A range without some points of its type."""
    pieces, low = [], range_.low
    for point in sorted({point for point in points if point in range_}):
        pieces.append(between(range_.type, low, before(range_.type, point)))
        low = after(range_.type, point)
    pieces.append(between(range_.type, low, range_.high))
    return tuple(piece for piece in pieces if piece is not None)


def meet(a: Range, b: Range) -> Range | None:
    """What two ranges have in common."""
    if not _comparable(a, b):
        return None
    return between(a.type if a.type == b.type else "long", max(a.low, b.low), min(a.high, b.high))


def subset(a: Values, b: Values) -> bool:
    """Whether every value of the one set is in the other."""
    if len(a) == len(b) == 1:
        (one,), (other,) = a, b
        return _holds_type(other, one) and other.low <= one.low and one.high <= other.high
    first = 0
    for piece in a:
        while first < len(b) and not _reaches(b[first], piece):
            first += 1
        low = piece.low
        for other in b[first:]:
            if not _holds_type(other, piece) or low >= piece.high:
                break
            if between(piece.type, low, min(piece.high, other.low)) is not None:
                return False
            low = max(low, other.high)
        if between(piece.type, low, piece.high) is not None:
            return False
    return True


def intersects(a: Values, b: Values) -> bool:
    """Whether two sets have a value in common."""
    i = j = 0
    while i < len(a) and j < len(b):
        if not _comparable(a[i], b[j]):
            return False
        if meet(a[i], b[j]) is not None:
            return True
        if a[i].high <= b[j].high:
            i += 1
        else:
            j += 1
    return False


def _comparable(a: Range, b: Range) -> bool:
    return LINE[a.type] == LINE[b.type]


def _holds_type(wide: Range, narrow: Range) -> bool:
    return wide.type == narrow.type or (wide.type, narrow.type) == ("double", "long")


def _reaches(a: Range, b: Range) -> bool:
    return not _comparable(a, b) or a.high > b.low
