"""Correlations, of readings and of states, become operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ...errors import DefinitionError
from ...model.allen import Allen
from ...model.correlation import TELLS
from ...model.instant import Duration
from ...model.qos import Delivery
from ...model.space import Shape
from ...model.unit import UNITS
from ..nodes import (
    as_token,
    as_tree,
    coordinate_of,
    duration,
    is_tree,
    label_of,
    late_of,
    one_of,
    parts_of,
    place,
    shape_of,
    signed,
    text_of,
    topic_word,
    word_of,
)
from ..ops import Align, Correlate, Expression, Match, Name, Word

if TYPE_CHECKING:
    from lark import Token, Tree

    from ..nodes import Node

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "≤": ">=", "≥": "<="}


def correlate(parts: list[Any]) -> Correlate:
    """``correlate …``."""
    name, within, near, region, matches, *options = parts
    said: dict[str, Any] = {}
    for node in options:
        word, value = _option(node)
        if word in said:
            raise DefinitionError(f"'{_OPTIONS[word]}' is given twice", place(node))
        said[word] = value
    return Correlate(
        label_of(name),
        tuple(match_of(node) for node in parts_of(matches)),
        duration(within, above_zero=True),
        None if near is None else coordinate_of(near),
        None if region is None else _region(region),
        said.get("tell", "events"),
        Delivery(said.get("wait"), said.get("late", "drop")),
        place(name),
    )


def align(parts: list[Any]) -> Align:
    """``correlate … = Smoke, DoorOpen overlapping …``; without a name it has those of what it is over."""
    name, aligned, first, second, level = parts
    words = [as_token(part) for part in parts_of(aligned)]
    relation = _RELATIONS.get(aligned.data) or str(words.pop(1))
    over = tuple(map(word_of, words))
    extents = [node for node in (first, second) if node is not None]
    return Align(
        "_".join(over) if name is None else label_of(name),
        over,
        cast(Allen, relation),
        *_extents(extents),
        () if level is None else tuple(word_of(as_token(part)) for part in parts_of(level)),
        place(words[0] if name is None else name),
    )


_RELATIONS = {"overlapping": "overlapping", "within_other": "during"}


def _extents(nodes: list[Any]) -> tuple[Duration | None, float | None]:
    """How far apart in time and in space."""
    within, near = None, None
    for node in nodes:
        unit = signed(as_tree(node).children).unit
        is_distance = unit is not None and UNITS[unit].dimension == UNITS["m"].dimension
        if (near if is_distance else within) is not None:
            raise DefinitionError("'within' has one duration and one distance", place(node))
        if is_distance:
            near = coordinate_of(node)
        else:
            within = duration(node, above_zero=True)
    return within, near


_OPTIONS = {"tell": "tell", "wait": "timely or ordered", "late": "late"}


def _option(node: Tree[Token]) -> tuple[str, object]:
    match node.data, list(node.children):
        case "tell", [word]:
            return "tell", one_of(as_token(word), TELLS, "what a correlation tells")
        case "timely", []:
            return "wait", None
        case "ordered", [wait]:
            return "wait", duration(wait)
        case "late", [word, within]:
            return "late", late_of(as_token(word), within)
        case other:
            raise AssertionError(other)


def _region(node: Node) -> Word | Shape:
    return shape_of(as_tree(node)) if is_tree(node) else word_of(as_token(node))


# --- filters -----------------------------------------------------------------------------------


def match_of(node: Node) -> Match:
    """A filter of a correlation, in any of the ways to write it."""
    at = place(node)
    match as_tree(node).data, list(as_tree(node).children):
        case "range", [measured, opening, low, high, closing]:
            strict = (opening == "(", closing == ")")
            return Match(_attribute(measured), _bound(low), _bound(high), strict, _sensor(measured), at)
        case "limit", [measured, sign, bound]:
            return _limited(measured, [(sign, bound)], at)
        case "limits", [bound, sign, measured, *upper]:
            mirrored = as_token(sign).update(value=_MIRRORED.get(as_token(sign), str(sign)))
            limits = [(mirrored, bound), *([] if upper == [None] else [(upper[0], upper[1])])]
            return _limited(measured, limits, at)
        case other:
            raise AssertionError(other)


def _limited(measured: Any, limits: list[tuple[Any, Any]], at: Any) -> Match:
    """The range that comparisons leave of an attribute."""
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
                raise DefinitionError(
                    f"'{sign}' leaves no range", place(sign), hint="A correlation's filter is one range."
                )
        for side in bounded:
            if side in sides:
                raise DefinitionError(
                    "both comparisons bound the same side", place(sign), hint="As in: 50 < a < 80"
                )
            sides[side] = _bound(node), str(sign) in ("<", ">")
    low, high = sides.get("low", (None, False)), sides.get("high", (None, False))
    return Match(_attribute(measured), low[0], high[0], (low[1], high[1]), _sensor(measured), at)


def _attribute(measured: Any) -> Word:
    token = as_token(as_tree(measured).children[0])
    return Word(str(token), place(token)) if "." in token else topic_word(token)


def _sensor(measured: Any) -> str | None:
    token = as_tree(measured).children[1]
    return None if token is None else Word(text_of(as_token(token)), place(token))


def _bound(node: Any) -> Expression:
    if is_tree(node):
        return signed(as_tree(node).children)
    return Name(topic_word(as_token(node)), place(node))
