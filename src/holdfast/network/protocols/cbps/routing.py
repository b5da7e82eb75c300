"""The routing tables of a broker, and the search for the peers to which a bundle goes.

A bundle goes, whole and once, to each connection for which one of its parts qualifies. [B15]
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field

from ....model.instant import Instant
from ....model.protocol import Peer
from . import content
from .bundle import (
    for_next_hop,
    has_interest,
    has_stored_part,
    kinds_of,
    without_advertisements,
    without_interest,
)
from .content import Box, Content, Filter
from .context import passes_any
from .database import ForwardingDatabase, Item, ItemTable
from .express import Twins
from .message import Bundle, BundleKey, ExpressSlip, Kind, SlipType, SubscriptionRef
from .parts import PartAddress, addresses, database_items, has_address, kinds_to_flood, state_items
from .shared_index import MANY, SharedIndex, build_shared_index

Slips = dict[Peer, ExpressSlip | None]
"""The connections to which a bundle goes, each with the express slip for its match."""
Hidden = Collection[Hashable]
"""The keys of covered items. A bundle is not sent because of these items."""
NO_KEYS: frozenset[Hashable] = frozenset()
TWIN: dict[content.Kind, SlipType] = {"advertisement": "subscription", "subscription": "notification"}
"""The type of express slips that find a stored item of each kind."""


@dataclass(slots=True, eq=False)
class StoredBundle:
    """A bundle that a connection has stored, with the peers to which it was sent and its covered parts."""

    bundle: Bundle
    source: Peer
    sent: dict[Peer, None] = field(default_factory=dict)
    """The peers to which the bundle was sent, as an ordered set. Only `RoutingTable.record_sent` and
    `RoutingTable.record_withdrawn` may change it.
    """
    covered: set[Hashable] = field(default_factory=set)
    expires: Instant | None = None
    size: int = 0


@dataclass(slots=True)
class RoutingChange:
    """The effect of storing or withdrawing a bundle.

    ``activated`` and ``deactivated`` are advertisements that became active or inactive. ``restored`` are
    bundles with a subscription that became active.
    """

    activated: list[Item] = field(default_factory=list)
    deactivated: list[Item] = field(default_factory=list)
    restored: list[StoredBundle] = field(default_factory=list)


@dataclass(slots=True)
class RoutingTable:
    """The connections of a broker, with the kinds that they accept and all bundles that they have stored.

    A bundle comes by one path. While the network changes, the same bundle may come from two connections. The
    first is then in force, and the second waits until the first is withdrawn.

    Subscriptions with a state filter have one table for all connections. Every matching subscription must
    process an event, so a search among them never stops early. Equal subscriptions are one item, whose
    ``bundle`` is the dict of all subscriptions that share it [S7].
    """

    links: dict[Peer, frozenset[Kind]] = field(default_factory=dict)
    accepting: defaultdict[Kind, set[Peer]] = field(default_factory=lambda: defaultdict(set))
    bundles: dict[Peer, dict[BundleKey, StoredBundle]] = field(default_factory=dict)
    sizes: Counter[Peer] = field(default_factory=Counter)
    """The number of bytes that each connection has stored."""
    in_force: dict[BundleKey, StoredBundle] = field(default_factory=dict)
    waiting: dict[BundleKey, dict[Peer, StoredBundle]] = field(default_factory=dict)
    sent: dict[Peer, dict[StoredBundle, None]] = field(default_factory=dict)
    """The bundles that have been sent to each connection."""
    database: ForwardingDatabase = field(default_factory=ForwardingDatabase)
    states: ItemTable = field(default_factory=lambda: ItemTable("subscription"))
    twins: Twins = field(default_factory=Twins)
    shared_index: SharedIndex | None = None
    changed: dict[BundleKey, None] | None = None
    """The keys of bundles that came in force, changed or were withdrawn; ``None`` unless a host reads
    them.
    """

    def __len__(self) -> int:
        """Return the number of stored entries; 0 when all bundles are withdrawn."""
        bundles = sum(map(len, self.bundles.values())) + len(self.in_force) + len(self.waiting)
        sent = sum(map(len, self.sent.values()))
        return bundles + sent + len(self.database) + len(self.states) + len(self.twins)

    def link(self, peer: Peer, kinds: Collection[Kind]) -> None:
        """Add a connection, or change the kinds that it accepts."""
        self.unlink(peer)
        self.links[peer] = frozenset(kinds)
        for kind in kinds:
            self.accepting[kind].add(peer)

    def unlink(self, peer: Peer) -> None:
        """Remove a connection and the kinds that it accepts."""
        for kind in self.links.pop(peer, ()):
            self.accepting[kind].discard(peer)

    def record_sent(self, stored: StoredBundle, peer: Peer) -> None:
        """Record that a bundle has been sent to a peer and is stored there."""
        stored.sent[peer] = None
        self.sent.setdefault(peer, {})[stored] = None

    def record_withdrawn(self, stored: StoredBundle, peer: Peer) -> None:
        """Record that a bundle is no longer stored at a peer."""
        del stored.sent[peer], self.sent[peer][stored]
        if not self.sent[peer]:
            del self.sent[peer]

    # --- storing ---

    def add(self, stored: StoredBundle) -> bool:
        """Store a bundle of a connection; return whether it may come in force."""
        key = stored.bundle.key
        self.bundles.setdefault(stored.source, {})[key] = stored
        self.sizes[stored.source] += stored.size
        if key in self.in_force:
            self.waiting.setdefault(key, {})[stored.source] = stored
            return False
        return True

    def successor(self, key: BundleKey) -> StoredBundle | None:
        """Return a bundle that waits to replace a withdrawn bundle; ``None`` if there is none."""
        waiting = self.waiting.get(key)
        if not waiting or key in self.in_force:
            return None
        return self._stop_waiting(next(iter(waiting.values())))

    def _stop_waiting(self, stored: StoredBundle) -> StoredBundle:
        key = stored.bundle.key
        del self.waiting[key][stored.source]
        if not self.waiting[key]:
            del self.waiting[key]
        return stored

    def activate(self, stored: StoredBundle) -> RoutingChange:
        """Put a bundle in force, and check covering among the bundles of its connection. [B12]"""
        self.in_force[stored.bundle.key] = stored
        self._mark_changed(stored)
        change = RoutingChange()
        for part, item in state_items(stored.bundle):
            if item.key not in self.states:
                self.states.insert(item)
            self.equal_subscriptions(item)[part] = stored
        for kind, item in database_items(stored.bundle, stored):
            inserted = self.database.insert(stored.source, kind, item)
            if inserted.covered_by is not None:
                stored.covered.add(item.key)
            for other in inserted.covered:
                other.bundle.covered.add(other.key)
            active = [] if inserted.covered_by else [item]
            self._index(stored.source, kind, active, inserted.covered)
            if kind in TWIN:
                self.twins.add(stored.source, TWIN[kind], item)
            if kind == "advertisement":
                change.activated += active
                change.deactivated += inserted.covered
        return change

    def withdraw(self, stored: StoredBundle, part: Bundle, change: RoutingChange) -> None:
        """Forget a part of a bundle. Items that only this part covered become active."""
        in_force = self.in_force.get(stored.bundle.key) is stored
        if in_force:
            self._mark_changed(stored)
            self._retire(stored, part, change)
        rest = without_advertisements(stored.bundle) if part.advertisements else stored.bundle
        stored.bundle = without_interest(rest) if has_interest(part) else rest
        if has_stored_part(stored.bundle):
            return
        if in_force:
            del self.in_force[stored.bundle.key]
        else:
            self._stop_waiting(stored)
        del self.bundles[stored.source][stored.bundle.key]
        self.sizes[stored.source] -= stored.size
        if not self.bundles[stored.source]:
            del self.bundles[stored.source], self.sizes[stored.source]

    def _mark_changed(self, stored: StoredBundle) -> None:
        if self.changed is not None:
            self.changed[stored.bundle.key] = None

    def _retire(self, stored: StoredBundle, part: Bundle, change: RoutingChange) -> None:
        """Remove the items of a part of a bundle in force, and record the effect in ``change``."""
        for place, item in state_items(part):
            alike = self.equal_subscriptions(item)
            del alike[place]
            if not alike:
                self.states.delete(item.key)
        for kind, item in database_items(part, stored):
            deleted = self.database.delete(stored.source, kind, item.key)
            assert deleted is not None
            stored.covered.discard(item.key)
            for other in deleted.restored:
                other.bundle.covered.discard(other.key)
            gone = [item] if deleted.was_active else []
            self._index(stored.source, kind, deleted.restored, gone)
            if kind in TWIN:
                self.twins.remove(stored.source, TWIN[kind], item)
            if kind == "advertisement":
                change.deactivated += gone
                change.activated += deleted.restored
            else:
                change.restored += (other.bundle for other in deleted.restored)

    def equal_subscriptions(self, item: Item) -> dict[SubscriptionRef, StoredBundle]:
        """Return the subscriptions that share one item of the table of state filters."""
        found = self.states.get(item.key)
        assert found is not None
        return found.bundle

    def matching_subscriptions(
        self, row: content.Kind, box: Box
    ) -> Iterator[Mapping[SubscriptionRef, StoredBundle]]:
        """Yield, for each matching state filter, the subscriptions that share it."""
        for item in self.states.search(box, content.MATCHES[row, "subscription"]):
            yield item.bundle

    def _index(self, peer: Peer, kind: content.Kind, new: Iterable[Item], gone: Iterable[Item]) -> None:
        """Update the shared index, if there is one, after items became active or inactive."""
        if self.shared_index is not None:
            for item in gone:
                self.shared_index.remove(peer, kind, item)
            for item in new:
                self.shared_index.add(peer, kind, item)

    def _shared_index(self) -> SharedIndex | None:
        """Return the shared index if there are many connections; otherwise ``None``."""
        if len(self.links) <= MANY:
            self.shared_index = None
        elif self.shared_index is None:
            self.shared_index = build_shared_index(self.database)
        return self.shared_index

    # --- matching ---

    def match(self, bundle: Bundle, seen: Content, peers: Set[Peer], hidden: Hidden = NO_KEYS) -> Slips:
        """Return the connections for which a part of a bundle qualifies, each with an express slip for its
        match.

        ``seen`` is the bundle's context, to which the filters of the matched items apply.
        """
        if not passes_any(bundle.outgoing, seen):
            return {}
        if bundle.incoming and (sources := self.sources & peers):
            found = self._match(bundle, seen, sources, hidden)
            others = self._match(for_next_hop(bundle), seen, peers - sources, hidden)
            return dict(sorted((found | others).items()))
        return self._match(for_next_hop(bundle), seen, peers, hidden)

    @property
    def sources(self) -> set[Peer]:
        """The publishers that run replicas themselves. They receive subscriptions without the change for the
        next hop.
        """
        return self.accepting["subscription"] - self.accepting["advertisement"]

    def _match(self, bundle: Bundle, seen: Content, peers: Set[Peer], hidden: Hidden) -> Slips:
        kinds = kinds_of(bundle)
        floods = set[Peer]().union(*(peers & self.accepting[kind] for kind in kinds_to_flood(bundle, hidden)))
        found: Slips = dict.fromkeys(floods)
        for address in addresses(bundle, hidden):
            needs = kinds if address.needs is None else {address.needs}
            found |= self._peers_for(address, seen, peers - found.keys(), needs)
        return dict(sorted(found.items()))

    def _peers_for(self, address: PartAddress, seen: Content, peers: Set[Peer], needs: Set[Kind]) -> Slips:
        """Return the connections to which an address leads. Each must accept one of the kinds in
        ``needs``.
        """
        found: Slips = {}

        def accepts(peer: Peer) -> bool:
            return not self.links.get(peer, NO_KEYS).isdisjoint(needs)

        def take(peer: Peer, item: Item) -> bool:
            if not accepts(peer) or not passes_any(item.bundle.bundle.incoming, seen):
                return False
            found[peer] = ExpressSlip(TWIN[address.column], item.filter.digest)
            return True

        if len(peers) <= MANY or not self._search_shared_index(address, peers, take):
            rest = filter(accepts, peers - found.keys())
            self.database.find_matches(address.row, address.box, address.column, rest, take)
        if address.row == "notification slip":
            for alike in self.matching_subscriptions(address.row, address.box):
                for stored in alike.values():
                    source = stored.source
                    if source in peers and accepts(source) and passes_any(stored.bundle.incoming, seen):
                        found.setdefault(source, None)
        return found

    def _search_shared_index(
        self, address: PartAddress, peers: Set[Peer], take: Callable[[Peer, Item], bool]
    ) -> bool:
        """Search the shared index; return false if it has so many matches that a search by connection is
        faster.
        """
        shared_index, accepted = self._shared_index(), set[Peer]()
        assert shared_index is not None
        for i, (peer, item) in enumerate(shared_index.search(address.row, address.box, address.column)):
            if i > MANY * len(peers):
                return False
            if peer in peers and peer not in accepted and take(peer, item):
                accepted.add(peer)
        return True

    def express_peers(
        self, bundle: Bundle, seen: Content, source: Peer, hidden: Hidden = NO_KEYS
    ) -> list[Peer]:
        """Return the other connections that have stored the item named by a bundle's express slip. [B46]"""
        slip = bundle.express
        if slip is None or not has_address(for_next_hop(bundle), hidden, slip.type):
            return []
        return [
            peer
            for peer, items in self.twins.find(slip).items()
            if peer != source
            and peer in self.accepting[slip.type]
            and any(passes_any(item.bundle.bundle.incoming, seen) for item in items)
        ]

    def interested_bundles(self, advertisement: Item, peer: Peer) -> list[StoredBundle]:
        """Return the bundles of other connections with an active interest in an advertisement. [B10]"""
        box = advertisement.filter.box
        found = self._matching_bundles("advertisement", box, "subscription", peer)
        found += self._matching_bundles("advertisement", box, "subscription slip", peer)
        for alike in self.matching_subscriptions("advertisement", box):
            found += (stored for stored in alike.values() if stored.source != peer)
        return list(dict.fromkeys(found))

    def bundles_addressed_to(self, subscribed: Filter, peer: Peer) -> list[StoredBundle]:
        """Return the bundles of other connections that are addressed to a subscription."""
        return self._matching_bundles("subscription", subscribed.box, "notification slip", peer)

    def _matching_bundles(
        self, row: content.Kind, box: Box, column: content.Kind, peer: Peer
    ) -> list[StoredBundle]:
        """Return the bundles, of all connections except ``peer``, with a part that an item matches."""
        if (index := self._shared_index()) is not None:
            return [item.bundle for other, item in index.search(row, box, column) if other != peer]
        found: list[StoredBundle] = []

        def take(_: Peer, item: Item) -> bool:
            found.append(item.bundle)
            return False

        others = [other for other in self.database.peers(column) if other != peer]
        self.database.find_matches(row, box, column, others, take)
        return found
