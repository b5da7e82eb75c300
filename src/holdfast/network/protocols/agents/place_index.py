"""An index of strategies and matching advertisements, which decides where agents run. [B30]

It is updated with each stored bundle, so that a change costs only as much as its effects.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from ..cbps.content import MATCHES
from ..cbps.database import Item, ItemTable
from ..cbps.message import AgentStrategy, Bundle, BundleKey
from ..cbps.routing import RoutingTable, StoredBundle

MARK = "agent "
"""The prefix of the connection names of agents. No other connection name begins with it."""

FINDS_PROMISES = MATCHES["subscription slip", "advertisement"]
FINDS_STRATEGIES = MATCHES["advertisement", "subscription slip"]

AgentPlace = tuple[BundleKey, int, int]
"""The strategy of an agent, as bundle, index of the active subscription, and index of the strategy."""

AdvertisementRef = tuple[BundleKey, int]
"""An advertisement, as bundle and index in the bundle."""


@dataclass(slots=True)
class PlaceIndex:
    """The index of strategies and advertisements.

    ``advertisements_of`` maps each strategy to its matching advertisements. The value of an advertisement is
    true if a publisher that is connected to this broker made it.
    """

    strategies: ItemTable = field(default_factory=lambda: ItemTable("subscription slip"))
    promises: ItemTable = field(default_factory=lambda: ItemTable("advertisement"))
    advertisements_of: dict[AgentPlace, dict[AdvertisementRef, bool]] = field(default_factory=dict)
    strategies_of: dict[AdvertisementRef, dict[AgentPlace, None]] = field(default_factory=dict)
    """The strategies that match each advertisement."""
    entries: dict[BundleKey, tuple[list[AgentPlace], list[AdvertisementRef]]] = field(default_factory=dict)
    """The strategies and advertisements of each bundle in the index."""

    def update(self, key: BundleKey, stored: StoredBundle | None) -> dict[AgentPlace, None]:
        """Update the index after a bundle was stored, changed or withdrawn; return the affected
        strategies.
        """
        places = self._remove(key)
        if stored is not None and not stored.source.startswith(MARK):
            places |= self._add(key, stored.bundle)
        return places

    def _remove(self, key: BundleKey) -> dict[AgentPlace, None]:
        """Remove a bundle from the index; return the affected strategies."""
        changed_places: dict[AgentPlace, None] = {}
        places, promises = self.entries.pop(key, ((), ()))
        for place in places:
            self.strategies.delete(place)
            for promise in self.advertisements_of.pop(place):
                del self.strategies_of[promise][place]
            changed_places[place] = None
        for promise in promises:
            self.promises.delete(promise)
            for place in self.strategies_of.pop(promise):
                del self.advertisements_of[place][promise]
                changed_places[place] = None
        return changed_places

    def _add(self, key: BundleKey, bundle: Bundle) -> dict[AgentPlace, None]:
        """Add a bundle to the index; return the affected strategies."""
        changed_places: dict[AgentPlace, None] = {}
        is_near = bundle.context is not None and bundle.context.hop_count == 1
        bundle_entries: tuple[list[AgentPlace], list[AdvertisementRef]] = [], []
        for i, active in enumerate(bundle.active):
            for j, strategy in enumerate(active.strategies):
                place = key, i, j
                self.strategies.insert(Item(place, strategy.slip, None, None))
                found = self.promises.search(strategy.slip.box, FINDS_PROMISES)
                matching = {cast(AdvertisementRef, item.key): item.bundle for item in found}
                self.advertisements_of[place] = matching
                for promise in self.advertisements_of[place]:
                    self.strategies_of[promise][place] = None
                bundle_entries[0].append(place)
                changed_places[place] = None
        for i, advertisement in enumerate(bundle.advertisements):
            promise = key, i
            self.promises.insert(Item(promise, advertisement.filter, is_near, None))
            found = self.strategies.search(advertisement.filter.box, FINDS_STRATEGIES)
            self.strategies_of[promise] = {cast(AgentPlace, item.key): None for item in found}
            for place in self.strategies_of[promise]:
                self.advertisements_of[place][promise] = is_near
                changed_places[place] = None
            bundle_entries[1].append(promise)
        if any(bundle_entries):
            self.entries[key] = bundle_entries
        return changed_places

    def is_near(self, place: AgentPlace) -> bool:
        """Whether a publisher that is connected to this broker requires the agent."""
        return any(self.advertisements_of.get(place, {}).values())

    def is_shared(self, place: AgentPlace) -> bool:
        """Whether publishers at other brokers also require the agent."""
        return not all(self.advertisements_of.get(place, {}).values())

    def is_somewhere(self, place: AgentPlace) -> bool:
        """Whether a publisher at any broker requires the agent."""
        return bool(self.advertisements_of.get(place))


def strategy_of(routing: RoutingTable, place: AgentPlace) -> AgentStrategy | None:
    """Return the strategy of a place; ``None`` if it is withdrawn or disabled."""
    key, i, j = place
    stored = routing.in_force.get(key)
    if stored is None or i >= len(stored.bundle.active) or stored.bundle.active[i].disabled:
        return None
    strategies = stored.bundle.active[i].strategies
    return strategies[j] if j < len(strategies) else None
