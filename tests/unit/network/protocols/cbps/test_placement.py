"""State filters on the way: where events are dropped, where bits live, and how both move."""

from __future__ import annotations

from holdfast import Attribute, Event, Topic
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.overlay.memory.brokers import Overlay
from holdfast.network.protocols.cbps.client import (
    PUBLISHER_KINDS,
    CbpsClient,
    ConditionChange,
    ConditionUnknown,
    WithdrawSubmission,
    advertise,
    publish,
    subscribe,
    watch,
)
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.context import within_hops
from holdfast.network.protocols.cbps.event import advertisement_for, to_content

TOPIC = Topic("Temperature", (Attribute("value", "float"),))
DEFINITION = "topic Temperature (value float)\nstate Warm on Temperature [value > 25; value < 22]"
PER_SOURCE = f"{DEFINITION} per source"
MILD = "topic Temperature (value float)\nstate Mild on Temperature [value > 20; value < 10] per source"


class FilterFloor:
    """Brokers ``east`` and ``west`` at a ``hub``; a subscriber beyond it, at the ``office``.

    Sensors are published by clients of their name, each at a broker.
    """

    def __init__(self, seed=None, **sensors):
        self.overlay = Overlay(seed=seed)
        self.overlay.broker("hub")
        for broker in ("east", "west", "office"):
            self.overlay.broker(broker, to=["hub"])
        self.overlay.client("subscriber", "office")
        for name, home in sensors.items():
            self.add(name, home)
        self.time = 0

    def add(self, name, home, *, pin=True):
        self.overlay.client(name, home)
        self.overlay.ask(name, advertise("it", advertisement_for(TOPIC, **({"source": name} if pin else {}))))
        self.overlay.settle()

    def watch(self, definition, who="subscriber", name="warm"):
        self.overlay.ask(who, watch(name, definition))
        self.overlay.settle()

    def read(self, source, *values, by=None):
        for value in values:
            self.time += 1
            event = Event("Temperature", self.time, source, {"value": float(value)}, self.time)
            self.overlay.ask(by or source, publish(to_content(event)))
            self.overlay.settle()

    def emissions(self, who="subscriber"):
        """(status, scope, value) of the notifications to the subscriber; ``unknown`` has no value."""
        return [
            (what.notification.status, what.notification.scope, what.notification.event.attributes["value"])
            if isinstance(what, ConditionChange)
            else ("unknown", what.scope, None)
            for what in self.overlay.take(who)
            if isinstance(what, ConditionChange | ConditionUnknown)
        ]

    def carried(self, a, b):
        """How many notifications have gone over a link since the last look."""
        return self.overlay.traffic.pop((a, b, "notification"), 0)

    def watches(self, broker, peer):
        return list(self.overlay.nodes[broker].state.watching.watches.get(peer, {}).values())


# --- where events are dropped ---


def test_a_scope_of_one_publisher_is_filtered_at_its_own_broker():
    floor = FilterFloor(s1="east", s2="west")
    floor.watch(PER_SOURCE)
    floor.read("s1", 24, 26, 27, 26, 23, 24, 21, 20)
    assert floor.emissions() == [("ingress", "s1", 26.0), ("egress", "s1", 21.0)]
    assert floor.carried("east", "hub") == floor.carried("hub", "office") == 2


def test_a_scope_of_several_publishers_is_filtered_where_their_paths_meet():
    floor = FilterFloor(s1="east", s2="west")
    floor.watch(DEFINITION)
    floor.read("s1", 26, 23, 27)  # 23 satisfies neither predicate, so it is irrelevant everywhere
    floor.read("s2", 28, 21)
    assert floor.emissions() == [("ingress", None, 26.0), ("egress", None, 21.0)]
    assert (floor.carried("east", "hub"), floor.carried("west", "hub")) == (2, 2)
    assert floor.carried("hub", "office") == 2


def test_two_publishers_at_one_broker_are_filtered_there():
    floor = FilterFloor(s1="east", s2="east")
    floor.watch(DEFINITION)
    floor.read("s1", 26, 27)
    floor.read("s2", 28, 21)
    assert floor.carried("east", "hub") == 2


