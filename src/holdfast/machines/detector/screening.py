"""Where rules may be satisfied: predicates over columns, at all instants of a step at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from typing import Any

import numpy as np
import pyarrow as pa

from ...kernels.window import foremost, tally
from ...model.instant import Duration, Instant
from ...model.query import Multiple
from .plan import Column, Plan, Screen
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

    def __init__(self, smc: Smc, plan: Plan, seen: Views, first: Instant, until: Instant) -> None:
        self._smc, self._plan, self._seen, self._first, self._until = smc, plan, seen, first, until
        every = list(chain.from_iterable(seen.values()))
        streams = [(*series.by_key, shift) for series in every for shift in series.span.shifts]
        if smc.tick is not None:
            streams.append((*_ticks(every, smc.tick, smc.lasts, first, until), 0))
        self.found = every_instant(streams, first, until)
        self.enter = self._candidates(smc.enter, plan.enter)
        self.leave = None if smc.exit is None or plan.exit is None else self._candidates(smc.exit, plan.exit)

    @cached_property
    def shown(self) -> dict[str, list[Shown]]:
        """What queries show, of each status, that show one value of a key and status."""
        found: dict[str, list[Shown]] = {}
        for name, views in self._seen.items():
            some = [self._shown(series, self._plan.columns[name]) for series in views if not series.hidden]
            if None not in some:
                found[name] = [one for one in some if one is not None]
        return found

    def _shown(self, series: Series, columns: tuple[Column, ...]) -> Shown | None:
        if not series.divided:
            return series.shown(self.found, columns)
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
            return self._counted(rule, screen, single[0])
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
        exact = screen.exact and all(one.exact for name in names for one in self.shown[name])
        return Candidates(rule, mask, np.full(size, exact), by=by)

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
