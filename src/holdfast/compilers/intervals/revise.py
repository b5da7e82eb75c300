"""A correlation of states whose definition changes while it runs is told anew who holds, and since when: what
holds at once follows from that."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...lang.condition import Aligned
from .machine import machine


@dataclass(frozen=True)
class Reborn:
    """A correlation that takes the place of another."""

    was: Aligned
    now: Aligned
    state: Any

    def begun(self) -> Any:
        """Its state before it hears who holds."""
        return machine(self.now).initial()

    def doubted(self, state: Any) -> Any:
        """Its state when it has heard that: nothing is open."""
        return state


def why_not(_was: object, now: object) -> str | None:
    """Why a correlation cannot take the place of another; ``None`` if it can."""
    assert isinstance(now, Aligned)
    if now.near != math.inf:
        return "where those began that hold is not known"
    return None if now.settled or not now.per else "in what those agree that hold is not known"


def outlook(_was: object, _now: object) -> str:
    """What will become of what holds, in words."""
    return "it is told who holds; what began or ended before is not known to it"


def outlives(was: Any, now: Any) -> bool:
    """Whether what holds goes on to hold: where anything does that did."""
    same = (was.over, was.per, was.relation, was.near) == (now.over, now.per, now.relation, now.near)
    return same and was.within == now.within
