"""Both systems in the benchmark of states with durations give equal results."""

from __future__ import annotations

from holdfast_lab.benchmarks import alarms


def test_the_hand_written_query_gives_equal_results():
    rows = list(alarms.by_hand(lambda _what: None, events=20_000, keys=50))
    assert [row.unit for row in rows] == ["M/s", "×"]


def test_keys_are_counted_and_time_advances():
    size, minute = alarms.advancing(lambda _what: None, keys=5_000)
    assert 0 < size.value < 5
    assert minute.value >= 0
