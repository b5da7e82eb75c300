"""Brokers are connected along the best ways to the root."""

from __future__ import annotations

import pytest

from holdfast.network.motes.fault import ScenarioError
from holdfast.network.motes.spanning import best_next_hops, nearest, require_tree
from holdfast.network.sim.network import Network, Setup
from holdfast.network.sim.propagation import Measured, UnitDisk
from holdfast.network.sim.topology import grid


def measured_network(count: int, both: dict[tuple[int, int], float]) -> Network:
    quality = both | {(b, a): share for (a, b), share in both.items()}
    return Network(Setup(positions=[(float(i), 0.0) for i in range(count)], propagation=Measured(quality)))


def test_the_best_path_on_a_disk_has_the_fewest_hops():
    network = Network(Setup(positions=grid(3, 3, 10.0).positions, propagation=UnitDisk(15.0)))
    ways = best_next_hops(network, 0)
    assert ways[0] == 0
    assert (ways[8], ways[4], ways[1]) == (4, 0, 0)


def test_two_good_links_are_better_than_a_bad_one():
    assert best_next_hops(measured_network(3, {(0, 1): 0.9, (1, 2): 0.9, (0, 2): 0.5}), 0)[2] == 1
    assert best_next_hops(measured_network(3, {(0, 1): 0.9, (1, 2): 0.9, (0, 2): 0.9}), 0)[2] == 0


def test_one_directional_and_poor_links_are_not_used():
    network = Network(
        Setup(
            positions=[(0.0, 0.0), (1.0, 0.0), (2.0, 0.0)],
            propagation=Measured({(0, 1): 1.0, (0, 2): 0.3, (2, 0): 0.3}),
        )
    )
    assert best_next_hops(network, 0) == {0: 0}


def test_a_node_uses_the_first_broker_on_its_path():
    ways = {0: 0, 1: 0, 2: 1, 3: 2}
    assert nearest(3, ways, {0, 1}) == 1
    assert nearest(3, ways, {0, 3}) == 0


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([(0, 1), (1, 2), (2, 0)], "2: this closes a circle"),
        ([(0, 1)], "some brokers are not connected"),
        ([(0, 1), (1, 7)], "1: node 7 has no broker"),
    ],
)
def test_connections_that_form_no_tree_are_refused(pairs, message):
    with pytest.raises(ScenarioError, match=message):
        require_tree(pairs, [0, 1, 2])


def test_connections_that_form_a_tree_are_accepted():
    require_tree([(1, 0), (1, 2)], [0, 1, 2])
    require_tree([], [5])