def test_advertisements_without_a_source_share_all_scopes():
    floor = FilterFloor()
    floor.add("a", "east", pin=False)
    floor.add("b", "west", pin=False)
    floor.watch(PER_SOURCE)
    floor.read("s1", 26, 27, by="a")
    floor.read("s1", 28, 21, by="b")
    assert floor.emissions() == [("ingress", "s1", 26.0), ("egress", "s1", 21.0)]
    assert (floor.carried("east", "hub"), floor.carried("hub", "office")) == (2, 2)


def test_an_event_passes_a_link_once_for_all_filters_and_subscriptions_behind_it():
    floor = FilterFloor(s1="east")
    floor.overlay.client("neighbour", "office")
    floor.watch(PER_SOURCE)
    floor.watch(MILD, name="mild")
    floor.watch(PER_SOURCE, who="neighbour")
    floor.overlay.ask("neighbour", subscribe("hot", Filter((Constraint("value", "double", ">", 30.0),))))
    floor.overlay.settle()
    floor.read("s1", 26)  # starts both conditions, for two subscribers
    assert floor.carried("east", "hub") == floor.carried("hub", "office") == 1
    floor.read("s1", 27)  # nothing starts or ends
    assert floor.carried("east", "hub") == 0
    floor.read("s1", 31)  # only the plain subscription wants it
    assert floor.carried("hub", "office") == 1
    floor.read("s1", 21)  # Warm ends, Mild does not
    assert floor.carried("hub", "office") == 1
    assert [status for status, _, _ in floor.emissions()] == ["ingress", "ingress", "egress"]
    assert [status for status, _, _ in floor.emissions("neighbour")] == ["ingress", "egress"]


def test_a_second_subscriber_of_an_active_condition_starts_without_state():
    floor = FilterFloor(s1="east")
    floor.overlay.client("late", "office")
    floor.watch(PER_SOURCE)
    floor.read("s1", 26)
    floor.watch(PER_SOURCE, who="late")
    floor.read("s1", 27, 21)
    assert floor.emissions() == [("ingress", "s1", 26.0), ("egress", "s1", 21.0)]
    assert floor.emissions("late") == [("ingress", "s1", 27.0), ("egress", "s1", 21.0)]


# --- how bits move ---


def test_a_publisher_that_joins_an_active_condition_moves_the_bit_to_the_meeting_broker():
    floor = FilterFloor(s1="east")
    floor.watch(DEFINITION)
    floor.read("s1", 26)
    (at_source,) = floor.watches("east", "hub")
    assert at_source.replica.bits == {""}
    floor.add("s2", "west")
    (at_hub,) = floor.watches("hub", "office")
    assert (at_source.replica.bits, at_hub.replica.bits) == (set(), {""})
    floor.read("s2", 27, 21)
    assert floor.emissions() == [("ingress", None, 26.0), ("egress", None, 21.0)]
    floor.read("s1", 26)
    assert floor.emissions() == [("ingress", None, 26.0)]


def test_a_publisher_that_leaves_moves_the_bit_back():
    floor = FilterFloor(s1="east", s2="west")
    floor.watch(DEFINITION)
    floor.read("s2", 26)
    floor.overlay.ask("s2", WithdrawSubmission("it"))
    floor.overlay.settle()
    (at_source,) = floor.watches("east", "hub")
    assert at_source.replica.bits == {""}
    floor.carried("east", "hub")
    floor.read("s1", 27, 28, 21)
    assert floor.carried("east", "hub") == 1
    assert floor.emissions() == [("ingress", None, 26.0), ("egress", None, 21.0)]


