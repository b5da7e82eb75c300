"""The readings of ``bench live``, and what its definitions say of them."""

import os

import pyarrow.dataset
import pytest

from holdfast import replay
from holdfast_lab.benchmarks import live as bench


@pytest.mark.parametrize("kind", bench.SETS)
def test_every_key_is_held_and_some_end(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(bench, "ROWS", 2_000)
    monkeypatch.setattr(bench, "SCALE", 1)
    first = bench.write(tmp_path, 3_000)
    assert first == 2
    assert pyarrow.dataset.dataset(tmp_path / "inbox").count_rows() == 3_000 + bench.BATCHES * 2_000
    monkeypatch.chdir(tmp_path)
    told = replay(bench.TOPIC + bench.SETS[kind], tmp_path / "inbox")
    found = [(one.subscription, one.status) for one in told]
    name = "Heat" if "levels" in kind else "Warm"
    assert found.count((name, "ingress")) >= 2_990
    assert found.count((name, "egress")) > 20
    assert kind != "count" or found.count(("Many", "ingress")) >= 30


def test_what_a_process_has_used_grows_with_what_it_does():
    before = bench.processor()
    while bench.processor()["driver"] < before["driver"] + 0.05:
        sum(range(100_000))
    assert before["driver"] > 0


def test_files_below_a_folder_have_their_sizes(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_bytes(b"12345")
    assert bench.sizes(tmp_path) == {os.fspath(tmp_path / "a" / "b"): 5}
