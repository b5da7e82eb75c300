"""Readings as rows of numbers: whose, when, and what of them is looked at."""

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
"""From the number of a slot and sources to the numbers of members, -1 of one that is none."""


class Slot(NamedTuple):
    """What is looked at of readings of a topic: an attribute, or where they are and how good that is."""

    topic: str
    attribute: str | None = None
    accuracy: str | None = None


class Rows(NamedTuple):
    """Readings; of a location ``values`` are x, y, z and how far it may be off, else an attribute."""

    times: NDArray[np.int64]
    members: Codes
    sequences: NDArray[np.int64]
    values: NDArray[np.float64]

    def take(self, which: NDArray[np.bool_] | NDArray[np.intp] | slice) -> Rows:
        return Rows(self.times[which], self.members[which], self.sequences[which], self.values[which])

    def only(self, which: NDArray[np.bool_]) -> Rows:
        """Those rows; themselves if that is all."""
        return self if which.all() else self.take(which)

    def in_order(self) -> Rows:
        """By (time, member, sequence)."""
        return self.take(np.lexsort((self.sequences, self.members, self.times)))


Row = tuple[Instant, int, int, tuple[float, float, float, float]]


def rows_of(some: Sequence[Row]) -> Rows:
    """Single readings, in columns."""
    if not some:
        none = np.zeros(0, np.int64)
        return Rows(none, none, none, np.zeros((0, 4)))
    at, members, sequences, values = zip(*some, strict=True)
    return Rows(
        np.array(at, np.int64), np.array(members, np.int64), np.array(sequences, np.int64), np.array(values)
    )


def joined(parts: Sequence[Rows]) -> Rows:
    """The rows of all."""
    return parts[0] if len(parts) == 1 else Rows(*map(np.concatenate, zip(*parts, strict=True)))


# --- what of a reading is looked at ------------------------------------------------------------------


def value_of(slot: Slot, event: Event) -> tuple[float, float, float, float] | None:
    """What is looked at of one reading, if that is known."""
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


def values_of(slot: Slot, batch: pa.RecordBatch) -> NDArray[np.float64]:
    """The same for a batch; what is not known has no number."""
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
    """A column as floats, with NaN for what is missing."""
    if name not in batch.schema.names:
        return np.full(len(batch), np.nan)
    return np.asarray(
        batch.column(name).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64
    )


def members_of(number: int, batch: pa.RecordBatch, name: Name) -> Codes:
    """The member that each event of a batch is of, in a slot."""
    column = batch.column("source")
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    return name(number, coded.dictionary.cast(pa.string()))[coded.indices.to_numpy(zero_copy_only=False)]


def read(number: int, slot: Slot, batch: pa.RecordBatch, name: Name) -> Rows:
    """The rows of a batch that say something of a member, with their places in it as sequence last."""
    members, values = members_of(number, batch, name), values_of(slot, batch)
    sequences = np.asarray(batch.column("sequence").to_numpy(zero_copy_only=False), np.int64)
    return Rows(times(batch), members, sequences, values)


def says_something(rows: Rows) -> NDArray[np.bool_]:
    """Which rows are of a member, and known."""
    return (rows.members >= 0) & ~np.isnan(rows.values[:, 0])