def test_a_moved_sensor_finds_its_bit_again():
    floor = FilterFloor(s1="east")
    floor.watch(PER_SOURCE)
    floor.read("s1", 26)
    floor.overlay.ask("s1", WithdrawSubmission("it"))
    floor.add("s1 again", "west", pin=False)
    floor.read("s1", 27, 21, by="s1 again")
    floor.overlay.ask("s1 again", WithdrawSubmission("it"))
    floor.overlay.settle()
    floor.overlay.ask("s1", advertise("it", advertisement_for(TOPIC, source="s1")))
    floor.overlay.settle()
    floor.read("s1", 21, 26, 21)
    assert [status for status, _, _ in floor.emissions()] == ["ingress", "egress"] * 2


def test_bits_of_a_scope_without_publishers_here_are_requested_again():
    """East keeps a replica for s1 all the time; meanwhile s2 comes, holds, and goes on the west side."""
    floor = FilterFloor(s1="east")
    floor.watch(PER_SOURCE)
    floor.add("s2", "west")
    floor.read("s2", 26)
    floor.overlay.ask("s2", WithdrawSubmission("it"))
    floor.add("s2 again", "east")
    floor.overlay.ask("s2 again", advertise("other", advertisement_for(TOPIC, source="s2")))
    floor.overlay.settle()
    floor.read("s2", 27, 21, by="s2 again")
    assert floor.emissions() == [("ingress", "s2", 26.0), ("egress", "s2", 21.0)]


# --- what is lost ---


def test_after_a_cut_an_active_condition_is_unknown_until_a_reading_decides():
    floor = FilterFloor(s1="east", s2="west")
    floor.watch(PER_SOURCE)
    floor.read("s1", 26)
    floor.read("s2", 26)
    floor.overlay.cut("east", "hub")
    floor.overlay.settle()
    assert floor.emissions()[2:] == [("unknown", "s1", None)]
    floor.read("s1", 21, 27)  # without a subscriber
    floor.overlay.connect("east", "hub")
    floor.overlay.settle()
    floor.read("s1", 24, 28, 29, 21)
    floor.read("s2", 21)
    assert floor.emissions() == [("known", "s1", 28.0), ("egress", "s1", 21.0), ("egress", "s2", 21.0)]


def sinces(floor):
    """The statuses of the notifications to the subscriber, and their starts."""
    return [
        ("unknown", one.since)
        if isinstance(one, ConditionUnknown)
        else (one.notification.status, one.notification.since)
        for one in floor.overlay.take("subscriber")
    ]


def test_the_end_of_an_unknown_condition_has_its_start_whichever_link_was_lost():
    for a, b in (("s1", "east"), ("east", "hub"), ("hub", "office"), ("office", "subscriber")):
        for values, expected in (((20,), ["egress"]), ((32, 33, 20), ["known", "egress"])):
            floor = FilterFloor(s1="east")
            floor.watch(PER_SOURCE)
            floor.read("s1", 31)
            floor.overlay.cut(a, b)
            floor.overlay.settle()
            floor.overlay.connect(a, b)
            floor.overlay.settle()
            floor.read("s1", 24, *values)
            assert sinces(floor) == [("ingress", None), ("unknown", 1), *((status, 1) for status in expected)]


def test_unknown_is_reported_once_even_after_further_losses():
    floor = FilterFloor(s1="east")
    floor.watch(PER_SOURCE)
    floor.read("s1", 31)
    for a, b in (("east", "hub"), ("office", "subscriber"), ("east", "hub")):
        floor.overlay.cut(a, b)
        floor.overlay.settle()
        floor.overlay.connect(a, b)
        floor.overlay.settle()
    floor.read("s1", 20, 31)
    assert sinces(floor) == [("ingress", None), ("unknown", 1), ("egress", 1), ("ingress", None)]


