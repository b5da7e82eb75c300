"""One reading for each scope, in columns: lean enough for millions."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...model.batch import AXES, TIME, TYPES, from_events, plain
from ...model.event import Event
from ...model.instant import Instant
from ...model.topic import Topic
from ..keys import Keys, grown

Codes = NDArray[Any]

_FEW = 1 << 12  # single readings that wait to be put in columns
_EMPTY: dict[pa.DataType, tuple[Any, Any]] = {
    pa.float64(): (np.float64, np.nan),
    pa.int64(): (np.int64, 0),
    pa.string(): (np.int32, -1),
    pa.bool_(): (np.int8, -1),
}
"""How a column is kept, and what stands where nothing is known; of an int a mask beside it tells."""


class Readings:
    """A reading for each of some scopes, by their codes.  Texts are numbers of a dictionary that may be
    shared."""

    def __init__(self, topic: Topic, texts: Keys) -> None:
        self._topic, self._texts = topic, texts
        attributes = {a.name: TYPES[a.kind] for a in topic.attributes}
        self._types = {"source": pa.string(), "sequence": pa.int64(), "place": pa.string()}
        self._types |= dict.fromkeys(AXES, pa.float64()) | attributes
        self._columns: dict[str, NDArray[Any]] = {}
        self._recent: dict[int, Event] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever kept."""
        return not self._columns and not self._recent

    @property
    def nbytes(self) -> int:
        """Memory of the columns."""
        return sum(column.nbytes for column in self._columns.values())

    def put_one(self, code: int, event: Event) -> None:
        """Keep an event for a scope."""
        self._recent[code] = event
        if len(self._recent) > _FEW:
            self._settle()

    def put(self, codes: Codes, batch: pa.RecordBatch) -> None:
        """Keep for each scope, all of them different, the row that stands there."""
        self._settle()
        self._put(codes, batch)

    def _settle(self) -> None:
        recent, self._recent = self._recent, {}
        if recent:
            self._put(np.fromiter(recent, np.int64), from_events(self._topic, list(recent.values())))

    def _put(self, codes: Codes, batch: pa.RecordBatch) -> None:
        if not len(codes):
            return
        size = int(codes.max()) + 1
        for name, type in self._types.items():
            if name not in batch.schema.names and name not in self._columns:
                continue
            dtype, missing = _EMPTY[type]
            column = grown(self._columns.get(name, np.empty(0, dtype)), size, missing)
            self._columns[name] = column
            if name not in batch.schema.names:
                column[codes] = missing
                continue
            values = plain(batch.column(name))
            if type == pa.string():
                column[codes] = self._coded(values)
            elif type == pa.int64():
                column[codes] = values.fill_null(0).to_numpy(zero_copy_only=False)
                there = grown(self._columns.get(f"{name}?", np.empty(0, np.bool_)), size)
                there[codes] = values.is_valid().to_numpy(zero_copy_only=False)
                self._columns[f"{name}?"] = there
            elif type == pa.bool_():
                column[codes] = values.cast(pa.int8()).fill_null(-1).to_numpy(zero_copy_only=False)
            else:
                column[codes] = values.to_numpy(zero_copy_only=False)

    def _reach(self, size: int) -> None:
        """Have a place for so many scopes in every column."""
        for name, column in self._columns.items():
            missing = _EMPTY[self._types[name]][1] if name in self._types else False
            self._columns[name] = grown(column, size, missing)

    def _coded(self, values: pa.StringArray) -> Codes:
        found = values.dictionary_encode()
        table = np.append(self._texts.codes(found.dictionary), np.int32(-1))
        return table[found.indices.fill_null(len(table) - 1).to_numpy(zero_copy_only=False)]

    def take(self, codes: Codes) -> pa.RecordBatch:
        """The readings of some scopes, at no time in particular."""
        self._settle()
        self._reach(int(codes.max(initial=-1)) + 1)
        columns = {"time": pa.array(np.zeros(len(codes), np.int64)).cast(TIME)}
        for name, type in self._types.items():
            if name in self._columns:
                columns[name] = self._taken(name, type, codes)
            elif name in ("source", "sequence"):
                columns[name] = pa.nulls(len(codes), type)
        return pa.RecordBatch.from_pydict(columns)

    def _taken(self, name: str, type: pa.DataType, codes: Codes) -> pa.Array:
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
        """The reading of a scope, as told of an instant."""
        if code in self._recent:
            return replace(self._recent[code], time=at)
        point = tuple(takewhile(_is_known, (self._value(axis, code) for axis in AXES)))
        own = {a.name: self._value(a.name, code) for a in self._topic.attributes}
        source, sequence, place = (self._value(name, code) for name in ("source", "sequence", "place"))
        return Event(self._topic.name, at, source, own, sequence, point or None, place)

    def _value(self, name: str, code: int) -> Any:
        """What a reading has in a column, without a look at the others."""
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


def _is_known(value: Any) -> bool:
    return value is not None
