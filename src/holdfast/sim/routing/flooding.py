"""Flooding: everybody says everything once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from ...model.instant import MILLISECOND, Duration
from ...model.protocol import Asked, Deliver, Fired, SetTimer, Started
from ..frame import BROADCAST, NEIGHBOURS, NodeId
from .datagram import (
    HEADER,
    HOP_LIMIT,
    Datagram,
    Destination,
    Discard,
    Effect,
    Heard,
    Input,
    Relay,
    Seen,
    Transmit,
    refuses_points,
)


@dataclass(slots=True)
class FloodingState:
    """What a node has heard, and what it is about to repeat."""

    node: NodeId
    random: Random = field(default_factory=Random)
    seen: Seen = field(default_factory=Seen)
    waiting: dict[str, Datagram] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Flooding:
    """Every node repeats what it hears for the first time, after a little while of chance."""

    limit: int = 32
    """The hops after which a datagram is not repeated."""
    jitter: Duration = 10 * MILLISECOND
    """The longest wait before a repetition: neighbours that repeat at once only collide."""

    def initial(self, node: NodeId) -> FloodingState:
        return FloodingState(node)

    def held(self, state: FloodingState) -> Iterable[Datagram]:
        return state.waiting.values()

    def refuses(self, destination: Destination) -> str | None:
        return refuses_points(destination)

    def handle(self, state: FloodingState, given: Input) -> tuple[FloodingState, list[Effect]]:
        match given:
            case Heard():
                if given.ours and state.seen.add(given.what.key):
                    return state, self._news(state.node, given.what.further())
            case Asked(_, datagram) if datagram.hops == 0:
                state.seen.add(datagram.key)
                return state, [_say(datagram)]
            case Asked(now, datagram):
                timer = f"{datagram.origin}.{datagram.number}"
                state.waiting[timer] = datagram
                return state, [SetTimer(timer, now + state.random.randint(0, self.jitter))]
            case Fired(_, timer):
                return state, [_say(state.waiting.pop(timer))]
            case Started(_, seed):
                state.random = Random(seed)
        return state, []

    def _news(self, node: NodeId, datagram: Datagram) -> list[Effect]:
        if datagram.destination == node:
            return [Deliver(datagram)]
        if datagram.destination == NEIGHBOURS:
            return [Deliver(datagram)]
        effects: list[Effect] = [Deliver(datagram)] if datagram.destination == BROADCAST else []
        onward = Relay(datagram) if datagram.hops < self.limit else Discard(datagram, HOP_LIMIT)
        return [*effects, onward]


FLOODING = Flooding()


def _say(datagram: Datagram) -> Transmit:
    return Transmit(BROADCAST, datagram, HEADER + datagram.size)
