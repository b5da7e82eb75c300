"""Datagrams, and the inputs and effects of routing machines in addition to those of ``model/protocol``.

A machine receives frames and decides. Its host, the ``Router`` of a node, owns link, timers and handlers.
``Asked`` passes a datagram to send from this node. The datagram is either new, or handlers that peek have
returned it after a ``Relay`` effect.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Protocol

import msgspec

from ....model.instant import Instant
from ....model.protocol import Asked, CancelTimer, Deliver, Fired, SetTimer, Started
from ....model.space import Point, Rectangle
from ..frame import NodeId, Outcome

Destination = NodeId | Point | Rectangle
"""A node, ``BROADCAST`` for all nodes, ``NEIGHBOURS`` for all that receive one transmission, a point (the
node nearest to it), or a rectangle (all nodes in it).
"""

Key = tuple[NodeId, int]
"""Identifies a datagram by its origin and its number there."""

ADDRESS, COORDINATE = 2, 4
"""The bytes of a node's id and of a coordinate in a header."""
HEADER = 8
"""The bytes before every message: origin, destination, number, hops, type."""


class Datagram(msgspec.Struct, frozen=True):
    """A message on its way from its origin to its destination."""

    origin: NodeId
    number: int
    destination: Destination
    type: str
    message: Any
    size: int
    """The length of the message in bytes, without headers."""
    cause: str = ""
    hops: int = 0
    """The number of links that the datagram has travelled."""
    route: Any = None
    """Data that the routing protocol writes on the datagram."""

    @property
    def key(self) -> Key:
        return (self.origin, self.number)

    def after_hop(self) -> Datagram:
        """Return a copy that has travelled one more link."""
        return msgspec.structs.replace(self, hops=self.hops + 1)


class FrameReceived(msgspec.Struct, frozen=True):
    """Input: a frame was received. If not ``ours``, it was overheard; otherwise it is for this node or for
    all.
    """

    now: Instant
    sender: NodeId
    what: Any
    ours: bool = True


class TransmissionDone(msgspec.Struct, frozen=True):
    """Input: the outcome of a transmission that has a token."""

    now: Instant
    token: str
    outcome: Outcome


Input = Started | Asked | FrameReceived | TransmissionDone | Fired


class Transmit(msgspec.Struct, frozen=True):
    """Effect: send to a neighbour, or to all neighbours. With a token, the outcome arrives later as
    an input.
    """

    to: NodeId
    what: Any
    size: int
    """The bytes to send over the link, headers included."""
    token: str = ""


class Relay(msgspec.Struct, frozen=True):
    """Effect: pass a datagram in transit to the handlers that peek. The host returns it as ``Asked``."""

    datagram: Datagram


class Discard(msgspec.Struct, frozen=True):
    """Effect: drop this copy of a datagram, and record the reason."""

    datagram: Datagram
    why: str


Effect = Transmit | SetTimer | CancelTimer | Deliver | Relay | Discard
Effects = list[Effect]

NO_ROUTE, HOP_LIMIT, NO_ROOM, TAKEN = "no route", "hop limit", "no room", "taken by a peek"
"""Causes of a drop, in addition to the causes that the link reports."""


class RoutingMachine(Protocol):
    """A routing protocol on one node. It is pure, so that it also runs without radios.

    A class attribute ``overhears = False`` means that the machine ignores frames for other nodes.
    """

    def initial(self, node: NodeId) -> Any:
        """Return the state of a node before any input."""

    def handle(self, state: Any, given: Input) -> tuple[Any, list[Effect]]:
        """Process one input; return the new state and the effects. The previous state must not be
        used again.
        """

    def held(self, state: Any, /) -> Iterable[Datagram]:
        """Return the datagrams that wait in the state."""

    def refuses(self, destination: Destination, /) -> str | None:
        """Return why the protocol cannot route to this destination; ``None`` if it can."""


class RecentKeys:
    """A set of the most recent keys, limited to the memory of a small node."""

    __slots__ = ("_keys", "_most")

    def __init__(self, most: int = 512) -> None:
        self._keys: dict[Hashable, None] = {}
        self._most = most

    def add(self, key: Hashable) -> bool:
        """Store a key; return whether it is new."""
        if key in self._keys:
            return False
        self._keys[key] = None
        if len(self._keys) > self._most:
            del self._keys[next(iter(self._keys))]
        return True


def refuses_points(destination: Destination) -> str | None:
    """Return why a protocol without positions cannot route to this destination; ``None`` if it can."""
    there = {tuple: "a point", Rectangle: "a rectangle"}.get(type(destination))
    return None if there is None else f"only geographic routing leads to {there}"


def on_arrival(datagram: Datagram, node: NodeId, limit: int) -> Effect:
    """Return the effect for a datagram that a node receives: deliver it, or relay it if hops are left."""
    if datagram.destination == node:
        return Deliver(datagram)
    return Relay(datagram) if datagram.hops < limit else Discard(datagram, HOP_LIMIT)
