"""Events that can matter, packed: one row for each machine and shard instead of one for each event.

A shard is a stable hash of the outermost scope, so that all events of a scope meet in one place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from zlib import crc32

import numpy as np
import pyarrow as pa

from ...machines.filter import Filters
from ...machines.machine import Machine
from ...machines.ordered import Ordered
from ...model.batch import to_ipc, trimmed

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
REPORT, PROGRESS = -1, -2
"""What stands for a machine in rows that report what was read, or how far time has come."""


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
