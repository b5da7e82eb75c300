"""Joules: by state, by cause, while it runs, and until the battery is empty."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.instant import MINUTE, SECOND
from holdfast.network.sim.clock import Clock
from holdfast.network.sim.energy import LISTEN, OFF, RECEIVE, SLEEP, TRANSMIT, NodeEnergy, Rest, draw
from holdfast.network.sim.platforms import MICAZ, TELOSB

LISTENING = Rest()


def micaz(rest: Rest = LISTENING) -> NodeEnergy:
    return NodeEnergy(draw(MICAZ, rest, 0.0))


def switch_on(account: NodeEnergy) -> NodeEnergy:
    account.mcu.start(0)
    account.radio.change(0, LISTEN)
    return account


def test_the_radio_of_the_thesis_draws_59_093_milliwatts():
    """[AT12] Receiving, but for 0.1005 % of the time, in which it transmits."""
    account = micaz()
    account.radio.change(0, LISTEN)
    for second in range(7200):
        at = second * SECOND
        account.radio.change(at + 500_000, TRANSMIT, "reading")
        account.radio.change(at + 501_005, LISTEN)
        if second == 299:
            assert account.read(300 * SECOND).radio_joules == pytest.approx(17.7279, rel=1e-5)
    assert account.read(7200 * SECOND).radio_joules == pytest.approx(425.470, rel=1e-5)


def test_the_processor_of_the_thesis_draws_14_793_milliwatts():
    """[AT12] Active for 23.27 % of 120 minutes, idle otherwise."""
    account = micaz()
    account.mcu.start(0)
    for tenth in range(72_000):
        account.mcu.work(tenth * 100_000, 23_270, "load")
    assert account.read(120 * MINUTE).mcu_joules == pytest.approx(106.508, rel=1e-4)


@pytest.mark.parametrize(
    ("rest", "milliwatts"),
    [
        (Rest("listen", "idle"), 3 * (23.0 + 0.0545)),
        (Rest("idle", "idle"), 3 * (0.021 + 0.0545)),
        (Rest("sleep", "sleep"), 3 * (0.001 + 0.0051)),
    ],
)
def test_the_rest_state_is_a_parameter_and_is_printed(rest, milliwatts):
    account = switch_on(NodeEnergy(draw(TELOSB, rest, 0.0)))
    assert account.joules(1000 * SECOND) == pytest.approx(milliwatts)
    assert account.power(0) == pytest.approx(milliwatts)
    assert str(rest) == f"radio {rest.radio}, mcu {rest.mcu}"


def test_a_radio_that_is_switched_off_sleeps_in_any_rest_state():
    account = switch_on(micaz(Rest("listen")))
    account.radio.change(10 * SECOND, SLEEP)
    reading = account.read(110 * SECOND)
    assert reading.radio == {
        "sleep": pytest.approx(100 * 0.003e-3),
        "listen": pytest.approx(10 * 59.1e-3),
        "receive": 0.0,
        "transmit": 0.0,
    }


def test_work_waits_for_earlier_work_and_is_charged_to_its_cause_as_it_is_done():
    account = micaz()
    account.mcu.start(0)
    account.mcu.work(0, 100, "a")
    account.mcu.work(10, 100, "b")  # from 100 to 200
    assert account.mcu.times(50) == ({"a": 50}, 0)
    assert account.mcu.times(150) == ({"a": 100, "b": 50}, 0)
    assert account.mcu.times(500) == ({"a": 100, "b": 100}, 300)
    account.mcu.work(600, 100, "a")
    account.mcu.stop(650)
    assert account.mcu.times(10_000) == ({"a": 150, "b": 100}, 400)


def test_a_node_that_is_off_draws_nothing():
    account = switch_on(micaz())
    account.radio.change(1000, OFF)
    account.mcu.stop(1000)
    assert account.power(2000) == 0
    assert account.joules(1000) == account.joules(9_000_000)


CAUSES = st.sampled_from(["", "tree", "tree/temperature", "tree/humidity"])
CHANGES = st.lists(
    st.tuples(st.integers(0, 5000), st.sampled_from(["work", SLEEP, LISTEN, RECEIVE, TRANSMIT]), CAUSES)
)


@given(CHANGES, st.integers(0, 100_000))
def test_causes_add_up_to_the_total_at_every_time_and_reading_changes_nothing(changes, after):
    account, silent = switch_on(micaz()), switch_on(micaz())
    now = 0
    for delay, what, cause in changes:
        now += delay
        for each in (account, silent):
            if what == "work":
                each.mcu.work(now, 700, cause)
            else:
                each.radio.change(now, what, cause)
        reading = account.read(now)
        assert min(*reading.radio.values(), *reading.mcu.values()) >= 0
        assert sum(account.by_cause(now).values()) == pytest.approx(reading.joules, rel=1e-12)
        assert account.joules(now) == pytest.approx(reading.joules, rel=1e-12)
    end = now + after
    assert account.read(end) == silent.read(end)
    on = sum(sum(times) for times in account.radio.times(end).values())
    active, rest = account.mcu.times(end)
    assert on == sum(active.values()) + rest == end


@given(CHANGES, st.floats(1e-6, 5e-4))
def test_a_battery_is_empty_at_the_microsecond_at_which_its_joules_are_used(changes, joules):
    clock, account, deaths = Clock(), micaz(), []

    def empty():
        deaths.append(clock.now)
        account.radio.change(clock.now, OFF)
        account.mcu.stop(clock.now)

    account.supply(joules, clock, empty)
    switch_on(account)
    now = 0
    for delay, what, cause in changes:
        now += delay
        clock.run(now)
        if not deaths:
            account.mcu.work(now, 700, cause) if what == "work" else account.radio.change(now, what, cause)
    clock.run(now + 10**9)
    (death,) = deaths
    assert account.joules(death) >= joules * (1 - 1e-9)
    assert account.joules(death) - joules <= 3 * (19.7 + 8.0) * 1e-9  # at most one µs too late
    assert account.residual(death) == pytest.approx(0.0, abs=1e-7)
    assert account.capacity == joules
