"""Which connections between brokers are in use: those of one tree, however many there are.

Every broker tells all others whom it is joined to (link state), so all compute the same tree; of two ways
the older stays, and a connection that would close a circle is a spare until one that is used is lost.  Then
the tree changes by that connection alone, and everybody else notices nothing.

Both ends of a connection must take it for used at the same time.  Each says so with a number of its own and
the number that it has heard; a turn begins when the own number comes back, and what was sent before it
belongs to another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ...model.protocol import Peer, Send
from .message import Neighbours, Node, Use

SHORTEST = 1 << 10
"""Every broker takes messages of so many bytes, whatever it says."""

YOUNGEST = 1 << 62
"""No rank that others tell counts for more."""

Edge = tuple[int, Node, Node]
"""Its rank, the higher the younger, and its ends, the lesser first."""


@dataclass(slots=True)
class Trunk:
    """A connection to another broker.  ``mine`` is the number under which this end uses it, 0 if it does
    not, and ``theirs`` the last of the other's; ``known`` says whether the other has heard of ours."""

    node: Node = ""
    rank: int = 0
    mine: int = 0
    theirs: int = 0
    known: bool = False

    @property
    def turn(self) -> tuple[int, int] | None:
        """The turn that both ends are in, if they are."""
        return (self.mine, self.theirs) if self.mine and self.theirs and self.known else None


@dataclass(slots=True)
class Topology:
    """What a broker knows of the others.  ``limit`` is the longest message that it takes itself, and
    ``longest`` the longest that all of them take; 0 if there is no bound."""

    me: Node
    limit: int = 0
    trunks: dict[Peer, Trunk] = field(default_factory=dict)
    known: dict[Node, Neighbours] = field(init=False)
    longest: int = field(init=False)
    _number: int = 0
    _tree: set[frozenset[Node]] = field(init=False)
    _parts: Parts = field(init=False)
    _told_of: set[Node] = field(init=False)

    def __post_init__(self) -> None:
        self.longest = self.limit
        self._tree, self._parts, self._told_of = set[frozenset[Node]](), Parts(), {self.me}
        self.known = {self.me: Neighbours(self.me, 0, (), self.limit)}

    @property
    def spare(self) -> int:
        """How many connections are there only in case others are lost."""
        return sum(trunk.turn is None for trunk in self.trunks.values())

    # --- what happens ---

    def joined(self, peer: Peer) -> Iterator[Send]:
        """A broker is connected: say who we are."""
        self.trunks[peer] = Trunk()
        yield Send(peer, Use(self.me, 0, 0), cause="topology")

    def left(self, peer: Peer) -> Iterator[Send]:
        """It is connected no longer."""
        if self.trunks.pop(peer).node:
            yield from self._announce()

    def used(self, peer: Peer, said: Use) -> Iterator[Send]:
        """A broker says who it is, and whether it uses the connection."""
        trunk = self.trunks[peer]
        news = said.mine != trunk.theirs
        trunk.theirs, trunk.known = said.mine, said.yours == trunk.mine
        if news:
            yield Send(peer, Use(self.me, trunk.mine, trunk.theirs), cause="topology")
        if not trunk.node:
            trunk.node = said.node
            ranks = (rank for one in self.known.values() for _, rank in one.links)
            trunk.rank = 1 + min(max(ranks, default=0), YOUNGEST)
            yield from [Send(peer, one, cause="topology") for one in self.known.values()]
            yield from self._announce()

    def learned(self, peer: Peer, said: Neighbours) -> Iterator[Send]:
        """A broker passes on whom some broker is joined to: if it is news, and not of one that is gone, pass
        it on, and look anew."""
        old = self.known.get(said.node)
        if said.node == self.me or (old is not None and old.number >= said.number):
            return
        if self._grown(old, said):
            yield from self._spread(said, peer)
            yield from self._use()
        elif said.node in reachable(known := {**self.known, said.node: said}, self.me):
            self.known = known
            yield from self._spread(said, peer)
            yield from self._choose()

    def _grown(self, old: Neighbours | None, said: Neighbours) -> bool:
        """Whether it only adds connections that close no circle: then they are used, and the others are as
        they were, and nothing has to be looked at anew.  Large networks come about in such steps."""
        before, now = (set(old.links) if old else set()), dict(said.links)
        if (
            said.node not in self._told_of
            or not before <= set(said.links)
            or (old and old.limit != said.limit)
        ):
            return False
        mutual = [
            other
            for other, _ in set(said.links) - before
            if other in self.known and any(node == said.node for node, _ in self.known[other].links)
        ]
        if len(now) != len(said.links) or len({self._parts.of(node) for node in mutual}) != len(mutual):
            return False
        if any(self._parts.of(node) == self._parts.of(said.node) for node in mutual):
            return False
        for other in mutual:
            self._parts.unite(said.node, other)
            self._tree.add(frozenset((said.node, other)))
        self.known[said.node] = said
        self._told_of.update(now)
        if said.limit > 0:
            self.longest = max(min(self.longest or said.limit, said.limit), SHORTEST)
        return True

    def _announce(self) -> Iterator[Send]:
        """Tell all whom this broker is joined to."""
        self._number += 1
        links = tuple(sorted((trunk.node, trunk.rank) for trunk in self.trunks.values() if trunk.node))
        said = self.known[self.me] = Neighbours(self.me, self._number, links, self.limit)
        yield from self._spread(said)
        yield from self._choose()

    def _spread(self, said: Neighbours, but: Peer | None = None) -> Iterator[Send]:
        for peer, trunk in self.trunks.items():
            if trunk.node and peer != but:
                yield Send(peer, said, cause="topology")

    def _choose(self) -> Iterator[Send]:
        """Use the connections that belong to the tree, and no others."""
        self.known = {node: self.known[node] for node in reachable(self.known, self.me)}
        bounds = [one.limit for one in self.known.values() if one.limit > 0]
        self.longest = max(min(bounds), SHORTEST) if bounds else 0
        self._tree, self._parts = tree(self.known)
        self._told_of = {self.me, *(other for one in self.known.values() for other, _ in one.links)}
        yield from self._use()

    def _use(self) -> Iterator[Send]:
        for peer, trunk in self.trunks.items():
            use = frozenset((self.me, trunk.node)) in self._tree
            if use != bool(trunk.mine):
                self._number += 1
                trunk.mine, trunk.known = self._number if use else 0, False
                yield Send(peer, Use(self.me, trunk.mine, trunk.theirs), cause="topology")


