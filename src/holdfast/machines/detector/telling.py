"""What components say, as columns: the events that :func:`smc.transform` makes, many at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ...kernels.turn import turns
from ...model.batch import AXES, TIME, TYPES, concatenate, schema
from ...model.event import STATUSES
from ...model.instant import BEGINNING, NEVER
from .component import Id, Instance, signature
from .folding import Fold
from .plan import Column, Plan, Saying
from .roaming import Host
from .rows import SIGNATURE, STATUS, Ints, Mask, to_knowledge
from .screening import Candidates, Choice, Screened, Views
from .series import Cells, Series, Shown, picked, standings
from .smc import Smc
from .together import Together

WHERE = ("place", *AXES)


class Said(NamedTuple):
    """Events of a component by time and key: a batch of their topic; of each its status, whose it is, as a
    number among ``ids``, and since when the condition held, if it ends, else ``NEVER``."""

    events: pa.RecordBatch
    statuses: pa.DictionaryArray
    whose: Ints
    ids: Sequence[Id]
    since: Ints


class _Told(NamedTuple):
    """The instants at which something is told, by number, key after key, and whether it held until then."""

    instants: Ints
    held: Mask


class _View(NamedTuple):
    """What a query shows of one status at some of the instants at which a rule tells something; these by
    number, where its parts are as one."""

    series: Series
    where: Ints
    cells: Cells
    at: Ints
    instants: Ints
    fold: Fold | Together | None = None

    def column(self, column: Column) -> Any:
        """The values of a column; windows are asked for in order, since they slide: what all keys share is
        asked for by one key after another."""
        if self.fold is not None:
            return picked(self.fold.values(column), self.instants)
        order = np.lexsort((self.cells.low, self.cells.high))
        back = np.argsort(order)
        found = self.series.values(column, self.cells.at(order), self.at[order])
        if not isinstance(found, np.ndarray):
            return found.take(pa.array(back))
        values = found[back]
        return values if column.default is not None else np.where(self.cells.there, values, np.nan)

    def is_exact(self, column: Column) -> bool:
        if self.fold is not None:
            return self.fold.is_exact(column)
        return self.series.is_small(column, int((self.cells.high - self.cells.low).max(initial=1)))

    def only(self, some: Mask) -> _View:
        return self._replace(
            where=self.where[some], cells=self.cells.at(some), at=self.at[some], instants=self.instants[some]
        )

    @property
    def newest(self) -> Ints:
        """The rows that contributed last; anything where there is none."""
        if not isinstance(self.fold, Fold):
            return self.series.newest(self.cells)
        rows, is_clear = self.fold.newest(self.instants)
        if not is_clear:
            raise Unclear
        return rows


_UNTOLD = Instance()


class Unclear(Exception):
    """Columns do not tell what is said."""


@dataclass(frozen=True)
class Telling:
    """A component at the instants of a step."""

    smc: Smc
    plan: Plan
    keys: Sequence[str]
    screened: Screened
    seen: Views
    host: Host | None = None

    def said(self, instances: dict[Id, Instance]) -> Said | None:
        """What is told in a step; ``instances`` become what they are after it.  ``None``, and they are as
        they were, where columns do not tell what is said."""
        if not self._is_sure:
            return None
        carrier = "" if self.host is None else self.host.name
        known = [instances.get((carrier, key), _UNTOLD) for key in self.keys]
        told = self._turns(np.array([one.since is not None for one in known], np.bool_))
        number = np.searchsorted(self.screened.found.ends, told.instants, "right") - 1
        at = self.screened.found.at[told.instants]
        keys, firsts, whose = np.unique(number, return_index=True, return_inverse=True)
        ids = [(carrier, self.keys[key]) for key in keys.tolist()]
        before = [(i, known[key]) for key, i in zip(keys.tolist(), firsts.tolist(), strict=True)]
        if any(one.last is not None and one.last.time >= at[i] for i, one in before):
            return None
        try:
            events = self._events(told)
        except Unclear:
            return None
        since = np.where(told.held, np.append(NEVER, at[:-1]), NEVER)
        for i, one in before:
            since[i] = NEVER if one.since is None else one.since
        names = ("ingress", "egress") if self._lasting else ("atomic", "atomic")
        codes = np.where(told.held, STATUSES.index(names[1]), STATUSES.index(names[0])).astype(np.int8)
        statuses = pa.DictionaryArray.from_arrays(codes, list(STATUSES))
        self._remember(events, statuses, whose, ids, instances)
        rank = np.argsort(sorted(range(len(ids)), key=ids.__getitem__))
        order = pa.array(np.lexsort((rank[whose], at)))
        ordered = (events.take(order), statuses.take(order), whose[order], ids, since[order])
        return Said(*ordered)

    @property
    def _lasting(self) -> bool:
        return self.screened.leave is not None

    @cached_property
    def _rules(self) -> list[tuple[Candidates, Saying | None]]:
        rules = [self.screened.enter, self.screened.leave]
        return [(one, saying) for one, saying in zip(rules, self.plan.says, strict=True) if one is not None]

    @property
    def _is_sure(self) -> bool:
        """Whether columns tell when something is told and where, and nothing waits."""
        return (self.host is None or self.host.is_known) and all(
            saying is not None and one.by and one.rule.hold == 0 and bool(one.sure.all())
            for one, saying in self._rules
        )

    def _turns(self, holds: Mask) -> _Told:
        enter, ends = self.screened.enter.mask, self.screened.found.ends
        leave = self.screened.leave.mask if self.screened.leave is not None else enter
        found, held = np.empty(len(enter), np.int64), np.empty(len(enter), np.bool_)
        size = turns(enter, leave, ends, holds, self._lasting, found, held)
        return _Told(found[:size], held[:size])

    def _remember(
        self,
        events: pa.RecordBatch,
        statuses: pa.Array,
        whose: Ints,
        ids: Sequence[Id],
        instances: dict[Id, Instance],
    ) -> None:
        """The last event of each key."""
        last = np.flatnonzero(np.append(whose[1:] != whose[:-1], True)[: len(whose)])
        mine = [ids[key] for key in whose[last].tolist()]
        some = events.take(pa.array(last)).append_column(STATUS, statuses.take(pa.array(last)))
        named = pa.array([signature(self.smc, id) for id in mine], pa.string())
        for id, one in zip(
            mine, to_knowledge(self.plan.topic, some.append_column(SIGNATURE, named)), strict=True
        ):
            instances[id] = Instance(one.time if one.status == "ingress" else None, one)

    # --- what events say ---

    def _events(self, told: _Told) -> pa.RecordBatch:
        """The events, in the order in which they are told of each key."""
        batches, places = list[pa.RecordBatch](), [np.empty(0, np.int64)]
        for held, (rule, saying) in enumerate(self._rules):
            assert saying is not None
            mine = np.flatnonzero(told.held == bool(held)) if self._lasting else np.arange(len(told.held))
            for where, batch in self._of_rule(rule, saying, told.instants[mine]):
                batches.append(batch)
                places.append(mine[where])
        return _scattered(concatenate(batches or [_no_events(self.plan)]), places)

    def _of_rule(self, rule: Candidates, saying: Saying, told: Ints) -> Iterator[tuple[Ints, pa.RecordBatch]]:
        """The events of a rule, together those to which the same query contributed last: which, and as a
        batch."""
        if not len(told):
            return
        choice = self._choice(rule, told)
        views = {name: self._views(name, told, numbers, rule.chosen) for name, numbers in choice.items()}
        times = np.stack([_newest(some, len(told)) for some in views.values()])
        foremost = np.argmax(times, axis=0)
        beside = {name: self._beside(name, told) for name in saying.read if name not in views}
        computed = _computed(saying, {**views, **beside}, len(told))
        for number, (name, some) in enumerate(views.items()):
            for view in some:
                mine = view.only(foremost[view.where] == number)
                if len(mine.where):
                    yield mine.where, self._batch(mine, saying.given[name], computed)

    def _views(self, name: str, told: Ints, numbers: Ints, chosen: Cells | None = None) -> list[_View]:
        shown = [series for series in self.seen[name] if not series.hidden]
        every = self.screened.shown[name] if chosen is None else [Shown(chosen, {}, exact=True)]
        found = []
        for number, (series, one) in enumerate(zip(shown, every, strict=False)):
            where = np.flatnonzero(numbers == number)
            some = told[where]
            same = some if one.same is None else one.same[some]
            at = self.screened.found.at[some]
            if isinstance(one.fold, Together):
                return _by_topic(one.fold, where, at, same)
            found.append(_View(series, where, one.cells.at(some), at, same, one.fold))
        return found

    def _beside(self, name: str, told: Ints) -> list[_View]:
        """What is shown by a query that takes no part."""
        if len(self.screened.shown.get(name, ())) != 1 or self.screened.shown[name][0].vague:
            raise Unclear
        return self._views(name, told, np.zeros(len(told), np.int64))

    def _batch(self, view: _View, given: Sequence[Column], computed: Mapping[str, Any]) -> pa.RecordBatch:
        """The events to which a query contributed last."""
        rows = pa.array(view.newest)
        known = view.series.rows.batch
        columns = {"time": pa.array(view.at).cast(TIME), "source": known.column("source").take(rows)}
        columns["sequence"] = pa.array(np.zeros(len(rows), np.int64))
        if self.host is not None:
            columns |= self.host.columns(view.at)
        elif isinstance(self.smc.here, tuple):
            columns |= {a: pa.array(np.full(len(rows), c)) for a, c in zip(AXES, self.smc.here, strict=False)}
        else:
            columns |= {name: known.column(name).take(rows) for name in WHERE if name in known.schema.names}
        for column in given:
            if column.attribute in computed:
                continue
            if not view.is_exact(column):
                raise Unclear
            columns[column.attribute] = self._typed(column.attribute, view.column(column))
        for name, values in computed.items():
            columns[name] = self._typed(name, values).take(pa.array(view.where))
        return pa.RecordBatch.from_pydict(columns)

    def _typed(self, name: str, values: Any) -> pa.Array:
        """Values as the attribute's column holds them."""
        type = TYPES[self.plan.topic.by_name[name].kind]
        if isinstance(values, np.ndarray) and pa.types.is_integer(type):
            missing = values != values
            return pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)
        found = pa.array(values) if isinstance(values, np.ndarray) else values
        return found if found.type == type or pa.types.is_dictionary(found.type) else found.cast(type)

    # --- which values satisfy ---

    def _choice(self, rule: Candidates, told: Ints) -> dict[str, Ints]:
        """For each query the status of what it shows, by number, in what satisfies a rule first."""
        by = [(choice, mask[told]) for choice, mask in rule.by]
        best = np.zeros(len(told), np.int64)
        if len(by) > 1:
            satisfied = np.stack([mask for _, mask in by])
            best = np.argmax(satisfied, axis=0)
            if (satisfied.sum(axis=0) > 1).any():
                best = self._first([self._rank(choice, told) for choice, _ in by], satisfied)
        table = {name: np.array([choice[name] or 0 for choice, _ in by]) for name in by[0][0]}
        return {name: numbers[best] for name, numbers in table.items()}

    def _rank(self, choice: Choice, told: Ints) -> list[Ints]:
        """Less for what comes first: the most recent, then the least, as :func:`smc.rank` says."""
        keys: list[Ints] = []
        newest: list[Ints] = []
        for name, number in choice.items():
            if number is None:
                newest.append(np.full(len(told), BEGINNING))
                keys += [newest[-1]] * 4 if len(self.screened.shown[name]) > 1 else []
                continue
            series = [series for series in self.seen[name] if not series.hidden]
            views = self._views(name, told, np.full(len(told), number))
            newest.append(_newest(views, len(told)))
            if len(self.screened.shown[name]) == 1:  # every choice has the same
                continue
            if series[number].folds or not series[number].span.nearest:
                raise Unclear
            rows, own = views[number].newest, series[number].status
            assert own is not None, "of several each has its own"
            spots = standings(series)[number]
            topics = sorted({one.rows.topic.name for one in series})
            topic = np.full(len(told), topics.index(series[number].rows.topic.name))
            status = np.full(len(told), sorted(STATUSES).index(own))
            keys += [newest[-1], spots[rows] if len(spots) else rows, topic, status]
        return [-np.max(np.stack(newest), axis=0), *keys]

    def _first(self, ranks: Sequence[list[Ints]], satisfied: Mask) -> Ints:
        """Of those that are satisfied the number of the one of least rank."""
        best = np.full(satisfied.shape[1], -1)
        least = [np.full(satisfied.shape[1], NEVER) for _ in ranks[0]]
        for number, rank in enumerate(ranks):
            better, same = np.zeros(len(best), np.bool_), np.ones(len(best), np.bool_)
            for mine, theirs in zip(rank, least, strict=True):
                better |= same & (mine < theirs)
                same &= mine == theirs
            better = satisfied[number] & (better | (best < 0))
            best[better] = number
            for mine, theirs in zip(rank, least, strict=True):
                theirs[better] = mine[better]
        return best


