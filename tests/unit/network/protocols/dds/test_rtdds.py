"""RTDDS: who is acknowledged, what waits, what is dropped, what comes twice."""

from __future__ import annotations

import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import MILLISECOND, SECOND
from holdfast.network.protocols.dds import message, request
from holdfast.network.protocols.dds.deployment import MODES, ReliableSettings
from holdfast.network.protocols.dds.level import BEST_EFFORT, FULL, partial
from holdfast.network.protocols.dds.message import DataMessage
from support.motes import HEAT, Motes, deployment, publishing, subscribe

START = 20 * SECOND


def direct(level: float, **more) -> Motes:
    """A publisher and a subscriber that know each other."""
    motes = Motes(deployment(level, mode="BLTDDS", **more), ("p", "s"))
    subscribe(motes, "s")
    motes.ask("p", request.DdsAdvertiseRequest(HEAT))
    motes.run(START)
    motes.outputs.clear()
    return motes


def publish(motes: Motes, *values: float) -> None:
    for value in values:
        motes.ask("p", request.DdsPublishRequest(HEAT, {"value": value}))


def sent_values(motes: Motes) -> list[float]:
    return [data.values["value"] for _, _, _, data in motes.sent(DataMessage, "p")]


def ring_values(motes: Motes) -> list[float]:
    (writer,) = motes.states["p"].writers.values()
    return [held.data.values["value"] for held in writer.ring]


def test_a_reading_above_the_threshold_is_acknowledged_and_one_at_it_is_not():
    """AT4: reading > θ has its bit set, reading ≤ θ not; only the first is acknowledged."""
    motes = direct(partial(30))
    publish(motes, 30, 30.5)
    motes.run(START + SECOND)
    assert [data.reliable for _, _, _, data in motes.sent(DataMessage, "p")] == [False, True]
    assert [ack.name.sequence for _, _, _, ack in motes.sent(message.SampleAck)] == [2]


def test_messages_wait_in_order_behind_an_unacknowledged_one():
    """AT5: BE1, FR2, BE3, FR4, BE5, with the ACK of 2 delayed; Algorithm 1 and its completion."""
    motes = direct(partial(10))
    motes.loses = lambda sender, to, what: True
    publish(motes, 1, 12, 3, 14, 5)
    assert sent_values(motes) == [1, 12]
    assert ring_values(motes) == [12, 3, 14, 5], "12 is held for retry"

    def ack(sequence: int) -> None:
        (name,) = {d.name for _, _, _, d in motes.sent(DataMessage, "p") if d.name.sequence == sequence}
        motes._bring("s", "p", message.SampleAck(name))

    ack(2)
    assert sent_values(motes) == [1, 12, 3, 14]
    assert ring_values(motes) == [14, 5]
    ack(2)
    assert ring_values(motes) == [14, 5], "an ACK that comes again changes nothing"
    ack(4)
    assert sent_values(motes) == [1, 12, 3, 14, 5]
    assert ring_values(motes) == []
    assert not motes.states["p"].writers[message.SampleStream(0)].wait


def test_all_messages_arrive_in_order_on_a_link_without_loss():
    motes = direct(partial(10))
    publish(motes, 1, 12, 3, 14, 5)
    motes.run(START + SECOND)
    assert motes.readings("s") == [1, 12, 3, 14, 5]


