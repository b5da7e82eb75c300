"""The list of the kinds of conditions. A new kind needs a package, a line here, and its rules in the
grammar."""

from __future__ import annotations

from collections.abc import Iterable

from ..lang.condition import Condition
from ..lang.ops import Statement
from . import component, correlation, count, fold, levels, mute, overlap, relation, state
from .kind import Kind

KINDS: dict[str, Kind] = {
    package.KIND.name: package.KIND
    for package in (state, component, correlation, relation, levels, count, overlap, fold, mute)
}
"""Kinds by name, in the order in which their conditions are checked and run: kinds over readings first."""

RULES = {rule: read for kind in KINDS.values() for rule, read in kind.rules.items()}
"""Parsers of the grammar rules that kinds add, by the name of the rule."""

_BY_STATEMENT = {statement: kind for kind in KINDS.values() for statement in kind.statements}


def kind_of(statement: Statement) -> Kind | None:
    """Return the kind to which a statement belongs; ``None`` for a declaration or a case."""
    return _BY_STATEMENT.get(type(statement))


def kind(condition: Condition) -> Kind:
    """Return the kind of a checked condition."""
    return KINDS[condition.kind]


def by_kind(conditions: Iterable[Condition]) -> list[tuple[Kind, tuple[Condition, ...]]]:
    """Return conditions grouped by their kind, in the order of the registry."""
    found = tuple(conditions)
    return [(kind_, kind_.of(found)) for kind_ in KINDS.values()]
