"""The topic that the papers' short notations omit. It is found by its attributes, or inferred from their
use."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

from ...errors import DefinitionError, Place
from ...lang.ops import (
    Absolute,
    And,
    Arithmetic,
    Between,
    Compare,
    Expression,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Silent,
    Text,
    Truth,
)
from ...lang.rewrite import names, parts, within
from ...model.topic import FIXED, RESERVED, Attribute, Kind, Topic
from .syntax import DefineState

IMPLICIT = "Reading"
"""The name of an inferred topic."""


def topic_of(statement: DefineState, topics: Sequence[Topic], parameters: Collection[str]) -> Topic:
    """Return the only topic that has every attribute that the statement mentions.

    Raise a `DefinitionError` if there are no such topics or several.
    """
    wanted = attributes_in([statement], parameters)
    able = [topic for topic in topics if wanted.keys() <= topic.by_name.keys()]
    if len(able) == 1:
        return able[0]
    listed = ", ".join(wanted)
    if not able:
        message = f"no topic has all of {listed}"
    elif wanted:
        message = f"several topics have {listed}: {', '.join(topic.name for topic in able)}"
    else:
        message = "the condition mentions no attribute, so its topic is not clear"
    hint = f"Name the topic: state {statement.name} on TOPIC [enter; exit]"
    raise DefinitionError(message, statement.at, hint=hint)


def attributes_in(statements: Iterable[DefineState], parameters: Collection[str]) -> dict[str, None]:
    """Return the attributes that statements mention in predicates and as keys, in the order of the text."""
    mentioned = (n for s in statements for n in (*names(s.enter), *names(s.exit), *chain(*s.per)))
    return dict.fromkeys(name for name in mentioned if name not in parameters and name not in FIXED)


def implicit_topic(statements: Sequence[DefineState], parameters: Collection[str]) -> Topic:
    """Return the topic of a definition that declares none. The types of attributes follow from their use."""
    attributes = attributes_in(statements, parameters)
    predicates = [op for s in statements for op in (s.enter, s.exit)]
    kinds = _kinds(predicates)
    units = {name: unit for whole in predicates for op in within(whole) for name, unit in _units(op).items()}
    keys = {name for s in statements for level in s.per for name in level}
    for name in attributes:
        if name in RESERVED:
            raise DefinitionError(f"a predicate cannot mention '{name}'", _first(name, statements))
        if name not in kinds and name not in keys:
            message = f"whether '{name}' is a number, a text or a truth value is not clear from its use"
            hint = f"Declare a topic: topic {IMPLICIT} ({name} float)"
            raise DefinitionError(message, _first(name, statements), hint=hint)
    return Topic(
        IMPLICIT,
        tuple(
            Attribute(name, kind, units.get(name) if kind == "float" else None)
            for name in attributes
            for kind in (kinds.get(name, "text"),)
        ),
    )


def _kinds(predicates: Sequence[Expression]) -> dict[str, Kind]:
    """Return the types of names that follow from their use in predicates."""
    kinds: dict[str, Kind] = {}
    links: list[tuple[str, str]] = []
    for whole in predicates:
        for op in within(whole):
            for name, kind in _uses(op):
                kinds.setdefault(name, kind)
            if isinstance(op, Compare) and isinstance(op.left, Name) and isinstance(op.right, Name):
                links += [(op.left.name, op.right.name), (op.right.name, op.left.name)]
    for name in (name for whole in predicates for name in _truths(whole)):
        kinds.setdefault(name, "bool")
    for _ in links:  # a == b: both have the same type
        for left, right in links:
            if left in kinds:
                kinds.setdefault(right, kinds[left])
    return kinds


def _first(name: str, statements: Iterable[DefineState]) -> Place | None:
    """Return the place at which statements mention a name first."""
    spots = (op.at for s in statements for e in (s.enter, s.exit) for op in within(e) if op == Name(name))
    return next(spots, None)


def _truths(op: Expression) -> Iterator[str]:
    """Yield the names that an expression uses as truth values."""
    match op:
        case Name(name):
            yield name
        case And() | Or() | Not():
            for part in parts(op):
                yield from _truths(part)


_PREDICATES = (Truth, And, Or, Not, Compare, Between, Silent)
_NUMBERS = (Number, Arithmetic, Negative, Absolute)


def _uses(op: Expression) -> Iterator[tuple[str, Kind]]:
    """Yield the types that one operation implies for the names directly in it."""
    match op:
        case Arithmetic() | Negative() | Absolute() | Between():
            yield from ((part.name, "float") for part in parts(op) if isinstance(part, Name))
        case Compare(sign, left, right):
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Name):
                    if sign not in ("==", "!=") or isinstance(other, _NUMBERS):
                        yield one.name, "float"
                    elif isinstance(other, Text):
                        yield one.name, "text"
                    elif isinstance(other, _PREDICATES):
                        yield one.name, "bool"


def _units(op: Expression) -> dict[str, str]:
    match op:
        case (
            Compare(_, Name(name), Number(_, str(unit)))
            | Compare(_, Number(_, str(unit)), Name(name))
            | Between(Name(name), Number(_, str(unit)), _)
        ):
            return {name: unit}
    return {}
