"""A gate: passes the events that may be relevant to some of many conditions.

The exact conditions are evaluated downstream. A gate has one bit for each scope: events that set it pass, and
while it is set all events that may end one of the conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..model.event import Event, Transition

Chain = tuple[str | None, ...]


@dataclass(frozen=True)
class Gate:
    """`enter` is true where some condition starts, `leave` where all of them end, `ends` where some does.
    `chain` returns the keys of the scopes that contain an event, innermost first.

    An event that enters sets the bits of all of them: what passes the inner filter feeds the outer.  Only
    what happens directly in a scope resets its bit.
    """

    enter: Callable[[Event], bool]
    leave: Callable[[Event], bool]
    ends: Callable[[Event], bool]
    chain: Callable[[Event], Chain | None]
    momentary: bool = False

    def initial(self) -> set[str]:
        return set()

    def react(self, state: set[str], event: Event) -> tuple[set[str], list[Transition]]:
        """Process one event; it is emitted as it is if it passes."""
        passes = self._passes(state, event)
        return state, [Transition(event, "atomic", None, None, 0)] if passes else []

    def _passes(self, held: set[str], event: Event) -> bool:
        keys = [key for key in self.chain(event) or () if key is not None]
        if not keys:
            return False
        if self.enter(event):
            held.update(() if self.momentary else keys)
            return True
        if keys[0] not in held:
            return False
        if self.leave(event):
            held.discard(keys[0])
        return self.ends(event)
