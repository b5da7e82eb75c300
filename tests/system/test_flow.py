"""A streaming DataFrame of your own goes in, and notifications come out as a streaming DataFrame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException

import holdfast as hf
from support.chaos import WARM, generate
from support.runtimes import session

NAMES = ("subscription", "scope", "status", "time", "source", "value")


def arriving(folder: Path, **options: Any):
    """The files of a folder as a stream, one in each micro-batch, as anybody would read them."""
    schema = "time timestamp, source string, value double"
    spark = session().newSession()
    spark.conf.set("spark.sql.shuffle.partitions", 2)  # each has a state store and a process in every batch
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder), **options)


def collect(frame, checkpoint: Path) -> list[tuple]:
    """All rows that a stream emits until no input is left."""
    output: list[tuple] = []

    def take(batch, number: int) -> None:
        output.extend(tuple(row[name] for name in NAMES) for row in batch.toArrow().to_pylist())

    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return sorted(output, key=repr)


def replay_rows(app: str, folder: Path) -> list[tuple]:
    return [
        (n.subscription, n.scope, n.status, n.event.time, n.event.source, n.event.attributes["value"])
        for n in hf.replay(app, folder)
    ]


def plain(rows: list[tuple]) -> list[tuple]:
    """Rows with their times in microseconds."""
    return sorted(
        (
            (s, scope, status, hf.instant(time), source, value)
            for s, scope, status, time, source, value in rows
        ),
        key=repr,
    )


@pytest.mark.soak
def test_a_stream_emits_what_a_replay_emits(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    generate(tmp_path / "in", files=2, rows=3_000, sensors=30)
    timely = WARM.replace(" ordered 1 s", "")
    output = collect(hf.spark.stream(timely, arriving(tmp_path / "in")), tmp_path / "checkpoint")
    expected = sorted(replay_rows(timely, tmp_path / "in"), key=repr)
    assert len(expected) > 50
    assert plain(output) == expected


def test_a_stream_continues_from_its_checkpoint_and_orders_disordered_input(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    generate(tmp_path / "in", files=4, rows=3_000, sensors=30)
    names = sorted(path.name for path in (tmp_path / "in").iterdir())
    ordered = "topic Temperature (value float)\nstate Warm on Temperature [value > 25; value < 22] per source"
    expected = sorted(replay_rows(ordered, tmp_path / "in"), key=repr)
    last = (tmp_path / "in" / names[-1]).rename(tmp_path / names[-1])
    (tmp_path / "in" / names[0]).rename(tmp_path / "in" / "swapped")
    (tmp_path / "in" / names[1]).rename(tmp_path / "in" / names[0])
    (tmp_path / "in" / "swapped").rename(tmp_path / "in" / names[1])
    app = f"{ordered} ordered 6 s"
    first = collect(hf.spark.stream(app, arriving(tmp_path / "in"), shards=4), tmp_path / "checkpoint")
    last.rename(tmp_path / "in" / last.name)
    more = collect(hf.spark.stream(app, arriving(tmp_path / "in"), shards=4), tmp_path / "checkpoint")
    end = max(pq.read_table(tmp_path / "in" / last.name).column("time").cast("int64").to_pylist())
    assert first
    assert more
    assert plain(first + more) == [row for row in expected if row[3] < end - 6_000_000]


def test_a_batch_frame_is_refused_where_a_stream_is_required(tmp_path: Path) -> None:
    frame = session().createDataFrame([], "time timestamp, source string, value double")
    with pytest.raises(hf.UsageError, match="for one that ends there is replay"):
        hf.spark.stream(WARM, frame)


TIMELY = WARM.replace(" ordered 1 s", "")


def test_a_stream_on_the_checkpoint_of_another_one_fails_and_changes_no_state(tmp_path: Path) -> None:
    """The first batch fails where the checkpoint was not named beforehand; the right stream continues."""
    (tmp_path / "in").mkdir()
    generate(tmp_path / "in", files=2, rows=300, sensors=30)
    expected = sorted(replay_rows(TIMELY, tmp_path / "in"), key=repr)
    *_, last = sorted(path.name for path in (tmp_path / "in").iterdir())
    (tmp_path / "in" / last).rename(tmp_path / last)

    def run(app: str = TIMELY, shards: int = 4) -> list[tuple]:
        output = hf.spark.stream(app, arriving(tmp_path / "in"), shards=shards)
        return collect(output, tmp_path / "checkpoint")

    first = run()
    (tmp_path / last).rename(tmp_path / "in" / last)
    with pytest.raises(StreamingQueryException, match="the stream has shards=8: pass shards=4"):
        run(shards=8)
    with pytest.raises(StreamingQueryException, match="was written with shards=4"):
        run(shards=2)
    with pytest.raises(StreamingQueryException, match="belongs to another definition"):
        run(app=TIMELY.replace("> 25", "> 24"))
    assert plain(first + run()) == expected


def test_a_named_checkpoint_of_another_stream_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    generate(tmp_path / "in", files=1, rows=300, sensors=30)
    app, checkpoint = TIMELY, tmp_path / "checkpoint"
    incoming = arriving(tmp_path / "in")
    hf.spark.stream(app, incoming, shards=8, checkpoint=checkpoint)  # never started: it claims nothing
    collect(hf.spark.stream(app, incoming, shards=4, checkpoint=checkpoint), checkpoint)
    with pytest.raises(hf.UsageError, match="was written with shards=4, and the stream has shards=8"):
        hf.spark.stream(app, incoming, shards=8, checkpoint=checkpoint)
    with pytest.raises(hf.UsageError, match="belongs to another definition"):
        hf.spark.stream(app.replace("> 25", "> 24"), incoming, shards=4, checkpoint=checkpoint)
    spaced = app.replace("per source", "  per source")
    collect(hf.spark.stream(spaced, incoming, shards=4, checkpoint=checkpoint), checkpoint)
