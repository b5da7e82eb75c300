"""Machines that send to points, over a host that reaches only those near by: datagrams go from node to node.

Greedily, and where nobody is nearer round the face of the planar graph, as on the simulated field; so a
message to a point is taken by the node that lives nearest to it.  A message for a rectangle reaches all its
nodes, by the same steps as in the simulator (``sim.routing.spreading``).  Nodes say now and then that they
live.
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
from ...sim.routing.plane import Surroundings, Walk, beside, towards
from ...sim.routing.spreading import is_inside, nearest_point, next_walks
from .points import Alive

BEAT = "relays/beat"
MOST_HOPS = 255

At = tuple[float, float]
Box = tuple[At, At]


class Relayed(msgspec.Struct, frozen=True, array_like=True, tag="relayed"):
    """On its way to a point; with a rectangle, to all who stand in that."""

    to: At
    message: msgspec.Raw
    within: Box | None = None
    walk: tuple[At, float, tuple[Peer, Peer]] | None = None
    """Round a face: where it began, how far it has come, by which link first."""
    hops: int = 0


class Flooded(msgspec.Struct, frozen=True, array_like=True, tag="flooded"):
    """For all in a rectangle: each of them repeats it once, and it walks round the rectangle."""

    origin: Peer
    number: int
    within: Box
    message: msgspec.Raw
    walks: bool = False
    """Whether it is on its walk; else it is only for neighbours in the rectangle."""
    hops: int = 0


class Near(msgspec.Struct, frozen=True, array_like=True, tag="near"):
    """For whoever hears it."""

    message: msgspec.Raw


Wire = Relayed | Flooded | Near | Alive
"""What goes over a link."""


@dataclass(slots=True)
class State:
    """What the machine knows, when each neighbour was heard, and what was sent already."""

    inner: Any
    heard: dict[Peer, Instant] = field(default_factory=dict)
    seen: dict[tuple[Peer, int, Peer], Instant] = field(default_factory=dict)
    """Messages for rectangles, by origin and number: those that came to this node, under its name, and the
    neighbours to whom each was sent on a walk; and when."""
    floods: int = 0
    relayed: int = 0
    """How many datagrams of others were passed on."""


@dataclass(frozen=True)
class Relays:
    """The machine of a node at its place, and where its neighbours stand."""

    machine: ProtocolMachine
    name: Peer
    at: Point
    near: Mapping[Peer, Point]
    wire: Any
    """The type of the machine's messages."""
    every: Duration = SECOND // 2
    """How often nodes say that they live; after three of them without a word one does not."""

    def __post_init__(self) -> None:
        if self.name in self.near:
            raise UsageError(f"'{self.name}' is its own neighbour")
        if len({self.at, *self.near.values()}) <= len(self.near):
            raise UsageError("two nodes stand at one point; a node's address is where it stands")

    def initial(self) -> State:
        return State(self.machine.initial())

    def handle(self, state: State, given: Input) -> tuple[State, list[Effect]]:
        turn = _Turn(self, state, given.now)
        match given:
            case Started(now):
                state.heard = dict.fromkeys(self.near, now)
                turn.beats()
                turn.tell(given)
            case Fired(_, timer) if timer == BEAT:
                turn.beats()
            case Received(now, sender, message):
                if sender in self.near:  # who is farther away is not heard
                    state.heard[sender] = now
                    turn.received(sender, message)
            case _:
                turn.tell(given)
        turn.work()
        return state, turn.effects


