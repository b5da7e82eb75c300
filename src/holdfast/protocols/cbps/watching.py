"""The state filters that a broker runs for its connections, and what they say to one another.

For each filter a broker tells the connections over which it passed the subscription on which scopes
have publishers elsewhere too, so that each knows for which it sees every event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field

from ...model.protocol import Effect, Peer, Send
from .content import MATCHES, Content, Filter, box_of
from .context import passes
from .database import Item
from .message import Answer, Ask, Interruption, Part, Placement, Subscription
from .replica import Replica, Sight, sighted
from .routing import Routing, Stored
from .scopes import NOWHERE, Reach, Scopes, either, from_wire, to_wire

Say = Callable[[Effect], None]


@dataclass(slots=True, eq=False)
class Watch:
    """A state filter for one connection: the replica, the scopes reached through every other connection,
    what each of those was told, and whether there is something to ask for."""

    part: Part
    stored: Stored
    replica: Replica
    reach: Reach = field(default_factory=Reach)
    told: dict[Peer, Scopes] = field(default_factory=dict)
    curious: bool = False

    @property
    def peer(self) -> Peer:
        """For whom."""
        return self.stored.source

    @property
    def subscription(self) -> Subscription:
        """What the connection wants."""
        return self.stored.bundle.subscriptions[self.part.place]

    def scopes(self, advertised: Filter) -> Scopes:
        """The scopes of the events that an advertisement promises and the subscription wants."""
        wanted = self.subscription.filter
        return self.replica.condition.reach(Filter((*advertised.constraints, *wanted.constraints)))

    def lost(self, peer: Peer) -> Scopes:
        """The scopes of which nobody knows any more when a connection is lost."""
        flooded = self.subscription.flood_forward and peer in self.stored.sent
        return None if flooded else self.reach.through(peer)

    def placement(self, peer: Peer) -> Scopes:
        """What to tell a connection over which the subscription went.  Where a flooded one goes,
        nobody knows who may publish."""
        if self.subscription.flood_forward or self.replica.shared is None:
            return None
        return self.reach.shared(peer, self.replica.shared)


@dataclass(slots=True)
class Watching:
    """All watches of a broker, by connection and part."""

    routing: Routing
    watches: dict[Peer, dict[Part, Watch]] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(map(len, self.watches.values()))

    def all(self) -> Iterator[Watch]:
        """Every watch."""
        for watches in self.watches.values():
            yield from watches.values()

    # --- coming and going ---

    def begin(self, stored: Stored, part: Part, replica: Replica) -> None:
        """Watch for a subscription that has just been stored."""
        watch = Watch(part, stored, replica)
        self.watches.setdefault(stored.source, {})[part] = watch
        box, relation = watch.subscription.filter.box, MATCHES["subscription", "advertisement"]
        for peer in self.routing.database.peers("advertisement"):
            if peer == stored.source:
                continue
            for item in self.routing.database.table(peer, "advertisement").search(box, relation):
                watch.reach.add(peer, watch.scopes(item.filter))

    def end(self, watch: Watch) -> None:
        """Watch no longer."""
        watches = self.watches[watch.peer]
        del watches[watch.part]
        if not watches:
            del self.watches[watch.peer]

    def advertised(self, peer: Peer, item: Item) -> Iterator[Watch]:
        """An advertisement of a connection has come in sight; the watches that it concerns."""
        for watch in self._concerned_by(peer, item):
            new = watch.reach.add(peer, watch.scopes(item.filter))
            watch.curious |= new != NOWHERE and watch.replica.unlearn(new)
            yield watch

    def unadvertised(self, peer: Peer, item: Item) -> Iterator[Watch]:
        """An advertisement of a connection has gone out of sight; the watches that it concerns."""
        for watch in self._concerned_by(peer, item):
            watch.reach.remove(peer, watch.scopes(item.filter))
            yield watch

    def _concerned_by(self, peer: Peer, advertisement: Item) -> list[Watch]:
        return [
            self.watches[stored.source][part]
            for alike in self.routing.watchers("advertisement", advertisement.filter.box)
            for part, stored in alike.items()
            if stored.source != peer
        ]

    # --- events ---

    def concerned(
        self, content: Content, peers: Collection[Peer], seen: Content | None = None
    ) -> Iterator[tuple[Watch, Sight]]:
        """The watches of some connections that a notification may matter to; ``seen`` is its context.

        Equal filters look at an event together.
        """
        for alike in self.routing.watchers("notification", box_of(content)):
            sight: Sight | None = None
            for part, stored in alike.items():
                if stored.source not in peers or not (seen is None or passes(stored.bundle.incoming, seen)):
                    continue
                watch = self.watches[stored.source][part]
                if sight is None:
                    sight = sighted(watch.replica.condition, content)
                    if sight is None:
                        break
                yield watch, sight

    # --- what replicas say to one another ---

    def placed(self, sender: Peer, said: Placement, say: Say) -> None:
        """The subscriber's side says which scopes are shared."""
        if watch := self.watches.get(sender, {}).get(said.of):
            watch.curious |= watch.replica.place(from_wire(said.shared))
            self.tell(watch, say)

    def ask(self, watch: Watch, say: Say) -> None:
        """Ask for the bits."""
        say(Send(watch.peer, Ask(watch.part, watch.replica.ask())))

    def asked(self, sender: Peer, said: Ask, say: Say) -> None:
        """A publisher's side asks for the bits."""
        if watch := self._passed_on(sender, said.of):
            say(Send(sender, Answer(said.of, said.number, tuple(sorted(watch.replica.bits)))))

    def answered(self, sender: Peer, said: Answer, say: Say) -> None:
        """The subscriber's side says which bits are set."""
        watch = self.watches.get(sender, {}).get(said.of)
        if watch and watch.replica.learn(said.number, said.bits):
            self.tell(watch, say)

    def interrupted(self, sender: Peer, said: Interruption, say: Say) -> None:
        """A publisher's side has lost events of some scopes."""
        if watch := self._passed_on(sender, said.of):
            self.interrupt(watch, from_wire(said.scopes), say)

    def interrupt(self, watch: Watch, scopes: Scopes, say: Say) -> None:
        """Events of some scopes may be lost: reset their bits, and say so."""
        if scopes == NOWHERE:
            return
        watch.replica.reset(scopes)
        say(Send(watch.peer, Interruption(watch.part, to_wire(scopes))))
        if watch.replica.note(scopes):
            self.ask(watch, say)

    def tell(self, watch: Watch, say: Say) -> None:
        """Tell every connection over which the subscription went what is new to it, and ask for what
        we do not know ourselves."""
        if watch.curious:
            watch.curious = False
            self.ask(watch, say)
        for peer in watch.stored.sent:
            scopes = watch.placement(peer)
            if watch.told.get(peer) != scopes:
                watch.told[peer] = scopes
                say(Send(peer, Placement(watch.part, to_wire(scopes))))

    def startle(self, watch: Watch, scopes: Scopes, say: Say) -> None:
        """The subscriber's side has missed events of some scopes: reset their bits, say so, and make
        every connection over which the subscription went ask for them anew."""
        self.interrupt(watch, scopes, say)
        for peer in watch.stored.sent:
            shared = watch.told.get(peer)
            say(Send(peer, Placement(watch.part, to_wire(either(shared, scopes)))))
            say(Send(peer, Placement(watch.part, to_wire(shared))))

    def _passed_on(self, peer: Peer, part: Part) -> Watch | None:
        """The watch for a subscription that was passed on to a connection."""
        stored = self.routing.in_force.get(part.bundle)
        if stored is None or peer not in stored.sent:
            return None
        return self.watches.get(stored.source, {}).get(part)