def test_an_unknown_inner_scope_passes_events_to_the_outer_one_again():
    """The end of s1 is lost and its room has ended by s2: when s1 starts again, the room does."""
    floor = FilterFloor(s1="east", s2="west")
    floor.watch(DEFINITION.replace("(value float)", "(value float, room text)") + " per source within room")

    def read(source, value):
        floor.time += 1
        event = Event("Temperature", floor.time, source, {"value": value, "room": "lab"}, floor.time)
        floor.overlay.ask(source, publish(to_content(event)))
        floor.overlay.settle()

    read("s1", 26.0)
    read("s2", 26.0)
    floor.overlay.cut("east", "hub")
    floor.overlay.settle()
    read("s1", 21.0)  # without a subscriber
    floor.overlay.connect("east", "hub")
    floor.overlay.settle()
    read("s2", 21.0)
    read("s1", 27.0)
    read("s1", 21.0)
    assert [status for status, _, _ in floor.emissions()] == [
        "ingress",
        "unknown",
        "egress",
        "ingress",
        "egress",
    ]


def test_when_a_broker_dies_the_conditions_behind_it_are_unknown():
    floor = FilterFloor(s1="east", s2="west")
    floor.watch(DEFINITION)
    floor.read("s1", 26)
    floor.overlay.kill("east")
    floor.overlay.settle()
    assert floor.emissions() == [("ingress", None, 26.0), ("unknown", None, None)]
    floor.read("s2", 26, 21)
    assert floor.emissions() == [("known", None, 26.0), ("egress", None, 21.0)]


def test_a_subscriber_without_connection_reports_unknown_itself():
    floor = FilterFloor(s1="east")
    floor.watch(PER_SOURCE)
    floor.read("s1", 26)
    floor.overlay.cut("subscriber", "office")
    floor.overlay.connect("subscriber", "office")
    floor.overlay.settle()
    floor.read("s1", 27, 21)
    expected = ["ingress", "unknown", "known", "egress"]
    assert [status for status, _, _ in floor.emissions()] == expected


def test_a_publisher_that_vanishes_makes_its_condition_unknown():
    floor = FilterFloor(s1="east", s2="east")
    floor.watch(PER_SOURCE)
    floor.read("s1", 26)
    floor.read("s2", 26)
    floor.overlay.kill("s1")
    floor.overlay.settle()
    assert floor.emissions()[2:] == [("unknown", "s1", None)]


def test_an_event_dropped_for_a_slow_subscriber_makes_its_condition_unknown():
    floor = FilterFloor(s1="east", s2="west")
    floor.watch(PER_SOURCE)
    floor.read("s1", 26)
    floor.read("s2", 26)
    floor.emissions()
    event = Event("Temperature", 9, "s1", {"value": 21.0}, 9)
    floor.overlay.ask("s1", publish(to_content(event)))
    while not floor.overlay.give_up("office", "subscriber"):
        floor.overlay.step()
    floor.overlay.settle()
    assert floor.emissions() == [("unknown", "s1", None)]
    floor.read("s1", 27, 21)
    floor.read("s2", 21)
    assert floor.emissions() == [("known", "s1", 27.0), ("egress", "s1", 21.0), ("egress", "s2", 21.0)]


def test_a_start_dropped_for_a_slow_subscriber_is_reported_by_the_next_entering_event():
    floor = FilterFloor(s1="east")
    floor.watch(PER_SOURCE)
    floor.overlay.ask("s1", publish(to_content(Event("Temperature", 1, "s1", {"value": 26.0}, 1))))
    while not floor.overlay.give_up("office", "subscriber"):
        floor.overlay.step()
    floor.overlay.settle()
    assert floor.emissions() == []
    floor.read("s1", 27, 21)
    assert floor.emissions() == [("ingress", "s1", 27.0), ("egress", "s1", 21.0)]


# --- regions ---

ROOMS = """topic Temperature (value float)
region north = rectangle (0, 10) (10, 20)
region south = rectangle (0, 0) (10, 10)
state Warm on Temperature [value > 25; value < 22] scope north, south"""


