"""A broker of Quad-PubSub: the requests of clients, the messages, and the deliveries.  [F21–F43]"""

import math
from collections import Counter

import msgspec
import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import SECOND
from holdfast.model.protocol import Fired
from holdfast.model.space import Circle, Polygon, Rectangle
from holdfast.network.motes.field import FieldNetwork
from holdfast.network.protocols.qps.area import box, difference, intersection
from holdfast.network.protocols.qps.broker import QpsBroker
from holdfast.network.protocols.qps.deployment import QpsDeployment
from holdfast.network.protocols.qps.message import (
    QpsMessage,
    QpsSource,
    QpsSubscribe,
    RoutedPublication,
    bytes_of,
)
from holdfast.network.protocols.qps.request import (
    FailedCoverage,
    QpsAdvertiseRequest,
    QpsNotify,
    QpsPublishRequest,
    QpsUnadvertiseRequest,
    QpsUnsubscribeRequest,
)
from holdfast.network.protocols.qps.request import QpsSubscribeRequest as Want
from holdfast.network.protocols.qps.tree import ROOT, QuadScope, ScopeTree
from holdfast.network.sim.field import Field

WHOLE = Rectangle((0.0, 0.0), (64.0, 64.0))
CORNER = Rectangle((0.0, 0.0), (8.0, 8.0))


def network(levels=3, **options):
    """A node in each of 8 × 8 squares, in reach of the four beside it."""
    places = [(8.0 * x + 4, 8.0 * y + 4 + x / 100) for x in range(8) for y in range(8)]
    deployment = QpsDeployment(tree=ScopeTree((0.0, 0.0), 64.0, levels), topics=("Heat",), **options)
    field = Field(places, 9.0)
    return FieldNetwork(field, lambda node: QpsBroker(deployment, places[node]))


def deliveries(net, kind=QpsNotify):
    found = [(node, what) for _, node, what in net.delivered if isinstance(what, kind)]
    net.delivered.clear()
    return found


def test_an_event_reaches_a_subscriber_through_a_forwarding_broker():
    net = network()
    net.ask(0, QpsAdvertiseRequest("sensor", "Heat", CORNER))
    net.ask(63, Want("fire brigade", "Heat", WHOLE, 1.5))
    net.settle()
    net.ask(0, QpsPublishRequest("sensor", "Heat", (3.0, 5.0), {"value": 80.0}))
    net.settle()
    ((node, event),) = deliveries(net)
    assert (node, event.client, event.location, event.publisher) == (63, "fire brigade", (3.0, 5.0), "sensor")
    assert event.values == {"value": 80.0}
    assert len(event.way) >= 1


def test_a_publisher_beside_its_subscriber_still_uses_a_broker():
    net = network()
    net.ask(9, QpsAdvertiseRequest("p", "Heat", Rectangle((8.0, 8.0), (16.0, 16.0))))
    net.ask(9, Want("s", "Heat", WHOLE))
    net.settle()
    net.ask(9, QpsPublishRequest("p", "Heat", (10.0, 10.0), {}))
    net.settle()
    ((_, event),) = deliveries(net)
    assert event.way


def test_publishers_of_one_name_on_two_nodes_are_two_also_at_the_same_time_and_place():
    net = network(keeps_latest=True)
    for node in (0, 9):
        net.ask(node, QpsAdvertiseRequest("sensor", "Heat", WHOLE))
    net.ask(63, Want("s", "Heat", WHOLE))
    net.settle()
    for node in (0, 9):
        net.hosts[node].state.latest = net.now  # as many words from each
        net.ask(node, QpsPublishRequest("sensor", "Heat", (3.0, 5.0), {"from": node}))
    net.settle()
    found = [event for _, event in deliveries(net)]
    assert len({(event.publisher, event.time, event.location) for event in found}) == 1
    assert sorted(event.values["from"] for event in found) == [0, 9]
    net.ask(63, Want("late", "Heat", WHOLE))
    net.settle()
    assert sorted(event.values["from"] for _, event in deliveries(net)) == [0, 9]


