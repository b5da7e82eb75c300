"""Topics of a definition that declares none. Tables of the thesis can therefore be used unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import starmap

from ...lang.ops import Compare, Expression, MemberAttribute, Statement, Text, Truth
from ...lang.rewrite import parts
from ...lang.typed import Members, Parameters
from ...model.topic import Attribute, Kind, Topic
from .members import members
from .syntax import DefineComponent

_EVERY: Members = members("", {}, derived=True)


def implicit_topics(given: Sequence[Statement], _parameters: Parameters) -> tuple[Topic, ...]:
    """Return the topics that components consume and no component publishes.

    The attributes of a topic are those that the components use.
    """
    statements = [one for one in given if isinstance(one, DefineComponent)]
    derived = {statement.name for statement in statements}
    found: dict[str, dict[str, Kind]] = {}
    for statement in statements:
        triggers = (statement.enter, statement.exit)
        used = [use for t in triggers for use in _uses((t.when, *(value for _, value in t.sets)))]
        for name, query in statement.inputs:
            for topic in query.topics:
                if topic not in derived:
                    mine = found.setdefault(str(topic), {})
                    mine.update({key: "text" for key in query.each if key not in _EVERY})
                    for owner, attribute, kind in used:
                        if owner == name and attribute not in _EVERY:
                            mine.setdefault(attribute, kind)
    return tuple(Topic(name, tuple(starmap(Attribute, kinds.items()))) for name, kinds in found.items())


def _uses(ops: Iterable[Expression]) -> Iterator[tuple[str, str, Kind]]:
    """Yield the members in expressions: the query, the attribute, and the type that its use implies."""
    for op in ops:
        match op:
            case Compare(_, Text(), MemberAttribute(owner, name)):
                yield owner, name, "text"
            case Compare(_, MemberAttribute(owner, name), Text()):
                yield owner, name, "text"
            case MemberAttribute(owner, name, _, Text() | Truth() as otherwise):
                yield owner, name, "text" if isinstance(otherwise, Text) else "bool"
            case MemberAttribute(owner, name):
                yield owner, name, "float"
            case _:
                yield from _uses(parts(op))
