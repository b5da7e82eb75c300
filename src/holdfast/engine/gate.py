"""Gates: they pass the events that may be relevant to one of many conditions.

The exact conditions are evaluated downstream. A gate has one bit for each scope. Events that set the bit
pass; while it is set, all events that may end one of the conditions also pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..model.event import Event, Transition

Chain = tuple[str | None, ...]


@dataclass(frozen=True)
class Gate:
    """A test of events for many conditions with the same scopes.

    `enter` is true if some condition starts, `leave` if all of them end, and `ends` if some condition ends.
    `chain` returns the keys of the scopes that contain an event, the innermost first. An event that enters
    sets the bits of all these scopes, because events that pass the inner filter are input of the outer
    filter. Only an event directly in a scope resets the bit of the scope.
    """

    enter: Callable[[Event], bool]
    leave: Callable[[Event], bool]
    ends: Callable[[Event], bool]
    chain: Callable[[Event], Chain | None]
    momentary: bool = False

    def initial(self) -> set[str]:
        """Return the state before any event: the set of keys whose bit is set."""
        return set()

    def react(self, state: set[str], event: Event) -> tuple[set[str], list[Transition]]:
        """Process one event. If it passes, it is emitted unchanged."""
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