def test_events_advertised_after_the_subscription_are_delivered():
    net = network()
    net.ask(63, Want("s", "Heat", WHOLE))
    net.settle()
    net.ask(0, QpsAdvertiseRequest("near", "Heat", CORNER))
    net.ask(1, QpsAdvertiseRequest("far", "Heat", Rectangle((40.0, 40.0), (48.0, 48.0))))
    net.settle()
    net.ask(0, QpsPublishRequest("near", "Heat", (1.0, 1.0), {}))
    net.ask(1, QpsPublishRequest("far", "Heat", (47.0, 41.0), {}))
    net.settle()
    assert [event.publisher for _, event in deliveries(net)] in (["near", "far"], ["far", "near"])


def test_an_advertisement_within_the_own_leaf_costs_nothing():
    net = network()
    net.ask(0, QpsAdvertiseRequest("p", "Heat", CORNER))
    net.settle()
    assert net.messages == Counter()
    net.ask(0, QpsAdvertiseRequest("p", "Heat", Rectangle((8.0, 8.0), (40.0, 10.0))))
    net.settle()
    assert net.messages == {"advertise": 2}  # three leaves of 16 × 16 are covered, one is its own


def test_near_brokers_above_the_leaves_optionally_receive_advertisements():
    region = Rectangle((48.0, 48.0), (64.0, 64.0))
    plain, wide = network(), network(wide_adverts=True)
    for net in (plain, wide):
        net.ask(0, QpsAdvertiseRequest("p", "Heat", region))
        net.settle()
    assert wide.messages["advertise"] > plain.messages["advertise"] == 1


def test_a_leaf_requests_events_of_earlier_advertisers_elsewhere():
    net = network()
    net.ask(63, QpsAdvertiseRequest("far", "Heat", CORNER))  # it stands in another leaf
    net.settle()
    net.ask(40, Want("s", "Heat", CORNER))
    net.settle()
    net.ask(63, QpsPublishRequest("far", "Heat", (1.0, 1.0), {}))
    net.settle()
    assert len(deliveries(net)) == 1


def test_a_subscription_goes_to_the_nearest_broker_whose_scope_contains_the_new_part():
    net = network()
    tree = net.hosts[0].machine.deployment.tree
    net.ask(0, Want("a", "Heat", CORNER))
    (first,) = net.hosts[0].state.topics["Heat"].requests
    serving = [s for s in tree.scopes() if not difference(box((0, 0), (8, 8)), tree.cell(s))]
    away = {scope: math.dist((4.0, 4.0), tree.address("Heat", scope)) for scope in serving}
    assert first.target == min(away, key=away.get) != ROOT
    net.ask(0, Want("b", "Heat", Rectangle((0.0, 0.0), (16.0, 8.0))))
    second = net.hosts[0].state.topics["Heat"].requests[-1]
    assert second.area == box((8, 0), (16, 8))
    assert second.target == tree.nearest("Heat", second.area, net.field.places[0])


def test_only_uncovered_parts_are_requested():
    net = network()
    net.ask(0, Want("a", "Heat", WHOLE))
    net.settle()
    sent = net.messages["subscribe"]
    net.ask(0, Want("b", "Heat", CORNER))
    net.settle()
    assert net.messages["subscribe"] == sent
    net.ask(0, QpsUnsubscribeRequest("a", "Heat", WHOLE))
    net.settle()
    assert net.hosts[0].state.topics["Heat"].requests[0].area == box((0, 0), (8, 8))


def test_a_client_with_two_subscriptions_gets_an_event_once():
    net = network()
    net.ask(0, QpsAdvertiseRequest("p", "Heat", CORNER))
    net.ask(30, Want("s", "Heat", WHOLE))
    net.ask(30, Want("s", "Heat", CORNER))
    net.ask(30, Want("t", "Heat", CORNER))
    net.settle()
    net.ask(0, QpsPublishRequest("p", "Heat", (1.0, 1.0), {}))
    net.settle()
    assert sorted(event.client for _, event in deliveries(net)) == ["s", "t"]


