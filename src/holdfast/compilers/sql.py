"""Core expressions as Spark SQL, in which NaN is missing, nothing overflows and nothing is raised.

Spark orders NaN above every number and holds it equal to itself, so a comparison also tests the
operands on which that would matter.  The text needs no Spark: ``explain`` prints it, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..lang.condition import Condition, Correlated
from ..lang.ops import (
    Absolute,
    And,
    Arithmetic,
    Compare,
    ComparisonSign,
    Expression,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Text,
    Truth,
)
from ..model.correlation import Filter
from ..model.scope import ESCAPE, QUOTE, SEPARATOR
from ..model.topic import Topic
from .envelope import noticed as of_some_row
from .keys import joined
from .scalar import kind

Naming = Callable[[str], str]
"""The SQL of an attribute."""

_UNIT, _RECORD = joined(None, ["", ""]), joined("", [""])
_ESCAPE = joined(None, [_UNIT])[0]
_PLAIN = re.compile(r"[\w .,:;#@%&/()\[\]<>=!?*+-]*")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def quoted(name: str) -> str:
    """A column's name.

    >>> quoted("value"), quoted("0 value")
    ('value', '`0 value`')
    """
    return name if _NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def literal(text: str) -> str:
    """A text, in hex where Spark might read something into it.

    >>> literal("room 1"), literal("it's")
    ("'room 1'", "CAST(X'69742773' AS STRING)")
    """
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode('utf-8', 'surrogatepass').hex()}' AS STRING)"


def predicate(op: Expression, topic: Topic, named: Naming = quoted) -> str:
    """The condition that holds where an event satisfies a core predicate; elsewhere false or null."""
    match op:
        case Truth(value):
            return str(value).lower()
        case And(left, right):
            return f"({predicate(left, topic, named)} AND {predicate(right, topic, named)})"
        case Or(left, right):
            return f"({predicate(left, topic, named)} OR {predicate(right, topic, named)})"
        case Name(name):
            return named(name)
        case Not(Name(name)):
            return f"(NOT {named(name)})"
        case Compare(sign, left, right):
            return _comparison(sign, left, right, topic, named)
        case _:
            raise AssertionError(f"not a core predicate: {op}")


_SIGNS: Mapping[ComparisonSign, str] = {
    "<": "<", "<=": "<=", "==": "=", "!=": "<>", ">=": ">=", ">": ">",
}  # fmt: skip
_LET_NAN_PASS: Mapping[ComparisonSign, tuple[bool, bool]] = {
    "<": (False, True), "<=": (False, True), "==": (True, False),
    "!=": (True, True), ">=": (True, False), ">": (True, False),
}  # fmt: skip
"""On which side Spark's comparison could hold for NaN, given that the other side is a number."""


def _comparison(
    sign: ComparisonSign, left: Expression, right: Expression, topic: Topic, named: Naming
) -> str:
    kinds = {kind(left, topic), kind(right, topic)}
    if kinds == {"text"}:
        return f"({_text(left, named)} {_SIGNS[sign]} {_text(right, named)})"
    if kinds == {"int"}:
        return f"({_whole(left, named)} {_SIGNS[sign]} {_whole(right, named)})"
    operands = [(op, _number(op, topic, named)) for op in (left, right)]
    tests = [
        f"NOT isnan({text})"
        for (op, text), passes in zip(operands, _LET_NAN_PASS[sign], strict=True)
        if passes and kind(op, topic) == "float" and not isinstance(op, Number)
    ]
    compared = f"{operands[0][1]} {_SIGNS[sign]} {operands[1][1]}"
    return f"({' AND '.join([compared, *tests])})"


def _text(op: Expression, named: Naming) -> str:
    match op:
        case Text(value):
            return literal(value)
        case Name(name):
            return named(name)
        case _:
            raise AssertionError(f"not a core text: {op}")


_TRIED = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
_LEAST = -(2**63)


def _whole(op: Expression, named: Naming) -> str:
    """Int arithmetic is exact; a result beyond 64 bits is null."""
    match op:
        case Number(value):
            return f"{value}L"
        case Name(name):
            return named(name)
        case Negative(arg):
            return f"try_subtract(0L, {_whole(arg, named)})"
        case Absolute(arg):
            return f"abs(nullif({_whole(arg, named)}, {_LEAST}L))"
        case Arithmetic(sign, left, right):
            return f"{_TRIED[sign]}({_whole(left, named)}, {_whole(right, named)})"
        case _:
            raise AssertionError(f"not a core int: {op}")


