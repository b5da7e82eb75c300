"""The thesis' own examples on a running overlay, by their number in the specification.

Of T8 everything but the agents; T9 and T10 with plain clients in their place.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from holdfast.model.instant import MILLISECOND, SECOND
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.cbps.broker import MOST_HOPS
from holdfast.network.protocols.cbps.client import (
    NEW,
    CbpsClient,
    ReceivedNotification,
    Submit,
    WithdrawSubmission,
    advertise,
    publish,
    subscribe,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.context import within_hops
from holdfast.network.protocols.cbps.message import (
    ActiveSubscription,
    Advertisement,
    AgentStrategy,
    Bundle,
    CbpsSubscription,
    ExpressSlip,
    PublishedNotification,
    Registration,
    RoutingSlip,
)


def box(**ranges):
    """``box(X=(0, 10))`` is 0 < X < 10; ``box(X=None)`` wants X to be there."""
    return Filter(
        tuple(
            constraint
            for name, ends in ranges.items()
            for constraint in (
                [Constraint(name, "double", "any")]
                if ends is None
                else [Constraint(name, "double", ">", ends[0]), Constraint(name, "double", "<", ends[1])]
            )
        )
    )


def position(uid):
    """The position of a moving publisher: uid = …, X ANY, Y ANY."""
    return Filter(
        (
            Constraint("uid", "text", "=", uid),
            Constraint("X", "long", "any"),
            Constraint("Y", "long", "any"),
        )
    )


class Net:
    """An overlay that remembers what was sent over each link."""

    def __init__(self, links, **homes):
        self.sent = defaultdict(list)
        self.overlay = Overlay(tap=lambda sender, to, message: self.sent[sender, to].append(message))
        for a, b in links:
            for name in (a, b):
                if name not in self.overlay.nodes:
                    self.overlay.broker(name)
            self.overlay.connect(a, b)
        for name, home in homes.items():
            self.overlay.client(name, home)
        self.overlay.settle()

    def do(self, name, request):
        self.overlay.ask(name, request)
        self.overlay.settle()

    def deliveries(self, name):
        return [
            dict(what.content) for what in self.overlay.take(name) if isinstance(what, ReceivedNotification)
        ]

    def holding(self, kind):
        """The brokers that have stored something of a kind, with the connections they have it from."""
        return {
            name: set(node.state.routing.database.peers(kind))
            for name, node in self.overlay.nodes.items()
            if not isinstance(node.machine, CbpsClient) and node.state.routing.database.peers(kind)
        }

    def bundles(self, sender, to):
        return [message for message in self.sent[sender, to] if isinstance(message, Bundle)]


CHAIN = [("1", "2"), ("2", "3"), ("3", "4"), ("4", "5")]


# --- matching ---

SUBSCRIPTIONS = {
    "1<X<2, 4<Y<10": (box(X=(1, 2), Y=(4, 10)), True),
    "-5<X<5": (box(X=(-5, 5)), True),
    "Z": (box(Z=(0, 1)), False),
    "50<X<100": (box(X=(50, 100)), False),
}


@pytest.mark.parametrize("name", SUBSCRIPTIONS)
def test_t1_a_subscription_is_forwarded_where_an_advertisement_may_satisfy_it(name):
    filter_, matches = SUBSCRIPTIONS[name]
    net = Net(CHAIN, publisher="1", subscriber="3")
    net.do("publisher", advertise("a", box(X=(0, 10), Y=(0, 5))))
    net.do("subscriber", subscribe("s", filter_))
    assert set(net.holding("subscription")) == ({"1", "2", "3"} if matches else {"3"})


@pytest.mark.parametrize("name", SUBSCRIPTIONS)
def test_t2_a_notification_goes_to_subscribers_whose_filters_it_satisfies(name):
    filter_, matches = SUBSCRIPTIONS[name]
    net = Net(CHAIN, publisher="1", subscriber="3")
    net.do("publisher", advertise("a", box(X=(0, 10), Y=(0, 5))))
    net.do("subscriber", subscribe("s", filter_))
    net.do("publisher", publish({"X": 1.5, "Y": 4.5, "colour": "red"}))
    assert len(net.deliveries("subscriber")) == matches


@pytest.mark.parametrize("wide", [box(A=(-100, 100), B=(-100, 100)), box(A=(-100, 100))])
@pytest.mark.parametrize("wide_first", [True, False])
def test_t3_a_covered_subscription_is_not_forwarded_until_its_coverer_goes(wide, wide_first):
    net = Net(CHAIN, publisher="5", narrow="1", wide="1")
    net.do("publisher", advertise("a", box(A=None, B=None)))
    requests = [("wide", subscribe("s", wide)), ("narrow", subscribe("s", box(A=(0, 10), B=(0, 10))))]
    for name, request in requests if wide_first else reversed(requests):
        net.do(name, request)

    def in_sight():
        table = net.overlay.nodes["2"].state.routing.database.table("1", "subscription")
        return [item.filter for item in table.active()]

    assert in_sight() == [wide]
    assert len(net.bundles("2", "3")) == (1 if wide_first else 2)
    net.do("wide", WithdrawSubmission("s"))
    assert in_sight() == [box(A=(0, 10), B=(0, 10))]
    net.do("publisher", publish({"A": 5.0, "B": 5.0}))
    net.do("publisher", publish({"A": 50.0, "B": 5.0}))
    assert net.deliveries("narrow") == [{"A": 5.0, "B": 5.0}]
    assert net.deliveries("wide") == []


def test_t4_overlapping_subscriptions_are_not_merged_by_brokers():
    """Merging belongs to the study of subscriptions; it loses who wanted what."""
    net = Net(CHAIN, publisher="3", subscriber="1")
    net.do("publisher", advertise("a", box(A=None)))
    net.do("subscriber", subscribe("low", box(A=(0, 10))))
    net.do("subscriber", subscribe("high", box(A=(5, 15))))
    assert len(list(net.overlay.nodes["3"].state.routing.database.table("2", "subscription").active())) == 2


@pytest.mark.parametrize("order", [("publisher", "subscriber"), ("subscriber", "publisher")])
def test_t5_the_order_of_arrival_makes_no_difference(order):
    requests = {"publisher": advertise("a", box(X=(0, 10))), "subscriber": subscribe("s", box(X=(2, 20)))}
    net = Net(CHAIN, publisher="1", subscriber="5")
    for name in order:
        net.do(name, requests[name])
    net.do("publisher", publish({"X": 3.0}))
    net.do("publisher", publish({"X": 1.0}))
    assert net.deliveries("subscriber") == [{"X": 3.0}]


def test_t5_two_running_networks_are_joined():
    net = Net([("1", "2"), ("3", "4")], publisher="1", subscriber="4")
    net.do("publisher", advertise("a", box(X=(0, 10))))
    net.do("subscriber", subscribe("s", box(X=(2, 20))))
    net.do("publisher", publish({"X": 3.0}))
    assert net.deliveries("subscriber") == []
    net.overlay.connect("2", "3")
    net.overlay.settle()
    assert set(net.holding("advertisement")) == {"1", "2", "3", "4"}
    net.do("publisher", publish({"X": 4.0}))
    assert net.deliveries("subscriber") == [{"X": 4.0}]


def test_t6_a_connection_gets_a_notification_once_though_several_subscriptions_match():
    net = Net(CHAIN, publisher="1", one="3", two="3")
    net.do("publisher", advertise("a", box(X=None)))
    net.do("one", subscribe("s", box(X=(0, 10))))
    net.do("one", subscribe("t", box(X=(2, 20))))
    net.do("two", subscribe("s", box(X=(1, 12))))
    net.do("publisher", publish({"X": 5.0}))
    for link in (("1", "2"), ("2", "3"), ("3", "one"), ("3", "two")):
        assert sum(bool(bundle.notifications) for bundle in net.bundles(*link)) == 1
    assert [what.subscription for what in net.overlay.take("one")] == ["s", "t"]


@pytest.mark.parametrize("flood", [True, False])
def test_t7_only_flooded_subscriptions_receive_events_without_advertisement(flood):
    net = Net(CHAIN, publisher="1", subscriber="4")
    net.do("publisher", advertise("a", box(A=None, B=None)))
    net.do("subscriber", subscribe("s", box(C=None), flood_forward=flood))
    net.do("publisher", publish({"A": 1.0, "B": 2.0, "C": 3.0}))
    assert len(net.deliveries("subscriber")) == flood


# --- the proximity example ---

TREE = [("1", "2"), ("1", "3"), *(("2", n) for n in "456"), *(("3", n) for n in "789")]
NEAR = Filter(
    (
        Constraint("uid", "text", "=", "(A.x-B.x)^2 + (A.y-B.y)^2"),
        Constraint("distance", "double", "<=", 10.0),
    )
)
PROXIMITY = Bundle(
    NEW,
    subscriptions=(CbpsSubscription(NEAR),),
    active=(
        ActiveSubscription(
            tuple(
                AgentStrategy(
                    position(mine),
                    "LocationObserverAgent",
                    (("uid", mine), ("partnerUid", partner), ("lowRange", "8"), ("highRange", "10")),
                )
                for mine, partner in ("AB", "BA")
            ),
            "code",
        ),
    ),
)


@pytest.fixture
def net():
    net = Net(TREE, A="5", B="7", subscriber="1")
    net.do("A", advertise("a", position("A")))
    net.do("B", advertise("a", position("B")))
    return net


def test_t8_advertisements_count_the_hops_from_their_publisher(net):
    def hops(uid):
        return {
            name: stored.bundle.context.hop_count
            for name, node in net.overlay.nodes.items()
            if not isinstance(node.machine, CbpsClient)
            for stored in node.state.routing.in_force.values()
            if stored.bundle.context.origin == uid
        }

    assert {name: hops("A")[name] for name in "521"} == {"5": 1, "2": 2, "1": 3}
    assert {name: hops("B")[name] for name in "731"} == {"7": 1, "3": 2, "1": 3}


def test_t8_an_active_subscription_goes_to_the_brokers_beside_the_publishers_and_is_stored(net):
    net.sent.clear()
    net.do("subscriber", Submit(PROXIMITY, "near"))
    paths = {(a, b): m for (a, b), m in net.sent.items() if a != "subscriber" and net.bundles(a, b)}
    assert set(paths) == {("1", "2"), ("2", "5"), ("1", "3"), ("3", "7")}
    for link, uid in ((("1", "2"), "A"), (("2", "5"), "A"), (("1", "3"), "B"), (("3", "7"), "B")):
        (bundle,) = net.bundles(*link)
        assert bundle.express == ExpressSlip("subscription", position(uid).digest)
        assert bundle.active == PROXIMITY.active
    assert (
        set(net.holding("subscription")) == set(net.holding("subscription slip")) == {"1", "2", "3", "5", "7"}
    )
    counted = {name: net.overlay.nodes[name].state.counted["express"] for name in "23"}
    assert counted == {"2": 1, "3": 1}


def test_t8_publishers_that_come_later_make_no_difference():
    net = Net(TREE, A="5", B="7", subscriber="1")
    net.do("subscriber", Submit(PROXIMITY, "near"))
    net.do("B", advertise("a", position("B")))
    net.do("A", advertise("a", position("A")))
    assert set(net.holding("subscription slip")) == {"1", "2", "3", "5", "7"}


def test_t8_results_return_over_the_subscription_in_the_bundle(net):
    net.do("subscriber", Submit(PROXIMITY, "near"))
    net.overlay.client("agent", "5")
    net.do("agent", publish({"uid": "(A.x-B.x)^2 + (A.y-B.y)^2", "distance": 9.5}))
    net.do("agent", publish({"uid": "(A.x-B.x)^2 + (A.y-B.y)^2", "distance": 10.5}))
    assert [content["distance"] for content in net.deliveries("subscriber")] == [9.5]


def test_t9_a_subscription_to_local_data_is_not_forwarded_and_receives_no_remote_data(net):
    net.overlay.client("agent", "5")
    net.overlay.client("twin", "5")
    local = Filter((Constraint("hopCnt", "long", "=", 1),))
    net.do("agent", subscribe("raw", position("A"), incoming=(local,)))
    net.do("twin", advertise("a", position("A")))
    assert net.holding("subscription") == {"5": {"agent"}}
    net.sent.clear()
    net.do("A", publish({"uid": "A", "X": 1, "Y": 2}))
    assert net.deliveries("agent") == [{"uid": "A", "X": 1, "Y": 2}]
    assert net.bundles("5", "2") == []
    net.overlay.client("elsewhere", "4")
    net.do("elsewhere", advertise("a", position("A")))
    net.do("subscriber", subscribe("all", position("A")))
    net.do("elsewhere", publish({"uid": "A", "X": 3, "Y": 4}))
    assert net.deliveries("subscriber") == [{"uid": "A", "X": 3, "Y": 4}]
    assert net.deliveries("agent") == []


def test_t10_a_routing_slip_stores_a_subscription_on_its_route_without_flooding(net):
    net.overlay.client("agent A", "5")
    net.overlay.client("agent B", "7")
    ring = Filter((Constraint("ring", "text", "=", "B"), Constraint("radius", "double", "any")))
    slip = RoutingSlip("subscription", position("B"))
    before = net.holding("advertisement")
    net.do("agent A", Submit(Bundle(NEW, slips=(slip,), subscriptions=(CbpsSubscription(ring),)), "ring"))
    assert set(net.holding("subscription")) == {"5", "2", "1", "3", "7"}
    assert net.holding("advertisement") == before
    net.do("agent B", publish({"ring": "B", "radius": 24.5}))
    assert net.deliveries("agent A") == [{"ring": "B", "radius": 24.5}]
    net.do("B", publish({"uid": "B", "X": 1, "Y": 1}))
    assert net.deliveries("agent A") == []  # a slip is an address, not an interest


def test_a_slip_that_is_not_persistent_stores_nothing(net):
    ring = Filter((Constraint("ring", "text", "=", "B"),))
    slip = RoutingSlip("subscription", position("B"), persistent=False)
    net.do("subscriber", Submit(Bundle(NEW, slips=(slip,), subscriptions=(CbpsSubscription(ring),)), "ring"))
    assert set(net.holding("subscription")) == {"1", "3", "7"}
    assert net.holding("subscription slip") == {}


def test_a_notification_slip_takes_a_payload_where_the_notification_would_go():
    net = Net(CHAIN, publisher="1", near="2", far="4")
    net.do("publisher", advertise("a", box(X=None)))
    net.do("near", subscribe("s", box(X=(0, 10))))
    net.do("far", subscribe("s", box(X=(5, 20))))
    slip = RoutingSlip("notification", Filter((Constraint("X", "double", "=", 7.0),)), persistent=False)
    net.do("publisher", Submit(Bundle(NEW, slips=(slip,), payloads=("<memo/>",))))
    assert [what.payloads for name in ("near", "far") for what in net.overlay.take(name)] == [
        ("<memo/>",)
    ] * 2


# --- context ---


def test_t21_a_publisher_limits_how_far_its_notifications_go():
    net = Net(CHAIN, publisher="1", near="3", far="4")
    net.do("publisher", advertise("a", box(X=None)))
    for name in ("near", "far"):
        net.do(name, subscribe("s", box(X=None)))
    net.do("publisher", publish({"X": 1.0}, outgoing=(within_hops(3),)))
    assert net.deliveries("near") == [{"X": 1.0}]
    assert net.deliveries("far") == []


def test_t21_a_subscription_is_stored_only_within_its_hop_bound():
    net = Net(CHAIN, near="3", far="4", subscriber="1")
    for name in ("near", "far"):
        net.do(name, advertise("a", box(X=None)))
    net.do("subscriber", subscribe("s", box(X=None), incoming=(within_hops(3),)))
    assert set(net.holding("subscription")) == {"1", "2", "3"}
    for name in ("near", "far"):
        net.do(name, publish({"X": 1.0}))
    assert net.deliveries("subscriber") == [{"X": 1.0}]


def test_one_satisfied_context_filter_of_several_suffices():
    net = Net(CHAIN, near="1", far="3", subscriber="1")
    for name in ("near", "far"):
        net.do(name, advertise("a", box(X=None)))
    exactly = tuple(Filter((Constraint("hopCnt", "long", "=", hops),)) for hops in (1, 4))
    net.do("subscriber", subscribe("s", box(X=None), incoming=exactly))
    for name in ("near", "far"):
        net.do(name, publish({"X": 1.0}))
    assert len(net.deliveries("subscriber")) == 1


def test_a_subscriber_can_select_one_publisher():
    net = Net(CHAIN, one="3", two="3", subscriber="1")
    for name in ("one", "two"):
        net.do(name, advertise("a", box(X=None)))
    mine = Filter((Constraint("origin", "text", "=", "two"),))
    net.do("subscriber", subscribe("s", box(X=None), incoming=(mine,)))
    for name in ("one", "two"):
        net.do(name, publish({"X": 1.0}))
    (what,) = net.overlay.take("subscriber")
    assert what.context.origin == "two"


def older_than(limit):
    return Filter((Constraint("travelTime", "long", "<=", limit),))


@pytest.mark.parametrize(("delay", "arrives"), [(900 * MILLISECOND, True), (1_100 * MILLISECOND, False)])
def test_t22_data_valid_for_a_second_is_not_forwarded_when_it_is_older(delay, arrives):
    net = Net(CHAIN, publisher="1", subscriber="2")
    net.do("publisher", advertise("a", box(X=None)))
    net.do("subscriber", subscribe("s", box(X=None)))
    net.overlay.ask("publisher", publish({"X": 1.0}, outgoing=(older_than(SECOND),)))
    net.overlay.advance(delay)  # while it waits at the first broker
    net.overlay.settle()
    assert len(net.deliveries("subscriber")) == arrives


@pytest.mark.parametrize(("delay", "arrives"), [(2 * SECOND, True), (3 * SECOND, False)])
def test_t22_old_data_are_not_sent_to_a_subscriber_that_bounds_age(delay, arrives):
    net = Net(CHAIN, publisher="1", subscriber="2")
    net.do("publisher", advertise("a", box(X=None)))
    net.do("subscriber", subscribe("s", box(X=None), incoming=(older_than(5 * SECOND),)))
    net.overlay.ask("publisher", publish({"X": 1.0}))
    net.overlay.advance(delay)
    net.overlay.step()  # at the first broker
    net.overlay.advance(delay)
    net.overlay.settle()
    assert len(net.deliveries("subscriber")) == arrives


# --- memoization ---

FORK = [("1", "2"), ("2", "3"), ("2", "4"), ("2", "5")]


def test_t23_downstream_brokers_look_up_a_match_instead_of_searching_again():
    net = Net(FORK, publisher="1", three="3", four="4", five="5")
    net.do("publisher", advertise("a", box(X=None, Y=None)))
    equal = box(X=(0, 10))
    net.do("three", subscribe("s", equal))
    net.do("four", subscribe("s", equal))
    net.do("five", subscribe("s", box(Y=(0, 10))))
    net.sent.clear()
    net.overlay.nodes["2"].state.counted.clear()
    net.do("publisher", publish({"X": 5.0, "Y": 5.0}))
    slips = {link: net.bundles(*link)[0].express for link in (("1", "2"), ("2", "3"), ("2", "4"), ("2", "5"))}
    first = slips["1", "2"]
    assert first in (ExpressSlip("notification", f.digest) for f in (equal, box(Y=(0, 10))))
    assert slips["2", "3"] == slips["2", "4"] == ExpressSlip("notification", equal.digest)
    assert slips["2", "5"] == ExpressSlip("notification", box(Y=(0, 10)).digest)
    assert net.overlay.nodes["2"].state.counted["express"] == (2 if first.cache_id == equal.digest else 1)
    for name in ("three", "four", "five"):
        assert net.deliveries(name) == [{"X": 5.0, "Y": 5.0}]


# --- the handshake, and what is not understood ---


def test_t26_a_listener_registers_for_notifications_and_subscribes_to_one_loop_detector():
    listener = CbpsClient("listener", compile_condition, accepts=("notification",))
    net = Net(CHAIN, sensor="4")
    net.overlay.client("listener", "1", machine=listener)
    loop = [
        Constraint("sensor", "text", "=", "Hawthorn St"),
        Constraint("route", "text", "=", "5"),
        Constraint("direction", "text", "=", "NORTH"),
        Constraint("speed", "long", "any"),
    ]
    net.do("listener", subscribe("loop", Filter(tuple(loop))))
    net.do("sensor", advertise("a", Filter(tuple(loop))))
    assert net.sent["listener", "1"][0] == Registration(("notification",), request=True)
    reading = {"sensor": "Hawthorn St", "route": "5", "direction": "NORTH", "speed": 62}
    net.do("sensor", publish(reading))
    assert net.deliveries("listener") == [reading]
    assert net.bundles("1", "listener")[0].context is None  # it did not ask for it


def test_a_peer_receives_nothing_that_it_does_not_accept():
    net = Net(CHAIN, publisher="2", subscriber="2")
    silent = CbpsClient("silent", compile_condition, accepts=())
    net.overlay.client("silent", "2", machine=silent)
    net.do("silent", advertise("a", box(X=None)))
    net.do("publisher", advertise("a", box(X=None)))
    net.do("subscriber", subscribe("s", box(X=None)))
    net.do("publisher", publish({"X": 1.0}, flood_forward=True))
    assert all(isinstance(message, Registration) for message in net.sent["2", "silent"])
    assert {type(m) for m in net.sent["2", "subscriber"]} == {Registration, Bundle}
    assert all(b.notifications and not b.advertisements for b in net.bundles("2", "subscriber"))


def test_t27_slips_that_do_not_fit_their_type_and_empty_bundles_are_discarded():
    net = Net(CHAIN, publisher="1", subscriber="2")
    net.do("publisher", advertise("a", box(X=None)))
    net.do("subscriber", subscribe("s", box(X=None)))
    net.sent.clear()
    wrong = RoutingSlip("notification", box(X=(0, 10)))
    net.do("publisher", Submit(Bundle(NEW, slips=(wrong,), payloads=("<memo/>",)), "wrong"))
    assert net.bundles("1", "2") == []
    alone = RoutingSlip("notification", box(X=(0, 10)))
    net.do("publisher", Submit(Bundle(NEW, slips=(alone,)), "alone"))
    assert net.overlay.nodes["1"].state.counted["discarded"] == 1


def test_a_bundle_is_forwarded_whole_if_any_part_of_it_qualifies():
    net = Net(CHAIN, publisher="1", subscriber="3")
    net.do("subscriber", subscribe("s", box(X=(0, 10))))
    net.do("publisher", advertise("a", box(X=None, Z=None)))
    output = (PublishedNotification({"X": 5.0}), PublishedNotification({"Z": 1.0}))
    quiet = Advertisement(box(Q=None), flood_forward=False)
    net.sent.clear()
    net.do(
        "publisher", Submit(Bundle(NEW, advertisements=(quiet,), notifications=output, payloads=("p",)), "b")
    )
    (bundle,) = net.bundles("2", "3")
    assert (bundle.notifications, bundle.advertisements, bundle.payloads) == (output, (quiet,), ("p",))
    assert net.deliveries("subscriber") == [{"X": 5.0}]
    assert net.bundles("3", "4") == []


def test_an_advertisement_without_flooding_stays_at_its_broker():
    net = Net(CHAIN, publisher="1", subscriber="3")
    net.do("publisher", advertise("a", box(X=None), flood_forward=False))
    assert set(net.holding("advertisement")) == {"1"}
    net.overlay.client("local", "1")
    for name in ("subscriber", "local"):
        net.do(name, subscribe("s", box(X=None)))
    net.do("publisher", publish({"X": 1.0}))
    assert net.deliveries("subscriber") == []
    assert net.deliveries("local") == [{"X": 1.0}]


def test_a_flooded_emergency_reaches_every_subscriber_without_advertisement():
    net = Net(CHAIN, somebody="1", subscriber="5")
    net.do("subscriber", subscribe("s", box(alarm=None)))
    net.do("somebody", publish({"alarm": 1.0}, flood_forward=True))
    assert net.deliveries("subscriber") == [{"alarm": 1.0}]


@pytest.mark.parametrize("kind", ["advertisement", "subscription"])
def test_without_aggregation_nothing_is_covered(kind):
    net = Net(CHAIN, publisher="1", subscriber="3")
    requests = {"advertisement": ("publisher", advertise), "subscription": ("subscriber", subscribe)}
    name, request = requests[kind]
    for i in range(2):
        net.do(name, request(str(i), box(X=None), aggregation=False))
    table = net.overlay.nodes["1" if kind == "advertisement" else "3"].state.routing.database.table(
        name, kind
    )
    assert len(list(table.active())) == 2


def test_in_a_ring_of_brokers_a_notification_stops_and_is_delivered_once():
    net = Net([("1", "2"), ("2", "3"), ("3", "1")], publisher="1", subscriber="2")
    net.do("publisher", advertise("a", box(X=None)))
    net.do("subscriber", subscribe("s", box(X=None)))
    net.sent.clear()
    net.do("publisher", publish({"X": 1.0}))
    assert net.deliveries("subscriber") == [{"X": 1.0}]
    assert sum(map(len, net.sent.values())) < 6 * MOST_HOPS
