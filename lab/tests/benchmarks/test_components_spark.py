"""The benchmark of components on Spark: what people write finds the same transitions."""

from __future__ import annotations

import pytest

from support.runtimes import session

bench = pytest.importorskip("holdfast_lab.benchmarks.components_spark")


@pytest.fixture
def readings(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "ROADS", 10)
    bench.write_readings(tmp_path / "readings", 20_000)
    return tmp_path / "readings"


@pytest.mark.soak
def test_rolling_windows_find_the_same_transitions(readings, tmp_path):
    found = {}
    for name in ("replay", "rolling"):
        bench.job(name, session(), readings, tmp_path / name)
        found[name] = bench.transitions(tmp_path / name)
    assert len(found["replay"]) > 10
    assert found["rolling"].equals(found["replay"])


@pytest.mark.soak
def test_the_components_spark_benchmark_runs_on_little_data():
    rows = bench.rows(lambda _: None, size=40_000)
    assert [row.goal for row in rows if row.goal] == ["≥ 3 ×"]
    assert all(row.value > 0 for row in rows)
