"""Congestion per road on Spark: replay and live beside the rolling windows that people write there.

Every job runs in a process of its own: once from the start of the process, then again, warm.  All
must find the same transitions.  ``HOLDFAST_BENCH_SCALE`` makes the data smaller.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq

from holdfast.model.batch import TIME

from . import Row, times
from .process import JobTimes, measure_job
from .traffic import CONGESTION, ROADS, traffic

EVENTS = int(6_000_000 * float(os.environ.get("HOLDFAST_BENCH_SCALE") or 1))
FILES = 8
NAMES = {
    "replay": "holdfast replay on Spark",
    "rolling": "Spark's rolling windows at every reading and where one leaves",
    "live": "holdfast live",
    "shorter": "Spark's rolling windows at readings alone, which finds some later",
}


def rows(progress: Callable[[str], None], size: int = EVENTS) -> list[Row]:
    """Replay and live of so many readings of congested roads, beside a window query."""
    with TemporaryDirectory(prefix="holdfast-bench-") as folder:
        return list(_rows(Path(folder), progress, size))


def _rows(folder: Path, progress: Callable[[str], None], size: int) -> Iterator[Row]:
    progress(f"generating {size:,} events of {ROADS:,} roads in {FILES} files")
    readings = folder / "readings"
    write_readings(readings, size)
    found: dict[str, JobTimes] = {}
    expected: pa.Table | None = None
    for name in NAMES:
        progress(NAMES[name])
        it = found[name] = measure_job(job, name, readings)
        notifications = transitions(it.output)
        expected = notifications if expected is None else expected
        assert name == "shorter" or notifications.equals(expected), f"{name} found other transitions"
        progress(f"  {it.warm:.1f} s warm, {it.cold:.1f} s with start-up")
        what = f"{NAMES[name]}: {size:,} events, {ROADS:,} roads"
        yield Row(what, it.warm, "s", detail=it.detail(size, transitions=len(notifications)))
    ours, theirs, shorter = found["replay"], found["rolling"], found["shorter"]
    yield times("replay, beside rolling windows, warm", theirs.warm / ours.warm, least=3)
    yield times("replay, beside rolling windows, with start-up", theirs.cold / ours.cold)
    yield times("replay, beside rolling windows at readings alone, warm", shorter.warm / ours.warm)
    live = found["live"]
    yield Row("live, readings a second, exactly once", size / live.warm, "events/s")
    state = live.found / ROADS
    yield Row("live, state of one road in Spark's state store", state, "bytes", detail={"roads": ROADS})


def write_readings(folder: Path, events: int) -> None:
    """Both topics in each file, in order of time; the files follow one another."""
    folder.mkdir()
    tables = [
        pa.Table.from_batches([batch]).append_column("topic", pa.repeat(topic, len(batch)))
        for some in traffic(events, ROADS)
        for topic, batch in some.items()
    ]
    whole = pa.concat_tables(tables).sort_by("time")
    each = -(-len(whole) // FILES)
    for i in range(FILES):
        pq.write_table(whole.slice(i * each, each), folder / f"{i}.parquet")


# --- the jobs --------------------------------------------------------------------------------------


def job(name: str, spark: Any, folder: Path, output: Path) -> int:
    """Do a job once: from a folder of readings to a folder of transitions; the bytes of state it keeps."""
    from .peers import rolling

    match name:
        case "replay":
            from holdfast.runtimes.spark.batch.replay import replay

            replay(CONGESTION, folder, spark=spark).dataframe.write.parquet(str(output))
        case "live":
            return _live(spark, folder, output)
        case _:
            rolling.run(spark, folder, output, exact=name == "rolling")
    return 0


def _live(spark: Any, folder: Path, output: Path) -> int:
    """A file a batch, exactly once."""
    from holdfast.runtimes.spark.streaming.query import live, run

    checkpoint = Path(f"{output}.checkpoint")
    how: dict[str, Any] = {
        "sink": f"parquet:{output}",
        "every": None,
        "settle": 0,
        "batch_bytes": 1,
        "finish": True,
    }
    run(live(CONGESTION, folder, checkpoint=checkpoint, **how), spark)
    return _state(spark, checkpoint)


def _state(spark: Any, checkpoint: Path) -> int:
    """How many bytes the states of the shards have."""
    reader = spark.read.format("statestore").option("stateVarName", "shard")
    states = reader.load(str(checkpoint / "spark")).selectExpr("length(value.state) AS size")
    return sum(row.size for row in states.collect())


def transitions(output: Path) -> pa.Table:
    """What a job has found, sorted: road, time, status, and the mean speed to six places."""
    form = {"scope": pa.string(), "time": TIME, "status": pa.string(), "level": pa.float64()}
    table = pyarrow.dataset.dataset(output, format="parquet").to_table(columns=list(form))
    table = table.cast(pa.schema(list(form.items())))
    table = table.set_column(3, "level", pc.round(table.column("level"), 6))
    return table.sort_by([(name, "ascending") for name in ("scope", "time")])