def test_nothing_is_registered_anywhere_after_the_end():
    net = network()
    for node in (5, 40, 63):
        net.ask(node, Want("s", "Heat", WHOLE, 1.0 + node / 30))
        net.settle()
    assert sum(host.state.links for host in net.hosts.values()) > 6
    for node in (40, 5, 63):
        net.ask(node, QpsUnsubscribeRequest("s", "Heat", WHOLE))
        net.settle()
    assert sum(host.state.links for host in net.hosts.values()) == 0
    assert not any(role.requests for host in net.hosts.values() for role in host.state.logical.values())


@pytest.mark.parametrize(
    ("requests_of", "why"),
    [
        (Want("s", "Heat", WHOLE, 0.9), "ε is 0.9; it is 1"),
        (Want("s", "Heat", WHOLE, float("nan")), "ε is nan"),
        (Want("s", "Heat", Rectangle((1.0, 1.0), (1.0, 9.0))), "is empty"),
        (Want("s", "Heat", Rectangle((9.0, 9.0), (1.0, 1.0))), "first corner is the lower left"),
        (Want("s", "Heat", Rectangle((1.0, 1.0), (99.0, 9.0))), "not all in space"),
        (Want("s", "Heat", Polygon(((1.0, 1.0), (2.0, 2.0), (3.0, 3.0)))), "is empty"),
        (Want("s", "Heat", Circle((9.0, 9.0), 3.0)), "draw a polygon round the circle"),
        (Want("s", "Heet", WHOLE), "no topic 'Heet'. Did you mean 'Heat'"),
        (QpsAdvertiseRequest("p", "Rain", WHOLE), "no topic 'Rain'. There is Heat"),
        (QpsPublishRequest("p", "Heat", (1.0, 1.0), {}), "has not advertised that"),
        (QpsUnsubscribeRequest("s", "Heat", WHOLE), "has not subscribed"),
        (QpsUnadvertiseRequest("p", "Heat", WHOLE), "has not advertised"),
    ],
)
def test_impossible_requests_are_refused_and_change_nothing(requests_of, why):
    net = network()
    with pytest.raises(UsageError, match=why):
        net.ask(0, requests_of)
    net.settle()
    assert net.messages == Counter()


def test_a_node_outside_of_space_is_refused():
    with pytest.raises(UsageError, match="outside of space"):
        QpsBroker(QpsDeployment(tree=ScopeTree((0.0, 0.0), 64.0, 3), topics=("Heat",)), (70.0, 3.0))


def test_a_subscriber_receives_the_area_without_a_publisher():
    net = network()
    net.ask(0, QpsAdvertiseRequest("p", "Heat", CORNER))
    net.ask(0, QpsAdvertiseRequest("p", "Heat", Rectangle((8.0, 0.0), (16.0, 32.0))))
    net.ask(40, Want("s", "Heat", Rectangle((0.0, 0.0), (16.0, 8.0)), guaranteed=True))
    net.run(20 * SECOND)
    assert deliveries(net, FailedCoverage) == []
    net.ask(63, Want("t", "Heat", Rectangle((0.0, 0.0), (16.0, 16.0)), guaranteed=True))
    net.ask(50, Want("u", "Heat", Rectangle((0.0, 0.0), (16.0, 16.0))))
    net.run(20 * SECOND)
    assert deliveries(net, FailedCoverage) == [(63, FailedCoverage("t", "Heat", box((0, 8), (8, 16))))]
    net.ask(0, QpsUnadvertiseRequest("p", "Heat", CORNER))
    net.run(20 * SECOND)
    lost = box((0, 0), (8, 8))
    assert sorted(deliveries(net, FailedCoverage), key=str) == [
        (40, FailedCoverage("s", "Heat", lost)),
        (63, FailedCoverage("t", "Heat", lost)),
    ]


