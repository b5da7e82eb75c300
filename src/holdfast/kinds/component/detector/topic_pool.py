"""Queries that pool several topics with a function: the values of all topics, as columns.

Topics are pooled after all other dimensions. `aggregate.py` defines the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from ....kernels.functions import AGGREGATES
from ....model.instant import BEGINNING
from ....model.query import PooledDimension
from .columnar_plan import STATUS, PlanColumn
from .rows import Ints, Mask
from .series import CellRanges, Floats, ReadingSeries, ShownColumns, common_text, fill_default, standings


def has_shared_keys(views: Sequence[ReadingSeries]) -> bool:
    """Whether two separate locations have the same key, for example a place and a point that is written like
    its name."""
    where = np.full(views[0].count, -1)
    for series, spots in zip(views, standings(views), strict=True):
        if isinstance(series.query.location, PooledDimension):
            return False
        if series.is_divided:
            return True
        some = np.flatnonzero(series.starts[:-1] < series.starts[1:])
        mine = spots[series.order[series.bounds[series.starts[some]]]]
        if ((where[some] >= 0) & (where[some] != mine)).any():
            return True
        where[some] = mine
    return False


class TopicPool:
    """The pooled values that topics show at instants. `parts` are the series of the topics with their
    cells."""

    def __init__(self, parts: Sequence[tuple[ReadingSeries, CellRanges]], at: Ints) -> None:
        self.parts = sorted(parts, key=lambda part: part[0].rows.topic.name)
        self._at = at
        self._there: Mask = np.stack([cells.there for _, cells in self.parts], axis=1)
        self._some: Mask = np.logical_or.reduce([cells.there for _, cells in self.parts])

    def show(self, columns: tuple[PlanColumn, ...]) -> ShownColumns:
        """Return the pooled values that the query shows at each instant."""
        there = self._some.astype(np.int64)
        cells = CellRanges(np.zeros(len(there), np.int64), there)
        values = {column.name: self.values(column) for column in columns}
        return ShownColumns(cells, values, all(map(self.is_exact, columns)), fold=self)

    def is_exact(self, column: PlanColumn) -> bool:
        """Whether floats represent the integers of a column, and their sums over all topics, exactly."""
        deep = max(int((cells.high - cells.low).max(initial=1)) for _, cells in self.parts)
        return all(series.is_small(column, deep * len(self.parts)) for series, _ in self.parts)

    def values(self, column: PlanColumn) -> Any:
        """Return the pooled values of a column at each instant, with its default where no topic has a
        value."""
        return fill_default(column, self._values(column), self._some)

    def _values(self, column: PlanColumn) -> Any:
        """Return the pooled values of a column without its default."""
        if column.attribute == STATUS:
            return pa.repeat(self.parts[0][0].status, len(self._at))
        plain = column._replace(default=None)
        of_topics = [series.values(plain, cells, self._at) for series, cells in self.parts]
        if column.kind != "number":
            every, count = pa.concat_arrays(of_topics), len(self.parts)
            extremes = (partial(self._aggregate, function=name) for name in ("min", "max"))
            return common_text(every, lambda codes: [of(np.split(codes, count)) for of in extremes])
        if column.attribute:
            return self._aggregate(of_topics, column.across or "max")
        counts = np.where(self._there, np.stack(of_topics, axis=1), 0.0).sum(axis=1)
        return np.where(counts > 0, counts, np.nan)

    def _aggregate(self, of_topics: Sequence[Floats], function: str) -> Floats:
        """Apply a function to the values of all topics at each instant."""
        values = np.where(self._there, np.stack(of_topics, axis=1), np.nan).ravel()
        low = np.arange(len(self._at)) * len(self.parts)
        found: Floats = AGGREGATES[function].of_windows(values, low, low + len(self.parts))
        return np.where(self._some, found, np.nan)

    # --- last contributions ---

    @cached_property
    def _latest(self) -> tuple[Ints, Mask]:
        """The number of the topic that contributed last at each instant, and a mask of undecided instants.

        An instant is undecided if several windows end at one time.
        """
        latest, unclear = np.zeros(len(self._at), np.int64), np.zeros(len(self._at), np.bool_)
        when, where = np.full(len(self._at), BEGINNING), np.zeros(len(self._at), np.int64)
        spots = standings([series for series, _ in self.parts])
        for number, (series, cells) in enumerate(self.parts):
            some = np.flatnonzero(cells.there)
            rows = series.newest(cells.at(some))
            time, spot = series.rows.times[rows], spots[number][rows]
            newer, tied = time > when[some], time == when[some]
            later = newer | (tied & (spot < where[some]))
            unclear[some] = ~newer & (unclear[some] | (tied & (not series.span.nearest)))
            chosen = some[later]
            latest[chosen], when[chosen], where[chosen] = number, time[later], spot[later]
        return latest, unclear

    def latest(self, some: Ints) -> tuple[Ints, bool]:
        """Return the topics that contributed last at the instants `some`, and whether all of these topics are
        decided."""
        topics, unclear = self._latest
        return topics[some], not unclear[some].any()
