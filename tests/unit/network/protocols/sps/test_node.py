"""Components in a network emit what they emit in one process; other nodes start them when their host
fails."""

from __future__ import annotations

import random

import pytest

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.component.compile import component_group, smc
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.detector.manager import SIGNATURE, STATUS, TIME, Components
from holdfast.kinds.component.detector.stability import Stability
from holdfast.kinds.component.detector.subscriptions import SearchWindow
from holdfast.model.event import Event
from holdfast.model.instant import NEVER, SECOND
from holdfast.model.space import Rectangle
from holdfast.network.motes.field import FieldNetwork
from holdfast.network.protocols.qps.broker import QpsBroker
from holdfast.network.protocols.qps.deployment import QpsDeployment
from holdfast.network.protocols.qps.request import QpsAdvertiseRequest, QpsPublishRequest, QpsSubscribeRequest
from holdfast.network.protocols.qps.tree import ScopeTree
from holdfast.network.protocols.sps.node import InsertComponent, RemoveComponent, SpsNode
from holdfast.network.sim.field import Field

SPACE = Rectangle((0.0, 0.0), (64.0, 64.0))
TEXT = """
    topic T (value float)
    state Hot A = T each location within [(0, 0), (40, 64)] enter A.value > 5 exit A.value < 3
    state Fire
      A = Hot any location
      enter A.valid && A.status == ingress
      exit A.valid && A.status == egress
"""
CHECKED = check(parse(TEXT))
SMCS = {each.name: smc(each) for each in CHECKED.of(ComponentCondition)}
USER, SENSORS = 63, (0, 5, 18)


def network(smcs=SMCS, window=None, skew=0.01, **options):
    places = [(8.0 * x + 4, 8.0 * y + 4 + x * skew) for x in range(8) for y in range(8)]
    deployment = QpsDeployment(
        tree=ScopeTree((0.0, 0.0), 64.0, 2), topics=("T", "Hot", "Fire", "Near"), keeps_latest=True, **options
    )

    def node(number):
        at = places[number]
        return SpsNode(QpsBroker(deployment, at), Components(smcs, SPACE, at, window), at, SPACE)

    net = FieldNetwork(Field(places, 12.0), node)
    for sensor in SENSORS:
        net.ask(
            sensor,
            QpsAdvertiseRequest(
                f"s{sensor}", "T", Rectangle(_spot(places[sensor]), _spot(places[sensor], 2))
            ),
        )
    return net


def _spot(place, by=0.0):
    return (place[0] - 1 + by, place[1] - 1 + by)


def deliveries(net):
    found = [
        (what.topic, what.values[STATUS], what.values[TIME], what.values[SIGNATURE])
        for _, node, what in net.delivered
        if node == USER
    ]
    net.delivered.clear()
    return sorted(found, key=str)


def say(net, sensor, value):
    net.ask(sensor, QpsPublishRequest(f"s{sensor}", "T", net.field.places[sensor], {"value": value}))
    state = net.hosts[sensor].state.broker
    return Event("T", state.latest, f"s{sensor}", {"value": value}, 0, net.field.places[sensor])


def in_one_process(events):
    machine = component_group(CHECKED.of(ComponentCondition), CHECKED.topics)
    state, found = machine.initial(), []
    for event in events:
        state, _ = machine.react(state, event)
    _, found = machine.advance(state, NEVER)
    return sorted(
        ((machine.smcs[t.condition].topic, t.status, t.event.time, t.scope) for t in found),
        key=str,
    )


