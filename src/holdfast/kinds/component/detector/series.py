"""Readings that a query can select, by key and time, and the values that the query shows at instants.

`query.py` defines the result; this module computes it in columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace
from numpy.typing import NDArray

from ....kernels.around import MARGIN
from ....kernels.functions import AGGREGATES
from ....kernels.window import by_key, nearest, positions
from ....model.batch import TYPES, plain
from ....model.event import STATUSES, Status
from ....model.instant import NEVER, Duration, Instant
from ....model.query import Aggregate, Ball, Closest, Function, Index, Multiple, PooledDimension, Query
from ....model.space import Point
from .aggregate import KnowledgeGroup, combine
from .columnar_plan import STATUS, VALID, PlanColumn, Screen
from .hosts import Places, where
from .knowledge import Knowledge, Where, order
from .query import Table, absolute, distance, one_per_cell, select
from .rows import SIGNATURE, Coded, Ints, Mask, ReadingRows, encode_texts, to_knowledge
from .span import Instants, TimeSpan

if TYPE_CHECKING:
    from .part_pool import PartPool
    from .topic_pool import TopicPool

Floats = NDArray[np.float64]

_ALPHABETICAL = sorted(STATUSES)
"""The statuses in the order in which `knowledge.order` sorts them."""

_WHOLE = 2**53
"""The limit up to which floats represent every integer."""


class CellRanges(NamedTuple):
    """The cells in the window of a query at each instant: from `low` up to, but not including, `high`.

    A cell has all readings of equal topic, time, location and status.
    """

    low: Ints
    high: Ints

    @property
    def there(self) -> Mask:
        """Whether the window has a cell, for each instant."""
        found: Mask = self.high > self.low
        return found

    def at(self, some: Ints | Mask) -> CellRanges:
        """Return the ranges at the selected instants."""
        return CellRanges(self.low[some], self.high[some])


class ShownColumns(NamedTuple):
    """The values that a query shows at instants, as columns.

    `exact` is true if floats represent the values exactly, `vague` if columns do not determine the values. If
    parts of a key or topics are pooled, `fold` is their pool. Instant `i` of these columns is then instant
    `same[i]` of the pool.
    """

    cells: CellRanges
    columns: dict[str, Any]
    exact: bool
    vague: bool = False
    fold: PartPool | TopicPool | None = None
    same: Ints | None = None

    @property
    def there(self) -> Mask:
        """Whether the query shows a value, for each instant."""
        return self.cells.there

    def spread(self, over: Ints) -> ShownColumns:
        """Return repeated values: instant `i` of the result has the values of instant `over[i]`."""
        columns = {name: take_values(column, over) for name, column in self.columns.items()}
        return self._replace(cells=self.cells.at(over), columns=columns, same=over)


def as_batch(size: int, shown: Iterable[ShownColumns]) -> pa.RecordBatch:
    """Return columns as a batch with `size` rows, even if there is no column."""
    columns = {name: column for part in shown for name, column in part.columns.items()}
    return pa.RecordBatch.from_pydict({**columns, "@": np.zeros(size, np.bool_)})


def screen_mask(screen: Screen, size: int, shown: Iterable[ShownColumns]) -> Mask:
    """Return a mask of the rows that pass a screen. All rows pass if floats do not represent the values
    exactly."""
    every = list(shown)
    is_exact = all(part.exact for part in every)
    return screen.test(as_batch(size, every)) if is_exact else np.ones(size, np.bool_)


def take_values(values: Any, some: Ints) -> Any:
    """Return the rows `some` of a numpy or Arrow column."""
    return values[some] if isinstance(values, np.ndarray) else values.take(pa.array(some))


def common_text(texts: pa.Array, extremes: Callable[[Floats], Iterable[Floats]]) -> pa.Array:
    """Return for each group the text or truth value that all its values share; missing if they differ.

    `extremes` returns the least and the largest of each group. It receives numbers that stand for the values,
    -1 for a missing value.
    """
    words = texts.dictionary_encode()
    least, most = extremes(words.indices.cast(pa.float64()).fill_null(-1.0).to_numpy(zero_copy_only=False))
    same = (least == most) & (most >= 0)
    return words.dictionary.take(pa.array(np.where(same, most, 0).astype(np.int64), mask=~same))


def fill_default(column: PlanColumn, values: Any, there: Mask) -> Any:
    """Replace missing values of a column by its default, if it has one. Values where `there` is false are
    missing."""
    if column.default is None:
        return values
    if isinstance(values, np.ndarray):
        return np.where(there & (values == values), values, column.default)
    default = pa.scalar(column.default, values.type)
    return pc.if_else(pa.array(there), values, default).fill_null(default)


class EventCells(NamedTuple):
    """Cells in the order of key and time.

    `when` is the time of each cell, `starts` the position of the first cell of each key. `parts` and `cells`
    are the part and the number of each cell.
    """

    when: Ints
    starts: Ints
    parts: Ints
    cells: Ints


class ReadingSeries:
    """Readings sorted by part, time and location; the readings of a cell are adjacent.

    A part is a key or, if the query separates locations, a key and a location. `owners[p]` is the key of part
    `p`, `spots[p]` its location. The series `is_divided` if parts are not simply keys. Cell `c` has the rows
    `order[bounds[c]:bounds[c + 1]]`, and part `p` the cells from `starts[p]` up to `starts[p + 1]`.

    All readings have the same `status`; if it is `None`, statuses are pooled. The series `roams` if the
    selection depends on a moving host. It `folds` if the query pools the parts of a key. It `is_mixed` if
    these parts have several locations that stay separate. A `shared` series has one key, which is visible to
    every key of the component.
    """

    def __init__(
        self,
        query: Query,
        span: TimeSpan,
        collide: Function,
        rows: ReadingRows,
        keys: Ints,
        count: int,
        here: Where = None,
        status: Status | None = "atomic",
        *,
        carried: bool = False,
        shared: bool = False,
    ) -> None:
        self.query, self.span, self.collide, self.rows, self.count = query, span, collide, rows, count
        self._here, self.status, self.shared = here, status, shared
        self.roams = carried and query.is_relative
        self.folds = isinstance(query.location, Aggregate) or isinstance(query.status, Aggregate)
        self._status_codes = encode_texts(rows.batch, STATUS) if status is None else None
        mixes = isinstance(query.status, Aggregate) and isinstance(query.location, Multiple)
        self.is_mixed = mixes and self._has_shared_keys(keys)
        parts, self.owners, self.spots = self._parts(keys)
        is_sorted = (rows.times[1:] >= rows.times[:-1]).all()
        order = None if is_sorted else np.argsort(rows.times, kind="stable")
        starts = np.zeros(len(self.owners) + 1, np.int64)
        grouped = np.empty(len(rows), np.int64)
        by_key(parts if order is None else parts[order], starts, grouped)
        self.order = grouped if order is None else order[grouped]
        times, spots = self._with_ties_sorted(parts)
        first = firsts(starts, times, spots, self._statuses[self.order])
        self.bounds = np.append(np.flatnonzero(first), len(rows))
        self.times = times[self.bounds[:-1]]
        self.starts = np.searchsorted(self.bounds[:-1], starts)
        self._truths: dict[Screen, tuple[Mask, bool]] = {}
        self._known: dict[str, Floats] = {}

    def _parts(self, keys: Ints) -> tuple[Ints, Ints, Ints | None]:
        """Return the part of each row, the key of each part, and the location of each part.

        The locations are `None` if parts are keys.
        """
        every = np.arange(self.count)
        spots = self.rows.standings
        size = max(1, len(spots.values))
        if isinstance(self.query.status, Aggregate):
            many = len(STATUSES)
            owners = keys * size + spots.codes if self.is_mixed else keys
            pairs, parts = np.unique(owners * many + self._statuses, return_inverse=True)
            return parts, pairs // (many * size if self.is_mixed else many), None
        if isinstance(self.query.location, PooledDimension) and not self.roams:
            return keys, every, None
        whole = not self.roams and not self.folds and not isinstance(self.query.location, Closest)
        if whole and not self._has_shared_keys(keys):
            return keys, every, None
        pairs, parts = np.unique(keys * size + spots.codes, return_inverse=True)
        return parts, pairs // size, pairs % size

    def _has_shared_keys(self, keys: Ints) -> bool:
        """Whether two locations have the same key, for example a place and a point that is written like its
        name."""
        codes = self.rows.standings.codes
        spot = np.zeros(self.count, np.int64)
        spot[keys] = codes
        return bool((spot[keys] != codes).any())

    @property
    def is_divided(self) -> bool:
        """Whether the parts are finer than keys, for example because the query separates locations."""
        return self.spots is not None or self.folds

    @cached_property
    def _statuses(self) -> Ints:
        """The alphabetical rank of each row's status; 0 if all rows have one status."""
        if self._status_codes is None:
            return np.zeros(len(self.rows), np.int64)
        ranks = [_ALPHABETICAL.index(status) for status in self._status_codes.values]
        return np.array([*ranks, 0])[self._status_codes.codes]

    @cached_property
    def nearest(self) -> Ints | None:
        """The parts that can be the closest location, sorted by key and distance.

        `None` if the query does not select the closest location of a fixed point.
        """
        if not isinstance(self.query.location, Closest) or self.spots is None or self.roams:
            return None
        there = absolute(self.query.location.index, self._here)
        values = self.rows.standings.values
        far = [distance(where(*spot), there) for spot in values]
        ranked = sorted(range(len(values)), key=lambda spot: (far[spot], values[spot]))
        rank = np.empty(len(values), np.int64)
        rank[ranked] = np.arange(len(values))
        parts = np.flatnonzero(np.isfinite(np.array([*far, 0.0]))[self.spots])
        found: Ints = parts[np.lexsort((rank[self.spots[parts]], self.owners[parts]))]
        return found

    def _with_ties_sorted(self, parts: Ints) -> tuple[Ints, Ints]:
        """Sort rows of equal part and time by status and location; return the times and locations of all
        rows."""
        rows, spots = self.rows, self.rows.standings
        times, where, status = rows.times[self.order], spots.codes[self.order], self._statuses[self.order]
        differ = (where[1:] != where[:-1]) | (status[1:] != status[:-1])
        tied = np.flatnonzero((times[1:] == times[:-1]) & differ)
        tied = tied[parts[self.order[tied]] == parts[self.order[tied + 1]]]
        if len(tied):
            alike = np.append(False, times[1:] == times[:-1])
            places = np.flatnonzero(alike | np.append(alike[1:], False))
            some = self.order[places]
            self.order[places] = some[np.lexsort((*self._order_of(some), rows.times[some], parts[some]))]
            where = spots.codes[self.order]
        return times, where

    def _order_of(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return sort keys for rows of equal time, in the order of `numpy.lexsort`: status, then location."""
        return self._statuses[rows], self._standing[self.rows.standings.codes[rows]]

    def ties(self, cells: Ints) -> tuple[Ints, Ints]:
        """Return sort keys for cells of equal time, in the order of `numpy.lexsort`."""
        return self._order_of(self.order[self.bounds[cells]])

    @cached_property
    def _standing(self) -> Ints:
        """The rank of each distinct location."""
        values = self.rows.standings.values
        found: Ints = np.argsort(sorted(range(len(values)), key=values.__getitem__))
        return found.astype(np.int64)

    @property
    def is_hidden(self) -> bool:
        """Whether the query selects a status that these readings do not have."""
        status = self.query.status
        return isinstance(status, Closest) and status.index != Index(self.status or "")

    @property
    def has_collisions(self) -> bool:
        """Whether any cell has several rows."""
        return len(self.bounds) <= len(self.rows)

    @property
    def is_steady(self) -> bool:
        """Whether the value of a part changes only when a reading enters or leaves its window."""
        return not self.span.nearest or self.span.high == 0

    @cached_property
    def runs(self) -> Ints:
        """For each cell the number of the first cell with the same part and time."""
        first = firsts(self.starts, self.times)
        runs: Ints = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
        return runs

    @cached_property
    def events(self) -> EventCells:
        """All cells by key and time. A divided series has only the first cell of each part and time."""
        parts = np.repeat(np.arange(len(self.owners)), np.diff(self.starts))
        if not self.is_divided:
            return EventCells(self.times, self.starts, parts, np.arange(len(parts)))
        moments = np.argsort(self.times, kind="stable")
        moments = moments[self.runs[moments] == moments]
        starts, grouped = np.zeros(self.count + 1, np.int64), np.empty(len(moments), np.int64)
        by_key(self.owners[parts[moments]], starts, grouped)
        cells = moments[grouped]
        return EventCells(self.times[cells], starts, parts[cells], cells)

    @cached_property
    def rank(self) -> Ints:
        """The rank of each part's location."""
        assert self.spots is not None
        found: Ints = self._standing[self.spots]
        return found

    @cached_property
    def first_parts(self) -> Ints:
        """The first part of each key, and the number of parts at the end. The parts of a key are
        contiguous."""
        return np.searchsorted(self.owners, np.arange(self.count + 1))

    def truths(self, screen: Screen, columns: tuple[PlanColumn, ...]) -> tuple[Mask, bool]:
        """Evaluate a screen on each cell of `events`; return the mask and whether it is exact."""
        if screen not in self._truths:
            when, _, _, order = self.events
            cells = CellRanges(order, order + 1)
            small = all(self.is_small(column, 1) for column in columns)
            shown = ShownColumns(cells, {c.name: self.values(c, cells, when) for c in columns}, small)
            self._truths[screen] = screen_mask(screen, len(when), [shown]), screen.exact and small
        return self._truths[screen]

    @property
    def since(self) -> Ints:
        """The time of the first reading of each key; `NEVER - 1` for a key without readings."""
        times, starts, *_ = self.events
        return np.where(starts[:-1] < starts[1:], np.append(times, NEVER)[starts[:-1]], NEVER - 1)

    def knows(self, found: Instants, lasts: Duration) -> Mask:
        """Return a mask of the instants at which the key has a selectable reading that is not older than
        `lasts`."""
        times, starts, *_ = self.events
        low, high = np.empty((2, len(found.at)), np.int64)
        positions(times, starts, found.at, found.ends, 0, 1, high)
        since = -lasts if self.span.nearest else max(self.span.low, -lasts)
        positions(times, starts, found.at, found.ends, since, 0, low)
        return high > low

    # --- values at instants of parts ---

    def show(self, found: Instants, wanted: tuple[PlanColumn, ...]) -> ShownColumns:
        """Return the columns `wanted` of the values that the query shows at the instants `found`."""
        cells = self.cells(found)
        widest = 1 if self.span.nearest else int((cells.high - cells.low).max(initial=1))
        columns = {c.name: self.values(c, cells, found.at) for c in wanted if c.bound is None}
        exact = all(self.is_small(column, widest) for column in wanted)
        return ShownColumns(cells, columns, exact, self.has_vague_validity(wanted))

    def has_vague_validity(self, columns: Iterable[PlanColumn]) -> bool:
        """Whether columns include the validity of cells with several rows, whose validity may differ."""
        differs = self.has_collisions and self.rows.until is not None
        return differs and any(column.attribute == VALID for column in columns)

    def cells(self, found: Instants) -> CellRanges:
        """Return the cells that the query selects at each instant."""
        if not self.span.nearest:
            low, high = self.span.low, self.span.high
            return CellRanges(self._positions(found, low, 0), self._positions(found, high, 1))
        nearest = self._nearest(found)
        return CellRanges(nearest, nearest + (nearest >= 0))

    def values(self, column: PlanColumn, cells: CellRanges, at: Ints) -> Any:
        """Return the values of a column over cells at instants, with its default where a value is missing."""
        return fill_default(column, self._values(column, cells, at), cells.there)

    def _values(self, column: PlanColumn, cells: CellRanges, at: Ints) -> Any:
        """Return the values of a column without its default."""
        if column.attribute == STATUS and self.status is not None:
            return pa.repeat(self.status, len(at))
        if column.attribute == STATUS:
            rows = np.append(self._statuses[self.order[self.bounds[:-1]]], 0)[cells.low]
            return pa.array(_ALPHABETICAL).take(pa.array(rows, mask=~cells.there))
        if column.attribute == VALID and not len(self.rows):
            return pa.nulls(len(at), pa.bool_())
        if column.attribute == VALID:
            return pa.array(self.rows.are_valid(self.newest(cells), at), mask=~cells.there)
        if self.span.nearest:
            return self._take_cells(column, cells.low, cells.there)
        if not column.attribute:
            return (cells.high - cells.low).astype(np.float64)
        if column.function is None:
            return self._common(column, cells)
        return AGGREGATES[column.function].of_windows(self._numbers(column.attribute), *cells)

    def newest(self, cells: CellRanges) -> Ints:
        """Return the row that contributed last to each range of cells; arbitrary where the range is empty."""
        return np.append(self._contributors, [0, 0])[cells.high - 1]

    @cached_property
    def _contributors(self) -> Ints:
        """For each cell the row that contributed last among all cells up to it."""
        found: Ints = self.leads[self.runs]
        return found

    @cached_property
    def contributor_standings(self) -> Ints:
        """The location of each row of `_contributors`."""
        found: Ints = self.rows.standings.codes[self._contributors]
        return found

    @cached_property
    def standing_places(self) -> Places:
        """The distinct locations of the readings as arrays."""
        return Places.of([where(*spot) for spot in self.rows.standings.values])

    @cached_property
    def leads(self) -> Ints:
        """The first row of each cell in the order of source and signature."""
        found = self.order[self.bounds[:-1]]
        if self.has_collisions:
            sizes = np.diff(self.bounds)
            some = np.repeat(sizes > 1, sizes)
            rows, cells = self.order[some], np.repeat(np.arange(len(sizes)), sizes)[some]
            ranks = [_rank_texts(encode_texts(self.rows.batch, name))[rows] for name in ("source", SIGNATURE)]
            ranked = np.lexsort((*ranks, cells))
            firsts = np.append(True, np.diff(cells[ranked]) > 0)
            found[cells[ranked[firsts]]] = rows[ranked[firsts]]
        return found

    def _positions(self, found: Instants, shift: Duration, after: int) -> Ints:
        """Return the first cell at or after each instant plus `shift`; with `after` = 1, the first cell
        strictly after it."""
        cells = np.empty(len(found.at), np.int64)
        positions(self.times, self.starts, found.at, found.ends, shift, after, cells)
        return cells

    def _nearest(self, found: Instants) -> Ints:
        """Return the cell nearest in time at each instant, the first of several; -1 if there is none."""
        cells = np.empty(len(found.at), np.int64)
        nearest(*found, self.times, self.starts, self.runs, self.span.high, cells)
        return cells

    def _common(self, column: PlanColumn, cells: CellRanges) -> Any:
        """Return the value that all rows of a window share; missing if they differ."""
        if column.kind == "number":
            first = np.append(self._numbers(column.attribute), np.nan)[cells.low]
            return np.where(cells.there, first, np.nan)
        extremes = (AGGREGATES[name].of_windows for name in ("min", "max"))
        return common_text(self._words(column), lambda codes: [of(codes, *cells) for of in extremes])

    def _take_cells(self, column: PlanColumn, cells: Ints, there: Mask) -> Any:
        """Return the values of single cells; missing where `there` is false."""
        if not column.attribute:
            return np.where(there, 1.0, np.nan)
        if column.kind == "number":
            return np.append(self._numbers(column.attribute), np.nan)[cells]
        return self._words(column).take(pa.array(cells, mask=~there))

    # --- values in cells ---

    def _column(self, name: str, type: pa.DataType) -> Any:
        """Return a column of the readings; all values are missing if the column does not exist."""
        batch = self.rows.batch
        return batch.column(name) if name in batch.schema.names else pa.nulls(len(batch), type)

    def _numbers(self, name: str) -> Floats:
        """Return the number in each cell. The function of the component merges colliding rows. [F56]"""
        if name not in self._known:
            self._known[name] = self._merge_collisions(name)
        return self._known[name]

    def _merge_collisions(self, name: str) -> Floats:
        """Merge the numbers of rows in the same cell; keys (`query.each`) agree and need no function."""
        column = self._column(name, pa.float64())
        if not pa.types.is_float64(column.type):
            column = column.cast(pa.float64(), safe=False)
        values: Floats = column.to_numpy(zero_copy_only=False)[self.order]
        if len(self.bounds) > len(values):
            return values
        low, high = self.bounds[:-1], self.bounds[1:]
        found = values[low]
        if name in self.query.each:
            return found
        several = high - low > 1
        found[several] = AGGREGATES[self.collide].of_windows(values, low[several], high[several])
        if self.collide == "count":
            found[several & (found == 0)] = (
                np.nan
            )  # without any value the count is missing, as in a cell with one row
        return found

    def _words(self, column: PlanColumn) -> Any:
        """Return the text or truth value in each cell; missing if colliding rows differ."""
        words = plain(self._column(column.attribute, TYPES[column.kind])).take(pa.array(self.order))
        low, high = self.bounds[:-1], self.bounds[1:]
        if len(low) == len(words):
            return words
        found = words.take(pa.array(low)).to_pylist()
        for cell in np.flatnonzero(high - low > 1).tolist():
            here = words.slice(low[cell], high[cell] - low[cell]).to_pylist()
            found[cell] = here[0] if len(set(here)) == 1 else None
        return pa.array(found, words.type)

    def is_small(self, column: PlanColumn, widest: int) -> bool:
        """Whether floats represent the integers of a column, and their sums over `widest` cells, exactly."""
        if column.kind != "number" or not column.attribute:
            return True
        values = self._column(column.attribute, pa.float64())
        if not pa.types.is_integer(values.type):
            return True
        sizes = np.abs(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
        deepest = int(np.diff(self.bounds).max(initial=1))
        functions = (column.function, column.over, column.across)
        adds_up = any(AGGREGATES[function].adds_up for function in functions if function)
        return bool(np.nanmax(sizes, initial=0) * (widest if adds_up else 1) * deepest < _WHOLE)

    # --- rows of single keys, and rows to retain ---

    def table(self, rows: Ints, now: Instant, here: Where) -> Table:
        """Return the knowledge that the query selects at an instant among visible `rows`."""
        time = self.query.time
        if isinstance(time, Aggregate) and self._are_apart(rows):
            return [combine(ReadingWindow(self.rows, rows, now), time.functions, self.query.each)]
        valid = self.rows.are_valid(rows, now).tolist()
        judged = map(_with_validity, self.rows.knowledge(rows), valid)
        known = sorted(judged, key=order)
        if self.is_divided or isinstance(time, Aggregate) or not known:
            return select(self.query, known, now, here, self.collide)
        there = now + self.span.high
        cells = one_per_cell(known, self.collide, self.query.each)
        return [min(cells, key=lambda one: (abs(one.time - there), one.time))]

    def readings(self, found: Instants) -> list[Knowledge] | None:
        """Return the reading shown at each instant.

        Return `None` if the query shows no reading at some instant, or one that collides with others.
        """
        if self.is_divided or not self.span.nearest:
            return None
        cells = self._nearest(found)
        if (cells < 0).any() or (np.diff(self.bounds)[cells] > 1).any():
            return None
        rows = self.order[self.bounds[cells]]
        known = to_knowledge(self.rows.topic, self.rows.batch.take(pa.array(rows)))
        return list(map(_with_validity, known, self.rows.are_valid(rows, found.at).tolist()))

    def rows_needed(self, rows: Ints) -> Ints:
        """Return the rows that `table` will convert to knowledge. It may convert more rows later."""
        if self.span.nearest or not self._are_apart(rows):
            return rows
        times = self.rows.times[rows]
        return rows[[0, int(np.searchsorted(times, times[-1]))]]

    def _are_apart(self, rows: Ints) -> bool:
        """Whether `rows` is not empty and each row has a cell of its own."""
        if self.is_divided or not len(rows):
            return False
        if len(self.bounds) > len(self.rows):
            return True
        times, spots = self.rows.times[rows], self.rows.standings.codes[rows]
        return not ((times[1:] == times[:-1]) & (spots[1:] == spots[:-1])).any()

    @cached_property
    def places(self) -> Places:
        """The location of each part."""
        assert self.spots is not None
        return self.standing_places.take(self.spots)

    def _around(self, key: int, now: Instant, here: Where) -> Ints:
        """Return the parts of a key that may lie in the radius of the query, or that may be the closest."""
        match self.query.location:
            case Multiple(_, Ball(centre, radius)) | PooledDimension(Ball(centre, radius)):
                far = Places.of([absolute(centre, here)]).far(self.places)[0]
                return np.flatnonzero((far <= radius * (1 + MARGIN)) & (self.owners == key))
            case Closest(index):
                far = Places.of([absolute(index, here)]).far(self.places)[0]
                far[(self.times[self.starts[:-1]] > now) | (self.owners != key)] = np.inf
                return np.flatnonzero((far <= far.min(initial=np.inf) * (1 + MARGIN)) & (far < np.inf))
        return np.flatnonzero(self.owners == key)

    def visible(self, key: int, now: Instant, here: Where = None) -> Ints:
        """Return the rows of a key that the query can select at an instant. `here` is the location of the
        host."""
        key = 0 if self.shared else key
        if not self.roams and not self.is_divided:
            return self._rows(*self._visible(key, now))
        if self.nearest is not None:
            first, end = np.searchsorted(self.owners[self.nearest], (key, key + 1)).tolist()
            some = (self._rows(*self._visible(part, now)) for part in self.nearest[first:end].tolist())
            return next((rows for rows in some if len(rows)), np.empty(0, np.int64))
        parts: Iterable[int] = self._around(key, now, here).tolist() if self.roams else ()
        if not self.roams:
            parts = range(*np.searchsorted(self.owners, (key, key + 1)).tolist())
        found = [self._rows(*self._visible(part, now)) for part in parts]
        return np.concatenate([np.empty(0, np.int64), *found])

    def _visible(self, part: int, now: Instant) -> tuple[int, int]:
        """Return the range of cells of a part that the query can select at an instant."""
        first, end = int(self.starts[part]), int(self.starts[part + 1])
        times = self.times[first:end]
        after = first + int(np.searchsorted(times, now + self.span.high, "right"))
        if not self.span.nearest:
            return first + int(np.searchsorted(times, now + self.span.low)), after
        last = after
        if after < end and self.times[after] <= now:
            last = first + int(np.searchsorted(times, self.times[after], "right"))
        return int(self.runs[after - 1]) if after > first else after, last

    def _rows(self, first: int, end: int) -> Ints:
        """Return the rows of the cells from `first` up to, but not including, `end`."""
        found: Ints = self.order[self.bounds[first] : self.bounds[end]]
        return found

    def retained(self, until: Instant) -> Mask:
        """Return a mask of the rows that can influence the query at `until` or later. The caller discards the
        others. [F70]"""
        if not self.span.nearest:
            return self.rows.times >= until + self.span.low - 1
        count = len(self.owners)
        after = self._positions(Instants(np.full(count, until), np.arange(count + 1)), self.span.high, 1)
        since = np.where(after > self.starts[:-1], np.append(self.runs, 0)[after - 1], after)
        cells = np.arange(len(self.times)) >= np.repeat(since, np.diff(self.starts))
        retained = np.empty(len(self.rows), np.bool_)
        retained[self.order] = np.repeat(cells, np.diff(self.bounds))
        return retained


class ReadingWindow(KnowledgeGroup):
    """The rows of a window as a group of knowledge points, without converting all rows. The rows must not
    collide."""

    def __init__(self, rows: ReadingRows, numbers: Ints, now: Instant) -> None:
        self._rows, self._numbers = rows, numbers
        self.names = [attribute.name for attribute in rows.topic.attributes]
        self.times = rows.times[numbers].tolist()
        self.count = len(numbers)
        self._valid = rows.are_valid(numbers, now)
        self.valid = bool(self._valid.any())

    def values(self, name: str) -> list[Any]:
        return self._rows.values(name, self._numbers)

    @property
    def spots(self) -> list[Point | None]:
        return self._rows.points(self._numbers)

    @property
    def places(self) -> list[str | None]:
        return self._rows.places(self._numbers)

    @property
    def newest(self) -> Knowledge:
        return self.point(self.times.index(self.times[-1]))

    def point(self, i: int) -> Knowledge:
        (known,) = self._rows.knowledge(self._numbers[i : i + 1])
        return _with_validity(known, bool(self._valid[i]))


def standings(views: Sequence[ReadingSeries]) -> list[Ints]:
    """Return for each row of each series the rank of its location among the locations of all series."""
    every = sorted({spot for series in views for spot in series.rows.standings.values})
    rank = {spot: i for i, spot in enumerate(every)}
    every_rows = [series.rows.standings for series in views]
    return [np.array([rank[spot] for spot in own.values], np.int64)[own.codes] for own in every_rows]


def _with_validity(known: Knowledge, valid: bool) -> Knowledge:
    return known if valid else replace(known, valid=False)


def _rank_texts(texts: Coded) -> Ints:
    """Return for each row the rank of its text. Rows without text come first."""
    order = sorted(range(len(texts.values)), key=texts.values.__getitem__)
    rank = np.full(len(order) + 1, -1)
    rank[order] = np.arange(len(order))
    found: Ints = rank[texts.codes]
    return found


def firsts(starts: Ints, *columns: Ints) -> Mask:
    """Mark the first row of each part, and each row that differs from the previous one in any column."""
    first = np.zeros(len(columns[0]), np.bool_)
    for column in columns:
        first[1:] |= column[1:] != column[:-1]
    first[starts[:-1][starts[:-1] < len(first)]] = True
    return first
