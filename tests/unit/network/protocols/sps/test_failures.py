"""Tables 5.12 and 5.13 row by row: which layer answers for what goes wrong, and who is replaced.  [F79]

Clocks and locations that drift are the network's: nodes are given time and place.  That a radio sends a lost
packet again is tested where radios are (``sim``); what the layers above do about a loss is here.
"""

from __future__ import annotations

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.component.compile import smc
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.detector.manager import STATUS, TIME, Components
from holdfast.model.instant import SECOND
from holdfast.model.space import Rectangle
from holdfast.network.motes.field import FieldNetwork
from holdfast.network.protocols.qps.deployment import QpsDeployment
from holdfast.network.protocols.qps.envelope import NodeEnvelope, SeekEnvelope
from holdfast.network.protocols.qps.mapping import RoleMapping
from holdfast.network.protocols.qps.message import QpsSubscribe, RoutedPublication
from holdfast.network.protocols.qps.physical import PhysicalNode
from holdfast.network.protocols.qps.request import (
    FailedCoverage,
    QpsAdvertiseRequest,
    QpsNotify,
    QpsPublishRequest,
    QpsUnsubscribeRequest,
)
from holdfast.network.protocols.qps.request import QpsSubscribeRequest as Want
from holdfast.network.protocols.qps.tree import ROOT, ScopeTree
from holdfast.network.protocols.sps.node import InsertComponent, SpsNode
from holdfast.network.sim.field import Field

SPACE = Rectangle((0.0, 0.0), (64.0, 64.0))
CORNER = Rectangle((0.0, 0.0), (8.0, 8.0))
MAPPING = RoleMapping(check=10 * SECOND, patience=2 * SECOND)
USER, SENSOR, HOST = 63, 0, 20
TEXT = """
    topic T (value float)
    state Hot A = T each location within [(0, 0), (40, 64)] enter A.value > 5 exit A.value < 3
"""
SMCS = {each.name: smc(each) for each in check(parse(TEXT)).of(ComponentCondition)}


def network(seed=None, **options):
    """A node in each of 8 × 8 squares, in reach of the eight round it."""
    places = [(8.0 * x + 4, 8.0 * y + 4 + x / 100) for x in range(8) for y in range(8)]
    deployment = QpsDeployment(
        tree=ScopeTree((0.0, 0.0), 64.0, 2),
        topics=("T", "Hot"),
        mapping=MAPPING,
        keeps_latest=True,
        **options,
    )

    def node(number):
        at = places[number]
        return SpsNode(PhysicalNode(deployment, at), Components(SMCS, SPACE, at), at, SPACE)

    return FieldNetwork(Field(places, 12.0), node, seed)


def connect(net):
    """A sensor, and a user who wants its readings."""
    net.ask(SENSOR, QpsAdvertiseRequest("s", "T", CORNER))
    net.ask(USER, Want("u", "T", SPACE, 5.0))
    net.run(15 * SECOND)
    return net


def watch(net):
    """A sensor, a component that watches it, and a user who subscribes to its events."""
    net.ask(SENSOR, QpsAdvertiseRequest("s", "T", CORNER))
    net.ask(USER, Want("u", "Hot", SPACE, 5.0))
    net.ask(HOST, InsertComponent("Hot"))
    net.run(15 * SECOND)
    return net


def reads(net, value=8.0):
    """The sensor has a reading; when."""
    net.ask(SENSOR, QpsPublishRequest("s", "T", (4.0, 4.0), {"value": value}))
    return net.hosts[SENSOR].state.broker.broker.latest


def deliveries(net, kind=QpsNotify):
    found = [what for _, _, what in net.delivered if isinstance(what, kind)]
    net.delivered.clear()
    return found


def comes(net):
    """How many have the sensor's next reading."""
    reads(net)
    net.run(2 * SECOND)
    return len(deliveries(net))


def roles(net):
    return {role[1]: node for node, host in net.hosts.items() for role in host.state.broker.own_roles}


def hosts(net):
    return [node for node, host in net.hosts.items() if "Hot" in host.state.components]


def links(net):
    return sum(host.state.broker.broker.links for host in net.hosts.values())


def losing(net, kind, seconds):
    """Let time pass, and lose every message of a kind."""
    arrives = net._arrive

    def arrive(what):
        inner = what[2].message if isinstance(what[2], SeekEnvelope | NodeEnvelope) else what[2]
        if isinstance(inner, kind):
            net._on_the_way -= 1
        else:
            arrives(what)

    net._arrive = arrive
    net.run(seconds * SECOND)
    net._arrive = arrives


