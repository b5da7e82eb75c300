"""What became of every message: sent = delivered + dropped (by cause) + in flight."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec
from msgspec import field

from ...model.instant import Instant
from ...model.space import Point, Rectangle
from ..frame import BROADCAST, NEIGHBOURS, NODE_DOWN, NOT_RECEIVED, NodeId
from .datagram import Datagram, Destination, Key
from .spreading import is_inside

DELIVERED, IN_FLIGHT = "delivered", "in flight"
NOT_REACHED = "not reached"
"""It was flooded, and the flood ended elsewhere."""
UNACCOUNTED = "unaccounted"
"""Nobody knows; this does not happen."""


class Holder(Protocol):
    """Somebody who may hold datagrams: the router of a node."""

    @property
    def alive(self) -> bool:
        """Whether it still runs; what it holds otherwise is lost."""

    def held(self) -> Iterable[Datagram]:
        """The datagrams that it has not passed on yet."""


class Arrival(msgspec.Struct, frozen=True):
    """When a message reached a node for the first time, and over how many links."""

    at: Instant
    hops: int


class Entry(msgspec.Struct):
    """One message, from its sending to its arrivals."""

    origin: NodeId
    destination: Destination
    type: str
    cause: str
    size: int
    sent: Instant
    expected: int
    """How many nodes it is for."""
    arrivals: dict[NodeId, Arrival] = field(default_factory=dict)
    duplicates: int = 0
    visited: set[tuple[NodeId, int]] = field(default_factory=set)
    """The nodes that got a copy to deliver or to send on, and after how many hops: one may come again."""
    ended: str = UNACCOUNTED
    """Why the copy that ended last went no further."""


class Ledger:
    """All messages of a run, in the order in which they were sent."""

    def __init__(self, places: Sequence[Point]) -> None:
        self._places = places
        self._holders: dict[NodeId, Holder] = {}
        self.entries: dict[Key, Entry] = {}

    def join(self, node: NodeId, holder: Holder) -> None:
        """A router begins, perhaps in place of one that was lost with all it held."""
        if (before := self._holders.get(node)) is not None:
            self._lose(before)
        self._holders[node] = holder

    def _lose(self, holder: Holder) -> None:
        for datagram in holder.held():
            self.end(datagram, NODE_DOWN)

    def send(self, datagram: Datagram, now: Instant) -> None:
        self.entries[datagram.key] = Entry(
            datagram.origin,
            datagram.destination,
            datagram.type,
            datagram.cause,
            datagram.size,
            now,
            self._expected(datagram.destination),
        )

    def _expected(self, destination: Destination) -> int:
        """How many nodes a message is for: of a rectangle those in it, its origin too."""
        if isinstance(destination, Rectangle):
            return sum(is_inside(destination, place) for place in self._places)
        if destination == NEIGHBOURS:
            return 0  # those who hear it are counted as it arrives
        return len(self._places) - 1 if destination == BROADCAST else 1

    def arrive(self, datagram: Datagram, node: NodeId, now: Instant) -> None:
        """A copy has come to a node that it is for."""
        entry = self.entries[datagram.key]
        if entry.destination == NEIGHBOURS:
            entry.expected = len(entry.arrivals.keys() | {node})
        if node in entry.arrivals or len(entry.arrivals) == entry.expected:
            entry.duplicates += 1
        else:
            entry.arrivals[node] = Arrival(now, datagram.hops)

    def visit(self, datagram: Datagram, node: NodeId) -> None:
        """A copy has come to a node."""
        self.entries[datagram.key].visited.add((node, datagram.hops))

    def end(self, datagram: Datagram, why: str) -> None:
        """A copy goes no further."""
        self.entries[datagram.key].ended = why

    def aired(self, datagram: Datagram, to: NodeId) -> None:
        """A copy was sent without acknowledgement: perhaps nobody has it."""
        entry = self.entries[datagram.key]
        if to == BROADCAST:
            entry.ended = NOT_REACHED if entry.ended == UNACCOUNTED else entry.ended
        elif (to, datagram.hops) not in entry.visited:
            entry.ended = NOT_RECEIVED

    def fates(self, since: Instant = 0) -> Counter[str]:
        """How many messages sent since then were delivered, dropped (by cause), or are still on their way.

        A message to everybody counts once for each node, one to neighbours for each that it came to.
        """
        for holder in self._holders.values():
            if not holder.alive:
                self._lose(holder)
        held = {datagram.key for datagram in self.held()}
        found: Counter[str] = Counter()
        for key, entry in self.entries.items():
            if entry.sent >= since:
                found[DELIVERED] += len(entry.arrivals)
                missing = entry.expected - len(entry.arrivals)
                found[IN_FLIGHT if key in held else entry.ended] += missing
        return +found

    def held(self) -> Iterator[Datagram]:
        """The datagrams that somebody who runs holds."""
        return (datagram for holder in self._holders.values() if holder.alive for datagram in holder.held())

    def since(self, since: Instant) -> Iterator[Entry]:
        """The messages sent since then."""
        return (entry for entry in self.entries.values() if entry.sent >= since)
