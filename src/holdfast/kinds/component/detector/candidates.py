"""Candidate instants of a step: instants at which the predicates of a component may be satisfied.

All masks are computed over columns. A mask may have too many instants but never misses one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ....kernels.around import closest, is_true_at, near
from ....kernels.turn import shared
from ....kernels.window import foremost, tally
from ....model.instant import Instant
from ....model.query import HERE, Aggregate, Ball, Closest, Index, Multiple, PooledDimension
from .columnar_plan import VALID, ColumnarPlan, PlanColumn, Screen
from .hosts import HostDistances, MovingHost
from .part_pool import PartPool
from .rows import Ints, Mask
from .series import CellRanges, ReadingSeries, ShownColumns, as_batch, fill_default, screen_mask
from .smc import Rule, Smc
from .span import Instants, every_instant
from .topic_pool import TopicPool, has_shared_keys

MOST = 1 << 22
"""The largest number of instants of shared queries that are evaluated in one step, over all keys."""
FEW = 6
"""The largest number of comparisons over separate queries for which every combination of outcomes is
evaluated."""

Columns = tuple[PlanColumn, ...]

Views = Mapping[str, Sequence[ReadingSeries]]
"""For each query its series, one for each status."""

Choice = Mapping[str, int | None]
"""For each query the number of the status that it shows; `None` if the query shows nothing."""


@dataclass(frozen=True)
class Candidates:
    """The instants at which a rule may be satisfied. For keys that are `sure`, the rule is satisfied at all
    of them.

    `by` has one mask for each choice of statuses that columns can decide. If the only query shows several
    places, `chosen` has the cells of the satisfying place that contributed last.
    """

    rule: Rule
    mask: Mask
    sure: Mask
    by: Sequence[tuple[Choice, Mask]] = field(default=(), kw_only=True)
    chosen: CellRanges | None = field(default=None, kw_only=True)

    @cached_property
    def next(self) -> Ints:
        """For each instant the index of the next candidate at or after it."""
        return _next(self.mask)

    @cached_property
    def gap(self) -> Ints:
        """For each instant the index of the next instant at or after it that is not a candidate."""
        return _next(~self.mask)


def _next(mask: Mask) -> Ints:
    """Return for each position the next position at or after it where `mask` is true; `len(mask)` if there is
    none."""
    here = np.where(mask, np.arange(len(mask)), len(mask))
    found: Ints = np.append(np.minimum.accumulate(here[::-1])[::-1], len(mask))
    return found


class TooManyInstants(Exception):
    """Raised if a step has too many instants. The caller repeats the step with the earlier end `until`."""

    def __init__(self, until: Instant) -> None:
        super().__init__(until)
        self.until = until


class ScreenedInstants:
    """The instants of a step in [`first`, `until`), and the candidates of each rule.

    `leave` is `None` for a momentary component. `found` has the instants of all keys. `holds` marks the
    active keys; it is required if queries are shared.
    """

    def __init__(
        self,
        smc: Smc,
        plan: ColumnarPlan,
        seen: Views,
        first: Instant,
        until: Instant,
        host: MovingHost | None = None,
        holds: Mask | None = None,
    ) -> None:
        self._smc, self._plan, self._seen, self._first, self._until = smc, plan, seen, first, until
        self._host = host
        every = [series for series in chain.from_iterable(seen.values()) if not series.shared]
        streams = [(*series.events[:2], shift) for series in every for shift in series.span.shifts]
        if smc.tick is not None:
            streams.append((*_ticks(every, smc, first, until), 0))
        if host is not None:
            count = every[0].count
            streams.append((np.tile(host.times, count), np.arange(count + 1) * len(host.times), 0))
            first = max(first, int(host.times[0]))
        self.found = every_instant(streams, first, until)
        shared = [series for series in chain.from_iterable(seen.values()) if series.shared]
        if shared:  # the values of these series may change for all keys
            assert holds is not None, "a component with shared series needs its active keys"
            streams = [(*series.events[:2], shift) for series in shared for shift in series.span.shifts]
            own, moments = self.found, every_instant(streams, self._first, until).at
            between, keys = self._instants_between(own, moments, holds), len(own.ends) - 1
            if between is None:  # every time for every key
                most = max(1, MOST // max(keys, 1))
                if len(moments) > most:
                    raise TooManyInstants(int(moments[most]))
                between = Instants(np.tile(moments, keys), np.arange(keys + 1) * len(moments))
            self.found = every_instant([(*own, 0), (*between, 0)], first, until)
        self.enter = self._candidates(smc.enter, plan.enter)
        self.leave = None if smc.exit is None or plan.exit is None else self._candidates(smc.exit, plan.exit)

    @property
    def is_sure(self) -> bool:
        """Whether every candidate is an event: columns decide the predicates, and no rule has a minimum
        duration."""
        rules = [self.enter] if self.leave is None else [self.enter, self.leave]
        return all(rule.rule.hold == 0 and bool(rule.sure.all()) for rule in rules)

    @cached_property
    def columns(self) -> dict[str, list[ShownColumns]]:
        """The columns shown, by query and status. Queries that show several values for a key and status are
        absent."""
        return {name: shown for name in self._seen if (shown := self._of_query(name)) is not None}

    def _of_query(self, name: str) -> list[ShownColumns] | None:
        """Return the columns that a query shows, one item for each status, or `None` if columns cannot
        represent them."""
        views = [series for series in self._seen[name] if not series.is_hidden]
        if isinstance(self._smc.inputs[name].query.topic, Aggregate):
            if has_shared_keys(views):
                return None
            found, same = self._instants(views[0])
            pool = TopicPool([(series, series.cells(found)) for series in views], found.at)
            return [_repeat(pool.show(self._plan.columns[name]), same)]
        of_views = []
        for series in views:
            found, same = self._instants(series)
            if (shown := self._show(series, self._plan.columns[name], found)) is None:
                return None
            of_views.append(_repeat(shown, same))
        return of_views

    @cached_property
    def _distinct(self) -> tuple[Instants, Ints]:
        """The distinct instants of all keys, and for each instant of the step its index among them."""
        at, same = np.unique(self.found.at, return_inverse=True)
        return Instants(at, np.array([0, len(at)])), same

    def _instants(self, series: ReadingSeries) -> tuple[Instants, Ints | None]:
        """Return the instants at which to evaluate a series.

        For a shared series, also return for each instant of the step its index among them; otherwise `None`.
        """
        return self._distinct if series.shared else (self.found, None)

    def _show(self, series: ReadingSeries, columns: Columns, found: Instants) -> ShownColumns | None:
        """Return the columns that a series shows at instants, or `None` if it shows several values for a
        key."""
        if series.is_mixed:
            return None
        if series.folds:
            return PartPool(series, found, self._moments(series)).show(columns)
        if not series.is_divided:
            return self._with_distance(series, series.show(found, columns), columns)
        if series.roams:
            return self._of_host(series, columns)
        if series.nearest is not None and series.is_steady:
            return self._of_nearest(series, series.nearest, columns, found)
        return None

    def _of_nearest(
        self, series: ReadingSeries, order: Ints, columns: Columns, found: Instants
    ) -> ShownColumns:
        """Return the columns of the closest location that shows a value at each instant."""
        moments = self._moments(series)
        shown = series.show(moments, columns)
        chosen = np.full(len(found.at), -1)
        free = np.arange(len(found.at) + 1)
        foremost(*moments, order, series.owners, shown.there, *found, free, chosen)
        there = chosen >= 0
        cells = CellRanges(*(np.where(there, np.append(ends, 0)[chosen], -1) for ends in shown.cells))
        values = {c.name: _take_values(shown.columns[c.name], chosen, there) for c in columns}
        values = {c.name: fill_default(c, values[c.name], there) for c in columns}
        return ShownColumns(cells, values, shown.exact)

    def _candidates(self, rule: Rule, screen: Screen) -> Candidates:
        """Return the candidates of a rule.

        Where columns do not decide the predicate, the candidates are the instants at which all required
        queries show a value.
        """
        names = rule.mentions or tuple(self._smc.inputs)
        if all(name in self.columns and not self._is_vague(name) for name in names):
            return self._combine(rule, screen, names)
        single = self._seen[names[0]] if len(names) == 1 else ()
        if len(single) == 1 and single[0].is_steady and _shows_several(single[0]) and not single[0].shared:
            judged = self._by_latest if single[0].span.nearest else self._by_count
            return judged(rule, screen, single[0])
        mask, keys = np.ones(len(self.found.at), np.bool_), len(self.found.ends) - 1
        plain = {name: shown[0] for name, shown in self.columns.items() if len(shown) == 1}
        if len(names) > 1 and all(
            not self._is_vague(name) if name in plain else _shows_several(self._seen[name][0])
            for name in names
        ):
            mask = screen_mask(screen, len(mask), plain.values())  # reads none of the others
        required = [name for name in names if name in self.columns and name not in rule.optional]
        there = [self._somewhere(name) for name in required]
        return Candidates(rule, np.logical_and.reduce([mask, *there]), np.zeros(keys, np.bool_))

    def _is_vague(self, name: str) -> bool:
        """Whether columns do not determine the values of a query.

        This includes a query that selects several statuses and several places: columns do not determine how
        many places satisfy.
        """
        shown = self.columns[name]
        return any(part.vague for part in shown) or (len(shown) > 1 and _shows_several(self._seen[name][0]))

    def _combine(self, rule: Rule, screen: Screen, names: Sequence[str]) -> Candidates:
        """Return the candidates of a rule over queries that show one value for each status.

        Optional queries may show nothing, but at least one query must show a value.
        """
        mask, size = np.zeros(len(self.found.at), np.bool_), len(self.found.ends) - 1
        by = []
        shows = {name: self.columns[name] for name in names}
        statuses = ([*range(len(shows[n])), *([None] if n in rule.optional else [])] for n in names)
        for numbers in product(*statuses):  # the status that each query shows; `None` if it shows nothing
            choice = dict(zip(names, numbers, strict=True))
            if all(number is None for number in numbers):
                continue
            found = screen_mask(screen, len(mask), [shows[name][n or 0] for name, n in choice.items()])
            for name, number in choice.items():
                found = found & (~self._somewhere(name) if number is None else shows[name][number].there)
            by.append((choice, found))
            mask |= found
        exact = screen.exact and all(shown.exact for name in names for shown in shows[name])
        for name in names:
            enough = self._enough_topics(name, by, exact=exact)
            by = [(choice, found & enough) for choice, found in by]
            mask &= enough
        return Candidates(rule, mask, np.full(size, exact), by=by)

    def _enough_topics(self, name: str, by: Sequence[tuple[Choice, Mask]], *, exact: bool) -> Mask:
        """Mark the instants at which as many topics satisfy as the query requires, or at which the query
        shows nothing.

        `by` has the masks of all choices. An inexact mask may count too many topics, so `one` is checked only
        if it is `exact`.
        """
        enough = np.ones(len(self.found.at), np.bool_)
        topic = self._smc.inputs[name].query.topic
        if isinstance(topic, Multiple) and (topic.how == "all" or (topic.how == "one" and exact)):
            satisfied = np.zeros((len(self.columns[name]), len(enough)), np.bool_)
            for choice, found in by:
                if (number := choice[name]) is not None:
                    satisfied[number] |= found
            wanted = 1 if topic.how == "one" else len(satisfied)
            enough = (satisfied.sum(axis=0) == wanted) | ~self._somewhere(name)
        return enough

    # --- shared queries ---

    def _instants_between(self, own: Instants, moments: Ints, holds: Mask) -> Instants | None:
        """Return the instants of shared queries at which a key emits an event between its own instants.

        Return `None` if columns cannot find them, for example if one comparison reads both shared and
        separate queries.
        """
        keys, first = len(own.ends) - 1, self._first
        if not all(map(self._is_plain, self._seen)):
            return None
        spans = every_instant([(*own, 0), (np.full(keys, first), np.arange(keys + 1), 0)], first, self._until)
        counts = bool(len(moments)) and moments[0] == first
        moments = moments if counts else np.append(first, moments)
        asked = {True: Instants(moments, np.array([0, len(moments)])), False: spans}
        shown = {}
        for name, (series,) in self._seen.items():
            columns = self._show(series, self._plan.columns[name], asked[series.shared])
            if columns is None or columns.vague or not columns.exact:
                return None
            shown[name] = columns
        sizes = len(spans.at), len(moments)
        leave = enter = self._residues(self._smc.enter, self._plan.enter, shown, sizes)
        if self._smc.exit is not None and self._plan.exit is not None:
            leave = self._residues(self._smc.exit, self._plan.exit, shown, sizes)
        if enter is None or leave is None:
            return None
        real = np.ones(len(spans.at), np.bool_)
        begins = own.ends[:-1] < own.ends[1:]
        real[spans.ends[:-1]] = begins & (np.append(own.at, first)[own.ends[:-1]] == first)
        found, ends = np.empty(max(MOST, keys), np.int64), np.zeros(keys + 1, np.int64)
        rules = (enter.of, leave.of + len(enter.nexts), np.concatenate([enter.nexts, leave.nexts]))
        now = (holds.copy(), self._smc.exit is not None)
        size = shared(spans.at, spans.ends, real, moments, counts, *rules, *now, found, ends)
        if size < 0:
            raise TooManyInstants(int(moments[len(moments) // 2]))
        return Instants(found[:size], ends)

    def _is_plain(self, name: str) -> bool:
        """Whether a query shows one value for each key, and the value changes only at the key's own
        instants."""
        views = self._seen[name]
        return (
            len(views) == 1
            and not views[0].is_hidden
            and views[0].is_steady
            and not any(column.attribute == VALID for column in self._plan.columns[name])
        )

    def _residues(
        self, rule: Rule, screen: Screen, shown: Mapping[str, ShownColumns], sizes: tuple[int, int]
    ) -> _Residues | None:
        """Reduce a rule to its comparisons over shared queries, for each combination of outcomes of the other
        comparisons.

        Return `None` if a comparison reads both shared and separate queries, or if more than `FEW`
        comparisons read separate queries.
        """
        names = rule.mentions or tuple(self._smc.inputs)
        common = frozenset(name for name, (series,) in self._seen.items() if series.shared)
        tests = screen.parts.comparisons
        alone = [number for number, (whose, _) in enumerate(tests) if not whose & common]
        if not screen.exact or rule.optional or len(alone) > FEW:
            return None
        if any(whose & common and whose - common for whose, _ in tests):
            return None
        size, count = sizes
        there = [np.ones(size, np.bool_), *(shown[name].there for name in names if name not in common)]
        code = np.zeros(size, np.int64)
        for bit, number in enumerate(alone):
            whose, test = tests[number]
            code |= test(as_batch(size, [shown[name] for name in whose])).astype(np.int64) << bit
        code[~np.logical_and.reduce(there)] = -1
        known, of = np.unique(code, return_inverse=True)
        true: list[Any] = [
            None if number in alone else test(as_batch(count, [shown[name] for name in whose]))
            for number, (whose, test) in enumerate(tests)
        ]
        together = np.logical_and.reduce(
            [np.ones(count, np.bool_), *(shown[name].there for name in names if name in common)]
        )
        nexts = np.full((len(known), count + 1), count)
        for row, code_of in enumerate(known.tolist()):
            if code_of >= 0:
                for bit, number in enumerate(alone):
                    true[number] = np.bool_(code_of >> bit & 1)
                nexts[row] = _next(together & screen.parts.together(true))
        return _Residues(of, nexts)

    # --- around a host that moves ---

    @cached_property
    def _moves(self) -> Ints:
        """The index of the host's last move at each instant."""
        assert self._host is not None
        return self._host.moves(self.found)

    def _around(self, index: Index, series: ReadingSeries) -> HostDistances:
        """Return the distances of the parts of a series from `index`, a location relative to the host."""
        assert self._host is not None
        return self._host.around(index, series.places)

    def _with_distance(self, series: ReadingSeries, shown: ShownColumns, columns: Columns) -> ShownColumns:
        """Add the columns that compare the distance from the host with a limit. Change and return `shown`."""
        for column in columns:
            if column.bound is not None and self._host is not None:
                true = self._host.around(HERE, series.standing_places).compare(*column.bound)
                found, spots = np.empty(len(self.found.at), np.bool_), series.contributor_standings
                is_true_at(*self.found, self._host.times, true, shown.cells.low, spots, found)
                shown.columns[column.name] = found
        return shown

    def _inside(self, series: ReadingSeries) -> Mask:
        """Return which parts lie in the query's radius, with a row for each move of the host.

        A query without a radius around the host has one row, in which every part is inside.
        """
        match series.query.location:
            case Multiple(_, Ball(centre, radius)) | PooledDimension(Ball(centre, radius)) if series.roams:
                return self._around(centre, series).compare("<=", radius)
        return np.ones((1, len(series.owners)), np.bool_)

    def _near(self, series: ReadingSeries, true: Mask) -> tuple[Ints, Ints, CellRanges]:
        """Return at each instant how many parts near the host satisfy `true`, how many there are, and a cell
        range.

        The range is the last cell near the host that satisfies `true`; it is empty where there is none.
        """
        when, starts, parts, cells = series.events
        count, present, chosen = np.empty((3, len(self.found.at)), np.int64)
        moves = self._moves if series.roams else np.zeros(len(self.found.at), np.int64)
        inside = self._inside(series)
        order = (when, starts, parts, true, series.first_parts, series.rank)
        near(*self.found, moves, inside, *order, count, present, chosen)
        return count, present, _cells(chosen, cells)

    def _closest(self, index: Index, series: ReadingSeries) -> CellRanges:
        """Return the latest cell of the part closest to the host at each instant.

        Approximate distances decide first. If two distances are too close, exact distances are computed and
        the search is repeated.
        """
        when, starts, parts, cells = series.events
        around = self._around(index, series)
        chosen, doubt = np.empty(len(self.found.at), np.int64), np.zeros(len(self.found.at), np.bool_)
        for _ in range(2):
            around.tell_apart(np.unique(self._moves[doubt]))
            order = (when, starts, parts, series.first_parts, series.rank)
            closest(*self.found, self._moves, around.far, *order, chosen, doubt)
            if not doubt.any():
                break
        return _cells(chosen, cells)

    def _of_host(self, series: ReadingSeries, columns: Columns) -> ShownColumns | None:
        """Return the columns of the location that is closest to the host, or that contributed last near it.

        Return `None` for queries of another form.
        """
        match series.query.location:
            case Closest(index) if series.span.nearest:
                cells = self._closest(index, series)
            case PooledDimension(Ball()) if series.span.nearest:
                _, _, cells = self._near(series, np.ones(len(series.times), np.bool_))
            case _:
                return None
        values = {column.name: series.values(column, cells, self.found.at) for column in columns}
        exact = all(series.is_small(column, 1) for column in columns)
        return ShownColumns(cells, values, exact, series.has_vague_validity(columns))

    def _by_latest(self, rule: Rule, screen: Screen, series: ReadingSeries) -> Candidates:
        """Return the candidates of a rule over one query that shows the latest value of several places.

        The number of satisfying places near the host decides.
        """
        ((name, columns),) = ((name, self._plan.columns[name]) for name in rule.mentions or self._smc.inputs)
        true, exact = series.truths(screen, columns)
        count, present, cells = self._near(series, true)
        mask = _enough(series, count, present, exact=exact)
        sure = np.full(len(self.found.ends) - 1, exact)
        return Candidates(rule, mask, sure, by=[({name: 0}, mask)], chosen=cells)

    def _somewhere(self, name: str) -> Mask:
        """Mark the instants at which a query shows a value in any status."""
        found: Mask = np.logical_or.reduce([part.there for part in self.columns[name]])
        return found

    def _by_count(self, rule: Rule, screen: Screen, series: ReadingSeries) -> Candidates:
        """Return the candidates of a rule over one query that shows several values. The number of satisfying
        values decides."""
        moments = self._moments(series)
        ((_, columns),) = ((name, self._plan.columns[name]) for name in rule.mentions or self._smc.inputs)
        shown = series.show(moments, columns)
        satisfied = shown.there & screen_mask(screen, len(moments.at), [shown])
        count, present = (self._sum(series, moments, part) for part in (satisfied, shown.there))
        exact = screen.exact and shown.exact
        mask = _enough(series, count, present, exact=exact)
        return Candidates(rule, mask, np.full(len(self.found.ends) - 1, exact))

    def _moments(self, series: ReadingSeries) -> Instants:
        """Return the instants at which the value of a part may change, by part, including the start of the
        step."""
        parts = len(series.owners)
        since = max(self._first, int(series.times.min(initial=self._until)))
        return every_instant(
            [(np.full(parts, since), np.arange(parts + 1), 0)]
            + [(series.times, series.starts, shift) for shift in series.span.shifts],
            since,
            self._until,
        )

    def _sum(self, series: ReadingSeries, moments: Instants, true: Mask) -> Ints:
        """Return the number of parts for which `true` is set, at each instant of their key."""
        change = np.diff(true.astype(np.int64), prepend=0)
        first = moments.ends[:-1]
        change[first] = true[first]
        total = np.zeros(len(self.found.at), np.int64)
        tally(moments.at, moments.ends, series.owners, self.found.at, self.found.ends, change, total)
        running = np.append(0, np.cumsum(total))
        begins = self.found.ends[:-1]
        found: Ints = running[1:] - np.repeat(running[begins], np.diff(self.found.ends))
        return found


