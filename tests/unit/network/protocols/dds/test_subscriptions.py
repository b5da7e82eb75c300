"""Subscriptions by topic, content, type and key; and errors in subscriptions."""

from __future__ import annotations

from itertools import pairwise

import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import SECOND
from holdfast.model.protocol import Asked, Fired, SetTimer, Started
from holdfast.model.topic import Attribute
from holdfast.network.protocols.dds import message, request
from holdfast.network.protocols.dds.deployment import MODES, DiscoverySettings
from holdfast.network.protocols.dds.interest import FieldConstraint, Interest
from holdfast.network.protocols.dds.participant import DdsParticipant
from holdfast.network.protocols.dds.topic import DdsTopic, SampleType, TopicSet
from support.motes import Motes, deployment, publishing, subscribe

SHAPE = SampleType(
    "Shape",
    (Attribute("color", "text"), Attribute("x", "int"), Attribute("y", "int"), Attribute("shapsize", "int")),
    key=("color",),
)


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


def test_sink_alarm_and_valve_receive_samples_by_their_constraints(mode):
    """AT1: the alarm wants more than 30, the cooling valve more than 50, the sink everything."""
    motes = Motes(deployment(mode=mode), ("p", "r", "sink", "alarm", "valve"))
    subscribe(motes, "sink")
    subscribe(motes, "alarm", where=(FieldConstraint("value", ">", 30),))
    subscribe(motes, "valve", where=(FieldConstraint("value", ">", 50),))
    motes.run(publishing(motes, [25, 30, 31, 50, 51]) + SECOND)
    assert motes.readings("sink") == [25, 30, 31, 50, 51]
    assert motes.readings("alarm") == [31, 50, 51]
    assert motes.readings("valve") == [51]
    to_valve = [data for _, _, to, data in motes.sent(message.DataMessage) if to == "valve"]
    assert len(to_valve) == 1, "filtered before it is sent"


def test_a_subscription_by_topic_alone_receives_all_five_samples(mode):
    motes = Motes(deployment(mode=mode), ("p", "r", "sink", "alarm", "valve"))
    for node in ("sink", "alarm", "valve"):
        subscribe(motes, node)
    motes.run(publishing(motes, [25, 30, 31, 50, 51]) + SECOND)
    for node in ("sink", "alarm", "valve"):
        assert motes.readings(node) == [25, 30, 31, 50, 51]


def test_a_subscription_to_a_parent_gets_its_children(mode):
    """AT2: A is the parent of B and C; what is published on B reaches A and B, not C."""
    topics = (DdsTopic(0, "A"), DdsTopic(1, "B", parent="A"), DdsTopic(2, "C", parent="A"))
    motes = Motes(deployment(mode=mode, topics=topics, table=("r", "q")), ("p", "q", "r", "a", "b", "c"))
    for node in ("a", "b", "c"):
        subscribe(motes, node, topic=node.upper())
    motes.ask("p", request.DdsAdvertiseRequest("B"))
    motes.at(20 * SECOND, lambda: motes.ask("p", request.DdsPublishRequest("B", {"value": 1.0})))
    motes.run(30 * SECOND)
    assert {node: len(motes.notified(node)) for node in "abc"} == {"a": 1, "b": 1, "c": 0}


def test_a_keyed_topic_has_an_instance_for_each_key_and_its_type_names_all(mode):
    """AT3: two colours; a subscription to the type Shape gets all three samples."""
    motes = Motes(deployment(mode=mode, topics=(DdsTopic(4, "Shapes", SHAPE),)), ("p", "r", "s"))
    motes.ask("s", request.DdsSubscribeRequest("shapes", Interest(type="Shape")))
    motes.ask("p", request.DdsAdvertiseRequest("Shapes"))
    for i, (color, x) in enumerate([("RED", 1), ("BLUE", 2), ("RED", 3)]):
        values = {"color": color, "x": x, "y": x, "shapsize": 5}
        motes.at((20 + i) * SECOND, lambda v=values: motes.ask("p", request.DdsPublishRequest("Shapes", v)))
    motes.run(30 * SECOND)
    assert [notice.instance for notice in motes.notified("s")] == [("RED",), ("BLUE",), ("RED",)]


def test_a_node_may_publish_and_subscribe_at_once(mode):
    """[D3] Even to its own topic, and while it is the rendezvous node."""
    motes = Motes(deployment(mode=mode, table=("p",)), ("p", "s"))
    subscribe(motes, "p", level=float("-inf"))
    subscribe(motes, "s")
    motes.run(publishing(motes, [1, 2, 3]) + SECOND)
    assert motes.readings("p") == motes.readings("s") == [1, 2, 3]


def test_two_subscriptions_of_one_node_share_a_copy(mode):
    motes = Motes(deployment(mode=mode), ("p", "r", "s"))
    subscribe(motes, "s", "all")
    subscribe(motes, "s", "hot", where=(FieldConstraint("value", ">=", 2),))
    motes.run(publishing(motes, [1, 2]) + SECOND)
    assert motes.readings("s", "all") == [1, 2]
    assert motes.readings("s", "hot") == [2]
    assert len([1 for _, _, to, _ in motes.sent(message.DataMessage) if to == "s"]) == 2


