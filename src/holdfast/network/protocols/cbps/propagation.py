"""Propagation of stored bundles: sends each bundle to the peers that need it, and withdraws it from others.

The forwarded bundles are at all times exactly those that the known advertisements and subscriptions require.
There is one exception: a bundle that becomes covered later is not withdrawn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Set
from functools import partial
from itertools import chain

from msgspec.structs import replace

from ....model.instant import Instant
from ....model.protocol import Effect, Peer, Send
from .bundle import (
    compile_conditions,
    for_next_hop,
    has_interest,
    has_stored_part,
    is_source,
    main_kind,
    restrict_to,
)
from .condition import CompileCondition
from .context import content_of, context_on_departure
from .database import Item
from .message import (
    Bundle,
    BundleKey,
    ExpressSlip,
    Kind,
    SubscriptionRef,
    UnadvertiseBundle,
    UnsubscribeBundle,
)
from .routing import Hidden, RoutingChange, RoutingTable, Slips, StoredBundle
from .shared_index import AllExcept
from .watch import Emitter
from .watch_table import WatchTable


class BundlePropagation:
    """Propagates stored bundles while one input is handled; ``effects`` collects the result."""

    def __init__(
        self,
        routing: RoutingTable,
        watching: WatchTable,
        now: Instant,
        conditions: CompileCondition,
        memoize: bool,
    ) -> None:
        self.routing, self.watching = routing, watching
        self.now, self.conditions, self.memoize = now, conditions, memoize
        self.effects: list[Effect] = []
        self.emit = self.effects.append
        self.emitter = Emitter(now, self.emit)
        self._outgoing: dict[tuple[int, ExpressSlip | None, frozenset[Kind]], tuple[Bundle, Bundle]] = {}

    # --- sending ---

    def send(self, peer: Peer, bundle: Bundle, slip: ExpressSlip | None, stored: StoredBundle | None) -> None:
        """Send a bundle to a connection, and record this if the peer stores it."""
        outgoing = self._for_kinds(bundle, slip, self.routing.links[peer])
        self.emit(Send(peer, outgoing, cause=main_kind(outgoing)))
        if stored is not None and has_stored_part(outgoing):
            self.routing.record_sent(stored, peer)
            for watch in self.watching.of(stored):
                watch.notify_peers(self.emitter)

    def _for_kinds(self, bundle: Bundle, slip: ExpressSlip | None, kinds: frozenset[Kind]) -> Bundle:
        """Return a bundle as sent to peers that accept these kinds. All of these peers get the same message
        object.
        """
        express = slip if self.memoize and "subscription" in kinds else None
        cache_key = id(bundle), express, kinds
        if cache_key not in self._outgoing:
            assert bundle.context is not None
            context = context_on_departure(bundle.context, self.now)
            shifted = bundle if is_source(kinds) else for_next_hop(bundle)
            outgoing = restrict_to(replace(shifted, context=context, express=express), kinds)
            self._outgoing[cache_key] = bundle, outgoing  # with the bundle, so that its id stays its own
        return self._outgoing[cache_key][1]

    def offer(self, stored: StoredBundle, peers: Collection[Peer]) -> None:
        """Send a stored bundle to those of ``peers`` that need it and do not have it."""
        lacking = AllExcept(peers, {stored.source, *stored.sent})
        for peer, slip in self._peers_needing(stored, lacking, stored.covered).items():
            self.send(peer, stored.bundle, slip, stored)

    def _peers_needing(self, stored: StoredBundle, peers: Set[Peer], hidden: Hidden = ()) -> Slips:
        """Return those of ``peers`` that need a stored bundle, each with the express slip for its match."""
        assert stored.bundle.context is not None
        seen = content_of(stored.bundle.context, self.now)
        return self.routing.match(stored.bundle, seen, peers, hidden)

    # --- coming and going ---

    def activate(self, stored: StoredBundle, spread: Callable[[], None]) -> None:
        """Put a bundle in force, then send the bundles that depend on it. ``spread`` sends the bundle itself
        to the peers that need it.
        """
        change = self.routing.activate(stored)
        for i, condition in compile_conditions(stored.bundle, self.conditions).items():
            self.watching.start(stored, SubscriptionRef(stored.bundle.key, i), condition)
        spread()
        self.apply_change(stored.source, change)
        for subscription in stored.bundle.subscriptions:
            for addressed in self.routing.bundles_addressed_to(subscription.filter, stored.source):
                self.offer(addressed, [stored.source])

    def apply_change(self, peer: Peer, change: RoutingChange) -> None:
        """Send and withdraw bundles after a change.

        Bundles are sent where new advertisements or newly active subscriptions require them. They are
        withdrawn where only removed advertisements required them.
        """
        added = chain.from_iterable(self.watching.add_advertisement(peer, item) for item in change.activated)
        gone = chain.from_iterable(self.watching.remove_advertisement(peer, i) for i in change.deactivated)
        watches = dict.fromkeys(chain(added, gone))
        if peer in self.routing.links:
            for item in change.activated:
                self.offer(item.bundle, self.routing.links)
                for stored in self.routing.interested_bundles(item, peer):
                    self.offer(stored, [peer])
            for stored in change.restored:
                self.offer(stored, self.routing.links)
            for item in change.deactivated:
                self._withdraw_unneeded(peer, item)
        for watch in watches:
            watch.notify_peers(self.emitter)

    def _withdraw_unneeded(self, peer: Peer, advertisement: Item) -> None:
        """Withdraw from a connection the bundles that only the advertisement required which it withdrew."""
        covered = (stored for stored in self.routing.in_force.values() if stored.covered)
        for stored in dict.fromkeys(chain(self.routing.interested_bundles(advertisement, peer), covered)):
            self.withdraw_unused(peer, stored)

    def withdraw_unused(self, peer: Peer, stored: StoredBundle) -> None:
        """Withdraw a bundle from a connection that does not need it, unless the peer has the state of a
        condition.
        """
        if peer not in stored.sent or any(watch.must_stay_at(peer) for watch in self.watching.of(stored)):
            return
        if peer not in self._peers_needing(stored, {peer}):
            self._retract(stored, stored.bundle, peer)

    def withdraw(self, peer: Peer, withdrawn: Iterable[tuple[StoredBundle, Bundle]]) -> None:
        """Forget parts of a connection's bundles.

        Bundles that were covered by these are sent before the withdrawal, so that no subscription is missing
        in between. Then bundles that wait for the same key come in force.
        """
        change = RoutingChange()
        withdrawn = [(stored, part) for stored, part in withdrawn if has_stored_part(part)]
        for stored, part in withdrawn:
            for watch in self.watching.of(stored) if part.subscriptions else ():
                self.watching.stop(watch, self.emitter)
            self.routing.withdraw(stored, part, change)
        self.apply_change(peer, change)
        for stored, part in withdrawn:
            for peer_above in list(stored.sent):
                self._retract(stored, part, peer_above)
        for stored, _ in withdrawn:
            if successor := self.routing.successor(stored.bundle.key):
                self.activate(successor, partial(self.offer, successor, self.routing.links))

    def _retract(self, stored: StoredBundle, part: Bundle, peer: Peer) -> None:
        """Withdraw a part of a bundle from a connection, or the whole bundle if the rest is not
        needed there.
        """
        whole = part is stored.bundle or not has_stored_part(stored.bundle)
        rest = not whole and peer in self._peers_needing(stored, {peer})
        if part.advertisements or (stored.bundle.advertisements and not rest):
            self.emit(Send(peer, UnadvertiseBundle(stored.bundle.key)))
        if has_interest(part) or (has_interest(stored.bundle) and not rest):
            self.emit(Send(peer, UnsubscribeBundle(stored.bundle.key)))
        if not rest:
            self.routing.record_withdrawn(stored, peer)
            for watch in self.watching.of(stored):
                watch.on_withdrawn(peer)

    # --- looking up ---

    def find_stored(self, peer: Peer, key: BundleKey) -> StoredBundle | None:
        """Return the bundle with a key that a connection has stored; ``None`` if there is none."""
        return self.routing.bundles.get(peer, {}).get(key)
