"""A wrapper for machines that send to points, for hosts that reach only neighbours: nodes forward datagrams.

Forwarding is greedy and, where no neighbour is nearer, goes round the face of the planar graph, as in the
simulator. So a message to a point reaches the nearest node that is alive. A message for a rectangle reaches
all its nodes, by the steps of ``sim.routing.spreading``. Nodes send periodic signs of life.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ...errors import UsageError
from ...model.instant import MINUTE, SECOND, Duration, Instant
from ...model.protocol import (
    EVERYBODY,
    Effect,
    Fired,
    Input,
    Nearby,
    Onward,
    Passing,
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
from ..sim.routing.plane import FaceWalk, Surroundings, beside, towards
from ..sim.routing.spreading import is_inside, nearest_point, next_walks
from .points import Alive

BEAT = "relays/beat"
MOST_HOPS = 255

At = tuple[float, float]
Box = tuple[At, At]


class RelayedDatagram(msgspec.Struct, frozen=True, array_like=True, tag="relayed"):
    """A message on its way to a point; with a rectangle ``within``, to all nodes in the rectangle."""

    to: At
    message: msgspec.Raw
    within: Box | None = None
    walk: tuple[At, float, tuple[Peer, Peer]] | None = None
    """The walk round a face: its start, its progress, and its first link."""
    hops: int = 0


class FloodedDatagram(msgspec.Struct, frozen=True, array_like=True, tag="flooded"):
    """A message for all nodes in a rectangle. Each of them repeats it once, and it walks round the
    rectangle.
    """

    origin: Peer
    number: int
    within: Box
    message: msgspec.Raw
    walks: bool = False
    """Whether it is on its walk. Otherwise it is only for neighbours in the rectangle."""
    hops: int = 0


class NeighbourDatagram(msgspec.Struct, frozen=True, array_like=True, tag="near"):
    """A message for every neighbour that receives it."""

    message: msgspec.Raw


Wire = RelayedDatagram | FloodedDatagram | NeighbourDatagram | Alive
"""The datagrams that nodes exchange."""


@dataclass(slots=True)
class RelayState:
    """The state of the wrapped machine, the last sign of life of each neighbour, and recent messages."""

    inner: Any
    last_signs: dict[Peer, Instant] = field(default_factory=dict)
    recent: dict[tuple[Peer, int, Peer], Instant] = field(default_factory=dict)
    """The times at which messages for rectangles were handled.

    A key has the origin, the number and a node's name: this node for messages that arrived here, or the
    neighbour to which a message was sent on a walk.
    """
    floods: int = 0
    relayed_count: int = 0
    """The number of datagrams of other nodes that this node forwarded."""


@dataclass(frozen=True)
class Relays:
    """Wraps a node's machine. ``near`` are the positions of its neighbours."""

    machine: ProtocolMachine
    name: Peer
    at: Point
    near: Mapping[Peer, Point]
    wire: Any
    """The type of the machine's messages."""
    every: Duration = SECOND // 2
    """The period in µs of signs of life. After three missing signs, a neighbour counts as lost."""

    def __post_init__(self) -> None:
        if self.name in self.near:
            raise UsageError(f"'{self.name}' is its own neighbour")
        if len({self.at, *self.near.values()}) <= len(self.near):
            raise UsageError("two nodes stand at one point; a node's address is where it stands")

    def initial(self) -> RelayState:
        """Return the state of the machine before its first input."""
        return RelayState(self.machine.initial())

    def handle(self, state: RelayState, given: Input) -> tuple[RelayState, list[Effect]]:
        """Handle one input: change ``state`` in place, and return it with the effects in their order."""
        turn = _RelayStep(self, state, given.now)
        match given:
            case Started(now):
                state.last_signs = dict.fromkeys(self.near, now)
                turn.send_beat()
                turn.enqueue(given)
            case Fired(_, timer) if timer == BEAT:
                turn.send_beat()
            case Received(now, sender, message):
                if sender in self.near:  # datagrams of other nodes are ignored
                    state.last_signs[sender] = now
                    turn.on_datagram(sender, message)
            case _:
                turn.enqueue(given)
        turn.work()
        return state, turn.effects


