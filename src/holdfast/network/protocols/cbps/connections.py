"""The connections of a broker: to clients, which are isolated from each other, and to brokers, in one
tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ....model.protocol import Effect, Peer, Send
from .border import mark, qualify_keys, restore_mark, strip_mark
from .duplicates import DuplicateFilter
from .message import KINDS, Bundle, CbpsMessage, Echo, LinkState, LinkUse, Registration
from .propagation import BundlePropagation
from .topology import BrokerTopology


@dataclass(slots=True)
class Connections:
    """The open connections: the ``marks`` of clients, and the turns of the broker connections in use.

    ``duplicates`` filters repeated bundles of brokers. While the network contains a cycle, every message
    arrives again.
    """

    topology: BrokerTopology
    marks: dict[Peer, str] = field(default_factory=dict)
    turns: dict[Peer, tuple[int, int]] = field(default_factory=dict)
    duplicates: DuplicateFilter = field(default_factory=DuplicateFilter)
    clients: int = 0

    def accept(self, sender: Peer, message: CbpsMessage) -> CbpsMessage | None:
        """Return a message with qualified names; ``None`` if the sender must not send it, or not at
        present.
        """
        if (mark := self.marks.get(sender)) is not None:
            return qualify_keys(message, mark)
        is_spare = sender in self.topology.links and sender not in self.turns
        return None if is_spare or isinstance(message, LinkUse | LinkState | Echo) else message

    def restore(self, peer: Peer, message: CbpsMessage) -> CbpsMessage:
        """Return an undelivered message with the names that the broker uses instead of the client's own."""
        return restore_mark(message, self.marks[peer]) if peer in self.marks else message

    def prepare(self, effect: Effect) -> Effect:
        """Return an effect as the host carries it out: messages to clients use the clients' own names."""
        if isinstance(effect, Send) and not isinstance(effect.message, Bundle) and effect.to in self.marks:
            return Send(effect.to, strip_mark(effect.message, self.marks[effect.to]), effect.cause)
        return effect


class ConnectionSteps(BundlePropagation):
    """Handles changes of connections. This is the base class of the broker's step."""

    connections: Connections

    def on_joined(self, peer: Peer, role: str) -> None:
        """Handle a new connection to a client, a broker or, without a role, a node of a fixed tree."""
        connections = self.connections
        if role == "broker":
            self.apply_topology(connections.topology.on_joined(peer))
            return
        if role == "client":
            connections.clients += 1
            connections.marks[peer] = mark(connections.topology.me, connections.clients)
        self.attach(peer)

    def on_left(self, peer: Peer) -> None:
        """Handle the end of a connection. If it was in use, a spare connection may replace it."""
        connections = self.connections
        connections.marks.pop(peer, None)
        if peer not in connections.topology.links:
            self.detach(peer)
            return
        if connections.turns.pop(peer, None) is not None:
            self.detach(peer)
        self.apply_topology(connections.topology.on_left(peer))

    def on_link_message(self, sender: Peer, message: CbpsMessage) -> bool:
        """Handle link messages of brokers and echoes of clients. Return whether the message was of
        this kind.
        """
        if isinstance(message, Echo) and sender in self.connections.marks:
            self.emit(Send(sender, message))
            return True
        if sender in (topology := self.connections.topology).links:
            match message:
                case LinkUse():
                    self.apply_topology(topology.on_use(sender, message))
                    return True
                case LinkState():
                    self.apply_topology(topology.on_neighbours(sender, message))
                    return True
        return False

    def apply_topology(self, messages: Iterable[Send]) -> None:
        """Send topology messages, detach connections that became spare, and attach those that came
        into use.
        """
        for send in messages:
            self.emit(send)
        turns = self.connections.turns
        for peer, trunk in self.connections.topology.links.items():
            if turns.get(peer) == trunk.turn:
                continue
            if turns.pop(peer, None):
                self.detach(peer)
            if trunk.turn is not None:
                turns[peer] = trunk.turn
                self.attach(peer)

    # --- in use ---

    def attach(self, peer: Peer) -> None:
        """Start to use a connection: announce the accepted kinds and request the kinds of the peer. [B18]"""
        self.routing.link(peer, ())
        self.emit(Send(peer, Registration(KINDS, request=True)))

    def register(self, peer: Peer, registration: Registration) -> None:
        """Record the kinds that a peer accepts, and send it the stored bundles that it needs. [B18, B19]"""
        self.routing.link(peer, registration.accepts)
        if registration.request:
            self.emit(Send(peer, Registration(KINDS, reply=True)))
        if not {"advertisement", "subscription"}.isdisjoint(registration.accepts):
            for stored in list(self.routing.in_force.values()):
                self.offer(stored, [peer])

    def detach(self, peer: Peer) -> None:
        """Withdraw all bundles that a connection has stored [B21], and report affected conditions as
        unknown.
        """
        self.routing.unlink(peer)
        for watch in self.watching.all():
            if watch.peer != peer:
                watch.on_left(peer, self.emitter)
        for stored in list(self.routing.sent.get(peer, ())):
            self.routing.record_withdrawn(stored, peer)
        stored_bundles = list(self.routing.bundles.get(peer, {}).values())
        self.withdraw(peer, [(stored, stored.bundle) for stored in stored_bundles])
        for watch in self.watching.all():
            watch.notify_peers(self.emitter)
