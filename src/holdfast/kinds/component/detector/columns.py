"""Evaluation of a component in columns: the same events as `component`, for many instants at once.

A step evaluates the predicates as masks over all its instants. A mask never misses an instant. If a mask is
not exact, `smc`, which defines the meaning, evaluates the masked instants. An inexact mask therefore costs
only time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ....kernels.turn import end_at_contradiction
from ....model.batch import concatenate, from_events, times, trim_dictionaries
from ....model.event import Status
from ....model.instant import BEGINNING, NEVER, Instant
from ....model.query import Aggregate, Closest, Index, PooledDimension, Query
from ....model.topic import Topic
from . import component
from .candidate_walk import CandidateWalk, VisibleKnowledge
from .candidates import ScreenedInstants, TooManyInstants, Views
from .columnar_plan import ColumnarPlan
from .component import Id, Instance, Published
from .event_rows import EventBuilder, EventRows
from .hosts import Hosts, MovingHost, update_hosts
from .infospace import record_status
from .knowledge import Knowledge, Where
from .rows import (
    SIGNATURE,
    STATUS,
    UNTIL,
    Ints,
    Mask,
    ReadingRows,
    component_columns,
    encode_texts,
    from_knowledge,
    to_knowledge,
)
from .series import ReadingSeries
from .smc import Smc
from .span import EVER, TimeSpan, span

TICKS = 1 << 22
"""The approximate limit of ticks in one step, over all keys."""


class ColumnState(msgspec.Struct, tag="columns"):
    """The state of a component that is evaluated in columns. All instants before `until` have been evaluated.

    `content` has the rows that each query can still select. `held` is the input buffer by topic. `hosts` has
    the last position of each moving host.
    """

    until: Instant = BEGINNING
    content: dict[str, pa.RecordBatch] = {}
    held: dict[str, list[pa.RecordBatch]] = {}
    instances: dict[Id, Instance] = {}
    hosts: Hosts = {}
    latest: Instant = BEGINNING
    """The time of the latest reading."""


TopicBatches = Mapping[str, list[pa.RecordBatch]]
"""Record batches by topic."""


class TopicQuery(NamedTuple):
    """The part of a query that reads one topic."""

    name: str
    topic: Topic
    query: Query


@dataclass(frozen=True)
class ColumnarComponent:
    """A component with its columnar plan."""

    smc: Smc
    plan: ColumnarPlan

    @property
    def topics(self) -> Mapping[str, Topic]:
        """The topics that the component consumes, by name."""
        return self.plan.consumed

    def span(self, name: str) -> TimeSpan:
        """Return the time span of the query called `name`."""
        found = span(self.smc.inputs[name].query)
        assert found is not None
        return found

    @cached_property
    def pieces(self) -> Mapping[str, TopicQuery]:
        """The queries of the component, split by topic.

        A query of one topic keeps its name. The parts of other queries have the names of query and topic,
        separated by a control character.
        """
        found = {}
        for name, input in self.smc.inputs.items():
            several = len(input.query.topics) > 1
            for topic in input.query.topics:
                query = replace(input.query, topic=Closest(Index(topic)))
                found[f"{name}\x1e{topic}" if several else name] = TopicQuery(name, self.topics[topic], query)
        return found

    @cached_property
    def endless(self) -> tuple[str, ...]:
        """The names of the queries over all time. Their rows are never discarded."""
        return tuple(name for name in self.smc.inputs if self.span(name).low == EVER)

    @cached_property
    def shared(self) -> frozenset[str]:
        """The queries without a key, if other queries have a key. Their readings are visible to every key."""
        without_key = frozenset(name for name, input in self.smc.inputs.items() if input.key is None)
        return without_key if len(without_key) < len(self.smc.inputs) else frozenset()

    @property
    def here(self) -> Where:
        """The location of a stationary host; `None` without a host or if the host moves."""
        return self.smc.stationary


class ColumnarEmission(NamedTuple):
    """The events of a step: single events from a candidate walk, and events as rows."""

    single: list[Published]
    rows: list[EventRows]


def take(columnar: ColumnarComponent, state: ColumnState, topic: str, batch: pa.RecordBatch) -> None:
    """Put readings into the input buffer.

    Late readings go to the queries at once and take part in the next evaluation. [F76]
    """
    batch = component_columns(batch)
    if UNTIL in batch.schema.names:  # it may contradict stored events, and its own
        for of, content in state.content.items():
            if topic == columnar.pieces[of].topic.name:
                state.content[of] = end_validity(content, batch)
        state.held[topic] = [end_validity(held, batch) for held in state.held.get(topic, [])]
        batch = end_validity(batch, batch)
    late = times(batch) < state.until
    if late.any():
        rows = batch.filter(pa.array(late))
        for of, piece in columnar.pieces.items():
            if topic == piece.topic.name:
                state.content[of] = concatenate([state.content[of], rows] if of in state.content else [rows])
        if topic == columnar.smc.here:
            update_hosts(state.hosts, ReadingRows(columnar.topics[topic], rows))
        batch = batch.filter(pa.array(~late))
    if len(batch):
        state.held.setdefault(topic, []).append(batch)


def due(columnar: ColumnarComponent, state: ColumnState) -> Instant | None:
    """Return the next instant of evaluation, or `None` if nothing is scheduled."""
    found = [int(times(batch).min()) for held in state.held.values() for batch in held]
    for of, content in state.content.items():
        for shift in columnar.span(columnar.pieces[of].name).shifts[1:]:
            ahead = times(content) + shift
            found.append(int(ahead[ahead >= state.until].min(initial=NEVER)))
    found += (at for at, _ in _hold_ends(columnar.smc, state))
    found += [] if (tick := _tick(columnar.smc, state)) is None else [tick]
    soonest = min(found, default=NEVER)
    return None if soonest == NEVER else soonest


def _tick(smc: Smc, state: ColumnState) -> Instant | None:
    """Return the next tick, or `None` if no reading is recent enough for ticks."""
    if smc.tick is None:
        return None
    next = -(-state.until // smc.tick) * smc.tick
    newest = (int(times(content).max()) for content in state.content.values() if len(content))
    return next if any(next - at <= smc.lasts for at in newest) else None


def _hold_ends(smc: Smc, state: ColumnState) -> Iterator[tuple[Instant, Id]]:
    """Yield the end of each running minimum duration with its scope."""
    for id, instance in state.instances.items():
        if (at := component.hold_end(smc, instance)) is not None:
            yield at, id


def endless_size(columnar: ColumnarComponent, state: ColumnState | component.InstantState) -> int:
    """Return the number of rows that are never discarded and that each evaluation reads.

    Accepts the state of both evaluations.
    """
    if isinstance(state, ColumnState):
        pieces = columnar.pieces
        return sum(len(rows) for of, rows in state.content.items() if pieces[of].name in columnar.endless)
    views = (state.info.points.get(name, {}) for name in columnar.endless)
    return sum(len(points) for view in views for points in view.values())


def is_empty(state: ColumnState) -> bool:
    """Whether the state is initial apart from the watermark."""
    return not state.instances and not state.hosts and not any(map(len, _batches(state)))


def advance(columnar: ColumnarComponent, state: ColumnState, until: Instant) -> ColumnarEmission:
    """Evaluate all instants before `until`, and return the events. `until` must never decrease. [F76]"""
    emission = ColumnarEmission([], [])
    while (next := due(columnar, state)) is not None and next < until:
        state.until = max(state.until, next)
        end, tick = until, columnar.smc.tick
        if tick is not None:  # a step has at most about `TICKS` ticks
            together = max(1, TICKS // max(1, *map(len, _batches(state))))
            end = min(until, next + min(tick * together, columnar.smc.lasts))
        single, rows = _evaluate(columnar, state, end)
        emission.single.extend(single)
        emission.rows.extend(rows)
    state.until = max(state.until, until)
    return emission


def _batches(state: ColumnState) -> list[pa.RecordBatch]:
    """Return all batches of a state: those that queries can select, and those in the input buffer."""
    return [*state.content.values(), *(batch for held in state.held.values() for batch in held)]


def _evaluate(columnar: ColumnarComponent, state: ColumnState, until: Instant) -> ColumnarEmission:
    """Evaluate one step, up to but not including `until`.

    If the step has too many instants, a shorter step is evaluated instead. `state.until` is the end of the
    evaluated step.
    """
    keys: dict[str, int] = {}
    held = state.held.copy()
    ready = _take_due(state, until)
    coded = {
        of: _encode_keys(columnar, piece.name, _content_until(state, of, piece.topic, ready), keys)
        for of, piece in columnar.pieces.items()
    }
    for _, (_, key) in _hold_ends(columnar.smc, state):
        keys.setdefault(key, len(keys))
    if columnar.shared:
        for (_, key), instance in state.instances.items():
            if instance.since is not None:
                keys.setdefault(key, len(keys))
    made = {of: _series_of(columnar, of, *rows_and_codes, len(keys)) for of, rows_and_codes in coded.items()}
    seen: dict[str, list[ReadingSeries]] = {}
    for of, views in made.items():
        seen.setdefault(columnar.pieces[of].name, []).extend(views)
    try:
        emission = _emit(columnar, state, list(keys), seen, _host_movements(columnar, state, ready), until)
    except TooManyInstants as found:
        state.held = held
        return _evaluate(columnar, state, found.until)
    for of, views in made.items():
        parts = []
        for series in views:
            parts.append(_only(series.rows.batch, series.retained(until)))
        state.content[of] = trim_dictionaries(_join(parts))
    state.until = until
    return emission


def _emit(
    columnar: ColumnarComponent,
    state: ColumnState,
    keys: list[str],
    seen: Views,
    moved: Sequence[MovingHost | None],
    until: Instant,
) -> ColumnarEmission:
    """Return the events of all keys, and update the instances of `state`.

    `moved` has the moving hosts. If no host moves, it is `[None]`.
    """
    smc, plan = columnar.smc, columnar.plan
    single: list[tuple[Instant, Id, Published]] = []
    rows: list[EventRows] = []
    for host in moved:
        active = None
        if columnar.shared:
            instances = (state.instances.get(("", key), Instance()) for key in keys)
            active = np.array([instance.since is not None for instance in instances], np.bool_)
        step = ScreenedInstants(smc, plan, seen, state.until, until, host, active)
        events = EventBuilder(smc, plan, keys, step, seen, host).build(state.instances)
        if events is not None:
            rows += [events] if len(events.whose) else []
            continue
        visible = VisibleKnowledge(smc, seen, host)
        walk = CandidateWalk(smc, keys, until, step, visible, "" if host is None else host.name)
        single += walk.emit(state.instances)
    return ColumnarEmission([event for *_, event in sorted(single, key=lambda row: row[:2])], rows)


def _host_movements(
    columnar: ColumnarComponent, state: ColumnState, ready: TopicBatches
) -> Sequence[MovingHost | None]:
    """Return the moving hosts with their positions in the step, and update `state.hosts`; `[None]` if no host
    moves."""
    if not isinstance(columnar.smc.here, str):
        return [None]
    topic = columnar.topics[columnar.smc.here]
    batches = ready.get(topic.name) or [component_columns(from_events(topic, []))]
    return update_hosts(state.hosts, ReadingRows(topic, _join(batches)))


def _series_of(
    columnar: ColumnarComponent, of: str, rows: ReadingRows, codes: Ints, count: int
) -> list[ReadingSeries]:
    """Return the series of a query over one topic: one for each status, or a single series if the query pools
    statuses."""
    name, _, query = columnar.pieces[of]
    collide = columnar.smc.collide
    statuses = columnar.plan.statuses[name]
    shared = name in columnar.shared
    carried, count = isinstance(columnar.smc.here, str), 1 if shared else count
    made = partial(ReadingSeries, query, columnar.span(name), collide, carried=carried, shared=shared)
    if len(statuses) == 1 or isinstance(query.status, (PooledDimension, Aggregate)):
        return [made(rows, codes, count, columnar.here, statuses[0] if len(statuses) == 1 else None)]
    found = []
    own = encode_texts(rows.batch, STATUS)
    for status in statuses:
        has_status = own.codes == (own.values.index(status) if status in own.values else -2)
        selected = ReadingRows(rows.topic, rows.batch.filter(pa.array(has_status)))
        found.append(made(selected, codes[has_status], count, columnar.here, status))
    return found


# --- update ------------------------------------------------------------------------------------


def _take_due(state: ColumnState, until: Instant) -> dict[str, list[pa.RecordBatch]]:
    """Remove the rows before `until` from the input buffer, and return them by topic."""
    ready: dict[str, list[pa.RecordBatch]] = {}
    for topic, held in state.held.items():
        early = [(batch, times(batch) < until) for batch in held]
        ready[topic] = [_only(batch, now) for batch, now in early if now.any()]
        state.held[topic] = [_only(batch, ~now) for batch, now in early if not now.all()]
    return ready


def _only(batch: pa.RecordBatch, rows: Mask) -> pa.RecordBatch:
    """Return the rows of a batch where `rows` is true."""
    return batch if rows.all() else batch.filter(pa.array(rows))


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Concatenate batches. A single batch is returned without a copy."""
    return batches[0] if len(batches) == 1 else concatenate(batches)


