"""The readings that a query looks at, by key and time, and what it shows of them at instants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec.structs import replace
from numpy.typing import NDArray

from ...kernels.aggregate import AGGREGATES
from ...kernels.around import MARGIN
from ...kernels.window import by_key, nearest, positions
from ...model.batch import TYPES, plain
from ...model.event import STATUSES, Status
from ...model.instant import NEVER, Duration, Instant
from ...model.query import Aggregate, Ball, Closest, Function, Index, Multiple, Pool, Query
from ...model.space import Point
from .aggregate import combined
from .knowledge import Knowledge, Where, order
from .plan import STATUS, VALID, Column, Screen
from .query import Table, absolute, apart, one_per_cell, select
from .roaming import Places, where
from .rows import SIGNATURE, Coded, Ints, Mask, Rows, coded, to_knowledge
from .span import Instants, Span

if TYPE_CHECKING:
    from .folding import Fold
    from .together import Together

Floats = NDArray[np.float64]

_ALPHABETICAL = sorted(STATUSES)

_ADDS_UP: frozenset[Function | None] = frozenset(("sum", "avg", "stddev"))
"""What many whole numbers make larger."""

_WHOLE = 2**53
"""Up to here every whole number is a float."""


class Cells(NamedTuple):
    """The cells that a query looks at, at each instant, from ``low`` to before ``high``."""

    low: Ints
    high: Ints

    @property
    def there(self) -> Mask:
        found: Mask = self.high > self.low
        return found

    def at(self, some: Ints | Mask) -> Cells:
        """Those of some of the instants."""
        return Cells(self.low[some], self.high[some])


class Shown(NamedTuple):
    """What a query shows at instants: of which cells, and columns; ``exact`` as floats.  If it is ``vague``,
    columns do not tell what there is.  If the parts of a key, or topics, are as one, a ``fold`` says what of,
    at instants that each of these is the same as."""

    cells: Cells
    columns: dict[str, Any]
    exact: bool
    vague: bool = False
    fold: Fold | Together | None = None
    same: Ints | None = None

    @property
    def there(self) -> Mask:
        return self.cells.there

    def spread(self, over: Ints) -> Shown:
        """The same, at instants each of which is one of these."""
        columns = {name: picked(column, over) for name, column in self.columns.items()}
        return self._replace(cells=self.cells.at(over), columns=columns, same=over)


def as_batch(size: int, shown: Iterable[Shown]) -> pa.RecordBatch:
    """Columns as a batch, of so many rows even if there is none."""
    columns = {name: column for one in shown for name, column in one.columns.items()}
    return pa.RecordBatch.from_pydict({**columns, "@": np.zeros(size, np.bool_)})


def passed(screen: Screen, size: int, shown: Iterable[Shown]) -> Mask:
    """Where a screen lets pass what is shown; everywhere, if floats do not tell its numbers apart."""
    every = list(shown)
    return screen.test(as_batch(size, every)) if all(one.exact for one in every) else np.ones(size, np.bool_)


def picked(values: Any, some: Ints) -> Any:
    """Some of the values."""
    return values[some] if isinstance(values, np.ndarray) else values.take(pa.array(some))


def defaulted(column: Column, values: Any, there: Mask) -> Any:
    """The values of a column, its default where nothing is shown."""
    if column.default is None:
        return values
    if isinstance(values, np.ndarray):
        return np.where(there & (values == values), values, column.default)
    default = pa.scalar(column.default, values.type)
    return pc.if_else(pa.array(there), values, default).fill_null(default)


class Events(NamedTuple):
    """Cells by key and time: when each comes, where those of a key begin, its part, and which it is."""

    when: Ints
    starts: Ints
    parts: Ints
    cells: Ints


class Series:
    """Readings in the order of part, time and standing, those of one cell together.

    A part is a key or, where the query keeps locations apart, a key and a standing; ``owners`` are
    the keys of parts, ``spots`` the standings, and it is ``divided`` if parts are not simply the keys.
    Cell ``c`` holds the rows ``order[bounds[c]:bounds[c + 1]]``; the cells of part ``p`` are those from
    ``starts[p]`` to before ``starts[p + 1]``.  All have the same ``status``; without one, starts and ends are
    together.  It ``roams`` if what the query looks at depends on where a host is that moves, and ``folds`` if
    it makes one of the parts of a key: of locations, or of starts and ends; ``mixed``, if they are of several
    standings, each of which stays by itself.  What is ``shared`` keeps nothing apart where others do: it has
    one key, which stands for all.
    """

    def __init__(
        self,
        query: Query,
        span: Span,
        collide: Function,
        rows: Rows,
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
        self._said = coded(rows.batch, STATUS) if status is None else None
        self.mixed = (
            isinstance(query.status, Aggregate) and isinstance(query.location, Multiple) and self._share(keys)
        )
        parts, self.owners, self.spots = self._parts(keys)
        order = _by_time(rows.times)
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
        """The part of each row, and the keys and standings of the parts; no standings if parts are simply
        the keys."""
        every = np.arange(self.count)
        spots = self.rows.standings
        size = max(1, len(spots.values))
        if isinstance(self.query.status, Aggregate):
            many = len(STATUSES)
            owners = keys * size + spots.codes if self.mixed else keys
            pairs, parts = np.unique(owners * many + self._statuses, return_inverse=True)
            return parts, pairs // (many * size if self.mixed else many), None
        if isinstance(self.query.location, Pool) and not self.roams:
            return keys, every, None
        whole = not self.roams and not self.folds and not isinstance(self.query.location, Closest)
        if whole and not self._share(keys):
            return keys, every, None
        pairs, parts = np.unique(keys * size + spots.codes, return_inverse=True)
        return parts, pairs // size, pairs % size

    def _share(self, keys: Ints) -> bool:
        """Whether several standings have one key: a place, and a point that is written as it."""
        codes = self.rows.standings.codes
        spot = np.zeros(self.count, np.int64)
        spot[keys] = codes
        return bool((spot[keys] != codes).any())

    @property
    def divided(self) -> bool:
        return self.spots is not None or self.folds

    @cached_property
    def _statuses(self) -> Ints:
        """Where the status of each row is in alphabetical order, if they differ."""
        if self._said is None:
            return np.zeros(len(self.rows), np.int64)
        ranks = [_ALPHABETICAL.index(status) for status in self._said.values]
        return np.array([*ranks, 0])[self._said.codes]

    @cached_property
    def nearest(self) -> Ints | None:
        """If the query shows the closest location, the parts that can be it, those of a key together, the
        nearer first."""
        if not isinstance(self.query.location, Closest) or self.spots is None or self.roams:
            return None
        there = absolute(self.query.location.index, self._here)
        values = self.rows.standings.values
        far = [
            apart(text if kind == 1 else point if kind == 0 else None, there) for kind, point, text in values
        ]
        ranked = sorted(range(len(values)), key=lambda spot: (far[spot], values[spot]))
        rank = np.empty(len(values), np.int64)
        rank[ranked] = np.arange(len(values))
        parts = np.flatnonzero(np.isfinite(np.array([*far, 0.0]))[self.spots])
        found: Ints = parts[np.lexsort((rank[self.spots[parts]], self.owners[parts]))]
        return found

    def _with_ties_sorted(self, parts: Ints) -> tuple[Ints, Ints]:
        """Times and standings, those of one part and moment in the order of where they stand."""
        rows, spots = self.rows, self.rows.standings
        times, where, status = rows.times[self.order], spots.codes[self.order], self._statuses[self.order]
        differ = (where[1:] != where[:-1]) | (status[1:] != status[:-1])
        tied = np.flatnonzero((times[1:] == times[:-1]) & differ)
        tied = tied[parts[self.order[tied]] == parts[self.order[tied + 1]]]
        if len(tied):
            alike = np.append(False, times[1:] == times[:-1])
            places = np.flatnonzero(alike | np.append(alike[1:], False))
            some = self.order[places]
            sorted_rows = some[np.lexsort((*self._order_of(some), rows.times[some], parts[some]))]
            self.order[places] = sorted_rows
            where = spots.codes[self.order]
        return times, where

    def _order_of(self, rows: Ints) -> tuple[Ints, Ints]:
        """What decides between rows of one moment, the last first: status, and where they stand."""
        return self._statuses[rows], self._standing[self.rows.standings.codes[rows]]

    def ties(self, cells: Ints) -> tuple[Ints, Ints]:
        """The same of cells."""
        return self._order_of(self.order[self.bounds[cells]])

    @cached_property
    def _standing(self) -> Ints:
        """Where each standing is among all."""
        values = self.rows.standings.values
        found: Ints = np.argsort(sorted(range(len(values)), key=values.__getitem__))
        return found.astype(np.int64)

    @property
    def hidden(self) -> bool:
        """Whether the query looks at other statuses only."""
        status = self.query.status
        return isinstance(status, Closest) and status.index != Index(self.status or "")

    @property
    def meet(self) -> bool:
        """Whether some rows are in one cell."""
        return len(self.bounds) <= len(self.rows)

    @property
    def is_steady(self) -> bool:
        """Whether what a part shows changes only at its own instants."""
        return not self.span.nearest or self.span.high == 0

    @cached_property
    def runs(self) -> Ints:
        """The first cell of each cell's part and moment."""
        first = firsts(self.starts, self.times)
        runs: Ints = np.maximum.accumulate(np.where(first, np.arange(len(first)), 0))
        return runs

    @cached_property
    def events(self) -> Events:
        """The cells, key after key, in order of time; where there are parts, one of each part and moment."""
        parts = np.repeat(np.arange(len(self.owners)), np.diff(self.starts))
        if not self.divided:
            return Events(self.times, self.starts, parts, np.arange(len(parts)))
        moments = np.argsort(self.times, kind="stable")
        moments = moments[self.runs[moments] == moments]
        starts, grouped = np.zeros(self.count + 1, np.int64), np.empty(len(moments), np.int64)
        by_key(self.owners[parts[moments]], starts, grouped)
        cells = moments[grouped]
        return Events(self.times[cells], starts, parts[cells], cells)

    @cached_property
    def rank(self) -> Ints:
        """Where the standing of each part is among those of all."""
        assert self.spots is not None
        found: Ints = self._standing[self.spots]
        return found

    @cached_property
    def owned(self) -> Ints:
        """The first part of each key; those of a key are together."""
        return np.searchsorted(self.owners, np.arange(self.count + 1))

    def truths(self, screen: Screen, columns: tuple[Column, ...]) -> tuple[Mask, bool]:
        """Of which events a screen is true, and whether columns tell it exactly."""
        if screen not in self._truths:
            when, _, _, order = self.events
            cells = Cells(order, order + 1)
            small = all(self.is_small(column, 1) for column in columns)
            shown = Shown(cells, {c.name: self.values(c, cells, when) for c in columns}, small)
            self._truths[screen] = passed(screen, len(when), [shown]), screen.exact and small
        return self._truths[screen]

    @property
    def since(self) -> Ints:
        """The first moment of each key; without one, never."""
        times, starts, *_ = self.events
        return np.where(starts[:-1] < starts[1:], np.append(times, NEVER)[starts[:-1]], NEVER - 1)

    def knows(self, found: Instants, lasts: Duration) -> Mask:
        """Whether there is something of the key at each instant that the query may still look at, and that
        is not older than so much."""
        times, starts, *_ = self.events
        low, high = np.empty((2, len(found.at)), np.int64)
        positions(times, starts, found.at, found.ends, 0, 1, high)
        since = -lasts if self.span.nearest else max(self.span.low, -lasts)
        positions(times, starts, found.at, found.ends, since, 0, low)
        return high > low

    # --- what it shows at instants of its parts ---

    def shown(self, found: Instants, wanted: tuple[Column, ...]) -> Shown:
        """What it shows."""
        cells = self.cells(found)
        widest = 1 if self.span.nearest else int((cells.high - cells.low).max(initial=1))
        columns = {c.name: self.values(c, cells, found.at) for c in wanted if c.bound is None}
        vague = self.meet and self.rows.until is not None and any(c.attribute == VALID for c in wanted)
        return Shown(cells, columns, all(self.is_small(column, widest) for column in wanted), vague)

    def cells(self, found: Instants) -> Cells:
        """The cells that it looks at."""
        if not self.span.nearest:
            return Cells(self._positions(found, self.span.low, 0), self._positions(found, self.span.high, 1))
        nearest = self._nearest(found)
        return Cells(nearest, nearest + (nearest >= 0))

    def values(self, column: Column, cells: Cells, at: Ints) -> Any:
        """A column of what it shows of cells at instants."""
        return defaulted(column, self._values(column, cells, at), cells.there)

    def _values(self, column: Column, cells: Cells, at: Ints) -> Any:
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
            return self._picked(column, cells.low, cells.there)
        if column.function is None and column.attribute:
            return self._common(column, cells)
        return self._aggregated(column, cells.low, cells.high)

    def newest(self, cells: Cells) -> Ints:
        """The rows that contributed last to cells; anything where there is none."""
        return np.append(self._contributors, [0, 0])[cells.high - 1]

    @cached_property
    def _contributors(self) -> Ints:
        """The row that contributed last of what came up to each cell."""
        found: Ints = self.leads[self.runs]
        return found

    @cached_property
    def stood(self) -> Ints:
        """Where that stood."""
        found: Ints = self.rows.standings.codes[self._contributors]
        return found

    @cached_property
    def stands(self) -> Places:
        """Where readings stand."""
        return Places.of([where(*spot) for spot in self.rows.standings.values])

    @cached_property
    def leads(self) -> Ints:
        """Of each cell the row that is first by whose it is and where it comes from."""
        found = self.order[self.bounds[:-1]]
        if self.meet:
            sizes = np.diff(self.bounds)
            some = np.repeat(sizes > 1, sizes)
            rows, cells = self.order[some], np.repeat(np.arange(len(sizes)), sizes)[some]
            ranks = [_ranked(coded(self.rows.batch, name))[rows] for name in ("source", SIGNATURE)]
            ranked = np.lexsort((*ranks, cells))
            firsts = np.append(True, np.diff(cells[ranked]) > 0)
            found[cells[ranked[firsts]]] = rows[ranked[firsts]]
        return found

    def _positions(self, found: Instants, shift: Duration, after: int) -> Ints:
        """The first cell at, or after, each instant, moved by so much."""
        cells = np.empty(len(found.at), np.int64)
        positions(self.times, self.starts, found.at, found.ends, shift, after, cells)
        return cells

    def _nearest(self, found: Instants) -> Ints:
        """The cell that is nearest in time at each instant, the lesser of two; -1 if there is none."""
        cells = np.empty(len(found.at), np.int64)
        nearest(*found, self.times, self.starts, self.runs, self.span.high, cells)
        return cells

    def _common(self, column: Column, cells: Cells) -> Any:
        """The value that all of a window have: of a key, and of text and truth."""
        if column.kind == "number":
            return np.where(
                cells.there, np.append(self._numbers(column.attribute), np.nan)[cells.low], np.nan
            )
        words = self._words(column).dictionary_encode()
        codes = words.indices.cast(pa.float64()).fill_null(-1.0).to_numpy(zero_copy_only=False)
        least, most = (AGGREGATES[name](codes, *cells) for name in ("min", "max"))
        same = (least == most) & (most >= 0)
        return words.dictionary.take(pa.array(np.where(same, most, 0).astype(np.int64), mask=~same))

    def _aggregated(self, column: Column, low: Ints, high: Ints) -> Any:
        if not column.attribute:
            return (high - low).astype(np.float64)
        return AGGREGATES[column.function or "avg"](self._numbers(column.attribute), low, high)

    def _picked(self, column: Column, cells: Ints, there: Mask) -> Any:
        if not column.attribute:
            return np.where(there, 1.0, np.nan)
        if column.kind == "number":
            return np.append(self._numbers(column.attribute), np.nan)[cells]
        return self._words(column).take(pa.array(cells, mask=~there))

    # --- what lies in cells ---

    def _column(self, name: str, type: pa.DataType) -> Any:
        batch = self.rows.batch
        return batch.column(name) if name in batch.schema.names else pa.nulls(len(batch), type)

    def _numbers(self, name: str) -> Floats:
        """The number in each cell: of several that collide, their function.  [F56]"""
        if name not in self._known:
            self._known[name] = self._collided(name)
        return self._known[name]

    def _collided(self, name: str) -> Floats:
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
        found[several] = AGGREGATES[self.collide](values, low[several], high[several])
        if self.collide == "count":
            found[several & (found == 0)] = np.nan  # what all lack is missing, as where one lacks it
        return found

    def _words(self, column: Column) -> Any:
        """The text or truth in each cell: of several that collide, the one that all have."""
        words = plain(self._column(column.attribute, TYPES[column.kind])).take(pa.array(self.order))
        low, high = self.bounds[:-1], self.bounds[1:]
        if len(low) == len(words):
            return words
        found = words.take(pa.array(low)).to_pylist()
        for cell in np.flatnonzero(high - low > 1).tolist():
            here = words.slice(low[cell], high[cell] - low[cell]).to_pylist()
            found[cell] = here[0] if len(set(here)) == 1 else None
        return pa.array(found, words.type)

    def is_small(self, column: Column, widest: int) -> bool:
        """Whether floats tell the whole numbers of a column, and sums of so many cells, apart."""
        if column.kind != "number" or not column.attribute:
            return True
        values = self._column(column.attribute, pa.float64())
        if not pa.types.is_integer(values.type):
            return True
        sizes = np.abs(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
        deepest = int(np.diff(self.bounds).max(initial=1))
        adds_up = _ADDS_UP.intersection((column.function, column.over, column.across))
        return bool(np.nanmax(sizes, initial=0) * (widest if adds_up else 1) * deepest < _WHOLE)

    # --- for one key, and for later ---

    def table(self, rows: Ints, now: Instant, here: Where) -> Table:
        """What the query selects at an instant among rows that are visible."""
        time = self.query.time
        if isinstance(time, Aggregate) and self._are_apart(rows):
            return [combined(_Window(self.rows, rows, now), time.functions, self.query.each)]
        valid = self.rows.are_valid(rows, now).tolist()
        judged = map(_judged, self.rows.knowledge(rows), valid)
        known = sorted(judged, key=order)
        if self.divided or isinstance(time, Aggregate) or not known:
            return select(self.query, known, now, here, self.collide)
        there = now + self.span.high
        cells = one_per_cell(known, self.collide, self.query.each)
        return [min(cells, key=lambda one: (abs(one.time - there), one.time))]

    def readings(self, found: Instants) -> list[Knowledge] | None:
        """The reading that the query shows at each instant, if it shows one there that met no other."""
        if self.divided or not self.span.nearest:
            return None
        cells = self._nearest(found)
        if (cells < 0).any() or (np.diff(self.bounds)[cells] > 1).any():
            return None
        rows = self.order[self.bounds[cells]]
        known = to_knowledge(self.rows.topic, self.rows.batch.take(pa.array(rows)))
        return list(map(_judged, known, self.rows.are_valid(rows, found.at).tolist()))

    def needed(self, rows: Ints) -> Ints:
        """The rows of which `table` needs knowledge, as far as that can be said."""
        if self.span.nearest or not self._are_apart(rows):
            return rows
        times = self.rows.times[rows]
        return rows[[0, int(np.searchsorted(times, times[-1]))]]

    def _are_apart(self, rows: Ints) -> bool:
        """Whether rows of a part are there, each in a cell of its own."""
        if self.divided or not len(rows):
            return False
        if len(self.bounds) > len(self.rows):
            return True
        times, spots = self.rows.times[rows], self.rows.standings.codes[rows]
        return not ((times[1:] == times[:-1]) & (spots[1:] == spots[:-1])).any()

    @cached_property
    def places(self) -> Places:
        """Where the parts are."""
        assert self.spots is not None
        return self.stands.take(self.spots)

    def _around(self, key: int, now: Instant, here: Where) -> Ints:
        """The parts of a key that may be near, or closest."""
        match self.query.location:
            case Multiple(_, Ball(centre, radius)) | Pool(Ball(centre, radius)):
                far = Places.of([absolute(centre, here)]).far(self.places)[0]
                return np.flatnonzero((far <= radius * (1 + MARGIN)) & (self.owners == key))
            case Closest(index):
                far = Places.of([absolute(index, here)]).far(self.places)[0]
                far[(self.times[self.starts[:-1]] > now) | (self.owners != key)] = np.inf
                return np.flatnonzero((far <= far.min(initial=np.inf) * (1 + MARGIN)) & (far < np.inf))
        return np.flatnonzero(self.owners == key)

    def visible(self, key: int, now: Instant, here: Where = None) -> Ints:
        """The rows among which the query selects for a key at an instant, somewhere."""
        key = 0 if self.shared else key
        if self.roams:
            parts = self._around(key, now, here).tolist()
            found = [self._rows(*self._visible(part, now)) for part in parts]
            return np.concatenate([np.empty(0, np.int64), *found])
        if not self.divided:
            return self._rows(*self._visible(key, now))
        if self.nearest is not None:
            first, end = np.searchsorted(self.owners[self.nearest], (key, key + 1)).tolist()
            some = (self._rows(*self._visible(part, now)) for part in self.nearest[first:end].tolist())
            return next((rows for rows in some if len(rows)), np.empty(0, np.int64))
        first, end = np.searchsorted(self.owners, (key, key + 1)).tolist()
        found = [self._rows(*self._visible(part, now)) for part in range(first, end)]
        return np.concatenate([np.empty(0, np.int64), *found])

    def _visible(self, part: int, now: Instant) -> tuple[int, int]:
        """The same in cells, for a part."""
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
        found: Ints = self.order[self.bounds[first] : self.bounds[end]]
        return found

    def kept(self, until: Instant) -> Mask:
        """The rows that a query may show, or whose leaving it may see, at ``until`` or later.  [F70]"""
        if not self.span.nearest:
            return self.rows.times >= until + self.span.low - 1
        count = len(self.owners)
        after = self._positions(Instants(np.full(count, until), np.arange(count + 1)), self.span.high, 1)
        since = np.where(after > self.starts[:-1], np.append(self.runs, 0)[after - 1], after)
        cells = np.arange(len(self.times)) >= np.repeat(since, np.diff(self.starts))
        kept = np.empty(len(self.rows), np.bool_)
        kept[self.order] = np.repeat(cells, np.diff(self.bounds))
        return kept


class _Window:
    """Rows in a window as a group of knowledge points, none of which collide."""

    def __init__(self, rows: Rows, numbers: Ints, now: Instant) -> None:
        self._rows, self._numbers = rows, numbers
        self.names = [attribute.name for attribute in rows.topic.attributes]
        self.times: list[Instant] = rows.times[numbers].tolist()
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
        return _judged(known, bool(self._valid[i]))


def standings(views: Sequence[Series]) -> list[Ints]:
    """For each row of each series where it stands among all."""
    every = sorted({spot for series in views for spot in series.rows.standings.values})
    rank = {spot: i for i, spot in enumerate(every)}
    return [
        np.array([rank[spot] for spot in s.rows.standings.values], np.int64)[s.rows.standings.codes]
        for s in views
    ]


def _judged(known: Knowledge, valid: bool) -> Knowledge:
    return known if valid else replace(known, valid=False)


def _ranked(texts: Coded) -> Ints:
    """For each row where its text stands among all; first, if it has none."""
    order = sorted(range(len(texts.values)), key=texts.values.__getitem__)
    rank = np.full(len(order) + 1, -1)
    rank[order] = np.arange(len(order))
    found: Ints = rank[texts.codes]
    return found


def _by_time(times: Ints) -> Ints | None:
    """The rows in order of time; ``None`` if they are."""
    return np.argsort(times, kind="stable") if (times[1:] < times[:-1]).any() else None


def firsts(starts: Ints, *columns: Ints) -> Mask:
    """Where a part begins, or a value of a column differs from the one before."""
    first = np.zeros(len(columns[0]), np.bool_)
    for column in columns:
        first[1:] |= column[1:] != column[:-1]
    first[starts[:-1][starts[:-1] < len(first)]] = True
    return first
