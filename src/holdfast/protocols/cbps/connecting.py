"""Connections as they come and go: clients, whose words are theirs alone, and brokers, in one tree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ...model.protocol import Effect, Peer, Send
from .border import inward, mark, outward, returned
from .message import KINDS, Bundle, Echo, Message, Neighbours, Registration, Use
from .once import Once
from .spreading import Spreading
from .topology import Topology


@dataclass(slots=True)
class Connections:
    """Who is connected: the ``marks`` of clients, and of brokers the turns that are in use here.

    ``once`` knows what has come from brokers: while a circle stands, all of it comes again.
    """

    topology: Topology
    marks: dict[Peer, str] = field(default_factory=dict)
    turns: dict[Peer, tuple[int, int]] = field(default_factory=dict)
    once: Once = field(default_factory=Once)
    clients: int = 0

    def taken(self, sender: Peer, message: Message) -> Message | None:
        """A message as the broker takes it: nothing if it is not for the sender to say, or not now."""
        if (ours := self.marks.get(sender)) is not None:
            return inward(message, ours)
        is_spare = sender in self.topology.trunks and sender not in self.turns
        return None if is_spare or isinstance(message, Use | Neighbours | Echo) else message

    def returned(self, peer: Peer, message: Message) -> Message:
        """A message that a peer was not given, as the broker knows it."""
        return returned(message, self.marks[peer]) if peer in self.marks else message

    def given(self, effect: Effect) -> Effect:
        """An effect as it is carried out: clients know their bundles under names of their own."""
        if isinstance(effect, Send) and not isinstance(effect.message, Bundle) and effect.to in self.marks:
            return Send(effect.to, outward(effect.message, self.marks[effect.to]), effect.cause)
        return effect


class Connecting(Spreading):
    """The work that connections make."""

    connections: Connections

    def joined(self, peer: Peer, role: str) -> None:
        """There is a connection: to a client, to a broker, or, where nobody asks, to somebody in a tree."""
        at = self.connections
        if role == "broker":
            self.rearrange(at.topology.joined(peer))
            return
        if role == "client":
            at.clients += 1
            at.marks[peer] = mark(at.topology.me, at.clients)
        self.attach(peer)

    def left(self, peer: Peer) -> None:
        """There is none any more; if it was used, a spare may be used from now on."""
        at = self.connections
        at.marks.pop(peer, None)
        if peer not in at.topology.trunks:
            self.detach(peer)
            return
        if at.turns.pop(peer, None) is not None:
            self.detach(peer)
        self.rearrange(at.topology.left(peer))

    def arranged(self, sender: Peer, message: Message) -> bool:
        """Take what is said about connections: by brokers, who is joined to whom; by clients, whether all has
        come that they said.  Whether it was that."""
        if isinstance(message, Echo) and sender in self.connections.marks:
            self.say(Send(sender, message))
            return True
        if sender in (topology := self.connections.topology).trunks:
            match message:
                case Use():
                    self.rearrange(topology.used(sender, message))
                    return True
                case Neighbours():
                    self.rearrange(topology.learned(sender, message))
                    return True
        return False

    def rearrange(self, said: Iterable[Send]) -> None:
        """Say what there is to say, leave connections that are spare now, and join those that are used."""
        for send in said:
            self.say(send)
        turns = self.connections.turns
        for peer, trunk in self.connections.topology.trunks.items():
            if turns.get(peer) == trunk.turn:
                continue
            if turns.pop(peer, None):
                self.detach(peer)
            if trunk.turn is not None:
                turns[peer] = trunk.turn
                self.attach(peer)

    # --- in use ---

    def attach(self, peer: Peer) -> None:
        """A connection is used: say what we accept, and ask what the other end does.  [B18]"""
        self.routing.link(peer, ())
        self.say(Send(peer, Registration(KINDS, request=True)))

    def register(self, peer: Peer, said: Registration) -> None:
        """Note what a peer accepts, and send it what it should have: advertisements, floods.  [B18, B19]"""
        self.routing.link(peer, said.accepts)
        if said.request:
            self.say(Send(peer, Registration(KINDS, reply=True)))
        if not {"advertisement", "subscription"}.isdisjoint(said.accepts):
            for stored in list(self.routing.in_force.values()):
                self.offer(stored, [peer])

    def detach(self, peer: Peer) -> None:
        """Drop all that a connection has stored [B21], and say of which conditions nobody knows now."""
        self.routing.unlink(peer)
        for watch in self.watching.all():
            if watch.peer != peer:
                watch.left(peer, self.moment)
        for stored in list(self.routing.sent.get(peer, ())):
            self.routing.returned(stored, peer)
        kept = list(self.routing.bundles.get(peer, {}).values())
        self.withdraw(peer, [(stored, stored.bundle) for stored in kept])
        for watch in self.watching.all():
            watch.tell(self.moment)
