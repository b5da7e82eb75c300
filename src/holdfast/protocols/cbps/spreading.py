"""How stored bundles spread: each goes where it is called for, and is taken back when it is not.

What a broker has sent on is at all times what the advertisements and subscriptions that it knows call
for, with one exception: what becomes covered later stays where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Set
from functools import partial
from itertools import chain

from msgspec.structs import replace

from ...model.instant import Instant
from ...model.protocol import Effect, Peer, Send
from .bundle import accepted, has_interest, is_source, is_stored, kind_of, onward
from .condition import Condition, Conditions
from .context import content_of, leaving
from .crowd import Others
from .database import Item
from .message import Bundle, ExpressSlip, Key, Kind, Part, Unadvertise, Unsubscribe
from .routing import Change, Routing, Stored
from .watch import Moment
from .watching import Watching


class Spreading:
    """The work on stored bundles that one input makes; ``effects`` is what comes of it."""

    def __init__(
        self, routing: Routing, watching: Watching, now: Instant, conditions: Conditions, memoize: bool
    ) -> None:
        self.routing, self.watching = routing, watching
        self.now, self.conditions, self.memoize = now, conditions, memoize
        self.effects: list[Effect] = []
        self.say = self.effects.append
        self.moment = Moment(now, self.say)
        self._made: dict[tuple[int, ExpressSlip | None, frozenset[Kind]], tuple[Bundle, Bundle]] = {}

    # --- sending ---

    def send(self, peer: Peer, bundle: Bundle, slip: ExpressSlip | None, stored: Stored | None) -> None:
        """Send a bundle to a connection, and remember it if it is stored there."""
        gone = self._outward(bundle, slip, self.routing.links[peer])
        self.say(Send(peer, gone, cause=kind_of(gone)))
        if stored is not None and is_stored(gone):
            self.routing.went(stored, peer)
            for watch in self.watching.of(stored):
                watch.tell(self.moment)

    def _outward(self, bundle: Bundle, slip: ExpressSlip | None, kinds: frozenset[Kind]) -> Bundle:
        """A bundle as peers get it that accept these kinds: one message for all of them."""
        express = slip if self.memoize and "subscription" in kinds else None
        made = id(bundle), express, kinds
        if made not in self._made:
            assert bundle.context is not None
            context = leaving(bundle.context, self.now)
            moved = bundle if is_source(kinds) else onward(bundle)
            gone = accepted(replace(moved, context=context, express=express), kinds)
            self._made[made] = bundle, gone  # with the bundle, so that its id stays its own
        return self._made[made][1]

    def offer(self, stored: Stored, peers: Collection[Peer]) -> None:
        """Send a stored bundle to those connections that should have it and have not."""
        lacking = Others(peers, {stored.source, *stored.sent})
        for peer, slip in self._wanting(stored, lacking, stored.hidden).items():
            self.send(peer, stored.bundle, slip, stored)

    def _wanting(
        self, stored: Stored, peers: Set[Peer], hidden: Collection[Hashable] = ()
    ) -> dict[Peer, ExpressSlip | None]:
        """The connections that should have a stored bundle."""
        assert stored.bundle.context is not None
        seen = content_of(stored.bundle.context, self.now)
        return self.routing.match(stored.bundle, seen, peers, hidden)

    # --- coming and going ---

    def enforce(self, stored: Stored, spread: Callable[[], None]) -> None:
        """Put a bundle in force: ``spread`` sends it where it should go, and the rest follows."""
        change = self.routing.enforce(stored)
        for part, condition in self.understood(stored.bundle).items():
            self.watching.begin(stored, part, condition)
        spread()
        self.settle(stored.source, change)
        for subscription in stored.bundle.subscriptions:
            for addressed in self.routing.addressed_to(subscription.filter, stored.source):
                self.offer(addressed, [stored.source])

    def understood(self, bundle: Bundle) -> dict[Part, Condition]:
        """The conditions of a bundle; an error if there is one that means nothing."""
        return {
            Part(bundle.key, i): self.conditions(subscription.state.definition)
            for i, subscription in enumerate(bundle.subscriptions)
            if subscription.state is not None
        }

    def settle(self, peer: Peer, change: Change) -> None:
        """Send on what is called for by advertisements of a connection that came and by subscriptions
        that are in sight again; take back what only advertisements that went called for."""
        came = chain.from_iterable(self.watching.advertised(peer, item) for item in change.came)
        went = chain.from_iterable(self.watching.unadvertised(peer, item) for item in change.went)
        concerned = dict.fromkeys(chain(came, went))
        if peer in self.routing.links:
            for item in change.came:
                self.offer(item.bundle, self.routing.links)
                for stored in self.routing.interested(item, peer):
                    self.offer(stored, [peer])
            for stored in change.restored:
                self.offer(stored, self.routing.links)
            for item in change.went:
                self._take_back(peer, item)
        for watch in concerned:
            watch.tell(self.moment)

    def _take_back(self, peer: Peer, advertisement: Item) -> None:
        """Withdraw from a connection what only an advertisement that it no longer makes called for."""
        covered = (stored for stored in self.routing.in_force.values() if stored.hidden)
        for stored in dict.fromkeys(chain(self.routing.interested(advertisement, peer), covered)):
            self.spare(peer, stored)

    def spare(self, peer: Peer, stored: Stored) -> None:
        """Withdraw a bundle from a connection that has no use for it, unless a condition is still there."""
        if peer not in stored.sent or any(watch.keeps(peer) for watch in self.watching.of(stored)):
            return
        if peer not in self._wanting(stored, {peer}):
            self._retract(stored, stored.bundle, peer)

    def withdraw(self, peer: Peer, gone: Iterable[tuple[Stored, Bundle]]) -> None:
        """Forget parts of bundles of a connection.  What they covered goes out before they are taken
        back, so that nothing is missed in between; then others take their places."""
        change, gone = Change(), [(stored, part) for stored, part in gone if is_stored(part)]
        for stored, part in gone:
            for watch in self.watching.of(stored) if part.subscriptions else ():
                self.watching.end(watch, self.moment)
            self.routing.withdraw(stored, part, change)
        self.settle(peer, change)
        for stored, part in gone:
            for other in list(stored.sent):
                self._retract(stored, part, other)
        for stored, _ in gone:
            if successor := self.routing.successor(stored.bundle.key):
                self.enforce(successor, partial(self.offer, successor, self.routing.links))

    def _retract(self, stored: Stored, part: Bundle, peer: Peer) -> None:
        """Tell a connection that a part of a bundle is withdrawn, or all of it if the rest has no
        business there."""
        whole = part is stored.bundle or not is_stored(stored.bundle)
        rest = not whole and peer in self._wanting(stored, {peer})
        if part.advertisements or (stored.bundle.advertisements and not rest):
            self.say(Send(peer, Unadvertise(stored.bundle.key)))
        if has_interest(part) or (has_interest(stored.bundle) and not rest):
            self.say(Send(peer, Unsubscribe(stored.bundle.key)))
        if not rest:
            self.routing.returned(stored, peer)
            for watch in self.watching.of(stored):
                watch.retracted(peer)

    # --- looking up ---

    def kept(self, peer: Peer, key: Key) -> Stored | None:
        """The bundle of that name that a connection has stored."""
        return self.routing.bundles.get(peer, {}).get(key)
