"""ARQoS: rounds, thresholds, orders, and NACKs."""

from __future__ import annotations

import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import SECOND
from holdfast.network.protocols.dds import message, request
from holdfast.network.protocols.dds.arqos import LevelAgreement, MeasuringRound, mode_to_order, thresholds
from holdfast.network.protocols.dds.deployment import MODES, AdaptiveSettings, ReliableSettings
from holdfast.network.protocols.dds.message import DataMessage
from support.motes import HEAT, MoteRadio, Motes, deployment, publishing, subscribe

TERMS = AdaptiveSettings(round=10 * SECOND, assurance=SECOND, pause=SECOND)


def test_a_round_counts_received_and_missing_packets():
    """AT16: PSNs 1, 2, 4, 5, 8: five received, three dropped; 6 in the assurance interval makes it 6/8."""
    round = MeasuringRound()
    for psn in (1, 2, 4, 5, 8):
        round.count(psn)
    assert (round.received, len(round.missing), round.pdr) == (5, 3, 0.625)
    round.closed = True
    for psn in (6, 6, 8, 9):
        round.count(psn)
    assert (round.received, round.pdr) == (6, 0.75), "once; 8 was there, 9 belongs to no round"


def test_two_thresholds_keep_the_mode_between_them():
    """AT16: 90 %, thresholds 85 and 95: PDR 0.97, 0.88, 0.80, 0.90, 0.96 from best effort."""
    lower, upper = thresholds(90, 5)
    reliable, modes = False, []
    for pdr in (0.97, 0.88, 0.80, 0.90, 0.96):
        order = mode_to_order(pdr, reliable, lower, upper)
        reliable = reliable if order is None else order
        modes.append(reliable)
    assert modes == [False, False, True, True, False]


