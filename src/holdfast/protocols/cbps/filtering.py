"""A state filter that a broker runs for one of its connections, and what replicas say to one another.

A broker tells the connections over which it passed the subscription on which scopes have publishers
elsewhere too, so that each knows for which it sees every event.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...model.protocol import Peer, Send
from .condition import Replicated
from .content import Content, Filter
from .message import About, Answer, Ask, Interruption, Part, Placement
from .replica import Replica, Sight, sighted
from .routing import Stored
from .scopes import NOWHERE, Reach, Scopes, from_wire, to_wire
from .watch import Moment, Watch


@dataclass(slots=True, eq=False)
class Filtering(Watch):
    """The replica, the scopes reached through every other connection, what each of those was told, and
    whether there is something to ask for."""

    part: Part
    stored: Stored
    condition: Replicated
    replica: Replica = field(init=False)
    reach: Reach = field(default_factory=Reach)
    told: dict[Peer, Scopes] = field(default_factory=dict)
    curious: bool = False

    def __post_init__(self) -> None:
        self.replica = Replica(self.condition)

    # --- who publishes where ---

    def advertised(self, peer: Peer, advertised: Filter) -> None:
        new = self.reach.add(peer, self._scopes(advertised))
        self.curious |= new != NOWHERE and self.replica.unlearn(new)

    def unadvertised(self, peer: Peer, advertised: Filter) -> None:
        self.reach.remove(peer, self._scopes(advertised))

    def _scopes(self, advertised: Filter) -> Scopes:
        """The scopes of the events that an advertisement promises and the subscription wants."""
        wanted = self.subscription.filter
        return self.condition.reach(Filter((*advertised.constraints, *wanted.constraints)))

    def tell(self, moment: Moment) -> None:
        """Tell every connection over which the subscription went what is new to it, and ask for what
        we do not know ourselves."""
        if self.curious:
            self.curious = False
            self._ask(moment)
        for peer in self.stored.sent:
            scopes = self._placement(peer)
            if self.told.get(peer) != scopes:
                self.told[peer] = scopes
                moment.say(Send(peer, Placement(self.part, to_wire(scopes))))

    def _placement(self, peer: Peer) -> Scopes:
        """What to tell a connection over which the subscription went.  Where a flooded one goes,
        nobody knows who may publish."""
        if self.subscription.flood_forward or self.replica.shared is None:
            return None
        return self.reach.shared(peer, self.replica.shared)

    def keeps(self, _peer: Peer) -> bool:
        return False

    def retracted(self, peer: Peer) -> None:
        self.told.pop(peer, None)

    def left(self, peer: Peer, moment: Moment) -> None:
        """Nobody knows any more what holds in the scopes that were reached through the connection."""
        flooded = self.subscription.flood_forward and peer in self.stored.sent
        self._interrupt(None if flooded else self.reach.through(peer), moment)
        self.told.pop(peer, None)

    # --- events ---

    def sees(self, content: Content) -> Sight | None:
        return sighted(self.condition, content)

    def passes(self, seen: Sight, _sender: Peer, _moment: Moment) -> bool:
        return self.replica.passes(seen)

    def went(self, seen: Sight, moment: Moment) -> None:
        if self.replica.note(seen):
            self._ask(moment)

    def missed(self, seen: Sight, moment: Moment) -> None:
        """Say so, and ask for the bits of the event's scopes: they are not where we thought."""
        if not seen.keys:
            return
        scopes = frozenset(seen.keys)
        self._interrupt(scopes, moment)
        self.curious |= self.replica.unlearn(scopes)
        self.tell(moment)

    # --- what replicas say to one another ---

    def from_below(self, message: About, moment: Moment) -> None:
        match message:
            case Placement(_, shared):
                self.curious |= self.replica.place(from_wire(shared))
                self.tell(moment)
            case Answer(_, number, bits, doubted) if self.replica.learn(number, bits, doubted):
                self.tell(moment)

    def from_above(self, sender: Peer, message: About, moment: Moment) -> None:
        match message:
            case Ask(of, number):
                bits, doubted = sorted(self.replica.bits), sorted(self.replica.doubted)
                moment.say(Send(sender, Answer(of, number, tuple(bits), tuple(doubted))))
            case Interruption(_, scopes):
                self._interrupt(from_wire(scopes), moment)

    def _ask(self, moment: Moment) -> None:
        """Ask for the bits."""
        moment.say(Send(self.peer, Ask(self.part, self.replica.ask())))

    def _interrupt(self, scopes: Scopes, moment: Moment) -> None:
        """Events of some scopes may be lost: what holds there is in doubt; say so."""
        if scopes == NOWHERE:
            return
        self.replica.doubt(scopes)
        moment.say(Send(self.peer, Interruption(self.part, to_wire(scopes))))
        if self.replica.note(scopes):
            self._ask(moment)
