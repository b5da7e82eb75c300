"""Rewriting steps towards the core: folding of constants, and pushing ``!`` down to the comparisons.

Every step preserves the three-valued meaning: a missing operand makes a comparison unknown, `!unknown` is
unknown, and `&&` and `||` follow Kleene.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any, assert_never

from ..errors import DefinitionError
from ..model.instant import Duration
from .literal import INT64, finite
from .ops import (
    Absolute,
    And,
    Arithmetic,
    ArithmeticSign,
    Between,
    Call,
    Compare,
    ComparisonSign,
    Expression,
    LocationLiteral,
    MemberAttribute,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Silent,
    Text,
    Truth,
)

OPPOSITE: Mapping[ComparisonSign, ComparisonSign] = {
    "<": ">=", "<=": ">", "==": "!=", "!=": "==", ">=": "<", ">": "<=",
}  # fmt: skip
"""The comparison that is true where the given one is false, if no operand is missing."""

COMPARED: Mapping[ComparisonSign, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq,
    "!=": operator.ne, ">=": operator.ge, ">": operator.gt,
}  # fmt: skip

_COMPUTED: Mapping[ArithmeticSign, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip


def negate(op: Expression) -> Expression:
    """Return ``!op`` for a core predicate, with the negation pushed down.

    >>> negate(Compare(">", Name("value"), Number(25)))
    Compare(sign='<=', left=Name(name='value'), right=Number(value=25, unit=None))
    """
    match op:
        case Truth(value):
            return Truth(not value)
        case Name() | MemberAttribute() | Silent():
            return Not(op)
        case Not(arg):
            return arg
        case Compare(sign, left, right):
            return Compare(OPPOSITE[sign], left, right, op.at)
        case And(left, right):
            return either(negate(left), negate(right))
        case Or(left, right):
            return both(negate(left), negate(right))
        case _:
            raise AssertionError(f"not a core predicate: {op}")


def both(left: Expression, right: Expression) -> Expression:
    """Return ``left && right``, with constants folded."""
    match left, right:
        case (Truth(False), _) | (_, Truth(True)):
            return left
        case (Truth(True), _) | (_, Truth(False)):
            return right
    return And(left, right)


def either(left: Expression, right: Expression) -> Expression:
    """Return ``left || right``, with constants folded."""
    match left, right:
        case (Truth(True), _) | (_, Truth(False)):
            return left
        case (Truth(False), _) | (_, Truth(True)):
            return right
    return Or(left, right)


def alike(left: Expression, right: Expression) -> Expression:
    """Return ``left == right`` for two predicates. The result is unknown if an operand is unknown."""
    return either(both(left, right), both(negate(left), negate(right)))


def compare(sign: ComparisonSign, left: Expression, right: Expression) -> Expression:
    """Return a comparison of two numbers or two texts, or its outcome if both are literals."""
    match left, right:
        case (Number(a), Number(b)) | (Text(a), Text(b)):
            return Truth(COMPARED[sign](a, b))
    return Compare(sign, left, right)


def compute(sign: ArithmeticSign, left: Expression, right: Expression, *, whole: bool) -> Expression:
    """Return arithmetic, or its result if both operands are literals and the result is a number.

    Sums, differences and products of ints are ints; everything else is float.
    """
    if isinstance(left, Number) and isinstance(right, Number) and (sign != "/" or right.value):
        try:
            value = _COMPUTED[sign](left.value, right.value)
        except OverflowError:
            value = math.inf
        if isinstance(value, int) or math.isfinite(value):
            return Number(value)
    return Arithmetic(sign, left, right) if whole else Arithmetic(sign, as_float(left), as_float(right))


def negative(arg: Expression) -> Expression:
    return Number(-arg.value) if isinstance(arg, Number) else Negative(arg)


def absolute(arg: Expression) -> Expression:
    if isinstance(arg, Absolute):
        return arg
    return Number(abs(arg.value)) if isinstance(arg, Number) else Absolute(arg)


def as_float(op: Expression) -> Expression:
    """Return an int literal as a float literal, for float arithmetic. Other expressions are unchanged."""
    return Number(float(op.value)) if isinstance(op, Number) else op


def scale(op: Expression, scale: Fraction, shift: Fraction) -> Expression:
    """Return ``op * scale + shift`` with as little rounding as possible.

    A literal is converted exactly and rounded once; an int stays an int if it can. For anything else the
    result is ``(op * p + r) / q`` with whole numbers.
    """
    if scale == 1 and not shift:
        return op
    if isinstance(op, Number):
        value = Fraction(repr(op.value)) * scale + shift  # the decimal number as it was written
        if isinstance(op.value, int) and value.denominator == 1 and int(value) in INT64:
            return Number(int(value))
        try:
            return Number(finite(value))
        except ValueError as error:
            raise DefinitionError(str(error), op.at) from None
    under = math.lcm(scale.denominator, shift.denominator)
    by, plus = int(scale * under), int(shift * under)
    if by != 1:
        op = Arithmetic("*", op, Number(float(by)))
    if plus:
        op = Arithmetic("+" if plus > 0 else "-", op, Number(float(abs(plus))))
    return op if under == 1 else Arithmetic("/", op, Number(float(under)))


def names(op: Expression) -> list[str]:
    """Return the names in an expression, in the order of the text, each once."""
    return list(dict.fromkeys(_names(op)))


def _names(op: Expression) -> list[str]:
    return [op.name] if isinstance(op, Name) else [n for part in parts(op) for n in _names(part)]


def silences(op: Expression) -> list[Duration]:
    """Return the durations of the ``silent`` predicates of an expression.

    They are in microseconds, each once, the shortest first.
    """
    own_lengths = [op.length] if isinstance(op, Silent) else []
    return sorted({*own_lengths, *(length for part in parts(op) for length in silences(part))})


def in_silence(op: Expression, passed: int | float) -> Expression:
    """Return a core predicate with each ``silent`` replaced by its value.

    ``passed`` is the time without data, in microseconds.
    """
    match op:
        case Silent(length):
            return Truth(passed > length)
        case Not(Silent(length)):
            return Truth(passed <= length)
        case And(left, right):
            return both(in_silence(left, passed), in_silence(right, passed))
        case Or(left, right):
            return either(in_silence(left, passed), in_silence(right, passed))
        case _:
            return op


def of_the_event(op: Expression) -> Expression:
    """Return an expression with attributes of the event in place of members of a query.

    For example, ``A.value`` becomes ``value``.
    """
    match op:
        case MemberAttribute(_, name):
            return Name(name)
        case Negative(arg) | Absolute(arg) | Not(arg):
            return replace(op, arg=of_the_event(arg))
        case Arithmetic(_, left, right) | Compare(_, left, right) | And(left, right) | Or(left, right):
            return replace(op, left=of_the_event(left), right=of_the_event(right))
        case Between(arg, low, high):
            return replace(op, arg=of_the_event(arg), low=of_the_event(low), high=of_the_event(high))
        case _:
            return op


def within(op: Expression) -> Iterator[Expression]:
    """Yield an expression and all its sub-expressions."""
    yield op
    for part in parts(op):
        yield from within(part)


def size(op: Expression) -> int:
    """Return the number of operations in an expression."""
    return 1 + sum(map(size, parts(op)))


def parts(op: Expression) -> tuple[Expression, ...]:
    """Return the operands of an operation; an empty tuple for names and literals."""
    match op:
        case Call() | Name() | MemberAttribute() | Number() | Text() | Truth() | LocationLiteral() | Silent():
            return ()
        case Negative(arg) | Absolute(arg) | Not(arg):
            return (arg,)
        case Arithmetic(_, left, right) | Compare(_, left, right) | And(left, right) | Or(left, right):
            return (left, right)
        case Between(arg, low, high):
            return (arg, low, high)
        case _:
            assert_never(op)
