"""A live query that is killed again and again emits everything, and each notification once."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from support.chaos import WARM, generate, harass
from support.runtimes import session


def survives(folder: Path, files: int, rows: int, kills: list[str], seed: int, holdfast) -> None:
    session()  # skips where there is no Java
    (folder / "warm.hf").write_text(WARM)
    (folder / "inbox").mkdir()
    generate(folder / "inbox", files, rows)
    arguments = [
        str(folder / "warm.hf"),
        *("--source", f"dir:{folder / 'inbox'}"),
        *("--sink", f"parquet:{folder / 'out'}"),
        *("--checkpoint", str(folder / "checkpoint")),
        *("--every", "0", "--batch", "1", "--settle", "0", "--master", "local[2]"),
    ]
    met = harass(arguments, folder / "checkpoint", folder / "log", kills, seed)
    log = (folder / "log").read_text()
    assert met == len(kills), log
    last = holdfast("run", *arguments, "--available-now", "--finish")
    assert last.status == 0, last.err
    emitted = ds.dataset(folder / "out").to_table().to_pylist()
    ran = holdfast("replay", folder / "warm.hf", "-i", folder / "inbox", "-o", folder / "replay.parquet")
    assert ran.status == 0, ran.err
    expected = ds.dataset(folder / "replay.parquet").to_table().to_pylist()
    assert len({row["id"] for row in emitted}) == len(emitted), "something was said twice"
    assert {row["id"]: row for row in emitted} == {row["id"]: row for row in expected}
    assert len(emitted) > 100
    pairs = defaultdict(list)
    for row in sorted(emitted, key=lambda row: row["time"]):
        if row["status"] != "atomic":
            pairs[row["subscription"], row["scope"]].append(row["status"])
    for marks in pairs.values():
        assert marks == ["ingress", "egress"] * (len(marks) // 2) + ["ingress"] * (len(marks) % 2)


def test_a_killed_live_query_loses_and_repeats_nothing(tmp_path, holdfast):
    survives(tmp_path, files=4, rows=10_000, kills=["group"], seed=1, holdfast=holdfast)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
def test_a_live_query_killed_twelve_times_over_millions_of_events_loses_nothing(tmp_path, holdfast, seed):
    kills = ["group", "python", "java"] * 4
    survives(tmp_path, files=60, rows=40_000, kills=kills, seed=seed, holdfast=holdfast)
