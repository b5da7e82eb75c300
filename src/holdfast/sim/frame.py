"""Frames, and the words for what becomes of packets and of signals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from ..model.instant import Duration

NodeId = int
BROADCAST: Final[NodeId] = -1
NEIGHBOURS: Final[NodeId] = -2
"""For routing: all nodes that receive one transmission."""

# Kinds of frames.
DATA, ACK, RTS, CTS = "data", "ack", "rts", "cts"

Outcome = str
"""What a sender learns of a packet: ``ACKNOWLEDGED``, ``AIRED``, or why it was dropped."""
ACKNOWLEDGED, AIRED = "acknowledged", "aired"
NO_ACK, CHANNEL_BUSY, QUEUE_FULL, NODE_DOWN = "no ack", "channel busy", "queue full", "node down"
NOT_RECEIVED = "not received"
"""A unicast packet that was sent once without acknowledgement and did not arrive."""

# Why a node did not get a signal that reaches it.
NOISE, COLLISION, BUSY, DEAF, ASLEEP, DEAD, CUT = (
    "noise",  # bit errors, nobody interfered
    "collision",  # bit errors while others interfered, or too much interference to synchronise
    "busy",  # it was receiving another
    "deaf",  # it was transmitting, or turning to
    "asleep",  # its radio was off
    "dead",
    "cut short",  # the sender or the receiver stopped in the middle
)
LOSSES = (NOISE, COLLISION, BUSY, DEAF, ASLEEP, DEAD, CUT)


class Packet(msgspec.Struct, eq=False):
    """A payload that the link was asked to bring to a neighbour, or to all of them."""

    destination: NodeId
    payload: Any
    size: int
    """Bytes of the payload."""
    cause: str
    done: Callable[[Outcome], None] | None
    sequence: int
    tries: int = 0
    arrived: bool = False
    """Whether the neighbour has it, which its sender may not know."""


class Frame(msgspec.Struct, eq=False):
    """What is on the air once."""

    kind: str
    source: NodeId
    destination: NodeId
    sequence: int
    size: int
    """Bytes of the payload."""
    bytes: int
    """Bytes of the whole frame behind its length field."""
    cause: str
    packet: Packet | None = None
    wakeup: Duration = 0
    """Additional preamble."""
    reserve: Duration = 0
    """For how long others keep silent after it."""
    id: int = 0
    """Its number among all transmissions, given by the medium."""

    @property
    def payload(self) -> Any:
        return self.packet.payload if self.packet is not None else None
