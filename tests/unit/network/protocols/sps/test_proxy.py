"""Subscribers that move, by their proxies."""

from __future__ import annotations

import pytest

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.errors import UsageError
from holdfast.kinds.component.compile import smc
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.detector.manager import STATUS, Components
from holdfast.model.instant import SECOND
from holdfast.model.protocol import Received
from holdfast.model.space import Circle, Rectangle
from holdfast.network.motes.field import FieldNetwork
from holdfast.network.protocols.qps.broker import QpsBroker
from holdfast.network.protocols.qps.deployment import QpsDeployment
from holdfast.network.protocols.qps.request import QpsAdvertiseRequest, QpsNotify, QpsPublishRequest
from holdfast.network.protocols.qps.tree import ScopeTree
from holdfast.network.protocols.sps.node import SpsNode
from holdfast.network.protocols.sps.proxy import (
    ArriveRequest,
    EventArrived,
    GotRequest,
    ProxyNode,
    RedirectedEvent,
    SubscriberMoved,
    bytes_of,
)
from holdfast.network.protocols.sps.traveller import BroughtEvent, Ticket, Traveller, wish
from holdfast.network.sim.field import Field

SPACE = Rectangle((0.0, 0.0), (64.0, 64.0))
PLACES = [(8.0 * x + 4, 8.0 * y + 4 + x / 100) for x in range(8) for y in range(8)]
HOME, SENSOR = 9, 0
HOT = {
    each.name: smc(each)
    for each in check(
        parse("topic T (value float)\nstate Hot A = T each location enter A.value > 5 exit A.value < 3\n")
    ).of(ComponentCondition)
}


class Walk:
    """One walking subscriber, and the deliveries of nodes at its position."""

    def __init__(self, *wishes, every=None, components=(), renewal=None, room=1000):
        self.deployment = QpsDeployment(
            tree=ScopeTree((0.0, 0.0), 64.0, 2), topics=("T", "Hot"), keeps_latest=True, renewal=renewal
        )
        self.every, self.room = every, room
        self.net = FieldNetwork(Field(PLACES, 12.0), self.machine)
        x, y = PLACES[SENSOR]
        self.net.ask(SENSOR, QpsAdvertiseRequest("s", "T", Rectangle((x - 1, y - 1), (x + 1, y + 1))))
        self.me = Traveller(Ticket("me", PLACES[HOME], wishes, components))
        self.deliveries = []

    def machine(self, number):
        at = PLACES[number]
        inner = SpsNode(QpsBroker(self.deployment, at), Components(HOT, SPACE, at), at, SPACE)
        return ProxyNode(inner, at, self.every, self.room)

    def to(self, node, seconds=5, **changes):
        self.net.ask(node, ArriveRequest(self.me.next_ticket(**changes)))
        self.wait(node, seconds)

    def wait(self, node, seconds=5):
        """Be with a node (nowhere: None) for a while."""
        self.net.delivered.clear()
        self.net.run(seconds * SECOND)
        for _, at, what in self.net.delivered:
            if at == node and isinstance(what, BroughtEvent):
                if event := self.me.accept(what):
                    self.deliveries.append(event)
                self.net.ask(node, GotRequest(self.me.ticket, what))
        self.net.run(SECOND)

    def say(self, value):
        self.net.ask(SENSOR, QpsPublishRequest("s", "T", PLACES[SENSOR], {"value": value}))

    @property
    def values(self):
        return [event.values["value"] for event in self.deliveries]

    def proxies(self):
        return [node for node, host in self.net.hosts.items() if "me" in host.state.subscribers]


def test_a_subscriber_between_two_nodes_receives_missed_events_at_the_next():
    walk = Walk(wish("T", SPACE))
    walk.to(20)
    walk.say(1.0)
    walk.wait(20)
    walk.say(2.0)
    walk.wait(None)  # it has left without a word
    assert walk.values == [1.0]
    walk.to(55)
    assert walk.values == [1.0, 2.0]
    walk.to(20)
    assert walk.values == [1.0, 2.0]
    assert walk.proxies() == [HOME]


def test_a_late_message_of_an_earlier_node_is_ignored():
    walk = Walk(wish("T", SPACE))
    walk.to(20)
    late = SubscriberMoved(walk.me.ticket, PLACES[20])
    walk.to(55)
    machine, state = walk.machine(HOME), walk.net.hosts[HOME].state
    state, _ = machine.handle(state, Received(walk.net.now, "20", late))
    assert state.subscribers["me"].at == PLACES[55]


def test_a_moving_subscriber_can_change_and_end_its_subscription():
    walk = Walk(wish("T", Rectangle((40.0, 40.0), (60.0, 60.0))))
    walk.to(20)
    walk.say(1.0)
    walk.wait(20)
    walk.to(30, wishes=(wish("T", Rectangle((0.0, 0.0), (16.0, 16.0))),))
    walk.say(2.0)
    walk.wait(30)
    walk.to(30, wishes=())
    walk.say(3.0)
    walk.wait(30)
    assert [(e.values["value"], e.repeated) for e in walk.deliveries] == [(1.0, True), (2.0, False)]
    assert not walk.net.hosts[HOME].state.inner.broker.topics["T"].subscriptions


def test_a_component_of_a_subscriber_runs_at_the_proxy_and_its_outputs_follow():
    walk = Walk(wish("Hot", SPACE), components=("Hot",))
    walk.to(20)
    assert "Hot" in walk.net.hosts[HOME].state.inner.components
    walk.say(8.0)
    walk.wait(20, 20)
    walk.say(1.0)
    walk.to(55, 20)
    assert [event.values[STATUS] for event in walk.deliveries] == ["ingress", "egress"]
    walk.to(55, wishes=(), components=())
    assert "Hot" not in walk.net.hosts[HOME].state.inner.components


