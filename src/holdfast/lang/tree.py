"""Conversion of the parser's trees to statements, each with its place in the text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from ..errors import DefinitionError, did_you_mean
from ..model.event import STATUSES, TAKES_BACK
from ..model.instant import MINUTE
from ..model.table import DURATION, Column
from ..model.topic import KINDS, Attribute, Kind, Topic
from .nodes import (
    as_token,
    as_tree,
    duration,
    expression,
    is_tree,
    label_of,
    name_of,
    number_of,
    one_of,
    place,
    point_of,
    read_clauses,
    shape_of,
    text_of,
    topic_word,
)
from .ops import (
    Case,
    DeclareRegion,
    DeclareTable,
    DeclareTopic,
    Expect,
    Given,
    Let,
    Number,
    Statement,
    Text,
    Truth,
    UseGazetteer,
    Word,
)

if TYPE_CHECKING:
    from lark import Token, Tree

    from .nodes import Node


_OTHER_KINDS: dict[str, Kind] = {
    "double": "float", "real": "float", "number": "float", "numeric": "float", "decimal": "float",
    "integer": "int", "long": "int", "string": "text", "str": "text", "varchar": "text",
    "boolean": "bool", "flag": "bool",
}  # fmt: skip
SAID = tuple(status for status in STATUSES if status not in ("late", *TAKES_BACK.values()))
"""The statuses that a case may expect."""


Rules = Mapping[str, Callable[[list[Any]], Statement]]
"""Parsers of grammar rules that return statements, by rule."""

# --- statements --------------------------------------------------------------------------------


def statements(tree: Node, rules: Rules) -> Iterator[Statement]:
    """Yield the statements of a file in their order.

    ``rules`` has the parsers of statements that kinds add. A state without a name is called ``state_1``,
    ``state_2`` and so on.
    """
    anonymous = count(1)
    readers = {**_STATEMENTS, **rules}
    for node in as_tree(tree).children:
        rule, parts = as_tree(node).data, cast("list[Any]", as_tree(node).children)
        statement = readers[rule](parts)
        if rule == "anonymous":
            statement = replace(statement, name=f"state_{next(anonymous)}")  # type: ignore[type-var]
        yield statement


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
        Word(name_of(name), place(name)), cast("Kind", str(kind)), None if unit is None else str(unit)
    )


def _region(parts: list[Any]) -> DeclareRegion:
    name, shape, parent = parts
    return DeclareRegion(
        label_of(name),
        None if shape is None else shape_of(shape),
        None if parent is None else label_of(parent),
        place(name),
    )


# --- cases -------------------------------------------------------------------------------------


def _case(parts: list[Any]) -> Case:
    name, *nodes = (part for part in parts if part is not None)
    until = next((duration(node) for node in nodes if node.data == "duration"), None)
    return Case(
        text_of(name),
        tuple(_read_given(node) for node in nodes if node.data == "given"),
        tuple(_expect(node) for node in nodes if node.data == "expect"),
        until,
        place(name),
    )


def _read_given(node: Tree[Token]) -> Given:
    topic, *parts = [cast("Any", child) for child in node.children]
    clauses = (part for part in parts if part.data != "row")
    options = read_clauses(
        clauses, lambda part: (part.data, part.children if part.data == "at" else part.children[0])
    )
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
        return number_of([*([None] if len(parts) == 1 else []), *parts])
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


_STATEMENTS: Rules = {
    "let": lambda parts: Let(name_of(parts[0]), expression(parts[1]), place(parts[0])),
    "topic": _topic,
    "region": _region,
    "lookup": _table,
    "gazetteer": lambda parts: UseGazetteer(text_of(parts[0]), place(parts[0])),
    "case": _case,
}
"""The parsers of statements that belong to no kind."""
