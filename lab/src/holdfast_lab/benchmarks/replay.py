"""Replay in one process, of DataFrames, from a cold start and with many keys, beside Polars and SQL.

Every job runs in a process of its own, once from its start and then again, and all of one data set must find
the same transitions.  ``HOLDFAST_BENCH_SCALE`` makes the data smaller, and the larger numbers of keys;
``HOLDFAST_BENCH_SETS=hourly,1000`` measures some sets of data alone.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq

from holdfast.model.batch import TIME

from . import Row, sets_to_measure, times
from .live import processor
from .process import apart, measure_job
from .spark import FILES, SCALE, JobComparison, definition, write_readings
from .spark import NAMES as PEERS

EVENTS = 50_000_000
HOURLY = 20_200_000
STATIONS = 576
KEYS = (1_000, 100_000, 1_000_000)
AT_MOST = {100_000: 2, 1_000_000: 3}
"""How many times as long as Polars it may take with so many keys."""

OURS = {
    "local": "holdfast, one process",
    "files": "holdfast on Spark: files",
    "frame": "holdfast on Spark: a DataFrame that is a scan",
    "computed": "holdfast on Spark: a DataFrame that is computed",
    "pruned": "holdfast on Spark: a DataFrame that is computed, the columns that queries by hand give",
}
BY_HAND = "by_hand"
NAMES = {**PEERS, BY_HAND: f"{PEERS['lean']}, of the DataFrame that is computed"}
IN_TURNS = ("computed", "pruned", BY_HAND)
ROUNDS, WARMING = 9, 3
"""How often jobs take turns, and how many rounds do not count."""
ON_SPARK = ("files", "frame", "computed", "pruned", "window", "lean", BY_HAND)


# --- the data --------------------------------------------------------------------------------------


def write_hourly(folder: Path, events: int, stations: int = STATIONS, files: int = FILES) -> None:
    """A value of each station every hour: nearly all satisfy the exit, some the entrance for an hour."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    names = pa.array([f"station-{i:04d}" for i in range(stations)])
    hours = max(1, events // stations // files)
    for file in range(files):
        row = np.arange(file * hours * stations, (file + 1) * hours * stations)
        value = rng.gamma(2, 4, len(row)) + 25 * (rng.random(len(row)) < 0.01)
        columns = {
            "time": pa.array(1_500_000_000_000_000 + row // stations * 3_600_000_000).cast(TIME),
            "source": names.take(pa.array(row % stations)),
            "value": value.round(2),
        }
        pq.write_table(pa.table(columns), folder / f"{file}.parquet")


# --- the jobs --------------------------------------------------------------------------------------


def job(name: str, spark: Any, folder: Path, output: Path) -> None:
    """Do a job once: from a folder of readings to a folder of transitions."""
    match name:
        case "local":
            from holdfast.runtimes.local.replay import replay

            output.mkdir()
            pq.write_table(replay(definition(1), folder).to_arrow(), output / "transitions.parquet")
        case "files":
            from holdfast.runtimes.spark.batch.replay import replay as replay_files

            replay_files(definition(1), folder, spark=spark).dataframe.write.parquet(str(output))
        case "frame" | "computed" | "pruned":
            from holdfast.runtimes.spark.frames.replay import replay as replay_frame

            frame = spark.read.parquet(str(folder)) if name == "frame" else _computed_frame(spark, folder)
            found = replay_frame(definition(1), frame)
            found = found.select("time", "source", "status") if name == "pruned" else found
            found.write.parquet(str(output))
        case "by_hand":
            from .peers.lean import query

            query(_computed_frame(spark, folder)).write.parquet(str(output))
        case _:
            peer = import_module(f".peers.{name}", __package__)
            peer.run(spark, folder, output) if name in ON_SPARK else peer.run(folder, output)


def _computed_frame(spark: Any, folder: Path) -> Any:
    """A frame that is more than a scan of files."""
    return spark.read.parquet(str(folder)).selectExpr("time", "source", "value + 0.0D AS value")


# --- the measurements ------------------------------------------------------------------------------


def run(progress: Callable[[str], None]) -> list[Row]:
    """One process, many keys, DataFrames and cold starts, each beside its peers."""
    names = sets_to_measure(SETS)
    with TemporaryDirectory(prefix="holdfast-bench-") as folder:
        return [row for name in names for row in SETS[name](Path(folder), progress)]


def _available_peers() -> list[str]:
    return [name for name in ("in_polars", "in_duckdb") if find_spec(name.removeprefix("in_"))]


def _walks(keys: int, folder: Path, progress: Callable[[str], None]) -> Iterator[Row]:
    """Random walks of sensors that take turns; with few keys, in every way."""
    events, is_few = int(EVENTS * SCALE), keys == KEYS[0]
    many = keys if is_few else max(KEYS[0], int(keys * min(1, SCALE)))
    data = _Data(folder, progress, f"{events:,} events, {many:,} keys")
    write_readings(data.folder, events, many)
    yield from data.rows(["local", *_available_peers(), *(ON_SPARK if is_few else ON_SPARK[:1])])
    yield from data.beside("local", "in_polars", most=AT_MOST.get(keys, 1))
    yield from data.beside("files", "in_polars")
    if is_few:
        yield from data.frames()
        if (window := data.found.get("window")) is not None:
            cold = window.cold / data.found["files"].cold
            yield times("cold: the window query takes of a replay's time", cold, least=6)
    data.remove()


def _at_once(folder: Path, progress: Callable[[str], None]) -> Iterator[Row]:
    """Sensors that report at once, in an order that is not that of their names."""
    events = int(EVENTS * SCALE)
    data = _Data(folder, progress, f"{events:,} events, {KEYS[0]:,} keys, at once and not by name")
    write_readings(data.folder, events, KEYS[0], at_once=True)
    yield from data.rows(["local", *_available_peers()])
    yield from data.beside("local", "in_polars", most=1)
    data.remove()


def _hourly(folder: Path, progress: Callable[[str], None]) -> Iterator[Row]:
    """Values of which nearly all satisfy the exit."""
    data = _Data(folder, progress, f"{int(HOURLY * SCALE):,} hourly rows, {STATIONS} keys")
    write_hourly(data.folder, int(HOURLY * SCALE))
    yield from data.rows(["local", *_available_peers(), *ON_SPARK])
    yield from data.frames()
    data.remove()


def _in_turns(folder: Path, progress: Callable[[str], None]) -> Iterator[Row]:
    """Computed frames beside the query by hand, in one process: seconds of the processor of a whole call,
    which a busy machine changes less than those of the clock."""
    what = f"{int(HOURLY * SCALE):,} hourly rows, {STATIONS} keys, in turns"
    progress(f"generating {what}")
    readings = folder / "readings"
    write_hourly(readings, int(HOURLY * SCALE))
    seconds = apart(turns, list(IN_TURNS), str(readings), ROUNDS)
    shutil.rmtree(readings)
    counted = {name: each[WARMING:] for name, each in seconds.items()}
    for name, each in counted.items():
        label = f"{OURS.get(name) or NAMES[name]}: {what}, seconds of the processor"
        yield Row(label, median(each), "s", detail={"least_s": min(each), "most_s": max(each)})
    for name in IN_TURNS[:-1]:
        ratio = median(counted[name]) / median(counted[BY_HAND])
        yield times(f"{OURS[name]} takes of {NAMES[BY_HAND]}: {what}", ratio, most=1)


def turns(names: list[str], folder: str, rounds: int) -> dict[str, list[float]]:
    """Seconds of the processor of each job in each round; what one does first the other does last."""
    from holdfast.runtimes.spark.session import session

    spark, output = session(), Path(f"{folder}.turn")
    found: dict[str, list[float]] = {name: [] for name in names}
    for i in range(rounds):
        for name in names if i % 2 else reversed(names):
            before = sum(processor().values())
            job(name, spark, Path(folder), output)
            found[name].append(sum(processor().values()) - before)
            shutil.rmtree(output)
    return found


SETS: dict[str, Callable[[Path, Callable[[str], None]], Iterator[Row]]] = {
    **{str(keys): partial(_walks, keys) for keys in KEYS},
    "at-once": _at_once,
    "hourly": _hourly,
    "in-turns": _in_turns,
}
"""The sets of data by name: those of so many keys, and three more."""


class _Data(JobComparison):
    """Readings in files, for jobs that are measured once cold and once warm."""

    def __init__(self, folder: Path, progress: Callable[[str], None], what: str) -> None:
        super().__init__(folder / "readings", progress, what)

    def rows(self, names: list[str]) -> Iterator[Row]:
        """Measure jobs."""
        for name in names:
            run = partial(measure_job, job, name, self.folder, times=2, on_spark=name in ON_SPARK)
            what = f"{OURS.get(name) or NAMES[name]}: {self.what}"
            yield from self.measure(name, what, run, ours=name in OURS)

    def beside(self, ours: str, theirs: str, *, most: float | None = None) -> Iterator[Row]:
        """How long ours takes of theirs, warm, if they could be measured."""
        if theirs in self.found:
            ratio = self.found[ours].warm / self.found[theirs].warm
            yield times(f"{OURS[ours]} takes of {NAMES[theirs]}: {self.what}", ratio, most=most)

    def frames(self) -> Iterator[Row]:
        """DataFrames beside the best query by hand."""
        for ours, theirs in (("frame", "lean"), ("computed", BY_HAND), ("pruned", BY_HAND)):
            yield from self.beside(ours, theirs, most=1)
