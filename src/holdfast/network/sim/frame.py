"""Frames and packets, the outcomes of packets, and the causes of lost signals.

A packet is what a protocol sends to a neighbour; each transmission of it is a frame.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from ...model.instant import Duration

NodeId = int
BROADCAST: Final[NodeId] = -1
NEIGHBOURS: Final[NodeId] = -2
"""The destination of a datagram for all nodes that receive one transmission. Only routing uses it."""

# Kinds of frames.
DATA, ACK, RTS, CTS = "data", "ack", "rts", "cts"

Outcome = str
"""The result of a packet that its sender gets: ``ACKNOWLEDGED``, ``AIRED`` (sent without acknowledgement), or
the reason why the packet was dropped.
"""
ACKNOWLEDGED, AIRED = "acknowledged", "aired"
NO_ACK, CHANNEL_BUSY, QUEUE_FULL, NODE_DOWN = "no ack", "channel busy", "queue full", "node down"
NOT_RECEIVED = "not received"
"""The reason for a unicast packet that was sent once without acknowledgement and did not arrive."""

# Why a node in range did not receive a signal.
NOISE, COLLISION, BUSY, DEAF, ASLEEP, DEAD, CUT = (
    "noise",  # bit errors without interference
    "collision",  # bit errors under interference, or too much interference to synchronise
    "busy",  # the receiver was receiving another frame
    "deaf",  # the receiver was transmitting, or turning to transmit
    "asleep",  # the receiver's radio was off
    "dead",
    "cut short",  # the sender or the receiver stopped in the middle
)
LOSSES = (NOISE, COLLISION, BUSY, DEAF, ASLEEP, DEAD, CUT)


class LinkPacket(msgspec.Struct, eq=False):
    """A payload on its way to one neighbour, or to all neighbours."""

    destination: NodeId
    payload: Any
    size: int
    """The length of the payload in bytes."""
    cause: str
    done: Callable[[Outcome], None] | None
    sequence: int
    tries: int = 0
    arrived: bool = False
    """Whether the neighbour has received the packet. Its sender may not know this."""


class Frame(msgspec.Struct, eq=False):
    """A frame: one transmission of a radio, with the packet that it carries if it is a data frame."""

    kind: str
    source: NodeId
    destination: NodeId
    sequence: int
    size: int
    """The length of the payload in bytes."""
    bytes: int
    """The length of the frame after its length field, in bytes."""
    cause: str
    packet: LinkPacket | None = None
    wakeup: Duration = 0
    """The duration of an additional preamble in µs."""
    reserve: Duration = 0
    """The time in µs after this frame in which other nodes must not send."""
    id: int = 0
    """The number of the frame among all transmissions, assigned by the medium."""

    @property
    def payload(self) -> Any:
        return self.packet.payload if self.packet is not None else None
