"""Flooding: a routing machine in which every node repeats every datagram once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random

from ....model.instant import MILLISECOND, Duration
from ....model.protocol import Asked, Deliver, Fired, SetTimer, Started
from ..frame import BROADCAST, NEIGHBOURS, NodeId
from .datagram import (
    HEADER,
    HOP_LIMIT,
    Datagram,
    Destination,
    Discard,
    Effects,
    FrameReceived,
    Input,
    RecentKeys,
    Relay,
    Transmit,
    refuses_points,
)


@dataclass(slots=True)
class FloodingState:
    """The datagrams that a node has received, and the datagrams that it is about to repeat."""

    node: NodeId
    random: Random = field(default_factory=Random)
    seen: RecentKeys = field(default_factory=RecentKeys)
    waiting: dict[str, Datagram] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Flooding:
    """Flooding with a random delay: a node repeats each datagram that it receives for the first time."""

    limit: int = 32
    """The number of hops after which a datagram is not repeated."""
    jitter: Duration = 10 * MILLISECOND
    """The longest delay before a repetition in µs. Without a delay, neighbours would repeat at the same time
    and collide.
    """

    def initial(self, node: NodeId) -> FloodingState:
        return FloodingState(node)

    def held(self, state: FloodingState) -> Iterable[Datagram]:
        return state.waiting.values()

    def refuses(self, destination: Destination) -> str | None:
        return refuses_points(destination)

    def handle(self, state: FloodingState, event: Input) -> tuple[FloodingState, Effects]:
        match event:
            case FrameReceived():
                if event.ours and state.seen.add(event.what.key):
                    return state, self._on_new(state.node, event.what.after_hop())
            case Asked(_, datagram) if datagram.hops == 0:
                state.seen.add(datagram.key)
                return state, [_broadcast(datagram)]
            case Asked(now, datagram):
                timer = f"{datagram.origin}.{datagram.number}"
                state.waiting[timer] = datagram
                return state, [SetTimer(timer, now + state.random.randint(0, self.jitter))]
            case Fired(_, timer):
                return state, [_broadcast(state.waiting.pop(timer))]
            case Started(_, seed):
                state.random = Random(seed)
        return state, []

    def _on_new(self, node: NodeId, datagram: Datagram) -> Effects:
        if datagram.destination in (node, NEIGHBOURS):
            return [Deliver(datagram)]
        effects: Effects = [Deliver(datagram)] if datagram.destination == BROADCAST else []
        return [*effects, Relay(datagram) if datagram.hops < self.limit else Discard(datagram, HOP_LIMIT)]


FLOODING = Flooding()


def _broadcast(datagram: Datagram) -> Transmit:
    return Transmit(BROADCAST, datagram, HEADER + datagram.size)
