"""Who gets a bundle: the forwarding database of a broker and the questions put to it.

A bundle goes, whole and once, to each connection for which a part of it qualifies.  [B15]
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import chain

from ...model.instant import Instant
from ...model.protocol import Peer
from . import content
from .bundle import (
    has_interest,
    is_stored,
    kinds_of,
    onward,
    without_advertisements,
    without_interest,
)
from .content import Box, Content, Filter
from .context import passes
from .crowd import MANY, Crowd, gathered
from .database import Database, Item, Table
from .express import Twins
from .message import Bundle, ExpressSlip, Key, Kind, Part, SlipType
from .parts import Address, addresses, flooding, has_address, items, state_items

NOTHING: frozenset[Hashable] = frozenset()
TWIN: dict[content.Kind, SlipType] = {"advertisement": "subscription", "subscription": "notification"}
"""Of which type the slips are that find a stored item by its twin."""


@dataclass(slots=True, eq=False)
class Stored:
    """A bundle as a connection has given it: where it went since, and which of its parts are covered."""

    bundle: Bundle
    source: Peer
    sent: dict[Peer, None] = field(default_factory=dict)
    """Written by `Routing.went` and `Routing.returned` alone."""
    hidden: set[Hashable] = field(default_factory=set)
    expires: Instant | None = None
    size: int = 0


@dataclass(slots=True)
class Change:
    """What storing or withdrawing changed: advertisements that came in sight or went out of it, and
    bundles with a subscription that is in sight again."""

    came: list[Item] = field(default_factory=list)
    went: list[Item] = field(default_factory=list)
    restored: list[Stored] = field(default_factory=list)


@dataclass(slots=True)
class Routing:
    """The connections of a broker with what they accept, and all that they have stored.

    A bundle comes by one way.  While the network changes it may for a time be known from two
    connections; the one that was first is in force, and the other waits until that is withdrawn.

    Subscriptions with a state filter are kept apart, in one table for all connections: every one that
    an event matches must see it, so no search among them stops early.  Equal ones are one item, which
    has those who want it for its bundle [S7].
    """

    links: dict[Peer, frozenset[Kind]] = field(default_factory=dict)
    accepting: defaultdict[Kind, set[Peer]] = field(default_factory=lambda: defaultdict(set))
    bundles: dict[Peer, dict[Key, Stored]] = field(default_factory=dict)
    sizes: Counter[Peer] = field(default_factory=Counter)
    """Bytes that each connection has stored."""
    in_force: dict[Key, Stored] = field(default_factory=dict)
    waiting: dict[Key, dict[Peer, Stored]] = field(default_factory=dict)
    sent: dict[Peer, dict[Stored, None]] = field(default_factory=dict)
    """What has been sent on to each connection."""
    database: Database = field(default_factory=Database)
    states: Table = field(default_factory=lambda: Table("subscription"))
    twins: Twins = field(default_factory=Twins)
    crowd: Crowd | None = None
    changed: dict[Key, None] | None = None
    """Which bundles came in force, or changed, or went, where somebody wants to know."""

    def __len__(self) -> int:
        """How much is stored; nothing, when everything is withdrawn."""
        bundles = sum(map(len, self.bundles.values())) + len(self.in_force) + len(self.waiting)
        sent = sum(map(len, self.sent.values()))
        return bundles + sent + len(self.database) + len(self.states) + len(self.twins)

    def link(self, peer: Peer, kinds: Collection[Kind]) -> None:
        """There is a connection, which accepts these kinds."""
        self.unlink(peer)
        self.links[peer] = frozenset(kinds)
        for kind in kinds:
            self.accepting[kind].add(peer)

    def unlink(self, peer: Peer) -> None:
        """There is none any more."""
        for kind in self.links.pop(peer, ()):
            self.accepting[kind].discard(peer)

    def went(self, stored: Stored, peer: Peer) -> None:
        """A bundle has been sent on, and is stored there."""
        stored.sent[peer] = None
        self.sent.setdefault(peer, {})[stored] = None

    def returned(self, stored: Stored, peer: Peer) -> None:
        """It is not any more."""
        del stored.sent[peer], self.sent[peer][stored]
        if not self.sent[peer]:
            del self.sent[peer]

    # --- storing ---

    def keep(self, stored: Stored) -> bool:
        """Remember a bundle of a connection; whether it may come in force."""
        key = stored.bundle.key
        self.bundles.setdefault(stored.source, {})[key] = stored
        self.sizes[stored.source] += stored.size
        if key in self.in_force:
            self.waiting.setdefault(key, {})[stored.source] = stored
            return False
        return True

    def successor(self, key: Key) -> Stored | None:
        """The bundle that waits to take the place of one that was withdrawn, if any."""
        waiting = self.waiting.get(key)
        if not waiting or key in self.in_force:
            return None
        return self._stop_waiting(next(iter(waiting.values())))

    def _stop_waiting(self, stored: Stored) -> Stored:
        key = stored.bundle.key
        del self.waiting[key][stored.source]
        if not self.waiting[key]:
            del self.waiting[key]
        return stored

    def enforce(self, stored: Stored) -> Change:
        """Put a bundle in force; covering is looked at among what its connection has stored.  [B12]"""
        self.in_force[stored.bundle.key] = stored
        self._note(stored)
        change = Change()
        for part, item in state_items(stored.bundle):
            if item.key not in self.states:
                self.states.insert(item)
            self.alike(item)[part] = stored
        for kind, item in items(stored.bundle, stored):
            inserted = self.database.insert(stored.source, kind, item)
            if inserted.covered_by is not None:
                stored.hidden.add(item.key)
            for other in inserted.covered:
                other.bundle.hidden.add(other.key)
            self._in_crowd(stored.source, kind, () if inserted.covered_by else (item,), inserted.covered)
            if kind in TWIN:
                self.twins.add(stored.source, TWIN[kind], item)
            if kind == "advertisement":
                change.came.extend([] if inserted.covered_by else [item])
                change.went.extend(inserted.covered)
        return change

    def withdraw(self, stored: Stored, part: Bundle, change: Change) -> None:
        """Forget a part of a bundle; what that covered is in sight again."""
        in_force = self.in_force.get(stored.bundle.key) is stored
        if in_force:
            self._note(stored)
            self._retire(stored, part, change)
        rest = without_advertisements(stored.bundle) if part.advertisements else stored.bundle
        stored.bundle = without_interest(rest) if has_interest(part) else rest
        if is_stored(stored.bundle):
            return
        if in_force:
            del self.in_force[stored.bundle.key]
        else:
            self._stop_waiting(stored)
        del self.bundles[stored.source][stored.bundle.key]
        self.sizes[stored.source] -= stored.size
        if not self.bundles[stored.source]:
            del self.bundles[stored.source], self.sizes[stored.source]

    def _note(self, stored: Stored) -> None:
        if self.changed is not None:
            self.changed[stored.bundle.key] = None

    def _retire(self, stored: Stored, part: Bundle, change: Change) -> None:
        for place, item in state_items(part):
            alike = self.alike(item)
            del alike[place]
            if not alike:
                self.states.delete(item.key)
        for kind, item in items(part, stored):
            deleted = self.database.delete(stored.source, kind, item.key)
            assert deleted is not None
            stored.hidden.discard(item.key)
            for other in deleted.restored:
                other.bundle.hidden.discard(other.key)
            self._in_crowd(stored.source, kind, deleted.restored, (item,) if deleted.active else ())
            if kind in TWIN:
                self.twins.remove(stored.source, TWIN[kind], item)
            if kind == "advertisement":
                change.went.extend([item] if deleted.active else [])
                change.came.extend(deleted.restored)
            else:
                change.restored.extend(other.bundle for other in deleted.restored)

    def alike(self, item: Item) -> dict[Part, Stored]:
        """The subscriptions that are one item of the table of state filters."""
        found = self.states.get(item.key)
        assert found is not None
        return found.bundle

    def watchers(self, row: content.Kind, box: Box) -> Iterator[Mapping[Part, Stored]]:
        """The state filters that something matches: for each, those who want it."""
        for item in self.states.search(box, content.MATCHES[row, "subscription"]):
            yield item.bundle

    def _in_crowd(self, peer: Peer, kind: content.Kind, came: Iterable[Item], went: Iterable[Item]) -> None:
        if self.crowd is not None:
            for item in went:
                self.crowd.hide(peer, kind, item)
            for item in came:
                self.crowd.show(peer, kind, item)

    def _gather(self) -> Crowd | None:
        """The crowd, if there is one."""
        if len(self.links) <= MANY:
            self.crowd = None
        elif self.crowd is None:
            self.crowd = gathered(self.database)
        return self.crowd

    # --- matching ---

    def match(
        self, bundle: Bundle, seen: Content, peers: Set[Peer], hidden: Collection[Hashable] = NOTHING
    ) -> dict[Peer, ExpressSlip | None]:
        """The connections for which a part of a bundle qualifies, each with the twin of what it matched.

        ``seen`` is the bundle's context, as the filters of what it matches see it.
        """
        if not passes(bundle.outgoing, seen):
            return {}
        if bundle.incoming and (sources := self.sources & peers):
            found = self._match(bundle, seen, sources, hidden)
            return dict(sorted((found | self._match(onward(bundle), seen, peers - sources, hidden)).items()))
        return self._match(onward(bundle), seen, peers, hidden)

    @property
    def sources(self) -> set[Peer]:
        """Publishers that run replicas themselves: no broker stands between them and what they say."""
        return self.accepting["subscription"] - self.accepting["advertisement"]

    def _match(
        self, bundle: Bundle, seen: Content, peers: Set[Peer], hidden: Collection[Hashable]
    ) -> dict[Peer, ExpressSlip | None]:
        kinds = kinds_of(bundle)
        floods = set[Peer]().union(*(peers & self.accepting[kind] for kind in flooding(bundle, hidden)))
        found: dict[Peer, ExpressSlip | None] = dict.fromkeys(floods)
        for address in addresses(bundle, hidden):
            needs = kinds if address.needs is None else {address.needs}
            found |= self._reached(address, seen, peers - found.keys(), needs)
        return dict(sorted(found.items()))

    def _reached(
        self, address: Address, seen: Content, peers: Set[Peer], needs: Set[Kind]
    ) -> dict[Peer, ExpressSlip | None]:
        """Those of some connections that an address leads to; each must accept one of the kinds it needs."""
        found: dict[Peer, ExpressSlip | None] = {}

        def accepts(peer: Peer) -> bool:
            return not self.links.get(peer, NOTHING).isdisjoint(needs)

        def take(peer: Peer, item: Item) -> bool:
            if not accepts(peer) or not passes(item.bundle.bundle.incoming, seen):
                return False
            found[peer] = ExpressSlip(TWIN[address.column], item.filter.digest)
            return True

        if len(peers) <= MANY or not self._look_around(address, peers, take):
            rest = filter(accepts, peers - found.keys())
            self.database.find_matches(address.row, address.box, address.column, rest, take)
        if address.row == "notification slip":
            for alike in self.watchers(address.row, address.box):
                for stored in alike.values():
                    source = stored.source
                    if source in peers and accepts(source) and passes(stored.bundle.incoming, seen):
                        found.setdefault(source, None)
        return found

    def _look_around(self, address: Address, peers: Set[Peer], take: Callable[[Peer, Item], bool]) -> bool:
        """Search among all connections at once; false if there are so many matches that the rest is
        found sooner connection by connection."""
        crowd, taken = self._gather(), set[Peer]()
        assert crowd is not None
        for i, (peer, item) in enumerate(crowd.search(address.row, address.box, address.column)):
            if i > MANY * len(peers):
                return False
            if peer in peers and peer not in taken and take(peer, item):
                taken.add(peer)
        return True

    def express(
        self, bundle: Bundle, seen: Content, source: Peer, hidden: Collection[Hashable] = NOTHING
    ) -> list[Peer]:
        """The other connections that have stored what a bundle is known to match.  [B46]"""
        slip = bundle.express
        if slip is None or not has_address(onward(bundle), hidden, slip.type):
            return []
        return [
            peer
            for peer, items in self.twins.find(slip).items()
            if peer != source
            and peer in self.accepting[slip.type]
            and any(passes(item.bundle.bundle.incoming, seen) for item in items)
        ]

    def interested(self, advertisement: Item, peer: Peer) -> list[Stored]:
        """The bundles of other connections with an interest, in sight, in an advertisement.  [B10]"""
        box = advertisement.filter.box
        watchers = chain.from_iterable(alike.values() for alike in self.watchers("advertisement", box))
        found = [
            *self._all("advertisement", box, "subscription", peer),
            *self._all("advertisement", box, "subscription slip", peer),
            *(stored for stored in watchers if stored.source != peer),
        ]
        return list(dict.fromkeys(found))

    def addressed_to(self, subscribed: Filter, peer: Peer) -> list[Stored]:
        """The bundles of other connections that are addressed to a subscription."""
        return self._all("subscription", subscribed.box, "notification slip", peer)

    def _all(self, row: content.Kind, box: Box, column: content.Kind, peer: Peer) -> list[Stored]:
        """The bundles of all connections but one with something that an item matches."""
        if (crowd := self._gather()) is not None:
            return [item.bundle for other, item in crowd.search(row, box, column) if other != peer]
        found: list[Stored] = []

        def take(_: Peer, item: Item) -> bool:
            found.append(item.bundle)
            return False

        others = [other for other in self.database.peers(column) if other != peer]
        self.database.find_matches(row, box, column, others, take)
        return found
