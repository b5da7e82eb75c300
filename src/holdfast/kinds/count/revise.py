"""Revisions of counts: a revised count consumes the standings of its condition again, and is active where
they decide.

The standings do not decide if the number of active members neither starts nor ends the count. The count then
stays as it was if the two quotas allow that conclusion. Otherwise it is unknown until members decide.
"""

from __future__ import annotations

from functools import partial

from ...model.count import CountShare
from ..derived import after_revision
from ..revision import Past, Revision, TakeOver, start_from_standings
from .condition import CountCondition
from .machine import CountGroup, CountState
from .plan import machine, operator


def _have_same_scopes(was: CountCondition, now: CountCondition) -> bool:
    """Whether both definitions group the same members in the same way."""
    return (was.over.name, was.within, was.forest) == (now.over.name, now.within, now.forest)


def _knows_groups(was: CountCondition, now: CountCondition) -> bool:
    """Whether the old state has the group of every member. With a roster, it has none for unlisted
    members."""
    return _have_same_scopes(was, now) and was.roster is None and now.roster is None


def _finish(was: CountCondition, now: CountCondition, old: CountState, state: CountState) -> CountState:
    """Complete a new state after it has consumed standings.

    The groups of inactive members are dropped. Each group stays as it was in the old state if that follows
    from the quotas; other groups are undecided.
    """
    run = machine(now)
    pending = run.pending_members(state)
    state.where = {
        member: key
        for member, key in state.where.items()
        if member in pending or ((group := state.groups.get(key)) and group.has(member))
    }
    groups = old.groups if _have_same_scopes(was, now) else {}
    for key, group in state.groups.items():
        before, outcomes = groups.get(key) or CountGroup(), run.outcomes(key, group)
        if len(outcomes) > 1 or (outcomes == {True} and before.began is not None):
            group.began, group.first = before.began, before.first
        if len(outcomes) > 1:
            stays = not before.undecided and _stays(was, now, before.began is not None)
            group.undecided, group.known = not stays, stays and run.is_known(key, group)
    return state


def _stays(was: CountCondition, now: CountCondition, active: bool) -> bool:
    """Whether an active group stays active under the new quota, or an inactive group inactive."""
    if (was.over.name, was.roster, was.unknown) != (now.over.name, now.roster, now.unknown):
        return False
    pairs = ((was.quota.least, now.quota.least), (was.quota.fewer, now.quota.fewer))
    return all(_is_no_more(new, old) if active else _is_no_more(old, new) for old, new in pairs)


def refusal(was: CountCondition, now: CountCondition) -> str | None:
    """Return the reason why a count cannot replace another one, or `None` if it can."""
    key_is_known = now.settled or now.roster is not None or not (now.within or now.forest)
    if key_is_known or _knows_groups(was, now):
        return None
    if _have_same_scopes(was, now):
        return "the groups of members that were not on its roster are not known"
    return "it counts in other scopes, and the groups of its members are not known"


def _is_no_more(share: CountShare, other: CountShare) -> bool:
    """Whether a share is certainly not larger than another share."""
    return share.of_all == other.of_all and share.amount <= other.amount


def preview(was: CountCondition, now: CountCondition) -> str:
    """Describe in words the effect of a revision on the groups of a count."""
    open = "follow from the history if it is read again, else they are unknown until members decide"
    on, off = ("stay as they are" if _stays(was, now, active) else open for active in (True, False))
    text = "it consumes the states of its members again; where their number neither starts nor ends it, "
    return f"{text}active groups {on}; inactive groups {off}"


def is_preserved(was: CountCondition, now: CountCondition) -> bool:
    """Whether active groups stay active, for any readings: the new count ends no sooner."""
    return _stays(was, now, active=True)


def take_over(was: CountCondition, now: CountCondition, past: Past) -> TakeOver:
    """Start a count with the standings of its condition and the groups that follow from the old state."""
    state = machine(now).initial()
    if _knows_groups(was, now):
        state.where.update(after_revision(machine(was), past.state, past.revised).where)
    finish = partial(_finish, was, now, past.state)
    return start_from_standings(operator(now), state, now, past, finish)


REVISION = Revision(take_over, preview, refusal, is_preserved=is_preserved)