def edges(known: Mapping[Node, Neighbours]) -> list[Edge]:
    """The connections that both ends tell of, the oldest first; each has the higher of the two ranks."""
    told = {(one.node, other): rank for one in known.values() for other, rank in one.links}
    return sorted((max(rank, told[b, a]), a, b) for (a, b), rank in told.items() if a < b and (b, a) in told)


class Parts:
    """Which brokers are joined, by whatever way."""

    def __init__(self) -> None:
        self._up: dict[Node, Node] = {}

    def of(self, node: Node) -> Node:
        """One broker that stands for all that are joined to this one."""
        up = self._up
        while (above := up.get(node, node)) != node:
            up[node] = node = up.get(above, above)
        return node

    def unite(self, a: Node, b: Node) -> None:
        self._up[self.of(a)] = self.of(b)


def tree(known: Mapping[Node, Neighbours]) -> tuple[set[frozenset[Node]], Parts]:
    """The connections that are used: of each circle, all but the youngest; and who is joined by them."""
    parts, chosen = Parts(), set[frozenset[Node]]()
    for _, a, b in edges(known):
        if parts.of(a) != parts.of(b):
            parts.unite(a, b)
            chosen.add(frozenset((a, b)))
    return chosen, parts


def reachable(known: Mapping[Node, Neighbours], start: Node) -> list[Node]:
    """The brokers of which somebody tells, who is told of himself; the others are gone."""
    found = {start: None}
    ahead = [start]
    while ahead:
        for other, _ in known[ahead.pop()].links:
            if other in known and other not in found:
                found[other] = None
                ahead.append(other)
    return list(found)
