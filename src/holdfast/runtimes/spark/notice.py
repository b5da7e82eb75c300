"""Notifications as rows of a table: fixed columns, then one column for each attribute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ...compilers.keys import key_text
from ...files.table import ColumnKind, attribute_columns
from ...model.batch import TIME, TYPES
from ...model.event import Event, Notification, Value
from ...model.topic import Kind, Topic

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
    """The columns of notifications of these topics."""
    fields = [pa.field(name, type) for name, type in _FIXED.items()]
    return pa.schema([*fields, *(pa.field(n, TYPES[kind]) for n, kind in _attributes(topics).values())])


def spark_schema(topics: Sequence[Topic]) -> StructType:
    return from_arrow_schema(schema_of(topics))


def _attributes(topics: Sequence[Topic]) -> dict[str, tuple[str, ColumnKind]]:
    return attribute_columns(topics, dict.fromkeys(_FIXED, "text"))


def to_table(topics: Sequence[Topic], notifications: Sequence[Notification]) -> pa.Table:
    """A row for each notification."""
    events = [n.event for n in notifications]
    columns: dict[str, list[Any]] = {
        "id": [n.id for n in notifications],
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
    for name, (column, kind) in _attributes(topics).items():
        values = [e.attributes.get(name) for e in events]
        columns[column] = [key_text(v) for v in values] if kind == "text" else values
    schema = schema_of(topics)
    return pa.table({f.name: _column(columns[f.name], f.type) for f in schema}, schema=schema)


def _column(values: list[Any], type: pa.DataType) -> pa.Array:
    return pa.array(values, pa.int64()).cast(TIME) if type == TIME else pa.array(values, type)


def from_table(topics: Sequence[Topic], table: pa.Table) -> Iterator[Notification]:
    """The notifications that rows stand for."""
    attributes, by_name = _attributes(topics), {topic.name: topic for topic in topics}
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


def _of_kind(value: Any, kind: Kind) -> Value:
    """A value whose column had to be text, because another topic has another kind there."""
    if not isinstance(value, str) or kind == "text":
        return None if value != value else value
    return value == "true" if kind == "bool" else float(value) if kind == "float" else int(value)