def _repeat(shown: ShownColumns, same: Ints | None) -> ShownColumns:
    """Repeat shown values for each instant of the step; return them as they are if `same` is `None`."""
    return shown if same is None else shown.spread(same)


class _Residues(NamedTuple):
    """A rule reduced to shared queries.

    `of` is the number of the reduced rule at each instant. `nexts` has for each reduced rule and time the
    index of the next time that satisfies the rule.
    """

    of: Ints
    nexts: Ints


def _ticks(seen: Sequence[ReadingSeries], smc: Smc, first: Instant, until: Instant) -> Instants:
    """Return the ticks of each key in [`first`, `until`) that are at most `smc.lasts` after the latest
    reading of the key."""
    assert smc.tick is not None
    tick, lasts = smc.tick, smc.lasts
    since = np.minimum.reduce([series.since for series in seen])
    number = -(-np.maximum(since + 1, first) // tick)
    sizes = np.where(since < until, np.maximum(-(-until // tick) - number, 0), 0)
    ends = np.append(0, np.cumsum(sizes))
    at = (np.repeat(number - ends[:-1], sizes) + np.arange(ends[-1])) * tick
    known = np.logical_or.reduce([series.knows(Instants(at, ends), lasts) for series in seen])
    return Instants(at[known], np.append(0, np.cumsum(known))[ends])


def _shows_several(series: ReadingSeries) -> bool:
    """Whether the query shows separate values for several locations and combines their results."""
    location = series.query.location
    return isinstance(location, Multiple) and location.how != "separate"


def _enough(series: ReadingSeries, count: Ints, present: Ints, *, exact: bool) -> Mask:
    """Mark the instants at which as many of the present places satisfy as the query requires."""
    location = series.query.location
    assert isinstance(location, Multiple)
    if location.how == "one" and exact:
        return count == 1
    return (count > 0) & (count == present) if location.how == "all" else count > 0


def _cells(chosen: Ints, cells: Ints) -> CellRanges:
    """Return the cells of chosen events; the range is empty where `chosen` is -1."""
    low = np.append(cells, -1)[chosen]
    return CellRanges(low, np.where(low < 0, low, low + 1))


def _take_values(column: Any, rows: Ints, there: Mask) -> Any:
    """Return the values of a column at `rows`; the value is missing where `there` is false."""
    if isinstance(column, np.ndarray):
        return np.append(column, np.nan)[rows]
    return column.take(pa.array(rows, mask=~there))
