"""Three-valued evaluation of core expressions over any context. It is the reference for the faster back ends.

`compile_value` turns an expression into nested closures; the caller provides the functions that read its
leaves. Components evaluate their rules with it, and checks evaluate predicates on readings that are given as
mappings. Missing and unknown are ``None``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from ..literal import INT64
from ..ops import (
    Absolute,
    And,
    Arithmetic,
    Compare,
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
from ..rewrite import COMPARED

Value = float | int | str | bool
Compute = Callable[[Any], Any]


def compile_value(op: Expression, leaf: Callable[[Expression], Compute | None]) -> Compute:
    """Return a function that computes the value of a core expression from a context.

    `leaf` returns a function that reads a name or a member from the context, and ``None`` for any other
    expression. Values are numbers, texts and truth values, and in components times, places and locations.
    """
    if (read := leaf(op)) is not None:
        return read
    match op:
        case Number(constant) | Text(constant) | Truth(constant) | LocationLiteral(constant):
            return lambda _context: constant
        case Arithmetic(sign, left, right):
            a, b = compile_value(left, leaf), compile_value(right, leaf)
            return lambda context: _compute(sign, a(context), b(context))
        case Negative(arg):
            inner = compile_value(arg, leaf)
            return lambda context: _compute("-", 0, inner(context))
        case Absolute(arg):
            inner = compile_value(arg, leaf)
            return lambda context: _absolute(inner(context))
        case Compare(sign, left, right):
            a, b, holds = compile_value(left, leaf), compile_value(right, leaf), COMPARED[sign]
            return lambda context: _compare(holds, a(context), b(context))
        case And(left, right):
            a, b = compile_value(left, leaf), compile_value(right, leaf)
            return lambda context: _kleene(a(context), b(context), decides=False)
        case Or(left, right):
            a, b = compile_value(left, leaf), compile_value(right, leaf)
            return lambda context: _kleene(a(context), b(context), decides=True)
        case Not(arg):
            inner = compile_value(arg, leaf)
            return lambda context: None if (truth := inner(context)) is None else not truth
        case _:
            raise AssertionError(f"not a core expression: {op}")


# --- readings as mappings ----------------------------------------------------------------------------


def predicate(op: Expression) -> Callable[[Mapping[str, Value]], bool]:
    """Return a function that tells whether a core predicate is true at a reading.

    Unknown counts as not true.
    """
    compute = compile_value(op, _of_reading)
    return lambda reading: compute(reading) is True


def value(op: Expression, reading: Mapping[str, Value]) -> Value | None:
    """Return the value of a core expression at a reading. ``None`` is missing, or unknown for a predicate."""
    found: Value | None = compile_value(op, _of_reading)(reading)
    return found


def _of_reading(op: Expression) -> Compute | None:
    match op:
        case Name(name):
            return lambda reading: _known(reading.get(name))
        case MemberAttribute(owner, name):
            return lambda reading: _known(reading.get(f"{owner}.{name}"))
        case Silent():  # needs more than one reading
            return lambda _reading: None
        case _:
            return None


def _known(found: Value | None) -> Value | None:
    return None if found is None or found != found else found


# --- operations --------------------------------------------------------------------------------------


def _kleene(a: Value | None, b: Value | None, *, decides: bool) -> bool | None:
    """Return the conjunction or disjunction of two truth values that may be unknown.

    It is ``&&`` if `decides` is false, and ``||`` if it is true.
    """
    if a is decides or b is decides:
        return decides
    return None if a is None or b is None else not decides


def _compare(compare: Callable[[Any, Any], bool], a: Any, b: Any) -> bool | None:
    return None if a is None or b is None else compare(*_alike(a, b))


def _alike(a: Any, b: Any) -> tuple[Any, Any]:
    """Return two numbers as floats if one of them is a float."""
    return (float(a), float(b)) if isinstance(a, float) != isinstance(b, float) else (a, b)


def _compute(sign: str, left: Any, right: Any) -> Any:
    """Return the result of arithmetic: exact between ints except for quotients.

    Results beyond 64 bits and divisions by zero are missing. The difference of two locations is an offset.
    That of two names of places is an offset of 0 if they are equal, and missing otherwise.
    """
    if isinstance(left, tuple) or isinstance(right, tuple):
        same = isinstance(left, tuple) and isinstance(right, tuple) and len(left) == len(right)
        return tuple(a - b for a, b in zip(left, right, strict=True)) if same else None
    if isinstance(left, str) or isinstance(right, str):  # a place is no distance from itself
        return (0.0,) if left == right else None
    if left is None or right is None:
        return None
    a, b = (cast("float", number) for number in _alike(left, right))
    match sign:
        case "+":
            result = a + b
        case "-":
            result = a - b
        case "*":
            result = a * b
        case "/":
            result = float(a) / float(b) if b else math.nan
        case _:
            raise AssertionError(sign)
    if isinstance(result, int):
        return result if result in INT64 else None
    return None if result != result else result


def _absolute(number: Any) -> Any:
    if isinstance(number, tuple):
        return math.hypot(*number)
    return _compute("-", 0, number) if number is not None and number < 0 else number
