"""What nodes say to one another about who acts for a logical broker; and messages on their way to it.

[F33, F45–F49]
"""

from __future__ import annotations

import msgspec

from ...model.instant import Instant
from . import message
from .message import ADDRESS, HEAD, At, Message
from .tree import Scope


class Here(msgspec.Struct, frozen=True, array_like=True, tag="here"):
    """A heartbeat: this node acts for a broker, since then."""

    topic: str
    to: Scope
    at: At
    turn: Instant


class Vacant(msgspec.Struct, frozen=True, array_like=True, tag="vacant"):
    """This node wants to give the role away: who takes it?"""

    topic: str
    to: Scope
    at: At


class Offer(msgspec.Struct, frozen=True, array_like=True, tag="offer"):
    """This one will."""

    topic: str
    to: Scope
    at: At


class Tables(msgspec.Struct, frozen=True, array_like=True, tag="tables"):
    """A broker's tables as the messages that made them, in so many parts: for its successor, or for the
    nodes near by, in case it fails."""

    topic: str
    to: Scope
    at: At
    turn: Instant
    version: Instant
    part: int
    parts: int
    rows: tuple[Message, ...]


class Taken(msgspec.Struct, frozen=True, array_like=True, tag="taken"):
    """The successor has all of it and acts: clean up."""

    topic: str
    to: Scope
    at: At
    turn: Instant


Word = Here | Vacant | Offer | Tables | Taken


class Seek(msgspec.Struct, frozen=True, array_like=True, tag="seek"):
    """On its way to a broker's point, until somebody knows who acts for it: the best node so far."""

    message: Message | Here | Vacant
    candidate: At | None = None
    suits: float = 0.0
    left: tuple[At, ...] = ()
    """Nodes that it is not any more."""


class To(msgspec.Struct, frozen=True, array_like=True, tag="to"):
    """For the node at a point, and no other."""

    at: At
    message: Message | Word
    tries: int = 0
    left: tuple[At, ...] = ()
    """On its way to a broker: nodes that it is not any more."""


Envelope = Seek | To | Here | Tables | Message
"""Messages stand alone where they are for every node of a leaf; tables, where they are for those near by."""


def bytes_of(given: Envelope | Word) -> int:
    """How long it is on a mote."""
    match given:
        case Seek(message=inner, left=left):
            return bytes_of(inner) + ADDRESS * (1 + len(left)) + 2
        case To(message=inner, left=left):
            return bytes_of(inner) + ADDRESS * (1 + len(left)) + 1
        case Tables(rows=rows):
            return HEAD + ADDRESS + 8 + sum(map(message.bytes_of, rows))
        case Here() | Vacant() | Offer() | Taken():
            return HEAD + ADDRESS + 4
    return message.bytes_of(given)


def cause_of(given: Envelope | Word) -> str:
    """Under which name the simulator accounts for it: that of the message in it."""
    return cause_of(given.message) if isinstance(given, Seek | To) else type(given).__name__.lower()
