"""ID-based routing without maintenance: once, by the rules, or not at all."""

from __future__ import annotations

from holdfast.model.instant import SECOND
from holdfast.network.sim.routing.datagram import HOP_LIMIT
from holdfast.network.sim.routing.static import Static
from support.ether import Ether, grid_graph


def test_a_datagram_follows_the_rules_and_is_sent_once_on_each_hop():
    """AT11: 12 → 9 → 6 → 3 on a grid of 4 × 4."""
    ether = Ether(Static(4, 4), grid_graph(4, 4))
    ether.send(0, 12, 3)
    ether.run(SECOND)
    assert [(node, sent.to) for node, sent in ether.transmitted] == [(12, 9), (9, 6), (6, 3)]
    ((node, datagram),) = ether.delivered
    assert (node, datagram.hops) == (3, 3)


def test_losses_of_a_link_are_not_repeated():
    ether = Ether(Static(4, 4), grid_graph(4, 4), loses=lambda a, b: (a, b) == (9, 6))
    ether.send(0, 12, 3)
    ether.run(SECOND)
    assert len(ether.transmitted) == 2
    assert ether.delivered == []


def test_datagrams_end_at_their_hop_limit_and_destinations_outside_the_grid_are_refused():
    ether = Ether(Static(1, 5, limit=2), grid_graph(1, 5))
    ether.send(0, 0, 4)
    ether.run(SECOND)
    assert [why for _, _, why in ether.discarded] == [HOP_LIMIT]
    assert Static(4, 4).refuses(16) == "the grid has 4 × 4 nodes, from 0"
    assert Static(4, 4).refuses((1.0, 2.0)) is not None
