"""Where rules may be satisfied: predicates over columns, at all instants of a step at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ...kernels.around import closest, near, seen
from ...kernels.turn import shared
from ...kernels.window import foremost, tally
from ...model.instant import Duration, Instant
from ...model.query import HERE, Aggregate, Ball, Closest, Index, Multiple, Pool
from .folding import Fold
from .plan import VALID, Column, Plan, Screen
from .roaming import Around, Host
from .rows import Ints, Mask
from .series import Cells, Series, Shown, as_batch, defaulted, passed
from .smc import Rule, Smc
from .span import Instants, every_instant
from .together import Together, share

MOST = 1 << 22
"""At most about so many instants of what all keys share are looked at for keys together."""
FEW = 6
"""So many comparisons of what is kept apart are decided in all ways."""

Views = Mapping[str, Sequence[Series]]
"""What each query may look at: of each status by itself."""

Choice = Mapping[str, int | None]
"""Of each query the status of which it is, by number; ``None`` if it shows nothing."""


@dataclass(frozen=True)
class Candidates:
    """The instants at which a rule may be satisfied; those of keys that are ``sure``, at which it is.

    Where columns tell, ``by`` are the statuses of queries that satisfy it, and where they do; if the only
    query shows several places, ``chosen`` are the cells of the one that satisfies it and spoke last.
    """

    rule: Rule
    mask: Mask
    sure: Mask
    by: Sequence[tuple[Choice, Mask]] = field(default=(), kw_only=True)
    chosen: Cells | None = field(default=None, kw_only=True)

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


class Crowded(Exception):
    """There are too many instants for one stretch of time; so far there are not."""

    def __init__(self, until: Instant) -> None:
        super().__init__(until)
        self.until = until


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
        holds: Mask | None = None,
    ) -> None:
        self._smc, self._plan, self._seen, self._first, self._until = smc, plan, seen, first, until
        self._host = host
        every = [series for series in chain.from_iterable(seen.values()) if not series.shared]
        streams = [(*series.events[:2], shift) for series in every for shift in series.span.shifts]
        if smc.tick is not None:
            streams.append((*_ticks(every, smc.tick, smc.lasts, first, until), 0))
        if host is not None:
            count = every[0].count
            streams.append((np.tile(host.times, count), np.arange(count + 1) * len(host.times), 0))
            first = max(first, int(host.times[0]))
        self.found = every_instant(streams, first, until)
        if any(series.shared for series in chain.from_iterable(seen.values())):
            assert holds is not None, "who shares something is told what holds"
            own, moments = self.found, self._shared_moments()
            some = self._told_meanwhile(own, moments, holds)
            if some is None:
                some = _at_all(moments, len(own.ends) - 1)
            self.found = every_instant([(*own, 0), (*some, 0)], first, until)
        self.enter = self._candidates(smc.enter, plan.enter)
        self.leave = None if smc.exit is None or plan.exit is None else self._candidates(smc.exit, plan.exit)

    @cached_property
    def shown(self) -> dict[str, list[Shown]]:
        """What queries show, of each status, that show one value of a key and status."""
        return {name: shown for name in self._seen if (shown := self._of_query(name)) is not None}

    def _of_query(self, name: str) -> list[Shown] | None:
        views = [series for series in self._seen[name] if not series.hidden]
        if isinstance(self._smc.inputs[name].query.topic, Aggregate):
            if share(views):
                return None
            found, same = self._instants(views[0])
            shown = Together([(series, series.cells(found)) for series in views], found.at)
            return [_spread(shown.shown(self._plan.columns[name]), same)]
        some = []
        for series in views:
            found, same = self._instants(series)
            one = self._shown(series, self._plan.columns[name], found)
            some.append(None if one is None else _spread(one, same))
        return None if None in some else [one for one in some if one is not None]

    @cached_property
    def _distinct(self) -> tuple[Instants, Ints]:
        """The instants of all keys together, and which of them each is."""
        at, same = np.unique(self.found.at, return_inverse=True)
        return Instants(at, np.array([0, len(at)])), same

    def _instants(self, series: Series) -> tuple[Instants, Ints | None]:
        """The instants at which to ask what a query shows, and which of them all others are."""
        return self._distinct if series.shared else (self.found, None)

    def _shown(self, series: Series, columns: tuple[Column, ...], found: Instants) -> Shown | None:
        if series.mixed:
            return None
        if series.folds:
            return Fold(series, found, self._moments(series)).shown(columns)
        if not series.divided:
            return self._with_distance(series, series.shown(found, columns), columns)
        if series.roams:
            return self._of_host(series, columns)
        if series.nearest is not None and series.is_steady:
            return self._of_nearest(series, series.nearest, columns, found)
        return None

    def _of_nearest(self, series: Series, order: Ints, columns: tuple[Column, ...], found: Instants) -> Shown:
        """What a query shows of the closest location of which there is something."""
        moments = self._moments(series)
        shown = series.shown(moments, columns)
        chosen = np.full(len(found.at), -1)
        free = np.arange(len(found.at) + 1)
        foremost(*moments, order, series.owners, shown.there, *found, free, chosen)
        there = chosen >= 0
        low, high = (np.append(ends, 0)[chosen] for ends in shown.cells)
        return Shown(
            Cells(np.where(there, low, -1), np.where(there, high, -1)),
            {c.name: defaulted(c, _taken(shown.columns[c.name], chosen, there), there) for c in columns},
            shown.exact,
        )

    def _candidates(self, rule: Rule, screen: Screen) -> Candidates:
        names = rule.mentions or tuple(self._smc.inputs)
        if all(name in self.shown and not self._is_vague(name) for name in names):
            return self._combined(rule, screen, names)
        single = self._seen[names[0]] if len(names) == 1 else ()
        if len(single) == 1 and single[0].is_steady and _shows_several(single[0]) and not single[0].shared:
            judged = self._latest if single[0].span.nearest else self._counted
            return judged(rule, screen, single[0])
        mask, keys = np.ones(len(self.found.at), np.bool_), len(self.found.ends) - 1
        plain = {name: shown[0] for name, shown in self.shown.items() if len(shown) == 1}
        if len(names) > 1 and all(
            not self._is_vague(name) if name in plain else _shows_several(self._seen[name][0])
            for name in names
        ):
            mask = passed(screen, len(mask), plain.values())  # reads none of the others
        there = [self._somewhere(name) for name in names if name in self.shown and name not in rule.optional]
        return Candidates(rule, np.logical_and.reduce([mask, *there]), np.zeros(keys, np.bool_))

    def _is_vague(self, name: str) -> bool:
        """Whether columns do not tell what a query shows: of several statuses, how many places satisfy."""
        shown = self.shown[name]
        return any(one.vague for one in shown) or (len(shown) > 1 and _shows_several(self._seen[name][0]))

    def _combined(self, rule: Rule, screen: Screen, names: Sequence[str]) -> Candidates:
        """The candidates of a rule over queries that show one value of each status; those that need not show
        anything may also show none, but one of all does."""
        mask, size = np.zeros(len(self.found.at), np.bool_), len(self.found.ends) - 1
        by = []
        for numbers in product(*(self._choices(name, rule) for name in names)):
            choice = dict(zip(names, numbers, strict=True))
            if all(number is None for number in numbers):
                continue
            found = passed(screen, len(mask), [self.shown[name][n or 0] for name, n in choice.items()])
            for name, number in choice.items():
                found = found & (~self._somewhere(name) if number is None else self.shown[name][number].there)
            by.append((choice, found))
            mask |= found
        exact = screen.exact and all(one.exact for name in names for one in self.shown[name])
        for name in names:
            enough = self._enough_topics(name, by, exact=exact)
            by = [(choice, found & enough) for choice, found in by]
            mask &= enough
        return Candidates(rule, mask, np.full(size, exact), by=by)

    def _enough_topics(self, name: str, by: Sequence[tuple[Choice, Mask]], *, exact: bool) -> Mask:
        """Where as many topics of a query satisfy as are to, or it shows nothing; what is not exact may
        show more of them than do."""
        enough = np.ones(len(self.found.at), np.bool_)
        topic = self._smc.inputs[name].query.topic
        if isinstance(topic, Multiple) and (topic.how == "all" or (topic.how == "one" and exact)):
            satisfied = np.zeros((len(self.shown[name]), len(enough)), np.bool_)
            for choice, found in by:
                if (number := choice[name]) is not None:
                    satisfied[number] |= found
            wanted = 1 if topic.how == "one" else len(satisfied)
            enough = (satisfied.sum(axis=0) == wanted) | ~self._somewhere(name)
        return enough

    def _choices(self, name: str, rule: Rule) -> list[int | None]:
        """The statuses of what a query may show, by number; ``None`` is nothing."""
        return [*range(len(self.shown[name])), *([None] if name in rule.optional else [])]

    # --- beside what all keys share ---

    def _shared_moments(self) -> Ints:
        """When something happens to what all keys share."""
        shared = [s for s in chain.from_iterable(self._seen.values()) if s.shared]
        streams = [(*series.events[:2], shift) for series in shared for shift in series.span.shifts]
        return every_instant(streams, self._first, self._until).at

    def _told_meanwhile(self, own: Instants, moments: Ints, holds: Mask) -> Instants | None:
        """The moments of what all share at which something is told of each key, but for the instants of its
        own; ``None`` if columns do not tell that from comparisons of either alone."""
        keys, first = len(own.ends) - 1, self._first
        if not all(map(self._is_plain, self._seen)):
            return None
        spans = every_instant([(*own, 0), (np.full(keys, first), np.arange(keys + 1), 0)], first, self._until)
        counts = bool(len(moments)) and moments[0] == first
        moments = moments if counts else np.append(first, moments)
        asked = {True: Instants(moments, np.array([0, len(moments)])), False: spans}
        shown = {}
        for name, (series,) in self._seen.items():
            one = self._shown(series, self._plan.columns[name], asked[series.shared])
            if one is None or one.vague or not one.exact:
                return None
            shown[name] = one
        enter = self._residues(self._smc.enter, self._plan.enter, shown, (len(spans.at), len(moments)))
        leave = enter
        if self._smc.exit is not None and self._plan.exit is not None:
            leave = self._residues(self._smc.exit, self._plan.exit, shown, (len(spans.at), len(moments)))
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
            raise Crowded(int(moments[len(moments) // 2]))
        return Instants(found[:size], ends)

    def _is_plain(self, name: str) -> bool:
        """Whether what a query shows of a key is one value, which changes only at instants of its own."""
        views = self._seen[name]
        return (
            len(views) == 1
            and not views[0].hidden
            and views[0].is_steady
            and not any(column.attribute == VALID for column in self._plan.columns[name])
        )

    def _residues(
        self, rule: Rule, screen: Screen, shown: Mapping[str, Shown], sizes: tuple[int, int]
    ) -> _Residues | None:
        """What is left of a rule where the comparisons of what is kept apart are decided; ``None`` if some
        are of both, or of more than a few."""
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
        """The last move of the host at each instant."""
        assert self._host is not None
        return self._host.moves(self.found)

    def _around(self, index: Index, series: Series) -> Around:
        """How far the parts of a query are from the host."""
        assert self._host is not None
        return self._host.around(index, series.places)

    def _with_distance(self, series: Series, shown: Shown, columns: tuple[Column, ...]) -> Shown:
        """The same, with whether what it shows is as far from the host as is asked for."""
        for column in columns:
            if column.bound is not None and self._host is not None:
                true = self._host.around(HERE, series.stands).compared(*column.bound)
                found = np.empty(len(self.found.at), np.bool_)
                seen(*self.found, self._host.times, true, shown.cells.low, series.stood, found)
                shown.columns[column.name] = found
        return shown

    def _inside(self, series: Series) -> Mask:
        """Which parts a query looks at, after each move of the host."""
        match series.query.location:
            case Multiple(_, Ball(centre, radius)) | Pool(Ball(centre, radius)) if series.roams:
                return self._around(centre, series).compared("<=", radius)
        return np.ones((1, len(series.owners)), np.bool_)

    def _near(self, series: Series, true: Mask) -> tuple[Ints, Ints, Cells]:
        """Of how many parts that a query looks at something is true, how many there are, and the last cell of
        the former."""
        when, starts, parts, cells = series.events
        count, present, chosen = np.empty((3, len(self.found.at)), np.int64)
        moves = self._moves if series.roams else np.zeros(len(self.found.at), np.int64)
        inside = self._inside(series)
        order = (when, starts, parts, true, series.owned, series.rank)
        near(*self.found, moves, inside, *order, count, present, chosen)
        return count, present, _cells(chosen, cells)

    def _closest(self, index: Index, series: Series) -> Cells:
        """The latest cell of the part that is closest to the host."""
        when, starts, parts, cells = series.events
        around = self._around(index, series)
        chosen, doubt = np.empty(len(self.found.at), np.int64), np.zeros(len(self.found.at), np.bool_)
        for _ in range(2):
            around.tell_apart(np.unique(self._moves[doubt]))
            order = (when, starts, parts, series.owned, series.rank)
            closest(*self.found, self._moves, around.far, *order, chosen, doubt)
            if not doubt.any():
                break
        return _cells(chosen, cells)

    def _of_host(self, series: Series, columns: tuple[Column, ...]) -> Shown | None:
        """What a query shows of the location that is closest to the host, or that spoke last near it."""
        match series.query.location:
            case Closest(index) if series.span.nearest:
                cells = self._closest(index, series)
            case Pool(Ball()) if series.span.nearest:
                _, _, cells = self._near(series, np.ones(len(series.times), np.bool_))
            case _:
                return None
        values = {column.name: series.values(column, cells, self.found.at) for column in columns}
        vague = series.meet and series.rows.until is not None and any(c.attribute == VALID for c in columns)
        return Shown(cells, values, all(series.is_small(column, 1) for column in columns), vague)

    def _latest(self, rule: Rule, screen: Screen, series: Series) -> Candidates:
        """The candidates of a rule over one query that shows the latest of several places: by how many of
        them satisfy."""
        ((name, columns),) = ((name, self._plan.columns[name]) for name in rule.mentions or self._smc.inputs)
        true, exact = series.truths(screen, columns)
        count, present, cells = self._near(series, true)
        mask = _enough(series, count, present, exact=exact)
        sure = np.full(len(self.found.ends) - 1, exact)
        return Candidates(rule, mask, sure, by=[({name: 0}, mask)], chosen=cells)

    def _somewhere(self, name: str) -> Mask:
        """Where a query shows something."""
        found: Mask = np.logical_or.reduce([one.there for one in self.shown[name]])
        return found

    def _counted(self, rule: Rule, screen: Screen, series: Series) -> Candidates:
        """The candidates of a rule over one query that shows several values: by how many satisfy."""
        moments = self._moments(series)
        ((_, columns),) = ((name, self._plan.columns[name]) for name in rule.mentions or self._smc.inputs)
        shown = series.shown(moments, columns)
        satisfied = shown.there & passed(screen, len(moments.at), [shown])
        count, present = (self._sum(series, moments, part) for part in (satisfied, shown.there))
        exact = screen.exact and shown.exact
        mask = _enough(series, count, present, exact=exact)
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


def _spread(shown: Shown, same: Ints | None) -> Shown:
    return shown if same is None else shown.spread(same)


class _Residues(NamedTuple):
    """For each instant of keys which rule is left then, and for each of these the next moment, from each on,
    at which it is satisfied."""

    of: Ints
    nexts: Ints


def _at_all(moments: Ints, keys: int) -> Instants:
    """Every moment for every key."""
    most = max(1, MOST // max(keys, 1))
    if len(moments) > most:
        raise Crowded(int(moments[most]))
    return Instants(np.tile(moments, keys), np.arange(keys + 1) * len(moments))


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


def _enough(series: Series, count: Ints, present: Ints, *, exact: bool) -> Mask:
    """Where as many of the places that are there satisfy as are to."""
    location = series.query.location
    assert isinstance(location, Multiple)
    if location.how == "one" and exact:
        return count == 1
    return (count > 0) & (count == present) if location.how == "all" else count > 0


def _cells(chosen: Ints, cells: Ints) -> Cells:
    """The cells of events, where there is one."""
    low = np.append(cells, -1)[chosen]
    return Cells(low, np.where(low < 0, low, low + 1))


def _taken(column: Any, rows: Ints, there: Mask) -> Any:
    """What a column has at rows, where there is something."""
    if isinstance(column, np.ndarray):
        return np.append(column, np.nan)[rows]
    return column.take(pa.array(rows, mask=~there))
