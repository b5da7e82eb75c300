"""Readings as rows of numbers: time, member, sequence, and the measured values.

The kernels and the machine use no other part of a reading.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...model.batch import AXES, times
from ...model.event import Event
from ...model.instant import Instant

Codes = NDArray[np.int64]
Name = Callable[[int, pa.Array], Codes]
"""A function that converts sources, given the number of their slot, to member numbers; -1 for unknown
sources."""


class RoleSlot(NamedTuple):
    """The values that are read of a topic's events: an attribute, or the location and the attribute with its
    accuracy."""

    topic: str
    attribute: str | None = None
    accuracy: str | None = None


class RelationRows(NamedTuple):
    """Readings in columns.

    For a location ``values`` are x, y, z and the accuracy in metres. Otherwise the first value is an
    attribute and the others are 0.
    """

    times: NDArray[np.int64]
    members: Codes
    sequences: NDArray[np.int64]
    values: NDArray[np.float64]

    def take(self, which: NDArray[np.bool_] | NDArray[np.intp] | slice) -> RelationRows:
        """Return the selected rows, as copies unless `which` is a slice."""
        return RelationRows(self.times[which], self.members[which], self.sequences[which], self.values[which])

    def only(self, which: NDArray[np.bool_]) -> RelationRows:
        """Return the rows where ``which`` is true. If all rows are selected, no copy is made."""
        return self if which.all() else self.take(which)

    def in_order(self) -> RelationRows:
        """Return the rows sorted by time, member and sequence."""
        return self.take(np.lexsort((self.sequences, self.members, self.times)))


Row = tuple[Instant, int, int, tuple[float, float, float, float]]
"""A reading: time, member, sequence and values."""


def rows_of(readings: Sequence[Row]) -> RelationRows:
    """Return single readings as columns."""
    if not readings:
        none = np.zeros(0, np.int64)
        return RelationRows(none, none, none, np.zeros((0, 4)))
    at, members, sequences, values = zip(*readings, strict=True)
    return RelationRows(
        np.array(at, np.int64), np.array(members, np.int64), np.array(sequences, np.int64), np.array(values)
    )


def join_rows(parts: Sequence[RelationRows]) -> RelationRows:
    """Return the rows of all parts, concatenated."""
    return parts[0] if len(parts) == 1 else RelationRows(*map(np.concatenate, zip(*parts, strict=True)))


# --- values ------------------------------------------------------------------------------------------


def value_of(slot: RoleSlot, event: Event) -> tuple[float, float, float, float] | None:
    """Return the values of a slot in one event; ``None`` if they are missing."""
    if slot.attribute is not None:
        number = event.attributes.get(slot.attribute)
        return None if number is None or number != number else (float(number), 0.0, 0.0, 0.0)
    if not event.location:
        return None
    error = 0.0 if slot.accuracy is None else event.attributes.get(slot.accuracy)
    if error is None or not float(error) >= 0 or error == np.inf:
        return None
    x, y, z = (*event.location, 0.0, 0.0)[:3]
    return (x, y, z, float(error)) if np.isfinite((x, y, z)).all() else None


def values_of(slot: RoleSlot, batch: pa.RecordBatch) -> NDArray[np.float64]:
    """Return the values of a slot in a batch. In a row without values, the first value is NaN."""
    found = np.zeros((len(batch), 4))
    if slot.attribute is not None:
        found[:, 0] = numbers(batch, slot.attribute)
        return found
    unknown = np.zeros(len(batch), np.bool_)
    for i, axis in enumerate(AXES):
        if axis in batch.schema.names or i == 0:
            column = numbers(batch, axis)
            found[:, i] = column if i == 0 else np.where(np.isnan(column), 0.0, column)
            unknown |= ~np.isfinite(found[:, i])
    if slot.accuracy is not None:
        found[:, 3] = numbers(batch, slot.accuracy)
        unknown |= ~((found[:, 3] >= 0) & np.isfinite(found[:, 3]))
    found[unknown, 0] = np.nan
    return found


def numbers(batch: pa.RecordBatch, name: str) -> NDArray[np.float64]:
    """Return a column as floats, with NaN for missing values."""
    if name not in batch.schema.names:
        return np.full(len(batch), np.nan)
    column = batch.column(name).cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy(zero_copy_only=False), np.float64)


def members_of(number: int, batch: pa.RecordBatch, name: Name) -> Codes:
    """Return the member number of each event of a batch, in the slot with the given number."""
    column = batch.column("source")
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return name(number, coded.dictionary.cast(pa.string()))[coded.indices.to_numpy(zero_copy_only=False)]


def read(number: int, slot: RoleSlot, batch: pa.RecordBatch, name: Name) -> RelationRows:
    """Return a batch as rows for a slot, including rows without a member or a value."""
    members, values = members_of(number, batch, name), values_of(slot, batch)
    sequences = np.asarray(batch.column("sequence").to_numpy(zero_copy_only=False), np.int64)
    return RelationRows(times(batch), members, sequences, values)


def has_known_member(rows: RelationRows) -> NDArray[np.bool_]:
    """Return a mask of the rows with a member and a value."""
    return (rows.members >= 0) & ~np.isnan(rows.values[:, 0])
