"""The event broker: a protocol machine that passes on only what somebody wants.  [Fulcrum §6.12]

What a broker holds is at all times what its live connections have stored and not withdrawn, and what it
has sent on is what they and the advertisements it knows call for; so the order in which advertisements,
subscriptions and connections come and go makes no difference [B10].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from ...errors import UsageError
from ...model.instant import Instant
from ...model.protocol import (
    Asked,
    Effect,
    Fired,
    Input,
    Joined,
    Left,
    Peer,
    Received,
    Send,
    SetTimer,
    Started,
    Undelivered,
)
from .border import is_marked
from .bundle import (
    is_empty,
    is_passing,
    is_stored,
    lasting,
    passing,
    says_the_same,
    well_formed,
    without_advertisements,
    without_interest,
)
from .condition import Conditions
from .connecting import Connecting, Connections
from .content import Content
from .context import begun, content_of, passes, received
from .crowd import Others
from .hosting import Hosting
from .leases import LEASES, Leases
from .message import (
    About,
    Answer,
    Ask,
    Bundle,
    ExpressSlip,
    Handover,
    Interruption,
    Key,
    Message,
    Placement,
    Refusal,
    Registration,
    Renewal,
    Said,
    Unadvertise,
    Unsubscribe,
    bytes_of,
)
from .reading import Reading
from .routing import Routing, Stored
from .topology import Topology
from .watch import Watch
from .watching import Watching

FOR_MANY = 16
HEADROOM = 1 << 10
"""By so many bytes a bundle may grow on its way, by what brokers say of how it came."""
MOST_HOPS = 64
"""What has come by so many brokers goes in circles, and ends here."""


@dataclass(slots=True)
class BrokerState:
    """All that a broker remembers.  ``counted`` says what it has done, for accounts."""

    connections: Connections
    routing: Routing = field(default_factory=Routing)
    watching: Watching = field(init=False)
    leases: Leases = field(default_factory=Leases)
    reading: Reading = field(default_factory=Reading)
    counted: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.watching = Watching(self.routing)

    @property
    def account(self) -> dict[str, int]:
        """What it has done, and, if there are any, the conditions that it runs and the connections that it
        has to spare."""
        now = {"conditions run here": self.watching.hosted, "spare": self.connections.topology.spare}
        return {**self.counted, **{what: number for what, number in now.items() if number}}


@dataclass(frozen=True)
class Broker:
    """The machine.  ``conditions`` makes sense of definitions.  Of one connection it stores at most
    ``most`` bundles, of a client ``most_bytes`` together, and of a broker, who speaks for many clients,
    ``FOR_MANY`` times as much.  Without ``memoize`` it neither writes nor reads express slips.  ``limit`` is
    the longest message that its host takes, if there is a bound."""

    conditions: Conditions
    most: int = 100_000
    memoize: bool = True
    name: str = ""
    limit: int = 0
    most_bytes: int = 16 << 20

    def initial(self) -> BrokerState:
        return BrokerState(Connections(Topology(self.name, self.limit)))

    def handle(self, state: BrokerState, given: Input) -> tuple[BrokerState, list[Effect]]:
        turn = _Turn(self, state, given.now)
        match given:
            case Started(_, seed):
                state.connections = Connections(Topology(f"{self.name}~{seed:x}", self.limit))
            case Joined(_, peer, role):
                turn.joined(peer, role)
            case Left(_, peer):
                turn.left(peer)
            case Received(_, sender, message):
                turn.received(sender, message)
            case Undelivered(_, peer, message):
                turn.undelivered(peer, state.connections.returned(peer, message))
            case Fired(_, timer):
                turn.fired(timer)
            case Asked(_, request):
                raise UsageError(f"a broker has no user; connect a client and ask that for {request!r}")
        if (at := state.leases.wake()) is not None:
            turn.say(SetTimer(LEASES, at))
        return state, [state.connections.given(effect) for effect in turn.effects]


class _Turn(Connecting):
    """The work that one input makes."""

    def __init__(self, broker: Broker, state: BrokerState, now: Instant) -> None:
        super().__init__(state.routing, state.watching, now, broker.conditions, broker.memoize)
        self.state, self.connections, self.broker = state, state.connections, broker

    # --- what is said ---

    def undelivered(self, peer: Peer, message: Message) -> None:
        """A peer will never see a message: whoever is behind it no longer knows what holds.  If it should
        have stored it, who wanted that is told."""
        match message:
            case Bundle() if is_stored(message):
                self.refused(peer, Refusal(message.key, f"'{peer}' takes no message as long as this"))
            case Bundle() if peer in self.watching.watches:
                for notification in message.notifications:
                    for watch, seen in self.watching.concerned(notification.content, [peer]):
                        watch.missed(seen, self.moment)
            case Said(of) if isinstance(host := self.watching.find(of), Hosting) and host.peer == peer:
                host.unsaid(self.moment)
            case Handover(of):
                self.say(Send(peer, Handover(of, None)))

    def received(self, sender: Peer, message: Message) -> None:
        if self.arranged(sender, message):
            return
        match self.connections.taken(sender, message):
            case None:
                self.state.counted["out of place"] += 1
            case Bundle() as message:
                self.bundle(sender, message)
            case Registration() as message:
                self.register(sender, message)
            case Unadvertise(key):
                self.recall(sender, key, without_interest)
            case Unsubscribe(key):
                self.recall(sender, key, without_advertisements)
            case Renewal(keys):
                self.renew(sender, keys)
            case Refusal() as message:
                self.refused(sender, message)
            case Placement() | Ask() | Answer() | Interruption() | Handover() | Said() as message:
                self.about(sender, message)

    def about(self, sender: Peer, message: About) -> None:
        """Something is said about a condition that is stored."""
        watch = self.watching.find(message.of)
        if watch is not None and sender == watch.peer:
            watch.from_below(message, self.moment)
        elif watch is not None and sender in watch.stored.sent and not self._is_for_brokers(sender, watch):
            watch.from_above(sender, message, self.moment)
            if isinstance(message, Handover):
                self.spare(sender, watch.stored)

    def _is_for_brokers(self, sender: Peer, watch: Watch) -> bool:
        """Whether a client takes part in what only brokers may run."""
        return sender in self.connections.marks and isinstance(watch, Hosting)

    def recall(self, sender: Peer, key: Key, part: Callable[[Bundle], Bundle]) -> None:
        """A peer withdraws a part of what it has stored here."""
        if stored := self.kept(sender, key):
            self.withdraw(sender, [(stored, part(stored.bundle))])

    # --- bundles ---

    def bundle(self, sender: Peer, bundle: Bundle) -> None:
        """Store what is to be stored, and send the bundle once to everybody it concerns.  [B15]"""
        is_client = sender in self.connections.marks
        how = begun if is_client else received
        bundle = well_formed(replace(bundle, context=how(bundle, sender, self.now)))
        if sender in self.connections.turns:
            bundle = self.fresh(bundle)
        assert bundle.context is not None
        if is_empty(bundle) or bundle.context.hop_count > MOST_HOPS:
            self.state.counted["discarded"] += 1
            return
        if is_client and (refusal := self.too_long(bundle)):
            self.say(Send(sender, refusal))
            return
        kept = lasting(bundle)
        if not is_stored(kept):
            self.forward(sender, bundle)
            return
        old = self.kept(sender, bundle.key)
        if old is not None and says_the_same(old.bundle, kept):
            self.state.leases.begin(old, self.now)
            self.forward(sender, passing(bundle))
            return
        said = len(self.effects)
        if old is not None:
            self.withdraw(sender, [(old, old.bundle)])
        if refusal := self.refusal(sender, kept):
            self.say(Send(sender, refusal))
            return
        stored = Stored(kept, sender, size=bytes_of(kept))
        self.state.leases.begin(stored, self.now)
        if self.routing.keep(stored):
            self.enforce(stored, lambda: self.forward(sender, bundle, stored))
            if kept.active:
                self.replaced(stored, said)
        else:
            self.forward(sender, passing(bundle))

    def replaced(self, stored: Stored, said: int) -> None:
        """Who is sent a bundle in place of an old one of its name is not told that the old one goes: agents
        go on."""
        gone = Unsubscribe(stored.bundle.key), Unadvertise(stored.bundle.key)
        self.effects[said:] = [
            effect
            for effect in self.effects[said:]
            if not (isinstance(effect, Send) and effect.to in stored.sent and effect.message in gone)
        ]

    def fresh(self, bundle: Bundle) -> Bundle:
        """What of a bundle from another broker did not come before, by another way or from here."""
        if is_marked(bundle.key, self.connections.topology.me):
            return Bundle(bundle.key, bundle.context)
        if not is_passing(bundle) or self.connections.once.first(bundle.key):
            return bundle
        return lasting(bundle)

    def too_long(self, bundle: Bundle) -> Refusal | None:
        """Why a bundle cannot be passed on everywhere, if it cannot: on its way it grows."""
        if not (longest := self.connections.topology.longest):
            return None
        longest -= min(HEADROOM, longest // 4)
        if (size := bytes_of(bundle)) <= longest:
            return None
        return Refusal(bundle.key, f"it has {size:,} bytes; on the way at most {longest:,} are taken")

    def refusal(self, sender: Peer, bundle: Bundle) -> Refusal | None:
        """Why a bundle cannot be stored, if it cannot."""
        most, client = self.broker.most, sender if sender in self.connections.marks else None
        if len(self.routing.bundles.get(sender, ())) >= most:
            return Refusal(bundle.key, f"a connection may store {most} bundles, and has; withdraw some")
        most_bytes = self.broker.most_bytes * (1 if client else FOR_MANY)
        if self.routing.sizes[sender] + bytes_of(bundle) > most_bytes:
            return Refusal(bundle.key, f"a connection may store {most_bytes:,} bytes; withdraw something")
        for subscription in bundle.subscriptions:
            if subscription.state is not None and (
                why := self.state.reading.objection(
                    subscription.state.definition, self.conditions, client, self.now
                )
            ):
                return Refusal(bundle.key, why)
        return None

    def refused(self, sender: Peer, refusal: Refusal) -> None:
        """A peer cannot store what we sent on: tell the one from whom we have it."""
        stored = self.routing.in_force.get(refusal.bundle)
        if stored is not None and sender in stored.sent:
            self.routing.returned(stored, sender)
            for watch in self.watching.of(stored):
                watch.retracted(sender)
            self.say(Send(stored.source, refusal))

    def forward(self, sender: Peer, bundle: Bundle, stored: Stored | None = None) -> None:
        """Send a bundle that has just come to everybody it concerns: those known by a twin first, then
        those that match [B46]; conditions look at the events in it besides."""
        assert bundle.context is not None
        seen = content_of(bundle.context, self.now)
        if not passes(bundle.outgoing, seen):
            self.state.counted["stopped by its own filter"] += 1
            return
        hidden = stored.hidden if stored else frozenset()
        found: dict[Peer, ExpressSlip | None] = {}
        if self.memoize:
            found = dict.fromkeys(self.routing.express(bundle, seen, sender, hidden), bundle.express)
            self.state.counted["express"] += len(found)
        found |= self.routing.match(bundle, seen, Others(self.routing.links, {sender, *found}), hidden)
        watched = self.watched(bundle, seen, sender)
        for watch, _, passed in watched:
            if passed:
                found.setdefault(watch.peer, None)
        for peer, slip in found.items():
            self.send(peer, bundle, slip, stored)
        for watch, event, _ in watched:
            if watch.peer in found:
                watch.went(event, self.moment)

    def watched(self, bundle: Bundle, seen: Content, sender: Peer) -> list[tuple[Watch, Any, bool]]:
        """The conditions that the events of a bundle concern, and whether each lets them pass."""
        peers, accepting = Others(self.watching.watches, {sender}), self.routing.accepting["notification"]
        return [
            (watch, event, watch.passes(event, sender, self.moment))
            for notification in (bundle.notifications if peers else ())
            for watch, event in self.watching.concerned(notification.content, peers, seen)
            if watch.peer in accepting
        ]

    # --- timers ---

    def fired(self, timer: str) -> None:
        """A lease has run out, or time has come for a condition."""
        if timer == LEASES:
            self.expire()
        elif timer in self.watching.hosts:
            self.watching.hosts[timer].wake(self.moment)

    def renew(self, sender: Peer, keys: Iterable[Key]) -> None:
        """Begin leases anew here and wherever the bundles went."""
        onward: dict[Peer, list[Key]] = {}
        for key in keys:
            if stored := self.kept(sender, key):
                self.state.leases.begin(stored, self.now)
                for peer in stored.sent:
                    onward.setdefault(peer, []).append(key)
        for peer, mine in onward.items():
            self.say(Send(peer, Renewal(tuple(mine)), cause="renewal"))

    def expire(self) -> None:
        """Forget bundles whose leases have run out."""
        for stored in self.state.leases.expired(self.now, self.kept):
            self.state.counted["expired"] += 1
            self.withdraw(stored.source, [(stored, stored.bundle)])
