"""Distributed memoization: a broker reuses a match that the previous broker has found. [B44–B47]

Every stored advertisement and subscription has a digest that is equal at all brokers. A bundle that was
forwarded because of a match carries the digest of the matched item, so the next broker looks it up.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field

from ....model.protocol import Peer
from .database import Item
from .message import ExpressSlip, SlipType

_Items = dict[Hashable, Item]


@dataclass(slots=True)
class Twins:
    """The stored items by digest and connection.

    Slips of type ``subscription`` refer to advertisements, slips of type ``notification`` to subscriptions.
    """

    _found: dict[tuple[SlipType, str], dict[Peer, _Items]] = field(default_factory=dict)

    def add(self, peer: Peer, type_: SlipType, item: Item) -> None:
        """Add an item that a connection has stored."""
        peers = self._found.setdefault((type_, item.filter.digest), {})
        peers.setdefault(peer, {})[item.key] = item

    def remove(self, peer: Peer, type_: SlipType, item: Item) -> None:
        """Remove an item that a connection has stored."""
        peers = self._found[type_, item.filter.digest]
        del peers[peer][item.key]
        if not peers[peer]:
            del peers[peer]
        if not peers:
            del self._found[type_, item.filter.digest]

    def find(self, slip: ExpressSlip) -> Mapping[Peer, Collection[Item]]:
        """Return the items to which a slip refers, by connection."""
        peers = self._found.get((slip.type, slip.cache_id), {})
        return {peer: items.values() for peer, items in peers.items()}

    def __len__(self) -> int:
        return sum(len(items) for peers in self._found.values() for items in peers.values())
