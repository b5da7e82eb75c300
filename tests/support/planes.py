"""Networks in the plane: connected unit-disk graphs, and connected planar graphs of any shape."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from random import Random

import numpy as np
from hypothesis import strategies as st
from scipy.spatial import Delaunay, QhullError

from support.ether import distances

Place = tuple[float, float]


@dataclass(frozen=True)
class Plane:
    """Nodes with positions and the links between them."""

    places: tuple[Place, ...]
    links: tuple[tuple[int, int], ...]

    @property
    def graph(self) -> dict[int, set[int]]:
        found: dict[int, set[int]] = {i: set() for i in range(len(self.places))}
        for a, b in self.links:
            found[a].add(b)
            found[b].add(a)
        return found


def is_connected(graph: dict[int, set[int]]) -> bool:
    return len(distances(graph, 0)) == len(graph)


def scatter(random: Random, most: int) -> list[Place]:
    """Distinct places: anywhere, or (every other time) on a grid, where three in a line are common."""
    count = random.randint(2, most)
    if random.random() < 0.5:
        return [(random.random(), random.random()) for _ in range(count)]
    spacing = random.choice([1.0, 14.3, 0.1])
    cells = [(x, y) for x in range(7) for y in range(7)]
    return [(x * spacing, y * spacing) for x, y in random.sample(cells, min(count, len(cells)))]


def within(places: list[Place], reach: float) -> Plane:
    """All pairs of nodes within reach have links."""
    pairs = [
        (a, b) for a, b in combinations(range(len(places)), 2) if math.dist(places[a], places[b]) <= reach
    ]
    return Plane(tuple(places), tuple(pairs))


@st.composite
def disks(draw: st.DrawFn, most: int = 30) -> Plane:
    """A connected unit-disk graph, with a reach that just suffices or a larger one."""
    random = Random(draw(st.integers(0, 2**32)))
    places = scatter(random, most)
    lengths = sorted({math.dist(a, b) for a, b in combinations(places, 2)})
    least = next(i for i, reach in enumerate(lengths) if is_connected(within(places, reach).graph))
    return within(places, lengths[min(least + random.choice([0, 0, 5, 50]), len(lengths) - 1)])


@st.composite
def planar(draw: st.DrawFn, most: int = 30) -> Plane:
    """A connected planar graph: a triangulation from which links were taken while it held together.

    Triangles without area, which rounding makes of three nodes in a line, are none.
    """
    random = Random(draw(st.integers(0, 2**32)))
    places = scatter(random, most)
    try:
        triangles = Delaunay(np.array(places)).simplices
    except (QhullError, ValueError):
        places = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.1, 0.9)]
        triangles = Delaunay(np.array(places)).simplices
    flat = [t for t in triangles.tolist() if abs(side(*(places[n] for n in t))) < 1e-9]
    links = sorted({pair for t in triangles.tolist() if t not in flat for pair in combinations(sorted(t), 2)})
    used = sorted({node for pair in links for node in pair})
    number = {node: i for i, node in enumerate(used)}
    stored = {(number[a], number[b]) for a, b in links}
    share = random.random()
    for link in sorted(stored):
        if random.random() < share:
            thinner = Plane(tuple(places[n] for n in used), tuple(stored - {link}))
            if is_connected(thinner.graph):
                stored.remove(link)
    return Plane(tuple(places[n] for n in used), tuple(sorted(stored)))


def cross(a: Place, b: Place, c: Place, d: Place) -> bool:
    """Whether two links properly cross."""
    if {a, b} & {c, d}:
        return False
    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0


def side(p: Place, q: Place, r: Place) -> float:
    """Twice the area of the triangle, positive if it turns left."""
    return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])
