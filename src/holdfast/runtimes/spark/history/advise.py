"""Advice on Spark: readers measure, scopes meet in shards, every shard counts, the driver adds up."""

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

from ....compilers.advise.judge import Grid, Labels
from ....compilers.advise.question import judged_in, too_short
from ....compilers.advise.rows import Measure, Moments, Rows, Stretch, gathered
from ....compilers.advise.variants import Judged
from ....errors import HoldfastError, InputError
from ....files.find import InputFile
from ....files.read import read
from ....files.reading import Reading
from ....files.tally import Rejects, Tally
from ....lang.tune import Tunable
from ....machines.keys import checksums
from ....model.batch import from_ipc, to_ipc, trimmed
from ....model.instant import Duration
from ..session import session
from .reader import ROWS, Task
from .replay import divided, in_groups, parts_of

SCHEMA = "shard int, raw binary"
ANSWER = pa.schema([("raw", pa.binary())])
FAILED, COUNTED = -1, -2
"""The shards of what went wrong, and of what was read."""


@dataclass(frozen=True, eq=False)
class Spread:
    """A history in shards, each with scopes of its own."""

    shards: DataFrame
    found: Tunable

    def of_each(self, ask: Callable[[Rows], Any]) -> list[Any]:
        """What every shard answers."""

        def answered(
            _key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
        ) -> Iterator[pa.RecordBatch]:
            rows = gathered(from_ipc(raw) for batch in batches for raw in batch.column("raw").to_pylist())
            raw = pa.array([msgspec.msgpack.encode(ask(rows))], pa.binary())
            yield pa.RecordBatch.from_arrays([raw], schema=ANSWER)

        found = in_groups(self.shards, ["shard"], answered, ANSWER)
        return [msgspec.msgpack.decode(bytes(row.raw)) for row in found.collect()]

    @cached_property
    def _spans(self) -> dict[Stretch, Stretch | None]:
        return {}

    def span(self, stretch: Stretch) -> Stretch | None:
        def ask(rows: Rows) -> Any:
            some = rows.between(*stretch)
            return some.span() if len(some) or len(some.elsewhere) else None

        if stretch not in self._spans:
            found = [one for one in self.of_each(ask) if one is not None]
            self._spans[stretch] = (
                (min(first for first, _ in found), max(last for _, last in found)) if found else None
            )
        return self._spans[stretch]

    def moments(self) -> Moments:
        every = self.of_each(lambda rows: rows.moments())
        counts, sums, squares = zip(*every, strict=True)
        return sum(counts), sum(sums), sum(squares)

    def judged(self, stretch: Stretch, grid: Grid, labels: Labels | None, flap: Duration) -> Judged:
        span, found = self.span(stretch), self.found
        assert span is not None
        until = span[1]

        def ask(rows: Rows) -> Any:
            counts, known, length = judged_in(rows.between(*stretch), found, until)(grid, labels, flap)
            return counts.tobytes(), known, length

        raw, known, length = zip(*self.of_each(ask), strict=True)
        shape = (len(grid.enters), len(grid.exits), len(grid.guards), 8)
        counts = sum(np.frombuffer(one, np.int64) for one in raw)
        return Judged(np.reshape(counts, shape), sum(known), sum(length))


def history(
    found: Tunable,
    files: Sequence[InputFile],
    reading: Reading,
    tally: Tally,
    *,
    spark: SparkSession | str | None = None,
) -> Spread:
    """The readings that a state is about, wherever they are read; what was read is counted."""
    with ThreadPoolExecutor(1) as beside:  # files are looked at while Spark starts
        looked = beside.submit(parts_of, files, reading)
        started = spark if isinstance(spark, SparkSession) else session(spark, is_brief=True)
        parts = looked.result()
    cores = started.sparkContext.defaultParallelism
    tasks = tuple(divided(parts, cores))
    shards = 2 * cores

    def readers(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for some in numbers for number in some.column(0).to_pylist()):
            yield from _measured(found, reading, tasks[number], shards)

    packed = started.range(0, len(tasks), 1, len(tasks)).mapInArrow(readers, SCHEMA).persist()
    for row in packed.filter("shard < 0").collect():
        if row.shard == FAILED:
            raise InputError(bytes(row.raw).decode())
        tally.add(msgspec.msgpack.decode(row.raw, type=Tally, dec_hook=lambda kind, raw: kind(raw)))
    result = Spread(packed.filter("shard >= 0"), found)
    if not sum(result.of_each(len)):
        raise too_short(found, tally.rows)
    return result


def _measured(found: Tunable, reading: Reading, task: Task, shards: int) -> Iterator[pa.RecordBatch]:
    """What is measured of the readings of a task, by shard; of what goes wrong, what to say."""
    measure, topic, tally = Measure(found), found.condition.topic.name, Tally()
    try:
        for piece in task.part.pieces:
            for of, batch in read(
                piece.file, reading, tally, Rejects(),
                row_groups=piece.row_groups, chunk_rows=ROWS, decisive=measure.looks_at,
            ):  # fmt: skip
                if len(batch) and of.name == topic:
                    yield from _by_shard(measure(batch), shards)
    except HoldfastError as error:
        yield _row(FAILED, str(error).encode())
    yield _row(COUNTED, msgspec.msgpack.encode(tally))


def _by_shard(batch: pa.RecordBatch, shards: int) -> Iterator[pa.RecordBatch]:
    """Rows by a stable hash of their scope; those in none are with the first."""
    column = batch.column("key")
    shard_of = (checksums(column.dictionary) % np.uint32(shards)).astype(np.int32)
    found = np.append(shard_of, np.int32(0))[column.indices.fill_null(-1).to_numpy()]
    for shard in np.unique(found):
        yield _row(int(shard), to_ipc(trimmed(batch.filter(pa.array(found == shard)))))


def _row(shard: int, raw: bytes) -> pa.RecordBatch:
    columns = {"shard": pa.array([shard], pa.int32()), "raw": pa.array([raw], pa.binary())}
    return pa.RecordBatch.from_pydict(columns)
