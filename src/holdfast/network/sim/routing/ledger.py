"""The outcome of every message of a run: sent = delivered + dropped (by cause) + in flight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import field

from ....model.instant import Instant
from ....model.space import Point, Rectangle
from ..frame import BROADCAST, NEIGHBOURS, NODE_DOWN, NOT_RECEIVED, NodeId
from .datagram import Datagram, Destination, Key
from .spreading import is_inside

if TYPE_CHECKING:
    from .router import Router

DELIVERED, IN_FLIGHT = "delivered", "in flight"
NOT_REACHED = "not reached"
"""The outcome of a message whose flood ended without this node."""
UNACCOUNTED = "unaccounted"
"""The outcome of a message without a recorded cause. This must not happen."""


class FirstArrival(msgspec.Struct, frozen=True):
    """The time and the number of hops of a message's first arrival at a node."""

    at: Instant
    hops: int


class MessageRecord(msgspec.Struct):
    """The record of one message: its origin, its destination, and the arrivals of its copies."""

    origin: NodeId
    destination: Destination
    type: str
    cause: str
    size: int
    sent: Instant
    expected: int
    """The number of nodes to which the message is addressed."""
    arrivals: dict[NodeId, FirstArrival] = field(default_factory=dict)
    duplicates: int = 0
    visited: set[tuple[NodeId, int]] = field(default_factory=set)
    """Nodes that received a copy, each with the copy's number of hops. A copy may come to a node twice."""
    ended: str = UNACCOUNTED
    """The reason why the last copy that ended was dropped."""


class MessageLedger:
    """All messages of a run, in the order in which they were sent."""

    def __init__(self, places: Sequence[Point]) -> None:
        self._places = places
        self._holders: dict[NodeId, Router] = {}
        self.entries: dict[Key, MessageRecord] = {}

    def join(self, node: NodeId, holder: Router) -> None:
        """Register the router of a node. The datagrams of the node's previous router are lost."""
        if (before := self._holders.get(node)) is not None:
            self._lose(before)
        self._holders[node] = holder

    def _lose(self, holder: Router) -> None:
        for datagram in holder.held():
            self.end(datagram, NODE_DOWN)

    def send(self, datagram: Datagram, now: Instant) -> None:
        """Record a message that its origin sends."""
        about = datagram.origin, datagram.destination, datagram.type, datagram.cause, datagram.size
        recipients = self._count_recipients(datagram.destination)
        self.entries[datagram.key] = MessageRecord(*about, now, recipients)

    def _count_recipients(self, destination: Destination) -> int:
        """Return the number of nodes to which a message is addressed; for a rectangle all nodes in it, with
        the origin.
        """
        if isinstance(destination, Rectangle):
            return sum(is_inside(destination, place) for place in self._places)
        if destination == NEIGHBOURS:
            return 0  # receivers are counted on arrival
        return len(self._places) - 1 if destination == BROADCAST else 1

    def arrive(self, datagram: Datagram, node: NodeId, now: Instant) -> None:
        """Record the arrival of a copy at a node to which it is addressed."""
        entry = self.entries[datagram.key]
        if entry.destination == NEIGHBOURS:
            entry.expected = len(entry.arrivals.keys() | {node})
        if node in entry.arrivals or len(entry.arrivals) == entry.expected:
            entry.duplicates += 1
        else:
            entry.arrivals[node] = FirstArrival(now, datagram.hops)

    def visit(self, datagram: Datagram, node: NodeId) -> None:
        """Record the arrival of a copy at any node."""
        self.entries[datagram.key].visited.add((node, datagram.hops))

    def end(self, datagram: Datagram, why: str) -> None:
        """Record the reason why a copy of a message was dropped."""
        self.entries[datagram.key].ended = why

    def record_unacknowledged(self, datagram: Datagram, to: NodeId) -> None:
        """Record that a copy was sent without acknowledgement, so it may be lost."""
        entry = self.entries[datagram.key]
        if to == BROADCAST:
            entry.ended = NOT_REACHED if entry.ended == UNACCOUNTED else entry.ended
        elif (to, datagram.hops) not in entry.visited:
            entry.ended = NOT_RECEIVED

    def fates(self, since: Instant = 0) -> Counter[str]:
        """Count the messages sent since a time by outcome: delivered, in flight, or the cause of the drop.

        A message to all nodes counts once for each node. A message to neighbours counts once for each node
        that received it.
        """
        for holder in self._holders.values():
            if not holder.alive:
                self._lose(holder)
        held = {datagram.key for datagram in self.held()}
        counts: Counter[str] = Counter()
        for key, entry in self.entries.items():
            if entry.sent >= since:
                counts[DELIVERED] += len(entry.arrivals)
                missing = entry.expected - len(entry.arrivals)
                counts[IN_FLIGHT if key in held else entry.ended] += missing
        return +counts

    def held(self) -> Iterator[Datagram]:
        """Return the datagrams that wait in running routers."""
        return (datagram for holder in self._holders.values() if holder.alive for datagram in holder.held())

    def since(self, since: Instant) -> Iterator[MessageRecord]:
        """Yield the messages sent since a time."""
        return (entry for entry in self.entries.values() if entry.sent >= since)
