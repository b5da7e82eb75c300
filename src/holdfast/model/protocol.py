"""The inputs and effects of protocol machines.

A machine reads no clock and draws no random number: every input has the time, and the first one a seed. A
host must not reuse a state that it passed to ``handle``.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from .instant import Instant
from .space import Point

Peer = str
"""The name by which a host knows another machine or the connection to it."""

EVERYBODY: Peer = "*"
"""The address of a broadcast."""


class Started(msgspec.Struct, frozen=True):
    """An input: the host has started, for the first time or after a failure.

    After a failure the machine has only the state that was stored durably.
    """

    now: Instant
    seed: int


class Joined(msgspec.Struct, frozen=True):
    """An input: a connection to a peer exists. ``role`` is the role that the peer has proved, or empty."""

    now: Instant
    peer: Peer
    role: str = ""


class Left(msgspec.Struct, frozen=True):
    """An input: a connection to a peer has ended, for the reason ``why``."""

    now: Instant
    peer: Peer
    why: str = ""


class Received(msgspec.Struct, frozen=True):
    """An input: a message has arrived from a peer."""

    now: Instant
    sender: Peer
    message: Any


class Passing(msgspec.Struct, frozen=True):
    """An input: a message to a point passes through this node.

    It continues only with an ``Onward`` effect.
    """

    now: Instant
    to: Point
    message: Any


class Undelivered(msgspec.Struct, frozen=True):
    """An input: the host dropped a message to a peer that is too slow. The connection remains."""

    now: Instant
    peer: Peer
    message: Any


class Fired(msgspec.Struct, frozen=True):
    """An input: a timer that the machine has set has fired."""

    now: Instant
    timer: str


class Asked(msgspec.Struct, frozen=True):
    """An input: a request of the machine's own user, which is an application or a client."""

    now: Instant
    request: Any


Input = Started | Joined | Left | Received | Passing | Undelivered | Fired | Asked


class Send(msgspec.Struct, frozen=True):
    """An effect: send a message to a peer. ``cause`` names the topic or subscription, for statistics."""

    to: Peer
    message: Any
    cause: str = ""


class Route(msgspec.Struct, frozen=True):
    """An effect: send a message to a point. The live node nearest to the point receives it."""

    to: Point
    message: Any
    cause: str = ""


class Spread(msgspec.Struct, frozen=True):
    """An effect: send a message to every node in a rectangle, including the sender if it is inside."""

    low: Point
    high: Point
    message: Any
    cause: str = ""


class Nearby(msgspec.Struct, frozen=True):
    """An effect: send a message once to all nodes in radio range."""

    message: Any
    cause: str = ""


class Onward(msgspec.Struct, frozen=True):
    """An effect: forward the message that passes through, with this content."""

    message: Any


class SetTimer(msgspec.Struct, frozen=True):
    """An effect: set a timer to fire at ``at``. It replaces a running timer with the same name."""

    timer: str
    at: Instant


class CancelTimer(msgspec.Struct, frozen=True):
    """An effect: cancel a timer, if it runs."""

    timer: str


class Deliver(msgspec.Struct, frozen=True):
    """An effect: pass a result to the machine's own user."""

    what: Any


class Drop(msgspec.Struct, frozen=True):
    """An effect: close the connection to a peer for the reason ``why``."""

    peer: Peer
    why: str


Effect = Send | Route | Spread | Nearby | Onward | SetTimer | CancelTimer | Deliver | Drop


class ProtocolMachine(Protocol):
    """The protocol of a broker, reader, writer or router as a pure state machine.

    Every host can run it unchanged.
    """

    def initial(self) -> Any:
        """Return the state of the machine before any input."""

    def handle(self, state: Any, given: Input) -> tuple[Any, list[Effect]]:
        """Handle one input. Return the new state and the effects. The old state must not be used again."""
