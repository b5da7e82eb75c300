"""The simulator against what networking engineers can compute without one.

Seeds are fixed; a tolerance is what chance allows (four standard errors) or a stated part of the formula.
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, log10, sqrt
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from holdfast.model.instant import MILLISECOND, SECOND
from holdfast.network.sim.energy import Rest
from holdfast.network.sim.frame import BROADCAST, DATA, Frame
from holdfast.network.sim.mac import Aloha, Csma, LowPowerListening, Mac, RtsCts
from holdfast.network.sim.mac.station import DATA_OVERHEAD
from holdfast.network.sim.network import Totals
from holdfast.network.sim.platforms import MICAZ, ProcessingTimes
from holdfast.network.sim.propagation import LogDistance, Measured, UnitDisk, free_space_1m_db
from holdfast.network.sim.radio import CC2420, CC2420_TOSSIM, Radio, oqpsk
from holdfast.network.sim.trace import Trace, integrate
from support.air import air, links, poisson

SIZE = 20
FRAME = CC2420.airtime(SIZE + DATA_OVERHEAD)
SENSE_ONCE = Csma(min_exponent=0, max_exponent=0, backoffs=0, acknowledged=False)


def within_chance(share: float, expected: float, trials: int) -> bool:
    return abs(share - expected) <= 4 * sqrt(expected * (1 - expected) / trials)


def soak_point(load: float) -> Any:
    """A point of a curve whose ends are tried always; this one in ``script/soak``."""
    return pytest.param(load, marks=pytest.mark.soak)


# Throughput.


@pytest.mark.parametrize("load", [0.1, soak_point(0.25), 0.5, soak_point(1.0), 2.0])
def test_pure_aloha_delivers_the_share_e_to_the_minus_2g(load):
    """Abramson 1970: ``S = G·exp(-2G)``, whose largest value is 0.18 at G = 0.5."""
    senders = range(1, 65)
    network = air([(0, 0)] * 65, propagation=Measured({(i, 0): 1.0 for i in senders}), mac=Aloha()).network
    poisson(network, senders, 0, SIZE, FRAME / load)
    network.run(15_000 * FRAME)
    totals = network.totals()
    offered = totals.packets / 15_000
    assert offered == pytest.approx(load, rel=0.05)
    assert within_chance(totals.delivered / totals.packets, exp(-2 * offered), totals.packets)


@pytest.mark.parametrize("load", [0.5, soak_point(1.0), soak_point(2.0), 5.0])
def test_carrier_sensing_delivers_what_kleinrock_and_tobagi_found(load):
    """Non-persistent CSMA, 1975: ``S = G·exp(-aG) / (G·(1 + 2a) + exp(-aG))``.

    Their ``a`` is the time for which others do not detect a new frame: here the turnaround.
    """
    frames = 10_000
    network = air([(0, 0)] * 41, propagation=UnitDisk(1.0), mac=SENSE_ONCE).network
    poisson(network, range(1, 41), 0, SIZE, FRAME / load)
    network.run(int(frames / load * FRAME))
    totals = network.totals()
    g, a = totals.packets * FRAME / totals.time, CC2420.turnaround / FRAME
    formula = g * exp(-a * g) / (g * (1 + 2 * a) + exp(-a * g))
    throughput = totals.delivered * FRAME / totals.time
    assert throughput == pytest.approx(formula, rel=0.05)
    assert throughput > 1.5 * g * exp(-2 * g), "sensing must beat ALOHA"


# Hidden terminals.


def hidden_senders(mac: Mac, load: float, size: int = 100) -> tuple[Totals, float]:
    """Two senders that share only the node between them; also the share of data frames that it lost."""
    trace = Trace()
    network = air([(0, 0)] * 3, trace, propagation=links((0, 1), (0, 2)), mac=mac).network
    for sender in (1, 2):
        poisson(network, [sender], 0, size, CC2420.airtime(size + DATA_OVERHEAD) / load, sender)
    network.run(100 * SECOND)
    frames = trace.frames.table()
    data = frames.filter((pc.field("kind") == DATA) & (pc.field("node") == 0))
    got = pc.sum(pc.equal(data["what"], "receive")).as_py()
    return network.totals(), 1 - got / len(data)


@pytest.mark.parametrize("load", [0.05, 0.1, 0.2])
def test_carrier_sensing_does_not_help_against_a_hidden_sender(load):
    """A frame gets through if the other is silent when it starts and stays so: ``(1 - ρ)·exp(-ρ)``."""
    totals, lost = hidden_senders(replace(SENSE_ONCE, queue=1000), load)
    assert 1 - lost == pytest.approx((1 - load) * exp(-load), rel=0.03)
    assert totals.delivered / totals.packets == pytest.approx(1 - lost, rel=1e-3)


def test_rts_and_cts_keep_hidden_senders_from_destroying_data():
    _, without = hidden_senders(RtsCts(threshold=1000), 0.1)
    totals, with_rts = hidden_senders(RtsCts(), 0.1)
    assert without > 0.15
    assert with_rts < 0.02
    assert totals.delivered / totals.packets > 0.999
    assert totals.is_conserved()


# Signal, noise, interference.


def test_free_space_range_follows_friis():
    """Half of the frames arrive where the path loss leaves the SNR that loses half of them."""
    metres = [1.0, *range(500, 820, 20)]
    made = air([(0, 0), *((m, 0) for m in metres)], propagation=LogDistance(2.0), mac=Aloha())
    frames = 1500
    for i in range(frames):
        made.send(i * 10 * MILLISECOND, 0, BROADCAST, size=SIZE)
    made.network.run(frames * 20 * MILLISECOND)
    counts = np.bincount(made.receivers(), minlength=len(metres) + 1)[1:]
    bits = 8 * (CC2420.header + SIZE + DATA_OVERHEAD)
    for share, m in zip(counts / frames, metres, strict=True):
        snr_db = -free_space_1m_db(CC2420.frequency_hz) - 20 * log10(m) - CC2420.noise_dbm
        right = (
            float(1 - oqpsk(np.array(10 ** (snr_db / 10)))) ** bits if snr_db > CC2420.synchronise_db else 0.0
        )
        assert abs(share - right) <= 4 * sqrt(right * (1 - right) / frames) + 0.02, f"at {m} m"
    half = np.interp(-0.5, -counts[1:] / frames, metres[1:])
    snr = np.arange(-3, 3, 0.001)
    snr_half = snr[np.argmin(np.abs((1 - oqpsk(10 ** (snr / 10))) ** bits - 0.5))]
    friis = 10 ** ((-free_space_1m_db(CC2420.frequency_hz) - CC2420.noise_dbm - snr_half) / 20)
    assert half == pytest.approx(friis, rel=0.01)
    assert 600 < friis < 750


AS_NOISE = replace(CC2420, co_channel_db=None)
"""A receiver for which another frame is no worse than noise of the same power."""


def overlapping(
    near: float, far: float, delay: int, frames: int = 1500, radio: Radio = CC2420
) -> tuple[float, float]:
    """How many of the frames of two senders at these distances arrive if the second starts later by that."""
    made = air([(0, 0), (near, 0), (0, far)], propagation=LogDistance(2.0), mac=Aloha(), radio=radio)
    network = made.network

    def collide(_: None) -> None:
        for node, wait in ((1, 0), (2, delay)):
            frame = Frame(DATA, node, BROADCAST, network.now, SIZE, SIZE + DATA_OVERHEAD, "")
            network.clock.after(wait, network.nodes[node].radio.transmit, frame)
        network.clock.after(10 * MILLISECOND, collide)

    came = {1: 0, 2: 0}

    class Count:
        def on_frame(self, frame: Frame) -> None:
            came[frame.source] += 1

        def on_frame_lost(self) -> None: ...
        def on_transmitted(self, frame: Frame) -> None: ...

    for node in network.nodes:
        node.radio.upper = (
            Count() if node.id == 0 else type("Mute", (Count,), {"received": lambda *_: None})()
        )
    network.clock.after(1, collide)
    network.run(frames * 10 * MILLISECOND)
    return came[1] / frames, came[2] / frames


def chance(sinr_db: float, bits: float) -> float:
    return float(1 - oqpsk(np.array(10 ** (sinr_db / 10)))) ** bits


BITS = 8 * (CC2420.header + SIZE + DATA_OVERHEAD)
MINUS_1_DB = 10 ** (1 / 20)  # so much further away is 1 dB weaker


@pytest.mark.parametrize("part", [1.0, 0.5, 0.25])
def test_bit_errors_come_from_the_part_of_a_frame_that_is_disturbed(part):
    """The disturber is 1 dB stronger and starts when the frame is synchronised, or later."""
    payload = FRAME - CC2420.synchronisation
    late = CC2420.synchronisation + round((1 - part) * payload)
    got, other = overlapping(30 * MINUS_1_DB, 30, late, radio=AS_NOISE)
    assert abs(got - chance(-1.0, BITS * part)) < 0.04
    assert other == 0.0


def test_the_stronger_of_two_frames_is_captured_if_it_comes_in_time():
    first_is_stronger = overlapping(20, 40, 0)
    second_is_stronger_in_the_preamble = overlapping(40, 20, CC2420.synchronisation - 1)
    second_is_stronger_too_late = overlapping(40, 20, CC2420.synchronisation)
    assert first_is_stronger == (1.0, 0.0)
    assert second_is_stronger_in_the_preamble == (0.0, 1.0)
    assert second_is_stronger_too_late == (0.0, 0.0)


def test_two_frames_of_equal_strength_destroy_each_other():
    """Frames were once lost while another frame counted as noise: 96 of 100 first ones came through."""
    assert overlapping(30, 30, 0, frames=400) == (0.0, 0.0)
    first, second = overlapping(30, 30, 0, frames=400, radio=AS_NOISE)
    assert within_chance(first, chance(0.0, BITS), 400)
    assert second == 0.0


@pytest.mark.parametrize("louder_db", [2.5, 3.5])
def test_a_frame_survives_another_that_is_3_db_weaker(louder_db):
    """CC2420's co-channel rejection (SWRS041C)."""
    got, _ = overlapping(30, 30 * 10 ** (louder_db / 20), 0, frames=100)
    assert got == (1.0 if louder_db > 3 else 0.0)


