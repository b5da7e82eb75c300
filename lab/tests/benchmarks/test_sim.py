"""The benchmark of the simulated network with small numbers measures what it claims."""

from __future__ import annotations

import pytest

from holdfast.model.instant import SECOND
from holdfast_lab.benchmarks import BENCHMARKS, sim


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for name, value in {
        "DURATION": 10 * SECOND,
        "EVENTS": 2_000,
        "NODES": (10, 20),
        "DENSITIES": (4, 8),
        "TRANSMISSIONS": 200,
        "QUADS": (60, 4),
        "PUBLISHED": 3,
    }.items():
        monkeypatch.setattr(sim, name, value)


def test_the_sim_benchmark_is_registered():
    assert "sim" in BENCHMARKS


def test_the_grid_of_the_thesis_delivers_what_its_publishers_send():
    row = sim.grid(lambda _: None)
    assert row.unit == "s"
    assert row.goal == "≤ 5 s"
    assert row.detail["messages"] == 25
    assert row.detail["delivered"] == 25
    assert row.detail["neighbours"] >= 8


def test_sizes_and_densities_are_what_they_claim():
    rows = [*sim.sizes(lambda _: None), *sim.densities(lambda _: None)]
    assert [row.unit for row in rows] == ["transmissions/s"] * 4 + ["µs"]
    for row in rows[:4]:
        assert 100 < row.detail["transmissions"] < 400
        assert row.detail["hearers"] >= row.detail["neighbours"]
    sparse, dense = rows[2:4]
    assert dense.detail["neighbours"] > 1.3 * sparse.detail["neighbours"]


def test_every_subscriber_of_quad_pubsub_receives_every_event():
    row = sim.quads(lambda _: None)
    assert row.what == "Quad-PubSub, 60 nodes, 4 subscribers, 3 events"
    assert row.detail["events_told"] == 12


def test_both_event_loops_run_the_same_timers():
    pytest.importorskip("simpy")
    ours, theirs = sim.event_loops(lambda _: None)
    assert ours.detail["events"] == theirs.detail["events"] == 2_000
    assert theirs.detail["holdfast_is_times_faster"] == pytest.approx(ours.value / theirs.value)
