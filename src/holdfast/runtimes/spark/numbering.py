"""Sequence numbers for rows without one: a hash of their content.

This module is for rows that are read without Spark. `frames.rows.add_sequence` computes the same numbers in
the JVM; change both together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.digest import PRIMES, SEED, xxh64
from ...model.batch import AXES, plain
from ...model.topic import Topic

Hashes = NDArray[np.uint64]

LARGEST = 2**63 - 1


def number_rows(topic: Topic, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows whose sequence is a hash of their content. Missing values do not change the hash."""
    names = [
        name for name in ("place", *AXES, *(a.name for a in topic.attributes)) if name in batch.schema.names
    ]
    total = np.zeros(len(batch), np.uint64)
    for name in names:
        total ^= _hash_column(name, plain(batch.column(name)))
    sequence = pa.array((total & np.uint64(LARGEST)).astype(np.int64))
    at = batch.schema.get_field_index("sequence")
    return batch.set_column(at, "sequence", sequence)


def _hash_column(name: str, column: pa.Array) -> Hashes:
    """Return the hash of a column's name and each of its values; zero for missing values."""
    seed = _hash_bytes(np.frombuffer(name.encode(), np.uint8), [0, len(name.encode())], SEED)[0]
    if pa.types.is_string(column.type):
        _, offsets, data = column.buffers()
        bounds = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
        found = _hash_bytes(np.frombuffer(data, np.uint8) if data else np.zeros(1, np.uint8), bounds, seed)
    else:
        values = _values(column)
        ends = np.arange(len(column) + 1) * values.itemsize
        found = _hash_bytes(values.view(np.uint8), ends, seed)
    found[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def _values(column: pa.Array) -> NDArray[Any]:
    """Return numbers in the form that Spark hashes: with a single zero and a single NaN."""
    if pa.types.is_boolean(column.type):
        return np.asarray(column.fill_null(False).cast(pa.int32()))
    if pa.types.is_floating(column.type):
        values = np.asarray(column.fill_null(0.0)) + 0.0
        values[np.isnan(values)] = np.nan
        return values
    return np.asarray(column.fill_null(0))


def _hash_bytes(data: NDArray[np.uint8], bounds: Sequence[int] | NDArray[Any], seed: Any) -> Hashes:
    ends = np.asarray(bounds, np.int64)
    hashes = np.empty(len(ends) - 1, np.uint64)
    with np.errstate(over="ignore"):
        xxh64(ends[:-1], ends[1:], data, PRIMES, np.uint64(seed), hashes)
    return hashes
