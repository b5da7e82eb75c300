"""A shard of ``bench live`` in this process: all kinds run, and bytes are those of the changes."""

import pytest

from holdfast_lab.benchmarks import BENCHMARKS, live, shards


@pytest.fixture
def small(monkeypatch):
    """Six batches of each size are measured: in a few, no reading may turn anything, which writes nothing."""
    for module in (live, shards):
        monkeypatch.setattr(module, "LATER", (live.Later(3_200, 7, 1), live.Later(160, 7, 1)))
    monkeypatch.setattr(shards, "SCALE", 1)


@pytest.mark.parametrize("kind", live.SETS)
def test_the_shards_benchmark_measures_every_kind(small, kind):
    assert "shards" in BENCHMARKS
    many, few = shards.batches(kind, 400)
    assert (many[0], few[0]) == (200, 10)
    assert many[1] > 0
    assert few[2] <= many[2]


def test_measured_bytes_are_those_of_the_changes(small):
    (_, _, written), _ = shards.batches("guarded", 400)
    assert 200 < written < 12_000
