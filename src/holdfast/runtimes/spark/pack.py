"""Events that can matter, packed: one row for each machine and shard instead of one for each event.

A shard is a stable hash of the outermost scope, so that all events of a scope meet in one place.  What
is packed for an operator, which takes several topics, says of which topic it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from zlib import crc32

import numpy as np
import pyarrow as pa

from ...compilers.stages import Operator
from ...machines.filter import Filters
from ...machines.machine import Machine
from ...machines.ordered import Ordered
from ...model.batch import from_ipc, reached, to_ipc, trimmed, with_progress
from ...model.instant import BEGINNING, Instant

SCHEMA = pa.schema(
    [
        pa.field("machine", pa.int32()),
        pa.field("shard", pa.int32()),
        pa.field("part", pa.int32()),
        pa.field("events", pa.binary()),
    ]
)
SPARK_SCHEMA = "machine int, shard int, part int, events binary"
"""Live, ``part`` tells in which order the readers' parts of a batch arrived."""
REPORT, PROGRESS, TOLD = -1, -2, -3
"""What stands for a machine in rows that report what was read, or how far time has come, or that hold
notifications."""

_TOPIC = b"holdfast.topic"


def packed(
    number: int, machine: Filters, batch: pa.RecordBatch, shards: int, part: int = 0
) -> Iterator[pa.RecordBatch]:
    """The events of a batch by shard, as bytes; those in no scope go to the first."""
    codes, keys = machine.scoping(batch)[-1]
    shard_of = np.array([*(crc32(key.encode()) % shards for key in keys.to_pylist()), 0], np.int32)
    mine = shard_of[codes]
    for shard in np.unique(mine):
        events = trimmed(batch.filter(pa.array(mine == shard)))
        yield row(number, int(shard), to_ipc(events), part)


def gathered(
    number: int, operator: Operator, topic: str, batch: pa.RecordBatch, shards: int, part: int = 0
) -> Iterator[pa.RecordBatch]:
    """The events of a batch for an operator, by shard, as bytes; those without a key go to the first."""
    codes, texts = operator.keys(topic, batch)
    shard_of = np.array([0 if text is None else crc32(text.encode()) % shards for text in texts], np.int32)
    mine = shard_of[codes]
    for shard in np.unique(mine):
        events = trimmed(batch.filter(pa.array(mine == shard)))
        yield row(number, int(shard), to_ipc(events.replace_schema_metadata({_TOPIC: topic})), part)


def reaching(number: int, operator: Operator, at: Instant, shards: int) -> Iterator[pa.RecordBatch]:
    """For each shard of an operator, that time has come so far."""
    raw = to_ipc(with_progress(pa.RecordBatch.from_pylist([], pa.schema([])), 0, at))
    return (row(number, shard, raw) for shard in range(shards if operator.key else 1))


def topic_and_events(raw: bytes) -> tuple[str | None, pa.RecordBatch]:
    """What was packed for an operator; without a topic it only says how far time has come."""
    batch = from_ipc(raw)
    topic = (batch.schema.metadata or {}).get(_TOPIC)
    return None if topic is None else topic.decode(), batch


def time_in(batch: pa.RecordBatch) -> Instant:
    """How far time has come with a batch."""
    at = reached(batch)
    return BEGINNING if at is None else at


def as_bytes(table: pa.Table) -> bytes:
    """A table that has rows, as bytes."""
    return to_ipc(table.combine_chunks().to_batches()[0])


def inmost(machine: Machine) -> Filters:
    """The filters of a machine that may hold them back."""
    machine = machine.inner if isinstance(machine, Ordered) else machine
    assert isinstance(machine, Filters)
    return machine


def row(number: int, shard: int, raw: bytes, part: int = 0) -> pa.RecordBatch:
    """One row as the data source gives it to Spark."""
    cells = [[number], [shard], [part], [raw]]
    arrays = [pa.array(cell, field.type) for cell, field in zip(cells, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def up_to(most: int, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of events while they have so many bytes together; reports always."""
    size = 0
    for batch in rows:
        size += held(batch)
        if size <= most or batch.column("machine")[0].as_py() == REPORT:
            yield batch


def held(row: pa.RecordBatch) -> int:
    """How many bytes of events a row holds."""
    return 0 if row.column("machine")[0].as_py() == REPORT else int(row.column("events").nbytes)
