"""The correlation benchmark: machines, joins and windows find the same."""

from __future__ import annotations

import pytest

from support.runtimes import session

bench = pytest.importorskip("holdfast_lab.benchmarks.correlate")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    bench.write(folder / "data", 3_000, 3)
    found = bench.ours(folder / "data", folder / "ours.parquet", 3)
    assert found > 100
    assert bench.ours(folder / "data", None, 3) == found
    return folder


@pytest.mark.parametrize("peer", bench.PEERS)
def test_peers_find_what_the_machines_find(found, peer):
    bench.theirs(peer, found / "data", found / peer, session())
    assert bench.pairs(found / peer).equals(bench.pairs(found / "ours.parquet"))


def test_a_filter_matches_its_stated_number_of_readings():
    values = bench.readings(50_000).column("value").to_numpy()
    for low, high in bench.ranges(5).reshape(-1, 2):
        share = ((low <= values) & (values <= high)).mean()
        assert share == pytest.approx(bench.SHARE, abs=0.02)


def test_state_does_not_grow_with_the_history(tmp_path):
    bench.write(tmp_path / "data", 40_000, 5)
    (row,) = bench._memory(tmp_path / "data", 5)
    assert row.met


@pytest.mark.soak
def test_the_correlate_benchmark_runs_on_little_data(monkeypatch):
    monkeypatch.setattr(bench, "SCALE", 0.02)
    monkeypatch.setattr(bench, "SUBSCRIPTIONS", (20, 200))
    rows = bench.run(lambda _: None)
    assert sum(row.goal is not None for row in rows) == 3
    assert all(row.value > 0 for row in rows)
