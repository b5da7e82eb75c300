"""``spark.read.format("holdfast")``: only relevant rows leave the readers."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import holdfast as hf
from support.chaos import WARM, generate
from support.runtimes import session

TIMELY = WARM.replace(" ordered 1 s", "")


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    generate(folder, files=3, rows=3_000, sensors=30)
    session().dataSource.register(hf.spark.HoldfastSource)
    return folder


def as_rows(rows: list[dict]) -> list[tuple]:
    names = ("subscription", "scope", "status", "time", "value")
    return sorted(tuple(row[name] for name in names) for row in rows)


def replay_rows(folder: Path, path: Path) -> list[tuple]:
    from holdfast.runtimes.table import to_table

    notifications = list(hf.replay(TIMELY, folder))
    assert len(notifications) > 50
    return as_rows(to_table(hf.parse(TIMELY).check().topics, notifications).to_pylist())


def test_history_is_compacted_where_it_is_read(readings: Path) -> None:
    source = session().read.format("holdfast").option("definition", TIMELY)
    frame = source.load(str(readings))
    whole = sum(pq.read_metadata(path).num_rows for path in readings.iterdir())
    assert 50 < frame.count() < whole / 2
    output = hf.spark.replay(TIMELY, frame).toArrow().to_pylist()
    assert as_rows(output) == replay_rows(readings, readings.parent)


def test_a_stream_of_arriving_files_gives_the_notifications_of_a_replay(
    readings: Path, tmp_path: Path
) -> None:
    source = session().readStream.format("holdfast").option("definition", TIMELY).option("settle", "0")
    frame = source.option("log", str(tmp_path / "log")).load(str(readings))
    output: list[dict] = []
    query = (
        hf.spark.stream(TIMELY, frame)
        .writeStream.foreachBatch(lambda batch, _: output.extend(batch.toArrow().to_pylist()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert as_rows(output) == replay_rows(readings, tmp_path)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs the option 'definition'"),
        ({"definition": TIMELY, "zon": "UTC"}, "has no option 'zon'. Did you mean 'zone'"),
        ({"definition": "topic T (v float)\nfilter F on U where v > 1"}, "U"),
        ({"definition": TIMELY, "bad": "maybe"}, "'fail', or one can 'drop'"),
    ],
)
def test_an_error_names_the_wrong_option_of_the_data_source(
    readings: Path, options: dict[str, str], message: str
) -> None:
    with pytest.raises(Exception, match=message):
        session().read.format("holdfast").options(**options).load(str(readings)).count()
