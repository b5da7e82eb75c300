"""A history as the variants of a state see it: of each reading its scope, its time and two numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.vary import by_scope
from ...lang.ops import Expression
from ...lang.tune import Threshold, Tunable
from ...machines.keys import Keys
from ...model.batch import times
from ...model.instant import Instant
from ...model.topic import Topic
from .. import columns
from ..filters.machine import decisive
from ..tables import looking_up

Floats = NDArray[np.float64]
Times = NDArray[np.int64]
Stretch = tuple[Instant, Instant]
Moments = tuple[int, float, float]
"""How many numbers, their sum and that of their squares."""


@dataclass(frozen=True)
class Rows:
    """Readings scope after scope, each in order: scope s has the rows from ``ends[s]`` to ``ends[s + 1]``.

    ``enter`` and ``exit`` are what is compared with the thresholds, so turned that more satisfies more:
    always if it is infinite, never if it is NaN.  ``elsewhere`` are the times of readings in no scope.
    """

    keys: Keys
    ends: Times
    times: Times
    enter: Floats
    exit: Floats
    elsewhere: Times

    def __len__(self) -> int:
        return len(self.times)

    def span(self) -> Stretch:
        """When the first reading is, and the last: with it the history ends."""
        every = [some for some in (self.times, self.elsewhere) if len(some)]
        return min(int(some.min()) for some in every), max(int(some.max()) for some in every)

    def moments(self) -> Moments:
        """How much readings differ, as what can be added up."""
        values = self.enter if np.isfinite(self.enter).any() else self.exit
        finite = values[np.isfinite(values)]
        return len(finite), float(finite.sum()), float((finite**2).sum())

    def between(self, start: Instant, end: Instant) -> Rows:
        """The readings from ``start`` on and before ``end``, as if there were no others."""
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
    """Of a batch of readings what the variants of a state see of it: the key of the scope, time, source and
    sequence, and what is compared with the thresholds."""

    def __init__(self, found: Tunable) -> None:
        condition = found.condition
        self.looks_at = {condition.topic.name: decisive([condition])}
        self._scoping = columns.scoping(condition)
        self._joined = looking_up([condition]) or (lambda batch: batch)
        self._enter = measured(condition.enter, found.enter, condition.looked)
        self._exit = measured(condition.exit, found.exit, condition.looked)

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        codes, keys = self._scoping(batch)[-1]
        joined, source = self._joined(batch), columns.keyed(batch.column("source"), len(batch))
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


def gathered(batches: Iterable[pa.RecordBatch]) -> Rows:
    """What was measured, in whatever order, scope after scope."""
    keys, sources = Keys(), Keys()
    parts: list[tuple[NDArray[Any], ...]] = []
    for batch in batches:
        rest = (batch.column(name).to_numpy() for name in ("time", "sequence", "enter", "exit"))
        parts.append((_coded(keys, batch.column("key")), _coded(sources, batch.column("source")), *rest))
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
    return Rows(keys, ends, moments[order], enter[order], exit[order], elsewhere)


def _coded(keys: Keys, column: pa.Array) -> NDArray[np.int32]:
    """A column as codes of keys; -1 where there is none."""
    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    table = np.append(keys.codes(column.dictionary), np.int32(-1)).astype(np.int32)
    found: NDArray[np.int32] = table[column.indices.fill_null(-1).to_numpy()]
    return found


def _rising(moments: Times, ends: Times) -> bool:
    """Whether the times of every scope rise."""
    rises = np.diff(moments) > 0
    rises[ends[1:-1][(ends[1:-1] > 0) & (ends[1:-1] < len(moments))] - 1] = True
    return bool(rises.all())


def _ranks(sources: Keys) -> NDArray[np.int64]:
    """The place of each source among all, by code point."""
    return np.argsort(np.argsort(np.array(sources.all().to_pylist(), object)))


def measured(
    predicate: Expression, threshold: Threshold | None, topic: Topic
) -> Callable[[pa.RecordBatch], Floats]:
    """What of each event is compared with a threshold, whatever else its predicate says."""
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
