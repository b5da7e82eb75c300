"""The choice of the connections between brokers that are in use: the edges of one spanning tree.

Every broker announces its connections to all other brokers (link state), so all compute the same tree. Of two
paths, the older one stays in use. A connection that would close a cycle is a spare until a used connection is
lost. The tree then changes by that connection alone, and other brokers are not affected.

Both ends of a connection must agree that it is in use. Each end announces its use with a number of its own
and the last number of the peer. A turn begins when the own number comes back. Messages sent before that
belong to another turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ....model.protocol import Peer, Send
from .message import LinkState, LinkUse, Node

SHORTEST = 1 << 10
"""The message length in bytes that every broker accepts, whatever limit it announces."""

YOUNGEST = 1 << 62
"""The highest rank that counts in the announcements of other brokers."""

Edge = tuple[int, Node, Node]
"""The rank of a connection (a higher rank is younger), and its two ends in order."""


@dataclass(slots=True)
class BrokerLink:
    """A connection to another broker.

    ``own_number`` is the number under which this end uses the connection; 0 means that it is spare.
    ``peer_number`` is the last number of the peer. ``is_confirmed`` is true once the peer has confirmed
    ``own_number``.
    """

    node: Node = ""
    rank: int = 0
    own_number: int = 0
    peer_number: int = 0
    is_confirmed: bool = False

    @property
    def turn(self) -> tuple[int, int] | None:
        """The turn on which both ends agree; ``None`` if there is none."""
        is_agreed = self.own_number and self.peer_number and self.is_confirmed
        return (self.own_number, self.peer_number) if is_agreed else None


@dataclass(slots=True)
class BrokerTopology:
    """The topology as one broker knows it.

    ``limit`` is the longest message in bytes that this broker accepts, and ``common_limit`` the longest that
    all brokers accept; 0 means no limit.
    """

    me: Node
    limit: int = 0
    links: dict[Peer, BrokerLink] = field(default_factory=dict)
    known: dict[Node, LinkState] = field(init=False)
    common_limit: int = field(init=False)
    _number: int = 0
    _tree: set[frozenset[Node]] = field(init=False)
    _parts: ConnectedComponents = field(init=False)
    _announced: set[Node] = field(init=False)

    def __post_init__(self) -> None:
        self.common_limit = self.limit
        self._tree, self._parts, self._announced = set[frozenset[Node]](), ConnectedComponents(), {self.me}
        self.known = {self.me: LinkState(self.me, 0, (), self.limit)}

    @property
    def spare_count(self) -> int:
        """The number of spare connections."""
        return sum(trunk.turn is None for trunk in self.links.values())

    # --- what happens ---

    def on_joined(self, peer: Peer) -> Iterator[Send]:
        """Add a connection to a broker, and send this broker's identity."""
        self.links[peer] = BrokerLink()
        yield Send(peer, LinkUse(self.me, 0, 0), cause="topology")

    def on_left(self, peer: Peer) -> Iterator[Send]:
        """Remove a connection; announce this if the connected broker was known."""
        if self.links.pop(peer).node:
            yield from self._announce()

    def on_use(self, peer: Peer, use: LinkUse) -> Iterator[Send]:
        """Handle the identity of a peer and its use of the connection."""
        link = self.links[peer]
        is_news = use.mine != link.peer_number
        link.peer_number, link.is_confirmed = use.mine, use.yours == link.own_number
        if is_news:
            yield Send(peer, LinkUse(self.me, link.own_number, link.peer_number), cause="topology")
        if not link.node:
            link.node = use.node
            ranks = (rank for announcement in self.known.values() for _, rank in announcement.links)
            link.rank = 1 + min(max(ranks, default=0), YOUNGEST)
            yield from [Send(peer, state, cause="topology") for state in self.known.values()]
            yield from self._announce()

    def on_neighbours(self, peer: Peer, announcement: LinkState) -> Iterator[Send]:
        """Handle an announcement. If it is newer than the known one and its broker is reachable, forward it
        and update the tree.
        """
        old = self.known.get(announcement.node)
        if announcement.node == self.me or (old is not None and old.number >= announcement.number):
            return
        if self._extend_tree(old, announcement):
            yield from self._forward(announcement, peer)
            yield from self._update_use()
        elif announcement.node in reachable(
            known := {**self.known, announcement.node: announcement}, self.me
        ):
            self.known = known
            yield from self._forward(announcement, peer)
            yield from self._recompute()

    def _extend_tree(self, old: LinkState | None, announcement: LinkState) -> bool:
        """Extend the tree if an announcement only adds connections that close no cycle; return whether this
        was possible.

        The new connections are then used, all others stay as they were, and no recomputation is necessary.
        Large networks are built in such steps.
        """
        links_before, links_now = (set(old.links) if old else set()), dict(announcement.links)
        only_adds = announcement.node in self._announced and links_before <= set(announcement.links)
        if not only_adds or (old and old.limit != announcement.limit):
            return False
        added = [peer for peer, _ in set(announcement.links) - links_before if peer in self.known]
        confirmed = [peer for peer in added if announcement.node in dict(self.known[peer].links)]
        joined = [self._parts.representative(node) for node in (announcement.node, *confirmed)]
        if len(links_now) != len(announcement.links) or len(set(joined)) != len(joined):
            return False
        for peer in confirmed:
            self._parts.unite(announcement.node, peer)
            self._tree.add(frozenset((announcement.node, peer)))
        self.known[announcement.node] = announcement
        self._announced.update(links_now)
        if (limit := announcement.limit) > 0:
            self.common_limit = max(min(self.common_limit or limit, limit), SHORTEST)
        return True

    def _announce(self) -> Iterator[Send]:
        """Announce the connections of this broker."""
        self._number += 1
        links = tuple(sorted((link.node, link.rank) for link in self.links.values() if link.node))
        announcement = self.known[self.me] = LinkState(self.me, self._number, links, self.limit)
        yield from self._forward(announcement)
        yield from self._recompute()

    def _forward(self, announcement: LinkState, excluded: Peer | None = None) -> Iterator[Send]:
        """Send an announcement to all brokers except ``excluded``."""
        for peer, link in self.links.items():
            if link.node and peer != excluded:
                yield Send(peer, announcement, cause="topology")

    def _recompute(self) -> Iterator[Send]:
        """Recompute the tree. Use its connections and no others."""
        self.known = {node: self.known[node] for node in reachable(self.known, self.me)}
        bounds = [announcement.limit for announcement in self.known.values() if announcement.limit > 0]
        self.common_limit = max(min(bounds), SHORTEST) if bounds else 0
        self._tree, self._parts = spanning_tree(self.known)
        self._announced = {self.me, *(peer for state in self.known.values() for peer, _ in state.links)}
        yield from self._update_use()

    def _update_use(self) -> Iterator[Send]:
        """Send the new number to each peer whose connection came into use or became spare."""
        for peer, link in self.links.items():
            is_used = frozenset((self.me, link.node)) in self._tree
            if is_used != bool(link.own_number):
                self._number += 1
                link.own_number, link.is_confirmed = self._number if is_used else 0, False
                yield Send(peer, LinkUse(self.me, link.own_number, link.peer_number), cause="topology")


