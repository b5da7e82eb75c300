from __future__ import annotations

import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.files import sort
from holdfast.files.sort import Sorter
from holdfast.model.batch import TIME, concatenate

SOURCES = ["a", "b", "ab", "", "Z", "é", "e\u0301", "😀", "\uffff", "ü"]


def batch(rows, *, tag=0, place=False, plain=True):
    """Rows of (time, source, sequence); ``mark`` distinguishes rows with equal keys."""
    times, sources, sequences = zip(*rows, strict=True) if rows else ((), (), ())
    source = pa.array(sources, pa.string())
    columns = {
        "time": pa.array(times, pa.int64()).cast(TIME),
        "source": source if plain else source.dictionary_encode(),
        "sequence": pa.array(sequences, pa.int64()),
        **({"place": pa.array(["p"] * len(rows), pa.string())} if place else {}),
        "mark": pa.array([tag * 10_000 + i for i in range(len(rows))], pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)


def rows_of(batches):
    return [
        (t, s, n, mark)
        for b in batches
        for t, s, n, mark in zip(
            b["time"].cast(pa.int64()).to_pylist(),
            b["source"].to_pylist(),
            b["sequence"].to_pylist(),
            b["mark"].to_pylist(),
            strict=True,
        )
    ]


ROWS = st.lists(
    st.tuples(st.integers(0, 6) | st.integers(-(2**62), 2**62), st.sampled_from(SOURCES), st.integers(0, 3)),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(ROWS, max_size=12), st.sampled_from([1, 500, 5_000, 10**9]), st.integers(1, 9))
def test_sorting_equals_sorting_by_python(groups, budget, fan_in):
    batches = [batch(rows, tag=i, place=i % 2 == 1, plain=i % 3 == 0) for i, rows in enumerate(groups)]
    expected = sorted(rows_of(batches), key=lambda row: row[:3])
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sort, "_FAN_IN", max(2, fan_in))
        patch.setattr(sort, "BATCH_ROWS", 32)
        with Sorter(budget, Path(folder)) as sorter:
            for each in batches:
                sorter.add(each)
            assert rows_of(sorter.drain()) == expected
        assert os.listdir(folder) == []


def test_many_runs_with_equal_keys_across_blocks_stay_stable(tmp_path, monkeypatch):
    monkeypatch.setattr(sort, "_FAN_IN", 3)
    groups = [[(i // 50, "s", 0) for i in range(200)] for _ in range(20)]
    batches = [batch(rows, tag=i) for i, rows in enumerate(groups)]
    sorter = Sorter(6_000, tmp_path)
    for each in batches:
        sorter.add(each)
    assert sorter.spilled_bytes > 0
    assert rows_of(sorter.drain()) == sorted(rows_of(batches), key=lambda row: row[:3])
    assert os.listdir(tmp_path) == []


def test_a_large_spill_equals_the_sort_in_memory(tmp_path):
    random = np.random.default_rng(1)
    n = 60_000
    times = random.integers(0, 5_000, n)
    rows = list(zip(times.tolist(), [f"s{i}" for i in random.integers(0, 50, n)], range(n), strict=True))
    batches = [batch(rows[i : i + 4_000]) for i in range(0, n, 4_000)]
    inside, outside = Sorter(10**9, tmp_path), Sorter(400_000, tmp_path)
    for each in batches:
        inside.add(each)
        outside.add(each)
    one, two = concatenate(inside.drain()), concatenate(outside.drain())
    assert (inside.spilled_bytes, outside.spilled_bytes > 0) == (0, True)
    for name in ("time", "source", "sequence", "mark"):
        assert one[name].to_pylist() == two[name].to_pylist()


def test_rows_in_order_are_not_sorted():
    assert sort.order(batch([(1, "a", 0), (1, "a", 1), (1, "b", 0), (2, "a", 0)], plain=False)) is None
    assert sort.order(batch([(1, "b", 0), (1, "a", 1)], plain=False)).tolist() == [1, 0]


def test_batches_are_bounded(tmp_path):
    rows = [(i, "s", 0) for i in range(300_000)]
    for budget in (10**9, 3 * 10**6):
        with Sorter(budget, tmp_path) as sorter:
            for at in range(0, len(rows), 50_000):
                sorter.add(batch(rows[at : at + 50_000]))
            sizes = [len(b) for b in sorter.drain()]
        assert (sum(sizes), max(sizes) <= 2 * sort.BATCH_ROWS) == (300_000, True)


def test_columns_that_some_batches_lack_are_missing_there(tmp_path):
    for budget in (1, 10**9):
        with Sorter(budget, tmp_path) as sorter:
            sorter.add(batch([(2, "a", 0)], place=True))
            sorter.add(batch([(1, "a", 0)]))
            whole = concatenate(sorter.drain())
        assert whole["place"].to_pylist() == [None, "p"]


def test_an_empty_sorter_and_a_closed_one_leave_nothing(tmp_path):
    sorter = Sorter(1, tmp_path)
    assert list(sorter.drain()) == []
    sorter.add(batch([(1, "a", 0)]))
    assert len(os.listdir(tmp_path)) == 1
    sorter.close()
    assert (os.listdir(tmp_path), list(sorter.drain())) == ([], [])
