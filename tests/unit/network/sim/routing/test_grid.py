"""The rules of ID-based routing: from two numbers to the next hop."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.network.sim.routing.grid import candidates, hops, next_hop
from support.ether import distances, grid_graph


def path(start: int, end: int, columns: int) -> list[int]:
    found = [start]
    while found[-1] != end:
        found.append(next_hop(found[-1], end, columns))
        assert len(found) < 1000
    return found


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (5, 15, [5, 10, 15]),
        (4, 15, [4, 9, 14, 15]),
        (1, 15, [1, 6, 11, 15]),
        (12, 3, [12, 9, 6, 3]),
        (3, 4, [3, 6, 5, 4]),
        (0, 11, [0, 5, 10, 11]),
    ],
)
def test_paths_equal_those_of_the_thesis(start, end, expected):
    """AT11, on its grid of 4 × 4."""
    assert path(start, end, columns=4) == expected


def test_corner_to_corner_of_49_nodes_takes_six_hops():
    assert len(path(0, 48, columns=7)) - 1 == 6


def test_the_rules_reach_every_node_from_every_node_in_the_larger_of_rows_and_columns():
    for rows in range(1, 7):
        for columns in range(1, 7):
            graph = grid_graph(rows, columns)
            for start in graph:
                for end in graph:
                    found = path(start, end, columns)
                    assert len(found) - 1 == distances(graph, start)[end] == hops(start, end, columns)
                    assert all(b in graph[a] for a, b in pairwise(found))


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_routes_on_large_grids_take_the_larger_of_rows_and_columns(rows, columns, data):
    node = st.integers(0, rows * columns - 1)
    start, end = data.draw(node), data.draw(node)
    found = path(start, end, columns)
    assert len(found) - 1 == hops(start, end, columns)
    assert all(0 <= step < rows * columns for step in found)


@given(st.integers(1, 9), st.integers(1, 9), st.data())
def test_other_paths_are_tried_shortest_first(rows, columns, data):
    node = st.integers(0, rows * columns - 1)
    start, end = data.draw(node), data.draw(node)
    if start == end:
        return
    found = candidates(start, end, rows, columns)
    assert found[0] == next_hop(start, end, columns)
    assert set(found) == grid_graph(rows, columns)[start]
    left = [hops(other, end, columns) for other in found]
    assert left == sorted(left)
