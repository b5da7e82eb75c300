"""Events that can matter, packed: one row for each machine and shard instead of one for each event.

A shard is a stable hash of the outermost scope, so that all events of a scope meet in one place.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

import numpy as np
import pyarrow as pa

from ...machines.filter import Filters
from ...model.batch import to_ipc

SCHEMA = pa.schema(
    [pa.field("machine", pa.int32()), pa.field("shard", pa.int32()), pa.field("events", pa.binary())]
)
SPARK_SCHEMA = "machine int, shard int, events binary"
REPORT = -1
"""The number that stands for a machine in rows that report what was read."""


def packed(number: int, machine: Filters, batch: pa.RecordBatch, shards: int) -> Iterator[pa.RecordBatch]:
    """The events of a batch by shard, as bytes."""
    codes, keys = machine.scoping(batch)[-1]
    shard_of = np.array([crc32(key.encode()) % shards for key in keys.to_pylist()], np.int32)
    mine = shard_of[codes]
    for shard in np.unique(mine):
        events = batch.filter(pa.array(mine == shard))
        yield row(number, int(shard), to_ipc(events))


def row(number: int, shard: int, raw: bytes) -> pa.RecordBatch:
    """One row as the data source gives it to Spark."""
    return pa.RecordBatch.from_arrays(
        [pa.array([number], pa.int32()), pa.array([shard], pa.int32()), pa.array([raw], pa.binary())],
        schema=SCHEMA,
    )
