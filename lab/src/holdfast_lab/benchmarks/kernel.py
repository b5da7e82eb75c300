"""State filters in this process, beside a plain loop, Polars and DuckDB on the same data."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.engine.machine import Machine
from holdfast.kinds.state.condition import StateCondition
from holdfast.kinds.state.plan_toggle import filter_machine
from holdfast.kinds.state.toggle import ToggleState
from holdfast.model.batch import TIME
from holdfast.model.event import Event
from holdfast.model.instant import BEGINNING, SECOND
from holdfast.runtimes.local.engine import Engine

from . import Row, Timing, measure_time
from .process import apart, resident

EVENTS = 20_000_000
LOOPED = 1_000_000  # a plain loop is measured on fewer, and scaled
KEYS = 1_000
PUSHED = 50_000
SUBSCRIPTIONS = 10
MANY = 1_000_000

TOPIC = "Temperature"
WARM = """
topic Temperature (value float)
state Warm on Temperature [value > 25; value < 22] per source
"""


def run(progress: Callable[[str], None]) -> list[Row]:
    """Throughput with peers, latency of one event, and memory of a million keys."""
    return [*throughput(progress), latency(progress), memory(progress)]


def readings(events: int, keys: int, seed: int = 1) -> pa.RecordBatch:
    """Slow waves with noise around the thresholds; the keys take turns."""
    rng = np.random.default_rng(seed)
    rows = np.arange(events)
    key = (rows % keys).astype(np.int32)
    wave = 23.5 + 3 * np.sin(rows / keys / 500 + key) + rng.normal(0, 0.3, events)
    names = pa.array([f"sensor-{i:06d}" for i in range(keys)])
    return pa.RecordBatch.from_pydict(
        {
            "time": pa.array(rows * SECOND).cast(TIME),
            "source": pa.DictionaryArray.from_arrays(pa.array(key), names),
            "sequence": pa.array(rows),
            "value": wave,
        }
    )


def throughput(progress: Callable[[str], None]) -> Iterator[Row]:
    progress(f"generating {EVENTS:,} events of {KEYS:,} keys")
    batch = readings(EVENTS, KEYS)
    one = filter_machine(check(parse(WARM)).of(StateCondition))
    few = batch.slice(0, LOOPED)
    progress("holdfast: step of the machine, predicates included, one core")
    _in_turn(one, [batch.slice(0, 100_000)])  # loads the compiled kernels
    ours = measure_time(lambda: _in_turn(one, [batch.slice(0)]))
    rate = EVENTS / ours.best
    yield Row(
        "events per second, one threshold filter, 1,000 keys interleaved",
        rate,
        "events/s",
        "≥ 300 M/s on one core",
        rate >= 300e6,
        {"events": EVENTS, "transitions": ours.result, "worst_s": ours.worst},
    )
    peers: list[tuple[str, Callable[[pa.RecordBatch], int], pa.RecordBatch]] = [
        ("plain Python loop", _loop, few)
    ]
    if find_spec("polars"):
        peers.append((f"Polars, {os.cpu_count()} threads", _in_polars, batch))
    if find_spec("duckdb"):
        peers.append((f"DuckDB, {os.cpu_count()} threads", _in_duckdb, batch))
    for name, job, data in peers:
        progress(name)
        yield _beside(name, measure_time(partial(job, data), 2), rate, one, data)


def _beside(name: str, timing: Timing, rate: float, it: Machine[Any], data: pa.RecordBatch) -> Row:
    expected = _in_turn(it, [data.slice(0)])
    assert timing.result == expected, f"{name} found {timing.result} transitions, not {expected}"
    theirs = len(data) / timing.best
    detail = {"events": len(data), "transitions": timing.result, "holdfast_is_times_faster": rate / theirs}
    return Row(f"the same by {name}", theirs, "events/s", detail=detail)


def _in_turn(it: Machine[Any], batches: list[pa.RecordBatch]) -> int:
    state, passed = it.initial(), 0
    for batch in batches:
        state, emission = it.step(state, {TOPIC: batch}, BEGINNING)
        passed += len(emission.rows[TOPIC])
    return passed


def _loop(batch: pa.RecordBatch) -> int:
    """What people write first: a dict of bits."""
    holds: dict[str, bool] = {}
    passed = 0
    names = batch.column("source").dictionary.to_pylist()
    keys = batch.column("source").indices.to_pylist()
    for key, value in zip(keys, batch.column("value").to_pylist(), strict=True):
        name = names[key]
        if value < 22 if holds.get(name, False) else value > 25:
            holds[name] = not holds.get(name, False)
            passed += 1
    return passed


def _in_polars(batch: pa.RecordBatch) -> int:
    """The bit as a forward fill; right because the two predicates exclude one another."""
    import polars as pl

    frame = pl.from_arrow(batch.select(["source", "value"]))
    assert isinstance(frame, pl.DataFrame)
    bit = pl.when(pl.col("value") > 25).then(True).when(pl.col("value") < 22).then(False)
    held = bit.forward_fill().over("source").fill_null(False)
    frame = frame.select("source", held=held)
    before = pl.col("held").shift(1, fill_value=False).over("source")
    return int(frame.select((pl.col("held") != before).sum()).item())


def _in_duckdb(batch: pa.RecordBatch) -> int:
    """The bit as the last known value of a window."""
    import duckdb

    connection = duckdb.connect()
    connection.register("readings", pa.Table.from_batches([batch]))
    found = connection.execute(
        """
        with bits as (
          select source, sequence,
                 case when value > 25 then true when value < 22 then false end as bit from readings),
        held as (
          select source, sequence,
                 coalesce(last_value(bit ignore nulls) over w, false) as held
          from bits window w as (partition by source order by sequence)),
        turned as (
          select held, lag(held, 1, false) over (partition by source order by sequence) as before from held)
        select count(*) from turned where held != before
        """
    ).fetchone()
    assert found is not None
    return int(found[0])


def latency(progress: Callable[[str], None]) -> Row:
    """µs for one event through the engine."""
    progress(f"one event at a time, {SUBSCRIPTIONS} subscriptions")
    states = "\n".join(
        f"state S{i} on Temperature [value > {25 + i}; value < {22 - i}] per source"
        for i in range(SUBSCRIPTIONS)
    )
    values = readings(PUSHED, KEYS).column("value").to_pylist()
    events = [
        Event("Temperature", i * SECOND, f"sensor-{i % KEYS}", {"value": value}, i + 1)
        for i, value in enumerate(values)
    ]

    def push() -> int:
        engine = Engine("topic Temperature (value float)\n" + states)
        return sum(len(engine.push(event)) for event in events)

    timing = measure_time(push, 3)
    each = timing.best / PUSHED * 1e6
    detail = {"events": PUSHED, "notifications": timing.result, "worst_us": timing.worst / PUSHED * 1e6}
    return Row(f"one event, {SUBSCRIPTIONS} subscriptions", each, "µs", "≤ 20 µs", each <= 20, detail)


def memory(progress: Callable[[str], None]) -> Row:
    """Resident memory that a million keys take, measured in a process of its own."""
    progress(f"{MANY:,} keys in memory")
    grown, arrays = apart(memory_growth_by_keys)
    megabytes = grown / 1e6
    detail = {"keys": MANY, "arrays_mb": arrays / 1e6}
    return Row("a million keys, all holding", megabytes, "MB", "≤ 100 MB", megabytes <= 100, detail)


def memory_growth_by_keys() -> tuple[int, int]:
    """How much the process grew by a million holding keys, and the bytes of the arrays."""
    it = filter_machine(check(parse(WARM)).of(StateCondition))
    state: ToggleState = it.initial()
    state, _ = it.step(state, {TOPIC: _all_warm(0, 100_000)}, BEGINNING)  # code, kernels, buffers
    state = it.initial()
    pa.default_memory_pool().release_unused()
    before = resident()
    for first in range(0, MANY, 100_000):
        state, _ = it.step(state, {TOPIC: _all_warm(first, 100_000)}, BEGINNING)
    pa.default_memory_pool().release_unused()
    held = len(it.active(state))
    assert held == MANY, held
    (keys, words), since = state.levels[0], state.since
    return resident() - before, keys.nbytes + words.nbytes + since.nbytes


def _all_warm(first: int, count: int) -> pa.RecordBatch:
    rows = np.arange(first, first + count)
    columns: dict[str, Any] = {
        "time": pa.array(rows).cast(TIME),
        "source": pa.array([f"sensor-{i:07d}" for i in rows]),
        "sequence": pa.array(rows),
        "value": np.full(count, 30.0),
    }
    return pa.RecordBatch.from_pydict(columns)
