"""State filters as a query that a database runs by itself: what says something, and where that changes.

Where entrance and exit cannot both hold, an event that satisfies one of them leaves the bit set or reset,
whatever it was.  So it passes if the last such event of its scope did the other: a filter and ``lag``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..lang.condition import Condition
from ..lang.ops import And
from ..lang.reason import satisfiable
from ..model.topic import Topic
from .sql import Naming, keys, matching, predicate, quoted, shown


class Turn(NamedTuple):
    """A filter's predicates; a momentary one has no exit."""

    enter: str
    exit: str | None


class Changes(NamedTuple):
    """The query of filters that share their scopes.

    ``where`` is what some filter takes notice of, ``apart`` are the columns whose values keep scopes apart,
    and ``scope`` is an event's scope as people read it; null if it is in none, nothing if there is one for
    all.
    """

    where: str
    apart: tuple[str, ...]
    scope: str | None
    turns: tuple[Turn, ...]


def hindrance(conditions: Sequence[Condition], published: Sequence[Topic]) -> str | None:
    """Why filters that share their scopes are no such query; what it says has columns for all topics that are
    ``published``."""
    first = conditions[0]
    if any(one.tables for one in conditions):
        return "only Python knows the rows of a table"
    if first.forest is not None:
        return "only Python can tell in which region an event lies"
    if len(first.keys) > 1:
        return "scopes are nested"
    if keys(first) is None:
        return "only Python can write a float as a key"
    kinds = {(attribute.name, attribute.kind) for topic in published for attribute in topic.attributes}
    for name in (attribute.name for attribute in first.topic.attributes if attribute.kind == "float"):
        if any((name, other) in kinds for other in ("int", "text", "bool")):
            return f"only Python can write {name} as text, which it is beside another topic's"
    for one in conditions:
        if not one.momentary and satisfiable(And(one.enter, one.exit), one.topic) is not False:
            return f"entrance and exit of {one.name} may both hold"
    return None


def changes(conditions: Sequence[Condition], named: Naming = quoted) -> Changes:
    """The query of filters that share their scopes, where nothing hinders it."""
    first = conditions[0]
    tests = [op for one in conditions for op in ([one.enter] if one.momentary else [one.enter, one.exit])]
    return Changes(
        matching(tests, first.topic, named),
        tuple(named(name) for level in first.keys for name in level),
        shown(first, named),
        tuple(
            Turn(
                predicate(one.enter, one.topic, named),
                None if one.momentary else predicate(one.exit, one.topic, named),
            )
            for one in conditions
        ),
    )
