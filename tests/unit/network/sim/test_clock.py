"""Time in the simulator, and clocks that do not agree with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.network.sim.chance import derive_seed, stream
from holdfast.network.sim.clock import SIGNAL_ENDS, SIGNAL_STARTS, TIMER, Clock, LocalClock

MOMENTS = st.integers(0, 50)


@given(st.lists(st.tuples(MOMENTS, st.sampled_from([SIGNAL_ENDS, SIGNAL_STARTS, TIMER]))))
def test_planned_events_run_by_time_then_priority_then_insertion_order(planned):
    clock, happened = Clock(), []
    for sequence, (time, priority) in enumerate(planned):
        clock.at(time, happened.append, (time, priority, sequence), priority)
    assert clock.run(100) == len(planned)
    assert happened == sorted(happened)


@given(st.lists(MOMENTS), st.lists(MOMENTS))
def test_interrupting_a_run_does_not_change_it(planned, stops):
    def run(until):
        clock, happened = Clock(), []

        def again(depth):
            happened.append((clock.now, depth))
            if depth:
                clock.after(3, again, depth - 1)

        for time in planned:
            clock.at(time, again, 2)
        for stop in [*sorted(until), 100]:
            clock.run(stop)
            assert clock.now == stop
        return happened

    assert run(stops) == run([])


def test_planning_an_event_at_or_after_a_past_time_is_refused():
    clock = Clock()
    clock.run(100)
    with pytest.raises(AssertionError, match="passed"):
        clock.at(50, print)
    with pytest.raises(AssertionError, match="passed"):
        clock.after(-50, print)


def test_cancelled_events_do_not_run():
    clock, happened = Clock(), []
    clock.at(5, happened.append, "kept")
    clock.cancel(clock.at(5, happened.append, "cancelled"))
    assert clock.run(10) == 1
    assert happened == ["kept"]


def test_a_run_can_be_stopped_from_within_and_continued_later():
    clock, happened = Clock(), []
    clock.at(5, lambda _: clock.stop())
    clock.at(5, happened.append, "same moment, later in order")
    clock.at(7, happened.append, "later")
    clock.run(10)
    assert (clock.now, happened) == (5, [])
    clock.run(10)
    assert (clock.now, happened) == (10, ["same moment, later in order", "later"])


def test_the_error_about_a_past_time_names_both_times():
    clock = Clock()
    clock.run(10)
    with pytest.raises(AssertionError, match="9 µs has passed: it is 10 µs"):
        clock.at(9, print)


DRIFTS = st.integers(-500_000_000, 500_000_000)


@given(st.integers(-1000, 1000), DRIFTS, st.integers(0, 10**9), st.integers(0, 10**12))
def test_a_timer_of_a_drifting_clock_fires_when_the_clock_first_shows_its_time(
    offset, drift, changed_at, ahead
):
    clock = LocalClock(offset, drift)
    clock.drift(changed_at, drift // 2)
    wanted = clock.local(changed_at) + ahead
    at = clock.when(wanted)
    assert clock.local(at) >= wanted
    assert at == changed_at or clock.local(at - 1) < wanted


def test_a_fast_clock_gains_its_drift_and_does_not_jump_when_the_drift_changes():
    clock = LocalClock(drift_ppb=40_000)  # 40 ppm
    assert clock.local(1_000_000_000) == 1_000_040_000
    clock.drift(1_000_000_000, 0)
    assert clock.local(1_000_000_000) == 1_000_040_000
    assert clock.local(1_000_000_010) == 1_000_040_010
    clock.step(1_000_000_010, -40_000)
    assert clock.local(1_000_000_010) == 1_000_000_010


def test_each_purpose_has_its_own_reproducible_random_numbers():
    assert stream(7, "node", 3).random() == stream(7, "node", 3).random()
    seeds = {
        derive_seed(seed, kind, node) for seed in range(5) for kind in ("node", "radio") for node in range(50)
    }
    assert len(seeds) == 500
    assert derive_seed(1, "node", 7) == 1488776025221717198  # stable over versions and machines