def test_conditions_by_coordinates_are_filtered_at_the_source_like_those_by_name():
    """Two sensors in two rectangles, at two brokers: each pins where it is, so each broker sees its scope."""
    at = {"n": {"x": 5.0, "y": 15.0}, "s": {"x": 5.0, "y": 5.0}}
    for pinned, emitted in (({}, at), (at, at), ({"n": {"place": "north"}, "s": {"place": "south"}},) * 2):
        floor = FilterFloor()
        for name, home in (("n", "east"), ("s", "west")):
            floor.overlay.client(name, home)
            promise = advertisement_for(TOPIC, source=name, **pinned.get(name, {}))
            floor.overlay.ask(name, advertise("it", promise))
        floor.watch(ROOMS)
        for value in (24, 26, 27, 26, 23, 21):
            for name in ("n", "s"):
                content = {"topic": "Temperature", "time": 1, "source": name, "sequence": 1, "value": value}
                floor.overlay.ask(name, publish({**content, **emitted[name]}))
            floor.overlay.settle()
        crossed = [floor.carried(home, "hub") for home in ("east", "west")]
        assert crossed == ([2, 2] if pinned else [4, 4])
        assert sorted(floor.emissions()) == sorted(
            (status, scope, value)
            for scope in ("north", "south")
            for status, value in (("ingress", 26.0), ("egress", 21.0))
        )


def test_a_wide_advertisement_covers_a_narrow_one_though_that_pins_more():
    """The hub knows both and forwards the wider one; when that goes, the other is forwarded again."""
    floor = FilterFloor(s1="east")
    floor.overlay.ask("s1", advertise("wide", advertisement_for(TOPIC)))
    floor.overlay.settle()

    def offers_at(broker):
        return [
            item
            for one in floor.overlay.nodes[broker].state.routing.database.peers("advertisement")
            for item in floor.overlay.nodes[broker]
            .state.routing.database.table(one, "advertisement")
            .active()
        ]

    assert [len(offers_at(broker)) for broker in ("east", "hub", "office")] == [1, 1, 1]
    floor.watch(PER_SOURCE)
    floor.read("s1", 26, 27, 21)
    assert [status for status, _, _ in floor.emissions()] == ["ingress", "egress"]
    floor.overlay.ask("s1", WithdrawSubmission("wide"))
    floor.overlay.settle()
    floor.read("s1", 26, 27, 21)
    assert [status for status, _, _ in floor.emissions()] == ["ingress", "egress"]


# --- at the publisher itself ---


def source(floor, name, home):
    """A publisher that runs replicas itself; the notifications that it sends."""
    sent = []

    def tap(sender, _to, message):
        if sender == name and getattr(message, "notifications", ()):
            sent.append(message.notifications[0].content["value"])

    floor.overlay._tap = tap
    floor.overlay.client(name, home, machine=CbpsClient(name, compile_condition, PUBLISHER_KINDS))
    floor.overlay.ask(name, advertise("it", advertisement_for(TOPIC, source=name)))
    floor.overlay.settle()
    return sent


def test_a_filtering_publisher_sends_only_starts_and_ends():
    floor = FilterFloor()
    sent = source(floor, "s1", "east")
    floor.read("s1", 26)
    assert sent == [], "nobody wants anything"
    floor.watch(PER_SOURCE)
    floor.watch(MILD, name="mild")
    floor.read("s1", 24, 26, 27, 26, 23, 21, 15, 9, 8)
    assert sent == [24.0, 26.0, 21.0, 9.0]
    assert [(status, value) for status, _, value in floor.emissions()] == [
        *(("ingress", 24.0), ("ingress", 26.0), ("egress", 21.0), ("egress", 9.0)),
    ]
    floor.overlay.ask("subscriber", WithdrawSubmission("warm"))
    floor.overlay.settle()
    floor.read("s1", 26, 21)
    assert sent == [24.0, 26.0, 21.0, 9.0, 26.0]


def test_a_publisher_that_filters_shares_a_scope_with_others():
    """In a scope that other publishers reach it drops only events that satisfy neither predicate."""
    floor = FilterFloor(s2="west")
    sent = source(floor, "s1", "east")
    floor.watch(DEFINITION)
    floor.read("s2", 26)
    floor.read("s1", 27, 23, 21, 26)
    assert sent == [27.0, 21.0, 26.0]
    assert [(status, value) for status, _, value in floor.emissions()] == [
        *(("ingress", 26.0), ("egress", 21.0), ("ingress", 26.0)),
    ]


