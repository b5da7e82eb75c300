"""A driver receives rows and notifications within its bounds, however many there are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast
from holdfast.definition.check import check
from holdfast.files.find import find
from holdfast.files.reading import Reading
from holdfast.files.tally import Rejects
from support.runtimes import session

WARM = "topic Reading (value float)\nstate Warm on Reading [value > 25; value < 22] per source"
FEW = 128 << 10
"""How many bytes of events the driver of these tests may take, in place of 64 MB."""
LARGER = 8
"""How many times as large as their events the notifications of a range may be: four to five times, and ranges
are not equal."""
SAMPLED = 300 * 160
"""What Spark takes of keys, in bytes, for each range that it is to find."""
ANYHOW = 64 << 10
"""What a job may give besides, such as reports of readers."""


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that replays on Spark, whose driver may take less."""
    from holdfast.runtimes.spark.batch import replay

    monkeypatch.setattr(replay, "FEW", FEW)
    monkeypatch.setattr(replay, "AT_ONCE", FEW)
    monkeypatch.setattr(replay, "REJECTS_AT_ONCE", 1000)
    return replay


Collected = Callable[[], list[tuple[int, int]]]


@pytest.fixture
def collect_tasks() -> Collected:
    """For each stage since then its tasks, and how many bytes they have given to the driver, as Spark counts
    them."""
    context = session()._jsc.sc()
    store = context.statusStore()
    others = [getattr(store, f"stageList$default${i}")() for i in range(2, 6)]

    def stages() -> list[Any]:
        context.listenerBus().waitUntilEmpty()
        found = store.stageList(None, *others)
        return [found.apply(i) for i in range(found.size())]

    latest = max((stage.stageId() for stage in stages()), default=-1)
    return lambda: [(one.numTasks(), one.resultSize()) for one in stages() if one.stageId() > latest]


def test_notifications_reach_the_driver_in_chunks(
    tmp_path: Path, replay: Any, collect_tasks: Collected
) -> None:
    rows = np.arange(30_000)
    columns = {
        "time": pa.array(1_700_000_000 + rows // 20).cast(pa.timestamp("s", "UTC")),
        "source": pa.array(rows % 20).cast(pa.string()),
        "value": 20.0 + 10 * (rows // 20 % 2),
    }
    pq.write_table(pa.table(columns), tmp_path / "readings.parquet", row_group_size=4000)
    emitted = replay.replay(WARM, tmp_path, spark=session())
    assert sum(1 for _ in emitted) == len(rows) - 20  # the first reading of each starts nothing
    parts = sum(report.packed for report in emitted.reports) // FEW
    assert parts > 4
    found = collect_tasks()
    ranges = [size for tasks, size in found if tasks == 1]
    assert max(ranges) <= LARGER * FEW
    assert sum(ranges) > 3 * max(ranges)  # and all together they are more
    assert max(size for _, size in found) <= max(FEW, LARGER * FEW, SAMPLED * parts) + ANYHOW


def test_rejected_rows_reach_the_driver_in_chunks(
    tmp_path: Path, replay: Any, collect_tasks: Collected
) -> None:
    lines = ["time,source,value"]
    for i in range(6_000):
        lines.append(f"{'yesterday' if i % 10 else '2026-01-01T00:00:00Z'},s{i % 7},{i}")
    for part in ("b", "a"):
        (tmp_path / f"{part}.csv").write_text("\n".join([*lines, ""]))
    checked = check(holdfast.parse(WARM))
    files = find([str(tmp_path / "b.csv"), str(tmp_path / "a.csv")], ["Reading"])
    reading = Reading(checked.topics)
    with Rejects(str(tmp_path / "local.jsonl")) as aside:
        list(holdfast.Replay(checked, files, reading, rejects=aside))
    with Rejects(str(tmp_path / "spark.jsonl")) as aside:
        list(replay.Replay(checked, files, reading, rejects=aside, spark=session()))
    found, wanted = (read(tmp_path / f"{engine}.jsonl") for engine in ("spark", "local"))
    assert len(wanted) == 10_800
    assert found == wanted
    assert sum(len(json.dumps(row)) for row in wanted) > 4 * (FEW + ANYHOW)
    assert max(size for _, size in collect_tasks()) <= FEW + ANYHOW


def read(path: Path) -> list[tuple[str, int, str, Any]]:
    rows = map(json.loads, path.read_text().splitlines())
    return [(Path(row["file"]).name, row["row"], row["reason"], row["data"]) for row in rows]


def test_rejected_rows_without_a_rejects_file_are_only_counted(
    tmp_path: Path, replay: Any, collect_tasks: Collected
) -> None:
    rows = (f"{'yesterday' if i % 10 else '2026-01-01T00:00:00Z'},s,{i}" for i in range(6_000))
    (tmp_path / "readings.csv").write_text("\n".join(["time,source,value", *rows, ""]))
    checked = check(holdfast.parse(WARM))
    files = find([str(tmp_path / "readings.csv")], ["Reading"])
    with Rejects() as aside:
        found = replay.Replay(checked, files, Reading(checked.topics), rejects=aside, spark=session())
        assert found.tally.rejected.total() == 5_400
    assert max(size for _, size in collect_tasks()) <= ANYHOW
