"""Jobs in processes of their own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from holdfast_lab.benchmarks import correlate, kernel, match, times
from holdfast_lab.benchmarks.process import JobTimes, apart, measure_job


def test_a_function_runs_in_another_process_and_its_error_is_raised():
    assert apart(os.getpid) != os.getpid()
    with pytest.raises(RuntimeError, match=r"(?s)json:loads\('no',\): .*JSONDecodeError"):
        apart(json.loads, "no")


def test_a_job_is_repeated_and_its_first_output_is_retained(tmp_path):
    correlate.write(tmp_path / "data", 2_000, 3)
    it = measure_job(correlate.job, "ours", tmp_path / "data", 3, times=3, on_spark=False)
    assert it.found == correlate.ours(tmp_path / "data", None, 3) > 0
    assert len(correlate.pairs(it.output)) == it.found
    assert len(it.seconds) == 3
    assert it.cold > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "data.ours"]
    it.remove()
    assert not it.output.exists()


def test_the_warm_time_is_the_best_after_the_first_run():
    assert JobTimes(9.0, [1.0, 3.0, 2.0], None, Path(), {"python": 3 << 20}).warm == 2.0
    assert JobTimes(9.0, [1.0, 3.0, 2.0], None, Path(), {"python": 3 << 20}).best == 1.0
    assert JobTimes(9.0, [1.5], None, Path(), {"python": 3 << 20}).detail(3, transitions=7) == {
        "with_start_up_s": 9.0, "worst_s": 1.5, "events_per_s": 2.0, "transitions": 7,
        "megabytes": {"python": 3},
    }  # fmt: skip


def test_results_of_memory_benchmarks_can_be_pickled(monkeypatch):
    monkeypatch.setattr(kernel, "MANY", 100_000)
    monkeypatch.setattr(match, "SIZES", (2_000,))
    for given in (kernel.memory_growth_by_keys(), match.memory_growth_by_boxes()):
        assert tuple(json.loads(json.dumps(given))) == given


def test_a_ratio_is_compared_with_its_goal():
    assert [times("x", 3, least=2).met, times("x", 3, most=2).met, times("x", 3).met] == [True, False, None]
    assert (times("x", 3, least=2).goal, times("x", 3, most=2).goal) == ("≥ 2 ×", "≤ 2 ×")
