"""The nodes of a town: at the sensors of each watched road, at each junction, and along the streets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from holdfast.model.space import Rectangle
from holdfast.network.sim.frame import NodeId

from .placing import metres, spot
from .roads import JourneyMap

BETWEEN = 400.0
"""The greatest distance between two nodes of a street, in metres."""
REACH = 600.0
"""The radio range, in metres."""
APART = 1.0
"""The least distance between two nodes, in metres."""
MARGIN = 50.0

At = tuple[float, float]


@dataclass(frozen=True)
class City:
    """The nodes of a town by number; the smallest coordinates are 0."""

    places: tuple[At, ...]
    sensors: dict[int, NodeId]
    """The node at the sensors of each watched road."""
    junctions: tuple[NodeId, ...]
    """The nearest node to each junction."""
    side: float

    @property
    def space(self) -> Rectangle:
        return Rectangle((0.0, 0.0), (self.side, self.side))

    def spot(self, road: int) -> At:
        return self.places[self.sensors[road]]

    def about(self, road: int) -> Rectangle:
        """Return the area of a road's sensors, in which no other node publishes."""
        x, y = self.spot(road)
        return Rectangle((x - APART / 4, y - APART / 4), (x + APART / 4, y + APART / 4))


def city(map: JourneyMap, roads: Sequence[int], filled: bool = False) -> City:
    """Place nodes along the streets of a map or, if ``filled``, on a grid that covers all of the space."""
    corners = metres(map)
    wanted = [spot(map, road) for road in roads] + corners
    low = [min(p[axis] for p in wanted) - MARGIN for axis in (0, 1)]
    wide = max(max(p[axis] for p in wanted) - low[axis] for axis in (0, 1))
    if filled:
        steps = np.linspace(MARGIN, wide, math.ceil(wide / BETWEEN) + 1).tolist()
        wanted = wanted[: len(roads)] + [(low[0] + x, low[1] + y) for x in steps for y in steps]
    else:
        for road in map.roads:
            wanted += _along_street(corners[road.start], corners[road.end])
    places = _apart([(round(x - low[0], 2), round(y - low[1], 2)) for x, y in wanted])
    near = KDTree(places).query([(x - low[0], y - low[1]) for x, y in corners])[1].tolist()
    return City(tuple(places), {road: i for i, road in enumerate(roads)}, tuple(near), wide + MARGIN)


def _along_street(a: At, b: At) -> list[At]:
    """Return evenly spaced positions along a street."""
    pieces = math.ceil(math.dist(a, b) / BETWEEN)
    shares = np.linspace(0, 1, pieces + 1)[1:-1].tolist()
    return [(a[0] + (b[0] - a[0]) * s, a[1] + (b[1] - a[1]) * s) for s in shares]


def _apart(points: Sequence[At]) -> list[At]:
    """Return the points without those that are too near to an earlier one."""
    tree = KDTree(points)
    gone: set[int] = set()
    for a, b in sorted(tree.query_pairs(APART)):
        if a not in gone:
            gone.add(b)
    return [point for i, point in enumerate(points) if i not in gone]
