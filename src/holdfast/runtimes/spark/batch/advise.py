"""The measurements for ``holdfast advise`` on Spark.

Readers measure, shards evaluate variants, and the driver adds up the counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ....definition.tune import Tunable
from ....engine.key_codes import checksums
from ....errors import HoldfastError, InputError
from ....files.find import InputFile
from ....files.read import read
from ....files.reading import Reading
from ....files.tally import Rejects, Tally
from ....model.batch import from_ipc, to_ipc, trim_dictionaries
from ....model.instant import Duration
from ....plan.advise.judge import Labels, VariantGrid
from ....plan.advise.question import judge_within, too_short
from ....plan.advise.rows import Interval, Measure, MeasuredRows, Moments, collect_rows
from ....plan.advise.variants import Judged
from ..classic import core_count
from ..session import session
from .reader import ROWS, Task
from .replay import divide, parts_of, run_in_groups

SCHEMA = "shard int, raw binary"
ANSWER = pa.schema([("raw", pa.binary())])
FAILED, COUNTED = -1, -2
"""The shards of what went wrong, and of what was read."""


@dataclass(frozen=True, eq=False)
class Spread:
    """The measured readings of a state, divided into shards; each shard has scopes of its own."""

    shards: DataFrame
    found: Tunable

    def ask_shards(self, ask: Callable[[MeasuredRows], Any]) -> list[Any]:
        """Call a function on the rows of each shard, in the executors, and return the results."""

        def answer(
            _key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
        ) -> Iterator[pa.RecordBatch]:
            rows = collect_rows(from_ipc(raw) for batch in batches for raw in batch.column("raw").to_pylist())
            raw = pa.array([msgspec.msgpack.encode(ask(rows))], pa.binary())
            yield pa.RecordBatch.from_arrays([raw], schema=ANSWER)

        found = run_in_groups(self.shards, ["shard"], answer, ANSWER)
        return [msgspec.msgpack.decode(bytes(row.raw)) for row in found.collect()]

    @cached_property
    def _spans(self) -> dict[Interval, Interval | None]:
        return {}

    def span(self, interval: Interval) -> Interval | None:
        """Return the times of the first and the last reading in an interval; ``None`` without readings."""

        def ask(rows: MeasuredRows) -> Any:
            window = rows.slice(*interval)
            return window.span() if len(window) or len(window.elsewhere) else None

        if interval not in self._spans:
            found = [shard_counts for shard_counts in self.ask_shards(ask) if shard_counts is not None]
            self._spans[interval] = (
                (min(first for first, _ in found), max(last for _, last in found)) if found else None
            )
        return self._spans[interval]

    def moments(self) -> Moments:
        answers = self.ask_shards(lambda rows: rows.moments())
        counts, sums, squares = zip(*answers, strict=True)
        return sum(counts), sum(sums), sum(squares)

    def judge(self, interval: Interval, grid: VariantGrid, labels: Labels | None, flap: Duration) -> Judged:
        """Return the counts of all variants over an interval, added up over the shards."""
        span, found = self.span(interval), self.found
        assert span is not None
        until = span[1]

        def ask(rows: MeasuredRows) -> Any:
            counts, known, length = judge_within(rows.slice(*interval), found, until)(grid, labels, flap)
            return counts.tobytes(), known, length

        raw, known, length = zip(*self.ask_shards(ask), strict=True)
        shape = (len(grid.enters), len(grid.exits), len(grid.guards), 8)
        counts = sum(np.frombuffer(shard_counts, np.int64) for shard_counts in raw)
        return Judged(np.reshape(counts, shape), sum(known), sum(length))


def history(
    found: Tunable,
    files: Sequence[InputFile],
    reading: Reading,
    tally: Tally,
    *,
    spark: SparkSession | str | None = None,
) -> Spread:
    """Read the readings that a state depends on into shards. Add what was read to `tally`."""
    with ThreadPoolExecutor(1) as pool:  # files are looked at while Spark starts
        pending_parts = pool.submit(parts_of, files, reading)
        started = spark if isinstance(spark, SparkSession) else session(spark, is_brief=True)
        parts = pending_parts.result()
    cores = core_count(started)
    tasks = tuple(divide(parts, cores))
    shards = 2 * cores

    def readers(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for window in numbers for number in window.column(0).to_pylist()):
            yield from _measure_task(found, reading, tasks[number], shards)

    packed = started.range(0, len(tasks), 1, len(tasks)).mapInArrow(readers, SCHEMA).persist()
    for row in packed.filter("shard < 0").collect():
        if row.shard == FAILED:
            raise InputError(bytes(row.raw).decode())
        tally.add(msgspec.msgpack.decode(row.raw, type=Tally, dec_hook=lambda kind, raw: kind(raw)))
    result = Spread(packed.filter("shard >= 0"), found)
    if not sum(result.ask_shards(len)):
        raise too_short(found, tally.rows)
    return result


def _measure_task(found: Tunable, reading: Reading, task: Task, shards: int) -> Iterator[pa.RecordBatch]:
    """Measure the readings of a task and yield them by shard. An error is yielded as a row of its own."""
    measure, topic, tally = Measure(found), found.condition.topic.name, Tally()
    try:
        for piece in task.part.pieces:
            for of, batch in read(
                piece.file, reading, tally, Rejects(),
                row_groups=piece.row_groups, chunk_rows=ROWS, decisive=measure.looks_at,
            ):  # fmt: skip
                if len(batch) and of.name == topic:
                    yield from _split_by_shard(measure(batch), shards)
    except HoldfastError as error:
        yield _row(FAILED, str(error).encode())
    yield _row(COUNTED, msgspec.msgpack.encode(tally))


def _split_by_shard(batch: pa.RecordBatch, shards: int) -> Iterator[pa.RecordBatch]:
    """Yield rows by shard, a stable hash of their scope. Rows in no scope go to the first shard."""
    column = batch.column("key")
    shard_of = (checksums(column.dictionary) % np.uint32(shards)).astype(np.int32)
    found = np.append(shard_of, np.int32(0))[column.indices.fill_null(-1).to_numpy()]
    for shard in np.unique(found):
        yield _row(int(shard), to_ipc(trim_dictionaries(batch.filter(pa.array(found == shard)))))


def _row(shard: int, raw: bytes) -> pa.RecordBatch:
    columns = {"shard": pa.array([shard], pa.int32()), "raw": pa.array([raw], pa.binary())}
    return pa.RecordBatch.from_pydict(columns)