@pytest.mark.parametrize(
    ("louder_db", "least", "most"), [(0, 0, 0), (3, 0, 0), (4.5, 0.2, 0.6), (7, 0.99, 1)]
)
def test_frames_less_than_3_db_stronger_are_lost_by_the_curve_of_tossim(louder_db, least, most):
    got, _ = overlapping(30, 30 * 10 ** (louder_db / 20), 0, frames=400, radio=CC2420_TOSSIM)
    assert least <= got <= most


def test_simultaneous_frames_of_two_hidden_nodes_are_lost():
    """Before the change one frame of each of 400 pairs came through in 350 cases."""
    made = air([(0, 0), (60, 0), (-60, 0)], propagation=LogDistance(3.2), mac=SENSE_ONCE)
    assert 2 not in {h.node for h in made.network.receptions(1) if h.decodable}
    for i in range(400):
        made.send(i * 10 * MILLISECOND, 1, 0, "left")
        made.send(i * 10 * MILLISECOND, 2, 0, "right")
    made.network.run(5 * SECOND)
    assert made.came == []
    assert made.network.totals().lost == {"collision": 400, "busy": 400}


def test_links_lose_the_share_that_the_seed_drew_for_them():
    """The drawn value depends on the seed and the link alone."""
    model = LogDistance(2.0, quality=(0.5, 0.9))
    made = air([(0, 0), (10, 0), (0, 10)], propagation=model, mac=Aloha(), seed=3)
    for i in range(2000):
        made.send(i * 10 * MILLISECOND, 0, BROADCAST, size=SIZE)
    made.network.run(21 * SECOND)
    counts = np.bincount(made.receivers(), minlength=3)[1:]
    qualities = [h.quality for h in made.network.receptions(0)]
    assert all(0.5 <= quality <= 0.9 for quality in qualities)
    assert len(set(qualities)) == 2
    assert all(within_chance(c / 2000, q, 2000) for c, q in zip(counts, qualities, strict=True))


