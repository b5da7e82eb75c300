"""Links over the radio: which node receives which frame, and the order of reported outcomes."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import MILLISECOND, SECOND
from holdfast.network.sim.frame import (
    ACKNOWLEDGED,
    AIRED,
    BROADCAST,
    CHANNEL_BUSY,
    DATA,
    NO_ACK,
    QUEUE_FULL,
    Frame,
)
from holdfast.network.sim.mac import Aloha, Csma, LowPowerListening, RtsCts, Tdma
from holdfast.network.sim.mac.tdma import colouring
from holdfast.network.sim.propagation import LogDistance, Measured, UnitDisk
from holdfast.network.sim.radio import CC1000, CC2420
from holdfast.network.sim.trace import Trace
from support.air import air, links, poisson

AT_ONCE = Csma(min_exponent=0, max_exponent=0)
CELL = UnitDisk(10.0)
EVERY_MAC = [
    Aloha(), Csma(), RtsCts(), Tdma(), Tdma(sleep=True),
    LowPowerListening(), LowPowerListening(wake="preamble"),
]  # fmt: skip


def name(mac) -> str:
    return (
        f"{type(mac).__name__}{getattr(mac, 'wake', '')}{' asleep' if getattr(mac, 'sleep', False) else ''}"
    )


@pytest.mark.parametrize("radio", [CC2420, CC1000], ids=lambda radio: radio.name)
@pytest.mark.parametrize("mac", EVERY_MAC, ids=name)
def test_every_mac_delivers_packets_to_a_neighbour_and_broadcasts_to_all(mac, radio):
    made = air([(0, 0), (5, 0), (0, 5)], propagation=CELL, mac=mac, radio=radio)
    made.send(1 * SECOND, 0, 1, "for one")
    made.send(3 * SECOND, 2, BROADCAST, "for all")
    made.network.run(6 * SECOND)
    came = [(node, payload) for _, node, payload in made.came]
    assert sorted(came) == [(0, "for all"), (1, "for all"), (1, "for one")]
    acknowledged = AIRED if isinstance(mac, Aloha) else ACKNOWLEDGED
    assert [outcome for _, _, outcome in made.outcomes] == [acknowledged, AIRED]
    totals = made.network.totals()
    assert (totals.packets, totals.delivered, totals.broadcasts, totals.aired) == (1, 1, 1, 1)
    assert totals.is_conserved()


def test_an_exchange_of_802_15_4_takes_the_times_of_the_standard():
    trace = Trace()
    made = air([(0, 0), (5, 0)], trace, propagation=CELL, mac=AT_ONCE)
    made.send(0, 0, 1)
    made.network.run(SECOND)
    sensed, turned, frame, ack = 128, 192, 1184, 352
    assert [at for at, _, _ in made.came] == [sensed + turned + frame]
    assert [at for at, _, _ in made.outcomes] == [sensed + turned + frame + turned + ack]
    rows = trace.frames.table().select(["time", "node", "what", "kind"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (320, 0, "transmit", "data"),
        (1504, 1, "receive", "data"),
        (1696, 1, "transmit", "ack"),
        (2048, 0, "receive", "ack"),
    ]


def test_a_neighbour_overhears_frames_for_others():
    made = air([(0, 0), (5, 0), (0, 5)], propagation=CELL, mac=Csma())
    made.send(0, 0, 1, "for one")
    made.network.run(SECOND)
    assert [(node, payload) for _, node, payload in made.overheard] == [(2, "for one")]


def test_a_packet_whose_acknowledgements_are_lost_arrives_once_and_counts_as_unacknowledged():
    made = air([(0, 0)] * 2, propagation=Measured({(0, 1): 1.0}), mac=Csma(retries=3))
    made.send(0, 0, 1)
    made.network.run(SECOND)
    assert made.receivers() == [1]
    assert [outcome for _, _, outcome in made.outcomes] == [NO_ACK]
    totals = made.network.totals()
    assert totals.transmissions == 4 + 4  # four tries, each acknowledged in vain
    assert (totals.delivered, totals.dropped) == (1, {})


def test_retries_make_a_bad_link_good():
    """Frame and acknowledgement each come through with 0.7: a try is known to succeed with 0.49."""
    sent = 400
    made = air([(0, 0)] * 2, propagation=links((0, 1), quality=0.7), mac=Csma(retries=3))
    for i in range(sent):
        made.send(i * 50 * MILLISECOND, 0, 1, i)
    made.network.run(sent * 50 * MILLISECOND)
    known = sum(outcome == ACKNOWLEDGED for _, _, outcome in made.outcomes) / sent
    assert known == pytest.approx(1 - 0.51**4, abs=0.05)
    assert len(made.came) / sent == pytest.approx(1 - 0.3**4, abs=0.03)
    assert [payload for _, _, payload in made.came] == sorted({payload for _, _, payload in made.came})


def test_a_sender_without_acknowledgements_learns_no_outcome():
    made = air([(0, 0)] * 2, propagation=links((0, 1), quality=0.5), mac=Csma(acknowledged=False))
    for i in range(100):
        made.send(i * 50 * MILLISECOND, 0, 1, i)
    made.network.run(6 * SECOND)
    assert {outcome for _, _, outcome in made.outcomes} == {AIRED}
    totals = made.network.totals()
    assert totals.delivered == len(made.came)
    assert totals.dropped == {"not received": 100 - len(made.came)}
    assert 30 < len(made.came) < 70


def test_a_full_queue_drops_packets_and_reports_it():
    made = air([(0, 0)] * 2, propagation=CELL, mac=Csma(queue=5))
    for i in range(10):
        made.send(0, 0, 1, i)
    made.network.run(SECOND)
    assert [payload for _, _, payload in made.came] == [0, 1, 2, 3, 4, 5]  # one on its way, five waiting
    assert [outcome for _, _, outcome in made.outcomes].count(QUEUE_FULL) == 4
    assert made.network.nodes[0].link.most_queued == 5


def test_the_outcome_is_reported_later_and_never_during_send():
    made = air([(0, 0)] * 2, propagation=CELL, mac=Csma(queue=1))
    link, emitted = made.network.nodes[0].link, []
    for _ in range(5):
        link.send(1, "x", 1, done=emitted.append)
    assert emitted == []
    made.network.run(0)
    assert emitted == [QUEUE_FULL] * 3


def test_a_channel_that_is_never_clear_is_given_up_after_five_checks():
    made = air([(0, 0)] * 3, propagation=CELL, mac=AT_ONCE)
    jam = Frame(DATA, 2, BROADCAST, 0, 20, 31, "jam", wakeup=10 * SECOND)
    made.network.nodes[2].radio.transmit(jam)
    made.send(SECOND, 0, 1)
    made.network.run(2 * SECOND)
    assert made.outcomes == [(SECOND + 5 * 128, 0, CHANNEL_BUSY)]
    assert made.network.totals().dropped == {CHANNEL_BUSY: 1}


def test_a_payload_that_no_frame_holds_is_refused_with_a_hint():
    made = air([(0, 0)] * 2, propagation=CELL)
    with pytest.raises(UsageError, match="node 0 is to send 117 bytes in one frame; cc2420 takes 116"):
        made.network.nodes[0].link.send(1, "x", 117)


# RTS and CTS.


def test_rts_cts_data_ack_follow_one_another():
    trace = Trace()
    made = air([(0, 0), (5, 0)], trace, propagation=CELL, mac=RtsCts())
    made.send(0, 0, 1)
    made.network.run(SECOND)
    frames = trace.frames.table().filter(pc.field("what") == "transmit")
    assert frames["kind"].to_pylist() == ["rts", "cts", "data", "ack"]
    starts, lengths = frames["time"].to_pylist(), frames["airtime"].to_pylist()
    gaps = [b - a - length for a, b, length in zip(starts, starts[1:], lengths, strict=False)]
    assert gaps == [CC2420.turnaround] * 3


def test_a_node_that_receives_a_cts_is_silent_until_the_acknowledgement_has_passed():
    """1 - 0 - 2: node 2 receives only the CTS of 0, and wants to send in the middle of the data of 1."""
    trace = Trace()
    made = air([(0, 0)] * 3, trace, propagation=links((0, 1), (0, 2)), mac=RtsCts(window_min=0))
    made.send(0, 1, 0, "long", size=100)
    made.send(3 * MILLISECOND, 2, 0, "waits")
    made.network.run(SECOND)
    assert [payload for _, _, payload in made.came] == ["long", "waits"]
    assert "collision" not in trace.frames.table()["what"].to_pylist()
    kinds = trace.frames.table().filter(pc.field("what") == "transmit")["kind"].to_pylist()
    assert kinds == ["rts", "cts", "data", "ack"] * 2


def test_a_node_that_never_answers_is_given_up_after_seven_rts():
    made = air([(0, 0)] * 2, propagation=Measured({}), mac=RtsCts())
    made.send(0, 0, 1)
    made.network.run(100 * SECOND)
    assert [outcome for _, _, outcome in made.outcomes] == [NO_ACK]
    assert made.network.totals().transmissions == 7


# Low-power listening.


@pytest.mark.parametrize("wake", ["strobes", "preamble"])
def test_sleeping_neighbours_receive_everything_within_an_interval(wake):
    interval = 200 * MILLISECOND
    made = air([(0, 0)] * 4, propagation=CELL, mac=LowPowerListening(interval=interval, wake=wake))
    for i in range(20):
        made.send((i + 1) * SECOND, 0, BROADCAST if i % 2 else 1, i)
    made.network.run(25 * SECOND)
    assert len(made.came) == 10 + 10 * 3
    worst = max(at - (payload + 1) * SECOND for at, _, payload in made.came)
    assert interval / 2 < worst < interval + 20 * MILLISECOND
    for node in made.network.nodes[2:]:
        reading = node.energy.read(made.network.now)
        assert reading.radio["listen"] + reading.radio["receive"] < 0.15 * 25 * 59.1e-3


def test_strobes_stop_when_they_are_acknowledged():
    mac = LowPowerListening(interval=SECOND, linger=0)
    made = air([(0, 0)] * 2, propagation=CELL, mac=mac)
    for i in range(30):
        made.send(i * 2_033_333, 0, 1, i)
    made.network.run(61 * SECOND)
    assert len(made.came) == 30
    sent = made.network.nodes[0].energy.read(made.network.now).radio["transmit"] / (3 * 17.4e-3)
    share = 1184 / (1184 + 864 + 192)  # of the time that is spent strobing
    assert sent / 30 == pytest.approx(0.5 * share, rel=0.1)  # half an interval on average


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LowPowerListening(interval=0), "interval is 0 µs"),
        (lambda: air([(0, 0)], mac=LowPowerListening(interval=1000)), "1000 µs is too short for cc2420"),
        (lambda: Csma(min_exponent=6), "exponents from 6 to 5"),
        (lambda: RtsCts(window_min=31, window_max=7), "windows from 31 to 7"),
        (lambda: Tdma(guard=-1), "guard is -1; it must be 0 at least"),
        (lambda: Tdma(slots=(0, -1)), "slots are numbered from 0"),
        (lambda: Csma(queue=0), "queue is 0; it must be 1 at least"),
        (lambda: air([(0, 0)], mac=Tdma(slot=100)), "a slot of 100 µs is too short"),
        (lambda: air([(0, 0)] * 2, mac=Tdma(slots=(0,))), "1 slots for 2 nodes"),
    ],
)
def test_impossible_parameters_are_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()


# Slots.

PLACES = [(12.0 * (i % 5), 12.0 * (i // 5)) for i in range(25)]


def totals_under_load(mac, **setup):
    made = air(PLACES, propagation=UnitDisk(18.0), mac=mac, **setup)
    for sender in range(25):
        poisson(made.network, [sender], BROADCAST, 50, 400 * MILLISECOND, sender)
    made.network.run(20 * SECOND)
    return made.network.totals()


@pytest.mark.parametrize("sleep", [False, True])
def test_neighbours_with_separate_slots_never_disturb_each_other(sleep):
    totals = totals_under_load(Tdma(sleep=sleep))
    assert totals.aired > 1000
    assert totals.lost == {}
    assert totals_under_load(Csma()).lost["collision"] > 100


def test_clocks_that_drift_beyond_the_guard_time_spoil_the_slots():
    drift = {node: 300.0 * (-1) ** node for node in range(25)}  # 6 ms in 10 s
    assert totals_under_load(Tdma(), drift_ppm=drift).lost.get("collision", 0) > 20


def test_nodes_without_a_common_neighbour_share_slots():
    made = air(PLACES, propagation=UnitDisk(18.0))
    slots = colouring(made.network.receivers())
    assert max(slots) + 1 < 16
    for node, near in made.network.receivers().items():
        among = [slots[node], *(slots[other] for other in near)]
        assert len(set(among)) == len(among)


def test_hidden_and_shadowed_links_of_log_distance_are_slotted():
    made = air(PLACES, propagation=LogDistance(3.5, shadowing_db=6, asymmetry_db=3), mac=Tdma())
    made.send(0, 0, 1)
    made.network.run(SECOND)
    assert made.network.totals().is_conserved()


def test_a_busy_channel_is_tried_again_after_the_short_back_off_of_tinyos():
    """The first wait is the standard's; after that anything from 0.3 to 2.5 ms, not ever longer."""
    mac = Csma(min_exponent=0, max_exponent=8, backoffs=50, acknowledged=False, congestion=(300, 2_500))
    made = air([(0, 0), (5, 0), (0, 5)], propagation=CELL, mac=mac, radio=CC1000)
    made.send(0, 0, 1, "long", size=200)
    made.send(5 * MILLISECOND, 2, 1, "next")
    made.network.run(SECOND)
    (ended, _, _), (came, _, _) = made.came
    frame = CC1000.airtime(20 + 11)
    assert 0 < came - ended <= 2_500 + 2 * CC1000.sensing + CC1000.turnaround + frame
    with pytest.raises(UsageError, match="0 <= shortest <= longest"):
        Csma(congestion=(5, 3))


