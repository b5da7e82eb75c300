"""CODD (SAFE and GEAR): subscriptions share paths opportunistically, hop by hop. [SPS §4.4.2]

A subscription travels greedily towards the middle of the region, until it meets an existing path or the
region. Every node on its path stores a link back. In the region every node repeats it (GEAR), and each
publisher stores the shortest path back to the entry. Subscribers reinforce the path with the fewest hops,
which is the one that the subscription met.
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
"""A link over which events go from the first node to the second."""


class Codd:
    """The links of all nodes to their neighbours."""

    def __init__(self, scene: QpsScene) -> None:
        self._scene = scene
        low, high = scene.setting.low, scene.setting.high
        self._middle = ((low[0] + high[0]) / 2, (low[1] + high[1]) / 2)
        self._inside = set(scene.publishers)
        self._entries: dict[NodeId, dict[NodeId, NodeId]] = {}
        """Where subscriptions came into the region; for each publisher the next node on its way there."""
        self._next: dict[NodeId, NodeId] = {}
        """Outside: from whom a node gets the events of the region."""
        self._subscribers: list[NodeId] = []
        self._subscribing = 0

    def subscribe(self, node: NodeId) -> None:
        """Add a subscriber, and count the transmissions of its subscription."""
        self._subscribers.append(node)
        towards, here = self._towards(node), node
        while here not in self._inside and here not in self._next:
            self._next[here] = towards[here]
            here = towards[here]
            self._subscribing += 2  # the subscription, and the acknowledgement that reinforces it
        entry = here
        while entry in self._next:
            entry = self._next[entry]
        if entry not in self._entries:
            self._entries[entry] = self._flood(entry)

    def _towards(self, node: NodeId) -> dict[NodeId, NodeId]:
        """Return the next node for each node on the path to the region, without loops around holes."""
        field = self._scene.field
        way = field.path(node, self._middle)
        last = way[-1]
        if last not in self._inside:
            places = field.places
            nearest = min(self._inside, key=lambda each: math.dist(places[each], places[last]))
            way = way + field.path(last, places[nearest])[1:]
        return dict(pairwise(way))

    def _flood(self, entry: NodeId) -> dict[NodeId, NodeId]:
        """Flood a subscription in the region; nodes that the flood misses receive it over paths outside."""
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

    def _outside(self) -> set[Link]:
        """Return the links outside of the region."""
        return {(source, node) for node, source in self._next.items()}

    def _ways(self, publisher: NodeId) -> set[Link]:
        """Return the links over which an event of a publisher goes, each once."""
        found = self._outside()
        for tree in self._entries.values():
            here = publisher
            while here in tree:
                found.add((here, tree[here]))
                here = tree[here]
        return found

    def outcome(self) -> QpsOutcome:
        """Evaluate the events of the scene."""
        events = self._scene.events
        links = self._outside() | {link for tree in self._entries.values() for link in tree.items()}
        loads = Counter(source for source, _ in links) + Counter(self._subscribers)
        ways = {publisher: self._ways(publisher) for publisher in set(events)}
        due = len(events) * len(self._subscribers)
        hops = [self._depth(publisher, node) for publisher in events for node in self._subscribers]
        messages = sum(len(ways[p]) for p in events) / due
        return QpsOutcome(loads.total(), max(loads.values()), messages, fmean(hops), self._subscribing)

    def _depth(self, publisher: NodeId, node: NodeId) -> int:
        hops = 0
        while node in self._next:
            node, hops = self._next[node], hops + 1
        tree, here = self._entries[node], publisher
        while here in tree:
            here, hops = tree[here], hops + 1
        return hops
