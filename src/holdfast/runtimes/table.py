"""Notifications as rows of a table, for all runtimes: fixed columns, then one column for each attribute.

Rows get their ids last (`add_ids`), when they leave the runtime. Until then the column `id` is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..engine.machine import CONDITIONS, SCOPE, SINCE, STATUS, Emission, set_bits
from ..engine.operator import Operator
from ..files.table import EVENT_COLUMNS, ColumnKind, attribute_columns
from ..files.write import location_text
from ..model.batch import AXES, TIME, TYPES, plain
from ..model.event import Event, Notification, Value, notification_id
from ..model.topic import Kind, Topic

_FIXED = {
    "id": pa.string(),
    "subscription": pa.string(),
    "scope": pa.string(),
    "status": pa.string(),
    "time": TIME,
    "since": TIME,
    "topic": pa.string(),
    "source": pa.string(),
    "sequence": pa.int64(),
    "place": pa.string(),
    "location": pa.list_(pa.float64()),
}


def schema_of(topics: Sequence[Topic]) -> pa.Schema:
    """Return the schema of a table with the notifications of some topics."""
    fields = [pa.field(name, type) for name, type in _FIXED.items()]
    return pa.schema([*fields, *(pa.field(n, TYPES[kind]) for n, kind in attributes_of(topics).values())])


def attributes_of(topics: Sequence[Topic]) -> dict[str, tuple[str, ColumnKind]]:
    """Return the column and the kind of each attribute of some topics, by attribute name."""
    return attribute_columns(topics, dict.fromkeys(_FIXED, "text"))


def to_table(topics: Sequence[Topic], notifications: Sequence[Notification]) -> pa.Table:
    """Return a table with a row for each notification. Ids are missing."""
    events = [n.event for n in notifications]
    columns: dict[str, list[Any]] = {
        "id": [None] * len(events),
        "subscription": [n.subscription for n in notifications],
        "scope": [n.scope for n in notifications],
        "status": [n.status for n in notifications],
        "time": [e.time for e in events],
        "since": [n.since for n in notifications],
        "topic": [e.topic for e in events],
        "source": [e.source for e in events],
        "sequence": [e.sequence for e in events],
        "place": [e.place for e in events],
        "location": [e.location for e in events],
    }
    for name, (column, kind) in attributes_of(topics).items():
        values = [e.attributes.get(name) for e in events]
        columns[column] = [_text(v) for v in values] if kind == "text" else values
    schema = schema_of(topics)
    return pa.table({f.name: _column(columns[f.name], f.type) for f in schema}, schema=schema)


def _column(values: list[Any], type: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int64()).cast(TIME) if type == TIME else pa.array(values, type)


def table_of(topics: Sequence[Topic], operator: Operator, emission: Emission) -> pa.Table:
    """Return a table with a row for each notification of an emission.

    If the emission has rows of several topics, late events come first and the others are sorted by time.
    Otherwise rows keep their order.
    """
    known = {**operator.topics, **emission.topics}
    tables = [
        _by_columns(topics, operator, known[topic], rows)
        for topic, rows in emission.rows.items()
        if len(rows)
    ]
    if emission.single or not tables:
        tables.append(to_table(topics, list(operator.address(emission.single))))
    if len(tables) == 1:
        return tables[0]
    whole = pa.concat_tables(tables)
    keys = {"told": pc.not_equal(whole.column("status"), "late").cast(pa.int8())}
    keys |= {name: whole.column(name) for name in ("time", "source", "sequence", "topic")}
    return whole.take(pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys]))


def _by_columns(
    topics: Sequence[Topic], operator: Operator, topic: Topic, passed: pa.RecordBatch
) -> pa.Table:
    """Return a table with a row for each notification of events of one topic."""
    rows, names = _recipients(operator, passed.column(CONDITIONS).to_numpy())
    passed = passed if len(rows) == len(passed) else passed.take(pa.array(rows))
    columns = {
        "subscription": names,
        "scope": operator.label_scopes(passed.column(SCOPE)),
        "status": plain(passed.column(STATUS)),
        "time": _not_before(passed.column(SINCE), passed.column("time")),
        "since": passed.column(SINCE),
        "topic": pa.repeat(topic.name, len(passed)),
        "source": plain(passed.column("source")),
        "sequence": passed.column("sequence"),
        "location": _locations(passed),
    }
    if "place" in passed.schema.names:
        columns["place"] = plain(passed.column("place"))
    for name, (column, kind) in attributes_of(topics).items():
        if name in topic.by_name and name in passed.schema.names:
            columns[column] = _values(passed.column(name), kind)
    schema = schema_of(topics)
    whole = [columns[f.name] if f.name in columns else pa.nulls(len(passed), f.type) for f in schema]
    return pa.Table.from_arrays(whole, schema=schema)


def _not_before(since: pa.Array, times: pa.Array) -> pa.Array:
    """Return the times, replaced by the start where they are earlier.

    An interval must not end before it starts.
    """
    return pc.max_element_wise(times.cast(pa.int64()), since.cast(pa.int64())).cast(TIME)


def _recipients(operator: Operator, words: NDArray[np.uint64]) -> tuple[NDArray[np.intp], pa.Array]:
    """Return for each notification the row of its event, and its subscription.

    `words` has a bit for each condition.
    """
    recipients = operator.recipients
    counts = np.array([len(names) for names in recipients])
    found, conditions = set_bits(words & np.uint64((1 << len(counts)) - 1))
    repeats = counts[conditions]
    rows = np.repeat(found, repeats)
    among = np.arange(len(rows)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    starts = np.cumsum(counts) - counts
    names = pa.array([name for names in recipients for name in names], pa.string())
    return rows, names.take(pa.array(np.repeat(starts[conditions], repeats) + among))


IDENTIFYING = ("subscription", "scope", "status", "time", "source", "sequence")
"""The columns from which the id of a row is computed."""


def add_ids(table: pa.Table) -> pa.Table:
    """Return the table with an id in each row."""
    columns = {name: table.column(name).combine_chunks() for name in IDENTIFYING}
    columns["time"] = columns["time"].cast(pa.int64())
    return table.set_column(0, table.schema.field(0), ids(*columns.values()))


def ids(*identifying: pa.Array) -> pa.Array:
    """Return the ids of rows, given their identifying columns. Times are in microseconds."""
    return pa.array(map(notification_id, *(column.to_pylist() for column in identifying)), pa.string())


def _locations(passed: pa.RecordBatch) -> pa.Array:
    """Return the known coordinates of each event; null where there are none."""
    axes = [passed.column(axis) for axis in AXES if axis in passed.schema.names]
    if not axes:
        return pa.nulls(len(passed), pa.list_(pa.float64()))
    points = np.column_stack([axis.to_numpy(zero_copy_only=False) for axis in axes])
    known = np.logical_and.accumulate(~np.isnan(points), axis=1)
    sizes = known.sum(axis=1)
    offsets = pa.array(np.append(0, np.cumsum(sizes)), pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.array(points[known]), mask=pa.array(sizes == 0))


def _values(column: pa.Array, kind: ColumnKind) -> pa.Array:
    """Return the values of an attribute in the type of its column."""
    column = plain(column)
    if kind == "text" and not pa.types.is_string(column.type):
        return pa.array(map(_text, column.to_pylist()), pa.string())
    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column)
    return column


def from_table(topics: Sequence[Topic], table: pa.Table) -> Iterator[Notification]:
    """Yield the notification of each row of a table."""
    attributes, by_name = attributes_of(topics), {topic.name: topic for topic in topics}
    for batch in table.to_batches():
        columns = {name: batch.column(name) for name in batch.schema.names}
        times = {name: columns[name].cast(pa.int64()).to_pylist() for name in ("time", "since")}
        values = {name: column.to_pylist() for name, column in columns.items() if name not in times}
        for i in range(len(batch)):
            at = {name: column[i] for name, column in values.items()}
            topic = by_name[at["topic"]]
            own = {a.name: _of_kind(at[attributes[a.name][0]], a.kind) for a in topic.attributes}
            where = tuple(at["location"]) if at["location"] is not None else None
            event = Event(topic.name, times["time"][i], at["source"], own, at["sequence"], where, at["place"])
            yield Notification(at["subscription"], event, at["status"], at["scope"], times["since"][i])


def _text(value: Value) -> str | None:
    """Return a value as text, for a column in which another topic has text. `_of_kind` converts it back."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None or value != value else str(value)