class _Turn:
    """The work that one input makes."""

    def __init__(self, machine: Relays, state: State, now: Instant) -> None:
        self.machine, self.state, self.now = machine, state, now
        self.effects: list[Effect] = []
        self._todo: deque[Input] = deque()
        self._decode = msgspec.msgpack.Decoder(machine.wire).decode
        x, y = machine.at
        self._here = (float(x), float(y))
        since = now - 3 * machine.every
        self._living = {
            peer: place for peer, place in machine.near.items() if state.heard.get(peer, since) > since
        }

    def beats(self) -> None:
        machine, state = self.machine, self.state
        self.effects += [Send(EVERYBODY, Alive()), SetTimer(BEAT, self.now + machine.every)]
        state.seen = {key: at for key, at in state.seen.items() if at > self.now - MINUTE}

    # --- what the machine hears ---

    def tell(self, given: Input) -> None:
        self._todo.append(given)

    def hears(self, raw: msgspec.Raw) -> None:
        try:
            message = self._decode(raw)
        except msgspec.DecodeError:  # a peer's fault
            return
        self.tell(Received(self.now, "", message))

    def work(self) -> None:
        while self._todo:
            for effect in self._handled(self._todo.popleft()):
                self._carry_out(effect)

    def _handled(self, given: Input) -> list[Effect]:
        self.state.inner, found = self.machine.machine.handle(self.state.inner, given)
        return found

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Route(to, message):
                self._onward(Relayed(_plain(to), _raw(message)), None)
            case Spread(low, high, message):
                within = (_plain(low), _plain(high))
                to = nearest_point(Rectangle(low, high), self._here)
                self._onward(Relayed(_plain(to), _raw(message), within), None)
            case Nearby(message):
                self._to_all(Near(_raw(message)))
            case _:
                self.effects.append(effect)

    # --- what comes over links ---

    def received(self, sender: Peer, given: Wire) -> None:
        match given:
            case Near(message):
                self.hears(message)
            case Flooded():
                if given.hops < MOST_HOPS and (given.walks or self._is_in(given.within)):
                    self._flood(given, self.machine.near[sender])
            case Relayed():
                if given.hops < MOST_HOPS:
                    self._onward(given, self.machine.near[sender])

    def _onward(self, given: Relayed, came_from: Point | None) -> None:
        """To the next node; or it is for this one, since nobody is nearer."""
        walk = None if given.walk is None else Walk(*given.walk)
        arrived = given.within is not None and self._is_in(given.within)
        chosen = None if arrived else towards(self._known, given.to, walk, came_from)
        if chosen is None:
            self._arrived(given)
            return
        if came_from is not None and (given := self._passed(given)) is None:  # type: ignore[assignment]
            return
        peer, walk = chosen
        written = None if walk is None else (_plain(walk.start), walk.crossed, walk.first)
        onward = msgspec.structs.replace(given, walk=written, hops=given.hops + 1)
        self.effects.append(Send(peer, onward))

    def _passed(self, given: Relayed) -> Relayed | None:
        """What goes on of it; machines that peek may change it, or take it."""
        self.state.relayed += 1
        if given.within is not None or not getattr(self.machine.machine, "peeks", False):
            return given
        try:
            message = self._decode(given.message)
        except msgspec.DecodeError:
            return None
        onward = None
        for effect in self._handled(Passing(self.now, given.to, message)):
            if isinstance(effect, Onward):
                onward = msgspec.structs.replace(given, message=_raw(effect.message))
            else:
                self._carry_out(effect)
        return onward

    def _arrived(self, given: Relayed) -> None:
        if given.within is None:
            self.hears(given.message)
            return
        self.state.floods = number = max(self.state.floods + 1, self.now)
        flooded = Flooded(self.machine.name, number, given.within, given.message)
        self._flood(flooded, beside(self._here, given.to))

    def _flood(self, given: Flooded, seen: Point) -> None:
        """In the rectangle to all neighbours; on walks over each link of the planar graph once."""
        name, key = self.machine.name, (given.origin, given.number)
        onward = msgspec.structs.replace(given, walks=False, hops=given.hops + 1)
        if self._is_in(given.within) and self._is_new((*key, name)):
            self.hears(given.message)
            self._to_all(onward)
        for peer in next_walks(self._known, Rectangle(*given.within), seen):
            if self._is_new((*key, peer)):
                self.effects.append(Send(peer, msgspec.structs.replace(onward, walks=True)))

    def _is_new(self, key: tuple[Peer, int, Peer]) -> bool:
        new = key not in self.state.seen
        self.state.seen.setdefault(key, self.now)
        return new

    def _is_in(self, within: Box) -> bool:
        return is_inside(Rectangle(*within), self._here)

    @property
    def _known(self) -> Surroundings[Peer]:
        return Surroundings(self.machine.name, self._here, self._living)

    def _to_all(self, message: Wire) -> None:
        self.effects += [Send(peer, message) for peer in self._living]


def _plain(point: Point) -> At:
    x, y = point
    return (float(x), float(y))


def _raw(message: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(message))


def neighbours(places: Mapping[Peer, Point], name: Peer, reach: float) -> dict[Peer, Point]:
    """Those within reach of a node."""
    here = places[name]
    return {peer: at for peer, at in places.items() if peer != name and math.dist(at, here) <= reach}
