"""Tables as columns of events: an event has the values of its row as additional attributes.

The rows of a batch are found by its distinct keys. Each key is looked up once, in the same kind of dictionary
that scopes use. A million rows take about 30 bytes each plus their text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from threading import Lock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...engine.key_codes import KeyCodes
from ...model.event import Event, Value
from ...model.table import DEFAULT, Table
from ...model.topic import Topic
from ..condition import ScopedCondition
from ..rewrite import names
from . import batch as columns
from . import event as scalar
from .key_text import join_key
from .once import once

Lacking = Sequence[NDArray[np.bool_]]

_RECENT = 1 << 14  # rows in the cache for single events


def topic_of(conditions: Iterable[ScopedCondition]) -> Topic:
    """Return the topic of conditions with the columns of all their tables."""
    first, *rest = conditions
    topic = first.topic_with_rows
    more = (
        a for condition in rest for a in condition.topic_with_rows.attributes if a.name not in topic.by_name
    )
    return Topic(topic.name, (*topic.attributes, *dict.fromkeys(more)))


def columns_of(condition: ScopedCondition) -> list[str]:
    """Return the columns of events that predicates use, and those by which tables are looked up."""
    mentioned = dict.fromkeys((*names(condition.enter), *names(condition.exit)))
    keys = (name for table in condition.tables for name in table.by)
    return [*(name for name in mentioned if "." not in name), *keys]


def add_table_columns(
    conditions: Sequence[ScopedCondition],
) -> Callable[[pa.RecordBatch], pa.RecordBatch] | None:
    """Return a function that adds the columns of the conditions' tables to a batch.

    Returns ``None`` if the conditions have no tables.
    """
    found = {table.name: rows_of(table) for condition in conditions for table in condition.tables}
    if not found:
        return None

    def join(batch: pa.RecordBatch) -> pa.RecordBatch:
        added = [pair for rows in found.values() for pair in rows.of(batch).items()]
        arrays = [*batch.columns, *(column for _, column in added)]
        return pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *(name for name, _ in added)])

    return once(join)  # entrance and exit ask for the same batch


def rows_without_match(
    conditions: Sequence[ScopedCondition],
) -> Callable[[pa.RecordBatch], Lacking] | None:
    """Return a function from a batch to its events without a row in a table, by condition.

    Returns ``None`` if no condition has tables.
    """
    if not any(condition.tables for condition in conditions):
        return None
    found = [[rows_of(table) for table in condition.tables] for condition in conditions]

    def lack(batch: pa.RecordBatch) -> Lacking:
        nowhere = np.zeros(len(batch), np.bool_)
        return [
            np.logical_or.reduce([nowhere, *(rows.rows(batch) < 0 for rows in tables)]) for tables in found
        ]

    return lack


def add_table_values(tables: Iterable[Table]) -> Callable[[Event], Event]:
    """Return a function that adds the values of its rows to an event."""
    found = [rows_of(table) for table in tables]

    def join(event: Event) -> Event:
        own: dict[str, Value] = dict(event.attributes)
        for rows in found:
            own.update(rows.of_one(event))
        return replace(event, attributes=own)

    return join


def differing(one: Table, other: Table) -> int:
    """Return the number of keys whose row differs between two tables, or is in only one of them."""
    was, now = (
        set(zip(*(array.to_pylist() for array in (*table.keys, *table.data)), strict=True))
        for table in (one, other)
    )
    return len({row[: len(one.keys)] for row in was ^ now})


@lru_cache(maxsize=64)
def rows_of(table: Table) -> TableRows:
    """Return the rows of a table. All conditions that use the table share the result."""
    return TableRows(table)


class TableRows:
    """The rows of a table by their keys. Engines in several threads may share them."""

    def __init__(self, table: Table) -> None:
        self._table, self._lock = table, Lock()
        self._keys = KeyCodes()
        texts = [array.to_pylist() for array in table.keys]
        if len(texts) == 1 and not pc.any(pc.match_substring_regex(table.keys[0], r"[\x1d-\x1f]")).as_py():
            keys = table.keys[0]
        else:
            keys = pa.array([join_key(None, parts) for parts in zip(*texts, strict=True)], pa.string())
        self._keys.codes(keys)
        self._size = len(table)
        star = join_key(None, [DEFAULT] * len(table.by))
        default = self._keys.code(star)
        self._default = default if default < self._size else -1
        self._chain, self._scoping = scalar.chain((table.by,)), columns.scoping((table.by,))
        self._single: list[list[Value]] | None = None
        self._recent: dict[str | None, Mapping[str, Value]] = {}

    def rows(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """Return the row number of each event; -1 where there is no row."""
        with self._lock:
            codes, keys = self._scoping(batch)[-1]
            known = self._keys.codes(keys)
        found = np.where(known < self._size, known, self._default)
        return np.append(found, self._default).astype(np.int64)[codes]

    def of(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """Return the columns of the table for each event of a batch."""
        rows = self.rows(batch)
        at = pa.array(rows, mask=rows < 0)
        pairs = zip(self._table.attributes, self._table.data, strict=True)
        return {attribute.name: column.take(at) for attribute, column in pairs}

    def of_one(self, event: Event) -> Mapping[str, Value]:
        """Return the values of one event's row, by column."""
        chain = self._chain(event)
        key = None if chain is None else chain[-1]
        found = self._recent.get(key)
        if found is None:
            if len(self._recent) >= _RECENT:
                self._recent.clear()
            found = self._recent[key] = self.of_key(key)
        return found

    def of_key(self, key: str | None) -> Mapping[str, Value]:
        """Return the values of the row with a key. All are ``None`` if there is no such row."""
        with self._lock:
            if self._single is None:
                self._single = [column.to_pylist() for column in self._table.data]
            code = self._size if key is None else self._keys.code(key)
        row = code if code < self._size else self._default
        return {
            attribute.name: None if row < 0 else column[row]
            for attribute, column in zip(self._table.attributes, self._single, strict=True)
        }
