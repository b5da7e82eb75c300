"""Tables as columns of events: an event has the values of its row, as if it carried them.

The rows of a batch are found by its distinct keys, each looked up once in the kind of dictionary that scopes
have: a million rows cost some 30 bytes each and their text.
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

from ..lang.condition import Condition, Guarded
from ..lang.ops import Truth
from ..lang.rewrite import names
from ..machines.keys import Keys
from ..model.event import Event, Value
from ..model.qos import TIMELY
from ..model.table import DEFAULT, Table
from ..model.topic import Topic
from . import columns, scalar
from .keys import joined
from .once import once

Lacking = Sequence[NDArray[np.bool_]]

_RECENT = 1 << 14  # rows that single events find at once


def topic_of(conditions: Iterable[Condition | Guarded]) -> Topic:
    """The topic of conditions with what events have because of their rows in tables."""
    first, *rest = conditions
    topic = first.looked
    more = (a for one in rest for a in one.looked.attributes if a.name not in topic.by_name)
    return Topic(topic.name, (*topic.attributes, *dict.fromkeys(more)))


def looked_at(condition: Condition | Guarded) -> list[str]:
    """The columns of events that predicates need, those by which tables are looked up among them."""
    mentioned = dict.fromkeys((*names(condition.enter), *names(condition.exit)))
    keys = (name for table in condition.tables for name in table.by)
    return [*(name for name in mentioned if "." not in name), *keys]


def looking_up(
    conditions: Sequence[Condition | Guarded],
) -> Callable[[pa.RecordBatch], pa.RecordBatch] | None:
    """A batch with the columns of the tables that conditions name; ``None`` if they name none."""
    found = {table.name: looked_up(table) for one in conditions for table in one.tables}
    if not found:
        return None

    def join(batch: pa.RecordBatch) -> pa.RecordBatch:
        added = [pair for rows in found.values() for pair in rows.of(batch).items()]
        arrays = [*batch.columns, *(column for _, column in added)]
        return pa.RecordBatch.from_arrays(arrays, names=[*batch.schema.names, *(name for name, _ in added)])

    return once(join)  # entrance and exit ask for the same


def lacking(conditions: Sequence[Condition | Guarded]) -> Callable[[pa.RecordBatch], Lacking] | None:
    """For each condition which events have no row in a table that it names; ``None`` if none names any."""
    if not any(one.tables for one in conditions):
        return None
    found = [[looked_up(table) for table in one.tables] for one in conditions]

    def lack(batch: pa.RecordBatch) -> Lacking:
        nowhere = np.zeros(len(batch), np.bool_)
        return [np.logical_or.reduce([nowhere, *(rows.rows(batch) < 0 for rows in some)]) for some in found]

    return lack


def looking_up_one(tables: Iterable[Table]) -> Callable[[Event], Event]:
    """The same for one event."""
    found = [looked_up(table) for table in tables]

    def join(event: Event) -> Event:
        own: dict[str, Value] = dict(event.attributes)
        for rows in found:
            own.update(rows.of_one(event))
        return replace(event, attributes=own)

    return join


def differing(one: Table, other: Table) -> int:
    """How many keys have another row in one table than in the other, or a row in one of them alone."""
    was, now = (
        set(zip(*(array.to_pylist() for array in (*table.keys, *table.data)), strict=True))
        for table in (one, other)
    )
    return len({row[: len(one.keys)] for row in was ^ now})


@lru_cache(maxsize=64)
def looked_up(table: Table) -> Rows:
    """The rows of a table, which all that name it share."""
    return Rows(table)


class Rows:
    """The rows of a table, by their keys; engines in several threads may share them."""

    def __init__(self, table: Table) -> None:
        self._table, self._lock = table, Lock()
        self._keys = Keys()
        texts = [array.to_pylist() for array in table.keys]
        if len(texts) == 1 and not pc.any(pc.match_substring_regex(table.keys[0], r"[\x1d-\x1f]")).as_py():
            keys = table.keys[0]
        else:
            keys = pa.array([joined(None, parts) for parts in zip(*texts, strict=True)], pa.string())
        self._keys.codes(keys)
        self._size = len(table)
        star = joined(None, [DEFAULT] * len(table.by))
        default = self._keys.code(star)
        self._default = default if default < self._size else -1
        place = Condition("", Topic(""), Truth(True), Truth(True), (table.by,), None, TIMELY)
        self._chain, self._scoping = scalar.chain(place), columns.scoping(place)
        self._single: list[list[Value]] | None = None
        self._recent: dict[str | None, Mapping[str, Value]] = {}

    def rows(self, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """The row of each event, -1 where there is none."""
        with self._lock:
            codes, keys = self._scoping(batch)[-1]
            known = self._keys.codes(keys)
        found = np.where(known < self._size, known, self._default)
        return np.append(found, self._default).astype(np.int64)[codes]

    def of(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        """What each event of a batch has because of its row."""
        rows = self.rows(batch)
        at = pa.array(rows, mask=rows < 0)
        pairs = zip(self._table.attributes, self._table.data, strict=True)
        return {attribute.name: column.take(at) for attribute, column in pairs}

    def of_one(self, event: Event) -> Mapping[str, Value]:
        """What one event has because of its row."""
        chain = self._chain(event)
        key = None if chain is None else chain[-1]
        found = self._recent.get(key)
        if found is None:
            if len(self._recent) >= _RECENT:
                self._recent.clear()
            found = self._recent[key] = self.of_key(key)
        return found

    def of_key(self, key: str | None) -> Mapping[str, Value]:
        """What whoever has this key has because of it."""
        with self._lock:
            if self._single is None:
                self._single = [column.to_pylist() for column in self._table.data]
            code = self._size if key is None else self._keys.code(key)
        row = code if code < self._size else self._default
        return {
            attribute.name: None if row < 0 else column[row]
            for attribute, column in zip(self._table.attributes, self._single, strict=True)
        }
