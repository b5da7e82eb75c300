"""Revisions: conditions continue when their definition changes while they run.

A changed condition carries over the state of its scopes: active, inactive or unknown, since when, and by
which event. Each kind has a `Revision`. `plan/revise.py` decides whether to keep, carry over, rebuild from a
history, or refuse; runtimes call it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa

from ..engine.carry_over import CarryingOver, CarryOver
from ..engine.graph import run_alone, start_alone
from ..engine.operator import Operator
from ..engine.standing import Scoped, revision_transitions, standings
from ..errors import UsageError
from ..model.event import Event, Transition
from ..model.instant import Instant

Renumbering = Sequence[int | None]
"""The number that each condition of a machine had when its state was stored; ``None`` for a new one."""


class Past(NamedTuple):
    """The state of a running condition when a new definition with the same name replaces it.

    - `operator`, `state`: the operator that ran, with its state.
    - `watermark`: the time at which the new operator starts.
    - `latest`: the latest event of each source; empty if they are not stored.
    - `standings`: derived events for the scopes of upstreams that are active or unknown, by topic.
    - `revised`: derived events of the transitions that upstreams emitted by the same revision.
    """

    operator: Operator
    state: Any
    watermark: Instant
    latest: Iterable[Event] = ()
    standings: Mapping[str, pa.RecordBatch] = {}
    revised: Sequence[Event] = ()


class TakeOver(NamedTuple):
    """The result of a revision: the new operator, its state, and the transitions of the scopes that changed.

    `has_changes` is false if the new operator continues from exactly the old state.
    """

    operator: Operator
    state: Any
    transitions: list[Transition]
    has_changes: bool = True


@dataclass(frozen=True)
class Revision:
    """The functions with which conditions of a kind continue. They receive the old and the new checked
    condition."""

    take_over: Callable[[Any, Any, Past], TakeOver]
    preview: Callable[[Any, Any], str]
    """Returns as text the effect of a revision on scopes."""
    refusal: Callable[[Any, Any], str | None] = lambda _was, _now: None
    """Returns the reason why the new condition cannot carry over the state of the old one, or `None` if it
    can."""
    refusal_in_shards: Callable[[Any, Any, bool], str | None] = lambda _was, _now, _moves: None
    """Returns a further reason for shards, each of which has only its own scopes, or `None`.

    The last argument says whether the operator moves to other shards.
    """
    is_preserved: Callable[[Any, Any], bool] = lambda _was, _now: False
    """Whether active scopes stay active, for any readings."""
    revisable: Callable[[Any], Any] = lambda condition: condition
    """Returns the condition in a form that can have unknown scopes. The condition stays in this form."""
    keeps_scopes: Callable[[Any, Any], bool] = lambda _was, _now: True
    """Whether scopes of the old definition are also scopes of the new definition."""
    rebuilds: bool = True
    """Whether a history determines the whole state of the kind's conditions."""
    splits: bool = False
    """Whether a state that was rebuilt from a history can be split by scopes, for shards."""


def require(now: Any, reason: str | None) -> None:
    """Raise a `UsageError` that refuses a revision, unless the reason is `None`."""
    if reason is not None:
        raise UsageError(f"'{now.name}' cannot keep what is known of it: {reason}. Give it another name.")


# --- conditions on conditions: they consume the standings of their upstreams -------------------------


def start_from_standings(
    operator: Operator, state: Any, now: Any, past: Past, finish: Callable[[Any], Any] = lambda state: state
) -> TakeOver:
    """Start an operator with the standings of its upstreams.

    `finish` marks scopes that the standings leave undecided.
    """
    state, _ = run_alone(operator, past.standings, past.watermark, state)
    return changes_since(operator, finish(state), now, past, {})


def changes_since(
    operator: Operator, state: Any, now: Any, past: Past, causes: Mapping[Scoped, Event]
) -> TakeOver:
    """Return the new state of a condition, with the transitions of the scopes that have changed."""
    before = standings(past.operator, past.state)
    before = {key: standing for key, standing in before.items() if key[0] == now.name}

    def placeholder(key: Scoped) -> Event:
        return Event(now.topic.name, past.watermark, key[1] or "")

    ((_, transitions),) = revision_transitions(operator, state, before, causes, placeholder)
    return TakeOver(operator, state, transitions)


# --- kinds over readings: they restart, and active scopes are unknown until a reading decides --------


def carry_overs(was: Any, now: Any, past: Past, *, keeps_scopes: bool) -> list[CarryOver]:
    """Return the active scopes that a condition passes on to its new definition."""
    machine = past.operator.machine
    if not isinstance(machine, CarryingOver) or not keeps_scopes:
        return []
    (number,) = (i for i, names in enumerate(past.operator.names) if now.name in names)
    changed = was.topic.differing(now.topic)
    found = machine.carry_overs(past.state, number).values()
    return [machine.without(carry_over, changed) for carry_over in found] if changed else list(found)


RESTARTS = "follows from a whole history if one is read again, else it restarts"
"""The effect of a revision of a kind that restarts, in words."""


def restart(operator: Operator, was: Any, now: Any, past: Past, *, keeps_scopes: bool) -> TakeOver:
    """Start a condition at the watermark. Scopes that were active become unknown if the new definition keeps
    them; others end."""
    machine, state = operator.machine, start_alone(operator, past.watermark)
    if isinstance(machine, CarryingOver):
        known = carry_overs(was, now, past, keeps_scopes=keeps_scopes)
        state = machine.start(state, 0, known, past.watermark)
    unknown = {scope: since for _, scope, since in machine.unknown(state)}
    ran = past.operator.machine
    active = {scope for _, scope, _ in ran.active(past.state)}
    active -= {scope for _, scope, _ in ran.unknown(past.state) if scope in unknown}
    transitions = [
        Transition(
            Event(now.topic.name, past.watermark, scope or ""),
            "unknown" if scope in unknown else "revised",
            scope,
            unknown.get(scope),
            0,
        )
        for scope in sorted(active, key=lambda scope: scope or "")
    ]
    return TakeOver(operator, state, transitions)
