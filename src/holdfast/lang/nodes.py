"""Readers of tree nodes that several statements share.

They read words, places, points, durations and expressions. An error has the place of its node.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from ..errors import DefinitionError, Place, did_you_mean
from ..model.guard import AT_ONCE, Hold
from ..model.instant import Duration
from ..model.qos import LATE, Correct, Late
from ..model.space import Point, Shape, circle, polygon, rectangle
from ..model.unit import UNITS
from . import literal
from .ops import (
    Absolute,
    And,
    Arithmetic,
    ArithmeticSign,
    Between,
    Call,
    Compare,
    ComparisonSign,
    Expression,
    Levels,
    MemberAttribute,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Silent,
    Text,
    Truth,
    Word,
)

if TYPE_CHECKING:
    from lark import Token, Tree

    Node = Tree[Token] | Token


_SIGNS = {"≤": "<=", "≥": ">=", "≠": "!="}


def is_tree(node: Node | None) -> bool:
    """Whether a node is a tree. Other nodes are tokens or ``None``."""
    return hasattr(node, "children")


def as_tree(node: Node | None) -> Tree[Token]:
    """Return a node with the type of a tree. Nothing is checked at run time."""
    return cast("Tree[Token]", node)


def as_token(node: Node | None) -> Token:
    """Return a node with the type of a token. Nothing is checked at run time."""
    return cast("Token", node)


def parts_of(node: Node) -> list[Node]:
    """Return the children of a node; an empty list for a token."""
    return [part for part in as_tree(node).children if part is not None] if is_tree(node) else []


def place(first: Node, last: Node | None = None) -> Place:
    """Return the place from the start of the first node to the end of the last one."""
    start: Any = as_tree(first).meta if is_tree(first) else first
    node = first if last is None else last
    end: Any = as_tree(node).meta if is_tree(node) else node
    if getattr(start, "line", None) is None:
        return Place(1, 1)
    width = end.end_column - start.column if end.end_line == start.line else 1_000
    return Place(start.line, start.column, max(1, width))


def wrong(error: ValueError, at: Node) -> DefinitionError:
    """Return an error as a ``DefinitionError`` at the place of a node."""
    return DefinitionError(str(error), place(at))


def read_clauses(
    nodes: Iterable[Any],
    read: Callable[[Any], tuple[str, Any]],
    *,
    notation: Mapping[str, str] | None = None,
    given: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the values of clauses by the name of the argument. Raises an error if a clause is given twice.

    `notation` has the words of arguments whose clause has another name. `given` has earlier values.
    """
    values, words = dict(given or {}), notation or {}
    for node in nodes:
        name, value = read(node)
        if name in values:
            raise DefinitionError(f"'{words.get(name, name)}' is given twice", place(node))
        values[name] = value
    return values


# --- words ---------------------------------------------------------------------------------------


def name_of(token: Token, others: Collection[str] = literal.RESERVED_WORDS) -> str:
    """Return a name. Raises an error if it is one of the reserved words ``others``."""
    if token in others:
        raise DefinitionError(
            f"'{token}' is a word of the language and cannot be a name",
            place(token),
            hint=f"Choose another, such as '{token}_'.",
        )
    return str(token)


def starting_name(token: Token) -> Token:
    """Return the name at the start of a statement. Raises an error if it is a word that starts statements."""
    name_of(token, literal.STARTING_WORDS)
    return token


def label_of(token: Token) -> str:
    """Return a name, or the text in quotes that stands for it."""
    return text_of(token) if token.type == "STRING" else name_of(token)


def text_of(token: Token) -> str:
    """Return the text between quotes, with its escapes resolved."""
    try:
        return literal.read_text(token)
    except ValueError as error:
        raise wrong(error, token) from None


def one_of(token: Token, known: tuple[str, ...], what: str) -> str:
    """Return a word of a fixed list. Raises an error for any other word."""
    if token not in known:
        choice = f"It is one of {', '.join(known)}."
        hint = f"{choice} {did_you_mean(token, known) or ''}".rstrip()
        raise DefinitionError(f"unknown word '{token}' for {what}", place(token), hint=hint)
    return str(token)


def late_of(token: Token, within: Node | None, *, corrects: bool = False) -> Late:
    """Return the treatment of late events. With `corrects` the condition can correct its notifications."""
    if token == "correct" and not corrects:
        raise DefinitionError(
            "only states and filters of readings correct what they have told",
            place(token),
            hint="It is late drop, or late apply.",
        )
    if token == "correct" and within is None:
        raise DefinitionError(
            "'late correct' needs how late a reading may be",
            place(token),
            hint="As in: late correct 10 min",
        )
    if token == "correct" and within is not None:
        return Correct(duration(within, above_zero=True))
    word = one_of(token, (*LATE, "correct") if corrects else LATE, "what to do with late events")
    if within is not None:
        raise DefinitionError(f"'late {word}' has no length", place(within), hint=f"Write: late {word}")
    return cast(Late, word)


def levels(node: Node) -> Levels:
    """Return the groups of names after ``per`` or ``scope``."""
    return tuple(tuple(word_of(as_token(name)) for name in parts_of(level)) for level in parts_of(node))


def topic_word(token: Token) -> Word:
    """Return the name of a topic with its place. Raises an error if the name is reserved."""
    return Word(name_of(token), place(token))


def word_of(token: Token) -> Word:
    """Return a name or a text in quotes with its place."""
    return Word(label_of(token), place(token))


def duration(node: Node, *, above_zero: bool = False) -> Duration:
    """Return a duration in microseconds. Raises an error if it is negative."""
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