def test_a_second_subscriber_of_a_proxy_does_not_restart_the_component_of_the_first():
    walk = Walk(wish("Hot", SPACE), components=("Hot",))
    walk.to(20)
    walk.say(8.0)
    walk.wait(20, 20)
    you = Traveller(Ticket("you", PLACES[HOME], (wish("Hot", SPACE),), ("Hot",)))
    walk.net.ask(20, ArriveRequest(you.next_ticket()))
    walk.wait(20, 20)
    assert [event.values[STATUS] for event in walk.deliveries] == ["ingress"]


def test_a_failed_proxy_is_replaced_by_its_neighbour_at_the_next_message():
    walk = Walk(wish("T", SPACE), every=10 * SECOND, renewal=5 * SECOND)
    walk.to(20)
    walk.net.kill(HOME)
    walk.net.ask(20, ArriveRequest(walk.me.ticket))
    walk.wait(20)
    (second,) = walk.proxies()
    assert second != HOME
    walk.say(5.0)
    walk.wait(20)
    assert walk.values == [5.0]


def test_a_subscriber_that_does_not_report_its_position_has_left():
    walk = Walk(wish("T", SPACE), every=10 * SECOND)
    walk.to(20)
    walk.wait(None, 60)
    assert walk.proxies() == []
    assert not walk.net.hosts[HOME].state.inner.broker.topics["T"].subscriptions


def test_the_last_events_for_an_absent_subscriber_are_stored_and_others_counted():
    walk = Walk(wish("T", SPACE), room=3)
    walk.to(20)
    walk.say(0.0)
    walk.wait(20)
    for value in range(1, 100):
        walk.say(float(value))
        walk.wait(None, 1)
    (stored,) = walk.net.hosts[HOME].state.subscribers.values()
    assert len(stored.waiting) == 3
    walk.to(55)
    walk.say(100.0)
    walk.wait(55)
    assert walk.values == [0.0, 97.0, 98.0, 99.0, 100.0]
    assert (walk.me.lost, walk.me.least, walk.me.numbers) == (96, 101, set())


def test_a_proxy_has_room_for_an_event():
    with pytest.raises(UsageError, match="room for 0 events"):
        ProxyNode(None, (0.0, 0.0), room=0)


def event(number, since=1, time=7, first=0):
    emitted = QpsNotify("me", "T", (1.0, 1.0), "s", time, {"value": 1.0})
    return BroughtEvent("me", since, number, emitted, first)


def test_dropped_events_are_counted_once_and_do_not_arrive_later():
    me = Traveller(Ticket("me", (0.0, 0.0)))
    assert me.accept(event(1, time=8))
    assert me.accept(event(4, time=11, first=3))
    assert (me.lost, me.least, me.numbers) == (2, 3, {4})
    assert me.accept(event(2, time=9, first=3)) is None  # it was on its way when it was given up
    assert me.accept(event(3, time=10, first=3))
    assert (me.lost, me.least, me.numbers) == (2, 5, set())


def test_a_repeated_number_counts_once_and_the_same_event_of_another_proxy_is_ignored():
    me = Traveller(Ticket("me", (0.0, 0.0)))
    assert me.accept(event(1, time=8))
    assert me.accept(event(0, time=7))
    assert me.accept(event(1, time=8)) is None
    assert me.least == 2
    assert not me.numbers
    assert me.accept(event(0, since=5, time=8)) is None  # the next proxy has it too
    assert me.accept(event(1, since=5, time=9))
    assert me.accept(event(2, since=1, time=9)) is None  # the one before was still at it
    assert me.accept(event(3, since=1, time=10))


@pytest.mark.parametrize(
    ("ticket", "message"),
    [
        (Ticket("me", (1.0, 1.0), (wish("Snow", SPACE),)), "there is no topic 'Snow'"),
        (Ticket("me", (1.0, 1.0), (wish("T", SPACE, 0.5),)), "ε is 0.5"),
        (Ticket("me", (1.0, 1.0), (wish("T", Rectangle((0.0, 0.0), (99.0, 9.0))),)), "is not all in space"),
        (Ticket("me", (99.0, 1.0)), "99"),
        (Ticket("me", (1.0, 1.0), (), ("Hot",)), "nodes here have no components"),
    ],
)
def test_impossible_subscriptions_raise_an_error_at_the_subscriber(ticket, message):
    deployment = QpsDeployment(tree=ScopeTree((0.0, 0.0), 64.0, 2), topics=("T",))
    net = FieldNetwork(
        Field(PLACES, 12.0), lambda number: ProxyNode(QpsBroker(deployment, PLACES[number]), PLACES[number])
    )
    with pytest.raises(UsageError, match=message):
        net.ask(0, ArriveRequest(ticket))


def test_a_circle_is_refused_as_a_region():
    with pytest.raises(UsageError, match="draw a polygon"):
        wish("T", Circle((1.0, 1.0), 2.0))


def test_message_sizes_follow_their_contents():
    moved = SubscriberMoved(Ticket("me", (1.0, 1.0), (wish("T", SPACE),)), (2.0, 2.0))
    redirected = RedirectedEvent("me", 1, 0, "T", (1.0, 1.0), "s", 7, {"value": 1.0, "name": "abc"}, False)
    assert (bytes_of(moved), bytes_of(redirected), bytes_of(EventArrived("me", 1, 0))) == (23, 24, 8)
