"""Comparisons that are linear in one attribute, as ranges of that attribute.

Checks find contradictions with them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ..model.topic import Topic
from .ops import Arithmetic, Compare, ComparisonSign, Expression, Name, Negative, Number, Text
from .ranges import Range, Texts, ValueInterval, widen

MIRRORED: Mapping[ComparisonSign, ComparisonSign] = {
    "<": ">", "<=": ">=", "==": "==", "!=": "!=", ">=": "<=", ">": "<",
}  # fmt: skip
"""The comparison with its sides exchanged."""

ROUNDING = Fraction(1, 10**9)
"""A generous bound of the relative rounding error of float arithmetic."""

LARGE = 10**300
EXACT = 2**53


@dataclass(frozen=True, slots=True)
class Linear:
    """The linear form ``factor * name + constant``. ``size`` and ``slope`` bound its rounding error."""

    name: str | None
    factor: Fraction
    constant: Fraction
    slope: Fraction  # sum of the magnitudes of the factors
    size: Fraction  # sum of the magnitudes of the constants

    def __add__(self, other: Linear) -> Linear | None:
        if self.name and other.name and self.name != other.name:
            return None
        return Linear(
            self.name or other.name,
            self.factor + other.factor,
            self.constant + other.constant,
            self.slope + other.slope,
            self.size + other.size,
        )

    def times(self, by: Fraction) -> Linear:
        return Linear(
            self.name, self.factor * by, self.constant * by, self.slope * abs(by), self.size * abs(by)
        )


def restriction(op: Compare, topic: Topic) -> tuple[str, Range] | None:
    """Return the attribute that a comparison restricts, and its range.

    Returns ``None`` if the comparison is not linear.
    """
    match op.left, op.right:
        case (Name(name), Text(text)) | (Text(text), Name(name)):
            return name, Texts(only=text) if op.sign == "==" else Texts(excluded=frozenset((text,)))
        case Name(name), Number(value) if _comparable(value, name, topic):
            return name, interval(op.sign, Fraction(value))
        case Number(value), Name(name) if _comparable(value, name, topic):
            return name, interval(MIRRORED[op.sign], Fraction(value))
    left, right = linear(op.left, topic), linear(op.right, topic)
    if left is None or right is None:
        return None
    form = left + right.times(Fraction(-1))
    return None if form is None else _solve(op.sign, form)


def _comparable(value: float | int, name: str, topic: Topic) -> bool:
    """Whether a number can be compared exactly with the values of an attribute."""
    return isinstance(value, int) or topic.by_name[name].kind == "float" or abs(value) < EXACT


def interval(sign: ComparisonSign, bound: Fraction) -> ValueInterval:
    """Return the numbers that satisfy a comparison with a bound."""
    match sign:
        case "<" | "<=":
            return ValueInterval(high=bound, high_open=sign == "<")
        case ">" | ">=":
            return ValueInterval(low=bound, low_open=sign == ">")
        case "==":
            return ValueInterval(bound, bound)
        case "!=":
            return ValueInterval(excluded=frozenset((bound,)))


def linear(op: Expression, topic: Topic) -> Linear | None:
    """Return a numeric expression as a linear form in at most one attribute; ``None`` if it is not linear."""
    match op:
        case Number(value):
            number = Fraction(value)
            return Linear(None, Fraction(0), number, Fraction(0), abs(number))
        case Name(name) if topic.by_name[name].kind in ("float", "int"):
            return Linear(name, Fraction(1), Fraction(0), Fraction(1), Fraction(0))
        case Negative(arg):
            inner = linear(arg, topic)
            return None if inner is None else inner.times(Fraction(-1))
        case Arithmetic(sign, left, right):
            a, b = linear(left, topic), linear(right, topic)
            return None if a is None or b is None else _combine(sign, a, b)
    return None


def _combine(sign: str, a: Linear, b: Linear) -> Linear | None:
    match sign:
        case "+":
            return a + b
        case "-":
            return a + b.times(Fraction(-1))
        case "*":
            form, factor = (a, b) if b.name is None else (b, a)
            return form.times(factor.constant) if factor.name is None else None
        case "/" if b.name is None and b.constant:
            return a.times(1 / b.constant)
    return None


def _solve(sign: ComparisonSign, form: Linear) -> tuple[str, Range] | None:
    """Solve ``factor * x + constant ⋈ 0`` for x. The range is widened by the rounding error."""
    if form.name is None or not form.factor or max(form.size, form.slope) > LARGE or sign == "!=":
        return None
    bound = -form.constant / form.factor
    if abs(form.factor) < Fraction(1, LARGE) or not math.isfinite(float(bound)):
        return None
    slack = ROUNDING * (form.size + form.slope * abs(bound)) / abs(form.factor)
    found = interval(sign if form.factor > 0 else MIRRORED[sign], bound)
    return form.name, widen(found, slack)
