"""One stored reading for each scope, in columns. The form is small enough for millions of scopes."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....engine.key_codes import KeyCodes, with_room
from ....model.batch import AXES, TIME, TYPES, from_events, plain
from ....model.event import Event
from ....model.instant import Instant
from ....model.topic import Topic

Codes = NDArray[Any]

_FEW = 1 << 12  # single readings that wait for conversion to columns
_EMPTY: dict[pa.DataType, tuple[Any, Any]] = {
    pa.float64(): (np.float64, np.nan),
    pa.int64(): (np.int64, 0),
    pa.string(): (np.int32, -1),
    pa.bool_(): (np.int8, -1),
}
"""The array type and the empty value of each column type; int columns have a mask in addition."""


class StoredReadings:
    """Readings of scopes by the code of the scope.

    Texts are dictionary codes; several stores may share the dictionary.
    """

    def __init__(self, topic: Topic, texts: KeyCodes) -> None:
        self._topic, self._texts = topic, texts
        attributes = {a.name: TYPES[a.kind] for a in topic.attributes}
        self._types = {"source": pa.string(), "sequence": pa.int64(), "place": pa.string()}
        self._types |= dict.fromkeys(AXES, pa.float64()) | attributes
        self._columns: dict[str, NDArray[Any]] = {}
        self._recent: dict[int, Event] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no reading was ever stored."""
        return not self._columns and not self._recent

    @property
    def nbytes(self) -> int:
        """The size of the columns in bytes."""
        return sum(column.nbytes for column in self._columns.values())

    def put_one(self, code: int, event: Event) -> None:
        """Store an event for a scope. It replaces the reading stored before."""
        self._recent[code] = event
        if len(self._recent) > _FEW:
            self._settle()

    def put(self, codes: Codes, batch: pa.RecordBatch) -> None:
        """Store row `i` of a batch for scope `codes[i]`. The codes must be distinct."""
        self._settle()
        self._put(codes, batch)

    def _settle(self) -> None:
        """Move single events to the columns."""
        recent, self._recent = self._recent, {}
        if recent:
            self._put(np.fromiter(recent, np.int64), from_events(self._topic, list(recent.values())))

    def _put(self, codes: Codes, batch: pa.RecordBatch) -> None:
        """Store row `i` of a batch in the columns for scope `codes[i]`. Attributes that the batch lacks
        become missing."""
        if not len(codes):
            return
        size = int(codes.max()) + 1
        for name, type in self._types.items():
            if name not in batch.schema.names and name not in self._columns:
                continue
            dtype, missing = _EMPTY[type]
            column = with_room(self._columns.get(name, np.empty(0, dtype)), size, missing)
            self._columns[name] = column
            if name not in batch.schema.names:
                column[codes] = missing
                continue
            values = plain(batch.column(name))
            if type == pa.string():
                column[codes] = self._encode(values)
            elif type == pa.int64():
                column[codes] = values.fill_null(0).to_numpy(zero_copy_only=False)
                is_present = with_room(self._columns.get(f"{name}?", np.empty(0, np.bool_)), size)
                is_present[codes] = values.is_valid().to_numpy(zero_copy_only=False)
                self._columns[f"{name}?"] = is_present
            elif type == pa.bool_():
                column[codes] = values.cast(pa.int8()).fill_null(-1).to_numpy(zero_copy_only=False)
            else:
                column[codes] = values.to_numpy(zero_copy_only=False)

    def _reach(self, size: int) -> None:
        """Extend all columns to a number of scopes."""
        for name, column in self._columns.items():
            missing = _EMPTY[self._types[name]][1] if name in self._types else False
            self._columns[name] = with_room(column, size, missing)

    def _encode(self, values: pa.StringArray) -> Codes:
        """Return the dictionary codes of texts, -1 for a missing text."""
        found = values.dictionary_encode()
        table = np.append(self._texts.codes(found.dictionary), np.int32(-1))
        return table[found.indices.fill_null(len(table) - 1).to_numpy(zero_copy_only=False)]

    def take(self, codes: Codes) -> pa.RecordBatch:
        """Return the readings of scopes as a batch. The caller sets their times."""
        self._settle()
        self._reach(int(codes.max(initial=-1)) + 1)
        columns = {"time": pa.array(np.zeros(len(codes), np.int64)).cast(TIME)}
        for name, type in self._types.items():
            if name in self._columns:
                columns[name] = self._take(name, type, codes)
            elif name in ("source", "sequence"):
                columns[name] = pa.nulls(len(codes), type)
        return pa.RecordBatch.from_pydict(columns)

    def _take(self, name: str, type: pa.DataType, codes: Codes) -> pa.Array:
        values = self._columns[name][codes]
        if type == pa.int64():
            return pa.array(values, mask=~self._columns[f"{name}?"][codes])
        if type == pa.bool_():
            return pa.array(values == 1, mask=values < 0)
        if type == pa.float64():
            return pa.array(values)
        used, at = np.unique(values, return_inverse=True)
        indices = pa.array(at, pa.int32(), mask=values < 0)
        known = self._texts.take(np.maximum(used, 0)) if len(self._texts) else pa.nulls(len(used), type)
        return known.take(indices)

    def event(self, code: int, at: Instant) -> Event:
        """Return the reading of a scope as an event at a given time."""
        if code in self._recent:
            return replace(self._recent[code], time=at)
        axes = (self._value(axis, code) for axis in AXES)
        point = tuple(takewhile(lambda coordinate: coordinate is not None, axes))
        attributes = {a.name: self._value(a.name, code) for a in self._topic.attributes}
        source, sequence, place = (self._value(name, code) for name in ("source", "sequence", "place"))
        return Event(self._topic.name, at, source, attributes, sequence, point or None, place)

    def _value(self, name: str, code: int) -> Any:
        """Return the value of one column for a scope; ``None`` if it is missing."""
        column = self._columns.get(name)
        if column is None or code >= len(column):
            return None
        value, type = column[code].item(), self._types[name]
        if type == pa.int64():
            return value if self._columns[f"{name}?"][code] else None
        if type == pa.float64():
            return value if value == value else None
        if value < 0:
            return None
        return value == 1 if type == pa.bool_() else self._texts.key(value)
