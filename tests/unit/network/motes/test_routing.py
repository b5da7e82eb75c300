"""The routing settings of a scenario, and their defaults for a network."""

from __future__ import annotations

import pytest

from holdfast.model.instant import MILLISECOND, SECOND
from holdfast.network.motes import routing
from holdfast.network.motes.fault import ScenarioError
from holdfast.network.motes.routing import machines
from holdfast.network.sim.frame import BROADCAST
from holdfast.network.sim.mac import Csma, Tdma
from holdfast.network.sim.routing.flooding import Flooding
from holdfast.network.sim.routing.geographic import Geographic
from holdfast.network.sim.routing.ondemand import OnDemand
from holdfast.network.sim.routing.overhear import IdGrid
from holdfast.network.sim.routing.static import Static
from holdfast.network.sim.routing.tree import Tree
from holdfast.network.sim.topology import Topology, grid

PLACED = grid(2, 3, 10.0)
FAST, SLOW = 5 * MILLISECOND, SECOND
"""How long it takes to say something."""


def made(settings: routing.Routing, airing: int = FAST, ends: tuple = (), placed: Topology = PLACED):
    return machines(settings, placed, Csma(), airing, ends)


@pytest.mark.parametrize(
    ("settings", "machine"),
    [
        (routing.IdGrid(), IdGrid(2, 3)),
        (routing.IdGrid(resends=0, distrust=SECOND), IdGrid(2, 3, resends=0, distrust=SECOND)),
        (routing.Static(), Static(2, 3)),
        (routing.OnDemand(tries=1), OnDemand(tries=1, jitter=40 * MILLISECOND)),
        (
            routing.OnDemand(keep=30 * SECOND, resends=0, second=False, buffers=1),
            OnDemand(30 * SECOND, resends=0, second=False, buffers=1, jitter=40 * MILLISECOND),
        ),
        (routing.OnDemand(jitter=SECOND, wait=3 * SECOND), OnDemand(jitter=SECOND, wait=3 * SECOND)),
        (routing.Flooding(limit=3), Flooding(3, 40 * MILLISECOND)),
    ],
)
def test_omitted_settings_take_defaults_or_follow_from_the_network(settings, machine):
    assert made(settings)[0] == machine


def test_a_slow_network_is_given_more_time():
    assert made(routing.IdGrid(), SLOW)[0].patience == 6 * SECOND
    assert made(routing.OnDemand(), SLOW)[0].wait == 60 * SECOND
    assert made(routing.Geographic(), SLOW)[0].beacons.slow > made(routing.Geographic())[0].beacons.slow
    assert made(routing.Geographic(beacons=SECOND), SLOW)[0].beacons.slow == SECOND


def test_messages_to_all_are_flooded_by_every_protocol():
    for settings in (routing.Static(jitter=7), routing.OnDemand(jitter=7), routing.Flooding(jitter=7)):
        assert made(settings)[1] == Flooding(jitter=7)
    assert machines(routing.Static(), PLACED, Tdma(), FAST, ())[1].jitter == 0, "slots keep them apart"


def test_a_tree_leads_to_named_sinks_or_to_all_destinations():
    named = made(routing.Tree(sinks=(3, 1, 3), metric="hops"))[0]
    assert (named.sinks, named.metric) == ((3, 1), "hops")
    found = made(routing.Tree(), ends=(5, BROADCAST, 5, (1.0, 2.0), 0))[0]
    assert isinstance(found, Tree)
    assert (found.sinks, found.metric) == ((5, 0), "etx")


@pytest.mark.parametrize(
    ("settings", "placed", "message"),
    [
        (
            routing.IdGrid(),
            Topology(("a",), ((0.0, 0.0),)),
            "kind: ID-based routing needs nodes of kind grid",
        ),
        (
            routing.Static(),
            Topology(("a",), ((0.0, 0.0),)),
            "kind: ID-based routing needs nodes of kind grid",
        ),
        (routing.Tree(), PLACED, "a tree needs a sink"),
        (routing.Tree(sinks=(0, 9)), PLACED, "sinks.1: there is no node '9'"),
    ],
)
def test_impossible_settings_are_reported(settings, placed, message):
    with pytest.raises(ScenarioError, match=message):
        made(settings, placed=placed)


def test_geographic_routing_knows_the_positions_of_nodes():
    found = made(routing.Geographic(distrust=SECOND))[0]
    assert isinstance(found, Geographic)
    assert (found.places, found.distrust) == (PLACED.positions, SECOND)
