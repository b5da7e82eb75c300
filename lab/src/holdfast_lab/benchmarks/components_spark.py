"""Congestion per road on Spark: replay and live beside the rolling windows that people write there.

Every job runs in a process of its own: once from the start of the process, then again, warm.  All
must find the same transitions.  ``HOLDFAST_BENCH_SCALE`` makes the data smaller.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq

from holdfast.model.batch import TIME

from . import Row
from .components import CONGESTION, ROADS, traffic

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
    found: dict[str, Measured] = {}
    for name in NAMES:
        progress(NAMES[name])
        it = found[name] = measured(name, readings)
        if name != "shorter":
            assert it.transitions.equals(found["replay"].transitions), f"{name} found other transitions"
        progress(f"  {it.warm:.1f} s warm, {it.cold:.1f} s with start-up")
        yield Row(
            f"{NAMES[name]}: {size:,} events, {ROADS:,} roads",
            it.warm,
            "s",
            detail={
                "with_start_up_s": it.cold,
                "worst_s": it.worst,
                "events_per_s": size / it.warm,
                "transitions": len(it.transitions),
            },
        )
    ours, theirs, shorter = found["replay"], found["rolling"], found["shorter"]
    yield _times("replay, beside rolling windows, warm", theirs.warm / ours.warm, least=3)
    yield _times("replay, beside rolling windows, with start-up", theirs.cold / ours.cold)
    yield _times("replay, beside rolling windows at readings alone, warm", shorter.warm / ours.warm)
    live = found["live"]
    yield Row("live, readings a second, exactly once", size / live.warm, "events/s")
    state = live.state / ROADS
    yield Row("live, state of one road in Spark's state store", state, "bytes", detail={"roads": ROADS})


def _times(what: str, value: float, least: float | None = None) -> Row:
    goal, met = (None, None) if least is None else (f"≥ {least:g} ×", value >= least)
    return Row(what, value, "×", goal, met)


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
            from holdfast.runtimes.spark.history.replay import replay

            replay(CONGESTION, folder, spark=spark).dataframe.write.parquet(str(output))
        case "live":
            return _live(spark, folder, output)
        case _:
            rolling.run(spark, folder, output, exact=name == "rolling")
    return 0


def _live(spark: Any, folder: Path, output: Path) -> int:
    """A file a batch, exactly once."""
    from holdfast.runtimes.spark.live.query import live, run

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


def measure(name: str, folder: str, output: str, repeat: int) -> None:
    """In a process of its own: do a job, say when it was done, and do it again."""
    from holdfast.runtimes.spark.session import session

    spark = session()
    state = job(name, spark, Path(folder), Path(output))
    done, seconds = time.time(), []
    for i in range(repeat):
        again = Path(f"{output}.{i}")
        start = time.perf_counter()
        job(name, spark, Path(folder), again)
        seconds.append(time.perf_counter() - start)
        shutil.rmtree(again)
        shutil.rmtree(f"{again}.checkpoint", ignore_errors=True)
    print(json.dumps([done, seconds, state]))


@dataclass(frozen=True)
class Measured:
    """Seconds of a job: from the start of its process, and warm; what it found, and keeps."""

    cold: float
    warm: float
    worst: float
    transitions: pa.Table
    state: int


def measured(name: str, folder: Path, repeat: int = 1) -> Measured:
    """A job, measured."""
    output = folder.parent / name
    code = f"from {__name__} import measure; measure({name!r}, {str(folder)!r}, {str(output)!r}, {repeat})"
    start = time.time()
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if ran.returncode:
        raise RuntimeError(f"{NAMES[name]}: {ran.stderr[-2000:]}")
    done, seconds, state = json.loads(ran.stdout.splitlines()[-1])
    return Measured(done - start, min(seconds), max(seconds), transitions(output), state)


def transitions(output: Path) -> pa.Table:
    """What a job has found, sorted: road, time, status, and the mean speed to six places."""
    form = {"scope": pa.string(), "time": TIME, "status": pa.string(), "level": pa.float64()}
    table = pyarrow.dataset.dataset(output, format="parquet").to_table(columns=list(form))
    table = table.cast(pa.schema(list(form.items())))
    table = table.set_column(3, "level", pc.round(table.column("level"), 6))
    return table.sort_by([(name, "ascending") for name in ("scope", "time")])
