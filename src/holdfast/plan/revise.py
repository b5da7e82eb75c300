"""Revisions: the effect on each condition of replacing a running definition by another one.

A condition with the same meaning retains its state. A changed one is rebuilt if there is a whole history;
otherwise it carries over its scopes (`kinds/revision.py`). If that is impossible, the revision is refused. A
new condition starts; one that consumes other conditions starts from their current states. The local engine
and Spark streaming call the same functions; only the storage of histories and states differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ..engine.carry_over import CarryOver
from ..engine.machine import Emission
from ..engine.operator import Operator
from ..engine.standing import Scoped
from ..kinds.kind import Kind
from ..kinds.registry import by_kind, kind
from ..kinds.revision import Past, TakeOver, carry_overs, require
from ..lang.condition import Checked
from ..model.event import Event, Transition, Value
from ..model.instant import Instant
from ..model.scope import split_values
from .compile import link, meanings, operators, with_downstream, without


def find_changed_conditions(was: Checked, now: Checked) -> list[str]:
    """Return the conditions whose meaning changed under the same name, or whose tables have other rows."""
    before, after = meanings(was), meanings(now)
    known = [name for name in after if name in before]
    return [name for name in known if after[name] != before[name] or has_other_rows(name, was, now)]


def to_rebuild(was: Checked, now: Checked) -> frozenset[str]:
    """Return the conditions to rebuild from a whole history.

    These are new and changed conditions, and all conditions that build on them.
    """
    known = now.by_name
    new = (name for name in known if name not in was.by_name)
    found = with_downstream(now, {*find_changed_conditions(was, now), *new})
    for kind_, conditions in by_kind(now.conditions):  # conditions that share a machine are rebuilt together
        own_names = {condition.name for condition in conditions}
        found |= own_names if kind_.shares_machines and own_names & found else set()
    return frozenset(name for name in found if kind(known[name]).revision.rebuilds)


def refusal(name: str, was: Checked, now: Checked) -> str | None:
    """Return why a condition cannot carry over its state to another definition; `None` if it can."""
    before, after = was.by_name[name], now.by_name[name]
    if before.kind != after.kind:
        return "it becomes a condition of another kind"
    return kind(after).revision.refusal(before, after)


def refusal_in_shards(name: str, was: Checked, now: Checked) -> str | None:
    """Return why a condition cannot carry over its state in a streaming query; `None` if it can.

    Each shard of a query has only its own scopes, so some changes are possible only in one process.
    """
    if (why := refusal(name, was, now)) is not None:
        return why
    old, new = (
        next(
            (operator.links.stage, operator.key)
            for operator in operators(checked, sharded=True)
            if operator.serves((name,))
        )
        for checked in (was, now)
    )
    moves = keeps_its_machine(name, now) and old != new
    return _kind(name, now).revision.refusal_in_shards(was.by_name[name], now.by_name[name], moves)


def is_preserved(name: str, was: Checked, now: Checked) -> bool:
    """Whether active scopes of a condition remain active under another definition.

    They must do so for all possible readings.
    """
    return refusal(name, was, now) is None and _kind(name, now).revision.is_preserved(
        was.by_name[name], now.by_name[name]
    )


def take_over(name: str, was: Checked, now: Checked, past: Past) -> TakeOver:
    """Return the state of a condition under another definition, and its transitions.

    Raises an error if it is refused.
    """
    require(now.by_name[name], refusal(name, was, now))
    return _kind(name, now).revision.take_over(was.by_name[name], now.by_name[name], past)


def carry_overs_of(name: str, was: Checked, now: Checked, past: Past) -> list[CarryOver]:
    """Return the active scopes that a condition carries over when it restarts in an operator with others."""
    require(now.by_name[name], refusal(name, was, now))
    return carry_overs(
        was.by_name[name],
        now.by_name[name],
        past,
        keeps_scopes=_kind(name, now).revision.keeps_scopes(was.by_name[name], now.by_name[name]),
    )


def operator_for_revision(name: str, checked: Checked) -> Operator:
    """Return the operator of one revised condition, without links."""
    kind_ = _kind(name, checked)
    condition = kind_.revision.revisable(checked.by_name[name])
    (operator,) = kind_.compile([condition], condition.listens, sharded=False)
    return operator


def operator_for_revision_in_shards(name: str, checked: Checked) -> Operator:
    """Return the operator of one revised condition, linked with the others of a sharded definition."""
    operator = operator_for_revision(name, checked)
    rest = operators(without(checked, (name,)), sharded=True)
    return next(linked for linked in link([*rest, operator]) if linked.machine is operator.machine)


def starts_from_standings(name: str, checked: Checked) -> bool:
    """Whether a condition consumes the current states of its upstreams when it starts or is revised."""
    return operator_for_revision(name, checked).starts_from_standings


def splits(name: str, checked: Checked) -> bool:
    """Whether the state of a condition can be rebuilt from a history and split by scopes, for shards."""
    return _kind(name, checked).revision.splits


def has_other_rows(name: str, was: Checked, now: Checked) -> bool:
    """Whether a table of a condition has changed and its scopes can be carried over."""
    before, after = was.by_name[name].tables, now.by_name[name].tables
    return before != after and refusal(name, was, now) is None


def keeps_its_machine(name: str, checked: Checked) -> bool:
    """Whether a condition shares a machine with those that it builds on."""
    return name in checked.by_name and _kind(name, checked).shares_machines


def _kind(name: str, checked: Checked) -> Kind:
    return kind(checked.by_name[name])


def preview(was: Checked, now: Checked) -> list[tuple[str, str]]:
    """Return each condition that a revision affects, with a description of the effect."""
    before, after = was.by_name, now.by_name
    meant, means = meanings(was), meanings(now)
    found = [(name, "ends") for name in before if name not in after]
    for name, condition in after.items():
        if name not in before:
            found.append((name, "begins"))
        elif means[name] == meant[name] and not has_other_rows(name, was, now):
            has_new_rows = before[name].tables != condition.tables
            found.append(
                (name, "goes on" + (" and compares with the new rows" if has_new_rows else " as it is"))
            )
        elif (why := refusal(name, was, now)) is not None:
            found.append((name, f"is as a whole history says, where one is heard again, else refused: {why}"))
        else:
            found.append((name, kind(condition).revision.preview(before[name], condition)))
    return found


# --- standings as derived events ---------------------------------------------------------------------


def standing_events(
    operator: Operator, state: Any, checked: Checked, at: Instant
) -> dict[str, pa.RecordBatch]:
    """Return derived events for the active and unknown scopes of an operator, by topic.

    Downstream operators that start now consume them. An active scope has its own start. An unknown scope
    became unknown just before `at`, but not before it started. The events have only the attributes that
    identify the scope.
    """
    machine, found = operator.machine, list[Transition]()
    for status, rows in (("ingress", machine.active(state)), ("unknown", machine.unknown(state))):
        for condition, scope, since in rows:
            for name in operator.names[condition][:1]:
                time = at - 1 if since is None else since if status == "ingress" else max(at - 1, since)
                event = _with_scope_values(
                    Event(name, time, scope or "", sequence=0), checked.by_name[name], scope
                )
                found.append(Transition(event, status, scope, None, condition))  # type: ignore[arg-type]
    return operator.derive(Emission({}, found)) if found else {}


def _with_scope_values(event: Event, condition: Any, scope: str | None) -> Event:
    """Return an event with the attributes that identify a scope."""
    keys, known = condition.scope_keys, condition.topic.by_name
    texts = split_values(scope, len(keys)) if scope is not None and keys else None
    values = {name: _VALUES[known[name].kind](text) for name, text in zip(keys, texts or (), strict=False)}
    fixed = {name: values.pop(name) for name in ("source", "place") if name in values}
    return replace(event, attributes=values, **fixed)  # type: ignore[arg-type]


_VALUES: Mapping[str, Callable[[str], Value]] = {
    "text": str,
    "int": int,
    "float": float,
    "bool": lambda text: text == "true",
}


def placeholders(checked: Checked, at: Instant) -> Callable[[Scoped], Event]:
    """Return a function that creates the event of a transition without a stored reading.

    Transitions with the status `revised` or `unknown` can be such.
    """
    topics = {condition.name: condition.topic.name for condition in checked.conditions}
    return lambda key: Event(topics[key[0]], at, key[1] or "")