@pytest.mark.parametrize("mode", MODES)
def test_a_receiver_that_misses_too_much_orders_reliable_mode_and_back(mode):
    """[D56, D57] The air is bad from 40 s to 70 s."""
    motes = Motes(deployment(mode=mode, adaptive=TERMS), ("p", "r", "s"))
    subscribe(motes, "s")
    motes.at(15 * SECOND, lambda: motes.ask("s", request.AssureRequest(HEAT, 90)))
    last = publishing(motes, range(300), every=SECOND // 2)
    motes.at(40 * SECOND, lambda: setattr(motes, "air", MoteRadio(3, loss=0.3)))
    motes.at(70 * SECOND, lambda: setattr(motes, "air", MoteRadio(3)))
    motes.run(last)
    orders = [order.reliable for _, to, _, order in motes.sent(message.Switch) if to == "s"]
    assert orders[0] is True
    assert orders[-1] is False
    bits = [data.reliable for _, _, to, data in motes.sent(DataMessage) if to == "s"]
    assert bits.index(True) > 20, "in good weather best effort"
    assert not any(bits[-50:]), "and again afterwards"
    assert motes.states["s"].agreements[0].measured[0][2] == 1.0


def test_a_lost_order_is_repeated_because_the_bit_is_unchanged():
    motes = Motes(deployment(mode="HyTDDS", adaptive=TERMS), ("p", "r", "s"))
    subscribe(motes, "s")
    motes.at(15 * SECOND, lambda: motes.ask("s", request.AssureRequest(HEAT, 90)))
    motes.loses = lambda a, b, m: (
        (isinstance(m, message.Switch) and motes.now < 50 * SECOND)
        or (isinstance(m, DataMessage) and m.name.sequence % 2 and not m.reliable)
    )
    motes.run(publishing(motes, range(200), every=SECOND // 2))
    assert [order.reliable for _, _, _, order in motes.sent(message.Switch)][:3] == [True, True, True]
    assert any(data.reliable for _, _, _, data in motes.sent(DataMessage))


def test_the_level_can_be_changed_while_running():
    """[D61] From best effort to all, and back to nothing."""
    motes = Motes(deployment(mode="BLTDDS", adaptive=TERMS), ("p", "s"))
    subscribe(motes, "s")
    motes.loses = lambda a, b, m: isinstance(m, DataMessage) and m.name.sequence % 3 == 0 and not m.forwarded
    motes.at(29_500_000, lambda: motes.ask("s", request.AssureRequest(HEAT, 100)))
    motes.at(39_500_000, lambda: motes.ask("s", request.AssureRequest(HEAT, 0)))
    motes.run(publishing(motes, range(1, 31)) + SECOND)
    lost = {n for n in range(1, 31) if n % 3 == 0}
    assert set(range(1, 31)) - set(motes.readings("s")) == {n for n in lost if not 11 <= n <= 20}
    assert not motes.states["p"].histories


@pytest.mark.parametrize("mode", MODES)
def test_only_missing_samples_are_repeated_at_a_hundred_percent(mode):
    """[D60] Three of 30 samples are lost once: hardly more than three repetitions, no ACK."""
    motes = Motes(deployment(mode=mode), ("p", "r", "s"))
    subscribe(motes, "s")
    motes.at(15 * SECOND, lambda: motes.ask("s", request.AssureRequest(HEAT, 100)))
    unlucky = {7, 8, 30}

    def loses(sender: str, to: str, what: object) -> bool:
        if to == "s" and isinstance(what, DataMessage) and what.name.sequence in unlucky:
            unlucky.discard(what.name.sequence)
            return True
        return False

    motes.loses = loses
    motes.run(publishing(motes, range(1, 31)) + 5 * SECOND)
    assert motes.readings("s") == list(range(1, 31))
    assert not motes.sent(message.SampleAck)
    again = motes.states["p"].counted["retransmitted"]
    assert again in (3, 4), "a heartbeat may overtake a sample that goes by the rendezvous node"


def test_a_gap_is_requested_as_soon_as_it_is_detected():
    """The request does not wait for the writer, one timeout later."""
    motes = Motes(deployment(mode="BLTDDS"), ("p", "s"))
    subscribe(motes, "s")
    motes.at(15 * SECOND, lambda: motes.ask("s", request.AssureRequest(HEAT, 100)))
    motes.loses = lambda a, b, m: isinstance(m, DataMessage) and m.name.sequence == 2 and not m.forwarded
    motes.run(publishing(motes, [1, 2, 3], every=SECOND // 10) + SECOND)
    ((at, *_),) = motes.sent(message.Nack)
    assert at < 20 * SECOND + SECOND // 4
    assert motes.readings("s") == [1, 2, 3]


def test_unconfirmed_samples_fill_the_ring_and_further_ones_are_refused():
    motes = Motes(deployment(mode="BLTDDS"), ("p", "s"))
    subscribe(motes, "s")
    motes.at(15 * SECOND, lambda: motes.ask("s", request.AssureRequest(HEAT, 100)))
    motes.loses = lambda a, b, m: 19 * SECOND < motes.now < 30 * SECOND
    motes.run(publishing(motes, range(25), every=SECOND // 10) + 10 * SECOND)
    assert motes.states["p"].counted["overflowed"] == 5
    assert motes.readings("s") == list(range(20))


def test_a_limit_gives_up_unconfirmed_samples_but_not_the_receiver():
    motes = Motes(deployment(mode="BLTDDS", reliable=ReliableSettings(retries=5)), ("p", "s"))
    subscribe(motes, "s")
    motes.at(15 * SECOND, lambda: motes.ask("s", request.AssureRequest(HEAT, 100)))
    motes.loses = lambda a, b, m: 25 * SECOND < motes.now < 35 * SECOND
    motes.run(publishing(motes, range(30)) + 20 * SECOND)
    lost = [what.name.sequence - 1 for _, what in motes.of(request.SampleGivenUp)]
    assert lost[0] == 5, "it has arrived, and nobody heard of it"
    assert motes.readings("s") == [each for each in range(30) if each not in lost[1:]]
    assert motes.states["p"].counted["given up"] == len(lost)
    assert motes.states["p"].counted["overflowed"] == 0
    assert not motes.states["p"].histories[0].sent


def test_a_receiver_deaf_for_a_while_loses_only_samples_that_were_repeated_often_enough():
    """Six heartbeats mentioned sample 5 when the radio was good again, fewer mentioned 6 to 8."""
    motes = Motes(deployment(mode="BLTDDS", reliable=ReliableSettings(retries=5)), ("p", "s"))
    subscribe(motes, "s")
    motes.at(15 * SECOND, lambda: motes.ask("s", request.AssureRequest(HEAT, 100)))
    motes.loses = lambda a, b, m: 25 * SECOND < motes.now < 28_300_000
    motes.run(publishing(motes, range(30)) + 20 * SECOND)
    assert [what.name.sequence - 1 for _, what in motes.of(request.SampleGivenUp)] == [5]
    assert motes.readings("s") == list(range(30))


@pytest.mark.parametrize("percent", [-1, 101])
def test_a_level_is_a_percentage(percent):
    motes = Motes(deployment(), ("p", "r", "s"))
    subscribe(motes, "s")
    with pytest.raises(UsageError, match="from 0"):
        motes.ask("s", request.AssureRequest(HEAT, percent))


def test_the_last_reader_ends_the_agreement_and_the_publisher_stores_nothing():
    """Even if that message is lost: the next heartbeat is answered with it."""
    motes = Motes(deployment(mode="DefTDDS"), ("p", "r", "s"))
    subscribe(motes, "s")
    motes.at(15 * SECOND, lambda: motes.ask("s", request.AssureRequest(HEAT, 100)))
    last = publishing(motes, range(20))
    motes.at(30 * SECOND + 1, lambda: setattr(motes, "loses", lambda a, b, m: motes.now < 31 * SECOND))
    motes.at(30 * SECOND + 2, lambda: motes.ask("s", request.DdsUnsubscribeRequest("all")))
    motes.run(last + 5 * SECOND)
    assert not motes.states["s"].agreements
    assert not motes.states["p"].histories
    assert motes.states["p"].counted["overflowed"] == 0


def test_a_silent_originator_is_ordered_to_reliable_mode():
    """Best effort would stay silent for ever: 20 of 300 were delivered, and no order was sent."""
    motes = Motes(deployment(mode="HyTDDS", adaptive=TERMS), ("p", "r", "s"))
    subscribe(motes, "s")
    motes.at(15 * SECOND, lambda: motes.ask("s", request.AssureRequest(HEAT, 90)))
    motes.loses = lambda a, b, m: isinstance(m, DataMessage) and not m.again and m.name.sequence > 20
    motes.run(publishing(motes, range(300), every=SECOND // 2))
    assert motes.readings("s")[-1] > 150
    orders = [order.reliable for _, _, _, order in motes.sent(message.Switch)]
    assert orders
    assert all(orders), "it stays: first tries do not come through"


def test_in_reliable_mode_first_tries_are_counted():
    """Every second first try is lost; repetitions bring all.  What counts is 0.5, so the mode stays."""
    round = MeasuringRound()
    for psn in range(1, 11):
        round.count(psn, again=psn % 2 == 0)
    assert (round.received, len(round.missing), round.pdr) == (5, 5, 0.5)
    motes = Motes(deployment(mode="HyTDDS", adaptive=TERMS), ("p", "r", "s"))
    subscribe(motes, "s")
    motes.at(15 * SECOND, lambda: motes.ask("s", request.AssureRequest(HEAT, 90)))
    motes.loses = lambda a, b, m: isinstance(m, DataMessage) and not m.again and m.name.sequence % 2
    motes.run(publishing(motes, range(300), every=SECOND // 2))
    assert [order.reliable for _, _, _, order in motes.sent(message.Switch)] == [True], "and no flapping"


def test_losses_at_the_ends_of_a_round_count():
    """The last packets of a round are missing; the next round's first packet shows it."""
    agreement = LevelAgreement(90.0, 1)
    for phase, psns in (("round", range(1, 9)), ("pause", ()), ("round", range(13, 17))):
        agreement.phase = phase
        for psn in psns:
            agreement.count(
                DataMessage(message.SampleName("p", message.SampleStream(0), 1, psn), False, {}, 0)
            )
        if phase == "round":
            list(agreement.orders(0, 5))
    assert [pdr for _, _, pdr, _ in agreement.measured] == [1.0, 0.5]


def test_counting_restarts_with_the_originator():
    agreement = LevelAgreement(90.0, 1, phase="round")
    for session, psn in ((1, 40), (1, 41), (2, 1), (2, 2), (1, 42), (2, 4)):
        agreement.count(
            DataMessage(message.SampleName("p", message.SampleStream(0), session, psn), False, {}, 0)
        )
    list(agreement.orders(0, 5))
    assert [pdr for _, _, pdr, _ in agreement.measured] == [0.75]


def test_heartbeats_are_sent_in_silence_and_when_the_history_fills():
    """At 100 % a sample every 210 ms shows itself what is missing; the timeout is 400 ms."""
    motes = Motes(deployment(), ("p", "r", "s"))
    subscribe(motes, "s")
    motes.at(15 * SECOND, lambda: motes.ask("s", request.AssureRequest(HEAT, 100)))
    last = publishing(motes, range(100), every=210_000)
    motes.run(last + 5 * SECOND)
    beats = [at for at, *_ in motes.sent(message.Heartbeat) if 25 * SECOND < at <= last]
    assert len(beats) <= 100 / (ReliableSettings().ring / 2), "once for ten samples, not once for two"
    assert motes.readings("s") == list(range(100))
    assert not any(history.sent for history in motes.states["p"].histories.values())
    after = [at for at, *_ in motes.sent(message.Heartbeat) if at > last]
    assert len(after) == 1, "and once when there is nothing more"
