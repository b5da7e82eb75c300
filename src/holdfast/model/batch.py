"""Functions on batches. A batch is a ``pyarrow.RecordBatch`` of events of one topic.

Its columns are ``time`` (timestamp[us, UTC]), ``source`` (string), ``sequence`` (int64), and, where the
events have them, ``place`` (string), ``x``, ``y``, ``z`` (float64; there is no ``y`` without ``x``); then the
topic's attributes. A missing value is null or NaN. A column that is absent is missing in every row. String
columns may be dictionary-encoded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import repeat, takewhile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import UsageError
from .event import Event, Value
from .instant import EARLIEST, LATEST, Instant
from .topic import Topic

TIME = pa.timestamp("us", tz="UTC")
DICTIONARY = pa.dictionary(pa.int32(), pa.string())
TYPES: dict[str, pa.DataType] = {
    "float": pa.float64(),
    "int": pa.int64(),
    "text": pa.string(),
    "bool": pa.bool_(),
}
AXES = ("x", "y", "z")

_EVENTS = b"holdfast.stood_for"
_WATERMARK = b"holdfast.reached"


@lru_cache(1_000)
def schema(topic: Topic, *, axes: int = 0, place: bool = False) -> pa.Schema:
    """Return the Arrow schema of a batch of ``topic`` whose events have ``axes`` coordinates or a place."""
    fields = [pa.field("time", TIME), pa.field("source", pa.string()), pa.field("sequence", pa.int64())]
    if place:
        fields.append(pa.field("place", pa.string()))
    fields += [pa.field(axis, pa.float64()) for axis in AXES[:axes]]
    return pa.schema(fields + [pa.field(a.name, TYPES[a.kind]) for a in topic.attributes])


def from_events(topic: Topic, events: Sequence[Event]) -> pa.RecordBatch:
    """Return a batch with events of one topic, in their order."""
    axes = max((len(e.location or ()) for e in events), default=0)
    form = schema(topic, axes=axes, place=any(e.place is not None for e in events))
    columns = {
        "time": pa.array([e.time for e in events], pa.int64()).cast(TIME),
        "source": [e.source for e in events],
        "sequence": [e.sequence for e in events],
        "place": [e.place for e in events],
        **{
            axis: [e.location[i] if e.location and len(e.location) > i else None for e in events]
            for i, axis in enumerate(AXES)
        },
        **{a.name: [e.attributes.get(a.name) for e in events] for a in topic.attributes},
    }
    arrays = [pa.array(columns[f.name], f.type) for f in form]
    return pa.RecordBatch.from_arrays(arrays, schema=form)


def to_events(topic: Topic, batch: pa.RecordBatch) -> Iterator[Event]:
    """Yield the events of a batch. Missing values are ``None``."""
    absent: list[Value] = [None] * len(batch)
    columns = {name: values(batch.column(name)) for name in batch.schema.names if name != "time"}
    names = [a.name for a in topic.attributes]
    rows = (
        zip(*(columns.get(name, absent) for name in names), strict=True) if names else repeat((), len(batch))
    )
    axes = [columns[axis] for axis in AXES if axis in columns]
    points = (
        (tuple(takewhile(_is_known, point)) or None for point in zip(*axes, strict=True)) if axes else absent
    )
    places = columns.get("place", absent)
    own = (times(batch).tolist(), columns["source"], columns["sequence"], points, places)
    for at, source, sequence, point, place, row in zip(*own, rows, strict=True):
        attributes = dict(zip(names, row, strict=True))
        yield Event(topic.name, at, source, attributes, sequence, point, place)


def _is_known(value: Value) -> bool:
    return value is not None


def values(column: pa.Array) -> list[Any]:
    """Return the values of a column as a list, with ``None`` for null and NaN."""
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    if column.null_count == 0 and (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        return column.to_numpy().tolist()
    if pa.types.is_dictionary(column.type):
        known: list[Any] = column.dictionary.to_pylist()
        return [None if i is None else known[i] for i in values(column.indices)]
    return column.to_pylist()


def times(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Return the event times of a batch in microseconds."""
    return np.asarray(batch.column(batch.schema.get_field_index("time")).view(pa.int64()))


