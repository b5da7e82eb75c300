"""Routing over the simulated MAC, as the layers above see it: send, handlers, peeking, and the ledger."""

from __future__ import annotations

import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import MILLISECOND, SECOND
from holdfast.model.protocol import EVERYBODY, Asked, Deliver, Received, Send
from holdfast.network.sim.frame import BROADCAST, NO_ACK, NODE_DOWN
from holdfast.network.sim.host import NodeHost
from holdfast.network.sim.mac import Aloha, Csma, LowPowerListening, RtsCts, Tdma
from holdfast.network.sim.propagation import UnitDisk
from holdfast.network.sim.routing import tempo
from holdfast.network.sim.routing.datagram import TAKEN
from holdfast.network.sim.routing.flooding import Flooding
from holdfast.network.sim.routing.geographic import Geographic
from holdfast.network.sim.routing.ledger import DELIVERED, IN_FLIGHT
from holdfast.network.sim.routing.ondemand import OnDemand
from holdfast.network.sim.routing.overhear import IdGrid
from holdfast.network.sim.routing.tree import Tree
from holdfast.network.sim.topology import grid
from support.routed import Routed, routed_network

GRID = grid(4, 4, 10.0)
LINE = grid(1, 4, 10.0)
NEAR = UnitDisk(15.0)  # eight neighbours in a grid of 10 m
SETTLED = 40 * SECOND

MACS = {
    "aloha": Aloha(),
    "csma": Csma(),
    "rts-cts": RtsCts(),
    "tdma": Tdma(),
    "low-power listening": LowPowerListening(),
}


ON_A_LINE = IdGrid(1, 4)


def line(machine=ON_A_LINE, **setup) -> Routed:
    return routed_network(machine, positions=LINE.positions, propagation=NEAR, **setup)


@pytest.mark.parametrize("mac", MACS.values(), ids=MACS)
@pytest.mark.parametrize("name", ["id grid", "geographic", "flooding", "on demand", "tree"])
def test_every_protocol_works_over_every_mac(name, mac):
    positions = GRID.positions
    made = routed_network(Flooding(), positions=positions, propagation=NEAR, mac=mac)
    speed = tempo.airing(mac, made.network.setup.radio, made.network.receivers())
    machine = {
        "id grid": IdGrid(4, 4, patience=tempo.patience(speed)),
        "geographic": Geographic(positions, tempo.beacons(speed), pause=tempo.jitter(mac, speed)),
        "flooding": Flooding(jitter=tempo.jitter(mac, speed)),
        "on demand": OnDemand(wait=tempo.answer(speed), jitter=tempo.jitter(mac, speed)),
        "tree": Tree((15,), beacons=tempo.beacons(speed), pause=tempo.jitter(mac, speed)),
    }[name]
    made = routed_network(machine, positions=positions, propagation=NEAR, mac=mac, seed=2)
    made.send(SETTLED, 0, 15, "by the diagonal")
    made.network.run(SETTLED + 20 * SECOND)
    assert made.messages(15) == ["by the diagonal"]
    assert made.came[0][2].hops >= 3
    assert made.ledger.fates() == {DELIVERED: 1}
    assert made.network.totals().is_conserved()


def test_a_handler_receives_only_the_messages_of_its_type():
    made = line()
    got = []
    made.routers[3].register_handler("other", False, got.append)
    made.send(0, 0, 3)
    made.network.at(SECOND, lambda: made.routers[0].send(3, "other", "for the other", 20))
    made.network.run(2 * SECOND)
    assert made.messages(3) == ["hello"]
    assert [datagram.message for datagram in got] == ["for the other"]


def test_a_handler_that_peeks_sees_messages_in_transit_and_may_change_them():
    """Mapping on demand needs it: every node on the path may change the message [F20]."""
    made = line()
    for node in range(4):
        made.routers[node].register_handler("test", True, lambda d, n=node: [*d.message, n])
    made.send(0, 0, 3, [])
    made.network.run(SECOND)
    assert made.messages(3) == [[1, 2]], "those between, in order; neither the sender nor the receiver"


def test_a_handler_that_peeks_may_consume_a_message():
    made = line()
    made.routers[2].register_handler("test", True, lambda datagram: None)
    made.send(0, 0, 3)
    made.network.run(10 * SECOND)
    assert made.came == []
    assert TAKEN in made.ledger.fates()


def test_a_message_to_the_own_node_arrives_at_once_and_over_no_link():
    made = line()
    made.send(0, 2, 2)
    made.network.run(1)
    assert made.messages(2) == ["hello"]
    assert made.network.totals().transmissions == 0


def test_a_message_to_all_reaches_all_with_every_protocol():
    made = line(Tree((0,)))
    made.send(SECOND, 1, BROADCAST)
    made.network.run(3 * SECOND)
    assert sorted(node for _, node, _ in made.came) == [0, 2, 3]
    assert made.ledger.fates() == {DELIVERED: 3}


