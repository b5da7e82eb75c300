"""Trees of links: neighbours, paths, and the central node."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ....errors import UsageError

Neighbours = dict[str, dict[str, None]]
"""The neighbours of each node, in the order of the links."""


def neighbours_of_tree(links: Iterable[tuple[str, str]]) -> Neighbours:
    """Return the neighbours of each node; raise a `UsageError` if the links form a cycle."""
    neighbours: Neighbours = {}
    parts: dict[str, str] = {}

    def root(name: str) -> str:
        while parts.setdefault(name, name) != name:
            name = parts[name]
        return name

    for a, b in links:
        if root(a) == root(b):
            raise UsageError(f"the link from '{a}' to '{b}' closes a circle; the network must be a tree")
        parts[root(a)] = root(b)
        neighbours.setdefault(a, {})[b] = None
        neighbours.setdefault(b, {})[a] = None
    if not neighbours:
        raise UsageError("a network needs at least one node")
    return neighbours


def next_hops(neighbours: Neighbours, to: str) -> dict[str, str]:
    """Return, for each node with a path to ``to``, the next node on that path."""
    following: dict[str, str] = {}
    queue = deque((to,))
    while queue:
        at = queue.popleft()
        for neighbour in neighbours[at]:
            if neighbour != to and neighbour not in following:
                following[neighbour] = at
                queue.append(neighbour)
    return following


def centre(neighbours: Neighbours) -> str:
    """Return the node with the least sum of distances to all others; of several the first by name."""
    return min(sorted(neighbours), key=lambda name: _total_distance(neighbours, name))


def _total_distance(neighbours: Neighbours, to: str) -> int:
    distance = {to: 0}
    for name, following in next_hops(neighbours, to).items():
        distance[name] = distance[following] + 1
    unreached = len(neighbours) - len(distance)
    return sum(distance.values()) + unreached * len(neighbours)
