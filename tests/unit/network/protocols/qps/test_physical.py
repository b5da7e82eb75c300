"""The physical layer of Quad-PubSub: who acts for a logical broker, hand-overs, failures.  [F33, F44–F49]"""

import math

import msgspec
import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import SECOND
from holdfast.model.protocol import Fired, Received
from holdfast.model.space import Rectangle
from holdfast.network.motes.field import FieldNetwork
from holdfast.network.protocols.qps import message, tables
from holdfast.network.protocols.qps.area import of
from holdfast.network.protocols.qps.deployment import QpsDeployment
from holdfast.network.protocols.qps.envelope import (
    Envelope,
    NodeEnvelope,
    RoleHeartbeat,
    RoleOffer,
    RoleTables,
    RoleVacant,
    SeekEnvelope,
    bytes_of,
)
from holdfast.network.protocols.qps.mapping import Resources, RoleMapping, by_resources, fallen_below
from holdfast.network.protocols.qps.physical import PhysicalNode
from holdfast.network.protocols.qps.request import (
    FailedCoverage,
    PresenceSign,
    QpsAdvertiseRequest,
    QpsNotify,
    QpsPublishRequest,
    QpsSubscribeRequest,
    QpsUnsubscribeRequest,
)
from holdfast.network.protocols.qps.role_messaging import KnownHolder, OwnRole, RoleHandover
from holdfast.network.protocols.qps.state import LogicalBroker
from holdfast.network.protocols.qps.tree import ROOT, QuadScope, ScopeTree
from holdfast.network.sim.field import Field

WHOLE = Rectangle((0.0, 0.0), (64.0, 64.0))
CORNER = Rectangle((0.0, 0.0), (8.0, 8.0))
TREE = ScopeTree((0.0, 0.0), 64.0, 2)
PUBLISHER, SUBSCRIBER = 0, 63


def network(*, mapping=None, **options):
    """A node in each of 8 × 8 squares, in reach of the eight round it."""
    places = [(8.0 * x + 4, 8.0 * y + 4 + x / 100) for x in range(8) for y in range(8)]
    mapping = mapping or RoleMapping(check=10 * SECOND, patience=2 * SECOND)
    deployment = QpsDeployment(tree=TREE, topics=("Heat",), mapping=mapping, **options)
    return FieldNetwork(Field(places, 12.0), lambda node: PhysicalNode(deployment, places[node]))


def roles(net):
    return {role[1]: node for node, host in net.hosts.items() for role in host.state.own_roles}


def deliveries(net, kind=QpsNotify):
    found = [(node, what) for _, node, what in net.delivered if isinstance(what, kind)]
    net.delivered.clear()
    return found


def connect(net):
    net.ask(PUBLISHER, QpsAdvertiseRequest("p", "Heat", CORNER))
    net.ask(SUBSCRIBER, QpsSubscribeRequest("s", "Heat", WHOLE, 5.0))
    net.run(5 * SECOND)


def comes(net, times=1):
    """How many of so many events come to the subscriber."""
    for n in range(times):
        net.ask(PUBLISHER, QpsPublishRequest("p", "Heat", (1.0, 1.0), {"n": n}))
    net.run(SECOND)
    return len(deliveries(net))


# --- mapping ---


def test_by_position_the_nearest_node_acts_for_a_broker():
    net = network()
    connect(net)
    for scope, node in roles(net).items():
        address = TREE.address("Heat", scope)
        assert net.field.path(5, address)[-1] == node


def test_by_position_a_node_acts_for_every_broker_that_it_is_nearest_to():
    """Nodes that had a role once left others to nodes farther away: 24 of 26 roles in an audit."""
    places = [(20.0 * x + 12, 20.0 * y + 12 + x / 100) for x in range(3) for y in range(3)]
    deployment = QpsDeployment(tree=ScopeTree((0.0, 0.0), 64.0, 3), topics=("Heat",), mapping=RoleMapping())
    net = FieldNetwork(Field(places, 30.0), lambda node: PhysicalNode(deployment, places[node]))
    net.ask(0, QpsSubscribeRequest("s", "Heat", WHOLE, 5.0))
    net.run(5 * SECOND)
    held = [(role[1], node) for node, host in net.hosts.items() for role in host.state.own_roles]
    assert len(held) == len(dict(held)) > len(places)
    for scope, node in held:
        address = deployment.tree.address("Heat", scope)
        assert node == min(range(9), key=lambda n: math.dist(places[n], address))


