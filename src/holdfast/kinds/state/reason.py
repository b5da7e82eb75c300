"""Warnings about probable mistakes: predicates that can never be true, and predicates that can be true at
once.

A core predicate becomes a list of alternatives, each a conjunction of comparisons. Each comparison restricts
one attribute to a range. An alternative is impossible if a range is empty. It is certainly possible if a
reading from the ranges satisfies the predicate by evaluation. Comparisons that cannot be analysed restrict
nothing and make an alternative uncertain. Uncertain cases give no warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Literal, assert_never

from ...lang.condition import Caution
from ...lang.expressions.evaluate import predicate
from ...lang.linear import MIRRORED, restriction
from ...lang.literal import write_text
from ...lang.ops import (
    Absolute,
    And,
    Between,
    Compare,
    ComparisonSign,
    Expression,
    Name,
    Not,
    Number,
    Or,
    Truth,
)
from ...lang.ranges import SAMPLES, Range, Value, everything, flag
from ...lang.rewrite import within
from ...lang.show import show_expression
from ...model.topic import Topic
from ...model.unit import UNITS
from .condition import AnyState
from .syntax import DefineState

Alternative = tuple[Expression, ...]
"""A conjunction of comparisons."""
Reading = Mapping[str, Value]
"""The values of a reading by attribute."""

ALTERNATIVES = 64
"""The maximal number of alternatives that are analysed."""


# --- cautions ----------------------------------------------------------------------------------


def cautions(statement: DefineState, condition: AnyState) -> Iterator[Caution]:
    """Yield warnings about one state or filter that is probably a mistake."""
    name, topic, enter, exit = condition.name, condition.topic, condition.enter, condition.exit
    yield from _bare(statement, topic)
    if satisfiable(enter, topic) is False:
        yield Caution(f"'{name}' can never start", statement.enter.at, "No reading satisfies its entrance.")
    if exit == Truth(True):
        return
    if statement.exit != Truth(False) and satisfiable(exit, topic) is False:
        message = f"the exit of '{name}' can never hold"
        yield Caution(message, statement.exit.at, "If it is never to end, write false as its exit.")
    if enter != exit and (reading := example(And(enter, exit), topic)) is not None:
        shown = ", ".join(f"{name} = {_value(value, topic, name)}" for name, value in reading.items())
        message = f"entrance and exit of '{name}' can both hold at one reading, e.g. at {shown or 'any'}"
        hint = "Such a reading starts the condition and, if it comes again, ends it."
        yield Caution(message, statement.exit.at, hint)
    if not condition.keys and condition.forest is None:
        message = f"'{name}' has no 'per' and no 'scope': one condition for everything"
        yield Caution(message, statement.at, "Add 'per source' to have one for each source.")


def _bare(statement: DefineState, topic: Topic) -> Iterator[Caution]:
    """Yield warnings about thresholds without a unit for attributes that have a unit."""
    for op in (part for whole in (statement.enter, statement.exit) for part in within(whole)):
        for name, number in _thresholds_of(op):
            unit = topic.by_name[name].unit if name in topic.by_name else None
            if unit is not None and number.unit is None and number.at is not None:
                yield Caution(
                    f"{show_expression(number)} has no unit, and '{name}' is in {unit}: it is taken for that",
                    number.at,
                    f"Write {show_expression(number)} {unit}.",
                )


def _thresholds_of(op: Expression) -> Iterator[tuple[str, Number]]:
    """Yield the attributes that an operation compares with numbers, and these numbers."""
    match op:
        case Compare(_, Name(name), Number() as number) | Compare(_, Number() as number, Name(name)):
            yield name, number
        case Between(Name(name), low, high):
            yield from ((name, side) for side in (low, high) if isinstance(side, Number))


def _value(value: Value, topic: Topic, name: str) -> str:
    """Return a value as text, with the unit of its attribute."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return write_text(value)
        case _:
            unit = topic.by_name[name].unit
            return f"{value:.15g}" + (f" {UNITS[unit].name}" if unit else "")


# --- satisfiability ----------------------------------------------------------------------------


def satisfiable(op: Expression, topic: Topic) -> bool | None:
    """Whether some reading satisfies a core predicate; ``None`` if that is not certain."""
    options = alternatives(op)
    if options is None:
        return None
    possible = (option for option in options if Truth(False) not in option)
    if all(any(found.empty for found in _ranges(option, topic).values()) for option in possible):
        return False
    return True if example(op, topic) is not None else None


def example(op: Expression, topic: Topic) -> Reading | None:
    """Return a reading that satisfies a core predicate, or ``None`` if the search finds none."""
    satisfies = predicate(op)
    for option in alternatives(op) or ():
        samples = {name: found.some() for name, found in _ranges(option, topic).items()}
        if not all(samples.values()):
            continue
        for i in range(SAMPLES):
            reading = {name: values[min(i, len(values) - 1)] for name, values in samples.items()}
            if satisfies(reading):
                return reading
    return None


def _ranges(option: Alternative, topic: Topic) -> dict[str, Range]:
    """Return the ranges to which a conjunction restricts the attributes that it mentions."""
    found: dict[str, Range] = {}
    for atom in option:
        match atom:
            case Name(name):
                understood: tuple[str, Range] | None = (name, flag(True))
            case Not(Name(name)):
                understood = (name, flag(False))
            case Compare():
                understood = restriction(atom, topic)
            case _:
                understood = None
        if understood is not None:
            name, allowed = understood
            found[name] = found.get(name, everything(topic.by_name[name].kind)).meet(allowed)
    return found


# --- alternatives ------------------------------------------------------------------------------


def alternatives(op: Expression) -> list[Alternative] | None:
    """Return a core predicate as a disjunction of conjunctions; ``None`` if there are too many."""
    match op:
        case Or(left, right):
            return _bounds(left, right, "or")
        case And(left, right):
            return _bounds(left, right, "and")
        case Compare(sign, Absolute(arg), Number() as bound):
            return _absolute(sign, arg, bound, op)
        case Compare(sign, Number() as bound, Absolute(arg)):
            return _absolute(MIRRORED[sign], arg, bound, op)
        case _:
            return [(op,)]


def _bounds(left: Expression, right: Expression, how: Literal["and", "or"]) -> list[Alternative] | None:
    """Return the alternatives of a disjunction or a conjunction; ``None`` if there are too many."""
    a, b = alternatives(left), alternatives(right)
    if a is None or b is None:
        return None
    size = len(a) * len(b) if how == "and" else len(a) + len(b)
    if size > ALTERNATIVES:
        return None
    return [x + y for x, y in product(a, b)] if how == "and" else a + b


def _absolute(sign: ComparisonSign, arg: Expression, bound: Number, op: Compare) -> list[Alternative] | None:
    """Return the alternatives of a comparison with an absolute value.

    ``|a| > c`` is ``a > c || a < -c``; ``|a| < c`` is ``a < c && a > -c``.
    """
    above = Compare(sign, arg, Number(bound.value))
    below = Compare(MIRRORED[sign], arg, Number(-bound.value))
    match sign:
        case ">" | ">=":
            return alternatives(Or(above, below))
        case "<" | "<=":
            return alternatives(And(above, below))
        case "==" | "!=":
            return [(op,)]
        case _:
            assert_never(sign)
