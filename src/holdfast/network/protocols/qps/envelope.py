"""Messages between nodes about the roles of logical brokers, and envelopes of messages on their way.

[F33, F45–F49]
"""

from __future__ import annotations

import msgspec

from ....model.instant import Instant
from ..wire_name import wire_name
from . import message
from .message import ADDRESS, HEAD, At, QpsMessage
from .tree import QuadScope


class RoleNotice(msgspec.Struct, frozen=True, array_like=True):
    """A message of the node ``at`` about the role of the broker of a topic and scope."""

    topic: str
    to: QuadScope
    at: At

    @property
    def role(self) -> tuple[str, QuadScope]:
        """The role to which the notice refers, as topic and scope."""
        return self.topic, self.to


class RoleHeartbeat(RoleNotice, frozen=True, array_like=True, tag="here"):
    """A heartbeat: the sender has had the role of a broker since ``turn``."""

    turn: Instant


class RoleVacant(RoleNotice, frozen=True, array_like=True, tag="vacant"):
    """Announces that the sender wants to hand over a role and searches for a successor."""


class RoleOffer(RoleNotice, frozen=True, array_like=True, tag="offer"):
    """Announces that the sender is ready to take a role."""


class RoleTables(RoleNotice, frozen=True, array_like=True, tag="tables"):
    """A broker's tables as messages, in several parts: for its successor, or as a copy for nearby nodes."""

    turn: Instant
    version: Instant
    part: int
    parts: int
    rows: tuple[QpsMessage, ...]


class RoleTaken(RoleNotice, frozen=True, array_like=True, tag="taken"):
    """Reports that the successor has all tables and the role, so the former holder can remove its own."""

    turn: Instant


RoleMessage = RoleHeartbeat | RoleVacant | RoleOffer | RoleTables | RoleTaken
NodeMessage = QpsMessage | RoleMessage
SoughtMessage = QpsMessage | RoleHeartbeat | RoleVacant
"""Messages for the holder of a role."""


class SeekEnvelope(msgspec.Struct, frozen=True, array_like=True, tag="seek"):
    """A message on its way to a broker's point, until it meets a node that knows the holder of the role.

    ``candidate`` is the node that fits the role best among those on the path, and ``suits`` is its fit.
    """

    message: SoughtMessage
    candidate: At | None = None
    suits: float = 0.0
    left: tuple[At, ...] = ()
    """The nodes that no longer have the role."""


class NodeEnvelope(msgspec.Struct, frozen=True, array_like=True, tag="to"):
    """A message for the node at a point."""

    at: At
    message: NodeMessage
    tries: int = 0
    left: tuple[At, ...] = ()
    """For a message to a broker: the nodes that no longer have the role."""


Envelope = SeekEnvelope | NodeEnvelope | RoleHeartbeat | RoleTables | QpsMessage
"""A message without an envelope is for every node of a leaf. Tables without an envelope are for the nearby
nodes.
"""


def bytes_of(given: Envelope | RoleMessage) -> int:
    """Return the size of a message on a mote, in bytes."""
    match given:
        case SeekEnvelope(message=inner, left=left):
            return bytes_of(inner) + ADDRESS * (1 + len(left)) + 2
        case NodeEnvelope(message=inner, left=left):
            return bytes_of(inner) + ADDRESS * (1 + len(left)) + 1
        case RoleTables(rows=rows):
            return HEAD + ADDRESS + 8 + sum(map(message.bytes_of, rows))
        case RoleHeartbeat() | RoleVacant() | RoleOffer() | RoleTaken():
            return HEAD + ADDRESS + 4
    return message.bytes_of(given)


def cause_of(given: Envelope | RoleMessage) -> str:
    """Return the name under which the simulator accounts for a message: that of the enclosed message."""
    if isinstance(given, SeekEnvelope | NodeEnvelope):
        return cause_of(given.message)
    return wire_name(given).lower()