def hold_of(node: Node | None) -> Hold:
    """Return the minimum duration of a predicate, or its number of readings.

    ``None`` stands for no minimum.
    """
    if node is None:
        return AT_ONCE
    parts = as_tree(node).children
    if len(parts) == 1:
        if not is_tree(parts[0]):
            return Hold(column=as_token(parts[0]))
        return Hold(duration(parts[0], above_zero=True))
    minus, number, _ = (as_token(part) for part in parts)
    try:
        count = literal.read_number(number)
    except ValueError as error:
        raise wrong(error, node) from None
    if minus is not None or not isinstance(count, int) or not 0 < count < 2**31:
        message = "a guard of readings is a whole number of them, at least one"
        raise DefinitionError(message, place(node), hint="As in: value > 25 for 3 readings")
    return Hold(readings=count)


# --- space -----------------------------------------------------------------------------------


def point_of(node: Node) -> Point:
    """Return the coordinates of a point in metres."""
    return tuple(coordinate_of(child) for child in as_tree(node).children)


def coordinate_of(node: Node) -> float:
    """Return a coordinate in metres."""
    number = number_of(as_tree(node).children)
    unit = UNITS[number.unit or "m"]
    if unit.dimension != UNITS["m"].dimension:
        message = f"{number.unit} is not a unit of length"
        raise DefinitionError(message, place(node), hint="Coordinates and radii are in metres.")
    try:
        return literal.finite(number.value * unit.factor)
    except ValueError as error:
        raise wrong(error, node) from None


def shape_of(node: Tree[Token]) -> Shape:
    """Return a rectangle, circle or polygon. Raises an error if its points are invalid."""
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


DEPTH = 200
"""The maximal depth of expressions, because functions over them are recursive."""


def expression(node: Node, inside: int = 0) -> Expression:
    """Convert a tree of the grammar to an expression.

    ``inside`` counts implied operations around it, for the limit on nesting.
    """
    waiting = [(node, inside)]
    while waiting:
        part, depth = waiting.pop()
        depth += _levels(part)
        if depth > DEPTH:
            raise DefinitionError(
                f"the expression is nested more than {DEPTH} deep",
                place(part),
                hint="Split it into several subscriptions, or shorten it with 'let'.",
            )
        waiting += [(inner, depth) for inner in parts_of(part)]
    return _made(node)


def _levels(node: Node) -> int:
    """Return the number of operations that a node adds around its children.

    A chain of comparisons is a conjunction of its links. Parentheses add none unless they are doubled.
    """
    match _rule(node), parts_of(node):
        case (None, _):
            return 0
        case ("group", [inner]):
            return int(_rule(inner) == "group")
        case ("chain", parts):
            return len(parts) // 2
        case _:
            return 1


def _rule(node: Node) -> str | None:
    return as_tree(node).data if is_tree(node) else None


def _made(node: Node) -> Expression:
    while _rule(node) == "group":
        (node,) = as_tree(node).children
    return _operation(as_tree(node), place(node)) if is_tree(node) else _atom(as_token(node))


def _operation(node: Tree[Token], at: Place) -> Expression:
    parts: list[Any] = list(node.children)
    match node.data:
        case "either":
            return Or(_made(parts[0]), _made(parts[1]), at)
        case "both":
            return And(_made(parts[0]), _made(parts[1]), at)
        case "negation":
            return Not(_made(parts[0]), at)
        case "chain":
            return _chain(parts)
        case "between":
            arg, low, high = map(_made, parts)
            return Between(arg, low, high, at)
        case "arithmetic":
            left, sign, right = parts
            return Arithmetic(cast(ArithmeticSign, str(sign)), _made(left), _made(right), at)
        case "negative":
            return _negative(parts, at)
        case "absolute":
            return Absolute(_made(parts[0]), at)
        case "silent":
            return Silent(duration(parts[0], above_zero=True), at)
        case "otherwise":
            return replace(_member(parts[0]), otherwise=_constant(as_tree(parts[1]).children), at=at)
        case "call":
            function, *args, around = parts
            source = None if around is None else word_of(around)
            return Call(str(function), tuple(name_of(as_token(part)) for part in args), source, at)
        case other:
            raise AssertionError(other)


def _constant(parts: list[Any]) -> Name | Number | Text | Truth:
    return number_of(parts) if len(parts) == 2 else cast(Name | Text | Truth, _atom(parts[0]))


def _negative(parts: list[Any], at: Place) -> Expression:
    number = as_token(parts[1])
    if not is_tree(parts[1]) and number.type in ("NUMBER", "QUANTITY"):
        return number_of(parts)
    return Negative(_made(parts[1]), at)


def _chain(parts: list[Any]) -> Expression:
    """Expand a chain such as ``a < b < c`` to a conjunction."""
    operands = list(map(_made, parts[::2]))
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
            return _member(token)
        case "NUMBER" | "QUANTITY":
            return number_of([None, token])
        case "STRING":
            return Text(text_of(token), place(token))
        case "TRUE" | "FALSE":
            return Truth(token.type == "TRUE", place(token))
        case other:
            raise AssertionError(other)


def _member(token: Token) -> MemberAttribute:
    owner, _, name = token.partition(".")
    return MemberAttribute(name_of(token.update(value=owner)), name, place(token))


def number_of(parts: Iterable[Any]) -> Number:
    """Return a number with its sign and unit."""
    minus, token = parts
    digits, unit = literal.split_quantity(token)
    try:
        value = literal.read_number(digits)
    except ValueError as error:
        raise wrong(error, token) from None
    return Number(value if minus is None else -value, unit, place(token if minus is None else minus, token))
