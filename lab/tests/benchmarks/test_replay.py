"""The jobs of ``bench replay`` that need no Spark find the same transitions."""

import pytest

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
