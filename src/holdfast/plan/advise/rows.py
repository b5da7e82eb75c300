"""A history in the form that variants of a state need.

Each reading has a scope, a time and two compared values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...definition.tune import Threshold, Tunable
from ...engine.key_codes import KeyCodes
from ...kernels.vary import by_scope
from ...kinds.state.plan_toggle import decisive
from ...lang.expressions import batch as columns
from ...lang.expressions.tables import add_table_columns
from ...lang.ops import Expression
from ...model.batch import times
from ...model.instant import Instant
from ...model.topic import Topic

Floats = NDArray[np.float64]
Times = NDArray[np.int64]
Interval = tuple[Instant, Instant]
Moments = tuple[int, float, float]
"""The count, the sum and the sum of squares of some numbers."""


@dataclass(frozen=True)
class MeasuredRows:
    """Readings grouped by scope, in order of time. Scope s has the rows from ``ends[s]`` to ``ends[s + 1]``.

    ``enter`` and ``exit`` are the values compared with the thresholds, negated for falling comparisons. They
    are infinite if the rest of the predicate makes it true, NaN if it makes it false. ``elsewhere`` has the
    times of readings in no scope.
    """

    keys: KeyCodes
    ends: Times
    times: Times
    enter: Floats
    exit: Floats
    elsewhere: Times

    def __len__(self) -> int:
        return len(self.times)

    def span(self) -> Interval:
        """Return the times of the first and the last reading."""
        every = [times for times in (self.times, self.elsewhere) if len(times)]
        return min(int(part.min()) for part in every), max(int(part.max()) for part in every)

    def moments(self) -> Moments:
        """Return the count, sum and sum of squares of the compared values.

        Results of several shards can be added.
        """
        values = self.enter if np.isfinite(self.enter).any() else self.exit
        finite = values[np.isfinite(values)]
        return len(finite), float(finite.sum()), float((finite**2).sum())

    def slice(self, start: Instant, end: Instant) -> MeasuredRows:
        """Return the readings from ``start`` on and before ``end``."""
        inside = (self.times >= start) & (self.times < end)
        if inside.all() and ((self.elsewhere >= start) & (self.elsewhere < end)).all():
            return self
        before = np.concatenate([[0], np.cumsum(inside)])
        return replace(
            self,
            ends=before[self.ends],
            times=self.times[inside],
            enter=self.enter[inside],
            exit=self.exit[inside],
            elsewhere=self.elsewhere[(self.elsewhere >= start) & (self.elsewhere < end)],
        )


class Measure:
    """Extracts the columns of `MeasuredRows` from a batch.

    These are the key of the scope, time, source and sequence, and the values compared with the thresholds.
    """

    def __init__(self, found: Tunable) -> None:
        condition = found.condition
        self.looks_at = {condition.topic.name: decisive([condition])}
        self._scoping = columns.scoping(condition.keys, condition.forest)
        self._joined = add_table_columns([condition]) or (lambda batch: batch)
        self._enter = measure(condition.enter, found.enter, condition.topic_with_rows)
        self._exit = measure(condition.exit, found.exit, condition.topic_with_rows)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        codes, keys = self._scoping(batch)[-1]
        joined, source = self._joined(batch), columns.encode_keys(batch.column("source"), len(batch))
        return pa.RecordBatch.from_pydict(
            {
                "key": pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), keys),
                "time": times(batch),
                "source": pa.DictionaryArray.from_arrays(pa.array(source.codes), source.keys),
                "sequence": batch.column("sequence"),
                "enter": self._enter(joined),
                "exit": self._exit(joined),
            }
        )


def collect_rows(batches: Iterable[pa.RecordBatch]) -> MeasuredRows:
    """Return measured batches, which can be in any order, as rows grouped by scope."""
    keys, sources = KeyCodes(), KeyCodes()
    parts: list[tuple[NDArray[Any], ...]] = []
    for batch in batches:
        rest = (batch.column(name).to_numpy() for name in ("time", "sequence", "enter", "exit"))
        parts.append((_encode(keys, batch.column("key")), _encode(sources, batch.column("source")), *rest))
    kinds = (np.int32, np.int32, np.int64, np.int64, np.float64, np.float64)
    columns_of = list(zip(*parts, strict=True)) or [()] * len(kinds)
    found = [np.concatenate([np.empty(0, kind), *some]) for kind, some in zip(kinds, columns_of, strict=True)]
    inside = found[0] >= 0
    elsewhere = found[2][~inside]
    codes, source, moments, sequences, enter, exit = (
        found if inside.all() else (column[inside] for column in found)
    )
    ends, order = np.zeros(len(keys) + 1, np.int64), np.empty(len(codes), np.int64)
    by_scope(codes, ends, order)
    if not _rising(moments[order], ends):
        order = np.lexsort((sequences, _ranks(sources)[source], moments, codes))
    return MeasuredRows(keys, ends, moments[order], enter[order], exit[order], elsewhere)


def _encode(keys: KeyCodes, column: pa.Array) -> NDArray[np.int32]:
    """Return a column as codes of a dictionary of keys; -1 for missing values."""
    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    table = np.append(keys.codes(column.dictionary), np.int32(-1)).astype(np.int32)
    found: NDArray[np.int32] = table[column.indices.fill_null(-1).to_numpy()]
    return found


def _rising(moments: Times, ends: Times) -> bool:
    """Whether the times of every scope increase."""
    rises = np.diff(moments) > 0
    rises[ends[1:-1][(ends[1:-1] > 0) & (ends[1:-1] < len(moments))] - 1] = True
    return bool(rises.all())


def _ranks(sources: KeyCodes) -> NDArray[np.int64]:
    """Return the rank of each source by code point."""
    return np.argsort(np.argsort(np.array(sources.all().to_pylist(), object)))


def measure(
    predicate: Expression, threshold: Threshold | None, topic: Topic
) -> Callable[[pa.RecordBatch], Floats]:
    """Return a function from a batch to the values that a predicate compares with a threshold.

    A value is infinite where the rest of the predicate makes it true, and NaN where it makes it false.
    """
    if threshold is None:
        holds = columns.predicate(predicate, topic)
        return lambda batch: np.where(holds(batch), np.inf, np.nan)
    number = columns.number(threshold.of, topic)
    sign = 1.0 if threshold.rises else -1.0
    if predicate is threshold.written:
        return lambda batch: sign * number(batch)
    possible = columns.predicate(threshold.put(predicate, True), topic)
    always = columns.predicate(threshold.put(predicate, False), topic)

    def found(batch: pa.RecordBatch) -> Floats:
        return np.where(always(batch), np.inf, np.where(possible(batch), sign * number(batch), np.nan))

    return found
