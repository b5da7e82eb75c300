"""A revised fold consumes the standings of its condition again; the old state supplies the events that
started its members.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...engine.graph import advance_alone, push_alone
from ...model.event import Event
from ...model.instant import NEVER
from ..revision import Past, Revision, TakeOver, start_from_standings
from .condition import FoldCondition
from .machine import FoldState
from .plan import machine, operators


def _with_members(
    was: FoldCondition, now: FoldCondition, ran: FoldState, revised: Sequence[Event]
) -> FoldState:
    """The state of a new fold with the members of the old one, each with the event that started it."""
    new, old = machine(now), machine(was)
    state = new.initial()
    if was.over != now.over:
        return state
    before, _ = advance_alone(old, old.load(old.dump(ran)), NEVER)
    for event in revised:
        before, _ = push_alone(old, before, event)
    before, _ = advance_alone(old, before, NEVER)
    for member in sorted(before.members.values(), key=lambda member: member.event.order):
        state, _ = push_alone(new, state, member.event)
    state, _ = advance_alone(new, state, NEVER)
    state.waiting.until = ran.waiting.until
    return state


def preview(was: FoldCondition, now: FoldCondition) -> str:
    """Describe in words the effect of a revision on active scopes."""
    text = "it is told who holds, and what holds is told by its cells or by itself"
    return text if was.over == now.over else f"{text}; where those began that hold is not known"


def take_over(was: FoldCondition, now: FoldCondition, past: Past) -> TakeOver:
    """Let a fold consume the standings of its condition."""
    (operator,) = operators([now])
    state = _with_members(was, now, past.state, past.revised)
    return start_from_standings(operator, state, now, past)


REVISION = Revision(take_over, preview)
