"""Real readings: in this process, on Spark, and live on Spark as they might have arrived."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.runtimes import session

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT.parent / "shared" / "data"

SETS = {
    "berkeley/rooms.hf": ("berkeley-sdh-rooms/rooms.parquet", "source=room,place=room"),
    "st-bernard/weather.hf": ("sensorscope-stbernard/stbernard.parquet", "source=station"),
}


@pytest.mark.parametrize(
    ("app", "files"),
    [
        ("berkeley/rooms.hf", 2),
        *(pytest.param(app, 6, marks=pytest.mark.soak) for app in SETS),
    ],
)
def test_real_data_gives_the_same_notifications_on_every_runtime(
    app: str, files: int, tmp_path: Path, holdfast: Any
) -> None:
    path, mapped = DATA / SETS[app][0], SETS[app][1]
    if not path.exists():
        pytest.skip(f"{SETS[app][0]} is not here: it belongs beside the repository, in shared/data")
    session()
    definition, read = ROOT / "examples" / app, ("--map", mapped)
    for engine in ("local", "spark"):
        ran = holdfast(
            "replay", definition, "-i", path, *read, "--engine", engine, "-o", tmp_path / f"{engine}.jsonl"
        )
        assert ran.status == 0, ran.err
    lines = (tmp_path / "local.jsonl").read_text().splitlines()
    assert len(lines) > 200
    assert (tmp_path / "spark.jsonl").read_text().splitlines() == lines

    (tmp_path / "inbox").mkdir()
    arrive(path, mapped.split(",")[0].partition("=")[2], tmp_path / "inbox", files)
    ran = holdfast(
        "run", definition, "--source", f"dir:{tmp_path / 'inbox'}", *read, "--checkpoint", tmp_path / "kept",
        "--sink", f"jsonl:{tmp_path / 'live.jsonl'}", "--available-now", "--settle", "0", "--batch", "1",
    )  # fmt: skip
    assert ran.status == 0, ran.err
    assert (tmp_path / "live.jsonl").read_text().splitlines() == lines


def arrive(path: Path, source: str, inbox: Path, files: int) -> None:
    """The readings in files that follow one another in time; a row keeps its number."""
    table = pq.read_table(path)
    table = table.append_column("sequence", pa.array(np.arange(len(table))))
    table = table.sort_by([("time", "ascending"), (source, "ascending"), ("sequence", "ascending")])
    cuts = np.linspace(0, len(table), files + 1).astype(int)
    for i, (first, last) in enumerate(pairwise(cuts)):
        pq.write_table(table.slice(first, last - first), inbox / f"{i}.parquet")
