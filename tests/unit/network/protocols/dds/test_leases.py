"""Which readers are waited for, and how long: leases, boot numbers, and rendezvous nodes with empty
tables."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import SECOND
from holdfast.network.protocols.dds import message, request
from holdfast.network.protocols.dds.deployment import (
    MODES,
    DiscoverySettings,
    ReliableSettings,
    RotationSettings,
)
from holdfast.network.protocols.dds.level import BEST_EFFORT, FULL
from holdfast.network.protocols.dds.message import DataMessage
from support.motes import Motes, deployment, publishing, subscribe

SHORT = DiscoverySettings(repeats=3, lease=10 * SECOND)


def motes(mode: str = "DefTDDS", nodes: tuple[str, ...] = ("p", "r", "s", "t"), **more) -> Motes:
    more = {"discovery": SHORT} | more
    return Motes(deployment(FULL, mode=mode, **more), nodes)


def accepted_values(found: Motes) -> list[int]:
    return [what.values["value"] for _, what in found.of(request.SampleAccepted)]


# A rendezvous node with an empty table.


def test_a_restarted_rendezvous_node_acknowledges_nothing_until_readers_have_returned():
    """The node once acknowledged with an empty table: 60 accepted, 20 delivered, 0 refused."""
    found = motes()
    subscribe(found, "s")
    subscribe(found, "t")
    last = publishing(found, range(60))
    found.at(40 * SECOND + 500_000, lambda: (found.kill("r"), found.start("r")))
    found.run(last + 10 * SECOND)
    assert found.readings("s") == found.readings("t") == accepted_values(found) == list(range(60))
    assert not found.of(request.SampleUnread)


def test_renewals_bring_readers_back_if_requests_for_them_are_lost():
    found = motes()
    subscribe(found, "s")
    last = publishing(found, range(60))
    found.loses = lambda sender, to, what: isinstance(what, message.Role)
    found.at(40 * SECOND + 500_000, lambda: (found.kill("r"), found.start("r")))
    found.run(last + 10 * SECOND)
    assert found.readings("s") == accepted_values(found) == list(range(60))


@pytest.mark.parametrize("lease", [None, 10 * SECOND])
def test_samples_without_a_reader_are_not_acknowledged(lease):
    found = motes(discovery=DiscoverySettings(repeats=3, lease=lease))
    found.run(publishing(found, range(5)) + SECOND)
    assert [what.name.sequence for _, what in found.of(request.SampleUnread)] == [1, 2, 3, 4, 5]
    assert found.states["p"].counted["unread"] == 5
    assert not found.states["p"].counted["retransmitted"]


def test_a_reader_that_knows_its_rendezvous_node_does_not_subscribe_more_often():
    """The calls of the first start cost no further subscriptions."""
    found = motes()
    subscribe(found, "s")
    found.run(4 * SECOND)
    assert len(found.sent(message.DdsSubscribe, "s")) == 3


# A publisher that misses the messages of the rendezvous node.


def test_a_notification_is_repeated_until_the_publisher_confirms_it():
    """HyTDDS, full reliability: 50 accepted, 0 delivered, 0 refused, as long as ten were lost."""
    found = motes("HyTDDS", discovery=DiscoverySettings(lease=None))
    found.loses = lambda sender, to, what: (
        isinstance(what, message.DdsNotification) and found.now < 15 * SECOND
    )
    subscribe(found, "s")
    found.run(publishing(found, range(50)) + SECOND)
    assert found.readings("s") == accepted_values(found) == list(range(50))
    assert not found.states["r"].unconfirmed_notices[0]
    late = [at for at, *_ in found.sent(message.DdsNotification) if at > 15 * SECOND]
    assert len(late) == 1, "and not any more once it is recognised"


def test_a_best_effort_reader_is_not_recognised():
    """[D42] As printed: a notification for each subscription, and nothing back."""
    found = Motes(deployment(BEST_EFFORT, mode="HyTDDS"), ("p", "r", "s"))
    subscribe(found, "s")
    found.run(publishing(found, [1]) + SECOND)
    assert len(found.sent(message.DdsNotification)) == len(found.sent(message.DdsSubscribe)) == 10
    assert not found.sent(message.Recognition)
    assert found.readings("s") == [1]


def test_many_publishers_are_notified_in_bursts_and_none_is_left_out():
    """A radio's queue holds sixteen frames: of 24 at once it dropped the same eight ten times."""
    many = tuple(f"p{number:02}" for number in range(24))
    found = Motes(deployment(BEST_EFFORT, mode="HyTDDS", publishers=many), (*many, "r", "s", "t"))
    subscribe(found, "s")
    subscribe(found, "t")
    found.run(20 * SECOND)
    emitted = Counter(at for at, *_ in found.sent(message.DdsNotification))
    assert max(emitted.values()) <= 16
    received = Counter(
        to for _, _, to, note in found.sent(message.DdsNotification) if note.wish.subscriber == "s"
    )
    assert set(received) == set(many)
    assert min(received.values()) >= 8


# A reader that is gone.


@pytest.mark.parametrize("mode", MODES)
def test_a_dead_reader_blocks_others_no_longer_than_its_lease(mode):
    """Without a lease 21 of 200 samples arrived at the living one."""
    found = motes(mode)
    subscribe(found, "s")
    subscribe(found, "t")
    last = publishing(found, range(200))
    found.at(40 * SECOND + 500_000, lambda: found.kill("t"))
    found.run(last + 60 * SECOND)
    assert found.readings("s") == accepted_values(found) == list(range(200))
    assert {what.subscriber for _, what in found.of(request.SubscriberLapsed)} == {"t"}
    without = motes(mode, discovery=DiscoverySettings(repeats=3, lease=None))
    subscribe(without, "s")
    subscribe(without, "t")
    last = publishing(without, range(200))
    without.at(40 * SECOND + 500_000, lambda: without.kill("t"))
    without.run(last + 60 * SECOND)
    assert len(without.readings("s")) < 30


