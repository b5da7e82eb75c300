"""Positions of nodes: by rule, from measured networks, from tables of the user."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import InputError, UsageError
from holdfast.network.sim.topology import components, from_csv, grid, intel_lab, redwood, uniform
from support.planes import is_connected, within


def test_a_grid_is_numbered_row_by_row():
    made = grid(2, 3, 10.0)
    assert made.names == ("0", "1", "2", "3", "4", "5")
    assert made.positions[4] == (10.0, 10.0)
    assert made.columns == 3


@given(st.integers(1, 40), st.integers(0, 2**32))
def test_random_nodes_lie_in_the_area_and_are_connected(count, seed):
    made = uniform(count, 100.0, 50.0, 60.0, seed)
    assert len(made) == count
    assert all(0 <= x <= 100 and 0 <= y <= 50 for x, y in made.positions)
    assert is_connected(within(list(made.positions), 60.0).graph)
    assert made == uniform(count, 100.0, 50.0, 60.0, seed)


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 10)), min_size=1, max_size=20), st.floats(0.1, 5))
def test_connected_components_are_counted(places, reach):
    left, count = set(range(len(places))), 0
    while left:
        count += 1
        edge = [left.pop()]
        while edge:
            here = places[edge.pop()]
            near = {i for i in left if math.dist(places[i], here) <= reach}
            left -= near
            edge += near
    assert components(np.array(places), reach) == count


def test_an_area_that_is_too_large_is_refused_with_a_hint():
    with pytest.raises(UsageError) as caught:
        uniform(20, 1000.0, 1000.0, 50.0, seed=1)
    assert "a node has about 0.1 neighbours then, and about 6 are needed" in str(caught.value)
    assert "Take more nodes" in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "columns", "spacing"), [(0, 3, 1.0), (3, 0, 1.0), (3, 3, 0.0), (3, 3, math.nan)]
)
def test_a_grid_without_extent_is_refused(rows, columns, spacing):
    with pytest.raises(UsageError):
        grid(rows, columns, spacing)


# Tables of one's own.


def test_nodes_and_links_can_come_from_tables(tmp_path):
    nodes, links = tmp_path / "nodes.csv", tmp_path / "links.csv"
    nodes.write_text("node, x, y\ngate, 0, 0\nroof, 3, 4.5\n\n")
    links.write_text("sender,receiver,quality\ngate,roof,0.9\nroof,gate,0.4\n")
    made = from_csv(nodes, links)
    assert made.names == ("gate", "roof")
    assert made.positions == ((0.0, 0.0), (3.0, 4.5))
    assert made.quality == {(0, 1): 0.9, (1, 0): 0.4}


def test_height_can_be_a_third_column(tmp_path):
    path = tmp_path / "nodes.csv"
    path.write_text("z,node,y,x\n9,a,2,1\n")
    assert from_csv(path).positions == ((1.0, 2.0, 9.0),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", ":1: no column 'node'; the first line should say node,x,y,[z]"),
        ("node,x\na,1\n", ":1: no column 'y'"),
        ("node,x,y\n", "there is no node; write one row for each"),
        ("node,x,y\na,1,2\na,3,4\n", ":3: node 'a' stands there already"),
        ("node,x,y\n,1,2\n", ":2: a node needs a name"),
        ("node,x,y\na,one,2\n", ":2: x is 'one'; expected a number"),
        ("node,x,y\na,inf,2\n", ":2: x is 'inf'; expected a number"),
        ("node,x,y\na,1\n", ":2: 2 values for 3 columns"),
    ],
)
def test_an_error_in_a_table_names_its_line(tmp_path, text, message):
    path = tmp_path / "nodes.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        from_csv(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a,c,0.5", ":2: there is no node 'c' among the positions"),
        ("a,b,1.5", ":2: a quality of 1.5; expected a share between 0 and 1"),
        ("a,b,good", ":2: quality is 'good'; expected a number"),
    ],
)
def test_an_error_in_links_names_its_line(tmp_path, row, message):
    nodes, links = tmp_path / "nodes.csv", tmp_path / "links.csv"
    nodes.write_text("node,x,y\na,0,0\nb,1,1\n")
    links.write_text(f"sender,receiver,quality\n{row}\n")
    with pytest.raises(InputError) as caught:
        from_csv(nodes, links)
    assert message in str(caught.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.csv: No such file"):
        from_csv(tmp_path / "nowhere.csv")


# Measured networks.


def test_the_intel_lab_motes_are_placed_as_measured(data):
    made = intel_lab(data / "intel-lab/mote_locs.txt", data / "intel-lab/connectivity.txt")
    assert len(made) == 54
    assert made.positions[made.names.index("1")] == (21.5, 23.0)
    assert made.quality is not None
    one, three = made.names.index("1"), made.names.index("3")
    assert made.quality[one, three] == pytest.approx(0.775104)
    assert all(0 < quality <= 1 for quality in made.quality.values())
    assert all(sender != receiver for sender, receiver in made.quality)


def test_the_sonoma_redwoods_are_placed_as_measured(data):
    path = data / "redwoods-sonoma/mote-location-data.txt"
    interior, edge = redwood(path, "interior"), redwood(path, "edge")
    assert (len(interior), len(edge)) == (33, 47)
    x, y, z = edge.positions[edge.names.index("44")]
    assert math.hypot(x, y) == pytest.approx(5.0), "5 m from the trunk"
    assert x < y < 0, "west-south-west"
    assert z == 33.5
    with pytest.raises(UsageError, match="there is no tree 'middle', only edge and interior"):
        redwood(path, "middle")
