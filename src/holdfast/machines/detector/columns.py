"""One component over time, in columns: the same as :mod:`component`, many instants at once.

Its predicates are tested over all instants of a step at once, as masks that leave nothing out.  Only
where a mask lets an instant pass is the component evaluated as the thesis says, by the code that
defines the meaning; so what is told is told by it, and a mask that is not exact costs time alone.
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

from ...kernels.turn import contradicted
from ...model.batch import concatenate, from_events, times, trimmed
from ...model.event import Status
from ...model.instant import BEGINNING, NEVER, Instant
from ...model.query import Aggregate, Closest, Index, Pool, Query
from ...model.topic import Topic
from . import component
from .component import Id, Instance, Published
from .infospace import InfoSpace, witness
from .knowledge import Knowledge, Where
from .plan import Plan
from .roaming import Host, Hosts, hosts
from .rows import SIGNATURE, STATUS, UNTIL, Ints, Mask, Rows, bare, coded, of_knowledge, to_knowledge
from .screening import Crowded, Screened, Views
from .series import Series
from .smc import Smc
from .span import EVER, Span, span
from .telling import Said, Telling
from .turning import Turning, Visible

TICKS = 1 << 22
"""At most about so many ticks, of all keys together, are evaluated at once."""


class State(msgspec.Struct, tag="columns"):
    """``content`` is what each query may still look at, ``held`` the input buffer by topic; everything
    before ``until`` has been evaluated.  ``hosts`` is where those are that move."""

    until: Instant = BEGINNING
    content: dict[str, pa.RecordBatch] = {}
    held: dict[str, list[pa.RecordBatch]] = {}
    instances: dict[Id, Instance] = {}
    hosts: Hosts = {}


class Piece(NamedTuple):
    """What a query looks at of one topic."""

    name: str
    topic: Topic
    query: Query


@dataclass(frozen=True)
class Fused:
    """A component and its plan."""

    smc: Smc
    plan: Plan

    @property
    def topics(self) -> Mapping[str, Topic]:
        """What it listens to."""
        return self.plan.heard

    def span(self, name: str) -> Span:
        found = span(self.smc.inputs[name].query)
        assert found is not None
        return found

    @cached_property
    def pieces(self) -> Mapping[str, Piece]:
        """What the queries look at, of each topic by itself; those of one topic have the query's name."""
        found = {}
        for name, one in self.smc.inputs.items():
            several = len(one.query.topics) > 1
            for topic in one.query.topics:
                query = replace(one.query, topic=Closest(Index(topic)))
                found[f"{name}\x1e{topic}" if several else name] = Piece(name, self.topics[topic], query)
        return found

    @cached_property
    def endless(self) -> tuple[str, ...]:
        """The queries that look at all there ever was."""
        return tuple(name for name in self.smc.inputs if self.span(name).low == EVER)

    @cached_property
    def shared(self) -> frozenset[str]:
        """The queries that keep nothing apart where others do."""
        mine = frozenset(name for name, one in self.smc.inputs.items() if one.key is None)
        return mine if len(mine) < len(self.smc.inputs) else frozenset()

    @property
    def here(self) -> Where:
        return self.smc.here if isinstance(self.smc.here, tuple) else None


class Spoken(NamedTuple):
    """What a component has told: events one by one, and as columns."""

    single: list[Published]
    rows: list[Said]


def take(fused: Fused, state: State, topic: str, batch: pa.RecordBatch) -> None:
    """Put readings into the input buffer; what is late is looked at as it comes, and is seen from the
    next evaluation on.  [F76]"""
    batch = bare(batch)
    if UNTIL in batch.schema.names:
        batch = _outdated(fused, state, topic, batch)
    late = times(batch) < state.until
    if late.any():
        for of, piece in fused.pieces.items():
            if topic == piece.topic.name:
                some = batch.filter(pa.array(late))
                state.content[of] = concatenate([state.content[of], some] if of in state.content else [some])
        if topic == fused.smc.here:
            hosts(state.hosts, Rows(fused.topics[topic], batch.filter(pa.array(late))))
        batch = batch.filter(pa.array(~late))
    if len(batch):
        state.held.setdefault(topic, []).append(batch)


