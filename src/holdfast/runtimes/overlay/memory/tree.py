"""Links that close no circle: the ways between nodes, and the node in the middle."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ....errors import UsageError

Neighbours = dict[str, dict[str, None]]
"""Those of each node, in the order of the links."""


def tree(links: Iterable[tuple[str, str]]) -> Neighbours:
    """The neighbours of each node, if there is at most one way between any two."""
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


def ways(neighbours: Neighbours, to: str) -> dict[str, str]:
    """For each node from which there is a way, the neighbour that is next on it."""
    following: dict[str, str] = {}
    reached = deque((to,))
    while reached:
        at = reached.popleft()
        for other in neighbours[at]:
            if other != to and other not in following:
                following[other] = at
                reached.append(other)
    return following


def centre(neighbours: Neighbours) -> str:
    """The node whose distances to all others sum up to the least; of several the first by name."""
    return min(sorted(neighbours), key=lambda name: _total_distance(neighbours, name))


def _total_distance(neighbours: Neighbours, to: str) -> int:
    distance = {to: 0}
    for name, following in ways(neighbours, to).items():
        distance[name] = distance[following] + 1
    unreached = len(neighbours) - len(distance)
    return sum(distance.values()) + unreached * len(neighbours)