def test_coverage_failure_is_reported_again_after_an_interruption():
    net = network()
    net.ask(40, Want("s", "Heat", CORNER, guaranteed=True))
    net.run(20 * SECOND)
    assert len(deliveries(net, FailedCoverage)) == 1
    net.ask(0, QpsAdvertiseRequest("p", "Heat", CORNER))
    net.run(20 * SECOND)
    net.kill(0)  # it is silent from now on
    net.run(60 * SECOND)
    assert deliveries(net, FailedCoverage) == [(40, FailedCoverage("s", "Heat", box((0, 0), (8, 8))))]


def test_missing_areas_are_forgotten_with_the_subscription():
    net = network(4)
    net.ask(63, Want("s", "Heat", CORNER, guaranteed=True))
    net.run(30 * SECOND)
    assert len(deliveries(net, FailedCoverage)) == 1
    net.ask(63, QpsUnsubscribeRequest("s", "Heat", CORNER))
    net.run(10 * SECOND)
    net.ask(0, QpsAdvertiseRequest("p", "Heat", CORNER))
    net.ask(63, Want("s", "Heat", CORNER, guaranteed=True))
    net.ask(40, Want("t", "Heat", CORNER, 1.0, guaranteed=True))
    net.run(30 * SECOND)
    assert deliveries(net, FailedCoverage) == []


def test_a_tighter_subscriber_renews_a_shared_path_only_if_that_is_guaranteed():
    for compliance, again in (("best-effort", False), ("guaranteed", True)):
        net = network(4, compliance=compliance)
        net.ask(63, Want("loose", "Heat", CORNER, 9.0))
        net.settle()
        sent = net.messages["subscribe"]
        net.ask(63, Want("tight", "Heat", CORNER, 1.0))
        net.settle()
        assert (net.messages["subscribe"] > sent) == again


def test_a_broker_requests_an_area_again_for_stricter_terms():
    def requests_of(net):
        return {
            key: list(role.requests)
            for host in net.hosts.values()
            for key, role in host.state.logical.items()
        }

    for compliance, again in (("best-effort", False), ("guaranteed", True)):
        net = network(compliance=compliance)
        net.ask(63, Want("loose", "Heat", WHOLE, 8.0))
        net.settle()
        before = requests_of(net)
        net.ask(62, Want("tight", "Heat", WHOLE, 1.3))
        net.settle()
        after = requests_of(net)
        pairs = [(old, new) for key, some in before.items() for old in some for new in after[key]]
        assert any(intersection(a.area, b.area) and b.epsilon < a.epsilon for a, b in pairs) == again


def test_messages_of_brokers_survive_the_wire():
    area = box((0, 0), (8, 8))
    wire = msgspec.msgpack.Decoder(QpsMessage)
    for message in (
        QpsSubscribe(
            "Heat", QpsSource((1.5, 2.0), QuadScope(2, 0, 1)), QuadScope(3, 0, 2), area, 1.5, True, 17
        ),
        RoutedPublication(
            "Heat", QpsSource((1.5, 2.0)), None, (3.0, 4.0), (1.5, 2.0), "p", 5, {"value": 1.0, "place": "x"}
        ),
    ):
        assert wire.decode(msgspec.msgpack.encode(message)) == message
        assert 10 < bytes_of(message) < 50


def test_repeated_requests_count_once_and_others_expire():
    net = network(renewal=10 * SECOND)
    net.ask(0, QpsAdvertiseRequest("p", "Heat", CORNER))
    net.ask(63, Want("s", "Heat", WHOLE))
    net.run(100 * SECOND)
    net.ask(0, QpsPublishRequest("p", "Heat", (1.0, 1.0), {}))
    net.run(SECOND)
    assert len(deliveries(net)) == 1
    net.kill(63)
    net.run(100 * SECOND)
    assert sum(host.state.links for host in net.hosts.values()) == 0
    net.run(900 * SECOND)  # also that it is over
    assert not any(host.state.logical for host in net.hosts.values())


