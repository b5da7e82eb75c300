"""Components in a network say what they say in one process; others begin them when their host fails."""

from __future__ import annotations

import random

import pytest

from holdfast.compilers.components.machine import smc
from holdfast.lang.check import check
from holdfast.lang.parse import parse
from holdfast.machines.detector.detector import Detector
from holdfast.machines.detector.manager import SIGNATURE, STATUS, TIME, Components
from holdfast.machines.detector.stability import Stability
from holdfast.machines.detector.subscriptions import Window
from holdfast.model.event import Event
from holdfast.model.instant import NEVER, SECOND
from holdfast.model.space import Rectangle
from holdfast.protocols.qps.broker import Broker
from holdfast.protocols.qps.deployment import Deployment
from holdfast.protocols.qps.request import Advertise, Publish, Subscribe
from holdfast.protocols.qps.tree import Tree
from holdfast.protocols.sps.node import Insert, Node, Remove
from holdfast.runtimes.sensornet.field import FieldNetwork
from holdfast.sim.field import Field

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
SMCS = {each.name: smc(each) for each in CHECKED.components}
USER, SENSORS = 63, (0, 5, 18)


def network(smcs=SMCS, window=None, skew=0.01, **options):
    places = [(8.0 * x + 4, 8.0 * y + 4 + x * skew) for x in range(8) for y in range(8)]
    deployment = Deployment(
        tree=Tree((0.0, 0.0), 64.0, 2), topics=("T", "Hot", "Fire", "Near"), keeps_latest=True, **options
    )

    def node(number):
        at = places[number]
        return Node(Broker(deployment, at), Components(smcs, SPACE, at, window), at, SPACE)

    net = FieldNetwork(Field(places, 12.0), node)
    for sensor in SENSORS:
        net.ask(
            sensor, Advertise(f"s{sensor}", "T", Rectangle(_spot(places[sensor]), _spot(places[sensor], 2)))
        )
    return net


def _spot(place, by=0.0):
    return (place[0] - 1 + by, place[1] - 1 + by)


def told(net):
    found = [
        (what.topic, what.values[STATUS], what.values[TIME], what.values[SIGNATURE])
        for _, node, what in net.told
        if node == USER
    ]
    net.told.clear()
    return sorted(found, key=str)


def say(net, sensor, value):
    net.ask(sensor, Publish(f"s{sensor}", "T", net.field.places[sensor], {"value": value}))
    state = net.hosts[sensor].state.broker
    return Event("T", state.latest, f"s{sensor}", {"value": value}, 0, net.field.places[sensor])


def in_one_process(events):
    machine = Detector(tuple(SMCS.values()), {topic.name: topic for topic in CHECKED.topics})
    state, found = machine.initial(), []
    for event in events:
        state, _ = machine.react(state, event)
    _, found = machine.advance(state, NEVER)
    return sorted(
        ((machine.smcs[t.condition].topic, t.status, t.event.time, t.scope) for t in found),
        key=str,
    )


