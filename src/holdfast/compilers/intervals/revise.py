"""A correlation of states whose definition changes while it runs is told anew who holds, and since when: what
holds at once follows from that.  What has ended it knows from the one whose place it takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...lang.condition import Aligned
from ...machines.interval import State
from ...model.event import Event
from ...model.instant import show_duration
from .machine import machine


@dataclass(frozen=True)
class Reborn:
    """A correlation that takes the place of another."""

    was: Aligned
    now: Aligned
    state: State

    def begun(self, _revised: Sequence[Event] = ()) -> State:
        """Its state before it hears who holds: what has ended, and what waits until its moment is over, with
        what ends by that."""
        run, ran = machine(self.now), machine(self.was)
        new = run.initial()
        if self.was.per != self.now.per:
            return new
        old = ran.from_bytes(ran.to_bytes(self.state))
        held = [one for one in old.waiting.held if one[-1].topic in run.topics]
        waits = {run.speaker(one[-1]) for one in held}
        new.waiting.held, new.waiting.arrived = held, old.waiting.arrived
        theirs = list(ran.topics)
        for i, name in enumerate(run.topics):
            if name in theirs:
                k = theirs.index(name)
                for scope, one in old.over[k].by_scope.items():
                    new.over[i].put(scope, one)
                for scope, one in old.holds[k].by_scope.items():
                    if (i, scope) in waits:
                        new.holds[i].put(scope, one)
        return new

    def doubted(self, state: State) -> State:
        """Its state when it has heard that: nothing is open."""
        return state


def why_not(was: object, now: object) -> str | None:
    """Why a correlation cannot take the place of another; ``None`` if it can."""
    assert isinstance(was, Aligned) and isinstance(now, Aligned)
    if now.near != math.inf:
        return "where those began that hold is not known"
    if now.per and not now.settled:
        return "in what those agree that hold is not known"
    asks, knew = _looked_back_to(now), _looked_back_to(was)
    if not asks <= knew or (asks and was.per != now.per):
        return "what has ended is not known"
    return None


def _looked_back_to(one: Aligned) -> set[str]:
    """The conditions of which it knows what has ended."""
    match one.relation:
        case "before":
            return {one.over[0].name}
        case "ends" if one.within is not None:
            return {topic.name for topic in one.over}
    return set()


def outlook(was: Any, now: Any) -> str:
    """What will become of what holds, in words."""
    if not _looked_back_to(now):
        return "it is told who holds"
    said = "it is told who holds, and knows what has ended"
    return said if now.within <= was.within else f"{said}, not longer than {show_duration(was.within)} ago"


def outlives(was: Any, now: Any) -> bool:
    """Whether what holds goes on to hold: where anything does that did."""
    same = (was.over, was.per, was.relation, was.near) == (now.over, now.per, now.relation, now.near)
    return same and was.within == now.within
