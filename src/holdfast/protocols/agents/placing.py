"""Where agents are called for: strategies and the advertisements that match their slips, kept as bundles come
and go, so that a change costs what it changes and not what is stored.  [B30]"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from ..cbps.content import MATCHES
from ..cbps.database import Item, Table
from ..cbps.message import Bundle, Key, Strategy
from ..cbps.routing import Routing, Stored

MARK = "agent "
"""How the names of connections of agents begin; a connection of somebody else never does."""

Place = tuple[Key, int, int]
"""Which strategy an agent is of: the bundle, the active subscription in it, the strategy in that."""

Promise = tuple[Key, int]
"""Which advertisement it is: the bundle, and its number there."""


@dataclass(slots=True)
class Placing:
    """``calls`` has for each strategy the advertisements that match it, and whether a publisher that is
    connected here makes them."""

    strategies: Table = field(default_factory=lambda: Table("subscription slip"))
    promises: Table = field(default_factory=lambda: Table("advertisement"))
    calls: dict[Place, dict[Promise, bool]] = field(default_factory=dict)
    called: dict[Promise, dict[Place, None]] = field(default_factory=dict)
    """By advertisement: the strategies that match it."""
    parts: dict[Key, tuple[list[Place], list[Promise]]] = field(default_factory=dict)
    """Of each bundle, what of it is here."""

    def changed(self, key: Key, stored: Stored | None) -> dict[Place, None]:
        """A bundle came, changed or went; which strategies that concerns."""
        concerned = self._gone(key)
        if stored is not None and not stored.source.startswith(MARK):
            concerned |= self._came(key, stored.bundle)
        return concerned

    def _gone(self, key: Key) -> dict[Place, None]:
        concerned: dict[Place, None] = {}
        places, promises = self.parts.pop(key, ((), ()))
        for place in places:
            self.strategies.delete(place)
            for promise in self.calls.pop(place):
                del self.called[promise][place]
            concerned[place] = None
        for promise in promises:
            self.promises.delete(promise)
            for place in self.called.pop(promise):
                del self.calls[place][promise]
                concerned[place] = None
        return concerned

    def _came(self, key: Key, bundle: Bundle) -> dict[Place, None]:
        concerned: dict[Place, None] = {}
        is_near = bundle.context is not None and bundle.context.hop_count == 1
        of_it: tuple[list[Place], list[Promise]] = [], []
        for i, active in enumerate(bundle.active):
            for j, strategy in enumerate(active.strategies):
                place = key, i, j
                self.strategies.insert(Item(place, strategy.slip, None, None))
                found = self.promises.search(strategy.slip.box, MATCHES["subscription slip", "advertisement"])
                self.calls[place] = {cast(Promise, item.key): item.bundle for item in found}
                for promise in self.calls[place]:
                    self.called[promise][place] = None
                of_it[0].append(place)
                concerned[place] = None
        for i, advertisement in enumerate(bundle.advertisements):
            promise = key, i
            self.promises.insert(Item(promise, advertisement.filter, is_near, None))
            matching = MATCHES["advertisement", "subscription slip"]
            found = self.strategies.search(advertisement.filter.box, matching)
            self.called[promise] = {cast(Place, item.key): None for item in found}
            for place in self.called[promise]:
                self.calls[place][promise] = is_near
                concerned[place] = None
            of_it[1].append(promise)
        if any(of_it):
            self.parts[key] = of_it
        return concerned

    def is_near(self, place: Place) -> bool:
        """Whether a publisher that is connected here calls for an agent."""
        return any(self.calls.get(place, {}).values())

    def is_shared(self, place: Place) -> bool:
        """Whether publishers at other brokers call for it too."""
        return not all(self.calls.get(place, {}).values())

    def is_somewhere(self, place: Place) -> bool:
        """Whether a publisher anywhere does."""
        return bool(self.calls.get(place))


def strategy_of(routing: Routing, place: Place) -> Strategy | None:
    """The strategy of a place, unless it is gone or disabled."""
    key, i, j = place
    stored = routing.in_force.get(key)
    if stored is None or i >= len(stored.bundle.active) or stored.bundle.active[i].disabled:
        return None
    strategies = stored.bundle.active[i].strategies
    return strategies[j] if j < len(strategies) else None