def test_a_flood_of_one_hop_stays_among_the_neighbours():
    made = routed_network(IdGrid(1, 4), Flooding(limit=1), positions=LINE.positions, propagation=NEAR)
    made.send(SECOND, 0, BROADCAST)
    made.network.run(3 * SECOND)
    assert [node for _, node, _ in made.came] == [1]


@pytest.mark.parametrize(
    ("machine", "to", "message"),
    [
        (IdGrid(1, 4), 9, "cannot send to 9: the grid has 1 × 4 nodes"),
        (IdGrid(1, 4), (1.0, 2.0), "only geographic routing leads to a point"),
        (OnDemand(), (1.0, 2.0), "only geographic routing leads to a point"),
        (Flooding(), (1.0, 2.0), "only geographic routing leads to a point"),
        (Tree((0, 3)), 2, "a tree leads to its sinks only: 0, 3"),
    ],
)
def test_a_destination_that_a_protocol_cannot_reach_is_refused(machine, to, message):
    made = line(machine)
    with pytest.raises(UsageError) as caught:
        made.routers[0].send(to, "test", "hello", 20)
    assert message in str(caught.value)


def test_a_message_to_a_point_goes_to_the_node_that_is_nearest():
    made = routed_network(Geographic(GRID.positions), positions=GRID.positions, propagation=NEAR)
    for source in range(16):
        made.send(SETTLED + source * SECOND, source, (21.0, 12.0), source)
    made.network.run(SETTLED + 30 * SECOND)
    assert {node for _, node, _ in made.came} == {6}, "node 6 stands at (20, 10)"
    assert made.messages(6) == list(range(16))


# What becomes of messages.


def test_messages_in_transit_at_the_end_are_in_flight():
    made = line()
    made.send(0, 0, 3)
    made.network.run(5 * MILLISECOND)
    assert made.came == []
    assert made.ledger.fates() == {IN_FLIGHT: 1}
    made.network.run(SECOND)
    assert made.ledger.fates() == {DELIVERED: 1}


def test_an_undeliverable_message_is_dropped_with_a_reason():
    made = line(Geographic(LINE.positions))
    made.network.at(SETTLED, lambda: made.network.kill(3))
    made.send(SETTLED + 1, 0, 3)
    made.network.run(SETTLED + 60 * SECOND)
    (fate,) = made.ledger.fates()
    assert fate in (NO_ACK, "no route")


def test_datagrams_of_a_dead_node_are_lost_and_a_restart_has_no_memory():
    """On-demand routing holds messages while it asks for a route; then the node goes down."""
    made = line(OnDemand())
    made.network.cut(2, 3)
    made.send(SECOND, 0, 3, "lost")
    made.network.at(2 * SECOND, lambda: made.network.kill(0))
    made.network.run(3 * SECOND)
    assert made.ledger.fates() == {NODE_DOWN: 1}
    made.network.at(4 * SECOND, lambda: made.network.restart(0))
    made.network.at(4 * SECOND, lambda: made.network.mend(2, 3))
    made.send(5 * SECOND, 0, 3, "found")
    made.network.run(30 * SECOND)
    assert made.messages(3) == ["found"]
    assert made.ledger.fates() == {NODE_DOWN: 1, DELIVERED: 1}


def test_a_duplicate_copy_is_counted_and_not_delivered_again():
    """Node 0 does not receive the frame forwarded by node 1, so it repeats by another path; both arrive."""
    made = routed_network(IdGrid(4, 4, patience=50 * MILLISECOND), positions=GRID.positions, propagation=NEAR)
    made.network.cut(5, 0, both=False)
    made.network.cut(10, 0, both=False)
    made.send(0, 0, 15)
    made.network.run(20 * SECOND)
    assert made.messages(15) == ["hello"]
    assert sum(entry.duplicates for entry in made.ledger.entries.values()) == 1


# What runs above.


class RouterEcho:
    """Echoes each message, and sends to all nodes on request."""

    def initial(self):
        return None

    def handle(self, state, given):
        match given:
            case Asked(_, request):
                return state, [Send(EVERYBODY, request)]
            case Received(_, sender, "anybody there?"):
                return state, [Send(sender, "yes")]
            case Received(_, sender, answer):
                return state, [Deliver((sender, answer))]
        return state, []


def test_a_protocol_machine_runs_above_any_routing():
    made = line(OnDemand())
    answers = []
    hosts = [
        NodeHost(
            made.network.nodes[i],
            RouterEcho(),
            made.routers[i],
            size=len,
            deliver=lambda n, what: answers.append(what),
        )
        for i in range(4)
    ]
    made.network.at(SECOND, lambda: hosts[0].ask("anybody there?"))
    made.network.run(20 * SECOND)
    assert sorted(answers) == [("1", "yes"), ("2", "yes"), ("3", "yes")]
