"""What a protocol machine is told, and what it asks for.

A machine reads no clock and draws no number: time comes with every input, and chance as the seed
it is started with.  A host must not reuse a state that it passed to ``handle``.
"""

from __future__ import annotations

from typing import Any, Protocol

import msgspec

from .instant import Instant
from .space import Point

Peer = str
"""Another machine, or a connection to it, by the name that the host knows it by."""

EVERYBODY: Peer = "*"
"""The address of everybody who can hear: a broadcast."""


class Started(msgspec.Struct, frozen=True):
    """The host has begun (or begun again after a failure, with nothing but what the machine kept)."""

    now: Instant
    seed: int


class Joined(msgspec.Struct, frozen=True):
    """A connection to a peer is there; ``role`` is what it has proved to be, where that matters."""

    now: Instant
    peer: Peer
    role: str = ""


class Left(msgspec.Struct, frozen=True):
    """A connection to a peer is gone."""

    now: Instant
    peer: Peer
    why: str = ""


class Received(msgspec.Struct, frozen=True):
    """A message has come."""

    now: Instant
    sender: Peer
    message: Any


class Passing(msgspec.Struct, frozen=True):
    """A message to a point passes through here: it goes on as an ``Onward`` says, or not at all."""

    now: Instant
    to: Point
    message: Any


class Undelivered(msgspec.Struct, frozen=True):
    """The host gave up a message to a peer that cannot keep up; the connection stands."""

    now: Instant
    peer: Peer
    message: Any


class Fired(msgspec.Struct, frozen=True):
    """A timer has run out."""

    now: Instant
    timer: str


class Asked(msgspec.Struct, frozen=True):
    """The machine's own user (an application, a client) wants something."""

    now: Instant
    request: Any


Input = Started | Joined | Left | Received | Passing | Undelivered | Fired | Asked


class Send(msgspec.Struct, frozen=True):
    """Send a message to a peer; ``cause`` says for whom (a topic, a subscription), for accounts."""

    to: Peer
    message: Any
    cause: str = ""


class Route(msgspec.Struct, frozen=True):
    """Send a message to a point: the nearest node that lives takes it."""

    to: Point
    message: Any
    cause: str = ""


class Spread(msgspec.Struct, frozen=True):
    """Send a message to every node in a rectangle, the sender's too if it stands there."""

    low: Point
    high: Point
    message: Any
    cause: str = ""


class Nearby(msgspec.Struct, frozen=True):
    """Send a message once, to whoever hears it."""

    message: Any
    cause: str = ""


class Onward(msgspec.Struct, frozen=True):
    """Let the message that passes go on, as this."""

    message: Any


class SetTimer(msgspec.Struct, frozen=True):
    """Be told at ``at``; a timer of that name that is already running is replaced."""

    timer: str
    at: Instant


class CancelTimer(msgspec.Struct, frozen=True):
    """Forget a timer; one that does not run is none."""

    timer: str


class Deliver(msgspec.Struct, frozen=True):
    """Hand something to the machine's own user."""

    what: Any


class Drop(msgspec.Struct, frozen=True):
    """End the connection to a peer, and say why."""

    peer: Peer
    why: str


Effect = Send | Route | Spread | Nearby | Onward | SetTimer | CancelTimer | Deliver | Drop


class ProtocolMachine(Protocol):
    """A broker, a reader, a writer, a router: pure, so that every host runs it unchanged."""

    def initial(self) -> Any:
        """The state before any input."""

    def handle(self, state: Any, given: Input) -> tuple[Any, list[Effect]]:
        """Take one input.  The state that was passed in must not be used again."""