def test_a_role_at_a_distant_node_moves_to_the_nearest_one_without_losing_an_event():
    """The nearest node may be out of reach for a while: it is down here, and comes back."""
    net = network()
    role, address = ("Heat", ROOT), TREE.address("Heat", ROOT)
    nearest = net.field.path(5, address)[-1]
    net.kill(nearest)
    connect(net)
    assert roles(net)[ROOT] != nearest
    net.start(nearest)
    came = 0
    for _ in range(30):
        net.run(SECOND)
        came += comes(net)
    assert came == 30
    assert [node for node, host in net.hosts.items() if role in host.state.own_roles] == [nearest]


def test_of_two_nodes_that_act_for_a_broker_the_nearest_keeps_the_role_and_all_tables():
    net = network()
    connect(net)
    nearest, role = roles(net)[ROOT], ("Heat", ROOT)
    other = next(n for n in net.hosts if n not in (nearest, PUBLISHER, SUBSCRIBER, 7))
    logical = LogicalBroker(*role, turn=net.now + SECOND)  # it began the role later, and knows one subscriber
    net.hosts[other].state.broker.logical[role] = logical
    net.hosts[other].state.own_roles[role] = OwnRole(1.0)
    asked = message.QpsSubscribe(
        "Heat", message.QpsSource(net.field.places[7]), ROOT, of(WHOLE), 5.0, False, net.now
    )
    net.ask(7, QpsSubscribeRequest("t", "Heat", WHOLE, 5.0))
    net.hosts[other].tell(Received, "", NodeEnvelope(net.hosts[other].machine.broker.at, asked))
    net.run(30 * SECOND)
    assert [node for node, host in net.hosts.items() if role in host.state.own_roles] == [nearest]
    assert comes(net) == 2


def test_a_search_finds_a_better_node_on_its_way_that_all_nodes_use_afterwards():
    net = network(mapping=RoleMapping(suit=by_resources(64.0), check=10 * SECOND))
    rich = net.field.path(SUBSCRIBER, TREE.address("Heat", ROOT))[1]
    for node in net.hosts:
        net.ask(node, Resources(energy=1.0 if node == rich else 0.01))
    net.ask(SUBSCRIBER, QpsSubscribeRequest("s", "Heat", WHOLE, 5.0))
    net.run(5 * SECOND)
    assert roles(net)[ROOT] == rich
    net.ask(7, QpsSubscribeRequest("t", "Heat", WHOLE, 5.0))
    net.ask(PUBLISHER, QpsAdvertiseRequest("p", "Heat", CORNER))
    net.run(5 * SECOND)
    held = [role for host in net.hosts.values() for role in host.state.own_roles]
    assert len(held) == len(set(held))
    assert comes(net) == 2


def test_a_node_has_one_role_in_a_tree_while_there_are_enough_nodes():
    """The one that suits best on every way has the first that it is asked for, and offers itself no more."""
    net = network(mapping=RoleMapping(suit=by_resources(1e6), check=10 * SECOND))
    for node in net.hosts:
        net.ask(node, Resources(energy=1.0 if node == SUBSCRIBER else 0.5))
    net.ask(SUBSCRIBER, QpsSubscribeRequest("s", "Heat", CORNER, 1.0))
    net.run(5 * SECOND)
    net.ask(SUBSCRIBER, QpsAdvertiseRequest("p", "Heat", WHOLE))
    net.run(5 * SECOND)
    assert SUBSCRIBER in roles(net).values()
    assert len(set(roles(net).values())) == len(roles(net)) >= 4


def test_the_fit_of_a_node_depends_on_its_scarcest_resource_and_distance():
    suit = by_resources(10.0)
    assert suit(Resources(energy=0.8, memory=0.2), 0.0) == suit(Resources(energy=0.2), 0.0) == 0.2
    assert suit(Resources(), 10.0) == 0.5


