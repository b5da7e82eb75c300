"""A whole network: the same run again, failures in the middle, batteries, energy by cause."""

from __future__ import annotations

from math import log

import pytest

from holdfast.errors import UsageError
from holdfast.model.instant import MILLISECOND, SECOND
from holdfast.network.sim.energy import Rest
from holdfast.network.sim.frame import BROADCAST, DATA, NO_ACK, Frame
from holdfast.network.sim.mac import Aloha, Csma, LowPowerListening
from holdfast.network.sim.network import Network, Setup
from holdfast.network.sim.node import Node
from holdfast.network.sim.platforms import TELOSB
from holdfast.network.sim.propagation import LogDistance, Measured, UnitDisk
from holdfast.network.sim.radio import CC2420
from holdfast.network.sim.trace import Trace
from support.air import Air, air, links, poisson

CELL = UnitDisk(10.0)
GRID = [(20.0 * (i % 5), 20.0 * (i // 5)) for i in range(25)]


def busy(seed: int = 1, trace: Trace | None = None, positions=GRID, **setup) -> Air:
    setup = {"propagation": LogDistance(3.5, shadowing_db=3), "mac": Csma(), "seed": seed} | setup
    made = air(positions, trace, **setup)
    for node in range(len(positions)):
        poisson(made.network, [node], BROADCAST if node % 4 else (node + 1) % 25, 20, SECOND // 2, node)
    return made


def test_equal_seeds_give_bit_for_bit_equal_runs():
    def run(seed):
        trace = Trace()
        made = busy(seed, trace)
        made.network.run(5 * SECOND)
        return trace.tables(), made.network.totals(), made.network.by_cause()

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_interrupting_and_reading_a_run_does_not_change_it():
    def run(stops):
        made = busy()
        for stop in stops:
            made.network.run(stop)
            (
                made.network.totals(),
                made.network.by_cause(),
                [n.energy.read(made.network.now) for n in made.network.nodes],
            )
        return made.came, made.network.totals(), made.network.by_cause()

    assert run([5 * SECOND]) == run([1, 777_777, 1_234_567, 4 * SECOND, 5 * SECOND])


def test_tracing_does_not_change_a_run():
    with_trace, without = busy(trace=Trace()), busy()
    for made in (with_trace, without):
        made.network.run(3 * SECOND)
    assert with_trace.came == without.came
    assert with_trace.network.totals() == without.network.totals()


def test_each_node_draws_its_own_random_numbers():
    """Two pairs far from one another: what one pair does leaves the other's run as it is."""

    def run(other_sends):
        made = air([(0, 0), (5, 0), (1000, 0), (1005, 0)], propagation=CELL, mac=Csma())
        for i in range(20):
            made.send(i * 100 * MILLISECOND, 0, 1, i)
            if other_sends:
                made.send(i * 100 * MILLISECOND, 2, 3, i)
        made.network.run(3 * SECOND)
        return [entry for entry in made.came if entry[1] == 1]

    assert run(True) == run(False)


# Failures.


def test_a_frame_of_a_node_that_dies_while_sending_is_not_received():
    made = air([(0, 0)] * 2, propagation=CELL, mac=Aloha())
    made.send(0, 0, 1)
    made.network.at(500, lambda: made.network.kill(0))
    made.network.run(SECOND)
    totals = made.network.totals()
    assert made.came == []
    assert totals.lost == {"cut short": 1}
    assert totals.dropped == {"node down": 1}
    assert totals.is_conserved()


def test_a_frame_to_a_node_that_dies_while_receiving_is_lost():
    made = air([(0, 0)] * 2, propagation=CELL, mac=Csma(min_exponent=0, max_exponent=0, retries=1))
    made.send(0, 0, 1)
    made.network.at(1000, lambda: made.network.kill(1))  # the frame is on the air from 320 to 1504 µs
    made.network.run(SECOND)
    assert made.came == []
    assert [outcome for _, _, outcome in made.outcomes] == [NO_ACK]
    assert made.network.totals().lost == {"cut short": 1, "dead": 1}
    assert made.network.totals().is_conserved()


def test_a_restarted_node_has_lost_its_state_and_works():
    booted: list[tuple[int, int]] = []
    came = []
    network = Network(Setup(positions=[(0, 0)] * 2, propagation=CELL))

    def boot(node: Node) -> None:
        booted.append((network.now, node.id))
        node.link.listen(lambda frame: came.append((network.now, frame.payload)))
        if node.id == 0:
            node.after(SECOND, lambda _: node.link.send(1, f"boot {node.boots}", 20))
            node.after(5 * SECOND, lambda _: pytest.fail("a timer of a former life"))

    network.boot(boot)
    network.at(2 * SECOND, lambda: network.kill(0))
    network.at(3 * SECOND, lambda: network.restart(0))
    network.at(3 * SECOND, lambda: network.restart(1))  # is up: nothing happens
    network.at(6 * SECOND, lambda: network.kill(0))
    network.run(10 * SECOND)
    assert booted == [(0, 0), (0, 1), (3 * SECOND, 0)]
    assert [payload for _, payload in came] == ["boot 1", "boot 2"]
    assert network.nodes[0].energy.joules(10 * SECOND) < network.nodes[1].energy.joules(10 * SECOND) * 0.55


def test_a_cut_link_delivers_nothing_until_it_is_mended():
    made = air([(0, 0)] * 3, propagation=CELL, mac=Csma())
    network = made.network
    network.at(1 * SECOND, lambda: network.cut(0, 1))
    network.at(3 * SECOND, lambda: network.mend(0, 1))
    for i in range(4):
        made.send(i * SECOND + 500_000, 0, BROADCAST, i)
    network.run(5 * SECOND)
    assert [payload for _, node, payload in made.came if node == 1] == [0, 3]
    assert [payload for _, node, payload in made.came if node == 2] == [0, 1, 2, 3]


def test_a_link_can_be_cut_in_one_direction():
    made = air([(0, 0)] * 2, propagation=CELL, mac=Csma())
    made.network.cut(0, 1, both=False)
    made.send(0, 0, BROADCAST, "not heard")
    made.send(SECOND, 1, BROADCAST, "heard")
    made.network.run(2 * SECOND)
    assert [(node, payload) for _, node, payload in made.came] == [(0, "heard")]


def test_a_cut_in_the_middle_of_a_frame_lets_that_frame_pass():
    made = air([(0, 0)] * 2, propagation=CELL, mac=Aloha())
    made.send(0, 0, 1)
    made.network.at(700, lambda: made.network.cut(0, 1))
    made.network.run(SECOND)
    assert made.receivers() == [1]
    assert made.network.totals().is_conserved()


def test_a_partition_separates_groups_until_it_heals():
    made = air([(0, 0)] * 5, propagation=CELL, mac=Csma())
    made.network.partition([0, 1], [2])
    made.send(0, 0, BROADCAST, "apart")
    made.send(SECOND, 3, BROADCAST, "the rest")
    made.network.at(2 * SECOND, made.network.heal)
    made.send(3 * SECOND, 0, BROADCAST, "together")
    made.network.run(4 * SECOND)
    assert sorted((p, node) for _, node, p in made.came) == [
        ("apart", 1), ("the rest", 4), ("together", 1), ("together", 2), ("together", 3), ("together", 4),
    ]  # fmt: skip


def test_timers_follow_the_clock_of_their_node():
    fired = {}
    network = Network(Setup(positions=[(0, 0)] * 3, propagation=CELL, drift_ppm={1: 50.0}))
    network.boot(
        lambda node: node.after(100 * SECOND, lambda _: fired.update({node.id: network.now})) and None
    )
    network.at(50 * SECOND, lambda: network.drift(2, -50.0))
    network.run(200 * SECOND)
    assert fired[0] == 100 * SECOND
    assert fired[1] == pytest.approx(100 * SECOND / 1.00005, abs=2)
    assert network.nodes[1].now == 200_010_000
    assert network.nodes[2].now == 200 * SECOND - 7500


def test_a_node_may_be_switched_off_by_a_reception_at_the_same_time():
    network = Network(Setup(positions=[(0, 0)] * 4, propagation=CELL, mac=Csma()))
    got = []

    def boot(node: Node) -> None:
        def receive(frame: Frame) -> None:
            got.append(node.id)
            for other in (0, 2):
                network.kill(other)

        node.link.listen(receive)

    network.boot(boot)
    network.at(0, lambda: network.nodes[0].link.send(BROADCAST, "off", 20))
    network.run(SECOND)
    assert got == [1, 3]
    assert network.totals().is_conserved()


def test_of_two_overlapping_measured_signals_the_one_of_twice_the_quality_survives():
    """Node 0 receives 1 perfectly, 2 half as well and 3 nearly as well as 1."""
    quality = {(1, 0): 1.0, (2, 0): 0.4, (3, 0): 0.9}

    def both(first, second, frames=200):
        made = air([(0, 0)] * 4, propagation=Measured(quality), mac=Aloha())
        for i in range(frames):
            made.send(i * 10 * MILLISECOND, first, BROADCAST, first)
            made.send(i * 10 * MILLISECOND + 100, second, BROADCAST, second)
        made.network.run(frames * 10 * MILLISECOND)
        senders = [payload for _, _, payload in made.came]
        return senders.count(first) / frames, senders.count(second) / frames

    assert both(1, 2) == (1.0, 0.0)
    assert both(2, 1) == (0.0, 1.0)  # within the preamble the better one takes over
    assert both(1, 3) == both(3, 1) == (0.0, 0.0)


# Batteries.


def test_a_node_is_dead_when_its_energy_is_used_up():
    """[D50] MicaZ, radio listening (59.1 mW), processor idle (12 mW): 1 J lasts 14.06 s."""
    made = air([(0, 0)] * 2, propagation=CELL, battery_j=1.0, batteries={1: None})
    network = made.network
    network.run(20 * SECOND)
    node = network.nodes[0]
    assert node.died == pytest.approx(SECOND / 71.1e-3, abs=1)
    assert (node.alive, network.nodes[1].alive) == (False, True)
    assert node.energy.joules(network.now) == pytest.approx(1.0, abs=1e-7)  # a µs of 71 mW
    network.restart(0)
    assert not node.alive, "there is no joule to come up with"


def test_a_run_can_end_with_the_first_death():
    network = air(GRID, battery_j=1.0, batteries={7: 0.5}).network
    network.on_death(lambda node: network.stop())
    network.run(100 * SECOND)
    assert [node.id for node in network.nodes if not node.alive] == [7]
    assert network.now == network.nodes[7].died < 8 * SECOND


def test_nodes_that_send_more_die_earlier_and_counts_are_conserved_through_deaths():
    network = busy(rest=Rest("sleep", "sleep"), battery_j=0.02).network
    network.run(60 * SECOND)
    dead = [node for node in network.nodes if not node.alive]
    assert len(dead) > 5
    assert network.totals().is_conserved()
    for node in dead:
        assert node.energy.joules(network.now) == pytest.approx(0.02, abs=1e-7)


# Energy by cause.


def test_energy_is_charged_to_its_causes_and_adds_up():
    made = air([(0, 0)] * 3, propagation=CELL, mac=Csma(), rest=Rest("sleep", "sleep"))
    for i in range(10):
        made.network.at(i * SECOND, lambda: made.network.nodes[0].link.send(1, "t", 20, cause="temperature"))
    made.network.at(0, lambda: made.network.nodes[0].link.send(1, "h", 20, cause="humidity"))
    made.network.run(11 * SECOND)
    by_cause = made.network.by_cause()
    assert set(by_cause) == {"", "temperature", "humidity"}
    assert by_cause["temperature"] == pytest.approx(10 * by_cause["humidity"], rel=1e-9)
    assert sum(by_cause.values()) == pytest.approx(sum(made.network.joules()), rel=1e-12)
    frame, ack, tx, rx, active = 1184, 352, 52.2, 59.1, 24.0  # µs, µs, mW
    radio = (frame + ack) * (tx + 2 * rx)  # one sends, two receive, for data and for acknowledgement
    mcu = 1500 * 3 * active  # one sends, one receives, one overhears
    assert by_cause["humidity"] == pytest.approx((radio + mcu) * 1e-9, rel=1e-9)


def test_an_address_filter_saves_processor_time_of_nodes_that_do_not_overhear():
    network = Network(Setup(positions=[(0, 0)] * 2 + [(0, 1)], propagation=CELL, mac=Csma()))
    network.boot(lambda node: node.link.listen(lambda frame: None))
    network.at(0, lambda: network.nodes[0].link.send(1, "x", 20, cause="x"))
    network.run(SECOND)
    active = [node.energy.mcu.times(SECOND)[0].get("x", 0) for node in network.nodes]
    assert active == [1500, 1500, 0]


def test_the_meter_writes_the_energy_of_nodes_in_every_round():
    """[D38]"""
    trace = Trace()
    network = air([(0, 0)] * 2, trace, propagation=CELL, battery_j=100.0, platform=TELOSB).network
    network.meter(SECOND)
    network.run(10 * SECOND)
    rows = trace.energy.table()
    assert rows.num_rows == 20
    last = rows.slice(19).to_pylist()[0]
    assert last["radio_j"] + last["mcu_j"] + last["residual_j"] == pytest.approx(100.0)
    assert last["radio_j"] == pytest.approx(10 * 0.069)
    with pytest.raises(UsageError, match="make the network with a Trace"):
        air([(0, 0)]).network.meter()


def test_a_sleeping_network_without_traffic_transmits_nothing():
    network = air(GRID, propagation=LogDistance(3.5), mac=LowPowerListening()).network
    network.run(SECOND)
    assert network.totals().transmissions == 0
    assert all(node.energy.read(SECOND).radio["sleep"] > 0 for node in network.nodes)


# Mistakes.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Setup(positions=[]), "at least one node"),
        (lambda: Setup(positions=[(0, 0)], battery_j=0.0), r"a battery of 0.0 J; it must be above 0"),
        (lambda: Setup(positions=[(0, 0)], batteries={3: 1.0}), "there is no node 3; nodes are 0 to 0"),
        (lambda: air([(0, 0)]).network.kill(1), "there is no node 1; nodes are 0 to 0"),
        (lambda: air([(0, 0)]).network.cut(0, 9), "there is no node 9"),
        (lambda: air([(0, 0)]).network.partition([0], [4]), "there is no node 4"),
        (lambda: air([(0, 0)]).network.at(-1, print), "-1 µs has passed"),
        (lambda: air([(0, 0)]).network.every(0, print), "a period of 0 µs"),
    ],
)
def test_usage_errors_are_named(make, message):
    with pytest.raises(UsageError, match=message):
        make()


def test_a_frame_can_be_joined_while_its_preamble_lasts():
    """A node that wakes in a long preamble gets the frame; one that wakes later does not."""
    made = air([(0, 0)] * 3, propagation=links((0, 1), (0, 2)), mac=Aloha())
    nodes = made.network.nodes
    for node in nodes[1:]:
        node.radio.off()
    nodes[0].radio.transmit(Frame(DATA, 0, BROADCAST, 1, 20, 31, "", wakeup=100 * MILLISECOND))
    made.network.at(50 * MILLISECOND, nodes[1].radio.on)
    made.network.at(100 * MILLISECOND + 192 + 160, nodes[2].radio.on)
    made.network.run(SECOND)
    assert made.network.totals().received == 1
    assert made.network.totals().lost == {"asleep": 1}
    assert nodes[1].energy.read(SECOND).radio["receive"] == pytest.approx(51_376 * 59.1e-9, rel=1e-3)


def test_variable_noise_does_not_restore_cut_links():
    made = air([(0, 0), (5, 0), (0, 5)], propagation=UnitDisk(10.0), mac=Aloha())
    network, frame = made.network, CC2420.airtime(31)
    network.cut(0, 1)
    network.disturb(log(0.5) / frame)
    network.at(4 * SECOND, lambda: network.mend(0, 1))
    network.at(8 * SECOND, lambda: network.disturb(0.0))
    for i in range(1200):
        made.send(i * 10 * MILLISECOND, 0, BROADCAST, i)
    network.run(13 * SECOND)
    came = [(node, i // 400) for _, node, i in made.came]
    assert came.count((1, 0)) == 0, "it is cut, noise or not"
    assert all(140 < came.count(each) < 260 for each in ((2, 0), (1, 1), (2, 1))), "half of 400"
    assert came.count((1, 2)) == came.count((2, 2)) == 400
    with pytest.raises(UsageError, match="it is 0 or less"):
        network.disturb(0.1)
