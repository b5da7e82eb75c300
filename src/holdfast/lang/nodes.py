"""Reading the parts of the parser's trees: words, places, points, durations, expressions."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from ..errors import DefinitionError, Place, did_you_mean
from ..model.instant import Duration
from ..model.space import Point, Shape, circle, polygon, rectangle
from ..model.unit import UNITS
from . import literal
from .ops import (
    Absolute,
    And,
    Arithmetic,
    ArithmeticSign,
    Between,
    Compare,
    ComparisonSign,
    Expression,
    Levels,
    Member,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Text,
    Truth,
    Word,
)

if TYPE_CHECKING:
    from lark import Token, Tree

    Node = Tree[Token] | Token


_SIGNS = {"≤": "<=", "≥": ">=", "≠": "!="}


def is_tree(node: Node | None) -> bool:
    """Whether a node has parts, and is not a word."""
    return hasattr(node, "children")


def as_tree(node: Node | None) -> Tree[Token]:
    """The node, known to have parts."""
    return cast("Tree[Token]", node)


def as_token(node: Node | None) -> Token:
    """The node, known to be a word."""
    return cast("Token", node)


def parts_of(node: Node) -> list[Node]:
    """The nodes that a node is made of."""
    return [part for part in as_tree(node).children if part is not None] if is_tree(node) else []


def place(first: Node, last: Node | None = None) -> Place:
    """From where the first node starts to where the last one ends."""
    start: Any = as_tree(first).meta if is_tree(first) else first
    node = first if last is None else last
    end: Any = as_tree(node).meta if is_tree(node) else node
    if getattr(start, "line", None) is None:
        return Place(1, 1)
    width = end.end_column - start.column if end.end_line == start.line else 1_000
    return Place(start.line, start.column, max(1, width))


def wrong(error: ValueError, at: Node) -> DefinitionError:
    """The error at a node."""
    return DefinitionError(str(error), place(at))


# --- words ---------------------------------------------------------------------------------------


def name_of(token: Token) -> str:
    """A name, if it is not a word of the language."""
    if token in literal.RESERVED_WORDS:
        raise DefinitionError(
            f"'{token}' is a word of the language and cannot be a name",
            place(token),
            hint=f"Choose another, such as '{token}_'.",
        )
    return str(token)


def label_of(token: Token) -> str:
    """A name, or a text in quotes."""
    return text_of(token) if token.type == "STRING" else name_of(token)


def text_of(token: Token) -> str:
    """The text between quotes."""
    try:
        return literal.read_text(token)
    except ValueError as error:
        raise wrong(error, token) from None


def one_of(token: Token, known: tuple[str, ...], what: str) -> str:
    """A word, if it is one of those that are known."""
    if token not in known:
        choice = f"It is one of {', '.join(known)}."
        hint = f"{choice} {did_you_mean(token, known) or ''}".rstrip()
        raise DefinitionError(f"unknown word '{token}' for {what}", place(token), hint=hint)
    return str(token)


def levels(node: Node) -> Levels:
    """The groups of names of ``per`` or ``scope``."""
    return tuple(tuple(word_of(as_token(name)) for name in parts_of(level)) for level in parts_of(node))


def topic_word(token: Token) -> Word:
    """A name that remembers where it stood."""
    return Word(name_of(token), place(token))


def word_of(token: Token) -> Word:
    """A name or text that remembers where it stood."""
    return Word(label_of(token), place(token))


def duration(node: Node, *, above_zero: bool = False) -> Duration:
    """A duration in microseconds."""
    minus, token = (as_token(part) for part in as_tree(node).children)
    try:
        length = literal.read_duration(*literal.split_quantity(token))
        if minus is not None:
            raise ValueError("a duration cannot be negative")
        if above_zero and not length:
            raise ValueError("this duration must be above zero")
    except ValueError as error:
        raise wrong(error, node) from None
    return length


# --- space -----------------------------------------------------------------------------------


def point_of(node: Node) -> Point:
    """The coordinates of a point."""
    return tuple(coordinate_of(child) for child in as_tree(node).children)


def coordinate_of(node: Node) -> float:
    """A length in metres."""
    number = signed(as_tree(node).children)
    if number.unit is None:
        return float(number.value)
    unit = UNITS[number.unit]
    if unit.dimension != UNITS["m"].dimension:
        message = f"{number.unit} is not a unit of length"
        raise DefinitionError(message, place(node), hint="Coordinates and radii are in metres.")
    return float(number.value * unit.factor)


def shape_of(node: Tree[Token]) -> Shape:
    """A rectangle, circle or polygon."""
    try:
        match node.data, list(node.children):
            case "rectangle", [low, high]:
                return rectangle(point_of(low), point_of(high))
            case "circle", [centre, radius]:
                return circle(point_of(centre), coordinate_of(radius))
            case "polygon", corners:
                return polygon(point_of(corner) for corner in corners)
            case other:
                raise AssertionError(other)
    except ValueError as error:
        raise wrong(error, node) from None


# --- expressions -------------------------------------------------------------------------------


def expression(node: Node) -> Expression:
    """The expression that a tree of the grammar stands for."""
    if not is_tree(node):
        return _atom(as_token(node))
    at = place(node)
    parts: list[Any] = list(as_tree(node).children)
    match as_tree(node).data:
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
            number = as_token(parts[1])
            if not is_tree(parts[1]) and number.type in ("NUMBER", "QUANTITY"):
                return signed(parts)
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
        case "NAME" | "ORIGIN":
            return Name(name_of(token), place(token))
        case "MEMBER":
            owner, _, name = token.partition(".")
            return Member(owner, name, place(token))
        case "NUMBER" | "QUANTITY":
            return signed([None, token])
        case "STRING":
            return Text(text_of(token), place(token))
        case "TRUE" | "FALSE":
            return Truth(token.type == "TRUE", place(token))
        case other:
            raise AssertionError(other)


def signed(parts: Iterable[Any]) -> Number:
    """A number with its sign and unit."""
    minus, token = parts
    digits, unit = literal.split_quantity(token)
    try:
        value = literal.read_number(digits)
    except ValueError as error:
        raise wrong(error, token) from None
    return Number(value if minus is None else -value, unit, place(token if minus is None else minus, token))
