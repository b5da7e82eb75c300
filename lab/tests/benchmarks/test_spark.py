"""The benchmark on Spark: every job finds the same transitions."""

from __future__ import annotations

import pytest

from holdfast.cli.lab import _format_row
from support.runtimes import session

bench = pytest.importorskip("holdfast_lab.benchmarks.spark")


@pytest.fixture(scope="module")
def readings(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench") / "readings"
    bench.write_readings(folder, 20_000, 10, files=2)
    return folder


@pytest.fixture(scope="module")
def ours(readings):
    output = readings.parent / "ours"
    bench.job("holdfast", session(), readings, output, subscriptions=3)
    return bench.transitions(output)


def test_readings_cross_the_thresholds(ours):
    assert len(ours) > 20
    assert set(ours.column("status").to_pylist()) == {"ingress", "egress"}


@pytest.mark.parametrize("name", [name for name in bench.NAMES if name != "holdfast"])
def test_peers_find_the_same_transitions(name, readings, ours):
    if name.startswith("in_"):
        pytest.importorskip(name.removeprefix("in_"))
    output = readings.parent / name
    bench.job(name, session() if name in bench.ON_SPARK else None, readings, output)
    assert bench.transitions(output).equals(ours)


def test_a_peer_that_fails_has_a_row_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setitem(bench.NAMES, "absent", "a peer that is not there")
    small = bench._Bench(tmp_path, lambda _: None, 100, 2)
    (row,) = small.rows(["absent"])
    assert (row.value, row.met) == (None, None)
    assert row.detail["failed"].startswith("ModuleNotFoundError: No module named")
    assert "failed: ModuleNotFoundError" in _format_row(vars(row))
    assert "absent" not in small.found


@pytest.mark.soak
def test_the_spark_benchmark_runs_on_little_data(monkeypatch):
    monkeypatch.setattr(bench, "SCALE", 0.002)
    rows = bench.run(lambda _: None)
    assert sum(row.goal is not None for row in rows) == 5
    assert all(row.value > 0 for row in rows)
