"""The cost of a batch for a live query depends on its changes, not on the stored state: bytes written, and
lines of our code, for batches with three of many keys."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from statistics import median
from types import SimpleNamespace
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from holdfast import Event, check, parse
from holdfast.model.batch import from_events

state = pytest.importorskip("holdfast.runtimes.spark.streaming.processor")
stores = pytest.importorskip("holdfast.runtimes.spark.streaming.store")
ledgers = pytest.importorskip("holdfast.runtimes.spark.streaming.ledger")
pack = pytest.importorskip("holdfast.runtimes.spark.pack")
plan = pytest.importorskip("holdfast.runtimes.spark.job")
lives = pytest.importorskip("support.live")

FEW, MANY = 500, 12_000

WARM = "state S on T [v > 25; v < 22] per rack, source"
KINDS = {
    "plain": "state S on T [v > 25; v < 22] per source",
    "guarded": "state S on T [v > 25 for 5 us; v < 22 for 2 us] per source",
    "silent": "state S on T [v > 25; v < 22 or silent 1 h] per source",
    "unknown": "state S on T [v > 25; v < 22] per source unknown after 1 h",
    "ordered": "state S on T [v > 25 for 2 us; v < 22] per source ordered 2 us",
    "table": 'table limits "limits.csv" (source text, high float)\n'
    "state S on T [v > limits.high; v < 22] per source",
    "levels": "levels S on T: low [v > 25; v < 22], high [v > 40; v < 35] per source",
    "guarded levels": "levels S on T: low [v > 25 for 2 us; v < 22], high [v > 40; v < 35] per source",
    "count": f"{WARM}\nstate Many = at least 3 of S within rack",
    "count of all": f"{WARM}\nstate Many = at least 3 of S",
    "timed count": f"{WARM.replace(';', ' for 2 us;')}\nstate Many = at least 3 of S within rack",
    "count of unknown": f"{WARM} unknown after 2 us\nstate Many = at least 3 of S unknown spreads",
}


class GrowingQuery:
    """One shard of each stage of a query, batch by batch, and the number of bytes that each batch has
    written."""

    def __init__(self, text: str, keys: int) -> None:
        self._names = [f"s{i:05}" for i in range(keys)]
        limits = pa.table({"source": self._names, "high": [25.0] * keys})
        self._job = plan.Job(
            check(parse(f"topic T (v float, rack text)\n{text}\n"), tables={"limits": limits})
        )
        stages = range(self._job.stages)
        self._stages = [(state.ShardProcessor(self._job, i, 1), lives.StoredState()) for i in stages]
        self.written: list[int] = []
        self.take(range(keys), 26.0, 0)

    def packed(self, keys: Any, value: float, at: int) -> list[Any]:
        """Readings of some keys, as they arrive."""
        watermark = msgspec.msgpack.encode(dict.fromkeys(self._job.watermark_topics, at))
        found = [SimpleNamespace(**pack.packet_row(pack.PacketKind.WATERMARKS, 0, watermark).to_pylist()[0])]
        own = [Event("T", at, self._names[i], {"v": value, "rack": f"r{i // 100}"}, at) for i in keys]
        for number, one in self._job.operators.items():
            if "T" in one.topics:
                mine = pack.OperatorEvents(number, one, "T", from_events(one.topics["T"], own))
                found += [SimpleNamespace(**row.to_pylist()[0]) for row in pack.pack(mine, shards=1)]
        return found

    def take(self, keys: Any, value: float, at: int) -> None:
        self.step(self.packed(keys, value, at))

    def step(self, rows: list[Any]) -> None:
        written = 0
        for processor, stored in self._stages:
            before = stored.stored
            processor.init(stored)
            output = list(processor.handleInputRows((0,), iter(rows), None))
            rows = [SimpleNamespace(**row.asDict()) for row in output]
            written += sum(len(raw) for raw in stored.stored if not any(raw is old for old in before))
        self.written.append(written)


def lines(job: Callable[[], Any]) -> int:
    """How many lines of ours a job runs, each time a loop comes to one."""
    found = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal found
        if "holdfast" not in frame.f_code.co_filename:
            return None
        found += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        job()
    finally:
        sys.settrace(before)
    return found


def turning(query: GrowingQuery, batches: int, begin: int = 10) -> list[int]:
    """Let three keys end, begin, and end again in batches; the lines that the last four run."""
    found = []
    for i in range(batches):
        rows = query.packed(range(7, 10), 26.0 if i % 2 else 21.0, begin + 5 * i)
        if i < batches - 4:
            query.step(rows)
        else:
            found.append(lines(lambda rows=rows: query.step(rows)))
    return found


@pytest.fixture(autouse=True)
def process(monkeypatch) -> None:
    """A process that has nothing yet."""
    monkeypatch.setattr(stores, "CACHE", stores.ShardCache())


@pytest.mark.parametrize("kind", KINDS)
def test_the_cost_of_a_batch_depends_on_its_keys_and_not_on_the_stored_ones(kind):
    few, many = (GrowingQuery(KINDS[kind], keys) for keys in (FEW, MANY))
    little, much = turning(few, 8), turning(many, 8)
    assert max(many.written) > 10 * max(map(median, (few.written[-4:], many.written[-4:])))
    assert max(many.written[-4:]) < max(few.written[-4:]) + 200
    assert sum(much) < 1.1 * sum(little)


@pytest.mark.parametrize("kind", ["plain", "guarded", "levels", "count of all"])
def test_periodic_rewrites_cost_no_more_than_the_changes(kind):
    """However many keys there are."""
    query = GrowingQuery(KINDS[kind], MANY)
    turning(query, 8)
    started, batches = len(query.written), 140
    turning(query, batches, begin=100)
    stages = len(query._stages)
    assert sum(query.written[started:]) < 2 * stages * stores.AT_LEAST * batches


def test_recording_a_batch_is_independent_of_the_number_of_active_scopes(tmp_path, monkeypatch):
    done = [0]

    def count() -> None:
        done[0] += 1

    connect = sqlite3.connect

    def connect_counting(*args: Any, **how: Any) -> sqlite3.Connection:
        database = connect(*args, **how)
        database.set_progress_handler(count, 10)
        return database

    monkeypatch.setattr(ledgers.sqlite3, "connect", connect_counting)

    def job(held: int) -> int:
        ledger = ledgers.Ledger(tmp_path / f"{held}.sqlite")
        ledger.commit(0, ledgers.Record(), [("S", f"s{i}", 1) for i in range(held)])
        done[0] = 0
        for batch in range(1, 4):
            ledger.commit(batch, ledgers.Record(), [("S", "s7", batch), ("S", "s8", None), ("S", "new", 5)])
            assert ledger.before(batch + 1).holding == held
        return done[0]

    assert job(20_000) < job(200) + 20
