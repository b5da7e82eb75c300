"""Conversion of operations to text.

The text is canonical, with as few parentheses as possible: ``parse(show(x)) == x``.
"""

from __future__ import annotations

from typing import assert_never

from ..errors import UsageError
from ..model.guard import Hold
from ..model.instant import show_duration
from ..model.qos import Correct, Delivery
from ..model.space import Circle, Point, Polygon, Rectangle, Shape
from ..model.table import Column
from ..model.topic import Attribute, Topic
from .literal import is_name, write_number, write_text
from .ops import (
    Absolute,
    And,
    Arithmetic,
    Between,
    Call,
    Case,
    Compare,
    DeclareRegion,
    DeclareTable,
    DeclareTopic,
    Expect,
    Expression,
    Given,
    Let,
    Levels,
    LocationLiteral,
    MemberAttribute,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Silent,
    Statement,
    Text,
    Truth,
    UseGazetteer,
)

# how tightly an expression binds
OR, AND, NOT, COMPARISON, SUM, PRODUCT, UNARY, ATOM = range(8)


# --- statements --------------------------------------------------------------------------------


def show_statement(statement: Statement) -> str:
    """Return the text of a statement that belongs to no kind of condition."""
    match statement:
        case Let(name, value):
            return f"let {name} = {show_expression(value)}"
        case DeclareTopic(topic):
            return show_topic(topic)
        case DeclareRegion(name, shape, parent):
            shaped = "" if shape is None else f" = {show_shape(shape)}"
            return f"region {label(name)}{shaped}" + ("" if parent is None else f" in {label(parent)}")
        case DeclareTable():
            return _table(statement)
        case UseGazetteer(path):
            return f"gazetteer {write_text(path)}"
        case Case(name, given, expect, until):
            goes_on = [] if until is None else [f"  until {show_duration(until)}"]
            head = f"case {write_text(name)}"
            return "\n".join([head, *map(_show_given, given), *goes_on, *map(_expect, expect)])
        case other:
            raise AssertionError(other)


def show_topic(topic: Topic) -> str:
    """Return the text of a topic: ``topic Temperature (value float °C)``."""
    return f"topic {topic.name} ({', '.join(map(_attribute, topic.attributes))})"


def _table(statement: DeclareTable) -> str:
    if statement.data is not None:
        raise UsageError(f"table '{statement.name}' was given in Python: it has no text")
    columns = ", ".join(map(_attribute, statement.columns))
    by = f" by {', '.join(statement.by)}" if statement.by else ""
    return f"table {statement.name} {write_text(statement.path)} ({columns}){by}"


def _attribute(attribute: Attribute | Column) -> str:
    return " ".join(filter(None, (attribute.name, attribute.kind, attribute.unit)))


def show_shape(shape: Shape) -> str:
    """Return the text of a shape: ``circle (0, 0) 500``."""
    match shape:
        case Rectangle(low, high):
            return f"rectangle {_point(low)} {_point(high)}"
        case Circle(centre, radius):
            return f"circle {_point(centre)} {show_coordinate(radius)}"
        case Polygon(corners):
            return f"polygon {' '.join(map(_point, corners))}"
        case _:
            assert_never(shape)


def _point(point: Point) -> str:
    return f"({', '.join(map(show_coordinate, point))})"


def show_coordinate(value: float) -> str:
    """Return the text of a coordinate in metres."""
    return write_number(value + 0.0).removesuffix(".0")  # -0.0 is 0


def label(name: str) -> str:
    """Return the text of a name, in quotes if necessary."""
    return name if is_name(name) else write_text(name)


def show_hold(hold: Hold) -> str:
    """Return the text of a minimum duration: `` for 5 min``, `` for 3 readings``."""
    if hold.readings:
        return f" for {hold.readings} reading{'s' * (hold.readings > 1)}"
    if hold.column:
        return f" for {hold.column}"
    return f" for {show_duration(hold.length)}" if hold.length else ""


def show_levels(levels: Levels) -> str:
    """Return the text of groups of names: ``room, sensor within floor``."""
    return " within ".join(", ".join(map(label, level)) for level in levels)


