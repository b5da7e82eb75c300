"""Topics of a definition that declares none, so that the thesis' tables can be used as they are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...lang.ops import Compare, Expression, MemberAttribute, Statement, Text, Truth
from ...lang.rewrite import parts
from ...lang.typed import Members, Parameters
from ...model.topic import Attribute, Kind, Topic
from .members import members
from .syntax import DefineComponent

_EVERY: Members = members("", {}, derived=True)


def implicit_topics(given: Sequence[Statement], _parameters: Parameters) -> tuple[Topic, ...]:
    """The topics that components consume and no component publishes, with the attributes that they use."""
    statements = [one for one in given if isinstance(one, DefineComponent)]
    derived = {statement.name for statement in statements}
    found: dict[str, dict[str, Kind]] = {}
    for statement in statements:
        used = list(_attributes_used(statement))
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


def _attributes_used(statement: DefineComponent) -> Iterator[tuple[str, str, Kind]]:
    for turn in (statement.enter, statement.exit):
        yield from _members((turn.when, *(value for _, value in turn.sets)))


def _members(ops: Iterable[Expression]) -> Iterator[tuple[str, str, Kind]]:
    for op in ops:
        match op:
            case Compare(_, MemberAttribute(owner, name), Text()) | Compare(
                _, Text(), MemberAttribute(owner, name)
            ):
                yield owner, name, "text"
            case MemberAttribute(owner, name, _, Text() | Truth() as otherwise):
                yield owner, name, "text" if isinstance(otherwise, Text) else "bool"
            case MemberAttribute(owner, name):
                yield owner, name, "float"
            case _:
                yield from _members(parts(op))
