"""The event broker: a protocol machine that forwards bundles only to the peers that need them. [Fulcrum
§6.12]

A broker stores exactly the bundles that its live connections have stored and not withdrawn. It has forwarded
exactly the bundles that those bundles and the known advertisements require. The order in which
advertisements, subscriptions and connections come and go therefore makes no difference [B10].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from ....errors import UsageError
from ....model.instant import Instant
from ....model.protocol import (
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
    drop_malformed_slips,
    has_stored_part,
    has_transient_part,
    is_empty,
    is_equal_content,
    stored_part,
    transient_part,
    without_advertisements,
    without_interest,
)
from .condition import CompileCondition
from .connections import Connections, ConnectionSteps
from .content import Content
from .context import content_of, context_from_broker, context_from_client, passes_any
from .definition_budget import DefinitionBudget
from .hosted_watch import HostedWatch
from .leases import LEASES, Leases
from .message import (
    Bundle,
    BundleKey,
    BundleRefusal,
    CbpsMessage,
    ConditionMessage,
    HostedNotification,
    Registration,
    Renewal,
    StateHandover,
    UnadvertiseBundle,
    UnsubscribeBundle,
    bytes_of,
)
from .routing import RoutingTable, Slips, StoredBundle
from .shared_index import AllExcept
from .topology import BrokerTopology
from .watch import ConditionWatch
from .watch_table import WatchTable

BROKER_FACTOR = 16
HEADROOM = 1 << 10
"""The number of bytes by which a bundle may grow on its way, because brokers extend its context."""
MOST_HOPS = 64
"""A bundle that has passed this many brokers is assumed to travel in a cycle and is discarded."""


@dataclass(slots=True)
class CbpsBrokerState:
    """The state of a broker. ``counted`` contains counters for statistics."""

    connections: Connections
    routing: RoutingTable = field(default_factory=RoutingTable)
    watching: WatchTable = field(init=False)
    leases: Leases = field(default_factory=Leases)
    budget: DefinitionBudget = field(default_factory=DefinitionBudget)
    counted: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.watching = WatchTable(self.routing)

    @property
    def account(self) -> dict[str, int]:
        """Return the counters, and the numbers of hosted conditions and of spare connections if they are not
        zero.
        """
        spare_count = self.connections.topology.spare_count
        current = {"conditions run here": self.watching.hosted_count, "spare": spare_count}
        return {**self.counted, **{name: number for name, number in current.items() if number}}


@dataclass(frozen=True)
class CbpsBroker:
    """The broker machine.

    ``conditions`` compiles definitions. One connection may store at most ``most`` bundles. A client may store
    ``most_bytes`` bytes; a broker may store ``BROKER_FACTOR`` times as much, because it acts for many
    clients. Without ``memoize`` the broker neither writes nor reads express slips. ``limit`` is the longest
    message in bytes that the host accepts; 0 means no limit.
    """

    conditions: CompileCondition
    most: int = 100_000
    memoize: bool = True
    name: str = ""
    limit: int = 0
    most_bytes: int = 16 << 20

    def initial(self) -> CbpsBrokerState:
        """Return the state of the machine before its first input."""
        return CbpsBrokerState(Connections(BrokerTopology(self.name, self.limit)))

    def handle(self, state: CbpsBrokerState, given: Input) -> tuple[CbpsBrokerState, list[Effect]]:
        """Handle one input: change ``state`` in place, and return it with the effects in their order."""
        turn = _BrokerStep(self, state, given.now)
        match given:
            case Started(_, seed):
                state.connections = Connections(BrokerTopology(f"{self.name}~{seed:x}", self.limit))
            case Joined(_, peer, role):
                turn.on_joined(peer, role)
            case Left(_, peer):
                turn.on_left(peer)
            case Received(_, sender, message):
                turn.on_message(sender, message)
            case Undelivered(_, peer, message):
                turn.on_undelivered(peer, state.connections.restore(peer, message))
            case Fired(_, timer):
                turn.on_timer(timer)
            case Asked(_, request):
                raise UsageError(f"a broker has no user; connect a client and ask that for {request!r}")
        if (at := state.leases.next_timer()) is not None:
            turn.emit(SetTimer(LEASES, at))
        return state, [state.connections.prepare(effect) for effect in turn.effects]


class _BrokerStep(ConnectionSteps):
    """Handles one input of the broker."""

    def __init__(self, broker: CbpsBroker, state: CbpsBrokerState, now: Instant) -> None:
        super().__init__(state.routing, state.watching, now, broker.conditions, broker.memoize)
        self.state, self.connections, self.broker = state, state.connections, broker

    # --- messages ---

    def on_undelivered(self, peer: Peer, message: CbpsMessage) -> None:
        """Handle a message that the host could not deliver to a peer."""
        match message:
            case Bundle() if has_stored_part(message):
                why = f"'{peer}' takes no message as long as this"
                self.on_refusal(peer, BundleRefusal(message.key, why))
            case Bundle() if peer in self.watching.watches:
                for notification in message.notifications:
                    for watch, seen in self.watching.matching_watches(notification.content, [peer]):
                        watch.on_undelivered(seen, self.emitter)
            case HostedNotification(of) if (
                isinstance(host := self.watching.find(of), HostedWatch) and host.peer == peer
            ):
                host.restart_after_loss(self.emitter)
            case StateHandover(of):
                self.emit(Send(peer, StateHandover(of, None)))

    def on_message(self, sender: Peer, message: CbpsMessage) -> None:
        """Dispatch a message from a peer to its handler."""
        if self.on_link_message(sender, message):
            return
        match self.connections.accept(sender, message):
            case None:
                self.state.counted["out of place"] += 1
            case Bundle() as message:
                self.on_bundle(sender, message)
            case Registration() as message:
                self.register(sender, message)
            case UnadvertiseBundle(key):
                self.withdraw_part(sender, key, without_interest)
            case UnsubscribeBundle(key):
                self.withdraw_part(sender, key, without_advertisements)
            case Renewal(keys):
                self.renew_leases(sender, keys)
            case BundleRefusal() as message:
                self.on_refusal(sender, message)
            case ConditionMessage() as message:
                self.on_condition_message(sender, message)

    def on_condition_message(self, sender: Peer, message: ConditionMessage) -> None:
        """Handle a message about the condition of a stored subscription."""
        watch = self.watching.find(message.of)
        if watch is not None and sender == watch.peer:
            watch.on_subscriber_message(message, self.emitter)
        elif watch is not None and sender in watch.stored.sent and not self._is_for_brokers(sender, watch):
            watch.on_publisher_message(sender, message, self.emitter)
            if isinstance(message, StateHandover):
                self.withdraw_unused(sender, watch.stored)

    def _is_for_brokers(self, sender: Peer, watch: ConditionWatch) -> bool:
        """Return whether a client takes part in the protocol of a hosted condition, which only brokers may
        run.
        """
        return sender in self.connections.marks and isinstance(watch, HostedWatch)

    def withdraw_part(self, sender: Peer, key: BundleKey, part: Callable[[Bundle], Bundle]) -> None:
        """Withdraw a part of a bundle on behalf of the peer that stored it."""
        if stored := self.find_stored(sender, key):
            self.withdraw(sender, [(stored, part(stored.bundle))])

    # --- bundles ---

    def on_bundle(self, sender: Peer, bundle: Bundle) -> None:
        """Store the parts of a bundle that can be stored, and forward the bundle once to every peer that
        needs it. [B15]
        """
        is_client = sender in self.connections.marks
        make_context = context_from_client if is_client else context_from_broker
        bundle = drop_malformed_slips(replace(bundle, context=make_context(bundle, sender, self.now)))
        if sender in self.connections.turns:
            bundle = self.without_duplicates(bundle)
        assert bundle.context is not None
        if is_empty(bundle) or bundle.context.hop_count > MOST_HOPS:
            self.state.counted["discarded"] += 1
            return
        if is_client and (refusal := self.size_refusal(bundle)):
            self.emit(Send(sender, refusal))
            return
        to_store = stored_part(bundle)
        if not has_stored_part(to_store):
            self.forward(sender, bundle)
            return
        old = self.find_stored(sender, bundle.key)
        if old is not None and is_equal_content(old.bundle, to_store):
            self.state.leases.begin(old, self.now)
            self.forward(sender, transient_part(bundle))
            return
        effects_before = len(self.effects)
        if old is not None:
            self.withdraw(sender, [(old, old.bundle)])
        if refusal := self.storage_refusal(sender, to_store):
            self.emit(Send(sender, refusal))
            return
        stored = StoredBundle(to_store, sender, size=bytes_of(to_store))
        self.state.leases.begin(stored, self.now)
        if self.routing.add(stored):
            self.activate(stored, lambda: self.forward(sender, bundle, stored))
            if to_store.active:
                self.drop_withdrawals(stored, effects_before)
        else:
            self.forward(sender, transient_part(bundle))

    def drop_withdrawals(self, stored: StoredBundle, effects_before: int) -> None:
        """Drop withdrawals of an old bundle that its replacement makes unnecessary, so that its agents
        continue to run.

        ``effects_before`` is the number of effects before the replacement began.
        """
        withdrawals = UnsubscribeBundle(stored.bundle.key), UnadvertiseBundle(stored.bundle.key)
        sends = [effect for effect in self.effects[effects_before:] if isinstance(effect, Send)]
        gone = [send for send in sends if send.to in stored.sent and send.message in withdrawals]
        self.effects[effects_before:] = [e for e in self.effects[effects_before:] if e not in gone]

    def without_duplicates(self, bundle: Bundle) -> Bundle:
        """Remove the parts of a broker's bundle that arrived earlier over another path or that
        started here.
        """
        if is_marked(bundle.key, self.connections.topology.me):
            return Bundle(bundle.key, bundle.context)
        if not has_transient_part(bundle) or self.connections.duplicates.is_first(bundle.key):
            return bundle
        return stored_part(bundle)

    def size_refusal(self, bundle: Bundle) -> BundleRefusal | None:
        """Return a refusal if the bundle may become too long for a broker, because it grows on its way."""
        if not (longest := self.connections.topology.common_limit):
            return None
        longest -= min(HEADROOM, longest // 4)
        if (size := bytes_of(bundle)) <= longest:
            return None
        return BundleRefusal(bundle.key, f"it has {size:,} bytes; on the way at most {longest:,} are taken")

    def storage_refusal(self, sender: Peer, bundle: Bundle) -> BundleRefusal | None:
        """Return a refusal if the bundle exceeds a limit or contains an invalid definition."""
        most, client = self.broker.most, sender if sender in self.connections.marks else None
        if len(self.routing.bundles.get(sender, ())) >= most:
            return BundleRefusal(bundle.key, f"a connection may store {most} bundles, and has; withdraw some")
        most_bytes = self.broker.most_bytes * (1 if client else BROKER_FACTOR)
        if self.routing.sizes[sender] + bytes_of(bundle) > most_bytes:
            why = f"a connection may store {most_bytes:,} bytes; withdraw something"
            return BundleRefusal(bundle.key, why)
        for state in (subscription.state for subscription in bundle.subscriptions):
            if state is not None:
                budget, text = self.state.budget, state.definition
                if reason := budget.refusal_reason(text, self.conditions, client, self.now):
                    return BundleRefusal(bundle.key, reason)
        return None

    def on_refusal(self, sender: Peer, refusal: BundleRefusal) -> None:
        """Forward a peer's refusal of a bundle to the connection from which the bundle came."""
        stored = self.routing.in_force.get(refusal.bundle)
        if stored is not None and sender in stored.sent:
            self.routing.record_withdrawn(stored, sender)
            for watch in self.watching.of(stored):
                watch.on_withdrawn(sender)
            self.emit(Send(stored.source, refusal))

    def forward(self, sender: Peer, bundle: Bundle, stored: StoredBundle | None = None) -> None:
        """Send a new bundle to every peer that needs it, and pass its events to the watched conditions.

        Peers that an express slip names come first; peers that match come next [B46].
        """
        assert bundle.context is not None
        seen = content_of(bundle.context, self.now)
        if not passes_any(bundle.outgoing, seen):
            self.state.counted["stopped by its own filter"] += 1
            return
        hidden = stored.covered if stored else frozenset()
        found: Slips = {}
        if self.memoize:
            found = dict.fromkeys(self.routing.express_peers(bundle, seen, sender, hidden), bundle.express)
            self.state.counted["express"] += len(found)
        found |= self.routing.match(bundle, seen, AllExcept(self.routing.links, {sender, *found}), hidden)
        watched = self.watched_events(bundle, seen, sender)
        for watch, _, passed in watched:
            if passed:
                found.setdefault(watch.peer, None)
        for peer, slip in found.items():
            self.send(peer, bundle, slip, stored)
        for watch, event, _ in watched:
            if watch.peer in found:
                watch.on_forwarded(event, self.emitter)

    def watched_events(
        self, bundle: Bundle, view: Content, sender: Peer
    ) -> list[tuple[ConditionWatch, Any, bool]]:
        """Return the watches for which the bundle's events are relevant, each with the event and whether it
        passes.
        """
        peers, accepting = AllExcept(self.watching.watches, {sender}), self.routing.accepting["notification"]
        return [
            (watch, event, watch.should_forward(event, sender, self.emitter))
            for notification in (bundle.notifications if peers else ())
            for watch, event in self.watching.matching_watches(notification.content, peers, view)
            if watch.peer in accepting
        ]

    # --- timers ---

    def on_timer(self, timer: str) -> None:
        """Handle a timer: either leases have expired, or a hosted condition is due."""
        if timer == LEASES:
            self.expire_leases()
        elif timer in self.watching.hosts:
            self.watching.hosts[timer].on_timer(self.emitter)

    def renew_leases(self, sender: Peer, keys: Iterable[BundleKey]) -> None:
        """Restart the leases of bundles here and at every peer that has received these bundles."""
        onward: dict[Peer, list[BundleKey]] = {}
        for key in keys:
            if stored := self.find_stored(sender, key):
                self.state.leases.begin(stored, self.now)
                for peer in stored.sent:
                    onward.setdefault(peer, []).append(key)
        for peer, peer_keys in onward.items():
            self.emit(Send(peer, Renewal(tuple(peer_keys)), cause="renewal"))

    def expire_leases(self) -> None:
        """Withdraw the bundles whose leases have expired."""
        for stored in self.state.leases.pop_expired(self.now, self.find_stored):
            self.state.counted["expired"] += 1
            self.withdraw(stored.source, [(stored, stored.bundle)])