@pytest.mark.parametrize("mode", MODES)
def test_a_subscriber_with_an_expired_lease_is_admitted_again(mode):
    """The reader is alive, but none of its messages arrive for a while."""
    found = motes(mode)
    subscribe(found, "s")
    subscribe(found, "t")
    found.loses = lambda sender, to, what: sender == "t" and 40 * SECOND < found.now < 60 * SECOND
    last = publishing(found, range(100))
    found.run(last + 20 * SECOND)
    assert found.readings("s") == accepted_values(found) == list(range(100))
    assert "t" in {what.subscriber for _, what in found.of(request.SubscriberLapsed)}
    assert found.readings("t")[-40:] == list(range(60, 100))


@pytest.mark.parametrize("mode", MODES)
def test_acknowledgements_count_as_signs_of_life(mode):
    """Subscriptions get lost for long; who acknowledges is not forgotten."""
    found = motes(mode)
    subscribe(found, "s")
    found.at(
        15 * SECOND, lambda: setattr(found, "loses", lambda a, to, m: isinstance(m, message.DdsSubscribe))
    )
    found.run(publishing(found, range(60)) + SECOND)
    assert found.readings("s") == list(range(60))
    assert not found.of(request.SubscriberLapsed)


@pytest.mark.parametrize("mode", MODES)
def test_a_limit_of_repetitions_gives_up_the_sample_and_only_the_lease_its_reader(mode):
    """With a lease the reader was given up after the first sample that it had left unanswered."""
    found = motes(
        mode, discovery=DiscoverySettings(repeats=3, lease=30 * SECOND), reliable=ReliableSettings(retries=2)
    )
    subscribe(found, "s")
    subscribe(found, "t")
    last = publishing(found, range(60), every=2 * SECOND)
    found.at(29 * SECOND + 500_000, lambda: found.kill("t"))
    found.run(last + 5 * SECOND)
    assert found.readings("s") == accepted_values(found) == list(range(60))
    given_up = [what.name.sequence - 1 for _, what in found.of(request.SampleGivenUp)]
    assert len(given_up) > 1, "sample after sample"
    assert {what.subscriber for _, what in found.of(request.SubscriberLapsed)} == {"t"}
    copies = [data.time for _, _, to, data in found.sent(DataMessage) if to == "t"]
    assert 50 * SECOND < max(copies) < 70 * SECOND, "tried until its lease is over"


@pytest.mark.parametrize("mode", MODES)
def test_a_reader_that_missed_a_given_up_sample_receives_the_next(mode):
    """The reader once had to subscribe again first, which takes a third of a lease."""
    found = motes(
        mode, discovery=DiscoverySettings(repeats=3, lease=90 * SECOND), reliable=ReliableSettings(retries=2)
    )
    subscribe(found, "s")
    deaf = lambda a, to, m: to == "s" and 30 * SECOND < found.now < 33 * SECOND  # noqa: E731
    found.at(29 * SECOND, lambda: setattr(found, "loses", deaf))
    found.run(publishing(found, range(30), every=2 * SECOND) + 5 * SECOND)
    lost = [what.name.sequence - 1 for _, what in found.of(request.SampleGivenUp)]
    assert lost
    assert found.readings("s") == [each for each in range(30) if each not in lost]
    assert not found.of(request.SubscriberLapsed)


def test_a_successor_waits_for_every_reader_of_its_predecessor():
    """EATDDS, two readers: one found the successor, which acknowledged what the other never got."""
    terms = RotationSettings(round=1000 * SECOND, sign=5 * SECOND, settle=3 * SECOND)
    found = motes("EATDDS", publishers=("p", "q"), nodes=("p", "q", "r", "s", "t"), rotation=terms)
    subscribe(found, "s")
    subscribe(found, "t")
    over: list[int] = []

    def mute(sender: str, to: str, what: object) -> bool:
        """Drop the messages of t for six seconds after the role has moved."""
        if not over and any(state.counted["taken over"] for state in found.states.values()):
            over.append(found.now)
        return bool(over) and found.now < over[0] + 6 * SECOND and sender == "t"

    found.loses = mute
    found.at(40 * SECOND + 500_000, lambda: found.kill("r"))
    found.run(publishing(found, range(90)) + 30 * SECOND)
    assert over
    assert found.readings("s") == found.readings("t") == accepted_values(found)


def test_an_impossible_lease_is_refused():
    with pytest.raises(UsageError, match="it is four times as long at least"):
        DiscoverySettings(lease=SECOND)


# Who acknowledges.


def test_end_to_end_the_reader_acknowledges_to_the_origin():
    """[D25] Chapter 4: one reader, whose ACK releases the next sample; the RN only forwards."""
    found = motes(reliable=ReliableSettings(acknowledged="end-to-end"))
    subscribe(found, "s")
    deaf = lambda a, to, m: to == "s" and found.now < 21 * SECOND  # noqa: E731
    found.at(19 * SECOND, lambda: setattr(found, "loses", deaf))
    found.run(publishing(found, range(5)) + 3 * SECOND)
    assert found.readings("s") == list(range(5))
    acks = {(sender, to) for _, sender, to, _ in found.sent(message.SampleAck)}
    assert acks == {("s", "p")}
    assert not found.states["r"].rendezvous[0].pending