def _by_topic(fold: Together, where: Ints, at: Ints, same: Ints) -> list[_View]:
    """What topics show as one at some instants, together those to which the same topic contributed last."""
    topics, is_clear = fold.latest(same)
    if not is_clear:
        raise Unclear
    views = []
    for number, (series, cells) in enumerate(fold.parts):
        mine = topics == number
        views.append(_View(series, where[mine], cells.at(same[mine]), at[mine], same[mine], fold))
    return views


def _newest(views: Sequence[_View], size: int) -> Ints:
    """When what contributed last to what is shown was made; before all else, if nothing is."""
    found = np.full(size, BEGINNING)
    for view in views:
        some = view.only(view.cells.there)
        found[some.where] = view.series.rows.times[some.newest]
    return found


def _computed(saying: Saying, views: Mapping[str, Sequence[_View]], size: int) -> dict[str, Any]:
    """What is computed at each of the instants."""
    if not saying.computes:
        return {}
    columns: dict[str, Any] = {"@": np.zeros(size, np.bool_)}
    for name, wanted in saying.read.items():
        for column in wanted:
            some = [view for view in views[name] if len(view.where)]
            if not all(view.is_exact(column) for view in some):
                raise Unclear
            if some:
                parts = [pa.RecordBatch.from_pydict({"": view.column(column)}) for view in some]
                columns[column.name] = _scattered(concatenate(parts), [v.where for v in some]).column(0)
    batch = pa.RecordBatch.from_pydict(columns)
    return {name: compute(batch) for name, compute in saying.computes.items()}


def _scattered(batch: pa.RecordBatch, places: Sequence[Ints]) -> pa.RecordBatch:
    """The rows, each at its place."""
    return batch.take(pa.array(np.argsort(np.concatenate(places), kind="stable")))


def _no_events(plan: Plan) -> pa.RecordBatch:
    """No event of a component."""
    return pa.RecordBatch.from_pylist([], schema=schema(plan.topic))
