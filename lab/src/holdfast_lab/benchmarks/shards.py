"""One of the sixteen shards of the live queries of ``bench live``, without Spark: what it costs the Python
process that has it to take a batch, and how many bytes it gives Spark to keep.

Keys and readings are a sixteenth of those.  Seconds are of the processor, and of our part alone: what the
processor of a shard does from packed rows to packed rows.  ``HOLDFAST_BENCH_SETS=guarded,table`` measures
some kinds of conditions alone, ``HOLDFAST_BENCH_SCALE`` fewer keys and readings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from statistics import mean, median
from types import SimpleNamespace
from typing import Any

import msgspec
import pyarrow as pa

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.model.batch import times as moments

from . import Row, sets_to_measure, times
from .live import AT_MOST, KEYS, LATER, SETS, TOPIC, batches_by_size, limits, readings
from .spark import SCALE

SHARDS = 16


def run(progress: Callable[[str], None]) -> list[Row]:
    """Every kind of condition with more and more keys."""
    return [row for kind in sets_to_measure(SETS) for row in _rows(kind, progress)]


def _rows(kind: str, progress: Callable[[str], None]) -> Iterator[Row]:
    found: dict[int, list[tuple[float, float]]] = {}
    for keys in (max(100, int(keys * min(1, SCALE)) // SHARDS) for keys in KEYS):
        for rows, seconds, written in batches(kind, keys):
            found.setdefault(rows, []).append((seconds, written))
            what = f"a shard, {kind}: a batch of {rows:,} readings, {keys:,} keys held"
            progress(f"{what}: {seconds * 1000:.1f} ms of the processor, {written:,.0f} bytes")
            yield Row(what, seconds * 1000, "ms", detail={"written_bytes": written})
    for rows, some in found.items():
        (few_s, few_bytes), *_, (many_s, many_bytes) = some
        what = f"a shard, {kind}: with {KEYS[-1] // KEYS[0]} × the keys a batch of {rows:,} readings"
        yield times(f"{what} takes", many_s / few_s, most=AT_MOST)
        yield times(f"{what} writes", many_bytes / max(1, few_bytes))


def batches(kind: str, keys: int) -> Iterator[tuple[int, float, float]]:
    """For each size of batches how many readings they have, and what one costs: seconds, the median, and
    bytes, the mean."""
    from holdfast.runtimes.spark.job import Job
    from holdfast.runtimes.spark.pack import OperatorEvents, PacketKind, pack, packet_row
    from holdfast.runtimes.spark.streaming.processor import ShardProcessor

    sizes = [max(10, int(later.rows * min(1, SCALE)) // SHARDS) for later in LATER]
    job = Job(check(parse(TOPIC + SETS[kind]), tables={"limits": limits(keys)}))
    stages = [(ShardProcessor(job, stage, 1), _ShardHandle()) for stage in range(job.stages)]
    used: list[float] = []
    written: list[int] = []
    for table in readings(keys, sizes):
        (batch,) = _with_sequence(table, len(used)).to_batches()
        watermarks = dict.fromkeys(job.watermark_topics, int(moments(batch).max()))
        raw = msgspec.msgpack.encode(watermarks)
        rows = [_Row(**packet_row(PacketKind.WATERMARKS, 0, raw).to_pylist()[0])]
        for number, one in job.operators.items():
            if "Temperature" in one.topics:
                some = pack(OperatorEvents(number, one, "Temperature", batch), shards=1)
                rows += (_Row(**row.to_pylist()[0]) for row in some)
        before, wrote = time.process_time(), sum(handle.written for _, handle in stages)
        for processor, handle in stages:
            processor.init(handle)  # type: ignore[arg-type]
            rows = [_Row(**row.asDict()) for row in processor.handleInputRows((0,), iter(rows), None)]  # type: ignore[arg-type]
        used.append(time.process_time() - before)
        written.append(sum(handle.written for _, handle in stages) - wrote)
    for size, those in zip(sizes, batches_by_size(-(-keys // max(sizes))), strict=True):
        yield size, median(used[those]), mean(written[those])


_Row = SimpleNamespace


def _with_sequence(table: pa.Table, batch: int) -> pa.Table:
    """The readings with their sequence, as they have it that come from files."""
    first = batch * 1_000_000
    numbers = pa.array(range(first, first + len(table)), pa.int64())
    return table.add_column(2, "sequence", numbers).combine_chunks()


class _ShardHandle:
    """What Spark gives a processor for one shard, in this process, and how many bytes it was given."""

    def __init__(self) -> None:
        self.written = 0

    def _count_bytes(self, raw: bytes) -> bytes:
        self.written += len(raw)
        return raw

    def getValueState(self, name: str, *_: object) -> Any:  # noqa: N802
        return self.__dict__.setdefault(name, _Value(self._count_bytes))

    def getMapState(self, name: str, *_: object) -> Any:  # noqa: N802
        return self.__dict__.setdefault(name, _MapState(self._count_bytes))

    def getListState(self, *_: object) -> Any:  # noqa: N802
        return SimpleNamespace(get=lambda: iter(()), clear=lambda: None)


class _Value:
    def __init__(self, count_bytes: Callable[[bytes], bytes]) -> None:
        self._count_bytes = count_bytes
        self._value: tuple[bytes] | None = None

    def get(self) -> tuple[bytes] | None:
        return self._value

    def update(self, value: tuple[bytes]) -> None:
        self._value = (self._count_bytes(*value),)


class _MapState(dict[tuple[int], tuple[bytes]]):
    def __init__(self, count_bytes: Callable[[bytes], bytes]) -> None:
        super().__init__()
        self._count_bytes, self.getValue, self.iterator = count_bytes, self.get, self.items

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None:  # noqa: N802
        self[key] = (self._count_bytes(*value),)
