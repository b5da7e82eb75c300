"""Parse correlations. Each function receives the parts of one grammar rule of `lang/holdfast.lark`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import DefinitionError
from ...lang.grammar import read
from ...lang.nodes import (
    as_token,
    as_tree,
    coordinate_of,
    duration,
    is_tree,
    label_of,
    number_of,
    one_of,
    parts_of,
    place,
    read_clauses,
    shape_of,
    text_of,
    topic_word,
    word_of,
)
from ...lang.ops import Expression, Name, Word
from ...model.correlation import TELLS
from ...model.qos import Delivery
from ..clauses import delivery_clause
from .syntax import DefineCorrelation, MatchRange

if TYPE_CHECKING:
    from lark import Token, Tree

    from ...lang.nodes import Node

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "≤": ">=", "≥": "<="}


def correlate(parts: list[Any]) -> DefineCorrelation:
    """Parse ``correlate …``: its window, its region, its filters and its options."""
    name, within, near, region, matches, *options = parts
    clauses = read_clauses(options, _option, notation={"wait": "timely or ordered"})
    return DefineCorrelation(
        label_of(name),
        tuple(match_of(node) for node in parts_of(matches)),
        duration(within, above_zero=True),
        None if near is None else coordinate_of(near),
        region and (shape_of(region) if is_tree(region) else word_of(region)),
        clauses.get("tell", "events"),
        Delivery(clauses.get("wait"), clauses.get("late", "drop")),
        place(name),
    )


def _option(node: Tree[Token]) -> tuple[str, object]:
    match node.data, list(node.children):
        case "tell", [word]:
            return "tell", one_of(as_token(word), TELLS, "what a correlation tells")
        case _:
            return delivery_clause(node)


# --- filters -----------------------------------------------------------------------------------


def match_of(node: Node) -> MatchRange:
    """Parse a filter of a correlation, in any of its notations."""
    at = place(node)
    match as_tree(node).data, list(as_tree(node).children):
        case "range", [measured, opening, low, high, closing]:
            strict = (opening == "(", closing == ")")
            return MatchRange(_attribute(measured), _bound(low), _bound(high), strict, _sensor(measured), at)
        case "limit", [measured, sign, bound]:
            return _limit(measured, [(sign, bound)], at)
        case "limits", [bound, sign, measured, *upper]:
            mirrored = as_token(sign).update(value=_MIRRORED.get(as_token(sign), str(sign)))
            limits = [(mirrored, bound), *([] if upper == [None] else [(upper[0], upper[1])])]
            return _limit(measured, limits, at)
        case other:
            raise AssertionError(other)


def _limit(measured: Any, limits: list[tuple[Any, Any]], at: Any) -> MatchRange:
    """Convert comparisons of an attribute with numbers to its range."""
    sides: dict[str, tuple[Expression, bool]] = {}
    for sign, node in limits:
        match str(sign):
            case ">" | ">=" | "≥":
                bounded = ["low"]
            case "<" | "<=" | "≤":
                bounded = ["high"]
            case "=" | "==":
                bounded = ["low", "high"]
            case _:
                hint = "A correlation's filter is one range."
                raise DefinitionError(f"'{sign}' leaves no range", place(sign), hint=hint)
        for side in bounded:
            if side in sides:
                message = "both comparisons bound the same side"
                raise DefinitionError(message, place(sign), hint="As in: 50 < a < 80")
            sides[side] = _bound(node), str(sign) in ("<", ">")
    low, high = sides.get("low", (None, False)), sides.get("high", (None, False))
    return MatchRange(_attribute(measured), low[0], high[0], (low[1], high[1]), _sensor(measured), at)


def _attribute(measured: Any) -> Word:
    token = as_token(as_tree(measured).children[0])
    return Word(str(token), place(token)) if "." in token else topic_word(token)


def _sensor(measured: Any) -> str | None:
    token = as_tree(measured).children[1]
    return None if token is None else Word(text_of(as_token(token)), place(token))


def _bound(node: Any) -> Expression:
    if is_tree(node):
        return number_of(as_tree(node).children)
    return Name(topic_word(as_token(node)), place(node))


def parse_match(text: str) -> MatchRange:
    """Parse a filter of a correlation from text, such as ``ambient_temp in [-5, 2]``."""
    return read(text, None, "match", match_of)