def test_components_on_nodes_give_the_results_of_one_process():
    chance = random.Random(3)
    net = network()
    net.ask(USER, QpsSubscribeRequest("u", "Hot", SPACE, 2.0))
    net.ask(USER, QpsSubscribeRequest("u", "Fire", SPACE, 2.0))
    net.ask(20, InsertComponent("Hot"))
    net.ask(41, InsertComponent("Fire"))
    net.run(5 * SECOND)
    events = []
    for _ in range(40):
        events.append(say(net, chance.choice(SENSORS), chance.choice([1.0, 4.0, 8.0])))
        net.run(chance.choice([SECOND // 3, 2 * SECOND]))
    net.run(60 * SECOND)
    expected = in_one_process(events)
    assert len(expected) > 8
    assert [row[:3] for row in deliveries(net)] == [row[:3] for row in expected]


def test_the_measured_latency_decides_how_long_components_wait():
    net = network()
    net.ask(20, InsertComponent("Hot"))
    net.run(5 * SECOND)
    before = net.hosts[20].state.manager.stability
    for _ in range(40):
        say(net, 0, 8.0)
        net.run(2 * SECOND)
    assert net.hosts[20].state.manager.stability.interval < before.interval == Stability().interval


def test_a_failed_host_is_replaced_nearby_and_active_conditions_are_restored():
    """Passive replicas start with s = 0 and e = null; the latest events give the current state.  [F78]"""
    net = network(renewal=10 * SECOND)
    net.ask(USER, QpsSubscribeRequest("u", "Hot", SPACE, 2.0))
    net.ask(20, InsertComponent("Hot"))
    net.run(5 * SECOND)
    say(net, 0, 8.0)
    net.run(10 * SECOND)
    (before,) = deliveries(net)
    assert before[:2] == ("Hot", "ingress")
    net.kill(20)
    net.run(60 * SECOND)
    (host,) = [node for node, each in net.hosts.items() if "Hot" in each.state.components]
    assert host in net.field._links[20]
    assert deliveries(net) == [
        before
    ]  # the same ingress again: its time and so its id are those of the reading
    say(net, 0, 1.0)
    net.run(20 * SECOND)
    assert [row[1] for row in deliveries(net)] == ["egress"]


@pytest.mark.parametrize("host", [1, 20, 56])
def test_only_one_of_equally_near_nodes_takes_over_from_a_failed_host(host):
    net = network(skew=0.0, renewal=10 * SECOND)
    net.ask(host, InsertComponent("Hot"))
    net.run(5 * SECOND)
    net.kill(host)
    net.run(60 * SECOND)
    (other,) = [node for node, each in net.hosts.items() if "Hot" in each.state.components]
    assert other in net.field._links[host]


@pytest.mark.parametrize("local", [False, True])
def test_a_removed_component_ends_its_subscriptions_and_advertisements(local):
    net = network()
    net.ask(0, InsertComponent("Hot", local=local))
    net.run(5 * SECOND)
    say(net, 0, 8.0)
    net.run(20 * SECOND)
    assert list(net.hosts[0].state.broker.topics["Hot"].own)
    net.ask(0, RemoveComponent("Hot"))
    net.ask(0, RemoveComponent("Hot"))  # it is none already
    net.run(5 * SECOND)
    state = net.hosts[0].state
    assert not any(hosted.subscriptions for hosted in state.broker.topics.values())
    assert not state.broker.topics["Hot"].adverts
    assert [state.advertised_names, state.spaces, state.local, state.subscribed_at] == [{}, {}, set(), {}]
    net.ask(USER, QpsSubscribeRequest("u", "Hot", SPACE, 2.0))
    net.run(20 * SECOND)
    assert deliveries(net) == []


def test_a_local_component_needs_no_message():
    net = network()
    net.ask(0, InsertComponent("Hot", local=True))
    net.run(5 * SECOND)
    before = net.messages.copy()
    say(net, 0, 8.0)
    say(net, 5, 8.0)
    net.run(20 * SECOND)
    assert net.messages["publication"] == before["publication"]
    (instance,) = net.hosts[0].state.manager.states["Hot"].instances.values()
    assert instance.since is not None


def test_an_event_has_the_same_time_at_every_node():
    """Of two events at one time the second gets a later time, also for components beside it."""
    for local in (True, False):
        net = network()
        net.ask(0, InsertComponent("Hot", local=local))
        net.ask(USER, QpsSubscribeRequest("user", "Hot", SPACE, 2.0))
        net.run(5 * SECOND)
        events = [say(net, 0, 1.0), say(net, 0, 8.0)]
        net.run(20 * SECOND)
        assert events[0].time < events[1].time
        assert [row[2] for row in deliveries(net)] == [events[1].time]


def test_a_later_subscriber_receives_the_active_condition_of_every_place():
    """Conditions that a component keeps apart are publishers of their own.  [F75]"""
    net = network()
    net.ask(20, InsertComponent("Hot"))
    net.run(5 * SECOND)
    for sensor in (0, 5, 18):
        say(net, sensor, 8.0)
        net.run(2 * SECOND)
    net.run(20 * SECOND)
    net.ask(USER, QpsSubscribeRequest("u", "Hot", SPACE, 2.0))
    net.run(10 * SECOND)
    found = deliveries(net)
    assert [status for _, status, _, _ in found] == ["ingress"] * 3
    assert len({signature for *_, signature in found}) == 3


NEAR = """
    topic T (value float)
    state Near A = T closest to (12, 12) enter A.value > 5 exit A.value < 3
"""


def test_a_query_for_the_closest_subscribes_no_farther_than_necessary():
    """The window gets wider until something in it is the closest for sure; up to a cap.  [F64]"""
    smcs = {each.name: smc(each) for each in check(parse(NEAR)).of(ComponentCondition)}
    net = network(smcs, SearchWindow(4.0, 60.0))
    net.ask(USER, QpsSubscribeRequest("u", "Near", SPACE, 2.0))
    net.ask(9, InsertComponent("Near"))  # sensor 0 is 11.3 away, sensor 18 is 11.3, sensor 5 is 33

    def half():
        return net.hosts[9].state.manager.windows["Near"].half

    net.run(5 * SECOND)
    assert half() == 4.0
    net.run(60 * SECOND)
    assert half() == 60.0  # without any reading
    net.ask(9, InsertComponent("Near"))
    net.run(2 * SECOND)
    for value in (8.0, 1.0, 8.0):
        say(net, 5, 1.0)
        say(net, 0, value)
        net.run(20 * SECOND)
    assert half() == 16.0
    wanted = net.hosts[9].state.broker.topics["T"].subscriptions["sps/Near"]
    assert len(wanted) == 1
    net.run(60 * SECOND)
    assert half() == 16.0
    assert [status for _, status, _, _ in sorted(deliveries(net), key=lambda row: row[2])] == [
        "ingress",
        "egress",
        "ingress",
    ]