def test_a_filtering_publisher_receives_subscriptions_within_their_hop_bound():
    """A subscription that goes no farther than one broker still concerns those who publish there."""
    floor = FilterFloor()
    sent = source(floor, "s1", "east")
    floor.overlay.client("neighbour", "east")
    wanted = Filter((Constraint("value", "double", ">", 25.0),))
    floor.overlay.ask("neighbour", subscribe("near", wanted, incoming=(within_hops(1),)))
    floor.overlay.settle()
    floor.read("s1", 24, 26)
    assert [one.content["value"] for one in floor.overlay.take("neighbour")] == [26.0]
    assert sent == [26.0]


def test_a_filtering_publisher_sends_everything_before_the_broker_has_answered():
    floor = FilterFloor()
    floor.watch(PER_SOURCE)
    floor.overlay.client("s1", "east", machine=CbpsClient("s1", compile_condition, PUBLISHER_KINDS))
    floor.overlay.ask("s1", advertise("it", advertisement_for(TOPIC, source="s1")))
    for n in range(3):
        event = Event("Temperature", n, "s1", {"value": 24.0}, n)
        floor.overlay.ask("s1", publish(to_content(event)))
    assert len([one for one in floor.overlay.waiting("s1", "east") if getattr(one, "notifications", ())]) == 3


def test_a_filtering_publisher_restarts_after_a_reconnection():
    floor = FilterFloor()
    sent = source(floor, "s1", "east")
    floor.watch(PER_SOURCE)
    floor.read("s1", 26)
    floor.overlay.cut("s1", "east")
    floor.overlay.settle()
    floor.overlay.connect("s1", "east")
    floor.overlay.settle()
    floor.read("s1", 24, 26, 27, 21, 20)
    assert [status for status, _, _ in floor.emissions()] == ["ingress", "unknown", "known", "egress"]
    assert sent == [26.0, 26.0, 21.0]


def test_an_advertisement_that_pins_more_does_not_cover_one_that_pins_less():
    """An advertisement without places covers all of them. Another one beside it with only the north does
    not restrict its events in the south."""
    floor = FilterFloor()
    for name, home, pinned in (("a", "east", {}), ("n", "east", {"place": "north"}), ("c", "office", {})):
        floor.overlay.client(name, home)
        floor.overlay.ask(name, advertise("it", advertisement_for(TOPIC, **pinned)))
    floor.watch(ROOMS)
    for name, value in (("c", 26.0), ("a", 21.0), ("c", 20.0)):
        content = {"topic": "Temperature", "time": 1, "source": name, "sequence": 1, "value": value}
        floor.overlay.ask(name, publish({**content, "place": "south"}))
        floor.overlay.settle()
    assert floor.emissions() == [("ingress", "south", 26.0), ("egress", "south", 21.0)]


def test_redundant_sensors_of_a_region_are_combined_at_the_broker_where_they_meet():
    """No region is named: of two sensors in the north the second has nothing new to report.  [S6]"""
    floor = FilterFloor()
    for name, home, y in (("n1", "east", 12.0), ("n2", "east", 18.0), ("s", "west", 5.0)):
        floor.overlay.client(name, home)
        floor.overlay.ask(name, advertise("it", advertisement_for(TOPIC, source=name, x=5.0, y=y)))
    floor.watch(ROOMS.replace("scope north, south", "scope regions"))
    for value in (24.0, 26.0, 27.0, 21.0, 20.0):
        for name, y in (("n1", 12.0), ("n2", 18.0), ("s", 5.0)):
            content = {"topic": "Temperature", "time": 1, "source": name, "sequence": 1, "value": value}
            floor.overlay.ask(name, publish({**content, "x": 5.0, "y": y}))
            floor.overlay.settle()
    assert floor.emissions() == [
        (status, scope, value)
        for status, value in (("ingress", 26.0), ("egress", 21.0))
        for scope in ("north", "south")
    ]
    assert floor.carried("east", "hub") == floor.carried("west", "hub") == 2
