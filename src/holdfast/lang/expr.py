"""Python operators that build the same operations as text.

temp.value > 25                (temp.value > 25) & ~temp.ok
abs(temp.value - 20) <= 2      temp.value.between(20, 25)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from numbers import Integral, Real
from typing import Any, NoReturn

from ..errors import UsageError, did_you_mean
from ..model.topic import Topic
from ..model.unit import UNITS, nearest
from .literal import is_name
from .ops import (
    Absolute,
    And,
    Arithmetic,
    ArithmeticSign,
    Between,
    Compare,
    ComparisonSign,
    Expression,
    MemberAttribute,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Text,
    Truth,
)

Operand = Any  # an Expr, a number, a text or a truth value


class Expr:
    """An expression under construction. ``op`` is the operation that it builds."""

    __slots__ = ("op",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, op: Expression) -> None:
        self.op = op

    def __gt__(self, other: Operand) -> Expr:
        return self._compare(">", other)

    def __ge__(self, other: Operand) -> Expr:
        return self._compare(">=", other)

    def __lt__(self, other: Operand) -> Expr:
        return self._compare("<", other)

    def __le__(self, other: Operand) -> Expr:
        return self._compare("<=", other)

    def __eq__(self, other: Operand) -> Expr:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: Operand) -> Expr:  # type: ignore[override]
        return self._compare("!=", other)

    def __add__(self, other: Operand) -> Expr:
        return _compute("+", self, other)

    def __radd__(self, other: Operand) -> Expr:
        return _compute("+", other, self)

    def __sub__(self, other: Operand) -> Expr:
        return _compute("-", self, other)

    def __rsub__(self, other: Operand) -> Expr:
        return _compute("-", other, self)

    def __mul__(self, other: Operand) -> Expr:
        return _compute("*", self, other)

    def __rmul__(self, other: Operand) -> Expr:
        return _compute("*", other, self)

    def __truediv__(self, other: Operand) -> Expr:
        return _compute("/", self, other)

    def __rtruediv__(self, other: Operand) -> Expr:
        return _compute("/", other, self)

    def __neg__(self) -> Expr:
        return Expr(Negative(self.op))

    def __abs__(self) -> Expr:
        return Expr(Absolute(self.op))

    def __and__(self, other: Operand) -> Expr:
        return Expr(And(self.op, operand(other)))

    def __rand__(self, other: Operand) -> Expr:
        return Expr(And(operand(other), self.op))

    def __or__(self, other: Operand) -> Expr:
        return Expr(Or(self.op, operand(other)))

    def __ror__(self, other: Operand) -> Expr:
        return Expr(Or(operand(other), self.op))

    def __invert__(self) -> Expr:
        return Expr(Not(self.op))

    def between(self, low: Operand, high: Operand) -> Expr:
        """Build ``self in [low, high]``, with both ends included."""
        return Expr(Between(self.op, operand(low), operand(high)))

    def __bool__(self) -> NoReturn:
        raise UsageError(
            "an expression has no truth value until it meets an event: write & for 'and', | for 'or', "
            "~ for 'not' (with parentheses around comparisons), and .between(low, high) for a chain"
        )

    def __repr__(self) -> str:
        from .show import show_expression

        return f"<{show_expression(self.op)}>"

    def _compare(self, sign: ComparisonSign, other: Operand) -> Expr:
        return Expr(Compare(sign, self.op, operand(other)))


def _compute(sign: ArithmeticSign, left: Operand, right: Operand) -> Expr:
    return Expr(Arithmetic(sign, operand(left), operand(right)))


def operand(value: Operand) -> Expression:
    """Return a Python value or expression as an operation."""
    match value:
        case Expr():
            return value.op
        case bool():
            return Truth(value)
        case Integral():
            return Number(int(value))
        case Real() if float(value) - float(value) == 0:
            return Number(float(value))
        case str():
            return Text(value)
    raise UsageError(f"{value!r} cannot stand in a predicate: use a finite number, a text, True or False")


def predicate(value: Operand) -> Expression:
    """Return an expression or a text as the operation of a predicate."""
    if isinstance(value, str):
        from .grammar import parse_expression

        return without_places(parse_expression(value))
    return operand(value)


def without_places(op: Expression) -> Expression:
    """Return an operation without the places of its parts in the text."""
    changes: dict[str, Any] = {
        f.name: without_places(part)
        for f in fields(op)
        if isinstance(part := getattr(op, f.name), Expression)
    }
    return replace(op, at=None, **changes)


def quantity(value: float | int, unit: str) -> Expr:
    """Return a literal with a unit: ``quantity(25, "°C")``."""
    if unit not in UNITS:
        raise UsageError(f"unknown unit '{unit}'. {nearest(unit) or ''}".rstrip())
    number = operand(value)
    if not isinstance(number, Number):
        raise UsageError(f"a quantity needs a number, not {value!r}")
    return Expr(Number(number.value, unit))


class TopicHandle:
    """A declared topic. Its attributes are expressions: ``temp.value``, ``temp["value"]``."""

    __slots__ = ("_topic",)

    def __init__(self, topic: Topic) -> None:
        self._topic = topic

    def __getitem__(self, name: str) -> Expr:
        if name not in self._topic.by_name:
            names = ", ".join(a.name for a in self._topic.attributes)
            hint = did_you_mean(name, self._topic.by_name) or ""
            raise UsageError(f"topic '{self._topic.name}' has no '{name}'; it has {names}. {hint}".rstrip())
        return Expr(Name(name))

    def __getattr__(self, name: str) -> Expr:
        if name.startswith("__"):
            raise AttributeError(name)
        return self[name]

    def __dir__(self) -> list[str]:
        return list(self._topic.by_name)

    def __repr__(self) -> str:
        return f"<topic {self._topic.name}>"


class TableHandle:
    """A declared table. Its columns are expressions: ``limits.high``, ``limits["high"]``."""

    __slots__ = ("_columns", "_name")

    def __init__(self, name: str, columns: Sequence[str]) -> None:
        self._name, self._columns = name, columns

    def __getitem__(self, column: str) -> Expr:
        if column not in self._columns:
            hint = did_you_mean(column, self._columns) or ""
            has = ", ".join(self._columns)
            raise UsageError(f"table '{self._name}' has no '{column}'; it has {has}. {hint}".rstrip())
        return Expr(MemberAttribute(self._name, column))

    def __getattr__(self, column: str) -> Expr:
        if column.startswith("__"):
            raise AttributeError(column)
        return self[column]

    def __repr__(self) -> str:
        return f"<table {self._name}>"


def name_of(topic: TopicHandle | str) -> str:
    """Return the name of a topic, given by its handle or its name."""
    return topic if isinstance(topic, str) else topic._topic.name


def require_name(name: str, what: str) -> str:
    """Return a name. Raises ``UsageError`` if it cannot be a name in a definition."""
    if not is_name(name):
        raise UsageError(
            f"'{name}' cannot be the name of a {what}: a name is made of letters, digits and '_', "
            "does not start with a digit, and is not a word of the language"
        )
    return name