def in_order(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch sorted by (time, source, sequence)."""
    return batch.take(order(batch))


def order(batch: pa.RecordBatch) -> pa.Array:
    """Return the row numbers of a batch in the order of (time, source, sequence)."""
    keys = {name: plain(batch.column(name)) for name in ("time", "source", "sequence")}
    return pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])


def in_turn(batch: pa.RecordBatch, places: NDArray[np.int64], by: str) -> pa.RecordBatch:
    """Return rows sorted by ``places``. Rows that share a value of the column ``by`` keep their order."""
    return batch.take(pa.array(np.argsort(turns(batch, places, by), kind="stable")))


def turns(batch: pa.RecordBatch, places: NDArray[np.int64], by: str) -> NDArray[np.int64]:
    """Return the rank of each row for ``in_turn``.

    Rows that share a value of ``by`` have ranks in their order.
    """
    groups = plain(batch.column(by)).dictionary_encode(null_encoding="encode").indices.to_numpy()
    grouped = np.argsort(groups, kind="stable")
    low, ranks = groups[grouped].astype(np.int64) * len(batch), np.unique(places, return_inverse=True)[1]
    ranks[grouped] = np.maximum.accumulate(ranks[grouped] + low) - low
    return ranks


def plain(column: pa.Array) -> pa.Array:
    """Return a column without dictionary encoding. Other columns are unchanged."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def trim_dictionaries(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch in which dictionaries with more words than the batch has rows are decoded."""
    long = {
        field.name
        for field, column in zip(batch.schema, batch.columns, strict=True)
        if pa.types.is_dictionary(field.type) and len(column.dictionary) > len(batch)
    }
    return _decode_dictionary(batch, long)


def compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch whose dictionaries have at most as many words as the batch has rows."""
    return pa.RecordBatch.from_arrays([in_use(column) for column in batch.columns], schema=batch.schema)


def in_use(column: pa.Array) -> pa.Array:
    """Return a column without unused dictionary words, if the dictionary is longer than the column."""
    if not column.type.equals(DICTIONARY) or len(column.dictionary) <= len(column):
        return column
    used = np.zeros(len(column.dictionary), np.bool_)
    used[column.indices.drop_null().to_numpy()] = True
    places = pa.array(np.cumsum(used, dtype=np.int32) - np.int32(1))
    words = column.dictionary.take(pa.array(np.flatnonzero(used)))
    return pa.DictionaryArray.from_arrays(places.take(column.indices), words)


def concatenate(batches: Iterable[pa.RecordBatch]) -> pa.RecordBatch:
    """Return the concatenation of batches. A column that a batch lacks is missing in its rows."""
    batches = list(batches)
    coded = [{f.name for f in batch.schema if pa.types.is_dictionary(f.type)} for batch in batches]
    mixed = {
        name for names in coded for name in names
        if any(name in b.schema.names and name not in c for b, c in zip(batches, coded, strict=True))
    }  # fmt: skip
    tables = (pa.Table.from_batches([_decode_dictionary(batch, mixed)]) for batch in batches)
    table = pa.concat_tables(tables, promote_options="default")
    whole = table.unify_dictionaries().combine_chunks().to_batches()
    batch = whole[0] if whole else pa.RecordBatch.from_pylist([], schema=table.schema)
    if not any(_EVENTS in (part.schema.metadata or {}) for part in batches):
        return batch
    latest = [at for at in map(latest_time, batches) if at is not None]
    return with_totals(batch, sum(map(row_count, batches)), max(latest, default=None))


def _decode_dictionary(batch: pa.RecordBatch, names: set[str]) -> pa.RecordBatch:
    if not names:
        return batch
    columns = [
        plain(batch.column(i)) if n in names else batch.column(i) for i, n in enumerate(batch.schema.names)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def conform(topic: Topic, batch: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    """Return a batch in the types of its topic, without columns that the topic does not declare.

    Integers become floats, and times without a zone are UTC. A cast that would change or lose a value raises
    `UsageError`.
    """
    if isinstance(batch, pa.Table):
        batch = concatenate(batch.to_batches()) if len(batch) else batch.schema.empty_table().to_batches()[0]
    names = batch.schema.names
    for name in ("time", "source"):
        if name not in names:
            raise UsageError(f"a batch needs a '{name}' column; it has {', '.join(names)}")
    known = schema(topic, axes=3, place=True)
    columns = {}
    for field in known:
        if names.count(field.name) > 1:
            raise UsageError(f"a batch has two columns named '{field.name}'")
        if field.name in names:
            columns[field.name] = _conform(topic, field, batch.column(field.name))
    return pa.RecordBatch.from_pydict(locate(columns))


def _conform(topic: Topic, field: pa.Field, column: pa.Array) -> pa.Array:
    if column.type != field.type:
        column = _cast(topic, field, column)
    if field.name in ("time", "source", "sequence") and plain(column).null_count:
        raise UsageError(f"column '{field.name}' has missing values")
    if field.name == "time" and len(column) and not _has_dates(column):
        raise UsageError("column 'time' has values outside the years 1 to 9999")
    if field.name == "source" and pc.any(pc.equal(pc.utf8_trim_whitespace(plain(column)), "")).as_py():
        raise UsageError("column 'source' has blank values")
    return column


def _cast(topic: Topic, field: pa.Field, column: pa.Array) -> pa.Array:
    coded = pa.types.is_dictionary(column.type)
    type = column.type.value_type if coded else column.type
    try:
        if not _fits(type, field.type):
            raise pa.ArrowInvalid(f"{type} is another kind")
        return (
            column.cast(DICTIONARY) if coded and field.type == pa.string() else plain(column).cast(field.type)
        )
    except pa.ArrowException as error:
        wanted = "a timestamp" if field.type == TIME else f"{field.type}"
        raise UsageError(
            f"column '{field.name}' of topic '{topic.name}' must be {wanted}, not {column.type}: {error}"
        ) from None


def _has_dates(column: pa.Array) -> bool:
    ends = pc.min_max(column.view(pa.int64())).as_py()
    return bool(ends["min"] >= EARLIEST and ends["max"] <= LATEST)


def _fits(type: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether a column of this type can be cast to the wanted kind."""
    number = pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_decimal(type)
    if pa.types.is_null(type):
        return True
    if wanted == pa.float64():
        return bool(number)
    if wanted == pa.int64():
        return bool(pa.types.is_integer(type))
    if wanted == pa.string():
        return bool(
            pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type)
        )
    return bool(type == wanted or (wanted == TIME and pa.types.is_timestamp(type)))


