"""The parser's trees become operations, each with the place at which it stood."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, cast

from ..errors import DefinitionError, Place, did_you_mean
from ..model.instant import MINUTE, Duration
from ..model.qos import Delivery, Late
from ..model.space import Point, Shape, circle, polygon, rectangle
from ..model.topic import KINDS, Attribute, Kind, Topic
from ..model.unit import UNITS
from . import literal
from .ops import (
    Absolute,
    And,
    Arithmetic,
    ArithmeticSign,
    Between,
    Case,
    Compare,
    ComparisonSign,
    DeclareRegion,
    DeclareTopic,
    Expect,
    Expression,
    Given,
    Let,
    Levels,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Statement,
    Subscribe,
    Text,
    Truth,
    UseGazetteer,
    Word,
)

if TYPE_CHECKING:
    from lark import Token, Tree

    Node = Tree[Token] | Token


_SIGNS = {"≤": "<=", "≥": ">=", "≠": "!="}
_OTHER_KINDS: dict[str, Kind] = {
    "double": "float", "real": "float", "number": "float", "numeric": "float", "decimal": "float",
    "integer": "int", "long": "int", "string": "text", "str": "text", "varchar": "text",
    "boolean": "bool", "flag": "bool",
}  # fmt: skip
STATUSES = ("ingress", "egress", "atomic")
LATE: tuple[Late, ...] = ("drop", "apply")


def _is_tree(node: Node | None) -> bool:
    return hasattr(node, "children")


def _tree(node: Node | None) -> Tree[Token]:
    return cast("Tree[Token]", node)


def _token(node: Node | None) -> Token:
    return cast("Token", node)


def parts_of(node: Node) -> list[Node]:
    """The nodes that a node is made of."""
    return [part for part in _tree(node).children if part is not None] if _is_tree(node) else []


def place(first: Node, last: Node | None = None) -> Place:
    """From where the first node starts to where the last one ends."""
    start: Any = _tree(first).meta if _is_tree(first) else first
    node = first if last is None else last
    end: Any = _tree(node).meta if _is_tree(node) else node
    if getattr(start, "line", None) is None:
        return Place(1, 1)
    width = end.end_column - start.column if end.end_line == start.line else 1_000
    return Place(start.line, start.column, max(1, width))


def _wrong(error: ValueError, at: Node) -> DefinitionError:
    return DefinitionError(str(error), place(at))


# --- statements --------------------------------------------------------------------------------


def statements(tree: Node) -> Iterator[Statement]:
    """The statements of a file, in their order."""
    anonymous = count(1)
    for node in _tree(tree).children:
        statement = _tree(node)
        parts: list[Any] = list(statement.children)
        match statement.data:
            case "let":
                yield Let(_name(parts[0]), expression(parts[1]), place(parts[0]))
            case "topic":
                yield _topic(parts)
            case "region":
                yield _region(parts)
            case "gazetteer":
                yield UseGazetteer(_text(parts[0]), place(parts[0]))
            case "filter":
                name, topic, where, *clauses = parts
                yield _subscribe(name, _topic_word(topic), (expression(where), Truth(True), ()), clauses)
            case "state":
                name, topic, condition, *clauses = parts
                yield _subscribe(name, _topic_word(topic), _condition(condition), clauses)
            case "labelled" | "equation":
                name, condition, *clauses = parts
                yield _subscribe(name, None, _condition(condition), clauses)
            case "anonymous":
                condition, *clauses = parts
                yield _subscribe(condition, None, _condition(condition), clauses, f"state_{next(anonymous)}")
            case "case":
                yield _case(parts)
            case other:
                raise AssertionError(other)


def _name(token: Token) -> str:
    if token in literal.RESERVED_WORDS:
        raise DefinitionError(
            f"'{token}' is a word of the language and cannot be a name",
            place(token),
            hint=f"Choose another, such as '{token}_'.",
        )
    return str(token)


def _label(token: Token) -> str:
    return _text(token) if token.type == "STRING" else _name(token)


def _text(token: Token) -> str:
    try:
        return literal.read_text(token)
    except ValueError as error:
        raise _wrong(error, token) from None


def _topic(parts: list[Any]) -> DeclareTopic:
    name, *attributes = parts
    made = [_attribute(*node.children) for node in attributes if node is not None]
    return DeclareTopic(Topic(_name(name), tuple(made)), place(name))


def _attribute(name: Token, kind: Token, unit: Token | None) -> Attribute:
    if kind not in KINDS:
        near = _OTHER_KINDS.get(kind.casefold())
        hint = f"Did you mean '{near}'?" if near else did_you_mean(kind, KINDS)
        kinds = "An attribute is float, int, text or bool."
        raise DefinitionError(f"unknown kind '{kind}'", place(kind), hint=f"{kinds} {hint or ''}".rstrip())
    return Attribute(
        Word(_name(name), place(name)), cast(Kind, str(kind)), None if unit is None else str(unit)
    )


def _region(parts: list[Any]) -> DeclareRegion:
    name, shape, parent = parts
    return DeclareRegion(
        _label(name),
        None if shape is None else _shape(shape),
        None if parent is None else _label(parent),
        place(name),
    )


def _shape(node: Tree[Token]) -> Shape:
    try:
        match node.data, list(node.children):
            case "rectangle", [low, high]:
                return rectangle(_point(low), _point(high))
            case "circle", [centre, radius]:
                return circle(_point(centre), _coordinate(radius))
            case "polygon", corners:
                return polygon(_point(corner) for corner in corners)
            case other:
                raise AssertionError(other)
    except ValueError as error:
        raise _wrong(error, node) from None


def _point(node: Node) -> Point:
    return tuple(_coordinate(child) for child in _tree(node).children)


def _coordinate(node: Node) -> float:
    number = _signed(_tree(node).children)
    if number.unit is None:
        return float(number.value)
    unit = UNITS[number.unit]
    if unit.dimension != UNITS["m"].dimension:
        message = f"{number.unit} is not a unit of length"
        raise DefinitionError(message, place(node), hint="Coordinates and radii are in metres.")
    return float(number.value * unit.factor)


# --- subscriptions -----------------------------------------------------------------------------

Predicates = tuple[Expression, Expression, Levels]


def _condition(node: Node) -> Predicates:
    """Entrance, exit and scope of ``[…]``, ``{…}`` or a plain content filter."""
    if not _is_tree(node) or _tree(node).data not in ("pair", "triple"):
        return expression(node), Truth(True), ()
    parts: list[Any] = list(_tree(node).children)
    enter = expression(parts[0])
    if _tree(node).data == "pair":
        return enter, Not(enter, place(parts[0])) if parts[1] is None else expression(parts[1]), ()
    regions = tuple(_word(token) for token in parts[2:] if token is not None and token.type != "EVERYTHING")
    return enter, expression(parts[1]), (regions,) if regions else ()


def _subscribe(
    at: Node,
    topic: str | None,
    predicates: Predicates,
    clauses: Iterable[Tree[Token]],
    name: str | None = None,
) -> Subscribe:
    enter, exit, scope = predicates
    said: dict[str, Any] = {"scope": scope} if scope else {}
    for clause in clauses:
        word, value = _clause(clause)
        if word in said:
            raise DefinitionError(f"'{_CLAUSES[word]}' is given twice", place(clause))
        said[word] = value
    return Subscribe(
        _name(_token(at)) if name is None else name,
        topic,
        enter,
        exit,
        said.get("per", ()),
        said.get("scope", ()),
        Delivery(said.get("wait"), said.get("late", "drop")),
        place(at),
    )


_CLAUSES = {"per": "per", "scope": "scope", "wait": "timely or ordered", "late": "late"}


def _clause(node: Tree[Token]) -> tuple[str, object]:
    match node.data, list(node.children):
        case ("per" | "scope") as word, [groups]:
            return word, levels(groups)
        case "timely", []:
            return "wait", None
        case "ordered", [wait]:
            return "wait", duration(wait)
        case "late", [word]:
            return "late", _one_of(_token(word), LATE, "what to do with late events")
        case other:
            raise AssertionError(other)


def _one_of(token: Token, known: tuple[str, ...], what: str) -> str:
    if token not in known:
        choice = f"It is one of {', '.join(known)}."
        hint = f"{choice} {did_you_mean(token, known) or ''}".rstrip()
        raise DefinitionError(f"unknown word '{token}' for {what}", place(token), hint=hint)
    return str(token)


def levels(node: Node) -> Levels:
    """The groups of names of ``per`` or ``scope``."""
    return tuple(tuple(_word(_token(name)) for name in parts_of(level)) for level in parts_of(node))


def _topic_word(token: Token) -> Word:
    return Word(_name(token), place(token))


def _word(token: Token) -> Word:
    return Word(_label(token), place(token))


def duration(node: Node, *, above_zero: bool = False) -> Duration:
    """A duration in microseconds."""
    minus, token = (_token(part) for part in _tree(node).children)
    try:
        length = literal.read_duration(*literal.split_quantity(token))
        if minus is not None:
            raise ValueError("a duration cannot be negative")
        if above_zero and not length:
            raise ValueError("this duration must be above zero")
    except ValueError as error:
        raise _wrong(error, node) from None
    return length


# --- cases -------------------------------------------------------------------------------------


def _case(parts: list[Any]) -> Case:
    name, *nodes = parts
    return Case(
        _text(name),
        tuple(_given(node) for node in nodes if node.data == "given"),
        tuple(_expect(node) for node in nodes if node.data == "expect"),
        place(name),
    )


def _given(node: Tree[Token]) -> Given:
    topic, *parts = [cast("Any", child) for child in node.children]
    options: dict[str, Any] = {}
    for part in parts:
        if part.data != "row" and part.data in options:
            raise DefinitionError(f"'{part.data}' is given twice", place(part))
        options[part.data] = part.children[0]
    rows = tuple(tuple(_value(value) for value in part.children) for part in parts if part.data == "row")
    if "every" not in options and len(rows) > 1:
        raise DefinitionError(
            "the readings need a distance in time", place(topic), hint="Say how often one comes: every 1 min"
        )
    return Given(
        _name(topic),
        rows,
        duration(options["every"], above_zero=True) if "every" in options else MINUTE,
        duration(options["starting"]) if "starting" in options else 0,
        _text(options["from"]) if "from" in options else None,
        _text(options["at"]) if "at" in options else None,
        place(topic),
    )


def _value(node: Node) -> Number | Text | Truth | None:
    parts = [_token(part) for part in _tree(node).children if part is not None]
    if parts[-1].type == "MISSING":
        return None
    if parts[-1].type in ("NUMBER", "QUANTITY"):
        return _signed([*([None] if len(parts) == 1 else []), *parts])
    return cast("Text | Truth", expression(parts[-1]))


def _expect(node: Tree[Token]) -> Expect:
    name, scope, *marks = [cast("Any", child) for child in node.children]
    return Expect(
        _name(name),
        tuple(
            (_one_of(status, STATUSES, "a notification's status"), duration(when))
            for status, when in (mark.children for mark in marks if mark is not None)
        ),
        None if scope is None else _text(scope),
        place(name),
    )


# --- expressions -------------------------------------------------------------------------------


def expression(node: Node) -> Expression:
    """The expression that a tree of the grammar stands for."""
    if not _is_tree(node):
        return _atom(_token(node))
    at = place(node)
    parts: list[Any] = list(_tree(node).children)
    match _tree(node).data:
        case "either":
            return Or(expression(parts[0]), expression(parts[1]), at)
        case "both":
            return And(expression(parts[0]), expression(parts[1]), at)
        case "negation":
            return Not(expression(parts[0]), at)
        case "chain":
            return _chain(parts)
        case "between":
            arg, low, high = map(expression, parts)
            return Between(arg, low, high, at)
        case "arithmetic":
            left, sign, right = parts
            return Arithmetic(cast(ArithmeticSign, str(sign)), expression(left), expression(right), at)
        case "negative":
            number = _token(parts[1])
            if not _is_tree(parts[1]) and number.type in ("NUMBER", "QUANTITY"):
                return _signed(parts)
            return Negative(expression(parts[1]), at)
        case "absolute":
            return Absolute(expression(parts[0]), at)
        case "group":
            return expression(parts[0])
        case other:
            raise AssertionError(other)


def _chain(parts: list[Any]) -> Expression:
    """``a < b < c`` is a conjunction."""
    operands = [expression(node) for node in parts[::2]]
    signs = [cast(ComparisonSign, _SIGNS.get(sign, str(sign))) for sign in parts[1::2]]
    links = [
        Compare(sign, left, right, place(*nodes))
        for sign, (left, right), nodes in zip(signs, pairwise(operands), pairwise(parts[::2]), strict=True)
    ]
    whole: Expression = links[0]
    for i, link in enumerate(links[1:], start=2):
        whole = And(whole, link, place(parts[0], parts[2 * i]))
    return whole


def _atom(token: Token) -> Expression:
    match token.type:
        case "NAME":
            return Name(_name(token), place(token))
        case "NUMBER" | "QUANTITY":
            return _signed([None, token])
        case "STRING":
            return Text(_text(token), place(token))
        case "TRUE" | "FALSE":
            return Truth(token.type == "TRUE", place(token))
        case other:
            raise AssertionError(other)


def _signed(parts: Iterable[Any]) -> Number:
    minus, token = parts
    digits, unit = literal.split_quantity(token)
    try:
        value = literal.read_number(digits)
    except ValueError as error:
        raise _wrong(error, token) from None
    return Number(value if minus is None else -value, unit, place(token if minus is None else minus, token))