def _content_until(state: ColumnState, of: str, topic: Topic, ready: TopicBatches) -> ReadingRows:
    """Return all rows of one topic that a query can select, in the order of arrival."""
    parts = [state.content[of]] if of in state.content else []
    parts += ready.get(topic.name, [])
    return ReadingRows(topic, _join(parts or [component_columns(from_events(topic, []))]))


def _encode_keys(
    columnar: ColumnarComponent, name: str, rows: ReadingRows, keys: dict[str, int]
) -> tuple[ReadingRows, Ints]:
    """Return the rows that a query selects, with the code of each row's key. Add new keys to `keys`."""
    input, codes = columnar.smc.inputs[name], np.zeros(len(rows), np.int64)
    if input.encoded_keys is None:
        if name not in columnar.shared:
            keys.setdefault("", 0)
    else:
        found = input.encoded_keys(rows)
        table = [keys.setdefault(key, len(keys)) for key in found.values]
        codes = np.array([*table, -1])[found.codes]
    inside = rows.in_locations(input.query, columnar.here)
    wanted = codes >= 0 if inside is None else (codes >= 0) & inside
    if wanted.all():
        return rows, codes
    return ReadingRows(rows.topic, rows.batch.filter(pa.array(wanted))), codes[wanted]


# --- validity ---


