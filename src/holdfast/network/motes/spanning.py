"""The tree of connected brokers, which follows the best paths to its root."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from math import exp

from ..sim.frame import NodeId
from ..sim.network import Network
from .fault import ScenarioError

TYPICAL = 60
"""The frame size in bytes that is used to compare links."""
WORTHLESS = 0.1
"""The least share of frames that must arrive in both directions for a link to be used."""

Pair = tuple[NodeId, NodeId]


def best_next_hops(network: Network, root: NodeId) -> dict[NodeId, NodeId]:
    """Return, for each node that reaches the root, the next node on the best path to it.

    The best path has the fewest expected transmissions, over links that work in both directions.
    """
    frame = network.setup.radio.airtime(TYPICAL)
    in_range = [[r for r in network.receptions(node.id) if r.decodable] for node in network.nodes]
    share = [{r.node: r.quality * exp(r.per_us * frame) for r in receptions} for receptions in in_range]

    def usable(here: NodeId) -> Iterator[tuple[NodeId, float]]:
        for there, out in share[here].items():
            if (both := out * share[there].get(here, 0.0)) > WORTHLESS:
                yield there, both

    return next_hops_to(root, usable)


def next_hops_to(
    root: NodeId, links: Callable[[NodeId], Iterable[tuple[NodeId, float]]]
) -> dict[NodeId, NodeId]:
    """Return, for each node that reaches the root, the next node on the path with the fewest expected
    transmissions.

    ``links`` gives the neighbours of a node, each with the share of frames that arrive in both directions.
    """
    next_hops: dict[NodeId, NodeId] = {}
    queue = [(0.0, root, root)]
    while queue:
        cost, here, next_hop = heappop(queue)
        if here in next_hops:
            continue
        next_hops[here] = next_hop
        for there, share in links(here):
            if there not in next_hops:
                heappush(queue, (cost + 1 / share, there, here))
    return next_hops


def nearest(node: NodeId, next_hops: Mapping[NodeId, NodeId], brokers: Collection[NodeId]) -> NodeId:
    """Return the first broker on a node's path to the root, other than the node itself.

    >>> nearest(3, {3: 2, 2: 1, 1: 0, 0: 0}, {0, 1, 3})
    1
    """
    here = next_hops[node]
    while here not in brokers:
        here = next_hops[here]
    return here


def require_tree(pairs: Sequence[Pair], brokers: Collection[NodeId]) -> None:
    """Raise a `ScenarioError` unless the connections form a tree of all brokers."""
    group = {broker: {broker} for broker in brokers}
    for i, (a, b) in enumerate(pairs):
        if a not in group or b not in group:
            raise ScenarioError(f"node {b if a in group else a} has no broker", (i,))
        if group[a] is group[b]:
            raise ScenarioError("this closes a circle; brokers form a tree", (i,))
        joined = group[a] | group[b]
        group.update(dict.fromkeys(joined, joined))
    if len(pairs) < len(brokers) - 1:
        raise ScenarioError("some brokers are not connected to the others")
