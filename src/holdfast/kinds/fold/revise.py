"""Revisions of folds: a revised fold consumes the standings of its condition again.

The old state supplies the events that started its members.
"""

from __future__ import annotations

from ..derived import after_revision
from ..revision import Past, Revision, TakeOver, start_from_standings
from .condition import FoldCondition
from .machine import FoldState
from .plan import machine, operator


def _with_members(was: FoldCondition, now: FoldCondition, past: Past) -> FoldState:
    """Return the state of a new fold with the members of the old one, each with the event that started it."""
    new = machine(now)
    state = new.initial()
    if was.over != now.over:
        return state
    members = after_revision(machine(was), past.state, past.revised).members.values()
    state = after_revision(new, state, sorted((m.event for m in members), key=lambda event: event.order))
    state.waiting.until = past.state.waiting.until
    return state


def preview(was: FoldCondition, now: FoldCondition) -> str:
    """Describe in words the effect of a revision on active scopes."""
    text = "it consumes the active members again, and reports them by cells or by themselves"
    return text if was.over == now.over else f"{text}; where active scopes started is not known"


def take_over(was: FoldCondition, now: FoldCondition, past: Past) -> TakeOver:
    """Start a fold with the standings of its condition and the members of the old state."""
    return start_from_standings(operator(now), _with_members(was, now, past), now, past)


REVISION = Revision(take_over, preview)
