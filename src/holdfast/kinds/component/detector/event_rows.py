"""Events of a component as rows: the same events as `smc.transform`, for many instants at once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ....kernels.turn import turns
from ....model.batch import AXES, TIME, TYPES, concatenate, schema
from ....model.event import STATUSES
from ....model.instant import BEGINNING, NEVER
from .candidates import Candidates, Choice, ScreenedInstants, Views
from .columnar_plan import ColumnarPlan, EventColumns, PlanColumn
from .component import Id, Instance, instance_after, signature
from .hosts import MovingHost
from .part_pool import PartPool
from .rows import SIGNATURE, STATUS, Ints, Mask, to_knowledge
from .series import CellRanges, ReadingSeries, ShownColumns, standings, take_values
from .smc import Smc
from .topic_pool import TopicPool

WHERE = ("place", *AXES)


class EventRows(NamedTuple):
    """Events of a component, sorted by time and scope.

    `ids[whose[i]]` is the scope of event `i`. `since[i]` is the start of the condition for an egress,
    otherwise `NEVER`.
    """

    events: pa.RecordBatch
    statuses: pa.DictionaryArray
    whose: Ints
    ids: Sequence[Id]
    since: Ints


class _EmittingInstants(NamedTuple):
    """The indices of the instants at which keys emit, key after key. `held` is true if the condition was
    active before."""

    instants: Ints
    held: Mask


class _QueryView(NamedTuple):
    """The values that a query shows in one status, at some of the instants at which a rule emits.

    `where` has the positions among the emitting instants, `at` their times, and `instants` their indices in
    the step or in the pool `fold`.
    """

    series: ReadingSeries
    where: Ints
    cells: CellRanges
    at: Ints
    instants: Ints
    fold: PartPool | TopicPool | None = None

    def column(self, column: PlanColumn) -> Any:
        """Return the values of a column.

        Windows are computed in the order of time, because their kernels slide. The result has the order of
        the view.
        """
        if self.fold is not None:
            return take_values(self.fold.values(column), self.instants)
        order = np.lexsort((self.cells.low, self.cells.high))
        back = np.argsort(order)
        found = self.series.values(column, self.cells.at(order), self.at[order])
        if not isinstance(found, np.ndarray):
            return found.take(pa.array(back))
        values = found[back]
        return values if column.default is not None else np.where(self.cells.there, values, np.nan)

    def is_exact(self, column: PlanColumn) -> bool:
        """Whether floats represent the values of a column exactly."""
        if self.fold is not None:
            return self.fold.is_exact(column)
        return self.series.is_small(column, int((self.cells.high - self.cells.low).max(initial=1)))

    def only(self, selected: Mask) -> _QueryView:
        """Return a view of the selected instants."""
        where, at, instants = self.where[selected], self.at[selected], self.instants[selected]
        return self._replace(where=where, cells=self.cells.at(selected), at=at, instants=instants)

    @property
    def newest(self) -> Ints:
        """The row that contributed last at each instant; arbitrary where the query shows nothing.

        Raises `NotInColumns` if columns do not determine the row.
        """
        if not isinstance(self.fold, PartPool):
            return self.series.newest(self.cells)
        rows, is_clear = self.fold.newest(self.instants)
        if not is_clear:
            raise NotInColumns
        return rows


_NEW = Instance()


class NotInColumns(Exception):
    """Raised if columns do not determine the events. The component is then evaluated by `candidate_walk`."""


@dataclass(frozen=True)
class EventBuilder:
    """Builds the events of one component in one step from columns."""

    smc: Smc
    plan: ColumnarPlan
    keys: Sequence[str]
    step: ScreenedInstants
    seen: Views
    host: MovingHost | None = None

    def build(self, instances: dict[Id, Instance]) -> EventRows | None:
        """Build the events of the step and update `instances`.

        Return `None` and change nothing if columns do not suffice.
        """
        if not self._is_sure:
            return None
        carrier = "" if self.host is None else self.host.name
        known = [instances.get((carrier, key), _NEW) for key in self.keys]
        active = np.array([instance.since is not None for instance in known], np.bool_)
        emitting = self._emitting_instants(active)
        number = np.searchsorted(self.step.found.ends, emitting.instants, "right") - 1
        at = self.step.found.at[emitting.instants]
        keys, firsts, whose = np.unique(number, return_index=True, return_inverse=True)
        ids = [(carrier, self.keys[key]) for key in keys.tolist()]
        before = [(i, known[key]) for key, i in zip(keys.tolist(), firsts.tolist(), strict=True)]
        if any(instance.last is not None and instance.last.time >= at[i] for i, instance in before):
            return None
        try:
            events = self._events(emitting)
        except NotInColumns:
            return None
        since = np.where(emitting.held, np.append(NEVER, at[:-1]), NEVER)
        for i, instance in before:
            since[i] = NEVER if instance.since is None else instance.since
        names = ("ingress", "egress") if self._lasts else ("atomic", "atomic")
        codes = np.where(emitting.held, STATUSES.index(names[1]), STATUSES.index(names[0])).astype(np.int8)
        statuses = pa.DictionaryArray.from_arrays(codes, list(STATUSES))
        self._remember(events, statuses, whose, ids, instances)
        rank = np.argsort(sorted(range(len(ids)), key=ids.__getitem__))
        order = pa.array(np.lexsort((rank[whose], at)))
        return EventRows(events.take(order), statuses.take(order), whose[order], ids, since[order])

    @property
    def _lasts(self) -> bool:
        """Whether the component has an exit."""
        return self.step.leave is not None

    @cached_property
    def _rules(self) -> list[tuple[Candidates, EventColumns | None]]:
        """The candidates and event columns of the entrance and, if there is one, of the exit."""
        enter, leave = self.plan.events
        rules = [(self.step.enter, enter)]
        return rules if self.step.leave is None else [*rules, (self.step.leave, leave)]

    @property
    def _is_sure(self) -> bool:
        """Whether columns determine all events and their locations, and no rule has a minimum duration."""
        has_place = self.host is None or self.host.is_known
        in_columns = all(columns is not None and bool(rule.by) for rule, columns in self._rules)
        return has_place and in_columns and self.step.is_sure

    def _emitting_instants(self, holds: Mask) -> _EmittingInstants:
        """Return the instants at which keys emit. `holds` marks the keys that are active at the start of the
        step."""
        enter, ends = self.step.enter.mask, self.step.found.ends
        leave = self.step.leave.mask if self.step.leave is not None else enter
        found, held = np.empty(len(enter), np.int64), np.empty(len(enter), np.bool_)
        size = turns(enter, leave, ends, holds, self._lasts, found, held)
        return _EmittingInstants(found[:size], held[:size])

    def _remember(
        self,
        events: pa.RecordBatch,
        statuses: pa.Array,
        whose: Ints,
        ids: Sequence[Id],
        instances: dict[Id, Instance],
    ) -> None:
        """Store the last event of each key in `instances`, for the next step."""
        last = np.flatnonzero(np.append(whose[1:] != whose[:-1], True)[: len(whose)])
        own_ids = [ids[key] for key in whose[last].tolist()]
        latest = events.take(pa.array(last)).append_column(STATUS, statuses.take(pa.array(last)))
        named = pa.array([signature(self.smc, id) for id in own_ids], pa.string())
        known = to_knowledge(self.plan.topic, latest.append_column(SIGNATURE, named))
        for id, event in zip(own_ids, known, strict=True):
            instances[id] = instance_after(event)

    # --- columns of events ---

    def _events(self, emitting: _EmittingInstants) -> pa.RecordBatch:
        """Build the events of all rules, in the order of `emitting`."""
        batches, places = list[pa.RecordBatch](), [np.empty(0, np.int64)]
        for held, (rule, columns) in enumerate(self._rules):
            assert columns is not None
            selected = np.arange(len(emitting.held))
            if self._lasts:
                selected = np.flatnonzero(emitting.held == bool(held))
            for where, batch in self._of_rule(rule, columns, emitting.instants[selected]):
                batches.append(batch)
                places.append(selected[where])
        batches = batches or [pa.RecordBatch.from_pylist([], schema=schema(self.plan.topic))]
        return _scatter(concatenate(batches), places)

    def _of_rule(
        self, rule: Candidates, columns: EventColumns, instants: Ints
    ) -> Iterator[tuple[Ints, pa.RecordBatch]]:
        """Yield the events of a rule as batches with their positions. Each batch has the events to which one
        query contributed last."""
        if not len(instants):
            return
        choice = self._choice(rule, instants)
        views = {name: self._views(name, instants, numbers, rule.chosen) for name, numbers in choice.items()}
        times = np.stack([_newest(some, len(instants)) for some in views.values()])
        foremost, beside = np.argmax(times, axis=0), dict[str, list[_QueryView]]()
        for name in columns.read:  # queries that the predicate does not mention
            if name not in choice:
                if len(self.step.columns.get(name, ())) != 1 or self.step.columns[name][0].vague:
                    raise NotInColumns
                beside[name] = self._views(name, instants, np.zeros(len(instants), np.int64))
        computed = _compute(columns, {**views, **beside}, len(instants))
        for number, (name, some) in enumerate(views.items()):
            for view in some:
                mine = view.only(foremost[view.where] == number)
                if len(mine.where):
                    yield mine.where, self._batch(mine, columns.given[name], computed)

    def _views(
        self, name: str, instants: Ints, numbers: Ints, chosen: CellRanges | None = None
    ) -> list[_QueryView]:
        """Return the views of a query, one for each status. `numbers` has the status shown at each
        instant."""
        shown = [series for series in self.seen[name] if not series.is_hidden]
        every = self.step.columns[name] if chosen is None else [ShownColumns(chosen, {}, exact=True)]
        found = []
        for number, (series, one) in enumerate(zip(shown, every, strict=False)):
            where = np.flatnonzero(numbers == number)
            some = instants[where]
            same = some if one.same is None else one.same[some]
            at = self.step.found.at[some]
            if isinstance(one.fold, TopicPool):
                return _by_topic(one.fold, where, at, same)
            found.append(_QueryView(series, where, one.cells.at(some), at, same, one.fold))
        return found

    def _batch(
        self, view: _QueryView, given: Sequence[PlanColumn], computed: Mapping[str, Any]
    ) -> pa.RecordBatch:
        """Build the events to which the query of `view` contributed last."""
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
                raise NotInColumns
            columns[column.attribute] = self._cast(column.attribute, view.column(column))
        for name, values in computed.items():
            columns[name] = self._cast(name, values).take(pa.array(view.where))
        return pa.RecordBatch.from_pydict(columns)

    def _cast(self, name: str, values: Any) -> pa.Array:
        """Convert values to the Arrow type of an attribute."""
        type = TYPES[self.plan.topic.by_name[name].kind]
        if isinstance(values, np.ndarray) and pa.types.is_integer(type):
            missing = values != values
            return pa.array(np.where(missing, 0, values).astype(np.int64), mask=missing)
        found = pa.array(values) if isinstance(values, np.ndarray) else values
        return found if found.type == type or pa.types.is_dictionary(found.type) else found.cast(type)

    # --- which values satisfy ---

    def _choice(self, rule: Candidates, instants: Ints) -> dict[str, Ints]:
        """Return for each query the number of the status that satisfies the rule. Of several, the first in
        the order of `smc.rank` is taken."""
        by = [(choice, mask[instants]) for choice, mask in rule.by]
        best = np.zeros(len(instants), np.int64)
        if len(by) > 1:
            satisfied = np.stack([mask for _, mask in by])
            best = np.argmax(satisfied, axis=0)
            if (satisfied.sum(axis=0) > 1).any():
                best = self._first([self._rank(choice, instants) for choice, _ in by], satisfied)
        table = {name: np.array([choice[name] or 0 for choice, _ in by]) for name in by[0][0]}
        return {name: numbers[best] for name, numbers in table.items()}

    def _rank(self, choice: Choice, instants: Ints) -> list[Ints]:
        """Return the sort keys of a choice at each instant: the most recent choice first, then the order of
        `smc.rank`."""
        keys: list[Ints] = []
        newest: list[Ints] = []
        for name, number in choice.items():
            if number is None:
                newest.append(np.full(len(instants), BEGINNING))
                keys += [newest[-1]] * 4 if len(self.step.columns[name]) > 1 else []
                continue
            series = [series for series in self.seen[name] if not series.is_hidden]
            views = self._views(name, instants, np.full(len(instants), number))
            newest.append(_newest(views, len(instants)))
            if len(self.step.columns[name]) == 1:  # every choice has the same
                continue
            if series[number].folds or not series[number].span.nearest:
                raise NotInColumns
            rows, own = views[number].newest, series[number].status
            assert own is not None, "of several each has its own"
            spots = standings(series)[number]
            topics = sorted({candidate.rows.topic.name for candidate in series})
            topic = np.full(len(instants), topics.index(series[number].rows.topic.name))
            status = np.full(len(instants), sorted(STATUSES).index(own))
            keys += [newest[-1], spots[rows] if len(spots) else rows, topic, status]
        return [-np.max(np.stack(newest), axis=0), *keys]

    def _first(self, ranks: Sequence[list[Ints]], satisfied: Mask) -> Ints:
        """Return at each instant the number of the satisfying choice with the least rank."""
        best = np.full(satisfied.shape[1], -1)
        least = [np.full(satisfied.shape[1], NEVER) for _ in ranks[0]]
        for number, rank in enumerate(ranks):
            better, same = np.zeros(len(best), np.bool_), np.ones(len(best), np.bool_)
            for ranks_here, least_yet in zip(rank, least, strict=True):
                better |= same & (ranks_here < least_yet)
                same &= ranks_here == least_yet
            better = satisfied[number] & (better | (best < 0))
            best[better] = number
            for ranks_here, least_yet in zip(rank, least, strict=True):
                least_yet[better] = ranks_here[better]
        return best


def _by_topic(fold: TopicPool, where: Ints, at: Ints, same: Ints) -> list[_QueryView]:
    """Return a view of a topic pool for each topic, with the instants at which that topic contributed
    last."""
    topics, is_clear = fold.latest(same)
    if not is_clear:
        raise NotInColumns
    views = []
    for number, (series, cells) in enumerate(fold.parts):
        some = topics == number
        views.append(_QueryView(series, where[some], cells.at(same[some]), at[some], same[some], fold))
    return views


def _newest(views: Sequence[_QueryView], size: int) -> Ints:
    """Return the time of the last contribution to the views at each instant; `BEGINNING` where they show
    nothing."""
    found = np.full(size, BEGINNING)
    for view in views:
        present = view.only(view.cells.there)
        found[present.where] = view.series.rows.times[present.newest]
    return found


def _compute(event: EventColumns, views: Mapping[str, Sequence[_QueryView]], size: int) -> dict[str, Any]:
    """Evaluate the computations of an event at all instants."""
    if not event.computes:
        return {}
    columns: dict[str, Any] = {"@": np.zeros(size, np.bool_)}
    for name, wanted in event.read.items():
        for column in wanted:
            used = [view for view in views[name] if len(view.where)]
            if not all(view.is_exact(column) for view in used):
                raise NotInColumns
            if used:
                parts = [pa.RecordBatch.from_pydict({"": view.column(column)}) for view in used]
                columns[column.name] = _scatter(concatenate(parts), [v.where for v in used]).column(0)
    batch = pa.RecordBatch.from_pydict(columns)
    return {name: compute(batch) for name, compute in event.computes.items()}


def _scatter(batch: pa.RecordBatch, places: Sequence[Ints]) -> pa.RecordBatch:
    """Return the rows of `batch` with each row moved to its position in `places`."""
    return batch.take(pa.array(np.argsort(np.concatenate(places), kind="stable")))
