"""The topics of a definition that declares none: the thesis' tables stand by themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...model.topic import Attribute, Kind, Topic
from ..kinds import Members
from ..ops import Compare, Detect, Expression, Member, Text, Truth
from ..rewrite import parts
from .members import members

_EVERY: Members = members("", {}, derived=True)


def implicit_topics(statements: Sequence[Detect]) -> tuple[Topic, ...]:
    """What components listen to and no component publishes, with attributes as they are used."""
    derived = {statement.name for statement in statements}
    found: dict[str, dict[str, Kind]] = {}
    for statement in statements:
        used = list(_used(statement))
        for name, query in statement.inputs:
            for topic in query.topics:
                if topic not in derived:
                    mine = found.setdefault(str(topic), {})
                    mine.update({key: "text" for key in query.each if key not in _EVERY})
                    for owner, attribute, kind in used:
                        if owner == name and attribute not in _EVERY:
                            mine.setdefault(attribute, kind)
    return tuple(
        Topic(topic, tuple(Attribute(name, kind) for name, kind in attributes.items()))
        for topic, attributes in found.items()
    )


def _used(statement: Detect) -> Iterator[tuple[str, str, Kind]]:
    for turn in (statement.enter, statement.exit):
        yield from _members((turn.when, *(value for _, value in turn.sets)))


def _members(ops: Iterable[Expression]) -> Iterator[tuple[str, str, Kind]]:
    for op in ops:
        match op:
            case Compare(_, Member(owner, name), Text()) | Compare(_, Text(), Member(owner, name)):
                yield owner, name, "text"
            case Member(owner, name, _, Text() | Truth() as otherwise):
                yield owner, name, "text" if isinstance(otherwise, Text) else "bool"
            case Member(owner, name):
                yield owner, name, "float"
            case _:
                yield from _members(parts(op))