class _RelayStep:
    """Handles one input of a wrapped machine."""

    def __init__(self, machine: Relays, state: RelayState, now: Instant) -> None:
        self.machine, self.state, self.now = machine, state, now
        self.effects: list[Effect] = []
        self._todo: deque[Input] = deque()
        self._decode = msgspec.msgpack.Decoder(machine.wire).decode
        x, y = machine.at
        self._here = (float(x), float(y))
        since, signs = now - 3 * machine.every, state.last_signs
        self._alive = {peer: at for peer, at in machine.near.items() if signs.get(peer, since) > since}

    def send_beat(self) -> None:
        """Send a sign of life and forget old messages."""
        machine, state = self.machine, self.state
        self.effects += [Send(EVERYBODY, Alive()), SetTimer(BEAT, self.now + machine.every)]
        state.recent = {key: at for key, at in state.recent.items() if at > self.now - MINUTE}

    # --- inputs of the machine ---

    def enqueue(self, given: Input) -> None:
        """Queue an input for the machine."""
        self._todo.append(given)

    def receive_raw(self, raw: msgspec.Raw) -> None:
        """Queue a message for the machine. A malformed message is ignored."""
        try:
            message = self._decode(raw)
        except msgspec.DecodeError:  # a peer's fault
            return
        self.enqueue(Received(self.now, "", message))

    def work(self) -> None:
        """Pass queued inputs to the machine and carry out its effects."""
        while self._todo:
            for effect in self._handle(self._todo.popleft()):
                self._carry_out(effect)

    def _handle(self, given: Input) -> list[Effect]:
        self.state.inner, found = self.machine.machine.handle(self.state.inner, given)
        return found

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Route(to, message):
                self._send_on(RelayedDatagram(_plain(to), _raw(message)), None)
            case Spread(low, high, message):
                within = (_plain(low), _plain(high))
                to = nearest_point(Rectangle(low, high), self._here)
                self._send_on(RelayedDatagram(_plain(to), _raw(message), within), None)
            case Nearby(message):
                self._to_all(NeighbourDatagram(_raw(message)))
            case _:
                self.effects.append(effect)

    # --- datagrams ---

    def on_datagram(self, sender: Peer, given: Wire) -> None:
        """Handle a datagram of a neighbour: deliver it, forward it, or both."""
        match given:
            case NeighbourDatagram(message):
                self.receive_raw(message)
            case FloodedDatagram():
                if given.hops < MOST_HOPS and (given.walks or self._is_in(given.within)):
                    self._flood(given, self.machine.near[sender])
            case RelayedDatagram():
                if given.hops < MOST_HOPS:
                    self._send_on(given, self.machine.near[sender])

    def _send_on(self, given: RelayedDatagram, came_from: Point | None) -> None:
        """Send a message to the next node, or handle it if no node is nearer to its destination."""
        walk = None if given.walk is None else FaceWalk(*given.walk)
        is_arrived = given.within is not None and self._is_in(given.within)
        chosen = None if is_arrived else towards(self._known, given.to, walk, came_from)
        if chosen is None:
            self._on_arrival(given)
            return
        if came_from is not None and (given := self._forwarded_version(given)) is None:  # type: ignore[assignment]
            return
        peer, walk = chosen
        plain_walk = None if walk is None else (_plain(walk.start), walk.crossed, walk.first)
        onward = msgspec.structs.replace(given, walk=plain_walk, hops=given.hops + 1)
        self.effects.append(Send(peer, onward))

    def _forwarded_version(self, given: RelayedDatagram) -> RelayedDatagram | None:
        """Return the message to forward; ``None`` if the machine, which may inspect and change messages,
        consumed it.
        """
        self.state.relayed_count += 1
        if given.within is not None or not getattr(self.machine.machine, "peeks", False):
            return given
        try:
            message = self._decode(given.message)
        except msgspec.DecodeError:
            return None
        onward = None
        for effect in self._handle(Passing(self.now, given.to, message)):
            if isinstance(effect, Onward):
                onward = msgspec.structs.replace(given, message=_raw(effect.message))
            else:
                self._carry_out(effect)
        return onward

    def _on_arrival(self, given: RelayedDatagram) -> None:
        """Handle a message at its destination, or start to flood it in its rectangle."""
        if given.within is None:
            self.receive_raw(given.message)
            return
        self.state.floods = number = max(self.state.floods + 1, self.now)
        flooded = FloodedDatagram(self.machine.name, number, given.within, given.message)
        self._flood(flooded, beside(self._here, given.to))

    def _flood(self, given: FloodedDatagram, seen: Point) -> None:
        """Send a message to all neighbours in its rectangle, and on walks over each link of the planar graph
        once.
        """
        name, key = self.machine.name, (given.origin, given.number)
        onward = msgspec.structs.replace(given, walks=False, hops=given.hops + 1)
        if self._is_in(given.within) and self._is_new((*key, name)):
            self.receive_raw(given.message)
            self._to_all(onward)
        for peer in next_walks(self._known, Rectangle(*given.within), seen):
            if self._is_new((*key, peer)):
                self.effects.append(Send(peer, msgspec.structs.replace(onward, walks=True)))

    def _is_new(self, key: tuple[Peer, int, Peer]) -> bool:
        new = key not in self.state.recent
        self.state.recent.setdefault(key, self.now)
        return new

    def _is_in(self, within: Box) -> bool:
        return is_inside(Rectangle(*within), self._here)

    @property
    def _known(self) -> Surroundings[Peer]:
        return Surroundings(self.machine.name, self._here, self._alive)

    def _to_all(self, message: Wire) -> None:
        self.effects += [Send(peer, message) for peer in self._alive]


def _plain(point: Point) -> At:
    x, y = point
    return (float(x), float(y))


def _raw(message: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(message))


def neighbours(places: Mapping[Peer, Point], name: Peer, reach: float) -> dict[Peer, Point]:
    """Return the nodes within ``reach`` of a node, with their positions."""
    here = places[name]
    return {peer: at for peer, at in places.items() if peer != name and math.dist(at, here) <= reach}