# Energy.

NO_WORK = replace(MICAZ, work=ProcessingTimes(send=0, receive=0, timer=0))


@pytest.mark.parametrize("wake", ["strobes", "preamble"])
@pytest.mark.parametrize("interval_ms", [50, 200, 1000])
def test_idle_low_power_listening_costs_its_duty_cycle(wake, interval_ms):
    """``P = (t_check·P_listen + (T - t_check)·P_sleep) / T``"""
    interval, hours = interval_ms * MILLISECOND, 1000 * SECOND
    mac = LowPowerListening(interval=interval, wake=wake)
    network = air([(0, 0)] * 5, propagation=UnitDisk(1.0), mac=mac, platform=NO_WORK).network
    network.run(hours)
    check = network.nodes[0].link.check
    listen, sleep = 3 * 19.7e-3, 3 * 0.001e-3
    expected = (check * listen + (interval - check) * sleep) / interval * hours / SECOND
    for node in network.nodes:
        assert node.energy.read(hours).radio_joules == pytest.approx(expected, rel=2e-3)
        assert network.nodes[0].energy.read(hours).radio["listen"] / listen * SECOND == pytest.approx(
            hours * check / interval, rel=2e-3
        )


def test_low_power_listening_costs_a_sender_one_interval_and_a_receiver_half_an_interval():
    """B-MAC: each packet is a preamble as long as the interval; a receiver wakes in it at random."""
    interval, packets = 100 * MILLISECOND, 400
    mac = LowPowerListening(interval=interval, wake="preamble", linger=0, check=1000)
    made = air([(0, 0)] * 2, propagation=UnitDisk(1.0), mac=mac, platform=NO_WORK)
    for i in range(packets):
        made.send(i * 987_654, 0, 1, i, SIZE)
    made.network.run(packets * 987_654)
    assert len(made.came) == packets
    sender, receiver = (node.energy.read(made.network.now).radio for node in made.network.nodes)
    transmitting = sender["transmit"] / (3 * 17.4e-3) / packets * SECOND
    receiving = receiver["receive"] / (3 * 19.7e-3) / packets * SECOND
    assert transmitting == pytest.approx(interval + 1000 + FRAME, rel=1e-9)
    assert receiving == pytest.approx(interval / 2 + 1000 + FRAME, rel=0.05)


