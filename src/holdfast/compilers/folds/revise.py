"""A fold whose definition changes while it runs begins with those that hold, where they began: the old one
knows that.  What holds of the state that is folded is told all the same, by a cell or by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...lang.condition import Folded
from ...machines.fold import State
from ...model.event import Event
from ...model.instant import NEVER
from .machine import machine


@dataclass(frozen=True)
class Reborn:
    """A fold that takes the place of another, whose state is known."""

    was: Folded
    now: Folded
    state: State

    def begun(self, revised: Sequence[Event] = ()) -> State:
        """Its state before it hears who holds: with those of which the old one knows where they began."""
        run, ran = machine(self.now), machine(self.was)
        new = run.initial()
        if self.was.over != self.now.over:
            return new
        old, _ = ran.advance(ran.from_bytes(ran.to_bytes(self.state)), NEVER)
        for event in revised:
            old, _ = ran.react(old, event)
        old, _ = ran.advance(old, NEVER)
        for member in sorted(old.members.values(), key=lambda one: one.event.order):
            new, _ = run.react(new, member.event)
        new, _ = run.advance(new, NEVER)
        new.waiting.until = self.state.waiting.until
        return new

    def doubted(self, state: State) -> State:
        """Its state when it has heard that: nothing is open."""
        return state


def outlook(was: Any, now: Any) -> str:
    """What will become of what holds, in words."""
    said = "it is told who holds, and what holds is told by its cells or by itself"
    return said if was.over == now.over else f"{said}; where those began that hold is not known"


def outlives(_was: Any, _now: Any) -> bool:
    """Cells come and go."""
    return False