def test_a_full_ring_drops_new_samples_and_only_the_head_is_repeated():
    """AT6: no ACK ever, room for 20, 25 published: 5 dropped; message 1 again at 400, 800, 1200 ms."""
    motes = direct(FULL)
    motes.loses = lambda sender, to, what: True
    publish(motes, *range(25))
    assert ring_values(motes) == list(range(20))
    counted = motes.states["p"].counted
    assert counted["overflowed"] / counted["published"] == 0.2
    motes.run(START + 1300 * MILLISECOND)
    assert sent_values(motes) == [0, 0, 0, 0]
    assert [(at - START) // MILLISECOND for at, *_ in motes.sent(DataMessage, "p")] == [0, 400, 800, 1200]


def test_a_lost_acknowledgement_causes_one_repetition_and_no_second_delivery():
    """AT7: one delivery, one redundant reception, two ACKs; ReTx/Msg = Rd/Msg = 1."""
    motes = direct(FULL)
    motes.loses = lambda sender, to, what: (
        isinstance(what, message.SampleAck) and motes.now < START + SECOND / 3
    )
    publish(motes, 7)
    motes.run(START + 2 * SECOND)
    assert motes.readings("s") == [7]
    assert len(motes.sent(message.SampleAck)) == 2
    assert motes.states["p"].counted["retransmitted"] == 1
    assert motes.states["s"].counted["redundant"] == 1


@pytest.mark.parametrize("mode", MODES)
def test_best_effort_stores_nothing_and_is_not_acknowledged(mode):
    motes = Motes(deployment(BEST_EFFORT, mode=mode), ("p", "r", "s"))
    subscribe(motes, "s")
    motes.run(publishing(motes, range(5)) + SECOND)
    assert motes.readings("s") == list(range(5))
    assert not motes.sent(message.SampleAck)


def test_a_limit_gives_up_a_message_and_the_next_one_follows():
    motes = direct(FULL, reliable=ReliableSettings(retries=2))
    motes.loses = lambda sender, to, what: isinstance(what, DataMessage) and what.values["value"] == 1
    publish(motes, 1, 2)
    motes.run(START + 3 * SECOND)
    assert sent_values(motes) == [1, 1, 1, 2]
    assert motes.readings("s") == [2]
    assert [what.name.sequence for _, what in motes.of(request.SampleGivenUp)] == [1]


def test_repetitions_go_only_to_readers_without_an_ack():
    """BLTDDS and HyTDDS: a message is complete when every subscriber has it."""
    motes = Motes(deployment(FULL, mode="HyTDDS"), ("p", "r", "s", "t"))
    subscribe(motes, "s")
    subscribe(motes, "t")
    motes.at(
        19 * SECOND, lambda: setattr(motes, "loses", lambda a, to, m: to == "t" and motes.now < 21 * SECOND)
    )
    motes.run(publishing(motes, [1]) + 3 * SECOND)
    copies = [to for _, _, to, _ in motes.sent(DataMessage, "p")]
    assert copies == ["s", "t", "t", "t", "t"]
    assert motes.readings("s") == motes.readings("t") == [1]


@pytest.mark.parametrize("mode", MODES)
def test_each_subscriber_has_its_own_level(mode):
    """[D8] On one topic: full, partial above 10, best effort; the copy of each subscriber has its own bit."""
    motes = Motes(deployment(mode=mode), ("p", "r", "full", "part", "best"))
    subscribe(motes, "full", level=FULL)
    subscribe(motes, "part", level=partial(10))
    subscribe(motes, "best", level=BEST_EFFORT)
    motes.run(publishing(motes, [5, 15]) + 2 * SECOND)
    bits = {
        node: [d.reliable for _, _, to, d in motes.sent(DataMessage) if to == node]
        for node in ("full", "part", "best")
    }
    assert bits == {"full": [True, True], "part": [False, True], "best": [False, False]}
    assert {who for _, who, _, ack in motes.sent(message.SampleAck) if not ack.complete} == {"full", "part"}


def test_a_restarted_publisher_starts_a_new_session_that_readers_accept():
    motes = direct(FULL)
    publish(motes, 1, 2)
    motes.run(START + SECOND)
    motes.kill("p")
    motes.run(START + 2 * SECOND)
    motes.start("p")
    motes.ask("p", request.DdsAdvertiseRequest(HEAT))
    motes.ask("s", request.DdsUnsubscribeRequest("all"))
    subscribe(motes, "s")
    motes.run(START + 3 * SECOND)
    publish(motes, 3)
    motes.run(START + 4 * SECOND)
    assert motes.readings("s") == [1, 2, 3]


@pytest.mark.parametrize(
    ("terms", "message"),
    [({"ring": 0}, "hold one"), ({"rto": 0}, "above 0"), ({"retries": -1}, "None for no limit")],
)
def test_impossible_terms_are_refused(terms, message):
    with pytest.raises(UsageError, match=message):
        ReliableSettings(**terms)
