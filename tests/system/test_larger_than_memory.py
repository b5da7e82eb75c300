"""Input that is shuffled, overlapping and larger than memory gives what the sorted input gives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

DEFINITION = """
topic Reading (value float, level int)
state Warm   on Reading [value > 25; value < 22] per source
state Warmer on Reading [value > 26; value < 21] per source
state Any    on Reading [value > 28.3; value < 18.7]
state Level  on Reading [level == 9999; level == 3] per source
"""
SOURCES = 500
NAMES = pa.array([f"sensor-{i}" for i in range(SOURCES)])


def chunk(number: int, rows: int) -> pa.Table:
    """One interval of a long history: slow waves, and ties in time that the sequence decides."""
    rng = np.random.default_rng(number)
    row = np.arange(number * rows, (number + 1) * rows)
    source = row % SOURCES
    values = 23.5 + 4 * np.sin(row / SOURCES / 300 + source) + rng.normal(0, 0.2, rows)
    columns = {
        "time": pa.array(row // 100 * 1_000_000).cast(pa.timestamp("us")),
        "source": NAMES.take(pa.array(source)),
        "value": values.round(3),
        "level": rng.integers(0, 10_000, rows),
        "sequence": row,
    }
    return pa.table(columns)


def write_shuffled(folder: Path, chunks: int, rows: int, files: int) -> None:
    """Write files of which each has rows of every interval, in random order."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    schema = chunk(0, 1).schema
    writers = [pacsv.CSVWriter(folder / f"{i:03}.csv", schema) for i in range(files)]
    for number in rng.permutation(chunks):
        table = chunk(int(number), rows).take(rng.permutation(rows))
        for i, writer in enumerate(writers):
            writer.write_table(table.slice(i * rows // files, (i + 1) * rows // files - i * rows // files))
    for writer in writers:
        writer.close()


def write_sorted(folder: Path, chunks: int, rows: int) -> None:
    folder.mkdir()
    for number in range(chunks):
        pq.write_table(chunk(number, rows), folder / f"{number:05}.parquet")


def replay(definition: Path, folder: Path, output: Path, *options: str) -> int:
    """Run the command; how much memory it took at its peak, in bytes."""
    command = [sys.executable, "-m", "holdfast", "replay", str(definition), "--input", str(folder)]
    process = subprocess.Popen([*command, "--output", str(output), *options], stderr=subprocess.PIPE)
    assert process.stderr is not None
    emitted = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    assert process.returncode == 0, emitted
    return usage.ru_maxrss * 1024


def compare(tmp_path: Path, chunks: int, rows: int, files: int, *options: str) -> int:
    definition = tmp_path / "app.hf"
    definition.write_text(DEFINITION)
    write_sorted(tmp_path / "sorted", chunks, rows)
    replay(definition, tmp_path / "sorted", tmp_path / "sorted.jsonl")
    write_shuffled(tmp_path / "shuffled", chunks, rows, files)
    peak = replay(definition, tmp_path / "shuffled", tmp_path / "shuffled.jsonl", *options)
    assert (tmp_path / "sorted.jsonl").stat().st_size > 0
    assert subprocess.run(["cmp", tmp_path / "sorted.jsonl", tmp_path / "shuffled.jsonl"]).returncode == 0
    return peak


def test_a_shuffled_overlapping_folder_equals_the_sorted_one(tmp_path):
    compare(tmp_path, 6, 20_000, 7, "--memory", "1")


@pytest.mark.soak
def test_five_gigabytes_replay_within_one_gigabyte_of_memory(tmp_path):
    peak = compare(tmp_path, 110, 1_000_000, 40)
    size = sum(file.stat().st_size for file in (tmp_path / "shuffled").iterdir())
    print(f"{size / 1e9:.2f} GB of files, {peak / 1e6:.0f} MB of memory at the peak")
    assert size >= 5e9
    assert peak <= 1e9