def known_of(topic: Topic, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without the attributes whose kind in the batch differs from the topic's."""
    kinds = {a.name: TYPES[a.kind] for a in topic.attributes}
    return batch.select([f.name for f in batch.schema if kinds.get(f.name, f.type) == f.type])


def locate(columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """Return columns without coordinates after the first missing axis: there is no ``y`` without ``x``."""
    there: pa.Array | None = None
    for axis in AXES:
        if axis not in columns:
            return {name: column for name, column in columns.items() if name not in AXES[AXES.index(axis) :]}
        column = columns[axis]
        known = pc.fill_null(pc.invert(pc.is_nan(column)), False)
        there = known if there is None else pc.and_(there, known)
        if not pc.all(pc.or_(there, pc.is_null(column))).as_py():
            columns = columns | {axis: pc.if_else(there, column, pa.scalar(None, pa.float64()))}
    return columns


def with_totals(batch: pa.RecordBatch, event_count: int, watermark: Instant | None) -> pa.RecordBatch:
    """Return a compacted batch with metadata: the number of events before compaction, and the watermark."""
    note = {_EVENTS: str(event_count).encode()}
    if watermark is not None:
        note[_WATERMARK] = str(watermark).encode()
    return batch.replace_schema_metadata({**(batch.schema.metadata or {}), **note})


def row_count(batch: pa.RecordBatch) -> int:
    """Return how many events a batch represents: its own rows, or the rows before it was compacted."""
    note = (batch.schema.metadata or {}).get(_EVENTS)
    return len(batch) if note is None else int(note)


def latest_time(batch: pa.RecordBatch) -> Instant | None:
    """Return the latest event time of a batch, including rows that compaction dropped.

    Returns ``None`` if the batch is empty.
    """
    note = (batch.schema.metadata or {}).get(_WATERMARK)
    if note is not None:
        return int(note)
    latest = pc.max(batch.column("time").cast(pa.int64())).as_py() if len(batch) else None
    return None if latest is None else int(latest)


def to_ipc(batch: pa.RecordBatch) -> bytes:
    """Return a batch as bytes in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    raw: bytes = sink.getvalue().to_pybytes()
    return raw


def from_ipc(raw: bytes) -> pa.RecordBatch:
    """Return the batch that ``to_ipc`` has serialized."""
    return pa.ipc.open_stream(raw).read_next_batch()
