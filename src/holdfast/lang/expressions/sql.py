"""Core expressions as Spark SQL, with NaN as missing, without overflow and without errors.

Spark orders NaN above every number and regards it as equal to itself, so a comparison also tests its operands
for NaN where that matters. The text needs no Spark: ``explain`` prints it, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from ...model.scope import ESCAPE, QUOTE, SEPARATOR
from ...model.topic import Topic
from ..condition import ScopedCondition
from ..ops import (
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
from .event import kind
from .key_text import join_key

Naming = Callable[[str], str]
"""Converts the name of an attribute to SQL."""

_UNIT, _RECORD = join_key(None, ["", ""]), join_key("", [""])
_ESCAPE = join_key(None, [_UNIT])[0]
_PLAIN = re.compile(r"[\w .,:;#@%&/()\[\]<>=!?*+-]*")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def quote_name(name: str) -> str:
    """Return the name of a column, in quotes if necessary.

    >>> quote_name("value"), quote_name("0 value")
    ('value', '`0 value`')
    """
    return name if _NAME.fullmatch(name) else f"`{name.replace('`', '``')}`"


def literal(text: str) -> str:
    """Return a text as an SQL literal; in hex if Spark might interpret a character.

    >>> literal("room 1"), literal("it's")
    ("'room 1'", "CAST(X'69742773' AS STRING)")
    """
    if _PLAIN.fullmatch(text):
        return f"'{text}'"
    return f"CAST(X'{text.encode('utf-8', 'surrogatepass').hex()}' AS STRING)"


def predicate(op: Expression, topic: Topic, named: Naming = quote_name) -> str:
    """Return an SQL condition for the events that satisfy a core predicate.

    It is false or null for all other events.
    """
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
"""The sides on which Spark's comparison could be true for NaN if the other side is a number."""


def _comparison(
    sign: ComparisonSign, left: Expression, right: Expression, topic: Topic, named: Naming
) -> str:
    kinds = {kind(left, topic), kind(right, topic)}
    if kinds == {"text"}:
        return f"({_text(left, named)} {_SIGNS[sign]} {_text(right, named)})"
    if kinds == {"int"}:
        return f"({_whole(left, named)} {_SIGNS[sign]} {_whole(right, named)})"
    operands = [(op, number(op, topic, named)) for op in (left, right)]
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
    """Return exact int arithmetic as SQL. A result beyond 64 bits is null."""
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


def number(op: Expression, topic: Topic, named: Naming) -> str:
    """Return the SQL of the double that an expression computes; null or NaN if it is missing."""
    match op:
        case Number(value):
            return f"{float(value)!r}D"
        case _ if kind(op, topic) == "int":
            return f"CAST({_whole(op, named)} AS DOUBLE)"
        case Name(name):
            return named(name)
        case Negative(arg):
            return f"(- {number(arg, topic, named)})"
        case Absolute(arg):
            return f"abs({number(arg, topic, named)})"
        case Arithmetic(sign, left, right):
            a, b = number(left, topic, named), number(right, topic, named)
            return f"try_divide({a}, {b})" if sign == "/" else f"({a} {sign} {b})"
        case _:
            raise AssertionError(f"not a core number: {op}")


# --- scopes --------------------------------------------------------------------------------------


def keys(condition: ScopedCondition, named: Naming = quote_name) -> tuple[str, ...] | None:
    """Return the SQL of the keys of an event's scopes, innermost first.

    It is null where the event is in no scope. Returns ``None`` for keys without an SQL form: regions, and
    floats, which Spark prints differently.
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
        inner = _concatenate([_key_text(name, condition.topic, named) for name in names], _UNIT)
        found.insert(0, _concatenate([found[0], inner], _RECORD) if found else inner)
    return tuple(found)


def readable_scope(condition: ScopedCondition, named: Naming = quote_name) -> str | None:
    """Return the SQL of the label of an event's innermost scope: its values separated by commas.

    Of several values, a value that contains a comma is quoted. Returns ``None`` if there is one scope for all
    events.
    """
    if not condition.keys:
        return None
    kinds, several = condition.topic.by_name, len(condition.keys[0]) > 1
    values = (
        f"CAST({named(name)} AS STRING)"
        if kinds[name].kind != "text"
        else _quote_in_list(named(name))
        if several
        else named(name)
        for name in condition.keys[0]
    )
    return _concatenate(list(values), SEPARATOR)


def _quote_in_list(text: str) -> str:
    """Return the SQL of a text in a list, in quotes where necessary."""
    escaped = text
    for character in (ESCAPE, QUOTE):  # the escape first
        escaped = f"replace({escaped}, {literal(character)}, {literal(ESCAPE + character)})"
    quoted = f"concat({literal(QUOTE)}, {escaped}, {literal(QUOTE)})"
    needs = " OR ".join(f"instr({text}, {literal(special)}) > 0" for special in (SEPARATOR, QUOTE))
    return f"CASE WHEN {needs} THEN {quoted} ELSE {text} END"


def _key_text(name: str, topic: Topic, named: Naming) -> str:
    if topic.by_name[name].kind != "text":
        return f"CAST({named(name)} AS STRING)"
    text = named(name)
    for character in (_ESCAPE, _UNIT, _RECORD):  # the escape first: the others become one
        text = f"replace({text}, {literal(character)}, {literal(join_key(None, [character]))})"
    return text


def _concatenate(parts: Sequence[str], separator: str) -> str:
    return parts[0] if len(parts) == 1 else f"concat({f', {literal(separator)}, '.join(parts)})"


def matching(predicates: Sequence[Expression], topic: Topic, named: Naming = quote_name) -> str:
    """Return an SQL condition for the events that satisfy at least one predicate.

    It is false or null for all other events.
    """
    return some_of(predicate(op, topic, named) for op in predicates)


def some_of(tests: Iterable[str]) -> str:
    """Return the disjunction of tests, each once.

    >>> some_of(["a", "b", "a"]), some_of([])
    ('a OR b', 'false')
    """
    return " OR ".join(dict.fromkeys(tests)) or "false"
