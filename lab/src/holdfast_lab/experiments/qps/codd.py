"""CODD: SAFE and GEAR, opportunistic sharing hop by hop. [SPS §4.4.2]

A subscription travels greedily towards the middle of the region until it meets an existing path, or the
region. Every node that it passes stores a link back. In the region all nodes repeat it (GEAR), and each
publisher stores the path with the fewest hops back to the entry point. Subscribers reinforce the path on
which an event takes the fewest hops. Paths that meet continue together, so that is the path that was met.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from itertools import pairwise
from statistics import fmean

from holdfast.network.sim.frame import NodeId

from .outcome import QpsOutcome
from .scene import QpsScene

Link = tuple[NodeId, NodeId]
"""Events go from the first node to the second."""


class Codd:
    """The links of nodes to their neighbours."""

    def __init__(self, scene: QpsScene) -> None:
        self._scene = scene
        low, high = scene.setting.low, scene.setting.high
        self._middle = ((low[0] + high[0]) / 2, (low[1] + high[1]) / 2)
        self._inside = set(scene.publishers)
        self._entries: dict[NodeId, dict[NodeId, NodeId]] = {}
        """Where subscriptions came into the region; for each publisher the next node on its way there."""
        self._next: dict[NodeId, NodeId] = {}
        """Outside the region: the node from which a node gets its events."""
        self._subscribers: list[NodeId] = []
        self._subscribing = 0

    def subscribe(self, node: NodeId) -> None:
        self._subscribers.append(node)
        towards, here = self._towards(node), node
        while here not in self._inside and here not in self._next:
            self._next[here] = towards[here]
            here = towards[here]
            self._subscribing += 2  # the subscription, and the acknowledgement that reinforces it
        entry = self._entry(node)
        if entry not in self._entries:
            self._entries[entry] = self._flood(entry)

    def _towards(self, node: NodeId) -> dict[NodeId, NodeId]:
        """Return for each node of the path to the region the next one, without detours round holes."""
        field = self._scene.field
        way = field.path(node, self._middle)
        last = way[-1]
        if last not in self._inside:
            places = field.places
            nearest = min(self._inside, key=lambda each: math.dist(places[each], places[last]))
            way = way + field.path(last, places[nearest])[1:]
        return dict(pairwise(way))

    def _entry(self, node: NodeId) -> NodeId:
        while node in self._next:
            node = self._next[node]
        return node

    def _flood(self, entry: NodeId) -> dict[NodeId, NodeId]:
        """Let all nodes of the region repeat a subscription once; nodes that this does not cover get it by
        routing."""
        found: dict[NodeId, NodeId] = {}
        waiting = deque([entry])
        seen = {entry}
        while waiting:
            here = waiting.popleft()
            self._subscribing += 1
            for other in self._scene.field.near(here):
                if other in self._inside and other not in seen:
                    seen.add(other)
                    found[other] = here
                    waiting.append(other)
        for node in sorted(self._inside - seen):
            field, here = self._scene.field, node
            towards = dict(pairwise(field.path(node, field.places[entry])))
            while here != entry and here not in found:
                found[here] = towards[here]
                here = towards[here]
                self._subscribing += 1
        return found

    def _ways(self, publisher: NodeId) -> set[Link]:
        """Return the links over which an event of a publisher goes, each once."""
        found = {(source, node) for node, source in self._next.items()}
        for tree in self._entries.values():
            here = publisher
            while here in tree:
                found.add((here, tree[here]))
                here = tree[here]
        return found

    def outcome(self) -> QpsOutcome:
        events = self._scene.events
        outside: set[Link] = {(source, node) for node, source in self._next.items()}
        links = outside | {link for tree in self._entries.values() for link in tree.items()}
        loads = Counter(source for source, _ in links) + Counter(self._subscribers)
        ways = {publisher: self._ways(publisher) for publisher in set(events)}
        due = len(events) * len(self._subscribers)
        hops = [self._depth(publisher, node) for publisher in events for node in self._subscribers]
        return QpsOutcome(
            loads.total(), max(loads.values()), sum(len(ways[p]) for p in events) / due, fmean(hops),
            self._subscribing,
        )  # fmt: skip

    def _depth(self, publisher: NodeId, node: NodeId) -> int:
        hops = 0
        while node in self._next:
            node, hops = self._next[node], hops + 1
        tree, here = self._entries[node], publisher
        while here in tree:
            here, hops = tree[here], hops + 1
        return hops
