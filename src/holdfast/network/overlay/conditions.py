"""Definitions that are sent with subscriptions, and their compilation for brokers and subscribers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeGuard

from ...definition.app import App
from ...definition.check import check
from ...definition.parse import parse
from ...errors import Unsupported, UsageError
from ...kinds.count.syntax import DefineCount
from ...kinds.levels.syntax import DefineLevels
from ...kinds.mute.syntax import DefineMute, While
from ...kinds.relation.declared import with_listed_sources
from ...kinds.relation.syntax import DeclareGroup, DeclareRoute, DefineRelation
from ...kinds.state.syntax import DefineState
from ...lang.ops import (
    Case,
    ConditionStatement,
    DeclareTable,
    DeclareTopic,
    Expression,
    MemberAttribute,
    Statement,
    UseGazetteer,
)
from ...lang.rewrite import parts
from ...lang.scopes import in_themselves
from ...plan.compile import builds_on, operators
from ..conditions import compile_checked, replicated_condition
from ..protocols.cbps.condition import NetworkCondition

LONGEST = 65_536
"""The longest definition from a peer, in characters."""


def split_app(app: App) -> dict[str, App]:
    """Return each subscription of an app as an app with only the statements that it needs."""
    folder = folder_of(app)
    listed = DeclareGroup | DeclareRoute | DefineRelation
    statements = [
        with_listed_sources(s, folder) if isinstance(s, listed) else s
        for s in in_themselves(app.statements, folder)
        if not isinstance(s, Case)
    ]
    checked = check(app)
    topics = {name: of for operator in operators(checked) for name, of in operator.topics_by_name().items()}
    defined = {s.name: s for s in statements if isinstance(s, ConditionStatement)}
    for name, s in defined.items():
        if isinstance(s, DefineState):  # it may be written in a notation without a topic
            defined[name] = replace(s, topic=topics[name][0])
    about = [s for s in statements if not isinstance(s, DeclareTopic | ConditionStatement | DefineMute)]
    above = {name: builds_on(checked, name) for name in defined}
    found = {}
    for name in defined:
        mutes = [s for s in statements if isinstance(s, DefineMute) and s.target == name]
        parents = [s.cause.parent for s in mutes if isinstance(s.cause, While)]
        needed = [part for each in (name, *parents) for part in _dependencies(each, above)]
        topics_needed = {topic for part in needed for topic in topics[part]}
        declared = [DeclareTopic(topic) for topic in checked.topics if topic.name in topics_needed]
        grouped = DeclareGroup | DeclareRoute
        declarations = [s for s in about if not isinstance(s, grouped) or s.topic in topics_needed]
        below = [statement for part, statement in defined.items() if part in needed]
        tables = {table for statement in below for table in _tables(statement)}
        declarations = [s for s in declarations if not isinstance(s, DeclareTable) or s.name in tables]
        found[name] = App([*declared, *declarations, *below, *mutes])
    return found


def folder_of(app: App) -> Path:
    """Return the folder of an app's files."""
    return Path(app.file).parent if app.file else Path()


def _tables(statement: ConditionStatement) -> Iterator[str]:
    """Yield the tables that a statement names."""
    for part in statement.rungs if isinstance(statement, DefineLevels) else (statement,):
        if isinstance(part, DefineState):
            care = part.care
            columns = [hold.column for hold in (care.enter, care.exit) if hold.column]
            yield from (column.partition(".")[0] for column in columns)
            yield from (*_owners(part.enter), *_owners(part.exit))
            if care.roster is not None and care.roster.table is not None:
                yield care.roster.table


def _owners(op: Expression) -> Iterator[str]:
    """Yield the tables whose columns an expression names."""
    if isinstance(op, MemberAttribute):
        yield op.owner
    for part in parts(op):
        yield from _owners(part)


def _dependencies(name: str, above: Mapping[str, Collection[str]]) -> list[str]:
    """Return a condition and all that it builds on; ``above`` lists the conditions that build on each."""
    found = [name]
    for condition_name in found:
        found += [below for below in above if condition_name in above[below] and below not in found]
    return found


@lru_cache(maxsize=4_096)
def compile_condition(definition: str) -> NetworkCondition:
    """Compile a definition that came with a subscription.

    A state and a filter on its topic are a gate: while the state is active, events that satisfy the filter
    pass.
    """
    if len(definition) > LONGEST:
        raise UsageError(f"a definition may have {LONGEST} characters, not {len(definition)}")
    app = parse(definition)
    _require_movable(app.statements)
    checked = check(app)
    match checked.conditions:
        case (state, end) if end.momentary and end.topic == state.topic:
            gate, exit_ = replicated_condition(state), replicated_condition(end)
            if gate is not None and exit_ is not None:
                return replace(gate, ends=exit_.enter)
    return compile_checked(checked)


def _require_movable(statements: Iterable[Statement]) -> None:
    """Raise an error for statements that read files, which exist only where the definition was written."""
    if any(isinstance(statement, UseGazetteer) for statement in statements):
        why = "a gazetteer is a file here, and brokers are elsewhere; declare the regions instead"
        raise Unsupported(why)
    if (named := next((s for s in statements if reads_file(s)), None)) is not None:
        what = f"table '{named.name}'" if isinstance(named, DeclareTable) else f"the roster of '{named.name}'"
        raise Unsupported(f"{what} is a file elsewhere, and cannot be read here")
    tables = [getattr(s, "pairs", getattr(s, "sources", getattr(s, "legs", None))) for s in statements]
    if any(isinstance(table, str) for table in tables):
        raise Unsupported("a table is a file elsewhere; a definition that travels has its rows in itself")


def reads_file(statement: Statement) -> TypeGuard[DeclareTable | ConditionStatement]:
    """Whether a statement needs a table, or expected sources from a file."""
    match statement:
        case DeclareTable():
            return True
        case DefineLevels(rungs=rungs):
            return any(map(reads_file, rungs))
        case DefineState(care=care):
            return care.roster is not None and care.roster.path is not None
        case DefineCount(roster=roster):
            return roster is not None
    return False
