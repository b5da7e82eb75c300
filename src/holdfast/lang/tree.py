"""The parser's trees become operations, each with the place at which it stood."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from ..errors import DefinitionError, did_you_mean
from ..model.event import STATUSES, TAKES_BACK
from ..model.guard import AT_ONCE, INITIALLY, Care, Hold, Roster
from ..model.instant import MINUTE
from ..model.qos import Delivery
from ..model.query import Function
from ..model.table import DURATION, Column
from ..model.topic import KINDS, Attribute, Kind, Topic
from .component.table import table
from .component.tree import component
from .correlation.tree import align, correlate
from .count.tree import tally
from .fold.tree import fold
from .mute.tree import mute
from .nodes import (
    as_token,
    as_tree,
    duration,
    expression,
    hold_of,
    is_tree,
    label_of,
    late_of,
    levels,
    name_of,
    one_of,
    place,
    point_of,
    shape_of,
    signed,
    starting_name,
    text_of,
    topic_word,
    word_of,
)
from .ops import (
    Case,
    Collide,
    DeclareRegion,
    DeclareTable,
    DeclareTopic,
    Expect,
    Expression,
    Given,
    Ladder,
    Let,
    Levels,
    Not,
    Number,
    Statement,
    Subscribe,
    Text,
    Truth,
    UseGazetteer,
    Word,
)
from .relation.tree import group_of, relate, route

if TYPE_CHECKING:
    from lark import Token, Tree

    from .nodes import Node


_OTHER_KINDS: dict[str, Kind] = {
    "double": "float", "real": "float", "number": "float", "numeric": "float", "decimal": "float",
    "integer": "int", "long": "int", "string": "text", "str": "text", "varchar": "text",
    "boolean": "bool", "flag": "bool",
}  # fmt: skip
SAID = tuple(status for status in STATUSES if status not in ("late", *TAKES_BACK.values()))
"""What a case may expect."""


# --- statements --------------------------------------------------------------------------------


def statements(tree: Node) -> Iterator[Statement]:
    """The statements of a file, in their order."""
    anonymous = count(1)
    for node in as_tree(tree).children:
        rule, parts = as_tree(node).data, cast("list[Any]", as_tree(node).children)
        if rule == "anonymous":
            condition, *clauses = parts
            yield _subscribe(condition, None, _condition(condition), clauses, f"state_{next(anonymous)}")
        else:
            yield _STATEMENTS[rule](parts)


def _filter(parts: list[Any]) -> Subscribe:
    name, topic, where, *clauses = parts
    return _subscribe(name, topic_word(topic), Predicates(expression(where), Truth(True)), clauses)


def _state(parts: list[Any]) -> Subscribe:
    name, topic, condition, *clauses = parts
    return _subscribe(name, topic_word(topic), _condition(condition), clauses)


def _ladder(parts: list[Any]) -> Ladder:
    name, topic, *nodes = parts
    rungs = [node.children for node in nodes if node.data == "rung"]
    clauses = [node for node in nodes if node.data != "rung"]
    on = topic_word(topic)
    made = [_subscribe(rung, on, _condition(pair), clauses) for rung, pair in rungs]
    return Ladder(label_of(name), tuple(made), place(name))


def _labelled(parts: list[Any]) -> Subscribe:
    name, condition, *clauses = parts
    return _subscribe(starting_name(name), None, _condition(condition), clauses)


def _topic(parts: list[Any]) -> DeclareTopic:
    name, *attributes = parts
    made = [_attribute(*node.children) for node in attributes if node is not None]
    return DeclareTopic(Topic(name_of(name), tuple(made)), place(name))


def _table(parts: list[Any]) -> DeclareTable:
    name, path, *rest = parts
    *columns, keys = rest
    made = tuple(_column(*node.children) for node in columns)
    by = () if keys is None else tuple(topic_word(token) for token in keys.children)
    return DeclareTable(name_of(name), text_of(path), made, by, at=place(name))


def _column(name: Token, kind: Token, unit: Token | None) -> Column:
    if kind == DURATION and unit is None:
        return Column(Word(name_of(name), place(name)), DURATION)
    found = _attribute(name, kind, unit)
    return Column(found.name, found.kind, found.unit)


def _attribute(name: Token, kind: Token, unit: Token | None) -> Attribute:
    if kind not in KINDS:
        near = _OTHER_KINDS.get(kind.casefold())
        hint = f"Did you mean '{near}'?" if near else did_you_mean(kind, KINDS)
        kinds = "An attribute is float, int, text or bool."
        raise DefinitionError(f"unknown kind '{kind}'", place(kind), hint=f"{kinds} {hint or ''}".rstrip())
    return Attribute(
        Word(name_of(name), place(name)), cast(Kind, str(kind)), None if unit is None else str(unit)
    )


def _region(parts: list[Any]) -> DeclareRegion:
    name, shape, parent = parts
    return DeclareRegion(
        label_of(name),
        None if shape is None else shape_of(shape),
        None if parent is None else label_of(parent),
        place(name),
    )


# --- subscriptions -----------------------------------------------------------------------------


class Predicates(NamedTuple):
    """Entrance and exit, the scope that stands with them, and how long each must hold."""

    enter: Expression
    exit: Expression
    scope: Levels = ()
    holds: tuple[Hold, Hold] = (AT_ONCE, AT_ONCE)


def _condition(node: Node) -> Predicates:
    """Entrance, exit and scope of ``[…]``, ``{…}`` or a plain content filter."""
    if not is_tree(node) or as_tree(node).data not in ("pair", "triple"):
        return Predicates(expression(node), Truth(True))
    parts: list[Any] = list(as_tree(node).children)
    if as_tree(node).data == "pair":
        first, hold, second, other = parts
        holds = (hold_of(hold), hold_of(other))
        if second is None:
            enter = expression(first, inside=1)
            return Predicates(enter, Not(enter, place(first)), holds=holds)
        return Predicates(expression(first), expression(second), holds=holds)
    enter = expression(parts[0])
    regions = tuple(word_of(token) for token in parts[2:] if token is not None and token.type != "EVERYTHING")
    return Predicates(enter, expression(parts[1]), (regions,) if regions else ())


def _subscribe(
    at: Node,
    topic: str | None,
    predicates: Predicates,
    clauses: Iterable[Tree[Token]],
    name: str | None = None,
) -> Subscribe:
    enter, exit, scope, holds = predicates
    said: dict[str, Any] = {"scope": scope} if scope else {}
    for clause in clauses:
        word, value = _clause(clause)
        if word in said:
            raise DefinitionError(f"'{_CLAUSES[word]}' is given twice", place(clause))
        said[word] = value
    initially, quietly = said.get("initially", ("off", False))
    return Subscribe(
        label_of(as_token(at)) if name is None else name,
        topic,
        enter,
        exit,
        said.get("per", ()),
        said.get("scope", ()),
        Delivery(said.get("wait"), said.get("late", "drop")),
        Care(*holds, said.get("unknown"), said.get("forget"), initially, quietly, said.get("roster")),
        place(at),
    )


_CLAUSES = {
    "per": "per", "scope": "scope", "wait": "timely or ordered", "late": "late", "unknown": "unknown after",
    "forget": "forget after", "initially": "initially", "roster": "roster",
}  # fmt: skip


def _clause(node: Tree[Token]) -> tuple[str, object]:
    match node.data, list(node.children):
        case ("per" | "scope") as word, [groups]:
            return word, levels(groups)
        case "timely", []:
            return "wait", None
        case "ordered", [wait]:
            return "wait", duration(wait)
        case "late", [word, within]:
            return "late", late_of(as_token(word), within, corrects=True)
        case ("unknown" | "forget") as word, [length]:
            return word, duration(length, above_zero=True)
        case "initially", [word, quietly]:
            begins = one_of(as_token(word), INITIALLY, "how a scope begins")
            return "initially", (begins, quietly is not None)
        case "roster", [*named]:
            return "roster", _roster(*map(as_token, named))
        case other:
            raise AssertionError(other)


def _roster(named: Token | None = None) -> Roster:
    if named is None or named.type == "STRING":
        return Roster(None if named is None else text_of(named))
    return Roster(table=name_of(named))


# --- cases -------------------------------------------------------------------------------------


def _case(parts: list[Any]) -> Case:
    name, *nodes = (part for part in parts if part is not None)
    until = next((duration(node) for node in nodes if node.data == "duration"), None)
    return Case(
        text_of(name),
        tuple(_given(node) for node in nodes if node.data == "given"),
        tuple(_expect(node) for node in nodes if node.data == "expect"),
        until,
        place(name),
    )


def _given(node: Tree[Token]) -> Given:
    topic, *parts = [cast("Any", child) for child in node.children]
    options: dict[str, Any] = {}
    for part in (part for part in parts if part.data != "row"):
        if part.data in options:
            raise DefinitionError(f"'{part.data}' is given twice", place(part))
        options[part.data] = part.children[0] if part.data != "at" else part.children
    rows = tuple(tuple(_value(value) for value in part.children) for part in parts if part.data == "row")
    if "every" not in options and len(rows) > 1:
        raise DefinitionError(
            "the readings need a distance in time", place(topic), hint="Say how often one comes: every 1 min"
        )
    where = [at for at in options.get("at", ()) if at is not None]
    return Given(
        name_of(topic),
        rows,
        duration(options["every"], above_zero=True) if "every" in options else MINUTE,
        duration(options["starting"]) if "starting" in options else 0,
        text_of(options["from"]) if "from" in options else None,
        next((text_of(at) for at in where if not is_tree(at)), None),
        next((point_of(at) for at in where if is_tree(at)), None),
        place(topic),
    )


def _value(node: Node) -> Number | Text | Truth | None:
    parts = [as_token(part) for part in as_tree(node).children if part is not None]
    if parts[-1].type == "MISSING":
        return None
    if parts[-1].type in ("NUMBER", "QUANTITY"):
        return signed([*([None] if len(parts) == 1 else []), *parts])
    return cast("Text | Truth", expression(parts[-1]))


def _expect(node: Tree[Token]) -> Expect:
    name, scope, *marks = [cast("Any", child) for child in node.children]
    return Expect(
        label_of(name),
        tuple(
            (one_of(status, SAID, "a notification's status"), duration(when))
            for status, when in (mark.children for mark in marks if mark is not None)
        ),
        None if scope is None else text_of(scope),
        place(name),
    )


_STATEMENTS: Mapping[str, Callable[[list[Any]], Statement]] = {
    "let": lambda parts: Let(name_of(parts[0]), expression(parts[1]), place(parts[0])),
    "topic": _topic,
    "region": _region,
    "lookup": _table,
    "gazetteer": lambda parts: UseGazetteer(text_of(parts[0]), place(parts[0])),
    "filter": _filter,
    "state": _state,
    "ladder": _ladder,
    "tally": tally,
    "mute": mute,
    "fold": fold,
    "labelled": _labelled,
    "equation": _labelled,
    "component": component,
    "table": table,
    "collide": lambda parts: Collide(cast(Function, str(parts[0])), place(parts[0])),
    "correlate": correlate,
    "align": align,
    "group_of": group_of,
    "route": route,
    "relate": relate,
    "case": _case,
}
"""How each statement of the grammar is read."""
