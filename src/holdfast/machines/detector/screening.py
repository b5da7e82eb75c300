"""Where rules may be satisfied: predicates over columns, at all instants of a step at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels.around import closest, counted, latest
from ...kernels.window import foremost, tally
from ...model.instant import Duration, Instant
from ...model.query import HERE, Ball, Closest, Multiple, Pool
from .plan import AWAY, Column, Plan, Screen
from .roaming import Host, Places, where
from .rows import Ints, Mask
from .series import Cells, Series, Shown
from .smc import Rule, Smc
from .span import Instants, every_instant

Views = Mapping[str, Sequence[Series]]
"""What each query may look at: of each status by itself."""

Choice = Mapping[str, int]
"""Of each query the status of which it is, by number."""


@dataclass(frozen=True)
class Candidates:
    """The instants at which a rule may be satisfied; those of keys that are ``sure``, at which it is.

    Where columns tell, ``by`` are the statuses of queries that satisfy it, and where they do.
    """

    rule: Rule
    mask: Mask
    sure: Mask
    by: Sequence[tuple[Choice, Mask]] = field(default=(), kw_only=True)

    @cached_property
    def next(self) -> Ints:
        """At and after each instant, the next candidate."""
        return _next(self.mask)

    @cached_property
    def gap(self) -> Ints:
        """At and after each instant, the next that is none."""
        return _next(~self.mask)


def _next(mask: Mask) -> Ints:
    here = np.where(mask, np.arange(len(mask)), len(mask))
    found: Ints = np.append(np.minimum.accumulate(here[::-1])[::-1], len(mask))
    return found


class Screened:
    """The instants of a step from ``first`` to before ``until``, and the candidates of each rule;
    without ``leave``, momentary."""

    def __init__(
        self,
        smc: Smc,
        plan: Plan,
        seen: Views,
        first: Instant,
        until: Instant,
        host: Host | None = None,
    ) -> None:
        self._smc, self._plan, self._seen, self._first, self._until = smc, plan, seen, first, until
        self._host = host
        every = list(chain.from_iterable(seen.values()))
        streams = [(*series.by_key, shift) for series in every for shift in series.span.shifts]
        if smc.tick is not None:
            streams.append((*_ticks(every, smc.tick, smc.lasts, first, until), 0))
        if host is not None:
            count = every[0].count
            streams.append((np.tile(host.times, count), np.arange(count + 1) * len(host.times), 0))
            first = max(first, int(host.times[0]))
        self.found = every_instant(streams, first, until)
        self._doubt: dict[str, Mask] = {}
        self.enter = self._candidates(smc.enter, plan.enter)
        self.leave = None if smc.exit is None or plan.exit is None else self._candidates(smc.exit, plan.exit)

    @cached_property
    def shown(self) -> dict[str, list[Shown]]:
        """What queries show, of each status, that show one value of a key and status."""
        found: dict[str, list[Shown]] = {}
        for name, views in self._seen.items():
            some = [
                self._shown(name, series, self._plan.columns[name]) for series in views if not series.hidden
            ]
            if None not in some:
                found[name] = [one for one in some if one is not None]
        return found

    def _shown(self, name: str, series: Series, columns: tuple[Column, ...]) -> Shown | None:
        if not series.divided:
            return self._with_distance(series, series.shown(self.found, columns), columns)
        if series.roams:
            return self._of_host(name, series, columns)
        if series.nearest is not None and series.is_steady:
            return self._of_nearest(series, series.nearest, columns)
        return None

    def _of_nearest(self, series: Series, order: Ints, columns: tuple[Column, ...]) -> Shown:
        """What a query shows of the closest location of which there is something."""
        moments = self._moments(series)
        shown = series.shown(moments, columns)
        chosen = np.full(len(self.found.at), -1)
        free = np.arange(len(self.found.at) + 1)
        foremost(*moments, order, series.owners, shown.there, *self.found, free, chosen)
        there = chosen >= 0
        low, high = (np.append(ends, 0)[chosen] for ends in shown.cells)
        return Shown(
            Cells(np.where(there, low, -1), np.where(there, high, -1)),
            {name: _taken(column, chosen, there) for name, column in shown.columns.items()},
            shown.exact,
        )

    def _candidates(self, rule: Rule, screen: Screen) -> Candidates:
        names = rule.mentions or tuple(self._smc.inputs)
        if all(name in self.shown and not self._is_vague(name) for name in names):
            return self._combined(rule, screen, names)
        single = self._seen[names[0]] if len(names) == 1 else ()
        if len(single) == 1 and single[0].is_steady and _shows_several(single[0]):
            judged = self._around if single[0].roams else self._counted
            return judged(rule, screen, single[0])
        mask, keys = np.ones(len(self.found.at), np.bool_), len(self.found.ends) - 1
        plain = {name: shown[0] for name, shown in self.shown.items() if len(shown) == 1}
        if len(names) > 1 and all(
            not self._is_vague(name) if name in plain else _shows_several(self._seen[name][0])
            for name in names
        ):
            mask = screen.test(_table(len(mask), plain.values()))  # reads none of the others
        there = [self._somewhere(name) for name in names if name in self.shown]
        return Candidates(rule, np.logical_and.reduce([mask, *there]), np.zeros(keys, np.bool_))

    def _is_vague(self, name: str) -> bool:
        """Whether columns do not tell what a query shows: of several statuses, how many places satisfy."""
        shown = self.shown[name]
        return any(one.vague for one in shown) or (len(shown) > 1 and _shows_several(self._seen[name][0]))

    def _combined(self, rule: Rule, screen: Screen, names: Sequence[str]) -> Candidates:
        """The candidates of a rule over queries that show one value of each status."""
        mask, size = np.zeros(len(self.found.at), np.bool_), len(self.found.ends) - 1
        by = []
        for numbers in product(*(range(len(self.shown[name])) for name in names)):
            choice = dict(zip(names, numbers, strict=True))
            shown = [self.shown[name][number] for name, number in choice.items()]
            found = screen.test(_table(len(mask), shown))
            found = np.logical_and.reduce([found, *(one.there for one in shown)])
            by.append((choice, found))
            mask |= found
        for name in names:
            mask |= self._doubt.get(name, False)
        exact = screen.exact and all(one.exact for name in names for one in self.shown[name])
        return Candidates(rule, mask, np.full(size, exact), by=by)

    # --- around a host that moves ---

    def _with_distance(self, series: Series, shown: Shown, columns: tuple[Column, ...]) -> Shown:
        """The same, with how far what it shows is from the host, if that is asked for."""
        for column in columns:
            if column.attribute == AWAY and self._host is not None:
                spots = series.rows.standings
                far = self._host.far(HERE, Places.of([where(*spot) for spot in spots.values]))
                rows = series.newest(shown.cells)
                at = spots.codes[rows] if len(spots.values) else rows
                moves = self._host.moves(self.found.at)
                known = far[moves, at] if far.size else np.full(len(moves), np.inf)
                shown.columns[column.name] = np.where(shown.there & (known < np.inf), known, np.nan)
        return shown

    def _events(self, series: Series) -> tuple[Ints, Ints, Ints]:
        """The cells of a query that shows the latest of each place, in order of time: when, of which part."""
        parts = np.repeat(np.arange(len(series.owners)), np.diff(series.starts))
        order = np.argsort(series.times, kind="stable")
        return series.times[order], parts[order], order

    def _of_host(self, name: str, series: Series, columns: tuple[Column, ...]) -> Shown | None:
        """What a query shows of the location that is closest to the host, or that spoke last near it."""
        location = series.query.location
        if isinstance(location, Multiple) or not series.span.nearest or series.count > 1:
            return None
        assert self._host is not None and series.spots is not None
        when, parts, cells = self._events(series)
        spots, mine = series.rows.standings.values, series.spots.tolist()
        rank = np.argsort(sorted(range(len(mine)), key=lambda part: spots[mine[part]])).astype(np.int64)
        size = len(self.found.at)
        chosen, doubt = np.empty(size, np.int64), np.empty(size, np.bool_)
        moves = self._host.moves(self.found.at)
        match location:
            case Closest(index):
                far = self._host.far(index, series.places)
                closest(self.found.at, moves, far, rank, when, parts, cells, chosen, doubt)
            case Pool(Ball(centre, radius)):
                far = self._host.far(centre, series.places)
                latest(self.found.at, moves, far, rank, when, parts, cells, radius, chosen, doubt)
            case _:
                return None
        self._doubt[name] = doubt
        found = Cells(chosen, np.where(chosen < 0, chosen, chosen + 1))
        return Shown(found, {c.name: series.values(c, found, self.found.at) for c in columns}, exact=False)

    def _around(self, rule: Rule, screen: Screen, series: Series) -> Candidates:
        """The candidates of a rule over one query that shows what is near: by how many satisfy."""
        location, size = series.query.location, len(self.found.at)
        unsure = np.zeros(len(self.found.ends) - 1, np.bool_)
        assert isinstance(location, Multiple)
        if not isinstance(location.group, Ball) or not series.span.nearest or len(unsure) > 1:
            return Candidates(rule, np.ones(size, np.bool_), unsure)
        when, parts, order = self._events(series)
        cells = Cells(order, order + 1)
        ((_, columns),) = ((name, self._plan.columns[name]) for name in rule.mentions or self._smc.inputs)
        values = {column.name: series.values(column, cells, when) for column in columns}
        true = screen.test(_table(len(when), [Shown(cells, values, exact=False)])).astype(np.int64)
        count, present, doubt = np.empty((3, size), np.int64)
        assert self._host is not None
        moves, far = self._host.moves(self.found.at), self._host.far(location.group.centre, series.places)
        counted(self.found.at, moves, far, when, parts, true, location.group.radius, count, present, doubt)
        mask = count > 0
        if location.how == "all":
            mask &= count + doubt >= present
        return Candidates(rule, mask, unsure)

    def _somewhere(self, name: str) -> Mask:
        """Where a query shows something."""
        found: Mask = np.logical_or.reduce([one.there for one in self.shown[name]])
        return found

    def _counted(self, rule: Rule, screen: Screen, series: Series) -> Candidates:
        """The candidates of a rule over one query that shows several values: by how many satisfy."""
        moments = self._moments(series)
        ((_, columns),) = ((name, self._plan.columns[name]) for name in rule.mentions or self._smc.inputs)
        shown = series.shown(moments, columns)
        satisfied = shown.there & screen.test(_table(len(moments.at), [shown]))
        count, present = (self._sum(series, moments, part) for part in (satisfied, shown.there))
        exact = screen.exact and shown.exact
        location = series.query.location
        assert isinstance(location, Multiple)
        mask = count > 0
        if location.how == "all":
            mask &= count == present
        elif location.how == "one" and exact:
            mask = count == 1
        return Candidates(rule, mask, np.full(len(self.found.ends) - 1, exact))

    def _moments(self, series: Series) -> Instants:
        """When what a part shows may change: at first, and at its own instants."""
        parts = len(series.owners)
        since = max(self._first, int(series.times.min(initial=self._until)))
        return every_instant(
            [(np.full(parts, since), np.arange(parts + 1), 0)]
            + [(series.times, series.starts, shift) for shift in series.span.shifts],
            since,
            self._until,
        )

    def _sum(self, series: Series, moments: Instants, true: Mask) -> Ints:
        """Of how many parts something is true at each instant of their key."""
        change = np.diff(true.astype(np.int64), prepend=0)
        first = moments.ends[:-1]
        change[first] = true[first]
        total = np.zeros(len(self.found.at), np.int64)
        tally(moments.at, moments.ends, series.owners, self.found.at, self.found.ends, change, total)
        running = np.append(0, np.cumsum(total))
        begins = self.found.ends[:-1]
        found: Ints = running[1:] - np.repeat(running[begins], np.diff(self.found.ends))
        return found


def _ticks(
    seen: Sequence[Series], tick: Duration, lasts: Duration, first: Instant, until: Instant
) -> Instants:
    """The ticks of each key while something is known of it that is not too old."""
    since = np.minimum.reduce([series.since for series in seen])
    number = -(-np.maximum(since + 1, first) // tick)
    sizes = np.where(since < until, np.maximum(-(-until // tick) - number, 0), 0)
    ends = np.append(0, np.cumsum(sizes))
    at = (np.repeat(number - ends[:-1], sizes) + np.arange(ends[-1])) * tick
    known = np.logical_or.reduce([series.knows(Instants(at, ends), lasts) for series in seen])
    return Instants(at[known], np.append(0, np.cumsum(known))[ends])


def _shows_several(series: Series) -> bool:
    """Whether it is meant to show values of several locations."""
    location = series.query.location
    return isinstance(location, Multiple) and location.how != "separate"


def _taken(column: Any, rows: Ints, there: Mask) -> Any:
    """What a column has at rows, where there is something."""
    if isinstance(column, np.ndarray):
        return np.append(column, np.nan)[rows]
    return column.take(pa.array(rows, mask=~there))


def _table(size: int, shown: Iterable[Shown]) -> pa.RecordBatch:
    """Columns as a batch, of so many rows even if there is none."""
    columns = {name: column for one in shown for name, column in one.columns.items()}
    return pa.RecordBatch.from_pydict({**columns, "@": np.zeros(size, np.bool_)})
