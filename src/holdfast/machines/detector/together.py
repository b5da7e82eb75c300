"""What a query shows of several topics that a function makes one: topics are processed last."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels.aggregate import AGGREGATES
from ...model.instant import BEGINNING
from ...model.query import Pool
from .plan import STATUS, Column
from .rows import Ints, Mask
from .series import Cells, Floats, Series, Shown, defaulted, standings


def share(views: Sequence[Series]) -> bool:
    """Whether several standings have one key, each of which stays by itself: a place, and a point that is
    written as it."""
    where = np.full(views[0].count, -1)
    for series, spots in zip(views, standings(views), strict=True):
        if isinstance(series.query.location, Pool):
            return False
        if series.divided:
            return True
        some = np.flatnonzero(series.starts[:-1] < series.starts[1:])
        mine = spots[series.order[series.bounds[series.starts[some]]]]
        if ((where[some] >= 0) & (where[some] != mine)).any():
            return True
        where[some] = mine
    return False


class Together:
    """What each topic shows at instants, as one; ``parts`` are the readings of topics and what is shown of
    them."""

    def __init__(self, parts: Sequence[tuple[Series, Cells]], at: Ints) -> None:
        self.parts = sorted(parts, key=lambda part: part[0].rows.topic.name)
        self._at = at
        self._there: Mask = np.stack([cells.there for _, cells in self.parts], axis=1)
        self._some: Mask = np.logical_or.reduce([cells.there for _, cells in self.parts])

    def shown(self, columns: tuple[Column, ...]) -> Shown:
        """What the query shows."""
        there = self._some.astype(np.int64)
        values = {column.name: self.values(column) for column in columns}
        return Shown(
            Cells(np.zeros(len(there), np.int64), there), values, all(map(self.is_exact, columns)), fold=self
        )

    def is_exact(self, column: Column) -> bool:
        """Whether floats tell the whole numbers of a column apart."""
        deep = max(int((cells.high - cells.low).max(initial=1)) for _, cells in self.parts)
        return all(series.is_small(column, deep * len(self.parts)) for series, _ in self.parts)

    def values(self, column: Column) -> Any:
        """A column of what it shows."""
        return defaulted(column, self._values(column), self._some)

    def _values(self, column: Column) -> Any:
        if column.attribute == STATUS:
            return pa.repeat(self.parts[0][0].status, len(self._at))
        plain = column._replace(default=None)
        of_topics = [series.values(plain, cells, self._at) for series, cells in self.parts]
        if column.kind != "number":
            return self._common(of_topics)
        if column.attribute:
            return self._folded(of_topics, column.across or "max")
        counts = np.where(self._there, np.stack(of_topics, axis=1), 0.0).sum(axis=1)
        return np.where(counts > 0, counts, np.nan)

    def _folded(self, of_topics: Sequence[Floats], function: str) -> Floats:
        """The function of what topics show, one instant after another."""
        values = np.where(self._there, np.stack(of_topics, axis=1), np.nan).ravel()
        low = np.arange(len(self._at)) * len(self.parts)
        found: Floats = AGGREGATES[function](values, low, low + len(self.parts))
        return np.where(self._some, found, np.nan)

    def _common(self, of_topics: Sequence[Any]) -> Any:
        """The text or truth that all have."""
        words = pa.concat_arrays(of_topics).dictionary_encode()
        codes = words.indices.cast(pa.float64()).fill_null(-1.0).to_numpy(zero_copy_only=False)
        each = np.split(codes, len(self.parts))
        least, most = (self._folded(each, function) for function in ("min", "max"))
        same = (least == most) & (most >= 0)
        return words.dictionary.take(pa.array(np.where(same, most, 0).astype(np.int64), mask=~same))

    # --- what contributed last ---

    @cached_property
    def _latest(self) -> tuple[Ints, Mask]:
        """The number of the topic that contributed last to each instant, and where columns do not tell which
        it was: of several windows that end at one moment."""
        latest, unclear = np.zeros(len(self._at), np.int64), np.zeros(len(self._at), np.bool_)
        when, where = np.full(len(self._at), BEGINNING), np.zeros(len(self._at), np.int64)
        spots = standings([series for series, _ in self.parts])
        for number, (series, cells) in enumerate(self.parts):
            some = np.flatnonzero(cells.there)
            rows = series.newest(cells.at(some))
            time, spot = series.rows.times[rows], spots[number][rows]
            tied = time == when[some]
            later = (time > when[some]) | (tied & (spot < where[some]))
            unclear[some] = np.where(
                time > when[some], False, unclear[some] | (tied & (not series.span.nearest))
            )
            chosen = some[later]
            latest[chosen], when[chosen], where[chosen] = number, time[later], spot[later]
        return latest, unclear

    def latest(self, some: Ints) -> tuple[Ints, bool]:
        """The numbers of the topics that contributed last by some instants, and whether that is so."""
        topics, unclear = self._latest
        return topics[some], not unclear[some].any()
