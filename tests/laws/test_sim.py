"""Laws of the simulated network, for any small network, any MAC, any traffic and any failures.

Nothing comes from nowhere and nothing is lost without a cause; energy adds up and never shrinks; one seed
is one run.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.instant import MILLISECOND, SECOND
from holdfast.network.sim.energy import Rest
from holdfast.network.sim.frame import BROADCAST
from holdfast.network.sim.mac import Aloha, Csma, LowPowerListening, RtsCts, Tdma
from holdfast.network.sim.platforms import PLATFORMS
from holdfast.network.sim.propagation import LogDistance, Measured, UnitDisk
from holdfast.network.sim.radio import RADIOS
from holdfast.network.sim.trace import Trace, integrate
from support.air import Air, air

MOST = 7
END = 2 * SECOND

NODES = st.integers(0, MOST - 1)
MOMENTS = st.integers(0, END)
SHORT = st.integers(1, 6)


@dataclass(frozen=True)
class Scenario:
    """A network, what is sent when, and what goes wrong when."""

    setup: dict
    packets: list[tuple[int, int, int, int]]
    faults: list[tuple[int, str, int, int]]


@st.composite
def macs(draw):
    return draw(
        st.one_of(
            st.builds(Aloha, queue=SHORT),
            st.builds(
                Csma,
                min_exponent=st.integers(0, 3),
                backoffs=st.integers(0, 4),
                retries=st.integers(0, 3),
                acknowledged=st.booleans(),
                queue=SHORT,
            ),
            st.builds(
                RtsCts,
                window_min=st.integers(0, 15),
                short_retries=SHORT,
                long_retries=SHORT,
                threshold=st.sampled_from([0, 30, 1000]),
            ),
            st.builds(
                LowPowerListening,
                interval=st.integers(20, 300).map(lambda ms: ms * MILLISECOND),
                wake=st.sampled_from(["strobes", "preamble"]),
                linger=st.sampled_from([0, 10 * MILLISECOND]),
                retries=st.integers(0, 2),
            ),
            st.builds(Tdma, guard=st.integers(0, 2000), sleep=st.booleans(), retries=st.integers(0, 2)),
        )
    )


PROPAGATIONS = st.one_of(
    st.builds(
        LogDistance,
        st.floats(2.0, 4.5),
        shadowing_db=st.sampled_from([0.0, 6.0]),
        asymmetry_db=st.sampled_from([0.0, 3.0]),
    ),
    st.builds(UnitDisk, st.floats(10.0, 80.0)),
    st.dictionaries(st.tuples(st.integers(0, 1), st.integers(0, 1)), st.floats(0, 1)).map(Measured),
)


@st.composite
def scenarios(draw) -> Scenario:
    places = st.tuples(st.floats(0, 100), st.floats(0, 100))
    setup = {
        "positions": draw(st.lists(places, min_size=2, max_size=MOST)),
        "propagation": draw(PROPAGATIONS),
        "radio": draw(st.sampled_from(list(RADIOS.values()))),
        "mac": draw(macs()),
        "platform": draw(st.sampled_from(list(PLATFORMS.values()))),
        "rest": Rest(
            draw(st.sampled_from(["listen", "idle", "sleep"])), draw(st.sampled_from(["idle", "sleep"]))
        ),
        "battery_j": draw(st.sampled_from([None, None, 1e-4, 1e-3, 0.05])),
        "drift_ppm": draw(st.dictionaries(st.integers(0, 1), st.floats(-1000, 1000))),
        "seed": draw(st.integers(0, 3)),
    }
    packet = st.tuples(MOMENTS, NODES, st.one_of(NODES, st.just(BROADCAST)), st.integers(0, 100))
    fault = st.tuples(
        MOMENTS,
        st.sampled_from(["kill", "restart", "cut", "mend", "partition", "heal", "drift"]),
        NODES,
        NODES,
    )
    return Scenario(setup, draw(st.lists(packet, max_size=30)), draw(st.lists(fault, max_size=6)))


def built(scenario: Scenario, trace: Trace | None = None) -> Air:
    made = air(trace=trace, **scenario.setup)
    network, count = made.network, len(made.network.nodes)
    actions = {
        "kill": lambda a, b: network.kill(a),
        "restart": lambda a, b: network.restart(a),
        "cut": network.cut,
        "mend": network.mend,
        "partition": lambda a, b: network.partition([a], [b]),
        "heal": lambda a, b: network.heal(),
        "drift": lambda a, b: network.drift(a, 100.0 * b),
    }
    for i, (at, source, to, size) in enumerate(scenario.packets):
        made.send(at, source % count, to if to == BROADCAST else to % count, i, size)
    for at, what, a, b in scenario.faults:
        network.at(at, lambda what=what, a=a, b=b: actions[what](a % count, b % count))
    return made


@given(scenarios(), st.lists(MOMENTS, max_size=3))
def test_packets_signals_and_energy_are_accounted_for_in_any_run(scenario, looks):
    made = built(scenario)
    network, before = made.network, [0.0] * len(made.network.nodes)
    for look in [*sorted(looks), END, 100 * SECOND]:
        network.run(look)
        assert network.totals().is_conserved(), network.totals()
        used = network.joules()
        assert all(after >= earlier - 1e-15 for after, earlier in zip(used, before, strict=True))
        assert sum(network.by_cause().values()) == pytest.approx(sum(used), rel=1e-9, abs=1e-15)
        for node in network.nodes:
            reading = node.energy.read(network.now)
            assert min(*reading.radio.values(), *reading.mcu.values()) >= 0
            assert reading.joules == pytest.approx(node.energy.joules(network.now), rel=1e-9, abs=1e-15)
            if node.energy.capacity is not None:
                assert reading.joules <= node.energy.capacity + 2e-7
        before = used
    totals = network.totals()
    assert totals.waiting == totals.unaired == 0, "long after the last packet nothing waits"
    assert totals.on_air == 0
    arrived = sum(1 for _, _, i in made.came if scenario.packets[i][2] != BROADCAST)
    assert arrived == totals.delivered, "each packet arrives once, and is counted once"


@given(scenarios(), st.lists(MOMENTS, max_size=3))
def test_one_seed_gives_one_run_wherever_it_is_interrupted(scenario, looks):
    runs = []
    for stops in ([], sorted(looks)):
        trace = Trace()
        made = built(scenario, trace)
        for stop in [*stops, END]:
            made.network.run(stop)
        runs.append(
            (made.came, made.outcomes, made.network.totals(), trace.frames.table(), made.network.joules())
        )
    assert runs[0] == runs[1]


@given(scenarios())
def test_the_trace_alone_determines_receptions_and_energy(scenario):
    trace = Trace()
    network = built(scenario, trace).network
    network.run(END)
    what = trace.frames.table()["what"].to_pylist()
    totals = network.totals()
    assert what.count("transmit") == totals.transmissions
    assert what.count("receive") == totals.received
    assert {why: what.count(why) for why in totals.lost} == totals.lost
    found = integrate(trace.states.table(), network.draw, network.now)
    for node in network.nodes:
        reading = node.energy.read(network.now)
        assert found[node.id, "radio"] == pytest.approx(reading.radio_joules, rel=1e-9, abs=1e-15)
        assert found[node.id, "mcu"] == pytest.approx(reading.mcu_joules, rel=1e-9, abs=1e-15)
