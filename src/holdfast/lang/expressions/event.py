"""Evaluation on one event by closures, for low latency. This module defines the meaning of expressions.

Missing is ``None`` in an event and NaN in a computation. A comparison with a missing operand is unknown, and
only true satisfies. In a core predicate, in which negations are pushed down, unknown and false need not be
distinguished.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from ...model.event import Event
from ...model.space import Forest
from ...model.topic import FIXED, Topic
from ..ops import (
    Absolute,
    And,
    Arithmetic,
    Compare,
    ComparisonSign,
    Expression,
    Levels,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Text,
    Truth,
)
from ..rewrite import COMPARED
from .key_text import join_key, key_text

Predicate = Callable[[Event], bool]
Chain = tuple[str | None, ...]


def predicate(op: Expression, topic: Topic) -> Predicate:
    """Return a function that tells whether an event satisfies a core predicate."""
    match op:
        case Truth(value):
            return lambda _event: value
        case And(left, right):
            a, b = predicate(left, topic), predicate(right, topic)
            return lambda event: a(event) and b(event)
        case Or(left, right):
            a, b = predicate(left, topic), predicate(right, topic)
            return lambda event: a(event) or b(event)
        case Name():
            get = reader(op.name)
            return lambda event: get(event) is True
        case Not(Name(name)):
            get = reader(name)
            return lambda event: get(event) is False
        case Compare(sign, left, right):
            return _comparison(sign, left, right, topic)
        case _:
            raise AssertionError(f"not a core predicate: {op}")


def _comparison(sign: ComparisonSign, left: Expression, right: Expression, topic: Topic) -> Predicate:
    kinds = {kind(left, topic), kind(right, topic)}
    compute = value if kinds in ({"int"}, {"text"}) else number
    a, b = compute(left, topic), compute(right, topic)
    if sign == "!=":

        def differ(event: Event) -> bool:
            x, y = a(event), b(event)
            return x is not None and y is not None and x == x and y == y and x != y

        return differ
    holds = COMPARED[sign]
    if isinstance(right, Number) and compute is number:  # the common threshold, with one call less
        limit = float(right.value)
        return lambda event: holds(a(event), limit)
    if compute is number:
        return lambda event: holds(a(event), b(event))

    def compare_values(event: Event) -> bool:
        x, y = a(event), b(event)
        return x is not None and y is not None and holds(x, y)

    return compare_values


def kind(op: Expression, topic: Topic) -> str:
    """Return the type of a value.

    Sums, differences and products of ints are int; other arithmetic is float.
    """
    match op:
        case Name(name):
            return topic.by_name[name].kind
        case Number(literal):
            return "int" if isinstance(literal, int) else "float"
        case Text():
            return "text"
        case Negative(arg) | Absolute(arg):
            return kind(arg, topic)
        case Arithmetic("+" | "-" | "*", left, right):
            return "int" if kind(left, topic) == kind(right, topic) == "int" else "float"
        case _:
            return "float"


def reader(name: str) -> Callable[[Event], Any]:
    """Return a function that returns an attribute of an event, or ``None`` if the attribute is missing."""
    if name in FIXED:
        if name in ("source", "place"):
            return operator.attrgetter(name)
        axis = "xyz".index(name)

        def coordinate(event: Event) -> float | None:
            at = event.location
            return at[axis] if at is not None and len(at) > axis else None

        return coordinate

    def attribute(event: Event) -> Any:
        return event.attributes.get(name)

    return attribute


def value(op: Expression, topic: Topic) -> Callable[[Event], Any]:
    """Return a function for an attribute, a literal or int arithmetic.

    The function returns ``None`` for a missing value or a result beyond 64 bits.
    """
    match op:
        case Name(name):
            return reader(name)
        case Number(literal) | Text(literal):
            return lambda _event: literal
        case Negative(arg):
            inner = value(arg, topic)
            return lambda event: None if (x := inner(event)) is None else _in_64_bits(-x)
        case Absolute(arg):
            inner = value(arg, topic)
            return lambda event: None if (x := inner(event)) is None else _in_64_bits(abs(x))
        case Arithmetic(sign, left, right):
            a, b, compute = value(left, topic), value(right, topic), _ARITHMETIC[sign]

            def compute_int(event: Event) -> int | None:
                x, y = a(event), b(event)
                return None if x is None or y is None else _in_64_bits(compute(x, y))

            return compute_int
        case _:
            raise AssertionError(f"not a core value: {op}")


def _in_64_bits(number: Any) -> int | None:
    return number if -(2**63) <= number < 2**63 else None


def number(op: Expression, topic: Topic) -> Callable[[Event], float]:
    """Return a function for the float that an expression computes; NaN if it is missing."""
    if kind(op, topic) == "int" or isinstance(op, Name):
        get = value(op, topic)

        def read(event: Event) -> float:
            found = get(event)
            return math.nan if found is None else float(found)

        return read
    match op:
        case Number(literal):
            constant = float(literal)
            return lambda _event: constant
        case Negative(arg):
            inner = number(arg, topic)
            return lambda event: -inner(event)
        case Absolute(arg):
            inner = number(arg, topic)
            return lambda event: abs(inner(event))
        case Arithmetic(sign, left, right):
            a, b = number(left, topic), number(right, topic)
            compute = _ARITHMETIC[sign]
            return lambda event: compute(a(event), b(event))
        case _:
            raise AssertionError(f"not a core number: {op}")


def _divide(a: float, b: float) -> float:
    return a / b if b else math.nan


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
}


# --- scopes --------------------------------------------------------------------------------------


def chain(keys: Levels, forest: Forest | None = None) -> Callable[[Event], Chain | None]:
    """Return a function from an event to the keys of its scopes, innermost first.

    The function returns ``None`` if the event is in no scope. Levels are aligned at the outermost: an event
    in no inner scope has ``None`` there and enters at the smallest scope that contains it.
    """
    levels = [tuple(reader(name) for name in names) for names in keys]
    regions = _regions(forest) if forest is not None else None

    def find(event: Event) -> Chain | None:
        outer: Chain = ()
        if regions is not None:
            found = regions(event)
            if found is None:
                return None
            outer = found
        path = "" if regions is None else next(key for key in outer if key is not None)
        inner: list[str | None] = [None] * len(levels)
        for i in range(len(levels) - 1, -1, -1):
            parts = [key_text(get(event)) for get in levels[i]]
            if None in parts:
                break
            path = (
                join_key(path, parts) if i < len(levels) - 1 or regions is not None else join_key(None, parts)
            )
            inner[i] = path
        if regions is None and inner and inner[-1] is None:
            return None
        return (*inner, *outer)

    if not levels and regions is None:
        everything: Chain = ("",)
        return lambda _event: everything
    if len(levels) == 1 and len(levels[0]) == 1 and regions is None:  # `per key`, with one call less
        (get,) = levels[0]
        return lambda event: None if (key := key_text(get(event))) is None else (join_key(None, [key]),)
    return find


def _regions(forest: Forest) -> Callable[[Event], Chain | None]:
    names = [region.name for region in forest.regions]
    depth = forest.depth
    chains = [(None,) * (depth - len(path)) + tuple(names[i] for i in path) for path in forest.chains]

    def find(event: Event) -> Chain | None:
        at = forest.locate(event.place, event.source, event.location)
        return None if at < 0 else chains[at]

    return find