def _of_kind(value: Any, kind: Kind) -> Value:
    """Return a value in its kind. It is text in the table if another topic has another kind in the column."""
    if not isinstance(value, str) or kind == "text":
        return None if value != value else value
    return value == "true" if kind == "bool" else float(value) if kind == "float" else int(value)


def to_columns(topics: Sequence[Topic], table: pa.Table) -> pa.Table:
    """Return the table in the columns that `holdfast replay` writes."""
    columns = {name: table.column(name) for name in EVENT_COLUMNS}
    columns["location"] = _location_texts(table)
    columns |= {column: table.column(column) for column, _ in attributes_of(topics).values()}
    return pa.table(columns)


ORDER = ("time", "subscription", "scope", "source", "sequence", "status")
"""The columns by which an output is sorted, as `Notification.order`."""


def sort_rows(table: pa.Table) -> pa.Table:
    """Sort the rows of a table in the order of an output."""
    keys = {name: table.column(name) for name in ORDER}
    keys["scope"] = keys["scope"].fill_null("")
    return table.take(pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in ORDER]))


def _location_texts(table: pa.Table) -> pa.Array:
    """Return the location of each event as text: its coordinates, else its place."""
    where, place = table.column("location"), table.column("place")
    if where.null_count == len(where):
        return place
    pairs = zip(where.to_pylist(), place.to_pylist(), strict=True)
    return pa.array([location_text(name, at) for at, name in pairs], pa.string())
