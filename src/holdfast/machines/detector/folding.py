"""What a query shows that aggregates locations or statuses: the parts of each key as one."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels.fold import FOLDS, Parts
from ...kernels.window import positions
from .plan import STATUS, Column
from .rows import Ints, Mask
from .series import Cells, Floats, Series, Shown, defaulted, firsts
from .span import Instants


class Fold:
    """The parts of each key of a series, at instants; ``moments`` are those at which what a part shows may
    change."""

    def __init__(self, series: Series, found: Instants, moments: Instants) -> None:
        self.series, self._found = series, found
        owners = series.owners
        parts = np.repeat(np.arange(len(owners)), np.diff(moments.ends))
        self._at, self._cells = moments.at, series.cells(moments)
        self._order = np.lexsort((moments.at, owners[parts]))
        starts = np.searchsorted(owners[parts[self._order]], np.arange(series.count + 1))
        reach = np.empty(len(found.at), np.int64)
        positions(moments.at[self._order], starts, *found, 0, 1, reach)
        self._parts = Parts(reach, found.ends, starts, parts[self._order], series.owned)
        self._there = self._cells.there[self._order]
        self._known: dict[Column, Any] = {}

    def shown(self, columns: tuple[Column, ...]) -> Shown:
        """What the query shows."""
        sizes = self._parts.total(self._there.astype(np.int64))
        cells = Cells(np.zeros(len(sizes), np.int64), sizes)
        values = {column.name: self.values(column) for column in columns}
        return Shown(cells, values, all(map(self.is_exact, columns)), fold=self)

    def is_exact(self, column: Column) -> bool:
        """Whether floats tell the whole numbers of a column apart."""
        deep = int((self._cells.high - self._cells.low).max(initial=1))
        return self.series.is_small(column, deep * int(np.diff(self.series.owned).max(initial=1)))

    def values(self, column: Column) -> Any:
        """A column of what it shows."""
        if column not in self._known:
            there = self._parts.total(self._there.astype(np.int64)) > 0
            self._known[column] = defaulted(column, self._folded(column), there)
        return self._known[column]

    def _folded(self, column: Column) -> Any:
        if column.attribute == STATUS:
            return pa.repeat(self.series.status, len(self._found.at))
        if not column.attribute:
            sizes = (self._cells.high - self._cells.low)[self._order]
            counts = self._parts.total(np.where(self._there, sizes, 0)).astype(np.float64)
            return np.where(counts > 0, counts, np.nan)
        of_parts = self.series.values(column._replace(default=None), self._cells, self._at)
        if column.kind != "number":
            return self._common(of_parts)
        values = np.where(self._there, of_parts[self._order], np.nan)
        found = FOLDS[column.over or "max"](self._parts, values)
        if column.over == "count":
            found[self._parts.total(self._there.astype(np.int64)) == 0] = np.nan
        return found

    def _common(self, of_parts: Any) -> Any:
        """The text or truth that all have."""
        words = of_parts.dictionary_encode()
        codes: Floats = words.indices.cast(pa.float64()).fill_null(-1.0).to_numpy(zero_copy_only=False)
        values = np.where(self._there, codes[self._order], np.nan)
        least, most = (FOLDS[name](self._parts, values) for name in ("min", "max"))
        same = (least == most) & (most >= 0)
        return words.dictionary.take(pa.array(np.where(same, most, 0).astype(np.int64), mask=~same))

    # --- what contributed last ---

    @cached_property
    def _last(self) -> tuple[Ints, Mask]:
        """The row that contributed last by each instant, and whether columns do not tell which it was: of
        several windows that end at one moment."""
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
        """The rows that contributed last by some instants, and whether that is so."""
        rows, unclear = self._last
        return rows[some], not unclear[some].any()