def show_delivery(delivery: Delivery) -> str:
    """Return the text of a delivery: ``ordered 30 s late apply``; empty for the default."""
    words = [] if delivery.wait is None else [f"ordered {show_duration(delivery.wait)}"]
    match delivery.late:
        case Correct(within):
            words.append(f"late correct {show_duration(within)}")
        case "apply":
            words.append("late apply")
    return " ".join(words)


def _show_given(given: Given) -> str:
    words = ["  given", given.topic]
    if given.source is not None:
        words += ["from", write_text(given.source)]
    where = [] if given.place is None else [write_text(given.place)]
    where += [] if given.location is None else [_point(given.location)]
    words += ["at", *where] if where else []
    if given.start:
        words += ["starting", show_duration(given.start)]
    return f"{' '.join(words)} every {show_duration(given.every)}: {', '.join(map(_row, given.rows))}"


def _row(row: tuple[Number | Text | Truth | None, ...]) -> str:
    values = ["_" if value is None else show_expression(value) for value in row]
    return values[0] if len(values) == 1 else f"({', '.join(values)})"


def _expect(expect: Expect) -> str:
    scope = "" if expect.scope is None else f" in {write_text(expect.scope)}"
    marks = ", ".join(f"{status} at {show_duration(when)}" for status, when in expect.marks)
    return f"  expect {label(expect.subscription)}{scope}: {marks or 'nothing'}"


# --- expressions -------------------------------------------------------------------------------


def show_expression(op: Expression, tightness: int = OR) -> str:
    """Return the text of an expression, in parentheses if it binds less tightly than ``tightness``."""
    shown, own_tightness = _show_with_tightness(op)
    return shown if own_tightness >= tightness else f"({shown})"


def _show_with_tightness(op: Expression) -> tuple[str, int]:
    """Return the text of an expression, and how tightly it binds."""
    inner = show_expression
    match op:
        case Call(function, args, around):
            center = [] if around is None else [write_text(around)]
            return f"{function}({', '.join([*args, *center])})", ATOM
        case Name(name):
            return name, ATOM
        case MemberAttribute(owner, name, _, otherwise):
            default = "" if otherwise is None else f" else {_show_with_tightness(otherwise)[0]}"
            return (f"{owner}.{name}" if owner else name) + default, ATOM
        case Number(value, unit):
            return _number(value, unit), UNARY if value < 0 else ATOM
        case Text(value):
            return write_text(value), ATOM
        case LocationLiteral(point):
            return _point(point), ATOM
        case Truth(value):
            return str(value).lower(), ATOM
        case Arithmetic(sign, left, right):
            own_tightness = SUM if sign in ("+", "-") else PRODUCT
            return f"{inner(left, own_tightness)} {sign} {inner(right, own_tightness + 1)}", own_tightness
        case Negative(Number() as arg) if not arg.value < 0:
            return f"-({inner(arg)})", UNARY
        case Negative(arg):
            return f"-{inner(arg, UNARY)}", UNARY
        case Absolute(arg):
            return f"abs({inner(arg)})", ATOM
        case Compare(sign, left, right):
            return f"{inner(left, SUM)} {sign} {inner(right, SUM)}", COMPARISON
        case Between(arg, low, high):
            return f"{inner(arg, SUM)} in [{inner(low)}, {inner(high)}]", COMPARISON
        case And(left, right):
            return f"{inner(left, AND)} && {inner(right, NOT)}", AND
        case Or(left, right):
            return f"{inner(left, OR)} || {inner(right, AND)}", OR
        case Not(arg):  # !(a > b) would read as (!a) > b without its parentheses
            return f"!{inner(arg, NOT if isinstance(arg, Not) else UNARY)}", NOT
        case Silent(length):
            return f"silent {show_duration(length)}", ATOM
        case _:
            assert_never(op)


def _number(value: float | int, unit: str | None) -> str:
    try:
        return write_number(value) + ("" if unit is None else f" {unit}")
    except ValueError as error:
        raise UsageError(str(error)) from None
