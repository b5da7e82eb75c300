"""Correlations of five attributes, beside the joins and the windows that people write on Spark.

Files in, files out, each job in a process of its own: first from its start, then again, warm.  Both must
find the same.  ``HOLDFAST_BENCH_SCALE`` makes the data smaller.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq
from numpy.typing import NDArray

from holdfast.engine.machine import CONDITIONS, set_bits
from holdfast.engine.operator import Operator
from holdfast.kinds.correlation.condition import CorrelationCondition
from holdfast.kinds.correlation.plan import operators
from holdfast.model.batch import TIME
from holdfast.model.correlation import Correlation, RangeFilter
from holdfast.model.instant import MINUTE, NEVER, SECOND
from holdfast.model.qos import TIMELY
from holdfast.model.topic import Attribute, Topic

from . import Row, times
from .process import JobTimes, measure_job

SCALE = float(os.environ.get("HOLDFAST_BENCH_SCALE") or 1)
EVENTS = 1_000_000
JOINED = 50_000
"""On so many events the joins are measured; more would take them hours."""
SUBSCRIPTIONS = (100, 10_000)
ATTRIBUTES = ("ambient_temp", "surface_temp", "humidity", "wind_speed", "wind_dir")
STATIONS = 10
WITHIN = 2 * MINUTE
SHARE = 0.2
"""How many of its attribute's readings a filter matches."""
BATCH = 100_000

PEERS = ("interval_join", "range_window")
NAMES = {
    "ours": "holdfast",
    "counted": "holdfast, counted and not written",
    "interval_join": "Spark's joins of intervals",
    "range_window": "Spark's windows over a range of time",
}
"""Every job: ours, and the modules of ``peers``."""

TOPICS = {name: Topic(name, (Attribute("value", "float"),)) for name in ATTRIBUTES}


# --- the data --------------------------------------------------------------------------------------


def readings(events: int, seed: int = 1) -> pa.Table:
    """Stations with five sensors each, every two minutes, not synchronised: waves over days, with noise."""
    rng = np.random.default_rng(seed)
    sensors = STATIONS * len(ATTRIBUTES)
    turn, sensor = np.divmod(np.arange(events), sensors)
    offset = rng.integers(0, 2 * MINUTE, sensors)
    times = turn * 2 * MINUTE + offset[sensor] + rng.integers(0, SECOND, events)
    phase = rng.uniform(0, 7, sensors)
    values = np.sin(turn / 720 * 2 * np.pi + phase[sensor]) + rng.normal(0, 0.3, events)
    order = np.argsort(times, kind="stable")
    return pa.table({
        "micros": times[order],
        "attribute": pa.array(ATTRIBUTES).take(pa.array(sensor[order] % len(ATTRIBUTES))),
        "source": pa.array([f"s{i:02d}" for i in range(sensors)]).take(pa.array(sensor[order])),
        "sequence": np.arange(events),
        "value": values[order],
    })  # fmt: skip


def ranges(subscriptions: int, seed: int = 2) -> NDArray[np.float64]:
    """Of each subscription and attribute the range: around a value between the quartiles."""
    rng = np.random.default_rng(seed)
    sample = np.sort(readings(100_000).column("value").to_numpy())
    middle = rng.uniform(0.25, 0.75, (subscriptions, len(ATTRIBUTES)))
    ends = np.stack([middle - SHARE / 2, middle + SHARE / 2], axis=2)
    return sample[(ends * (len(sample) - 1)).astype(np.int64)]


def correlations(bounds: NDArray[np.float64]) -> list[CorrelationCondition]:
    """The subscriptions ``S0``, ``S1``, …: all five attributes within two minutes."""
    measure_job = tuple((TOPICS[name], "value") for name in ATTRIBUTES)
    found = []
    for i, mine in enumerate(bounds.tolist()):
        filters = (RangeFilter(f"{name}.value", *ends) for name, ends in zip(ATTRIBUTES, mine, strict=True))
        emission = Topic(f"S{i}")
        found.append(
            CorrelationCondition(
                emission.name,
                Correlation(tuple(filters), WITHIN),
                measure_job,
                None,
                "events",
                TIMELY,
                emission,
            )
        )
    return found


def write(folder: Path, events: int, subscriptions: int) -> None:
    """The readings, and the ranges as a table."""
    folder.mkdir(parents=True)
    pq.write_table(readings(events), folder / "events.parquet", row_group_size=BATCH)
    bounds = ranges(subscriptions)
    table = {
        "subscription": np.repeat(np.arange(subscriptions), len(ATTRIBUTES)),
        "of": list(ATTRIBUTES) * subscriptions,
        "low": bounds[:, :, 0].reshape(-1),
        "high": bounds[:, :, 1].reshape(-1),
    }
    pq.write_table(pa.table(table), folder / "ranges.parquet")


# --- the jobs --------------------------------------------------------------------------------------


class Correlating:
    """The machines of many subscriptions over batches, in columns."""

    def __init__(self, subscriptions: int) -> None:
        self.operators = operators(correlations(ranges(subscriptions)))
        self.states = [operator.machine.initial() for operator in self.operators]

    def step(self, table: pa.Table, until: int) -> Iterator[tuple[Operator, pa.RecordBatch]]:
        """What takes part by now: of each machine the events, with the words of its subscriptions."""
        batches = {name: _batch(table, name) for name in ATTRIBUTES}
        for i, operator in enumerate(self.operators):
            self.states[i], emission = operator.machine.step(self.states[i], batches, until)
            yield from ((operator, rows) for rows in emission.rows.values())

    @property
    def size(self) -> int:
        """Bytes of what is remembered."""
        pairs = zip(self.operators, self.states, strict=True)
        return sum(len(operator.machine.dump(state)) for operator, state in pairs)


