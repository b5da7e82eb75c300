"""The table of conditions that a broker watches for its connections."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from ....model.protocol import Peer
from .bundle import subscription_refs
from .condition import HostedCondition, NetworkCondition, ReplicatedCondition
from .content import MATCHES, Content, box_of
from .context import passes_any
from .database import Item
from .hosted_watch import HostedWatch
from .message import SubscriptionRef
from .replica_watch import ReplicaWatch
from .routing import RoutingTable, StoredBundle
from .watch import ConditionWatch, Emitter


@dataclass(slots=True)
class WatchTable:
    """All watches of a broker, by connection and subscription.

    A condition that consumes several kinds of notifications has several subscriptions. They share one watch,
    which is identified by the first subscription.
    """

    routing: RoutingTable
    watches: dict[Peer, dict[SubscriptionRef, ConditionWatch]] = field(default_factory=dict)
    hosts: dict[str, HostedWatch] = field(default_factory=dict)
    """The hosted conditions, by the names of their timers."""

    def __len__(self) -> int:
        return sum(map(len, self.watches.values()))

    def all(self) -> dict[ConditionWatch, None]:
        """Return every watch exactly once, as an ordered set."""
        return {watch: None for watches in self.watches.values() for watch in watches.values()}

    @property
    def hosted_count(self) -> int:
        """The number of conditions that this broker evaluates."""
        return sum(host.where == "here" for host in self.hosts.values())

    def of(self, stored: StoredBundle) -> dict[ConditionWatch, None]:
        """Return the watches of a bundle's subscriptions."""
        watches = self.watches.get(stored.source, {})
        return {watches[part]: None for part in subscription_refs(stored.bundle) if part in watches}

    def find(self, part: SubscriptionRef) -> ConditionWatch | None:
        """Return the watch of a subscription in force; ``None`` if there is none."""
        stored = self.routing.in_force.get(part.bundle)
        return None if stored is None else self.watches.get(stored.source, {}).get(part)

    # --- coming and going ---

    def start(self, stored: StoredBundle, part: SubscriptionRef, condition: NetworkCondition) -> None:
        """Start to watch a subscription that was just stored."""
        watch = self._create(stored, part, condition)
        self.watches.setdefault(stored.source, {})[part] = watch
        box = stored.bundle.subscriptions[part.place].filter.box
        for peer in self.routing.database.peers("advertisement"):
            if peer == stored.source:
                continue
            table = self.routing.database.table(peer, "advertisement")
            for item in table.search(box, MATCHES["subscription", "advertisement"]):
                watch.add_advertisement(peer, item.filter)

    def _create(
        self, stored: StoredBundle, part: SubscriptionRef, condition: NetworkCondition
    ) -> ConditionWatch:
        """Return a new watch, or the bundle's existing watch of the same hosted condition."""
        if isinstance(condition, ReplicatedCondition):
            return ReplicaWatch(part, stored, condition)
        assert isinstance(condition, HostedCondition)
        candidates = (watch for watch in self.of(stored) if watch.condition is condition)
        if (existing := next(candidates, None)) is not None:
            return existing
        host = HostedWatch(part, stored, condition)
        self.hosts[host.timer] = host
        return host

    def stop(self, watch: ConditionWatch, emitter: Emitter) -> None:
        """Stop a watch and remove it."""
        if isinstance(watch, HostedWatch):
            watch.stop(emitter)
            del self.hosts[watch.timer]
        watches = self.watches[watch.peer]
        for part in subscription_refs(watch.stored.bundle):
            if watches.get(part) is watch:
                del watches[part]
        if not watches:
            del self.watches[watch.peer]

    def add_advertisement(self, peer: Peer, item: Item) -> Iterator[ConditionWatch]:
        """Add an advertisement that became active; yield the watches that it concerns."""
        for watch in self._watches_of(peer, item):
            watch.add_advertisement(peer, item.filter)
            yield watch

    def remove_advertisement(self, peer: Peer, item: Item) -> Iterator[ConditionWatch]:
        """Remove an advertisement that became inactive; yield the watches that it concerns."""
        for watch in self._watches_of(peer, item):
            watch.remove_advertisement(peer, item.filter)
            yield watch

    def _watches_of(self, peer: Peer, advertisement: Item) -> list[ConditionWatch]:
        return [
            self.watches[stored.source][part]
            for alike in self.routing.matching_subscriptions("advertisement", advertisement.filter.box)
            for part, stored in alike.items()
            if stored.source != peer
        ]

    # --- events ---

    def matching_watches(
        self, content: Content, peers: Collection[Peer], context: Content | None = None
    ) -> Iterator[tuple[ConditionWatch, Any]]:
        """Yield the watches of ``peers`` for which a notification is relevant, each with its view of the
        notification.

        The view is computed once for equal conditions.
        """
        for alike in self.routing.matching_subscriptions("notification", box_of(content)):
            view: Any = None
            for part, stored in alike.items():
                if stored.source not in peers or not (
                    context is None or passes_any(stored.bundle.incoming, context)
                ):
                    continue
                watch = self.watches[stored.source][part]
                if view is None:
                    view = watch.view_of(content)
                    if view is None:
                        break
                yield watch, view
