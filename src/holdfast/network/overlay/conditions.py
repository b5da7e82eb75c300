"""Definitions that are sent with subscriptions, and their compilation for brokers and subscribers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ...definition.app import App
from ...definition.check import check
from ...definition.parse import parse
from ...errors import Unsupported, UsageError
from ...kinds.registry import kind_of
from ...lang.ops import (
    Case,
    ConditionStatement,
    DeclareTable,
    DeclareTopic,
    Statement,
    UseGazetteer,
)
from ...lang.scopes import in_themselves
from ...plan.compile import builds_on, operators
from ..conditions import compile_checked, replicated_condition
from ..protocols.cbps.condition import NetworkCondition

LONGEST = 65_536
"""The greatest length of a definition from a peer, in characters."""


def split_app(app: App) -> dict[str, App]:
    """Split an app into one app for each subscription, with only the statements that the subscription
    needs.
    """
    folder = folder_of(app)
    statements = [
        _with_rows(s, folder) for s in in_themselves(app.statements, folder) if not isinstance(s, Case)
    ]
    checked = check(app)
    topics = {name: of for operator in operators(checked) for name, of in operator.topics_by_name().items()}
    defined = {
        s.name: _with_topic(s, topics[s.name]) for s in statements if isinstance(s, ConditionStatement)
    }
    mutes = [s for s in statements if s.mutes]
    about = [s for s in statements if not (isinstance(s, DeclareTopic | ConditionStatement) or s.mutes)]
    above = {name: builds_on(checked, name) for name in defined}
    found = {}
    for name in defined:
        own = [s for s in mutes if s.mutes == name]
        needed = [
            part
            for start in (name, *(parent for s in own for parent in s.upstreams))
            for part in _dependencies(start, above)
        ]
        topics_needed = {topic for part in needed for topic in topics[part]}
        declared = [DeclareTopic(topic) for topic in checked.topics if topic.name in topics_needed]
        below = [statement for part, statement in defined.items() if part in needed]
        tables = {table for s in below if (kind := kind_of(s)) for table in kind.tables(s)}
        declarations = [
            s
            for s in about
            if getattr(s, "topic", None) in {None, *topics_needed}
            and (not isinstance(s, DeclareTable) or s.name in tables)
        ]
        found[name] = App([*declared, *declarations, *below, *own])
    return found


def folder_of(app: App) -> Path:
    """Return the folder to which the file names in an app are relative."""
    return Path(app.file).parent if app.file else Path()


def _with_rows(statement: Statement, folder: Path) -> Statement:
    """Return a statement that contains the rows which it would otherwise read from a table."""
    kind = kind_of(statement)
    return statement if kind is None else kind.with_rows(statement, folder)


def _with_topic(statement: ConditionStatement, topics: tuple[str, ...]) -> Statement:
    """Return a statement with its topic, if its notation does not name one."""
    kind = kind_of(statement)
    return statement if kind is None else kind.with_topic(statement, topics)


def _dependencies(name: str, above: Mapping[str, Collection[str]]) -> list[str]:
    """Return a condition and all conditions that it needs. ``above`` lists the conditions that build on each
    condition.
    """
    found = [name]
    for condition_name in found:
        found += [below for below in above if condition_name in above[below] and below not in found]
    return found


@lru_cache(maxsize=4_096)
def compile_condition(definition: str) -> NetworkCondition:
    """Compile a definition that came with a subscription.

    A state together with a filter on its topic is a gate: while the state is active, events that satisfy the
    filter pass.
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
    """Raise an error for statements that read files, because the files exist only where the definition was
    written.
    """
    if any(isinstance(statement, UseGazetteer) for statement in statements):
        why = "a gazetteer is a file here, and brokers are elsewhere; declare the regions instead"
        raise Unsupported(why)
    if (named := next((s for s in statements if reads_file(s)), None)) is not None:
        what = f"the roster of '{named.subject}'"
        if isinstance(named, DeclareTable):
            what = f"table '{named.name}'"
        raise Unsupported(f"{what} is a file elsewhere, and cannot be read here")
    tables = [getattr(s, "pairs", getattr(s, "sources", getattr(s, "legs", None))) for s in statements]
    if any(isinstance(table, str) for table in tables):
        raise Unsupported("a table is a file elsewhere; a definition that travels has its rows in itself")


def reads_file(statement: Statement) -> bool:
    """Whether a statement needs a table, or expected sources from a file."""
    kind = kind_of(statement)
    return isinstance(statement, DeclareTable) or (kind is not None and kind.reads_file(statement))