def due(fused: Fused, state: State) -> Instant | None:
    """The next instant of evaluation."""
    found = [int(times(batch).min()) for held in state.held.values() for batch in held]
    for of, content in state.content.items():
        for shift in fused.span(fused.pieces[of].name).shifts[1:]:
            ahead = times(content) + shift
            found.append(int(ahead[ahead >= state.until].min(initial=NEVER)))
    found += (at for at, _ in _ripe(fused.smc, state))
    found += [] if (tick := _tick(fused.smc, state)) is None else [tick]
    soonest = min(found, default=NEVER)
    return None if soonest == NEVER else soonest


def _tick(smc: Smc, state: State) -> Instant | None:
    """The next tick, while something is known that is not too old."""
    if smc.tick is None:
        return None
    next = -(-state.until // smc.tick) * smc.tick
    newest = (int(times(content).max()) for content in state.content.values() if len(content))
    return next if any(next - at <= smc.lasts for at in newest) else None


def _ripe(smc: Smc, state: State) -> Iterator[tuple[Instant, Id]]:
    """When guards that wait will have waited long enough."""
    for id, one in state.instances.items():
        if (at := component.ripe(smc, one)) is not None:
            yield at, id


def kept_for_ever(fused: Fused, state: State | component.State) -> int:
    """How much is known of which nothing is ever forgotten, so that every evaluation goes through it."""
    if isinstance(state, State):
        kept = (
            state.content[of]
            for of, one in fused.pieces.items()
            if of in state.content and one.name in fused.endless
        )
        return sum(map(len, kept))
    return sum(len(some) for name in fused.endless for some in state.info.points.get(name, {}).values())


def is_fresh(state: State) -> bool:
    """Whether nothing is known."""
    return not state.instances and not state.hosts and not any(map(len, _batches(state)))


def advance(fused: Fused, state: State, until: Instant) -> Spoken:
    """Let InfoS time come as far as ``until``, which it does not reach.  It never goes back.  [F76]"""
    told = Spoken([], [])
    while (next := due(fused, state)) is not None and next < until:
        state.until = max(state.until, next)
        single, rows = _evaluated(fused, state, min(until, _reach(fused.smc, state, next)))
        told.single.extend(single)
        told.rows.extend(rows)
    state.until = max(state.until, until)
    return told


def _reach(smc: Smc, state: State, next: Instant) -> Instant:
    """How far one stretch may go, so that its ticks are not too many."""
    if smc.tick is None:
        return NEVER
    together = max(1, TICKS // max(1, *map(len, _batches(state))))
    return next + min(smc.tick * together, smc.lasts)


def _batches(state: State) -> list[pa.RecordBatch]:
    return [*state.content.values(), *(batch for held in state.held.values() for batch in held)]


def _evaluated(fused: Fused, state: State, until: Instant) -> Spoken:
    """Evaluate a stretch of time, up to before ``until``."""
    keys: dict[str, int] = {}
    held = state.held.copy()
    ready = _ready(state, until)
    coded = {
        of: _coded(fused, one.name, _gathered(state, of, one.topic, ready), keys)
        for of, one in fused.pieces.items()
    }
    for _, (_, key) in _ripe(fused.smc, state):
        keys.setdefault(key, len(keys))
    if fused.shared:
        for (_, key), one in state.instances.items():
            if one.since is not None:
                keys.setdefault(key, len(keys))
    made = {of: _views(fused, of, rows, codes, len(keys)) for of, (rows, codes) in coded.items()}
    seen: dict[str, list[Series]] = {}
    for of, views in made.items():
        seen.setdefault(fused.pieces[of].name, []).extend(views)
    try:
        told = _told(fused, state, list(keys), seen, _moved(fused, state, ready), until)
    except Crowded as found:
        state.held = held
        return _evaluated(fused, state, found.until)
    for of, views in made.items():
        parts = []
        for series in views:
            kept, batch = series.kept(until), series.rows.batch
            parts.append(batch if kept.all() else batch.filter(pa.array(kept)))
        state.content[of] = trimmed(parts[0] if len(parts) == 1 else concatenate(parts))
    state.until = until
    return told


def _told(
    fused: Fused, state: State, keys: list[str], seen: Views, moved: Sequence[Host | None], until: Instant
) -> Spoken:
    """What is told of keys, and of each host that moves."""
    single: list[tuple[Instant, Id, Published]] = []
    rows: list[Said] = []
    for host in moved:
        holds = _holding(state, keys) if fused.shared else None
        screened = Screened(fused.smc, fused.plan, seen, state.until, until, host, holds)
        said = Telling(fused.smc, fused.plan, keys, screened, seen, host).said(state.instances)
        if said is not None:
            rows += [said] if len(said.whose) else []
            continue
        visible = Visible(fused.smc, seen, host)
        turning = Turning(fused.smc, keys, until, screened, visible, "" if host is None else host.name)
        single += turning.told(state.instances)
    return Spoken([said for _, _, said in sorted(single, key=lambda row: row[:2])], rows)


def _holding(state: State, keys: Sequence[str]) -> Mask:
    """Of which keys the condition holds."""
    known = (state.instances.get(("", key)) for key in keys)
    return np.array([one is not None and one.since is not None for one in known], np.bool_)


def _moved(fused: Fused, state: State, ready: Mapping[str, list[pa.RecordBatch]]) -> Sequence[Host | None]:
    """The hosts that move, with where they have been; none, if nobody carries the component."""
    if not isinstance(fused.smc.here, str):
        return [None]
    topic = fused.topics[fused.smc.here]
    some = ready.get(topic.name) or [bare(from_events(topic, []))]
    return hosts(state.hosts, Rows(topic, concatenate(some) if len(some) > 1 else some[0]))


def _views(fused: Fused, of: str, rows: Rows, codes: Ints, count: int) -> list[Series]:
    """What a query may look at of a topic, of each status by itself unless it takes them together."""
    name, _, query = fused.pieces[of]
    collide = fused.smc.collide
    statuses = fused.plan.statuses[name]
    shared = name in fused.shared
    carried, count = isinstance(fused.smc.here, str), 1 if shared else count
    made = partial(Series, query, fused.span(name), collide, carried=carried, shared=shared)
    if isinstance(query.status, (Pool, Aggregate)):
        return [made(rows, codes, count, fused.here, statuses[0] if len(statuses) == 1 else None)]
    if len(statuses) == 1:
        return [made(rows, codes, count, fused.here, statuses[0])]
    found = []
    own = coded(rows.batch, STATUS)
    for status in statuses:
        mine = own.codes == (own.values.index(status) if status in own.values else -2)
        some = Rows(rows.topic, rows.batch.filter(pa.array(mine)))
        found.append(made(some, codes[mine], count, fused.here, status))
    return found


# --- update ------------------------------------------------------------------------------------


def _ready(state: State, until: Instant) -> dict[str, list[pa.RecordBatch]]:
    """What of the input buffer comes before ``until``, which leaves it."""
    ready: dict[str, list[pa.RecordBatch]] = {}
    for topic, held in state.held.items():
        early = [(batch, times(batch) < until) for batch in held]
        ready[topic] = [
            batch if now.all() else batch.filter(pa.array(now)) for batch, now in early if now.any()
        ]
        state.held[topic] = [
            batch.filter(pa.array(~now)) if now.any() else batch for batch, now in early if not now.all()
        ]
    return ready


def _gathered(state: State, of: str, topic: Topic, ready: Mapping[str, list[pa.RecordBatch]]) -> Rows:
    """What a query may look at of a topic, in the order in which it came."""
    parts = [state.content[of]] if of in state.content else []
    parts += ready.get(topic.name, [])
    batch = concatenate(parts) if len(parts) > 1 else parts[0] if parts else bare(from_events(topic, []))
    return Rows(topic, batch)


def _coded(fused: Fused, name: str, rows: Rows, keys: dict[str, int]) -> tuple[Rows, Ints]:
    """The readings that a query looks at, each with the code of its key; new keys get the next."""
    one = fused.smc.inputs[name]
    codes = np.zeros(len(rows), np.int64)
    if one.coded is None:
        if name not in fused.shared:
            keys.setdefault("", 0)
    else:
        found = one.coded(rows)
        table = [keys.setdefault(key, len(keys)) for key in found.values]
        codes = np.array([*table, -1])[found.codes]
    inside = rows.looked_at(one.query, fused.here)
    wanted = codes >= 0 if inside is None else (codes >= 0) & inside
    if wanted.all():
        return rows, codes
    return Rows(rows.topic, rows.batch.filter(pa.array(wanted))), codes[wanted]


# --- what is no longer so ---


def _outdated(fused: Fused, state: State, topic: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """Events that start or end something, each with the moment at which a later one says otherwise; that of
    earlier ones is noted, too."""
    for of, content in state.content.items():
        if topic == fused.pieces[of].topic.name:
            state.content[of] = outdated(content, batch)
    state.held[topic] = [outdated(held, batch) for held in state.held.get(topic, [])]
    return outdated(batch, batch)


def outdated(events: pa.RecordBatch, others: pa.RecordBatch) -> pa.RecordBatch:
    """Events that start or end something, valid no longer than until one of the others, of the same component
    and with another status, comes after them."""
    if not len(events) or not len(others):
        return events
    names: dict[str, int] = {}
    mine, theirs = ((_numbered(some, SIGNATURE, names), times(some)) for some in (events, others))
    words: dict[str, int] = {}
    status, other = (_numbered(some, STATUS, words) for some in (events, others))
    order = np.lexsort((theirs[1], theirs[0]))
    until = events.column(UNTIL).to_numpy().copy()
    contradicted(*mine, status, theirs[0][order], theirs[1][order], other[order], until)
    return events.set_column(events.schema.get_field_index(UNTIL), UNTIL, pa.array(until))


def _numbered(batch: pa.RecordBatch, name: str, numbers: dict[str, int]) -> Ints:
    """A number for each text of a column; -1 where there is none."""
    found = coded(batch, name)
    table = [numbers.setdefault(text, len(numbers)) for text in found.values]
    return np.array([*table, -1])[found.codes]


# --- from points to columns and back -----------------------------------------------------------


def of_points(fused: Fused, points: component.State) -> State:
    """The state of a component that was evaluated one instant after another."""
    held: dict[str, list[Knowledge]] = {}
    for _, _, known in sorted(points.held, key=lambda row: row[1]):
        held.setdefault(known.topic, []).append(known)
    content = {}
    for of, piece in fused.pieces.items():
        every = chain(*points.info.points.get(piece.name, {}).values())
        mine = [one for one in every if one.topic == piece.topic.name]
        if mine:
            content[of] = _judged(piece.topic, mine, points)
    state = State(points.until, content, {}, points.instances, points.hosts)
    for topic, some in held.items():
        take(fused, state, topic, of_knowledge(fused.topics[topic], some))
    return state


def _judged(topic: Topic, known: list[Knowledge], points: component.State) -> pa.RecordBatch:
    """Knowledge as columns, each valid until something else was said."""
    batch = of_knowledge(topic, known)
    if UNTIL not in batch.schema.names:
        return batch
    said = points.info.newest.get(topic.name, {})
    until = [_until(k, said.get(k.signature or "", {})) for k in known]
    return batch.set_column(batch.schema.get_field_index(UNTIL), UNTIL, pa.array(until, pa.int64()))


def _until(known: Knowledge, said: Mapping[Status, Instant]) -> Instant:
    """Since when something else is so, if it is."""
    others = (at for status, at in said.items() if status != known.status and at > known.time)
    return min(others, default=NEVER)


def to_points(fused: Fused, state: State) -> component.State:
    """The state to evaluate one instant after another."""
    tick = _tick(fused.smc, state)
    points = component.State(state.until, hosts=state.hosts, instances=state.instances, tick=tick)
    for of, content in state.content.items():
        piece = fused.pieces[of]
        until = content.column(UNTIL).to_pylist() if UNTIL in content.schema.names else [NEVER] * len(content)
        for known, end in zip(to_knowledge(piece.topic, content), until, strict=True):
            _witness(points.info, known, end, state.until)
            component.look(fused.smc, points, piece.name, known)
    for topic, held in state.held.items():
        for batch in held:
            for known in to_knowledge(fused.topics[topic], batch):
                component.take(fused.smc, points, known)
    for id in state.instances:
        component.ripen(fused.smc, points, id)
    return points


def _witness(info: InfoSpace, known: Knowledge, end: Instant, until: Instant) -> None:
    """Remember what has been said, and what contradicted it by now."""
    witness(info, known)
    if end < until:
        other: Status = "egress" if known.status == "ingress" else "ingress"
        witness(info, msgspec.structs.replace(known, time=end, status=other))
