"""The jobs of ``bench replay`` that need no Spark find the same transitions."""

import pytest

from holdfast import UsageError
from holdfast_lab.benchmarks import replay as bench
from holdfast_lab.benchmarks.spark import transitions, write_readings


@pytest.mark.parametrize("data", ["hourly", "walks", "at once"])
def test_one_process_finds_what_its_peers_find(tmp_path, data):
    folder = tmp_path / "readings"
    if data == "hourly":
        bench.write_hourly(folder, 20_000, stations=10, files=2)
    else:
        write_readings(folder, 20_000, 10, files=2, at_once=data == "at once")
    found = []
    for name in ("local", "in_polars", "in_duckdb"):
        pytest.importorskip(name.removeprefix("in_")) if name != "local" else None
        bench.job(name, None, folder, tmp_path / name)
        found.append(transitions(tmp_path / name))
    assert len(found[0]) > 20
    assert all(one.equals(found[0]) for one in found[1:])


def test_data_sets_can_be_measured_separately(monkeypatch):
    sent = []
    monkeypatch.setattr(bench, "SETS", {name: lambda *_, name=name: iter([name]) for name in bench.SETS})
    monkeypatch.delenv("HOLDFAST_BENCH_SETS", raising=False)
    assert bench.run(sent.append) == ["1000", "100000", "1000000", "at-once", "hourly", "in-turns"]
    monkeypatch.setenv("HOLDFAST_BENCH_SETS", "hourly, 1000")
    assert bench.run(sent.append) == ["hourly", "1000"]
    monkeypatch.setenv("HOLDFAST_BENCH_SETS", "weekly")
    with pytest.raises(
        UsageError, match="no 'weekly', there is 1000, 100000, 1000000, at-once, hourly, in-turns"
    ):
        bench.run(sent.append)
