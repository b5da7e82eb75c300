"""The plain meaning of a core expression at one reading; what the compilers do faster."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import assert_never, cast

from .literal import INT64
from .ops import (
    Absolute,
    And,
    Arithmetic,
    Between,
    Call,
    Compare,
    Expression,
    Member,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Silent,
    Spot,
    Text,
    Truth,
)
from .rewrite import COMPARED

Value = float | int | str | bool


def holds(op: Expression, reading: Mapping[str, Value]) -> bool:
    """Whether a core predicate is true, not only not false, at a reading."""
    return value(op, reading) is True


def value(op: Expression, reading: Mapping[str, Value]) -> Value | None:
    """The value of a core expression; ``None`` is missing, for a predicate unknown."""
    match op:
        case Name(name):
            return _known(reading.get(name))
        case Member(owner, name):
            return _known(reading.get(f"{owner}.{name}"))
        case Number(literal):
            return literal
        case Text(text):
            return text
        case Truth(outcome):
            return outcome
        case Arithmetic(sign, left, right):
            return computed(sign, value(left, reading), value(right, reading))
        case Negative(arg):
            number = value(arg, reading)
            return computed("-", 0 if isinstance(number, int) else 0.0, number)
        case Absolute(arg):
            number = value(arg, reading)
            negative = number is not None and not isinstance(number, str) and number < 0
            return computed("-", 0, number) if negative else number
        case Compare(sign, left, right):
            a, b = value(left, reading), value(right, reading)
            return None if a is None or b is None else COMPARED[sign](*alike(a, b))
        case And(left, right):
            return kleene(value(left, reading), value(right, reading), decides=False)
        case Or(left, right):
            return kleene(value(left, reading), value(right, reading), decides=True)
        case Not(arg):
            truth = value(arg, reading)
            return None if truth is None else not truth
        case Silent():
            return None  # not a matter of one reading
        case Between() | Call() | Spot():
            raise AssertionError("not a core expression")
        case _:
            assert_never(op)


def _known(found: Value | None) -> Value | None:
    return None if found is None or found != found else found


def kleene(a: Value | None, b: Value | None, *, decides: bool) -> bool | None:
    """``&&`` (false decides) and ``||`` (true decides) of what may be unknown."""
    if a is decides or b is decides:
        return decides
    return None if a is None or b is None else not decides


def alike(a: Value, b: Value) -> tuple[Value, Value]:
    """An int that meets a float becomes one."""
    return (float(a), float(b)) if isinstance(a, float) != isinstance(b, float) else (a, b)


def computed(sign: str, left: Value | None, right: Value | None) -> float | int | None:
    """Exact between ints, unless they are divided; beyond 64 bits, and divided by zero, missing."""
    if left is None or right is None:
        return None
    a, b = (cast("float", number) for number in alike(left, right))
    match sign:
        case "+":
            result = a + b
        case "-":
            result = a - b
        case "*":
            result = a * b
        case "/":
            result = float(a) / float(b) if b else math.nan
        case other:
            raise AssertionError(other)
    if isinstance(result, int):
        return result if result in INT64 else None
    return None if result != result else result