def end_validity(events: pa.RecordBatch, others: pa.RecordBatch) -> pa.RecordBatch:
    """End the validity of events that a later event contradicts.

    The validity ends at the first later event of `others` with the same signature and another status.
    """
    if not len(events) or not len(others):
        return events
    names: dict[str, int] = {}
    own, later = ((_number_texts(batch, SIGNATURE, names), times(batch)) for batch in (events, others))
    words: dict[str, int] = {}
    status, later_status = (_number_texts(batch, STATUS, words) for batch in (events, others))
    order = np.lexsort((later[1], later[0]))
    until = events.column(UNTIL).to_numpy().copy()
    end_at_contradiction(*own, status, later[0][order], later[1][order], later_status[order], until)
    return events.set_column(events.schema.get_field_index(UNTIL), UNTIL, pa.array(until))


def _number_texts(batch: pa.RecordBatch, name: str, numbers: dict[str, int]) -> Ints:
    """Return a number for each text of a column, -1 where the text is missing. Add new texts to `numbers`."""
    found = encode_texts(batch, name)
    table = [numbers.setdefault(text, len(numbers)) for text in found.values]
    return np.array([*table, -1])[found.codes]


# --- from points to columns and back -----------------------------------------------------------


def to_columns(columnar: ColumnarComponent, points: component.InstantState) -> ColumnState:
    """Convert the state of a component from evaluation instant by instant to evaluation in columns."""
    held: dict[str, list[Knowledge]] = {}
    for _, _, known in sorted(points.held, key=lambda row: row[1]):
        held.setdefault(known.topic, []).append(known)
    content = {}
    for of, piece in columnar.pieces.items():
        every = chain(*points.info.points.get(piece.name, {}).values())
        own = [point for point in every if point.topic == piece.topic.name]
        if own:
            content[of] = _with_validity(piece.topic, own, points)
    state = ColumnState(points.until, content, {}, points.instances, points.hosts, points.latest)
    for topic, points_of_topic in held.items():
        take(columnar, state, topic, from_knowledge(columnar.topics[topic], points_of_topic))
    return state


