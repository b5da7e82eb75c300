"""Which brokers of a network are connected: a tree along the best ways to its root."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from heapq import heappop, heappush
from math import exp

from ...sim.frame import NodeId
from ...sim.network import Network
from .fault import Fault

TYPICAL = 60
"""Bytes of a frame by which links are judged."""
WORTHLESS = 0.1
"""A link that brings fewer of the frames there and back is none."""

Pair = tuple[NodeId, NodeId]


def best_ways(network: Network, root: NodeId) -> dict[NodeId, NodeId]:
    """For each node that can be reached the next one on its way to the root: over links that work both
    ways, with the fewest transmissions to be expected."""
    frame = network.setup.radio.airtime(TYPICAL)
    share = [
        {
            each.node: each.quality * exp(each.per_us * frame)
            for each in network.heard(node.id)
            if each.decodable
        }
        for node in network.nodes
    ]
    found: dict[NodeId, NodeId] = {}
    near = [(0.0, root, root)]
    while near:
        cost, here, onward = heappop(near)
        if here in found:
            continue
        found[here] = onward
        for there, out in share[here].items():
            both = out * share[there].get(here, 0.0)
            if there not in found and both > WORTHLESS:
                heappush(near, (cost + 1 / both, there, here))
    return found


def nearest(of: NodeId, ways: Mapping[NodeId, NodeId], brokers: Collection[NodeId]) -> NodeId:
    """The first broker on a node's way to the root, other than itself.

    >>> nearest(3, {3: 2, 2: 1, 1: 0, 0: 0}, {0, 1, 3})
    1
    """
    here = ways[of]
    while here not in brokers:
        here = ways[here]
    return here


def require_tree(pairs: Sequence[Pair], brokers: Collection[NodeId]) -> None:
    """Connections of brokers lead from each to every other, and by one way only."""
    group = {broker: {broker} for broker in brokers}
    for i, (a, b) in enumerate(pairs):
        if a not in group or b not in group:
            raise Fault(f"node {b if a in group else a} has no broker", (i,))
        if group[a] is group[b]:
            raise Fault("this closes a circle; brokers form a tree", (i,))
        joined = group[a] | group[b]
        group.update(dict.fromkeys(joined, joined))
    if len(pairs) < len(brokers) - 1:
        raise Fault("some brokers are not connected to the others")
