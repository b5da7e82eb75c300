"""Geometry that a node can do alone, put together: it arrives."""

from __future__ import annotations

import math
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.network.sim.routing.geographic import Course, RoutingView, step
from holdfast.network.sim.routing.plane import gabriel
from support.ether import distances
from support.planes import Plane, cross, disks, is_connected, planar

FAR = 10_000


def gabriel_graph(plane: Plane) -> dict[int, set[int]]:
    return {
        node: set(gabriel(plane.places[node], {n: plane.places[n] for n in near}))
        for node, near in plane.graph.items()
    }


def walk(plane: Plane, start: int, destination, planarise=gabriel) -> tuple[list[int], bool]:
    """The nodes that a datagram visits by the steps that each decides alone, and whether it arrived."""
    path, course, graph = [start], Course(), plane.graph
    while path[-1] != destination and len(path) < FAR:
        node = path[-1]
        near = {n: plane.places[n] for n in graph[node]}
        chosen = step(RoutingView(node, plane.places, near, planar=planarise), destination, course)
        if chosen is None:
            return path, False
        onward, round_a_face = chosen
        assert onward in graph[node]
        course = Course(round_a_face, node)
        path.append(onward)
    return path, path[-1] == destination


@given(disks(), st.data())
def test_greedy_and_perimeter_deliver_wherever_a_path_exists(plane, data):
    ends = st.integers(0, len(plane.places) - 1)
    start, end = data.draw(ends), data.draw(ends)
    _, arrived = walk(plane, start, end)
    assert arrived


@given(planar(), st.data())
def test_greedy_and_perimeter_deliver_on_planar_graphs_of_any_shape(plane, data):
    """The graphs are not only Gabriel graphs: faces may have any shape."""
    ends = st.integers(0, len(plane.places) - 1)
    start, end = data.draw(ends), data.draw(ends)
    _, arrived = walk(plane, start, end, planarise=lambda here, near: near)
    assert arrived


@given(disks(most=16))
def test_a_gabriel_graph_stays_connected_and_has_no_crossing_links(plane):
    graph = gabriel_graph(plane)
    assert all(a in graph[b] for a, near in graph.items() for b in near)
    assert is_connected(graph)
    links = sorted({tuple(sorted((a, b))) for a, near in graph.items() for b in near})
    for (a, b), (c, d) in combinations(links, 2):
        assert not cross(*(plane.places[n] for n in (a, b, c, d)))


@given(disks(), st.floats(-0.5, 1.5), st.floats(-0.5, 1.5), st.data())
def test_a_datagram_to_a_point_ends_at_the_nearest_node_from_wherever_it_starts(plane, x, y, data):
    wide = max(max(p) for p in plane.places) or 1.0
    point = (x * wide, y * wide)
    start = data.draw(st.integers(0, len(plane.places) - 1))
    path, arrived = walk(plane, start, point)
    assert not arrived
    nearest = min(math.dist(place, point) for place in plane.places)
    assert math.isclose(math.dist(plane.places[path[-1]], point), nearest, abs_tol=1e-9 * wide)


@given(disks(), st.data())
def test_routing_without_a_path_reports_it_after_one_tour(plane, data):
    """The destination is cut off: the walk ends, and visits no more links than there are, twice."""
    start = data.draw(st.integers(0, len(plane.places) - 1))
    end = data.draw(st.integers(0, len(plane.places) - 1))
    alone = Plane(plane.places, tuple(link for link in plane.links if end not in link))
    if start == end:
        return
    path, arrived = walk(alone, start, end)
    assert not arrived
    reachable = distances(alone.graph, start)
    assert len(path) <= 4 * sum(len(alone.graph[node]) for node in reachable) + len(reachable) + 2
