"""Guarded states: an event through ten of them, a million keys as time goes on, a window query by hand, and
history on Spark beside a plain state (``HOLDFAST_BENCH_SCALE`` makes that smaller)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.kinds.state.duration.machine import DurationMachine
from holdfast.model.batch import TIME
from holdfast.model.event import Event
from holdfast.model.instant import MINUTE, SECOND
from holdfast.plan.compile import operators
from holdfast.runtimes.local.engine import Engine

from . import Row, measure_time, times
from .process import measure_job
from .spark import SCALE, write_readings

TOPIC = "topic T (value float)\n"
GUARDED = "[value > 25 for 5 min; value < 22]"
EVENTS, KEYS = 2_000_000, 1_000
TODAY = 1_700_000_000 * SECOND


def run(progress: Callable[[str], None]) -> list[Row]:
    return [*single(progress), *advancing(progress), *by_hand(progress), *on_spark(progress)]


def single(progress: Callable[[str], None], events: int = 5_000) -> Iterator[Row]:
    """One event at a time, in the time of this process: the machine may be busy."""
    progress("one event through ten guarded states with a table")
    states = (
        f"state W{i} on T [value > Limits.high + {i / 10} for 5 min; value < Limits.low || "
        f"silent {10 + i} min] per source\n"
        for i in range(10)
    )
    text = TOPIC + 'table Limits "limits.csv" (source text, high float, low float)\n' + "".join(states)
    limits = pa.table({"source": [f"s{i}" for i in range(100)], "high": [25.0] * 100, "low": [22.0] * 100})
    values = np.random.default_rng(1).uniform(15, 30, events).tolist()
    some = [Event("T", TODAY + i * SECOND, f"s{i % 100}", {"value": v}, i) for i, v in enumerate(values)]

    def push_once() -> None:
        engine = Engine(text, tables={"Limits": limits})
        for event in some:
            engine.push(event)

    each = measure_time(push_once, repeat=5, clock=time.process_time).best / events * 1e6
    yield Row("one event through ten guarded, tabled states", each, "µs", "≤ 40 µs", each <= 40)


def advancing(progress: Callable[[str], None], keys: int = 1_000_000) -> Iterator[Row]:
    """Many keys with guard and silence: their memory, and what a minute costs in which they say nothing."""
    progress(f"{keys:,} keys as time goes on")
    machine = machine_of("[value > 25 for 5 min; value < 22 || silent 10 min]")
    state, draw = machine.initial(), np.random.default_rng(1)
    batch = batch_of(
        np.sort(draw.integers(0, MINUTE, keys)), draw.permutation(keys), draw.uniform(15, 30, keys)
    )
    state, _ = machine.step(state, {"T": batch}, MINUTE)
    size = state.nbytes / 1e6
    yield Row(f"memory of {keys:,} keys", size, "MB", "≤ 250 MB", size <= 250)
    spent = []
    for minute in range(2, 15):
        start = time.process_time()
        state, _ = machine.step(state, {}, minute * MINUTE)
        spent.append((time.process_time() - start) / keys * 1e6)
    mean = sum(spent) / len(spent)
    yield Row("a minute of advance, each key", mean, "µs", "≤ 1 µs", mean <= 1, {"worst": max(spent)})


def by_hand(progress: Callable[[str], None], events: int = EVENTS, keys: int = KEYS) -> Iterator[Row]:
    """A guard over history, beside what people write in its place."""
    progress("a guard over history, beside a query by hand in Polars")
    draw = np.random.default_rng(1)
    moments = np.sort(draw.integers(0, 24 * 60 * MINUTE, events))
    values = np.repeat(draw.uniform(15, 30, events // 64 + 1), 64)[:events]
    batch = batch_of(moments, draw.integers(0, keys, events), values)
    machine = machine_of(GUARDED)

    def ours() -> int:
        _, emission = machine.step(machine.initial(), {"T": batch}, int(moments[-1]))
        return len(emission.rows["T"])

    ours()  # compiled once
    mine, theirs = measure_time(ours, repeat=3), measure_time(lambda: in_polars(batch), repeat=3)
    assert mine.result == theirs.result, (mine.result, theirs.result)
    yield Row("events with a guard", events / mine.best / 1e6, "M/s")
    yield times("a guard, beside a query by hand in Polars", theirs.best / mine.best, least=1)


def on_spark(progress: Callable[[str], None], events: int = 50_000_000, repeat: int = 2) -> Iterator[Row]:
    """History on Spark: what a guard, a table and a count over states cost beside a plain state."""
    size = f"{int(events * SCALE):,} events, {KEYS:,} sensors"
    with TemporaryDirectory(prefix="holdfast-bench-") as scratch:
        folder = Path(scratch) / "readings"
        progress(f"generating {size}")
        write_readings(folder, int(events * SCALE), KEYS)
        found = {}
        for name in HISTORY:
            progress(f"{name}: {size}")
            it = found[name] = measure_job(job, name, folder, times=1 + repeat)
            emission = pyarrow.dataset.dataset(it.output, format="parquet").count_rows()
            it.remove()
            yield Row(f"{name}: {size}", it.warm, "s", detail=it.detail(int(events * SCALE), told=emission))
        plain, alarms = (found[name].warm for name in HISTORY)
        yield times("guard, table and count on Spark, of a plain state's time", alarms / plain, most=2.5)


HISTORY = {
    "a plain state": "state Warm on Temperature [value > 25; value < 22] per source\n",
    "guard, table and count": """table Limits "" (source text, high float, low float)
