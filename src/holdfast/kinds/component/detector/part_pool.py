"""Queries that pool locations or statuses with a function: the values of all parts of a key, as columns.

`topic_pool.py` does the same for topics; `aggregate.py` defines the result.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from ....kernels.fold import FoldParts
from ....kernels.functions import AGGREGATES
from ....kernels.window import positions
from .columnar_plan import STATUS, PlanColumn
from .rows import Ints, Mask
from .series import CellRanges, Floats, ReadingSeries, ShownColumns, common_text, fill_default, firsts
from .span import Instants


class PartPool:
    """The values of all parts of a key, pooled at the instants `found`.

    `moments` are the times at which the value of a part may change.
    """

    def __init__(self, series: ReadingSeries, found: Instants, moments: Instants) -> None:
        self.series, self._found = series, found
        owners = series.owners
        parts = np.repeat(np.arange(len(owners)), np.diff(moments.ends))
        self._at, self._cells = moments.at, series.cells(moments)
        self._order = np.lexsort((moments.at, owners[parts]))
        starts = np.searchsorted(owners[parts[self._order]], np.arange(series.count + 1))
        reach = np.empty(len(found.at), np.int64)
        positions(moments.at[self._order], starts, *found, 0, 1, reach)
        self._parts = FoldParts(reach, found.ends, starts, parts[self._order], series.first_parts)
        self._there = self._cells.there[self._order]
        self._known: dict[PlanColumn, Any] = {}

    def show(self, columns: tuple[PlanColumn, ...]) -> ShownColumns:
        """Return the pooled values that the query shows at each instant."""
        sizes = self._parts.total(self._there.astype(np.int64))
        cells = CellRanges(np.zeros(len(sizes), np.int64), sizes)
        values = {column.name: self.values(column) for column in columns}
        return ShownColumns(cells, values, all(map(self.is_exact, columns)), fold=self)

    def is_exact(self, column: PlanColumn) -> bool:
        """Whether floats represent the integers of a column, and their sums over all parts, exactly."""
        deep = int((self._cells.high - self._cells.low).max(initial=1))
        return self.series.is_small(column, deep * int(np.diff(self.series.first_parts).max(initial=1)))

    def values(self, column: PlanColumn) -> Any:
        """Return the pooled values of a column at each instant, with its default where no part has a
        value."""
        if column not in self._known:
            there = self._parts.total(self._there.astype(np.int64)) > 0
            self._known[column] = fill_default(column, self._aggregate(column), there)
        return self._known[column]

    def _aggregate(self, column: PlanColumn) -> Any:
        """Compute the pooled values of a column without its default."""
        if column.attribute == STATUS:
            return pa.repeat(self.series.status, len(self._found.at))
        if not column.attribute:
            sizes = (self._cells.high - self._cells.low)[self._order]
            counts = self._parts.total(np.where(self._there, sizes, 0)).astype(np.float64)
            return np.where(counts > 0, counts, np.nan)
        of_parts = self.series.values(column._replace(default=None), self._cells, self._at)
        if column.kind != "number":
            extremes = (partial(self._of_parts, name) for name in ("min", "max"))
            return common_text(of_parts, lambda codes: [of(codes) for of in extremes])
        found = self._of_parts(column.over or "max", of_parts)
        if column.over == "count":
            found[self._parts.total(self._there.astype(np.int64)) == 0] = np.nan
        return found

    def _of_parts(self, function: str, values: Floats) -> Floats:
        """Apply a function to the values of all parts at each instant."""
        present = np.where(self._there, values[self._order], np.nan)
        return AGGREGATES[function].of_parts(self._parts, present)

    # --- last contributions ---

    @cached_property
    def _last(self) -> tuple[Ints, Mask]:
        """The row that contributed last at each instant, and a mask of undecided instants.

        An instant is undecided if several windows end at one time.
        """
        series = self.series
        when, starts, _, cells = series.events
        keys = np.repeat(np.arange(series.count), np.diff(starts))
        order = np.lexsort((*series.ties(cells), when, keys))
        first = firsts(starts, when[order])
        run = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
        reach = np.empty(len(self._found.at), np.int64)
        positions(when, starts, *self._found, series.span.high, 1, reach)
        last = np.append(run, [0, 0])[np.maximum(reach - 1, -1)]
        rows = np.append(series.leads[cells[order]], 0)[last]
        several = reach - 1 > last
        return rows, several & np.full(len(reach), not series.span.nearest)

    def newest(self, some: Ints) -> tuple[Ints, bool]:
        """Return the rows that contributed last at the instants `some`, and whether all of these rows are
        decided."""
        rows, unclear = self._last
        return rows[some], not unclear[some].any()
