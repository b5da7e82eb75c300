"""The inputs and effects of protocol machines.

A machine reads no clock and draws no random number: time comes with every input, and chance from the seed
that it is started with. A host must not reuse a state that it passed to ``handle``.
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
    """The host has started, or restarted after a failure with only what the machine stored durably."""

    now: Instant
    seed: int


class Joined(msgspec.Struct, frozen=True):
    """A connection to a peer exists. ``role`` is the role that the peer has proved, where roles matter."""

    now: Instant
    peer: Peer
    role: str = ""


class Left(msgspec.Struct, frozen=True):
    """A connection to a peer is gone."""

    now: Instant
    peer: Peer
    why: str = ""


class Received(msgspec.Struct, frozen=True):
    """A message has arrived."""

    now: Instant
    sender: Peer
    message: Any


class Passing(msgspec.Struct, frozen=True):
    """A message to a point passes through this node. It continues as an ``Onward`` effect, or not at all."""

    now: Instant
    to: Point
    message: Any


class Undelivered(msgspec.Struct, frozen=True):
    """The host dropped a message to a peer that cannot keep up. The connection remains."""

    now: Instant
    peer: Peer
    message: Any


class Fired(msgspec.Struct, frozen=True):
    """A timer has fired."""

    now: Instant
    timer: str


class Asked(msgspec.Struct, frozen=True):
    """A request of the machine's own user (an application or a client)."""

    now: Instant
    request: Any


Input = Started | Joined | Left | Received | Passing | Undelivered | Fired | Asked


class Send(msgspec.Struct, frozen=True):
    """Send a message to a peer. ``cause`` names the topic or subscription, for statistics."""

    to: Peer
    message: Any
    cause: str = ""


class Route(msgspec.Struct, frozen=True):
    """Send a message to a point; the nearest live node receives it."""

    to: Point
    message: Any
    cause: str = ""


class Spread(msgspec.Struct, frozen=True):
    """Send a message to every node in a rectangle, including the sender if it stands there."""

    low: Point
    high: Point
    message: Any
    cause: str = ""


class Nearby(msgspec.Struct, frozen=True):
    """Send a message once to all nodes in radio range."""

    message: Any
    cause: str = ""


class Onward(msgspec.Struct, frozen=True):
    """Forward the message that passes through, with this content."""

    message: Any


class SetTimer(msgspec.Struct, frozen=True):
    """Set a timer to fire at ``at``. It replaces a running timer of that name."""

    timer: str
    at: Instant


class CancelTimer(msgspec.Struct, frozen=True):
    """Cancel a timer. Has no effect if it does not run."""

    timer: str


class Deliver(msgspec.Struct, frozen=True):
    """Pass something to the machine's own user."""

    what: Any


class Drop(msgspec.Struct, frozen=True):
    """Close the connection to a peer for the reason ``why``."""

    peer: Peer
    why: str


Effect = Send | Route | Spread | Nearby | Onward | SetTimer | CancelTimer | Deliver | Drop


class ProtocolMachine(Protocol):
    """A broker, reader, writer or router as a pure state machine, so that every host runs it unchanged."""

    def initial(self) -> Any:
        """The state before any input."""

    def handle(self, state: Any, given: Input) -> tuple[Any, list[Effect]]:
        """Handle one input. The state that was passed in must not be used again."""