def _batch(table: pa.Table, name: str) -> pa.RecordBatch:
    mine = table.filter(pc.equal(table.column("attribute"), name)).combine_chunks()
    return pa.RecordBatch.from_pydict({
        "time": mine.column("micros").combine_chunks().cast(TIME),
        "source": mine.column("source").combine_chunks(),
        "sequence": mine.column("sequence").combine_chunks(),
        "value": mine.column("value").combine_chunks(),
    })  # fmt: skip


def ours(folder: Path, output: Path | None, subscriptions: int) -> int:
    """Read the events, find who takes part in what, write it; how many there are."""
    it, found = Correlating(subscriptions), 0
    schema = pa.schema([("subscription", pa.int64()), ("sequence", pa.int64())])
    writer = pq.ParquetWriter(output, schema, use_dictionary=False) if output else None
    file = pq.ParquetFile(folder / "events.parquet")
    for number in range(file.num_row_groups):
        table = file.read_row_group(number)
        until = int(table.column("micros")[-1].as_py())
        for operator, rows in it.step(table, until if number + 1 < file.num_row_groups else NEVER):
            words = rows.column(CONDITIONS).to_numpy()
            found += int(np.count_nonzero(np.unpackbits(words.view(np.uint8))))
            if writer is not None:
                which, numbers = set_bits(words)
                names = np.array([int(mine[0][1:]) for mine in operator.names])
                sequence = rows.column("sequence").to_numpy()[which]
                writer.write_table(pa.table([names[numbers], sequence], schema=schema))
    if writer is not None:
        writer.close()
    return found


def theirs(name: str, folder: Path, output: Path, spark: Any) -> int:
    """The same as a peer does it on Spark."""
    peer = import_module(f".peers.{name}", __package__)
    peer.run(spark, folder, output, list(ATTRIBUTES), WITHIN)
    return int(pyarrow.dataset.dataset(output, format="parquet").count_rows())


def pairs(output: Path) -> pa.Table:
    """What a job has written: subscription and event, sorted."""
    table = pyarrow.dataset.dataset(output, format="parquet").to_table(["subscription", "sequence"])
    return table.sort_by([("subscription", "ascending"), ("sequence", "ascending")])


def job(name: str, spark: Any, folder: Path, output: Path, subscriptions: int) -> int:
    """Do a job once; how many pairs it has found."""
    if name in PEERS:
        return theirs(name, folder, output, spark)
    return ours(folder, output if name == "ours" else None, subscriptions)


# --- the measurements ------------------------------------------------------------------------------


def run(progress: Callable[[str], None]) -> list[Row]:
    """Few and many subscriptions, the joins beside the few, and what is remembered."""
    with TemporaryDirectory(prefix="holdfast-bench-") as folder:
        return list(_rows(Path(folder), progress))


def _rows(folder: Path, progress: Callable[[str], None]) -> Iterator[Row]:
    few, many = SUBSCRIPTIONS
    events, some = max(1_000, int(EVENTS * SCALE)), max(1_000, int(JOINED * SCALE))
    progress(f"generating {events:,} events of {STATIONS * len(ATTRIBUTES)} sensors")
    write(folder / "all", events, few)
    write(folder / "some", some, few)

    def timing_row(name: str, where: str, subscriptions: int = few, repeat: int = 2) -> tuple[JobTimes, Row]:
        size = {"all": events, "some": some}[where]
        what = f"{NAMES[name]}: {size:,} events, {subscriptions:,} subscriptions"
        progress(what)
        it = measure_job(job, name, folder / where, subscriptions, times=repeat, on_spark=name in PEERS)
        progress(f"  {it.best:.2f} s")
        detail = {"events_per_s": size / it.best, "notifications": it.found}
        return it, Row(what, it.best, "s", detail=detail)

    whole, row = timing_row("ours", "all")
    yield row
    small, row = timing_row("ours", "some")
    yield row
    joined, row = timing_row("interval_join", "some")
    assert pairs(joined.output).equals(pairs(small.output)), "the joins found something else"
    yield row
    beside = f"beside {NAMES['interval_join']}"
    yield times(f"{beside}, {some:,} events", joined.best / small.best, least=10)
    scaled = times(f"{beside}, {events:,} events", joined.best / some * events / whole.best, least=10)
    yield replace(scaled, detail={"extrapolated": f"measured on {some:,} events and taken as linear in them"})
    windows, row = timing_row("range_window", "all")
    assert windows.found == whole.found, f"windows found {windows.found}, not {whole.found}"
    yield row
    yield times(f"beside {NAMES['range_window']}, {events:,} events", windows.best / whole.best)
    yield timing_row("counted", "all", many, repeat=1)[1]
    yield from _memory(folder / "all", few)


def _memory(folder: Path, subscriptions: int) -> Iterator[Row]:
    """What is remembered after a tenth of the history and after all of it."""
    it = Correlating(subscriptions)
    table = pq.read_table(folder / "events.parquet")
    sizes = []
    for piece in range(10):
        rows = table.slice(piece * len(table) // 10, len(table) // 10)
        for _ in it.step(rows, int(rows.column("micros")[-1].as_py())):
            pass
        sizes.append(it.size)
    ratio = sizes[-1] / sizes[0]
    detail = {"bytes_after_a_tenth": sizes[0], "bytes_after_all": sizes[-1]}
    what = "remembered after all events, beside after a tenth of them"
    yield Row(what, ratio, "×", "bounded by the window: ≤ 2 ×", ratio <= 2, detail)
