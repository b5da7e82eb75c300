"""Congestion per road: components in this process, beside the reference machine and Polars."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.engine.machine import transitions
from holdfast.kinds.component.compile import component_group
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.group import ComponentGroup, GroupState
from holdfast.model.batch import concatenate, times
from holdfast.model.event import Transition
from holdfast.model.instant import NEVER, SECOND
from holdfast.runtimes.local.replay import replay

from . import Row, Timing, component_kinds, components_spark, measure_time
from .process import apart
from .traffic import CONGESTION, PERIOD, ROADS, SENSORS, TOPICS, traffic

EVENTS = 6_000_000
LOOKED_AT = 20_000  # the reference machine is measured on fewer

Found = list[tuple[str, str, int]]
"""(road, status, time) of every transition, in order."""


def run(progress: Callable[[str], None]) -> list[Row]:
    """Throughput with peers, of every kind, state, memory; and on Spark."""
    return [
        *throughput(progress),
        *component_kinds.rows(progress),
        *growth(progress),
        *components_spark.rows(progress),
    ]


def _machine() -> ComponentGroup:
    checked = check(parse(CONGESTION))
    return component_group(checked.of(ComponentCondition), checked.topics)


def _step(it: ComponentGroup, batches: Iterator[dict[str, pa.RecordBatch]]) -> tuple[GroupState, Found]:
    state, found = it.initial(), list[Transition]()
    for some in batches:
        until = min(int(times(batch)[-1]) for batch in some.values())
        state, emission = it.step(state, some, until)
        found += transitions(it.topics, emission)
    state, last = it.advance(state, NEVER)
    return state, [(t.scope or "", t.status, t.event.time) for t in found + last]


# --- throughput --------------------------------------------------------------------------------


def throughput(progress: Callable[[str], None]) -> Iterator[Row]:
    """Events per second in columns, from files, by the reference machine, and by Polars."""
    progress(f"generating {EVENTS:,} events of {ROADS:,} roads")
    history = list(traffic(EVENTS, ROADS))
    it = _machine()
    progress("holdfast: columnar plan, one core")
    _step(it, traffic(min(EVENTS, 40_000), ROADS))  # loads the compiled kernels
    ours = measure_time(lambda: _step(it, iter(history))[1], 3)
    rate = EVENTS / ours.best
    yield Row(
        f"events per second, congestion of {ROADS:,} roads, two windows",
        rate,
        "events/s",
        "≥ 1 M/s",
        rate >= 1e6,
        {"events": EVENTS, "transitions": len(ours.result), "worst_s": ours.worst},
    )
    progress("holdfast: replay of Parquet files")
    yield _replay(history, ours.result)
    progress(f"the reference machine, {LOOKED_AT:,} events")
    few = list(traffic(LOOKED_AT, ROADS))
    reference = measure_time(lambda: _step(it.without_plans(), iter(few))[1], 1)
    yield _beside("the reference machine", reference, LOOKED_AT, rate, _step(it, iter(few))[1])
    if find_spec("polars"):
        progress("Polars")
        whole = {topic: concatenate(some[topic] for some in history) for topic in TOPICS}
        polars = measure_time(partial(_in_polars, whole), 2)
        yield _beside(f"Polars, {os.cpu_count()} threads", polars, EVENTS, rate, ours.result)


def _replay(history: list[dict[str, pa.RecordBatch]], expected: Found) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        files = {topic: Path(folder, f"{topic}.parquet") for topic in TOPICS}
        for topic, file in files.items():
            pq.write_table(pa.Table.from_batches([some[topic] for some in history]), file)
        inputs = [f"{topic}={file}" for topic, file in files.items()]
        timing = measure_time(lambda: list(replay(CONGESTION, *inputs)), 2)
    found = [(n.scope or "", n.status, n.event.time) for n in timing.result]
    assert found == expected, f"a replay found {len(found)} transitions, not {len(expected)}"
    rate = EVENTS / timing.best
    detail = {"events": EVENTS, "transitions": len(found), "worst_s": timing.worst}
    return Row(
        "the same from Parquet files, read and sorted", rate, "events/s", "≥ 1 M/s", rate >= 1e6, detail
    )


def _beside(name: str, timing: Timing, events: int, rate: float, expected: Found) -> Row:
    assert timing.result == expected, f"{name} found other transitions than the columnar plan"
    theirs = events / timing.best
    detail = {"events": events, "transitions": len(expected), "holdfast_is_times_faster": rate / theirs}
    return Row(f"the same by {name}", theirs, "events/s", detail=detail)


def _in_polars(whole: dict[str, pa.RecordBatch]) -> Found:
    """Rolling means per road at every instant, the bit as a forward fill; right because the two
    predicates exclude one another."""
    import polars as pl

    widths = dict(zip(TOPICS, (30, 60), strict=True))
    frames = []
    for topic, batch in whole.items():
        frame = pl.DataFrame(pl.from_arrow(batch.select(["time", "place", "value"]))).rename({"value": topic})
        left = pl.col("time") + pl.duration(seconds=widths[topic], microseconds=1)
        frames += [frame, frame.select(left, "place")]
    end = max(int(times(batch)[-1]) for batch in whole.values())
    instants = (
        pl.concat(frames, how="diagonal")
        .filter(pl.col("time").to_physical() <= end)
        .group_by("place", "time")
        .agg(pl.col(topic).mean() for topic in TOPICS)
        .sort("place", "time")
    )
    means = [
        pl.col(topic).rolling_mean_by("time", f"{width}s", closed="both").over("place")
        for topic, width in widths.items()
    ]
    loop, speed = map(pl.col, TOPICS)
    bit = pl.when((loop > 2.5) & (speed < 7)).then(True).when(speed > 15).then(False)
    held = instants.with_columns(means).with_columns(held=bit.forward_fill().over("place").fill_null(False))
    before = pl.col("held").shift(1, fill_value=False).over("place")
    turned = held.filter(pl.col("held") != before).select(
        pl.col("place").cast(pl.String),
        pl.when("held").then(pl.lit("ingress")).otherwise(pl.lit("egress")).alias("status"),
        pl.col("time").to_physical(),
    )
    return sorted(turned.rows(), key=lambda row: (row[2], row[0]))


# --- state -------------------------------------------------------------------------------------


def growth(progress: Callable[[str], None]) -> Iterator[Row]:
    """What is kept of a road, and what a history of twice the length adds to it."""
    progress("state and memory after one length of history and after two")
    short, long = (apart(state_bytes, events, ROADS) for events in (EVENTS // 2, EVENTS))
    content = SENSORS * (30 + 60) * SECOND // PERIOD
    detail = {"roads": ROADS, "readings_in_windows": content, "bytes_a_reading": long[0] / ROADS / content}
    yield Row("state of one road, as bytes", long[0] / ROADS, "bytes", detail=detail)
    for what, unit, at in (("state", "bytes", 0), ("memory of the process", "bytes", 1)):
        ratio = long[at] / short[at]
        both = {"events": [EVENTS // 2, EVENTS], unit: [short[at], long[at]]}
        yield Row(f"{what} after twice the history", ratio, "times", "≤ 1.1 times", ratio <= 1.1, both)


def state_bytes(events: int, roads: int) -> tuple[int, int]:
    """Bytes of state after so many events, and the most memory that this process has taken."""
    it = _machine()
    state, _ = _step(it, traffic(events, roads))
    status = Path("/proc/self/status").read_text().splitlines()
    most = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))
    return len(it.dump(state)), most
