"""A wrapper for machines that send to points, for hosts in which every node reaches every other node.

Nodes send periodic signs of life. A message to a point goes to the nearest node that is alive.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ...errors import UsageError
from ...model.instant import SECOND, Duration, Instant
from ...model.protocol import (
    EVERYBODY,
    Effect,
    Fired,
    Input,
    Nearby,
    Peer,
    ProtocolMachine,
    Received,
    Route,
    Send,
    SetTimer,
    Spread,
    Started,
)
from ...model.space import Point, Rectangle
from ..sim.routing.spreading import is_inside

BEAT = "points/beat"


class Alive(msgspec.Struct, frozen=True, array_like=True, tag="alive"):
    """A sign of life, which nodes send to all peers periodically."""


@dataclass(slots=True)
class PointsState:
    """The state of the wrapped machine, and the last sign of life of each peer."""

    inner: Any
    last_signs: dict[Peer, Instant] = field(default_factory=dict)


@dataclass(frozen=True)
class PointsNode:
    """Wraps a node's machine. ``places`` are the positions of all nodes."""

    machine: ProtocolMachine
    name: Peer
    places: Mapping[Peer, Point]
    """The positions of all nodes, including this one."""
    every: Duration = SECOND // 2
    """The period in µs of signs of life. After three missing signs, a node counts as lost."""

    def __post_init__(self) -> None:
        if self.name not in self.places:
            raise UsageError(f"'{self.name}' does not stand anywhere")
        if len(set(self.places.values())) < len(self.places):
            raise UsageError("two nodes stand at one point; a node's address is where it stands")

    def initial(self) -> PointsState:
        """Return the state of the machine before its first input."""
        return PointsState(self.machine.initial())

    def handle(self, state: PointsState, given: Input) -> tuple[PointsState, list[Effect]]:
        """Handle one input: change ``state`` in place, and return it with the effects in their order."""
        effects: list[Effect] = []
        inputs: deque[Input] = deque()
        match given:
            case Started(now):
                state.last_signs = dict.fromkeys(self.places, now)
                inputs.append(given)
                effects += self._beat(now)
            case Fired(now, timer) if timer == BEAT:
                effects += self._beat(now)
            case Received(now, sender, message):
                state.last_signs[sender] = now
                if not isinstance(message, Alive):
                    inputs.append(given)
            case _:
                inputs.append(given)
        while inputs:
            state.inner, found = self.machine.handle(state.inner, inputs.popleft())
            for effect in found:
                for peer, message in self._messages_of(state, effect, given.now):
                    if peer == self.name:
                        inputs.append(Received(given.now, peer, message))
                    else:
                        effects.append(Send(peer, message))
                if not isinstance(effect, Route | Spread | Nearby):
                    effects.append(effect)
        return state, effects

    def _beat(self, now: Instant) -> list[Effect]:
        return [Send(EVERYBODY, Alive()), SetTimer(BEAT, now + self.every)]

    def living(self, state: PointsState, now: Instant) -> dict[Peer, Point]:
        """Return the positions of the nodes that are alive, including this one."""
        since = now - 3 * self.every
        alive = {peer for peer, sign in state.last_signs.items() if sign > since} | {self.name}
        return {peer: place for peer, place in self.places.items() if peer in alive}

    def _messages_of(self, state: PointsState, effect: Effect, now: Instant) -> list[tuple[Peer, Any]]:
        """Return the messages of an effect that sends to points, each with the peer that receives it."""
        living = self.living(state, now)
        match effect:
            case Route(to, message):
                return [(min(living, key=lambda peer: (math.dist(living[peer], to), peer)), message)]
            case Spread(low, high, message):
                return [(peer, message) for peer, at in living.items() if is_inside(Rectangle(low, high), at)]
            case Nearby(message):
                return [(peer, message) for peer in living if peer != self.name]
        return []
