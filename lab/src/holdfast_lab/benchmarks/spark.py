"""Replay and live on Spark, beside what people write there, Polars and DuckDB: files in, files out.

Every job runs in a process of its own: once from the start of the process, then again, warm.  All
must find the same transitions.  ``HOLDFAST_BENCH_SCALE`` makes the data smaller.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.model.batch import TIME

from . import Row, failure_row, times
from .process import Failed, JobTimes, measure_job

SCALE = float(os.environ.get("HOLDFAST_BENCH_SCALE") or 1)
EVENTS = (10_000_000, 50_000_000)
SENSORS = (1_000, 100_000)
FILES = 8
SUBSCRIPTIONS = 50

TOPIC = "topic Temperature (value float)\n"
OURS = ("holdfast", "live")
ON_SPARK = ("holdfast", "live", "window", "lean", "grouped", "keyed")
NAMES = {
    "holdfast": "holdfast replay",
    "live": "holdfast live",
    "window": "Spark's window query with lag",
    "lean": "Spark's lag over what is left of a filter",
    "grouped": "Spark's applyInPandas",
    "keyed": "Spark's transformWithStateInPandas",
    "in_polars": f"Polars, {os.cpu_count()} threads",
    "in_duckdb": f"DuckDB, {os.cpu_count()} threads",
}
"""Every job: ours, and the modules of ``peers``."""


# --- the data --------------------------------------------------------------------------------------


def write_readings(
    folder: Path, events: int, sensors: int, files: int = FILES, *, at_once: bool = False
) -> None:
    """Random walks of sensors that take turns, between 18 and 29; the files follow one another in time.

    Sensors report one after the other in the order of their names, or all of them ``at_once``, in another.
    """
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    names = pa.array([f"sensor-{i:06d}" for i in range(sensors)])
    if at_once:
        names = names.take(pa.array(rng.permutation(sensors)))
    at = rng.uniform(0, 22, sensors)
    steps = max(2, events // sensors // files)
    for file in range(files):
        walks = rng.normal(0, 0.2, (steps, sensors))
        walks[0] += at
        np.cumsum(walks, axis=0, out=walks)
        at = walks[-1]
        row = np.arange(file * walks.size, (file + 1) * walks.size)
        instant = row // sensors * sensors if at_once else row
        columns = {
            "time": pa.array(1_700_000_000_000_000 + 1_000 * instant).cast(TIME),
            "source": names.take(pa.array(row % sensors)),
            "value": (18 + np.abs(walks % 22 - 11)).reshape(-1).round(2),
        }
        pq.write_table(pa.table(columns), folder / f"{file}.parquet")


def definition(subscriptions: int) -> str:
    """So many states with thresholds of their own; the first is the one that peers compute."""
    states = (
        f"state {f'Warm{i}' if i else 'Warm'} on Temperature "
        f"[value > {25 + i / 25}; value < {22 - i / 25}] per source"
        for i in range(subscriptions)
    )
    return TOPIC + "\n".join(states)


# --- the jobs --------------------------------------------------------------------------------------


def job(name: str, spark: Any, folder: Path, output: Path, subscriptions: int = 1) -> None:
    """Do a job once: from a folder of readings to a folder of transitions."""
    match name:
        case "holdfast":
            _replay(spark, folder, output, subscriptions)
        case "live":
            _live(spark, folder, output, subscriptions)
        case _:
            peer = import_module(f".peers.{name}", __package__)
            peer.run(spark, folder, output) if name in ON_SPARK else peer.run(folder, output)


def _replay(spark: Any, folder: Path, output: Path, subscriptions: int) -> None:
    from holdfast.runtimes.spark.batch.replay import replay

    replay(definition(subscriptions), folder, spark=spark).dataframe.write.parquet(str(output))


def _live(spark: Any, folder: Path, output: Path, subscriptions: int) -> None:
    """A file a batch, as ``keyed`` has it, exactly once."""
    from holdfast.files.reading import Reading
    from holdfast.runtimes.spark.streaming.log import folders
    from holdfast.runtimes.spark.streaming.query import Live, run

    checked = check(parse(definition(subscriptions)))
    live = Live(
        checked,
        Reading(checked.topics),
        folders([f"dir:{folder}"], ["Temperature"]),
        checkpoint=Path(f"{output}.checkpoint"),
        sink=f"parquet:{output}",
        every=None,
        settle=0,
        batch_bytes=1,
    )
    run(live, spark)


def transitions(output: Path) -> pa.Table:
    """What a job has found of the first subscription, sorted: source, time, status."""
    data = pyarrow.dataset.dataset(output, format="parquet")
    mine = pyarrow.dataset.field("subscription") == "Warm" if "subscription" in data.schema.names else None
    table = data.to_table(columns=["source", "time", "status"], filter=mine)
    table = table.cast(pa.schema([("source", pa.string()), ("time", TIME), ("status", pa.string())]))
    return table.sort_by([(name, "ascending") for name in table.schema.names])


# --- the measurements ------------------------------------------------------------------------------


def run(progress: Callable[[str], None]) -> list[Row]:
    """Replay beside five peers, live beside one; more events, more sensors, more subscriptions."""
    with TemporaryDirectory(prefix="holdfast-bench-") as folder:
        return list(_rows(Path(folder), progress))


def _rows(folder: Path, progress: Callable[[str], None]) -> Iterator[Row]:
    few, many = (int(events * SCALE) for events in EVENTS)
    installed = [name for name in ("in_polars", "in_duckdb") if find_spec(name.removeprefix("in_"))]
    bench = partial(_Bench, folder, progress)

    small = bench(few, SENSORS[0])
    yield from small.rows(["holdfast", "window", "lean", *installed])
    yield from small.rows(["grouped", "live", "keyed"], repeat=1)
    live, keyed = small.found["live"], small.found.get("keyed")
    if keyed is not None:
        beside = f"live, beside the state of each key in Spark, {few:,} events"
        yield times(f"{beside}, warm", keyed.warm / live.warm)
        yield times(f"{beside}, with start-up", keyed.cold / live.cold)
    small.remove()

    large = bench(many, SENSORS[0])
    yield from large.rows(["holdfast", "window", "lean", *installed])
    yield from large.rows(["live"], repeat=1)
    if keyed is not None:
        rate = large.events / large.found["live"].warm / (small.events / keyed.warm)
        what = f"live, events a second, {many:,} beside {few:,} with the state of each key in Spark, warm"
        yield times(what, rate, least=10)
    ours = large.found["holdfast"]
    if (window := large.found.get("window")) is not None:
        yield times("replay, beside the window query, warm", window.warm / ours.warm, least=8)
        yield times("replay, beside the window query, with start-up", window.cold / ours.cold, least=4)
    if (polars := large.found.get("in_polars")) is not None:
        yield times("replay takes of Polars' time, warm", ours.warm / polars.warm, most=2)
    yield times("five times the events take", ours.warm / small.found["holdfast"].warm)
    yield from large.rows(["holdfast"], subscriptions=SUBSCRIPTIONS)
    fifty = large.found["holdfast"]
    yield times(f"{SUBSCRIPTIONS} subscriptions take of one, warm", fifty.warm / ours.warm, most=5)
    large.remove()

    for events in (few, many):
        wide = bench(events, max(1, int(SENSORS[1] * min(1, SCALE * 10))))
        yield from wide.rows(["holdfast", "window", *installed], repeat=1)
        wide.remove()


class JobComparison:
    """A set of readings, and the jobs measured on it; every job must find the same transitions."""

    def __init__(self, folder: Path, progress: Callable[[str], None], what: str) -> None:
        progress(f"generating {what}")
        self.found: dict[str, JobTimes] = {}
        self.folder, self.what = folder, what
        self._progress = progress
        self._transitions: pa.Table | None = None

    @cached_property
    def events(self) -> int:
        return pyarrow.dataset.dataset(self.folder, format="parquet").count_rows()

    def measure(self, name: str, what: str, job: Callable[[], JobTimes], *, ours: bool) -> Iterator[Row]:
        """Measure a job; the row of a peer that fails has the reason instead of a time."""
        self._progress(what)
        try:
            measured = job()
        except Failed as error:
            if ours:
                raise
            self._progress(f"  failed: {error.reason}")
            yield failure_row(what, error.reason)
            return
        self.found[name] = measured
        found = transitions(measured.output)
        measured.remove()
        if self._transitions is None:
            self._transitions = found
        assert found.equals(self._transitions), f"{name} found other transitions"
        self._progress(f"  {measured.warm:.1f} s warm, {measured.cold:.1f} s with start-up")
        yield Row(what, measured.warm, "s", detail=measured.detail(self.events, transitions=len(found)))

    def remove(self) -> None:
        """Free the disk."""
        shutil.rmtree(self.folder)


class _Bench(JobComparison):
    """Readings of so many sensors, for jobs with one or more subscriptions."""

    def __init__(self, folder: Path, progress: Callable[[str], None], events: int, sensors: int) -> None:
        super().__init__(folder / f"{events}-{sensors}", progress, f"{events:,} events, {sensors:,} sensors")
        write_readings(self.folder, events, sensors)

    def rows(self, names: list[str], *, subscriptions: int = 1, repeat: int = 2) -> Iterator[Row]:
        """Measure jobs, and compare each peer with us."""
        many = f", {subscriptions} subscriptions" if subscriptions > 1 else ""
        for name in names:
            run = partial(measure_job, job, name, self.folder, subscriptions)
            run = partial(run, times=1 + repeat, on_spark=name in ON_SPARK)
            for row in self.measure(name, f"{NAMES[name]}: {self.what}{many}", run, ours=name in OURS):
                if name not in OURS and row.value is not None:
                    row.detail["holdfast_is_times_faster"] = (
                        self.found[name].warm / self.found["holdfast"].warm
                    )
                yield row
