"""A message for all nodes of a rectangle, also where these are connected only through nodes outside of it."""

from __future__ import annotations

import math
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.space import Rectangle
from holdfast.network.sim.routing.plane import Surroundings, gabriel
from holdfast.network.sim.routing.spreading import SpreadResult, is_inside, spread
from support.planes import Plane, disks, planar

SEEDS = st.integers(0, 2**32)


def rectangle(plane: Plane, random: Random) -> Rectangle:
    """A rectangle that is often thinner than the distance between nodes, often with nodes on its sides."""
    (left, right), (low, high) = (
        sorted(random.choice([random.choice(plane.places)[axis], random.uniform(-1, 15)]) for _ in range(2))
        for axis in (0, 1)
    )
    return Rectangle((left, low), (right, high))


def spread_from(
    plane: Plane, start: int, area: Rectangle, planarise=gabriel, reach=None
) -> SpreadResult[int]:
    graph = plane.graph

    def known(node: int) -> Surroundings[int]:
        near = {other: plane.places[other] for other in graph[node]}
        return Surroundings(node, plane.places[node], near, planar=planarise, reach=reach)

    return spread(start, area, known)


def inside(plane: Plane, area: Rectangle) -> set[int]:
    return {node for node, place in enumerate(plane.places) if is_inside(area, place)}


@given(disks(), SEEDS)
def test_every_node_of_a_rectangle_is_reached_over_links_from_anywhere(plane, seed):
    random = Random(seed)
    area, start = rectangle(plane, random), random.randrange(len(plane.places))
    found = spread_from(plane, start, area)
    assert found.hops.keys() == inside(plane, area)
    assert all(hops < len(found.senders) + 1 for hops in found.hops.values())


@given(disks(), SEEDS)
def test_walks_are_omitted_only_where_all_nodes_are_covered(plane, seed):
    random = Random(seed)
    area, start = rectangle(plane, random), random.randrange(len(plane.places))
    reach = max(math.dist(plane.places[a], plane.places[b]) for a, b in plane.links)
    found, whole = spread_from(plane, start, area, reach=reach), spread_from(plane, start, area)
    assert found.hops.keys() == inside(plane, area)
    assert len(found.senders) <= len(whole.senders)


@given(planar(), SEEDS)
def test_every_node_of_a_rectangle_is_reached_on_planar_graphs_of_any_shape(plane, seed):
    """From a node of the rectangle; faces may be as crooked as they like, and links may cross all of it."""
    random = Random(seed)
    area = rectangle(plane, random)
    for start in sorted(inside(plane, area))[:1]:
        found = spread_from(plane, start, area, planarise=lambda here, near: near)
        assert found.hops.keys() == inside(plane, area)


@given(disks(), SEEDS)
def test_a_node_repeats_the_message_once_and_uses_a_link_of_the_planar_graph_once_in_each_direction(
    plane, seed
):
    random = Random(seed)
    area, start = rectangle(plane, random), random.randrange(len(plane.places))
    found = spread_from(plane, start, area)
    most = len(found.hops) + 2 * len(plane.links) + 4 * len(plane.places)  # and the way to the rectangle
    assert len(found.senders) <= most


def test_a_link_that_crosses_the_rectangle_hides_no_node():
    """Two triangles share the link 2-3, which crosses the rectangle; in each of them one of its nodes stands,
    which only the triangle's far corner reaches."""
    places = ((0.0, 0.0), (-10.0, 0.0), (4.0, 10.0), (4.0, -10.0), (18.0, 0.0), (8.0, 0.0))
    links = ((0, 1), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4), (4, 5))
    area = Rectangle((-1.0, -1.0), (9.0, 1.0))
    for start in (0, 5, 2):
        found = spread_from(Plane(places, links), start, area, planarise=lambda here, near: near)
        assert found.hops.keys() == {0, 5}


def test_nodes_without_a_path_to_the_rectangle_are_omitted():
    places = ((0.0, 0.0), (10.0, 0.0), (20.0, 0.0), (40.0, 0.0))
    found = spread_from(Plane(places, ((0, 1), (1, 2))), 0, Rectangle((18.0, -1.0), (50.0, 1.0)))
    assert found.hops == {2: 2}
    assert found.senders[:2] == [0, 1]
