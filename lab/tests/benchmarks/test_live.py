"""The readings of ``bench live``, and the notifications of its definitions."""

import os

import pyarrow.dataset
import pytest

from holdfast import replay
from holdfast_lab.benchmarks import live as bench


@pytest.mark.parametrize("kind", bench.SETS)
def test_every_key_starts_and_some_end(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(bench, "LATER", (bench.Later(2_000, 14, 5), bench.Later(20, 9, 2)))
    monkeypatch.setattr(bench, "SCALE", 1)
    first = bench.write(tmp_path, 3_000)
    assert first == 2
    assert pyarrow.dataset.dataset(tmp_path / "inbox").count_rows() == 3_000 + 14 * 2_000 + 9 * 20
    monkeypatch.chdir(tmp_path)
    notifications = replay(bench.TOPIC + bench.SETS[kind], tmp_path / "inbox")
    found = [(one.subscription, one.status) for one in notifications]
    name = "Heat" if "levels" in kind else "Warm"
    assert found.count((name, "ingress")) >= 2_990
    assert found.count((name, "egress")) > 20
    counted = {"count": 30, "timed-count": 28, "count-of-all": 1}.get(kind, 0)
    assert counted <= found.count(("Many", "ingress"))


def test_the_cost_of_a_batch_is_the_difference_to_the_previous_one():
    at = [bench._BatchStatus(10.0 * i, {"java": i * i}, {"changed": 100 * i}, 7) for i in range(4)]
    found = bench._cost(at[1:])
    assert (found["cpu_s"], found["java_s"], found["worst_s"], found["clock_s"]) == (4, 4, 5, 10.0)
    assert (found["changed_bytes"], found["held"]) == (250, 7)


def test_the_measured_cpu_time_of_a_process_grows_with_its_work():
    before = bench.processor()
    while bench.processor()["driver"] < before["driver"] + 0.05:
        sum(range(100_000))
    assert before["driver"] > 0


def test_files_below_a_folder_have_their_sizes(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")
    assert bench.sizes(tmp_path) == {os.fspath(tmp_path / "a" / "b"): 5}
