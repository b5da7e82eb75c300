"""Operations as text: canonical, with no more parentheses than needed; ``parse(show(x)) == x``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, assert_never

from ..errors import UsageError
from ..model.guard import Care, Hold, Roster
from ..model.instant import show_duration
from ..model.qos import Correct, Delivery
from ..model.space import Circle, Point, Polygon, Rectangle, Shape
from ..model.table import Column
from ..model.topic import Attribute, Topic
from .literal import is_name, write_number, write_text
from .ops import (
    Absolute,
    Align,
    And,
    Arithmetic,
    Between,
    Beyond,
    Call,
    Case,
    Collide,
    Compare,
    Correlate,
    DeclareGroup,
    DeclareRegion,
    DeclareRoute,
    DeclareTable,
    DeclareTopic,
    Detect,
    During,
    Expect,
    Expression,
    Fold,
    Given,
    Ladder,
    Let,
    Levels,
    Member,
    Mute,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Relate,
    Silent,
    Spot,
    Statement,
    Subscribe,
    Tally,
    Text,
    Truth,
    UseGazetteer,
    While,
)

if TYPE_CHECKING:
    from .app import App

# how tightly an expression binds
OR, AND, NOT, COMPARISON, SUM, PRODUCT, UNARY, ATOM = range(8)


Notation = Literal["readable", "thesis"]


def show(what: App | Statement | Expression, notation: Notation = "readable") -> str:
    """The text of a definition, a statement or an expression; components also as the thesis' tables.

    >>> show(Compare(">", Name("value"), Number(25, "°C")))
    'value > 25 °C'
    """
    if isinstance(what, Statement):
        return show_statement(what, notation)
    if isinstance(what, Expression):
        return show_expression(what)
    return "".join(show_statement(statement, notation) + "\n" for statement in what.statements)


# --- statements --------------------------------------------------------------------------------


def show_statement(statement: Statement, notation: Notation = "readable") -> str:
    """The text of one statement."""
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
        case Subscribe():
            return _subscribe(statement)
        case Ladder(name, rungs):
            return _ladder(name, rungs)
        case Mute():
            return _mute(statement)
        case Tally():
            return _tally(statement)
        case Fold():
            return _fold(statement)
        case Detect():
            from .component import show, table

            return (show.show_detect if notation == "readable" else table.show_table)(statement)
        case Align():
            from .correlation.show import show_align

            return show_align(statement)
        case Correlate():
            from .correlation.show import show_correlate

            return show_correlate(statement)
        case Relate() | DeclareGroup() | DeclareRoute():
            from .relation.show import show_relation

            return show_relation(statement, show_expression, label, show_delivery)
        case Collide(function):
            return f"collide {function}"
        case Case(name, given, expect, until):
            goes_on = [] if until is None else [f"  until {show_duration(until)}"]
            head = f"case {write_text(name)}"
            return "\n".join([head, *map(_given, given), *goes_on, *map(_expect, expect)])
        case _:
            assert_never(statement)


def show_topic(topic: Topic) -> str:
    """``topic Temperature (value float °C)``."""
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
    """``circle (0, 0) 500``."""
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
    """A length in metres."""
    return write_number(value + 0.0).removesuffix(".0")  # -0.0 is 0


def label(name: str) -> str:
    """A name, in quotes where it must be."""
    return name if is_name(name) else write_text(name)


def _subscribe(statement: Subscribe) -> str:
    care = statement.care
    if statement.topic is None:
        head = f"{statement.name}: {_pair(statement)}"
    elif statement.exit == Truth(True) and is_name(statement.name) and not (care.enter or care.exit):
        head = f"filter {statement.name} on {statement.topic} where {show_expression(statement.enter)}"
    else:
        head = f"state {label(statement.name)} on {statement.topic} {_pair(statement)}"
    return " ".join([head, *_clauses(statement)])


def _ladder(name: str, rungs: tuple[Subscribe, ...]) -> str:
    each = ", ".join(f"{rung.name} {_pair(rung)}" for rung in rungs)
    return " ".join([f"levels {label(name)} on {rungs[0].topic}: {each}", *_clauses(rungs[0])])


def _pair(statement: Subscribe) -> str:
    enter, exit = (show_expression(op) for op in (statement.enter, statement.exit))
    return f"[{enter}{show_hold(statement.care.enter)}; {exit}{show_hold(statement.care.exit)}]"


def _clauses(statement: Subscribe) -> list[str]:
    clauses = [
        f"{word} {show_levels(levels)}"
        for word, levels in (("per", statement.per), ("scope", statement.scope))
        if levels
    ]
    shown = show_delivery(statement.delivery)
    return clauses + ([shown] if shown else []) + list(_care(statement.care))


def show_hold(hold: Hold) -> str:
    """`` for 5 min``, `` for 3 readings``."""
    if hold.readings:
        return f" for {hold.readings} reading{'s' * (hold.readings > 1)}"
    if hold.column:
        return f" for {hold.column}"
    return f" for {show_duration(hold.length)}" if hold.length else ""


def _care(care: Care) -> Iterator[str]:
    if care.unknown is not None:
        yield f"unknown after {show_duration(care.unknown)}"
    if care.forget is not None:
        yield f"forget after {show_duration(care.forget)}"
    if care.initially != "off" or care.quietly:
        yield f"initially {care.initially}" + " quietly" * care.quietly
    if care.roster is not None:
        yield f"roster {_roster(care.roster)}"


def _roster(roster: Roster) -> str:
    if roster.table is not None:
        return roster.table
    return "gazetteer" if roster.path is None else write_text(roster.path)


def show_levels(levels: Levels) -> str:
    """``room, sensor within floor``."""
    return " within ".join(", ".join(map(label, level)) for level in levels)


def show_delivery(delivery: Delivery) -> str:
    """``ordered 30 s late apply``; nothing for the default."""
    words = [] if delivery.wait is None else [f"ordered {show_duration(delivery.wait)}"]
    match delivery.late:
        case Correct(within):
            words.append(f"late correct {show_duration(within)}")
        case "apply":
            words.append("late apply")
    return " ".join(words)


_SHARES = {Number(50, "%"): "half", Number(100, "%"): "all"}


def _tally(tally: Tally) -> str:
    """``state Fire = at least 2 of Smoke within room``."""
    quota = _SHARES.get(tally.least) or f"at least {show_expression(tally.least)}"
    return " ".join([f"state {label(tally.name)} = {quota} of {label(tally.over)}", *_tallying(tally)])


def _tallying(tally: Tally) -> Iterator[str]:
    if tally.within:
        yield f"within {', '.join(map(label, tally.within))}"
    if tally.scope:
        yield f"scope {', '.join(map(label, tally.scope))}"
    if tally.fewer is not None:
        yield f"until fewer than {show_expression(tally.fewer)}"
    if tally.joined:
        yield "joined"
    if tally.roster is not None:
        yield f"roster {write_text(tally.roster)}"
    if tally.unknown != "left":
        yield f"unknown {tally.unknown}"


def _fold(fold: Fold) -> str:
    """``fold Storm = Heat scope floors within building beyond 3``."""
    cells = f"scope {show_levels(fold.scope)}"
    if fold.side is not None and fold.widest is not None:
        cells = f"cells {show_coordinate(fold.side)} m within {show_coordinate(fold.widest)} m"
    fewer = "" if fold.fewer is None else f" until fewer than {show_expression(fold.fewer)}"
    head = f"fold {label(fold.name)} = {label(fold.over)} {cells}"
    return f"{head} beyond {show_expression(fold.most)}{fewer}"


def _mute(mute: Mute) -> str:
    """``mute Child while Parent``."""
    wait = f" ordered {show_duration(mute.wait)}" if mute.wait else ""
    return f"mute {label(mute.target)} {_cause(mute.cause)}{wait}"


def _cause(cause: During | While | Beyond) -> str:
    match cause:
        case During(spans, zone):
            return f"during {write_text(spans)}" + ("" if zone is None else f" in {write_text(zone)}")
        case While(parent):
            return f"while {label(parent)}"
        case Beyond(most, within):
            siblings = f" within {', '.join(map(label, within))}" if within else ""
            return f"beyond {show_expression(most)}{siblings}"


def _given(given: Given) -> str:
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
    """The text of an expression, in parentheses where the place wants it to bind more tightly."""
    shown, own = _shown(op)
    return shown if own >= tightness else f"({shown})"


def _shown(op: Expression) -> tuple[str, int]:
    """The text of an expression and how tightly it binds."""
    inner = show_expression
    match op:
        case Call(function, args, around):
            whom = [] if around is None else [write_text(around)]
            return f"{function}({', '.join([*args, *whom])})", ATOM
        case Name(name):
            return name, ATOM
        case Member(owner, name, _, otherwise):
            default = "" if otherwise is None else f" else {_shown(otherwise)[0]}"
            return (f"{owner}.{name}" if owner else name) + default, ATOM
        case Number(value, unit):
            return _number(value, unit), UNARY if value < 0 else ATOM
        case Text(value):
            return write_text(value), ATOM
        case Spot(point):
            return _point(point), ATOM
        case Truth(value):
            return str(value).lower(), ATOM
        case Arithmetic(sign, left, right):
            own = SUM if sign in ("+", "-") else PRODUCT
            return f"{inner(left, own)} {sign} {inner(right, own + 1)}", own
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
