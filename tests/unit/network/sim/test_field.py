"""A field of nodes without radios: the nearest node is found, and a rectangle is filled."""

import math
from itertools import pairwise

import pytest

from holdfast.errors import UsageError
from holdfast.network.sim.field import Field
from holdfast.network.sim.topology import components, uniform


@pytest.fixture(scope="module")
def field():
    return Field(uniform(200, 100.0, 100.0, 14.0, seed=3).positions, 14.0)


def nearest(field, to):
    return min(field.alive, key=lambda node: math.dist(field.places[node], to))


def test_a_path_leads_to_the_nearest_node_over_links(field):
    for i in range(60):
        to = (i * 37 % 101 - 0.5, i * 53 % 103 - 1.5)
        way = field.path(i, to)
        assert way[0] == i
        assert way[-1] == nearest(field, to)
        assert all(b in field.near(a) for a, b in pairwise(way))


def test_a_node_is_found_by_its_position(field):
    assert all(field.path(a, field.places[b])[-1] == b for a in range(0, 200, 17) for b in range(0, 200, 13))


def test_a_message_for_a_rectangle_reaches_exactly_its_nodes(field):
    hops = field.spread(0, (40.0, 40.0), (70.0, 60.0)).hops
    inside = [n for n, (x, y) in enumerate(field.places) if 40 <= x <= 70 and 40 <= y <= 60]
    assert sorted(hops) == inside
    assert field.spread(0, (200.0, 200.0), (210.0, 210.0)).hops == {}


HORSESHOE = ((3.0, 27.0), (6.0, 15.0), (19.0, 15.0), (23.0, 27.0))
"""Four nodes in a row; the first and the last stand in the rectangle, out of reach of each other."""
LEAF = ((0.0, 25.0), (25.0, 50.0))


def test_nodes_of_a_rectangle_connected_only_through_outside_nodes_are_reached():
    """The field once reached every node in a rectangle, over links or not; hosts with radios did not."""
    assert Field(HORSESHOE, 14.0).spread(0, *LEAF).hops == {0: 0, 3: 3}
    assert Field(HORSESHOE, 12.5).spread(0, *LEAF).hops == {0: 0}  # the third and fourth are not linked


def test_a_failed_node_is_gone_until_it_recovers():
    field = Field(uniform(200, 100.0, 100.0, 14.0, seed=3).positions, 14.0)
    before = field.path(0, field.places[150])
    for node in before[1:]:
        field.fail(node)
    assert components([field.places[n] for n in field.alive], 14.0) == 1
    around = field.path(0, field.places[150])
    assert not set(before[1:]) & set(around)
    assert around[-1] == nearest(field, field.places[150])
    for node in reversed(before[1:]):
        field.recover(node)
    assert field.path(0, field.places[150]) == before


def test_addresses_are_unique():
    with pytest.raises(UsageError, match="two nodes stand at one point"):
        Field([(1.0, 1.0), (1.0, 1.0)], 5.0)
