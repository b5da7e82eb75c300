"""Revisions of overlaps: a revised overlap consumes the standings of its conditions again.

The old state supplies the intervals that have ended.
"""

from __future__ import annotations

import math

from ...model.instant import show_duration
from ..revision import Past, Revision, TakeOver, start_from_standings
from .condition import OverlapCondition
from .machine import OverlapState
from .plan import machine, operator


def _start(was: OverlapCondition, now: OverlapCondition, state: OverlapState) -> OverlapState:
    """Return the state of a new overlap before it consumes standings.

    It has the ended intervals of the old state, its waiting events, and the intervals that these events end.
    """
    run, ran = machine(now), machine(was)
    new = run.initial()
    if was.per != now.per:
        return new
    old = ran.load(ran.dump(state))
    held = [waiting for waiting in old.waiting.held if waiting[-1].topic in run.topics]
    waits = {run.member_of(waiting[-1]) for waiting in held}
    new.waiting.held, new.waiting.arrived = held, old.waiting.arrived
    old_topics = list(ran.topics)
    for i, name in enumerate(run.topics):
        if name in old_topics:
            k = old_topics.index(name)
            for scope, interval in old.over[k].by_scope.items():
                new.over[i].put(scope, interval)
            for scope, interval in old.holds[k].by_scope.items():
                if (i, scope) in waits:
                    new.holds[i].put(scope, interval)
    return new


def refusal(was: OverlapCondition, now: OverlapCondition) -> str | None:
    """Return the reason why an overlap cannot replace another one, or `None` if it can."""
    if now.near != math.inf:
        return "where active scopes started is not known"
    if now.per and not now.settled:
        return "the common keys of active scopes are not known"
    asks, knew = _conditions_with_ended_intervals(now), _conditions_with_ended_intervals(was)
    if not asks <= knew or (asks and was.per != now.per):
        return "which intervals have ended is not known"
    return None


def _conditions_with_ended_intervals(condition: OverlapCondition) -> set[str]:
    """Return the conditions whose ended intervals the machine stores."""
    match condition.relation:
        case "before":
            return {condition.over[0].name}
        case "ends" if condition.within is not None:
            return {topic.name for topic in condition.over}
    return set()


def preview(was: OverlapCondition, now: OverlapCondition) -> str:
    """Return as text the effect of a revision on active scopes."""
    if not _conditions_with_ended_intervals(now):
        return "it consumes the active scopes again"
    text = "it consumes the active scopes again, and keeps the intervals that have ended"
    assert was.within is not None and now.within is not None
    return text if now.within <= was.within else f"{text}, not longer than {show_duration(was.within)} ago"


def is_preserved(was: OverlapCondition, now: OverlapCondition) -> bool:
    """Whether active scopes stay active as long as their conditions are active."""
    same = (was.over, was.per, was.relation, was.near) == (now.over, now.per, now.relation, now.near)
    return same and was.within == now.within


def take_over(was: OverlapCondition, now: OverlapCondition, past: Past) -> TakeOver:
    """Start an overlap with the standings of its conditions and the ended intervals of the old state."""
    return start_from_standings(operator(now), _start(was, now, past.state), now, past)


REVISION = Revision(take_over, preview, refusal, is_preserved=is_preserved)
