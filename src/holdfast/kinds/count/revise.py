"""A revised count consumes the standings of its condition again and is active where these decide.

Where as many members are active as neither start nor end the count, it stays as it was if the two quotas
allow that conclusion; else it is unknown until members decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...engine.graph import advance_alone, push_alone
from ...model.count import CountShare
from ...model.event import Event
from ...model.instant import NEVER
from ..revision import Past, Revision, TakeOver, start_from_standings
from .condition import CountCondition
from .machine import CountGroup, CountMachine, CountState
from .plan import machine, operators


@dataclass(frozen=True)
class RebuiltCount:
    """A count that replaces another one and starts from its state."""

    was: CountCondition
    now: CountCondition
    state: CountState

    def start(self, revised: Sequence[Event]) -> CountState:
        """The state before it consumes standings: the groups of members that started before."""
        new = machine(self.now).initial()
        if self.knows_where:
            new.where.update(self._with_pending(revised).where)
        return new

    def _with_pending(self, revised: Sequence[Event]) -> CountState:
        """The old state after its pending events and the events that its upstreams emitted by the same
        revision.
        """
        ran = machine(self.was)
        state, _ = advance_alone(ran, ran.load(ran.dump(self.state)), NEVER)
        for event in revised:
            state, _ = push_alone(ran, state, event)
        return advance_alone(ran, state, NEVER)[0]

    def finish(self, state: CountState) -> CountState:
        """Complete the state after the standings were consumed."""
        run = machine(self.now)
        awaited = run.pending_members(state)
        state.where = {
            member: key
            for member, key in state.where.items()
            if member in awaited
            or ((group := state.groups.get(key)) and (member in group.on or member in group.unknown))
        }
        for key, group in state.groups.items():
            self._settle(run, key, group)
        return state

    def _settle(self, run: CountMachine, key: str, group: CountGroup) -> None:
        """Leave a group as it was where that follows from the quotas; else mark it undecided."""
        before = (self.state.groups.get(key) if self.same_scopes else None) or CountGroup()
        outcomes = run.outcomes(key, group)
        if len(outcomes) == 1:
            if outcomes == {True} and before.began is not None:
                group.began, group.first = before.began, before.first
            return
        held = before.began is not None
        group.began, group.first = before.began, before.first
        if not before.undecided and self._goes_on(held):
            group.known = run.is_known(key, group)
            return
        group.undecided, group.known = True, False

    @property
    def same_scopes(self) -> bool:
        """Whether both definitions group the same members in the same way."""
        was, now = self.was, self.now
        return (was.over.name, was.within, was.forest) == (now.over.name, now.within, now.forest)

    @property
    def knows_where(self) -> bool:
        """Whether the old state has the group of every member; with a roster, it has none for unlisted
        members.
        """
        return self.same_scopes and self.was.roster is None and self.now.roster is None

    def _goes_on(self, held: bool) -> bool:
        """Whether a group that was active (`held`) stays active by the new quota, or an inactive one
        inactive.
        """
        was, now = self.was, self.now
        if (was.over.name, was.roster, was.unknown) != (now.over.name, now.roster, now.unknown):
            return False
        pairs = ((was.quota.least, now.quota.least), (was.quota.fewer, now.quota.fewer))
        return all(_is_no_more(new, old) if held else _is_no_more(old, new) for old, new in pairs)


def refusal(was: CountCondition, now: CountCondition) -> str | None:
    """Why a count cannot replace another one; `None` if it can."""
    key_is_known = now.settled or now.roster is not None or not (now.within or now.forest)
    rebuilt = RebuiltCount(was, now, machine(was).initial())
    if key_is_known or rebuilt.knows_where:
        return None
    if rebuilt.same_scopes:
        return "where those are who were not on its roster is not known"
    return "it counts in other scopes, and where its members are is not known"


def _is_no_more(share: CountShare, other: CountShare) -> bool:
    return share.of_all == other.of_all and share.amount <= other.amount


def preview(was: CountCondition, now: CountCondition) -> str:
    """Describe in words the effect of a revision on the groups of a count."""
    rebuilt = RebuiltCount(was, now, machine(was).initial())
    stays, stays_off = (rebuilt._goes_on(held) for held in (True, False))
    open = "is as the history says, where that is heard again, else unknown until members decide"
    text = "it is told who holds; where as many do as neither start nor end it, "
    return (
        text
        + f"what holds {'stays so' if stays else open}; what does not {'stays so' if stays_off else open}"
    )


def is_preserved(was: CountCondition, now: CountCondition) -> bool:
    """Whether active groups stay active, whatever the readings: the new count ends no sooner."""
    return RebuiltCount(was, now, machine(was).initial())._goes_on(held=True)


def take_over(was: CountCondition, now: CountCondition, past: Past) -> TakeOver:
    """Let a count consume the standings of its condition, and keep what follows from the old state."""
    rebuilt, (operator,) = RebuiltCount(was, now, past.state), operators([now])
    return start_from_standings(operator, rebuilt.start(past.revised), now, past, rebuilt.finish)


REVISION = Revision(take_over, preview, refusal, is_preserved=is_preserved)