def _with_validity(topic: Topic, known: list[Knowledge], points: component.InstantState) -> pa.RecordBatch:
    """Convert knowledge points to rows, with the time at which their validity ends."""
    batch = from_knowledge(topic, known)
    if UNTIL not in batch.schema.names:
        return batch
    statuses, until = points.info.newest.get(topic.name, {}), []
    for k in known:
        newest = statuses.get(k.signature or "", {}).items()
        until.append(min((at for s, at in newest if s != k.status and at > k.time), default=NEVER))
    return batch.set_column(batch.schema.get_field_index(UNTIL), UNTIL, pa.array(until, pa.int64()))


def to_instants(columnar: ColumnarComponent, state: ColumnState) -> component.InstantState:
    """Convert the state of a component from evaluation in columns to evaluation instant by instant.

    The result shares parts with `state`, so `state` must not be used afterwards.
    """
    tick = _tick(columnar.smc, state)
    points = component.InstantState(
        state.until, hosts=state.hosts, instances=state.instances, tick=tick, latest=state.latest
    )
    for of, content in state.content.items():
        piece = columnar.pieces[of]
        until = content.column(UNTIL).to_pylist() if UNTIL in content.schema.names else [NEVER] * len(content)
        for known, end in zip(to_knowledge(piece.topic, content), until, strict=True):
            record_status(points.info, known)
            if end < state.until:  # another event has ended its validity
                opposite: Status = "egress" if known.status == "ingress" else "ingress"
                record_status(points.info, msgspec.structs.replace(known, time=end, status=opposite))
            component.insert_for_query(columnar.smc, points, piece.name, known)
    for topic, held in state.held.items():
        for batch in held:
            for known in to_knowledge(columnar.topics[topic], batch):
                component.take(columnar.smc, points, known)
    for id in state.instances:
        component.schedule_hold(columnar.smc, points, id)
    return points