def edges(known: Mapping[Node, LinkState]) -> list[Edge]:
    """Return the connections that both ends announce, oldest first, each with the higher of its two ranks."""
    ranks = {(state.node, peer): rank for state in known.values() for peer, rank in state.links}
    both = {(a, b): rank for (a, b), rank in ranks.items() if a < b and (b, a) in ranks}
    return sorted((max(rank, ranks[b, a]), a, b) for (a, b), rank in both.items())


class ConnectedComponents:
    """Connected components of brokers, as a disjoint-set forest."""

    def __init__(self) -> None:
        self._up: dict[Node, Node] = {}

    def representative(self, node: Node) -> Node:
        """Return the broker that represents the component of a broker."""
        up = self._up
        while (above := up.get(node, node)) != node:
            up[node] = node = up.get(above, above)
        return node

    def unite(self, a: Node, b: Node) -> None:
        """Merge the components of two brokers."""
        self._up[self.representative(a)] = self.representative(b)


def spanning_tree(known: Mapping[Node, LinkState]) -> tuple[set[frozenset[Node]], ConnectedComponents]:
    """Return the connections in use, and the components that they connect. Of each cycle, all connections but
    the youngest are in use.
    """
    parts, edges_in_use = ConnectedComponents(), set[frozenset[Node]]()
    for _, a, b in edges(known):
        if parts.representative(a) != parts.representative(b):
            parts.unite(a, b)
            edges_in_use.add(frozenset((a, b)))
    return edges_in_use, parts


def reachable(known: Mapping[Node, LinkState], start: Node) -> list[Node]:
    """Return the known brokers that can be reached from ``start``."""
    found = {start: None}
    queue = [start]
    while queue:
        for peer, _ in known[queue.pop()].links:
            if peer in known and peer not in found:
                found[peer] = None
                queue.append(peer)
    return list(found)