@pytest.mark.parametrize("mac", EVERY_MAC, ids=name)
def test_processor_time_delays_frames_if_configured(mac):
    """Contention begins after 1.5 ms, and the frame is handed up 1.5 ms after it has come."""

    def came(delays: bool) -> list[tuple[int, str]]:
        made = air([(0, 0), (5, 0)], propagation=CELL, mac=mac, delays=delays, seed=4)
        made.send(SECOND, 0, 1, "one")
        made.network.run(3 * SECOND)
        assert made.network.totals().is_conserved()
        return [(at, payload) for at, _, payload in made.came]

    (at_once, _), (later, _) = came(False)[0], came(True)[0]
    if isinstance(mac, Aloha | Csma | RtsCts):
        assert later - at_once == 3 * MILLISECOND
    else:
        assert later > at_once  # slots and wake-ups are when they are


def test_frames_wait_for_a_processor_that_is_busy():
    mac = Csma(min_exponent=0, max_exponent=0, backoffs=100, acknowledged=False)
    made = air([(0, 0), (5, 0), (0, 5)], propagation=CELL, mac=mac, delays=True)
    made.send(0, 1, 0, "first", size=2)
    made.send(500, 2, 0, "second", size=2)
    made.network.run(SECOND)
    first, second = (at for at, node, _ in made.came if node == 0)
    assert second - first == 1_500, "though it came sooner after the first"
    made.send(SECOND, 1, 0, "lost")
    made.network.at(SECOND + 4_000, lambda: made.network.kill(0))
    made.network.run(2 * SECOND)
    assert "lost" not in [payload for _, _, payload in made.came], "it was being worked on"