@pytest.mark.parametrize(
    "mac",
    [Aloha(), Csma(), RtsCts(), LowPowerListening(), LowPowerListening(wake="preamble")],
    ids=lambda mac: type(mac).__name__,
)
def test_running_totals_equal_those_computed_from_the_trace(mac):
    trace = Trace()
    places = [(20.0 * (i % 4), 20.0 * (i // 4)) for i in range(12)]
    network = air(
        places, trace, propagation=LogDistance(3.5, shadowing_db=4), mac=mac, rest=Rest("idle")
    ).network
    poisson(network, range(12), 5, SIZE, 0.1 * SECOND)
    network.at(3 * SECOND, lambda: network.kill(2))
    network.at(6 * SECOND, lambda: network.restart(2))
    network.run(10 * SECOND)
    found = integrate(trace.states.table(), network.draw, network.now)
    for node in network.nodes:
        reading = node.energy.read(network.now)
        assert found[node.id, "radio"] == pytest.approx(reading.radio_joules, rel=1e-12)
        assert found[node.id, "mcu"] == pytest.approx(reading.mcu_joules, rel=1e-9)


# Delay.


@pytest.mark.parametrize("busy", [0.3, 0.6])
def test_a_lone_sender_is_a_queue_with_poisson_arrivals_and_equal_service_times(busy):
    """M/D/1 (Pollaczek-Khinchine): mean time in the system ``D + ρD / (2(1 - ρ))``."""
    service = CC2420.turnaround + FRAME
    made = air([(0, 0)] * 2, propagation=links((0, 1)), mac=Aloha(queue=10_000))
    poisson(made.network, [1], 0, SIZE, service / busy)
    made.network.run(int(25_000 * service / busy))
    delays = np.array([at - sent for at, _, sent in made.came])
    assert len(delays) == pytest.approx(25_000, rel=0.02)
    assert delays.min() == service
    assert delays.mean() == pytest.approx(service + busy * service / (2 * (1 - busy)), rel=0.03)