def test_a_new_subscriber_gets_the_latest_event_of_each_publisher_marked_as_repeated():
    net = network(keeps_latest=True)
    net.ask(0, QpsAdvertiseRequest("p", "Heat", CORNER))
    net.ask(9, QpsAdvertiseRequest("q", "Heat", Rectangle((8.0, 8.0), (16.0, 16.0))))
    for n, at in enumerate([(1.0, 1.0), (2.0, 2.0)]):
        net.ask(0, QpsPublishRequest("p", "Heat", at, {"n": n}))
    net.ask(9, QpsPublishRequest("q", "Heat", (9.0, 9.0), {"n": 7}))
    for node, client in ((63, "first"), (63, "beside it"), (40, "by a way that is there")):
        net.ask(node, Want(client, "Heat", WHOLE, 3.0))
        net.settle()
        found = sorted(
            (who, event.values["n"], event.repeated) for _, event in deliveries(net) for who in [event.client]
        )
        assert found == [(client, 1, True), (client, 7, True)]
    net.ask(0, QpsPublishRequest("p", "Heat", (3.0, 3.0), {"n": 2}))
    net.settle()
    assert [(e.values["n"], e.repeated) for _, e in deliveries(net)] == [(2, False)] * 3


def test_a_repeated_subscription_receives_the_currently_latest_event():
    net = network(keeps_latest=True)
    net.ask(0, QpsAdvertiseRequest("p", "Heat", CORNER))
    net.ask(63, Want("s", "Heat", WHOLE))
    net.settle()
    net.ask(0, QpsPublishRequest("p", "Heat", (1.0, 1.0), {"n": 0}))
    net.settle()
    net.ask(63, QpsUnsubscribeRequest("s", "Heat", WHOLE))
    net.settle()
    for node, n in ((63, 0), (40, 1)):  # the second event has no receiver
        deliveries(net)
        net.ask(node, Want("s", "Heat", WHOLE))
        net.settle()
        assert [(event.values["n"], event.repeated) for _, event in deliveries(net)] == [(n, True)]
        net.ask(node, QpsUnsubscribeRequest("s", "Heat", WHOLE))
        net.settle()
        net.ask(0, QpsPublishRequest("p", "Heat", (2.0, 2.0), {"n": 1}))
        net.settle()


def test_a_repeated_event_for_one_subscriber_is_not_delivered_to_others_again():
    """Nodes forget after a while which events have come, but not which was the latest of each publisher."""
    net = network(keeps_latest=True, compliance="guaranteed", memory=10 * SECOND)
    net.ask(0, QpsAdvertiseRequest("p", "Heat", CORNER))
    net.ask(63, Want("first", "Heat", WHOLE, 5.0))
    net.settle()
    net.ask(0, QpsPublishRequest("p", "Heat", (1.0, 1.0), {"n": 0}))
    net.ask(0, QpsAdvertiseRequest("q", "Heat", CORNER))
    net.run(60 * SECOND)
    net.ask(0, QpsPublishRequest("q", "Heat", (2.0, 2.0), {"n": 1}))  # now the first is forgotten
    net.settle()
    assert [event.values["n"] for _, event in deliveries(net)] == [0, 1]
    net.ask(0, Want("strict", "Heat", WHOLE, 1.0))  # it requests the paths again
    net.ask(63, Want("strict too", "Heat", WHOLE, 1.0))
    net.settle()
    assert {(event.client, event.values["n"]) for _, event in deliveries(net)} == {
        (who, n) for who in ("strict", "strict too") for n in (0, 1)
    }


def test_nodes_that_start_together_renew_at_different_times_and_equally_often_on_average():
    for spread, least in ((0.0, 1), (0.5, 60)):
        net = network(renewal=20 * SECOND, spread=spread)
        machine = net.hosts[0].machine
        times = {}
        for node, host in net.hosts.items():
            now, many = 0, 0
            while now < 2000 * SECOND:
                _, effects = machine.handle(host.state, Fired(now, "renewal"))
                (timer,) = (effect for effect in effects if getattr(effect, "timer", "") == "renewal")
                assert abs(timer.at - now - 20 * SECOND) <= spread / 2 * 20 * SECOND
                now, many = timer.at, many + 1
                times.setdefault(node, now)
            assert 95 <= many <= 105
        assert len(set(times.values())) >= least
