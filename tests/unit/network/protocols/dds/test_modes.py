"""The four modes: where subscriptions and samples go, and what a rendezvous node keeps."""

from __future__ import annotations

import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import SECOND
from holdfast.network.protocols.dds import message, request
from holdfast.network.protocols.dds.deployment import MODES
from holdfast.network.protocols.dds.level import FULL
from holdfast.network.protocols.dds.message import DataMessage
from holdfast.network.protocols.dds.topic import DdsTopic
from support.motes import MoteRadio, Motes, deployment, publishing, subscribe

TWO = ("p", "q", "r", "s", "t")


def test_the_rendezvous_node_is_the_topic_modulo_max_topics_looked_up_in_a_table():
    """AT10: with three, topics 0 to 4 meet at 0, 1, 2, 0, 1."""
    topics = tuple(DdsTopic(id, f"t{id}") for id in range(5))
    found = deployment(topics=topics, table=("0", "1", "2"))
    assert [found.rendezvous(topic.id) for topic in topics] == ["0", "1", "2", "0", "1"]


def test_a_rendezvous_node_forgets_samples_and_remembers_subscribers():
    """AT9: who subscribes later gets what is published later; one copy in, two out, one ACK back."""
    motes = Motes(deployment(FULL), ("p", "r", "s", "t"))
    last = publishing(motes, [1, 2], every=20 * SECOND)
    motes.at(25 * SECOND, lambda: subscribe(motes, "s"))
    motes.at(25 * SECOND, lambda: subscribe(motes, "t"))
    motes.run(last + SECOND)
    assert motes.readings("s") == motes.readings("t") == [2]
    second = [each for each in motes.sent(DataMessage) if each[3].values["value"] == 2]
    assert [(sender, to) for _, sender, to, _ in second] == [("p", "r"), ("r", "s"), ("r", "t")]
    acks = [
        (sender, to, ack.complete)
        for at, sender, to, ack in motes.sent(message.SampleAck)
        if at > 30 * SECOND
    ]
    assert sorted(acks[:2]) == [("s", "r", False), ("t", "r", False)]
    assert acks[2:] == [("r", "p", True)], "after both"


def test_a_repetition_is_forwarded_to_readers_with_missing_acks():
    motes = Motes(deployment(FULL), ("p", "r", "s", "t"))
    subscribe(motes, "s")
    subscribe(motes, "t")
    motes.at(
        19 * SECOND, lambda: setattr(motes, "loses", lambda a, to, m: to == "t" and motes.now < 21 * SECOND)
    )
    motes.run(publishing(motes, [1]) + 3 * SECOND)
    assert [to for _, _, to, _ in motes.sent(DataMessage, "r")] == ["s", "t", "t", "t", "t"]
    assert motes.states["r"].rendezvous[0].pending["p", message.SampleStream(0)].awaited == set()


def test_an_old_copy_that_arrives_late_is_not_forwarded_again():
    motes = Motes(deployment(FULL), ("p", "r", "s"))
    subscribe(motes, "s")
    motes.run(publishing(motes, [1, 2]) + SECOND)
    old = motes.sent(DataMessage, "p")[0][3]
    before = len(motes.outputs)
    motes._bring("p", "r", old)
    assert len(motes.outputs) == before


@pytest.mark.parametrize("mode", MODES)
def test_acks_of_an_unsubscribed_reader_are_not_awaited(mode):
    """Otherwise one that left would block the topic for ever."""
    motes = Motes(deployment(FULL, mode=mode), ("p", "r", "s", "t"))
    subscribe(motes, "s")
    subscribe(motes, "t")
    deaf = lambda a, to, m: to == "t" and isinstance(m, DataMessage)  # noqa: E731
    motes.at(19 * SECOND, lambda: setattr(motes, "loses", deaf))
    motes.at(25 * SECOND, lambda: motes.ask("t", request.DdsUnsubscribeRequest("all")))
    motes.run(publishing(motes, [1, 2]) + 20 * SECOND)
    assert motes.readings("s") == [1, 2]


def discoverers(motes: Motes) -> list[str]:
    return [who for who, _ in motes.of(request.SubscriptionRegistered)]


@pytest.mark.parametrize(
    ("mode", "subscriptions", "notifications", "known_at"),
    [("DefTDDS", 10, 0, ["r"]), ("BLTDDS", 10 * 4, 0, ["p", "q"]), ("HyTDDS", 10, 20, ["p", "q"])],
)
def test_each_mode_sends_subscriptions_to_the_right_nodes_at_the_right_cost(
    mode, subscriptions, notifications, known_at
):
    """AT15 without radios: a broadcast reaches the four others; each SUBSCRIBE is sent ten times [D14]."""
    motes = Motes(deployment(mode=mode, publishers=("p", "q")), TWO)
    for node in ("p", "q"):
        motes.ask(node, request.DdsAdvertiseRequest("heat"))
    subscribe(motes, "s")
    motes.run(20 * SECOND)
    assert len(motes.sent(message.DdsSubscribe)) == subscriptions
    assert len(motes.sent(message.DdsNotification)) == notifications
    assert sorted(discoverers(motes)) == known_at


@pytest.mark.parametrize(("mode", "passes"), [("DefTDDS", True), ("BLTDDS", False), ("HyTDDS", False)])
def test_without_a_broker_on_the_data_path_the_rendezvous_node_sees_no_sample(mode, passes):
    """[D41, D43]"""
    motes = Motes(deployment(mode=mode), ("p", "r", "s"))
    subscribe(motes, "s")
    motes.run(publishing(motes, [1]) + SECOND)
    assert any(to == "r" for _, _, to, _ in motes.sent(DataMessage)) is passes
    assert motes.readings("s") == [1]


@pytest.mark.parametrize("mode", MODES)
def test_nine_of_ten_subscriptions_may_get_lost(mode):
    motes = Motes(deployment(mode=mode), ("p", "r", "s"))
    motes.loses = lambda a, b, m: isinstance(m, message.DdsSubscribe) and motes.now < 9 * SECOND
    subscribe(motes, "s")
    motes.run(publishing(motes, [1]) + SECOND)
    assert motes.readings("s") == [1]


def test_a_publisher_that_missed_the_request_receives_it_with_the_next_sample():
    """A subscriber asks for more than the topic's level; the RN's word to the publisher is lost."""
    motes = Motes(deployment(), ("p", "r", "s"))
    motes.loses = lambda a, b, m: isinstance(m, message.Demand) and motes.now < 15 * SECOND
    subscribe(motes, "s", level=FULL)
    motes.run(publishing(motes, [1, 2, 3]) + SECOND)
    assert [data.reliable for _, _, _, data in motes.sent(DataMessage, "p")] == [False, True, True]
    assert motes.readings("s") == [1, 2, 3]


def test_a_network_with_one_seed_runs_equally_twice():
    def messages_of(seed: int) -> list:
        motes = Motes(deployment(FULL), ("p", "r", "s"), MoteRadio(seed, 0.3, 0.2, 300))
        subscribe(motes, "s")
        motes.run(publishing(motes, range(5)) + 60 * SECOND)
        return motes.outputs

    assert messages_of(4) == messages_of(4) != messages_of(5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mode": "DefTDS"}, "Did you mean 'DefTDDS'?"),
        ({"table": ()}, "one at least"),
        ({"conditions": {"": None}}, "needs a name"),
    ],
)
def test_an_impossible_deployment_is_refused(given, message):
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        deployment(**given)