# --- Table 5.12: which layer answers ---


def test_the_network_routes_around_a_failed_node():
    net = connect(network())
    way = net.field.path(SENSOR, net.field.places[USER])
    for node in set(way[1:-1]) - set(roles(net).values()):
        net.kill(node)
    assert net.field.down
    assert comes(net) == 1


def test_publish_subscribe_uses_another_broker_after_a_node_fails():
    net = connect(network())
    root = roles(net)[ROOT]
    net.kill(root)
    assert comes(net) == 1
    assert roles(net)[ROOT] != root


def test_a_component_restarts_nearby_after_its_node_fails():
    net = watch(network(renewal=10 * SECOND))
    net.kill(HOST)
    net.run(60 * SECOND)
    (host,) = hosts(net)
    assert host in net.field._links[HOST]
    when = reads(net)
    net.run(20 * SECOND)
    assert [(what.values[STATUS], what.values[TIME]) for what in deliveries(net)] == [("ingress", when)]


def test_requests_are_repeated_after_packet_loss_but_events_are_lost():
    net = network(renewal=10 * SECOND)
    net.ask(SENSOR, QpsAdvertiseRequest("s", "T", CORNER))
    net.ask(USER, Want("u", "T", SPACE, 5.0))
    losing(net, QpsSubscribe, 5)
    assert comes(net) == 0
    net.run(20 * SECOND)
    deliveries(net)
    assert comes(net) == 1
    reads(net)
    losing(net, RoutedPublication, 5)
    net.run(60 * SECOND)
    assert deliveries(net) == []


def test_components_wait_for_delayed_events():
    """Readings overtake one another, and are judged in the order in which they were made."""
    net = watch(network(seed=5))
    expected = []
    for status, value in [("ingress", 8.0), ("egress", 1.0)] * 4:
        expected.append((status, reads(net, value)))
        net.run(SECOND // 10)
    net.run(60 * SECOND)
    found = [(what.values[STATUS], what.values[TIME]) for what in deliveries(net)]
    assert sorted(found, key=lambda each: each[1]) == expected


# --- Table 5.13: who is replaced ---


def test_other_publishers_cover_the_region_of_a_failed_one():
    net = connect(network())
    net.ask(9, QpsAdvertiseRequest("beside", "T", CORNER))
    net.ask(USER, Want("must", "T", CORNER, guaranteed=True))
    net.run(30 * SECOND)
    net.kill(SENSOR)
    net.run(60 * SECOND)
    assert deliveries(net, FailedCoverage) == []
    net.ask(9, QpsPublishRequest("beside", "T", (4.0, 4.0), {"value": 8.0}))
    net.run(2 * SECOND)
    assert {what.client for what in deliveries(net)} == {"u", "must"}


def test_subscribers_are_informed_when_all_publishers_fail():
    net = network()
    for node in (SENSOR, 9):
        net.ask(node, QpsAdvertiseRequest("s", "T", CORNER))
    net.ask(USER, Want("must", "T", CORNER, guaranteed=True))
    net.run(30 * SECOND)
    for node in (SENSOR, 9):
        net.kill(node)
    net.run(60 * SECOND)
    (failed,) = deliveries(net, FailedCoverage)
    net.ask(USER, QpsUnsubscribeRequest(failed.client, failed.topic, CORNER))
    net.run(10 * SECOND)
    assert links(net) == 0


def test_failed_subscribers_are_unsubscribed():
    """Where events arrive, by the neighbour that handles them; elsewhere by silence."""
    users = (USER, 7, 56)
    net = connect(network(renewal=10 * SECOND))
    for node in users[1:]:
        net.ask(node, Want("u", "T", SPACE, 5.0))
    net.run(15 * SECOND)
    assert comes(net) == 3
    for left, node in enumerate(users):
        net.kill(node)
        assert comes(net) == 2 - left
        net.run(60 * SECOND)
        deliveries(net)
    assert links(net) == 0


def test_a_component_whose_replicas_all_fail_stays_stopped_until_inserted_again():
    net = watch(network(renewal=10 * SECOND))
    for node in [HOST, *net.field.near(HOST)]:
        net.kill(node)
    net.run(60 * SECOND)
    assert hosts(net) == []
    net.ask(36, InsertComponent("Hot"))
    net.run(30 * SECOND)
    when = reads(net)
    net.run(20 * SECOND)
    assert [(what.values[STATUS], what.values[TIME]) for what in deliveries(net)] == [("ingress", when)]
