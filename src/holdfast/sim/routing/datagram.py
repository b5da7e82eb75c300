"""What a routing machine is told and what it asks for, beyond the words of ``model/protocol``.

A machine hears frames and decides; its host, the ``Router`` of a node, owns link, timers and handlers.
``Asked`` brings a datagram that is to go on from here: our own, or one that a ``Relay`` gave to the
handlers that peek.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Protocol

import msgspec

from ...model.instant import Instant
from ...model.protocol import Asked, CancelTimer, Deliver, Fired, SetTimer, Started
from ...model.space import Point, Rectangle
from ..frame import NodeId, Outcome

Destination = NodeId | Point | Rectangle
"""A node, ``BROADCAST`` for all of them, ``NEIGHBOURS`` for all that receive it, a point (the node nearest to
it), or a rectangle: all nodes in it."""

Key = tuple[NodeId, int]
"""What tells one datagram from all others: its origin, and the number it has there."""

ADDRESS, COORDINATE = 2, 4
"""Bytes of a node's id and of a coordinate in a header."""
HEADER = 8
"""Bytes before every message: origin, destination, number, hops, type."""


class Datagram(msgspec.Struct, frozen=True):
    """A message on its way from end to end."""

    origin: NodeId
    number: int
    destination: Destination
    type: str
    message: Any
    size: int
    """Bytes of the message, without headers."""
    cause: str = ""
    hops: int = 0
    """How many links it has travelled."""
    route: Any = None
    """What the routing protocol writes on it."""

    @property
    def key(self) -> Key:
        return (self.origin, self.number)

    def further(self) -> Datagram:
        """It, when it has travelled one link more."""
        return msgspec.structs.replace(self, hops=self.hops + 1)


class Heard(msgspec.Struct, frozen=True):
    """A frame has come: for us or for all, or (``ours`` false) overheard."""

    now: Instant
    sender: NodeId
    what: Any
    ours: bool = True


class Settled(msgspec.Struct, frozen=True):
    """What became of a transmission that asked to be told."""

    now: Instant
    token: str
    outcome: Outcome


Input = Started | Asked | Heard | Settled | Fired


class Transmit(msgspec.Struct, frozen=True):
    """Send to a neighbour, or to all of them; with a token, be told what becomes of it."""

    to: NodeId
    what: Any
    size: int
    """Bytes for the link, headers included."""
    token: str = ""


class Relay(msgspec.Struct, frozen=True):
    """A datagram is passing: let those peek who asked to, and hand it back to be sent on."""

    datagram: Datagram


class Discard(msgspec.Struct, frozen=True):
    """This copy of a datagram goes no further."""

    datagram: Datagram
    why: str


Effect = Transmit | SetTimer | CancelTimer | Deliver | Relay | Discard

NO_ROUTE, HOP_LIMIT, NO_ROOM, TAKEN = "no route", "hop limit", "no room", "taken by a peek"
"""Why a copy goes no further, besides what the link says."""


class RoutingMachine(Protocol):
    """A routing protocol on one node: pure, so that it also runs without radios.

    One that does not want to hear what is for others says ``overhears = False``.
    """

    def initial(self, node: NodeId) -> Any:
        """The state of that node before any input."""

    def handle(self, state: Any, given: Input) -> tuple[Any, list[Effect]]:
        """Take one input.  The state that was passed in must not be used again."""

    def held(self, state: Any, /) -> Iterable[Datagram]:
        """The datagrams that wait in the state."""

    def refuses(self, destination: Destination, /) -> str | None:
        """Why this protocol leads to no such destination; nothing if it does."""


class Seen:
    """What came by lately, as much as a small node can remember."""

    __slots__ = ("_keys", "_most")

    def __init__(self, most: int = 512) -> None:
        self._keys: dict[Hashable, None] = {}
        self._most = most

    def add(self, key: Hashable) -> bool:
        """Remember it; whether it is new."""
        if key in self._keys:
            return False
        self._keys[key] = None
        if len(self._keys) > self._most:
            del self._keys[next(iter(self._keys))]
        return True


def refuses_points(destination: Destination) -> str | None:
    """What a protocol without positions says of a destination."""
    there = {tuple: "a point", Rectangle: "a rectangle"}.get(type(destination))
    return None if there is None else f"only geographic routing leads to {there}"