def test_nothing_arrives_after_unsubscribing_even_if_the_message_was_lost(mode):
    """A subscriber that receives an unwanted sample unsubscribes again."""
    motes = Motes(deployment(mode=mode), ("p", "r", "s"))
    subscribe(motes, "s")
    last = publishing(motes, range(10))
    motes.at(
        22_500_000, lambda: setattr(motes, "loses", lambda a, b, m: isinstance(m, message.DdsUnsubscribe))
    )
    motes.at(22_600_000, lambda: motes.ask("s", request.DdsUnsubscribeRequest("all")))
    motes.at(24_500_000, lambda: setattr(motes, "loses", lambda a, b, m: False))
    motes.run(last + SECOND)
    assert motes.readings("s") == [0, 1, 2]
    assert len([1 for _, _, to, _ in motes.sent(message.DataMessage) if to == "s"]) == 6


def test_subscribing_again_restarts_a_subscription(mode):
    motes = Motes(deployment(mode=mode), ("p", "r", "s"))
    subscribe(motes, "s")
    last = publishing(motes, range(10))
    motes.at(22_500_000, lambda: motes.ask("s", request.DdsUnsubscribeRequest("all")))
    motes.at(26_500_000, lambda: subscribe(motes, "s"))
    motes.run(last + SECOND)
    assert motes.readings("s") == [0, 1, 2, 7, 8, 9]


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (request.DdsPublishRequest("heat", {"value": 1}), "advertise the topic first"),
        (request.DdsPublishRequest("heet", {}), "Did you mean 'heat'?"),
        (request.DdsAdvertiseRequest("heat"), "publishers are known before deployment: p"),
        (request.DdsSubscribeRequest("x", Interest()), "names a topic or a type"),
        (request.DdsSubscribeRequest("x", Interest(type="Shape")), "There is Reading."),
        (
            request.DdsSubscribeRequest(
                "x", Interest(topic="heat", where=(FieldConstraint("valu", ">", 1),))
            ),
            "'value'?",
        ),
        (
            request.DdsSubscribeRequest(
                "x", Interest(topic="heat", where=(FieldConstraint("value", "~", 1),))
            ),
            "compares nothing",
        ),
        (
            request.DdsSubscribeRequest("x", Interest(topic="heat", condition="Hot")),
            "no condition named 'Hot'",
        ),
        (request.DdsUnsubscribeRequest("x"), "has no subscription 'x'"),
        (request.AssureRequest("heat", 90), "subscribe first"),
    ],
)
def test_a_wrong_request_raises_a_precise_error(asked, message):
    motes = Motes(deployment(), ("p", "r", "s"))
    with pytest.raises(UsageError, match=message):
        motes.ask("s", asked)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"colour": "RED"}, "no field 'colour'. Did you mean 'color'?"),
        ({"color": "RED", "x": "far"}, "must be of kind int"),
        ({"x": 1}, "needs its key 'color'"),
    ],
)
def test_a_sample_must_fit_its_structure(values, message):
    with pytest.raises(UsageError, match=message):
        DdsTopic(0, "Shapes", SHAPE).complete(values)


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        ((), "needs a topic"),
        ((DdsTopic(0, "A"), DdsTopic(0, "B")), "same number"),
        ((DdsTopic(0, "A", parent="Z"),), "'Z', which is no topic"),
        ((DdsTopic(0, "A", parent="B"), DdsTopic(1, "B", parent="A")), "its own ancestors"),
    ],
)
def test_a_contradictory_set_of_topics_is_refused(topics, message):
    with pytest.raises(UsageError, match=message):
        TopicSet(topics)


def test_an_invalid_message_is_counted_and_ignored():
    motes = Motes(deployment(), ("p", "r", "s"))
    for nonsense in (
        "hello",
        None,
        message.Demand(99, 0.0),
        message.Role(0, 9, "s"),
        message.Switch(7, "p", "s", True),
    ):
        motes._bring("s", "p", nonsense)
    assert motes.states["p"].counted["not understood"] == 5


def test_subscribers_that_start_together_repeat_their_subscriptions_at_different_times():
    """All nodes once repeated every second at the same instant, and over radios their frames collided ten
    times."""
    output = {}
    for name in ("1", "2", "3"):
        node = DdsParticipant(deployment(), name)
        state = node.handle(node.initial(), Started(0, 7))[0]
        state, effects = node.handle(
            state, Asked(0, request.DdsSubscribeRequest("s", Interest(topic="heat")))
        )
        times = []
        for _ in range(9):
            (timer,) = (effect for effect in effects if isinstance(effect, SetTimer))
            times.append(timer.at)
            state, effects = node.handle(state, Fired(timer.at, timer.timer))
        output[name] = times
    every = DiscoverySettings().every
    assert len({time for times in output.values() for time in times}) == 27
    assert all(every <= b - a <= every * 1.5 for times in output.values() for a, b in pairwise([0, *times]))
