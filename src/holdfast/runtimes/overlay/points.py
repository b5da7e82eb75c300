"""Machines that send to points, over a host that sends to peers: every node hears every other.

Nodes say now and then that they live; a message to a point goes to the nearest that does.
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
from ...model.space import Point

BEAT = "points/beat"


class Alive(msgspec.Struct, frozen=True, array_like=True, tag="alive"):
    """This node lives."""


@dataclass(slots=True)
class State:
    """What the machine knows, and when each peer was heard."""

    inner: Any
    heard: dict[Peer, Instant] = field(default_factory=dict)


@dataclass(frozen=True)
class Points:
    """The machine of a node, among others at their places."""

    machine: ProtocolMachine
    name: Peer
    places: Mapping[Peer, Point]
    """Where everybody stands, this node too."""
    every: Duration = SECOND // 2
    """How often nodes say that they live; after three of them without a word one does not."""

    def __post_init__(self) -> None:
        if self.name not in self.places:
            raise UsageError(f"'{self.name}' does not stand anywhere")
        if len(set(self.places.values())) < len(self.places):
            raise UsageError("two nodes stand at one point; a node's address is where it stands")

    def initial(self) -> State:
        return State(self.machine.initial())

    def handle(self, state: State, given: Input) -> tuple[State, list[Effect]]:
        effects: list[Effect] = []
        todo: deque[Input] = deque()
        match given:
            case Started(now):
                state.heard = dict.fromkeys(self.places, now)
                todo.append(given)
                effects += self._beat(now)
            case Fired(now, timer) if timer == BEAT:
                effects += self._beat(now)
            case Received(now, sender, message):
                state.heard[sender] = now
                if not isinstance(message, Alive):
                    todo.append(given)
            case _:
                todo.append(given)
        while todo:
            state.inner, found = self.machine.handle(state.inner, todo.popleft())
            for effect in found:
                for peer, message in self._sent(state, effect, given.now):
                    if peer == self.name:
                        todo.append(Received(given.now, peer, message))
                    else:
                        effects.append(Send(peer, message))
                if not isinstance(effect, Route | Spread | Nearby):
                    effects.append(effect)
        return state, effects

    def _beat(self, now: Instant) -> list[Effect]:
        return [Send(EVERYBODY, Alive()), SetTimer(BEAT, now + self.every)]

    def living(self, state: State, now: Instant) -> dict[Peer, Point]:
        """Who was heard lately, and this node."""
        since = now - 3 * self.every
        return {
            peer: place
            for peer, place in self.places.items()
            if peer == self.name or state.heard.get(peer, since) > since
        }

    def _sent(self, state: State, effect: Effect, now: Instant) -> list[tuple[Peer, Any]]:
        living = self.living(state, now)
        match effect:
            case Route(to, message):
                return [(min(living, key=lambda peer: (math.dist(living[peer], to), peer)), message)]
            case Spread(low, high, message):
                return [(peer, message) for peer, at in living.items() if _within(low, at, high)]
            case Nearby(message):
                return [(peer, message) for peer in living if peer != self.name]
        return []


def _within(low: Point, at: Point, high: Point) -> bool:
    return all(a <= p <= b for a, p, b in zip(low, at, high, strict=True))
