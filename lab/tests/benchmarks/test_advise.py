"""The benchmark of advice, on little data."""

from __future__ import annotations

from holdfast_lab.benchmarks import BENCHMARKS, advise


def test_a_thousand_variants_find_what_a_replay_finds(monkeypatch):
    monkeypatch.setattr(advise, "SCALE", 0.01)
    monkeypatch.setattr(advise, "SENSORS", 100)
    (row,) = advise.run(lambda doing: None)
    assert "advise" in BENCHMARKS
    assert row.detail["variants"] == 1_000
    assert row.value > 0