def _number(op: Expression, topic: Topic, named: Naming) -> str:
    """The double that an expression computes; null or NaN if it is missing."""
    match op:
        case Number(value):
            return f"{float(value)!r}D"
        case _ if kind(op, topic) == "int":
            return f"CAST({_whole(op, named)} AS DOUBLE)"
        case Name(name):
            return named(name)
        case Negative(arg):
            return f"(- {_number(arg, topic, named)})"
        case Absolute(arg):
            return f"abs({_number(arg, topic, named)})"
        case Arithmetic(sign, left, right):
            a, b = _number(left, topic, named), _number(right, topic, named)
            return f"try_divide({a}, {b})" if sign == "/" else f"({a} {sign} {b})"
        case _:
            raise AssertionError(f"not a core number: {op}")


# --- scopes --------------------------------------------------------------------------------------


def keys(condition: Condition, named: Naming = quoted) -> tuple[str, ...] | None:
    """The texts of the keys of an event's scopes, innermost first, null where it is in none.

    Nothing where SQL cannot say them: regions, and floats, which Spark writes in another way.
    """
    by_name = condition.topic.by_name
    if condition.forest is not None or any(
        by_name[name].kind == "float" for level in condition.keys for name in level
    ):
        return None
    if not condition.keys:
        return ("''",)
    found: list[str] = []
    for names in reversed(condition.keys):
        inner = _concatenated([_key_text(name, condition.topic, named) for name in names], _UNIT)
        found.insert(0, _concatenated([found[0], inner], _RECORD) if found else inner)
    return tuple(found)


def shown(condition: Condition, named: Naming = quoted) -> str | None:
    """The key of an event's innermost scope as people read it: values with a comma between them, of several
    one that has a comma itself in quotes.

    Nothing where there is one scope for all.
    """
    if not condition.keys:
        return None
    kinds, several = condition.topic.by_name, len(condition.keys[0]) > 1
    values = (
        f"CAST({named(name)} AS STRING)"
        if kinds[name].kind != "text"
        else _listed(named(name))
        if several
        else named(name)
        for name in condition.keys[0]
    )
    return _concatenated(list(values), SEPARATOR)


def _listed(text: str) -> str:
    """A text among others, in quotes where it needs them."""
    escaped = text
    for character in (ESCAPE, QUOTE):  # the escape first
        escaped = f"replace({escaped}, {literal(character)}, {literal(ESCAPE + character)})"
    quoted = f"concat({literal(QUOTE)}, {escaped}, {literal(QUOTE)})"
    needs = " OR ".join(f"instr({text}, {literal(one)}) > 0" for one in (SEPARATOR, QUOTE))
    return f"CASE WHEN {needs} THEN {quoted} ELSE {text} END"


def _key_text(name: str, topic: Topic, named: Naming) -> str:
    if topic.by_name[name].kind != "text":
        return f"CAST({named(name)} AS STRING)"
    text = named(name)
    for character in (_ESCAPE, _UNIT, _RECORD):  # the escape first: the others become one
        text = f"replace({text}, {literal(character)}, {literal(joined(None, [character]))})"
    return text


def _concatenated(parts: Sequence[str], separator: str) -> str:
    return parts[0] if len(parts) == 1 else f"concat({f', {literal(separator)}, '.join(parts)})"


def matching(predicates: Sequence[Expression], topic: Topic, named: Naming = quoted) -> str:
    """Where some of the predicates holds; elsewhere false or null."""
    return some_of(predicate(op, topic, named) for op in predicates)


def some_of(tests: Iterable[str]) -> str:
    """Where some test holds.

    >>> some_of(["a", "b", "a"]), some_of([])
    ('a OR b', 'false')
    """
    return " OR ".join(dict.fromkeys(tests)) or "false"


# --- what matters ----------------------------------------------------------------------------------


def noticed(conditions: Sequence[Condition], topic: Topic, named: Naming = quoted) -> list[str]:
    """The predicates of state filters on a topic; of those with tables what holds for some row."""
    mine = (one for one in conditions if one.topic == topic)
    return [predicate(op, topic, named) for one in mine for op in of_some_row(one)]


def ranged(correlations: Sequence[Correlated], topic: Topic, named: Naming = quoted) -> list[str]:
    """The ranges of correlations on a topic; where an event lies is left to others."""
    return [
        _within(filter, _number(Name(attribute), topic, named), named("source"))
        for one in correlations
        for (measured, attribute), filter in zip(one.measured, one.correlation.filters, strict=True)
        if measured == topic
    ]


def _within(filter: Filter, number: str, source: str) -> str:
    tests = [] if filter.low == -math.inf else [f"{number} >= {filter.low!r}D"]
    highest = "double('Infinity')" if filter.high == math.inf else f"{filter.high!r}D"  # below NaN, for Spark
    tests += [f"{number} <= {highest}"]
    tests += [] if filter.sensor is None else [f"{source} = {literal(filter.sensor)}"]
    return f"({' AND '.join(tests)})"