def test_a_holder_without_heartbeats_is_forgotten_after_three_checks():
    net = network()
    connect(net)
    net.run(60 * SECOND)
    knowing = [node for node, host in net.hosts.items() if ("Heat", ROOT) in host.state.holders]
    assert knowing  # heartbeats keep it known
    net.kill(roles(net)[ROOT])
    net.run(20 * SECOND)
    assert any(("Heat", ROOT) in net.hosts[node].state.holders for node in knowing if node in net.hosts)
    net.run(30 * SECOND)
    assert not any(("Heat", ROOT) in host.state.holders for host in net.hosts.values())


# --- hand-over ---

TIRING = RoleMapping(
    suit=by_resources(8.0), compare=fallen_below(0.5), check=10 * SECOND, patience=2 * SECOND
)


def turns(net):
    return {
        role[1]: h.state.broker.logical[role].turn for h in net.hosts.values() for role in h.state.own_roles
    }


def test_a_node_low_on_energy_hands_over_its_role_without_loss_or_duplicates():
    net = network(mapping=TIRING)
    connect(net)
    before, since = roles(net), turns(net)
    for node in before.values():
        net.ask(node, Resources(energy=0.1))
    came = 0
    for _ in range(40):
        net.run(SECOND // 2)
        came += comes(net)
    after = roles(net)
    assert came == 40
    assert before.keys() == after.keys()
    assert all(before[scope] != after[scope] for scope in before)
    assert all(since[scope] < turn for scope, turn in turns(net).items())  # of two, the later acts
    assert net.messages["offer"] == net.messages["taken"] == len(before)


def test_tables_can_be_rebuilt_from_their_messages():
    net = network(mapping=TIRING)
    connect(net)
    net.ask(9, QpsAdvertiseRequest("far", "Heat", Rectangle((40.0, 40.0), (50.0, 50.0))))
    net.ask(10, QpsSubscribeRequest("t", "Heat", CORNER, 1.0, guaranteed=True))
    net.run(20 * SECOND)
    for host in net.hosts.values():
        for role in host.state.broker.logical.values():
            rows = tuple(tables.rows(role))
            again = tables.broker_from((role.topic, role.scope), rows, role.turn, role.version, 0)
            assert tuple(tables.rows(again)) == rows
            parts = tables.split_rows(rows, 40)
            assert [row for part in parts for row in part] == list(rows)


def test_without_an_answer_of_the_successor_the_role_stays_and_waiting_messages_are_processed():
    net = network(mapping=TIRING)
    connect(net)
    role, host = ("Heat", ROOT), net.hosts[roles(net)[ROOT]]
    host.state.handovers[role] = RoleHandover()
    host.tell(
        Received, "", NodeEnvelope(host.machine.broker.at, RoleOffer(*role, (1.0, 63.0)))
    )  # without a node at that place
    net.ask(7, QpsSubscribeRequest("t", "Heat", WHOLE, 5.0))
    net.run(SECOND)
    assert comes(net) == 1  # events are forwarded, changes wait
    host.tell(Fired, f"giving/Heat/{ROOT}")
    net.run(SECOND)
    assert comes(net) == 2


def test_a_holder_that_seeks_a_successor_still_sends_heartbeats():
    """It once did not; when no node took the role, nodes forgot its holder, and another node started it
    again."""
    hasty = RoleMapping(suit=by_resources(8.0), compare=lambda *_: True, check=10 * SECOND, patience=1)
    net = network(mapping=hasty)
    connect(net)
    before, output = roles(net), net.messages["here"]
    net.run(40 * SECOND)
    assert roles(net) == before
    assert net.messages["here"] - output == 4 * len(before)


def acting(net):
    """The node that acts for the root; one that does not know, and that node 7 takes for it; the role."""
    role, host = ("Heat", ROOT), net.hosts[roles(net)[ROOT]]
    other = next(other for other in net.hosts.values() if not other.state.own_roles)
    other.state.holders.pop(role, None)
    net.hosts[7].state.holders[role] = KnownHolder(other.machine.broker.at, net.now, net.now)
    return host, other, role


def test_a_node_that_receives_a_vacancy_still_knows_the_holder_and_does_not_take_the_role():
    net = network(mapping=TIRING)
    connect(net)
    host, other, role = acting(net)
    at = host.machine.broker.at
    other.state.holders[role] = KnownHolder(at, 0, net.now)
    other.tell(Received, "", SeekEnvelope(RoleVacant(*role, at), left=(at,)))
    net.ask(7, QpsSubscribeRequest("t", "Heat", WHOLE, 5.0))
    net.run(SECOND)
    assert role in host.state.own_roles
    assert role not in other.state.own_roles
    assert comes(net) == 2


def test_tables_for_a_successor_that_already_has_the_role_are_not_lost():
    net = network(mapping=TIRING)
    connect(net)
    host, other, role = acting(net)
    net.ask(7, QpsSubscribeRequest("t", "Heat", WHOLE, 5.0))
    while role not in other.state.own_roles:
        net.run(SECOND // 1000)
    host.state.handovers[role] = RoleHandover()
    host.tell(Received, "", NodeEnvelope(host.machine.broker.at, RoleOffer(*role, other.machine.broker.at)))
    net.run(SECOND)
    assert role in other.state.own_roles
    assert role not in host.state.own_roles
    assert comes(net) == 2


def test_a_former_holder_sends_its_tables_to_another_holder_too():
    net = network(mapping=TIRING)
    connect(net)
    host, other, role = acting(net)
    host.state.handovers[role] = RoleHandover()
    host.tell(
        Received, "", NodeEnvelope(host.machine.broker.at, RoleOffer(*role, (1.0, 63.0)))
    )  # without a node at that place
    net.ask(7, QpsSubscribeRequest("t", "Heat", WHOLE, 5.0))
    net.run(SECOND)
    assert role in other.state.own_roles
    assert role not in host.state.own_roles
    assert comes(net) == 2


def test_receiving_an_event_gives_a_node_no_role():
    net = network(mapping=TIRING)
    connect(net)
    host, other, role = acting(net)
    at = other.machine.broker.at
    event = message.RoutedPublication("Heat", message.QpsSource(at), ROOT, (1.0, 1.0), at, "p", net.now, {})
    other.tell(Received, "", NodeEnvelope(at, event))
    net.run(SECOND)
    assert role in host.state.own_roles
    assert role not in other.state.own_roles


def test_a_former_holder_remembers_its_successor_longer_than_others_remember_the_former():
    net = network(mapping=TIRING)
    connect(net)
    host, other, role = acting(net)
    successor, turn = other.machine.broker.at, net.now + 1
    for _ in range(2):  # it gives the role up, and receives a heartbeat
        host.tell(Received, "", NodeEnvelope(host.machine.broker.at, RoleHeartbeat(*role, successor, turn)))
        assert host.state.holders[role] == KnownHolder(successor, turn, net.now + 3 * TIRING.check)


def test_a_broker_with_empty_tables_after_a_renewal_still_sends_heartbeats():
    """A renewal removed the tables of a role that the node still held; the next heartbeat of another node
    for that role ended the run with a KeyError."""
    net = network(mapping=RoleMapping(check=60 * SECOND), renewal=2 * SECOND, memory=4 * SECOND)
    connect(net)
    role, host = ("Heat", ROOT), net.hosts[roles(net)[ROOT]]
    net.ask(SUBSCRIBER, QpsUnsubscribeRequest("s", "Heat", WHOLE))
    net.run(20 * SECOND)
    assert host.state.broker.logical[role].is_empty
    at = net.field.places[7]
    host.tell(Received, "", SeekEnvelope(RoleHeartbeat(*role, at, 0)))
    host.tell(Received, "", NodeEnvelope(host.machine.broker.at, RoleOffer(*role, at)))
    net.run(60 * SECOND)  # the check removes the role and its tables together
    for each in net.hosts.values():
        assert each.state.own_roles.keys() == each.state.broker.logical.keys()


# --- failures ---


def test_a_neighbour_has_the_tables_of_a_broker_that_fails():
    net = network(mapping=TIRING)
    connect(net)
    net.run(15 * SECOND)  # tables are copied
    root = roles(net)[ROOT]
    assert root not in (PUBLISHER, SUBSCRIBER)
    net.kill(root)
    assert comes(net, 3) == 3
    assert roles(net)[ROOT] in net.field._links[root]


def test_without_copies_repeated_requests_rebuild_a_broker():
    net = network(mapping=RoleMapping(check=3600 * SECOND), renewal=10 * SECOND)
    connect(net)
    net.kill(roles(net)[ROOT])
    assert comes(net) == 0
    net.run(60 * SECOND)
    assert comes(net) == 1


def test_a_message_does_not_alternate_between_two_failed_nodes():
    net = network(mapping=TIRING)
    connect(net)
    role, first = ("Heat", ROOT), roles(net)[ROOT]
    then = next(node for node in range(20, 60) if node not in roles(net).values())
    beside = net.field.near(first).keys()
    for node, host in net.hosts.items():  # each near the one believes in the other
        known = net.field.places[then if node in beside else first]
        host.state.holders[role] = KnownHolder(known, net.now, net.now)
        host.state.copies.clear()
    net.kill(first)
    net.kill(then)
    net.ask(7, QpsSubscribeRequest("t", "Heat", WHOLE, 5.0))
    net.run(5 * SECOND)
    assert roles(net)[ROOT] not in (first, then)
    assert comes(net) == 1  # the other subscriber has not repeated its request


def test_a_new_holder_copies_its_tables_at_once():
    net = network(mapping=TIRING)
    connect(net)
    net.run(15 * SECOND)
    for _ in range(3):  # also who has just taken it may fail
        net.kill(roles(net)[ROOT])
        assert comes(net, 2) == 2


def test_events_wait_for_the_node_of_a_subscriber_until_it_is_reported_as_gone():
    net = network(mapping=TIRING)
    connect(net)
    net.kill(SUBSCRIBER)
    assert comes(net) == 0
    assert any(host.state.undelivered_events for host in net.hosts.values())
    before = net.messages["publication"]
    net.run(30 * SECOND)
    assert net.messages["publication"] == before + TIRING.tries
    assert not any(host.state.undelivered_events for host in net.hosts.values())
    links = [w for h in net.hosts.values() for r in h.state.broker.logical.values() for w in r.links]
    assert not any(not isinstance(key, QuadScope) for key in links)


def test_coverage_guarantees_report_the_failure_of_the_node_of_a_publisher():
    net = network()
    net.ask(PUBLISHER, QpsAdvertiseRequest("p", "Heat", CORNER))
    net.ask(SUBSCRIBER, QpsSubscribeRequest("s", "Heat", CORNER, guaranteed=True))
    net.run(30 * SECOND)
    assert deliveries(net, FailedCoverage) == []
    net.kill(PUBLISHER)
    net.run(60 * SECOND)
    ((node, failed),) = deliveries(net, FailedCoverage)
    assert (node, failed.client) == (SUBSCRIBER, "s")


def test_clients_that_vanish_are_removed_by_their_node():
    net = network(attendance=10 * SECOND)
    net.ask(PUBLISHER, QpsAdvertiseRequest("p", "Heat", WHOLE))
    net.ask(SUBSCRIBER, QpsSubscribeRequest("s", "Heat", WHOLE))
    for _ in range(6):
        net.run(10 * SECOND)
        net.ask(PUBLISHER, PresenceSign("p"))
    net.run(SECOND)
    state = net.hosts[SUBSCRIBER].state.broker
    assert not state.topics["Heat"].subscriptions
    assert not any(r.requests for h in net.hosts.values() for r in h.state.broker.logical.values())
    net.run(60 * SECOND)
    assert not net.hosts[PUBLISHER].state.broker.topics["Heat"].adverts


def test_all_messages_can_be_encoded():
    net = network(mapping=TIRING)
    connect(net)
    role = net.hosts[roles(net)[ROOT]].state.broker.logical["Heat", ROOT]
    rows = tuple(tables.rows(role))
    wire = msgspec.msgpack.Decoder(Envelope)
    for given in (
        SeekEnvelope(rows[0], (1.0, 2.0), 0.5, ((3.0, 4.0),)),
        NodeEnvelope((1.0, 2.0), RoleTables("Heat", ROOT, (1.0, 2.0), 3, 4, 0, 1, rows)),
    ):
        assert wire.decode(msgspec.msgpack.encode(given)) == given
        assert bytes_of(given) > 20


def test_an_impossible_mapping_is_refused():
    with pytest.raises(UsageError, match="check is 0"):
        RoleMapping(check=0)
    with pytest.raises(UsageError, match="attendance every -1"):
        QpsDeployment(tree=ScopeTree((0.0, 0.0), 64.0, 2), topics=("Heat",), attendance=-1)
