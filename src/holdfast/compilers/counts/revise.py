"""A count over states whose definition changes while it runs is told anew who holds; its own start does not
follow from that where as many hold as neither begin nor end it.

There it goes on as it was, if whatever started the old one would have started the new one, and nothing that
let the old one go on would have ended the new one, or the other way round.  Else nobody knows, until members
decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...lang.condition import Tallied
from ...machines.count import Count, Group, State
from ...model.count import Share
from ...model.event import Event
from ...model.instant import NEVER
from .machine import machine


@dataclass(frozen=True)
class Reborn:
    """A count that takes the place of another, whose state is known."""

    was: Tallied
    now: Tallied
    state: State

    def begun(self, revised: Sequence[Event] = ()) -> State:
        """Its state before it hears who holds: where members are that began before."""
        new = machine(self.now).initial()
        if self.knows_where:
            new.where.update(self._of_all_told(revised).where)
        return new

    def _of_all_told(self, revised: Sequence[Event]) -> State:
        """What the old one would know if it had taken what waits, which those whom it hears have said, and
        what they say of an edit of their own."""
        ran = machine(self.was)
        state, _ = ran.advance(ran.from_bytes(ran.to_bytes(self.state)), NEVER)
        for event in revised:
            state, _ = ran.react(state, event)
        return ran.advance(state, NEVER)[0]

    def doubted(self, state: State) -> State:
        """Its state when it has heard that."""
        run = machine(self.now)
        awaited = run.awaited(state)
        state.where = {
            member: key
            for member, key in state.where.items()
            if member in awaited
            or ((group := state.groups.get(key)) and (member in group.on or member in group.unknown))
        }
        for key, group in state.groups.items():
            self._settle(run, key, group)
        return state

    def _settle(self, run: Count, key: str, group: Group) -> None:
        """Let a scope be as it was, where that follows; else it is undecided."""
        before = (self.state.groups.get(key) if self.same_scopes else None) or Group()
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
        """Whether it counts the same in the same scopes."""
        was, now = self.was, self.now
        return (was.over.name, was.within, was.forest) == (now.over.name, now.within, now.forest)

    @property
    def knows_where(self) -> bool:
        """Whether the old one knew where members are: of whom a roster did not list it knows nothing."""
        return self.same_scopes and self.was.roster is None and self.now.roster is None

    def _goes_on(self, held: bool) -> bool:
        """Whether what held holds by the new definition, too, or what did not does not."""
        was, now = self.was, self.now
        if (was.over.name, was.roster, was.unknown) != (now.over.name, now.roster, now.unknown):
            return False
        pairs = ((was.quota.least, now.quota.least), (was.quota.fewer, now.quota.fewer))
        return all(_is_no_more(new, old) if held else _is_no_more(old, new) for old, new in pairs)


def why_not(was: object, now: object) -> str | None:
    """Why a count cannot take the place of another; ``None`` if it can."""
    assert isinstance(was, Tallied) and isinstance(now, Tallied)
    tells = now.settled or now.roster is not None or not (now.within or now.forest)
    reborn = Reborn(was, now, machine(was).initial())
    if tells or reborn.knows_where:
        return None
    if reborn.same_scopes:
        return "where those are who were not on its roster is not known"
    return "it counts in other scopes, and where its members are is not known"


def _is_no_more(one: Share, other: Share) -> bool:
    return one.of_all == other.of_all and one.amount <= other.amount


def outlook(was: Any, now: Any) -> str:
    """What will become of the scopes of a count that is defined anew, in words."""
    reborn = Reborn(was, now, machine(was).initial())
    stays, stays_off = (reborn._goes_on(held) for held in (True, False))
    open = "is as the history says, where that is heard again, else unknown until members decide"
    said = "it is told who holds; where as many do as neither start nor end it, "
    return (
        said
        + f"what holds {'stays so' if stays else open}; what does not {'stays so' if stays_off else open}"
    )


def outlives(was: Any, now: Any) -> bool:
    """Whether what holds goes on to hold, whatever the readings: as many members as ended it would have."""
    return Reborn(was, now, machine(was).initial())._goes_on(held=True)