def test_components_on_nodes_say_what_they_say_in_one_process():
    chance = random.Random(3)
    net = network()
    net.ask(USER, Subscribe("u", "Hot", SPACE, 2.0))
    net.ask(USER, Subscribe("u", "Fire", SPACE, 2.0))
    net.ask(20, Insert("Hot"))
    net.ask(41, Insert("Fire"))
    net.run(5 * SECOND)
    events = []
    for _ in range(40):
        events.append(say(net, chance.choice(SENSORS), chance.choice([1.0, 4.0, 8.0])))
        net.run(chance.choice([SECOND // 3, 2 * SECOND]))
    net.run(60 * SECOND)
    expected = in_one_process(events)
    assert len(expected) > 8
    assert [row[:3] for row in told(net)] == [row[:3] for row in expected]


def test_measured_latency_decides_how_long_is_waited():
    net = network()
    net.ask(20, Insert("Hot"))
    net.run(5 * SECOND)
    before = net.hosts[20].state.manager.stability
    for _ in range(40):
        say(net, 0, 8.0)
        net.run(2 * SECOND)
    assert net.hosts[20].state.manager.stability.interval < before.interval == Stability().interval


def test_a_host_that_fails_is_replaced_near_by_and_what_holds_is_known_again():
    """Passive replicas begin with s = 0 and e = null; the latest events tell what is so.  [F78]"""
    net = network(renewal=10 * SECOND)
    net.ask(USER, Subscribe("u", "Hot", SPACE, 2.0))
    net.ask(20, Insert("Hot"))
    net.run(5 * SECOND)
    say(net, 0, 8.0)
    net.run(10 * SECOND)
    (before,) = told(net)
    assert before[:2] == ("Hot", "ingress")
    net.kill(20)
    net.run(60 * SECOND)
    (host,) = [node for node, each in net.hosts.items() if "Hot" in each.state.hosted]
    assert host in net.field._links[20]
    assert told(net) == [before]  # the same ingress again: its time and so its id are those of the reading
    say(net, 0, 1.0)
    net.run(20 * SECOND)
    assert [row[1] for row in told(net)] == ["egress"]


@pytest.mark.parametrize("host", [1, 20, 56])
def test_of_those_who_stand_equally_near_to_a_host_that_failed_only_one_begins(host):
    net = network(skew=0.0, renewal=10 * SECOND)
    net.ask(host, Insert("Hot"))
    net.run(5 * SECOND)
    net.kill(host)
    net.run(60 * SECOND)
    (other,) = [node for node, each in net.hosts.items() if "Hot" in each.state.hosted]
    assert other in net.field._links[host]


@pytest.mark.parametrize("local", [False, True])
def test_a_component_that_is_removed_listens_no_more_and_nobody_is_told_that_it_holds(local):
    net = network()
    net.ask(0, Insert("Hot", local=local))
    net.run(5 * SECOND)
    say(net, 0, 8.0)
    net.run(20 * SECOND)
    assert list(net.hosts[0].state.broker.hosted["Hot"].own)
    net.ask(0, Remove("Hot"))
    net.ask(0, Remove("Hot"))  # it is none already
    net.run(5 * SECOND)
    state = net.hosts[0].state
    assert not any(hosted.wanted for hosted in state.broker.hosted.values())
    assert not state.broker.hosted["Hot"].adverts
    assert [state.speaking, state.spaces, state.local, state.asked] == [{}, {}, set(), {}]
    net.ask(USER, Subscribe("u", "Hot", SPACE, 2.0))
    net.run(20 * SECOND)
    assert told(net) == []


def test_a_component_that_hears_its_own_node_alone_needs_no_message():
    net = network()
    net.ask(0, Insert("Hot", local=True))
    net.run(5 * SECOND)
    before = net.messages.copy()
    say(net, 0, 8.0)
    say(net, 5, 8.0)
    net.run(20 * SECOND)
    assert net.messages["publication"] == before["publication"]
    (instance,) = net.hosts[0].state.manager.states["Hot"].instances.values()
    assert instance.since is not None


def test_an_event_has_one_time_wherever_it_is_heard():
    """Of two events at one moment the second has a time of its own, also for components beside it."""
    for local in (True, False):
        net = network()
        net.ask(0, Insert("Hot", local=local))
        net.ask(USER, Subscribe("user", "Hot", SPACE, 2.0))
        net.run(5 * SECOND)
        events = [say(net, 0, 1.0), say(net, 0, 8.0)]
        net.run(20 * SECOND)
        assert events[0].time < events[1].time
        assert [row[2] for row in told(net)] == [events[1].time]


def test_who_comes_later_is_told_what_holds_at_each_place_not_only_where_it_began_last():
    """Conditions that a component keeps apart are publishers of their own.  [F75]"""
    net = network()
    net.ask(20, Insert("Hot"))
    net.run(5 * SECOND)
    for sensor in (0, 5, 18):
        say(net, sensor, 8.0)
        net.run(2 * SECOND)
    net.run(20 * SECOND)
    net.ask(USER, Subscribe("u", "Hot", SPACE, 2.0))
    net.run(10 * SECOND)
    found = told(net)
    assert [status for _, status, _, _ in found] == ["ingress"] * 3
    assert len({signature for *_, signature in found}) == 3


NEAR = """
    topic T (value float)
    state Near A = T closest to (12, 12) enter A.value > 5 exit A.value < 3
"""


def test_who_looks_for_the_closest_asks_no_farther_than_it_must():
    """The window gets wider until something in it is the closest for sure; up to a cap.  [F64]"""
    smcs = {each.name: smc(each) for each in check(parse(NEAR)).components}
    net = network(smcs, Window(4.0, 60.0))
    net.ask(USER, Subscribe("u", "Near", SPACE, 2.0))
    net.ask(9, Insert("Near"))  # sensor 0 is 11.3 away, sensor 18 is 11.3, sensor 5 is 33

    def half():
        return net.hosts[9].state.manager.windows["Near"].half

    net.run(5 * SECOND)
    assert half() == 4.0
    net.run(60 * SECOND)
    assert half() == 60.0  # nobody has said anything
    net.ask(9, Insert("Near"))
    net.run(2 * SECOND)
    for value in (8.0, 1.0, 8.0):
        say(net, 5, 1.0)
        say(net, 0, value)
        net.run(20 * SECOND)
    assert half() == 16.0
    wanted = net.hosts[9].state.broker.hosted["T"].wanted["sps/Near"]
    assert len(wanted) == 1
    net.run(60 * SECOND)
    assert half() == 16.0
    assert [status for _, status, _, _ in sorted(told(net), key=lambda row: row[2])] == [
        "ingress",
        "egress",
        "ingress",
    ]