state Warm on Temperature [value > Limits.high for 5 min; value < Limits.low] per source
state Many = at least 500 of Warm until fewer than 400
""",
}


def job(name: str, spark: Any, folder: Path, output: Path) -> None:
    """A definition of ``HISTORY``, from a folder of readings to a folder of notifications."""
    from holdfast.runtimes.spark.batch.replay import replay

    sources = [f"sensor-{i:06d}" for i in range(KEYS)]
    limits = pa.table({"source": sources, "high": [25.0] * KEYS, "low": [22.0] * KEYS})
    text = "topic Temperature (value float)\n" + HISTORY[name]
    replay(text, folder, spark=spark, tables={"Limits": limits}).dataframe.write.parquet(str(output))


def machine_of(state: str) -> DurationMachine:
    (operator,) = operators(check(parse(f"{TOPIC}state W on T {state} per source")))
    assert isinstance(operator.machine, DurationMachine)
    return operator.machine


def batch_of(moments: np.ndarray, sources: np.ndarray, values: np.ndarray) -> pa.RecordBatch:
    names = pa.array([f"sensor-{i:07d}" for i in range(int(sources.max()) + 1)])
    columns = {
        "time": pa.array(moments).cast(TIME),
        "source": pa.DictionaryArray.from_arrays(pa.array(sources.astype(np.int32)), names),
        "sequence": pa.array(np.arange(len(moments))),
        "value": pa.array(values),
    }
    return pa.RecordBatch.from_pydict(columns)


def in_polars(batch: pa.RecordBatch) -> int:
    """How often ``GUARDED`` starts and ends: runs above 25 that last, and readings below 22, in turn."""
    import polars as pl

    guard = pl.duration(minutes=5)
    end = batch.column("time")[-1].as_py()
    rows = pl.DataFrame(pl.from_arrow(pa.Table.from_batches([batch]))).sort("source", "time", "sequence")
    rows = rows.with_columns(
        run=(pl.col("value") > 25).rle_id().over("source"),
        after=pl.col("time").shift(-1).over("source").fill_null(end + np.timedelta64(1, "us").astype(object)),
    )
    runs = rows.filter(pl.col("value") > 25).group_by("source", "run").agg(
        pl.col("time").first(), pl.col("time").last().alias("last"), pl.col("after").last()
    )  # fmt: skip
    starts = runs.filter(
        (pl.col("last") - pl.col("time") >= guard) | (pl.col("after") - pl.col("time") > guard)
    ).select("source", pl.col("time") + guard, on=pl.lit(True))
    ends = rows.filter(pl.col("value") < 22).select("source", "time", on=pl.lit(False))
    turns = pl.concat([starts, ends]).sort("source", "time")
    before = pl.col("on").shift(1).over("source").fill_null(False)
    return turns.filter(pl.col("on") != before).height
