"""Readings as columns: their locations, and conversion to and from knowledge.

Both evaluations of a component, instant by instant and in columns, read their input through this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....model.batch import AXES, DICTIONARY, from_events, plain
from ....model.batch import times as instants
from ....model.instant import NEVER
from ....model.query import Closest, Query, Whole
from ....model.space import Point
from ....model.topic import Topic
from .knowledge import Knowledge, Standing, Where, to_event
from .query import may_select

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

STATUS, SIGNATURE, UNTIL = "=status", "=signature", "=until"
"""Names of further columns of components' events.

They are the status, the signature of the scope if the component has several scopes, and the end of validity
of starts and ends.
"""


class Coded(NamedTuple):
    """A dictionary-encoded column: row `i` has the value `values[codes[i]]`, or no value if the code is -1.

    The values are distinct.
    """

    codes: Ints
    values: Sequence[Any]


class ReadingRows:
    """The readings of one topic as columns, with caches for values that are used repeatedly."""

    def __init__(self, topic: Topic, batch: pa.RecordBatch) -> None:
        self.topic, self.batch = topic, batch
        self._known: dict[int, Knowledge] = {}
        self._numbers: dict[str, NDArray[np.float64] | None] = {}

    def __len__(self) -> int:
        return len(self.batch)

    @cached_property
    def times(self) -> Ints:
        """The event time of each row."""
        return instants(self.batch)

    @cached_property
    def standings(self) -> Coded:
        """The location of each row as a standing: its point, otherwise its place, otherwise the location of
        its source."""
        codes, points = _points(self.batch)
        values: list[Standing] = [(0, point, "") for point in points]
        own = SIGNATURE if SIGNATURE in self.batch.schema.names else "source"
        for kind, name in ((1, "place"), (2, own)):
            if (codes < 0).any():
                texts = encode_texts(self.batch, name)
                codes = np.where((codes < 0) & (texts.codes >= 0), texts.codes + len(values), codes)
                values += [(kind, (), text) for text in texts.values]
        return Coded(codes, values)

    @cached_property
    def until(self) -> Ints | None:
        """The end of validity of each event; `None` for readings, which are valid only at their own time."""
        if UNTIL not in self.batch.schema.names:
            return None
        found: Ints = self.batch.column(UNTIL).to_numpy()
        return found

    def are_valid(self, rows: Ints, at: Any) -> Mask:
        """Return a mask of the rows that are valid at the instants `at`."""
        found: Mask = self.times[rows] == at if self.until is None else at < self.until[rows]
        return found

    def in_locations(self, query: Query, here: Where) -> Mask | None:
        """Return a mask of the rows in the locations of a query; `None` if the query does not restrict
        locations."""
        if isinstance(query.location, Closest) or isinstance(query.location.group, Whole):
            return None
        topic, passed = self.topic.name, []
        for kind, point, text in self.standings.values:
            known = Knowledge(topic, 0, "", {}, point if kind == 0 else None, text if kind == 1 else None)
            passed.append(may_select(query, known, here))
        found: Mask = np.array([*passed, False])[self.standings.codes]
        return found

    def values(self, name: str, rows: Ints) -> list[Any]:
        """Return the values of a column at `rows`; `None` where a value is missing."""
        if name not in self.batch.schema.names:
            return [None] * len(rows)
        if name not in self._numbers:
            column = self.batch.column(name)
            self._numbers[name] = column.to_numpy(zero_copy_only=False) if _is_float(column) else None
        numbers = self._numbers[name]
        if numbers is None:
            found: list[Any] = plain(self.batch.column(name).take(pa.array(rows))).to_pylist()
            return found
        return [None if v != v else v for v in numbers[rows].tolist()]

    def points(self, rows: Ints) -> list[Point | None]:
        """Return the coordinates of `rows`; `None` for a row without coordinates."""
        axes = [self.values(axis, rows) for axis in AXES if axis in self.batch.schema.names]
        return _as_points(axes, len(rows))

    def places(self, rows: Ints) -> list[str | None]:
        """Return the names of the places of `rows`. Without coordinate columns, the standings have the
        places."""
        if AXES[0] in self.batch.schema.names:
            return self.values("place", rows)
        spots = (self.standings.values[code] for code in self.standings.codes[rows].tolist())
        return [text if kind == 1 else None for kind, _, text in spots]

    def fetch(self, rows: Ints) -> None:
        """Convert `rows` to knowledge in one pass, for later calls of `knowledge`."""
        found = to_knowledge(self.topic, self.batch.take(pa.array(rows)))
        self._known.update(zip(rows.tolist(), found, strict=True))

    def knowledge(self, rows: Ints) -> list[Knowledge]:
        """Return `rows` as knowledge points."""
        numbers: list[int] = rows.tolist()
        if any(number not in self._known for number in numbers):
            self.fetch(rows)
        return [self._known[number] for number in numbers]


def encode_texts(batch: pa.RecordBatch, name: str) -> Coded:
    """Encode a text column so that each distinct text has one code. All codes are -1 if the column does not
    exist."""
    if name not in batch.schema.names:
        return Coded(np.full(len(batch), -1), [])
    column = batch.column(name)
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes: Ints = column.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    texts = column.dictionary.to_pylist()
    if len(set(texts)) == len(texts) and None not in texts:
        return Coded(codes, texts)
    distinct = {text: i for i, text in enumerate(dict.fromkeys(t for t in texts if t is not None))}
    return Coded(np.array([*(distinct.get(text, -1) for text in texts), -1])[codes], list(distinct))


def _points(batch: pa.RecordBatch) -> Coded:
    """Return the point of each row, encoded. A point ends at its first missing coordinate."""
    points: list[Point] = [()]
    codes = np.zeros(len(batch), np.int64)
    known = np.ones(len(batch), np.bool_)
    for name in AXES:
        if name not in batch.schema.names:
            break
        axis = batch.column(name).to_numpy(zero_copy_only=False)
        known &= axis == axis
        steps, step = np.unique(axis[known], return_inverse=True)
        pairs, further = np.unique(codes[known] * len(steps) + step, return_inverse=True)
        codes[known] = len(points) + further
        points += [(*points[pair // len(steps)], float(steps[pair % len(steps)])) for pair in pairs.tolist()]
    return Coded(codes - 1, points[1:])


# --- knowledge ---------------------------------------------------------------------------------


def to_knowledge(topic: Topic, batch: pa.RecordBatch) -> Iterator[Knowledge]:
    """Convert each row of a batch to a knowledge point. All points are marked valid."""
    size = len(batch)
    columns = {name: _values(batch, name) for name in batch.schema.names if name != "time"}
    absent: list[Any] = [None] * size
    points = _as_points([columns[axis] for axis in AXES if axis in columns], size)
    names = [a.name for a in topic.attributes]
    values = zip(*(columns.get(name, absent) for name in names), strict=True) if names else [()] * size
    moments, statuses = instants(batch).tolist(), columns.get(STATUS, ["atomic"] * size)
    places, signatures = columns.get("place", absent), columns.get(SIGNATURE, absent)
    own = zip(moments, columns["source"], points, places, statuses, signatures, strict=True)
    for (time, source, point, place, status, signature), row in zip(own, values, strict=True):
        attributes = dict(zip(names, row, strict=True))
        yield Knowledge(topic.name, time, source, attributes, point, place, status, signature)


def _as_points(axes: Sequence[list[Any]], size: int) -> list[Point | None]:
    """Combine coordinates into points. A point ends at its first missing coordinate; without coordinates it
    is `None`."""
    if not axes:
        return [None] * size
    spots = zip(*axes, strict=True)
    return [tuple(takewhile(lambda coordinate: coordinate is not None, at)) or None for at in spots]


def _is_float(column: pa.Array) -> bool:
    return bool(pa.types.is_floating(column.type))


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    """Return a column as Python values; NaN becomes `None`."""
    column = plain(batch.column(name))
    values: list[Any] = column.to_pylist()
    if _is_float(column):
        return [None if v is None or v != v else v for v in values]
    return values


def from_knowledge(topic: Topic, known: Sequence[Knowledge]) -> pa.RecordBatch:
    """Convert knowledge points to a batch. Events with a status are marked valid without end."""
    batch = component_columns(from_events(topic, [to_event(point) for point in known]))
    if any(point.status != "atomic" for point in known):
        batch = with_status(batch, pa.array([point.status for point in known], pa.string()))
    if any(point.signature is not None for point in known):
        signatures = pa.array([point.signature for point in known], pa.string())
        batch = batch.append_column(SIGNATURE, signatures.dictionary_encode().cast(DICTIONARY))
    return batch


def with_status(batch: pa.RecordBatch, statuses: pa.Array) -> pa.RecordBatch:
    """Add the columns of status and validity to events of a component. The events are valid without end."""
    until = pa.array(np.full(len(batch), NEVER))
    coded = statuses if pa.types.is_dictionary(statuses.type) else statuses.dictionary_encode()
    return batch.append_column(STATUS, coded.cast(DICTIONARY)).append_column(UNTIL, until)


def component_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch without sequence numbers and metadata, which components do not use."""
    remaining = batch.select([name for name in batch.schema.names if name != "sequence"])
    return remaining.replace_schema_metadata(None)
