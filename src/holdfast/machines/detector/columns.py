"""One component over time, in columns: the same as :mod:`component`, many instants at once.

Its predicates are tested over all instants of a step at once, as masks that leave nothing out.  Only
where a mask lets an instant pass is the component evaluated as the thesis says, by the code that
defines the meaning; so what is told is told by it, and a mask that is not exact costs time alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ...model.batch import concatenate, from_events, times, trimmed
from ...model.instant import BEGINNING, NEVER, Instant
from ...model.topic import Topic
from . import component
from .component import Id, Instance, Published
from .knowledge import Knowledge, Where
from .plan import Plan
from .rows import Ints, Rows, bare, of_knowledge, to_knowledge
from .screening import Screened
from .series import Series
from .smc import Smc
from .span import Span, span
from .turning import Turning, Visible

TICKS = 1 << 22
"""At most about so many ticks, of all keys together, are evaluated at once."""


class State(msgspec.Struct, tag="columns"):
    """``content`` is what each query may still look at, ``held`` the input buffer by topic; everything
    before ``until`` has been evaluated."""

    until: Instant = BEGINNING
    content: dict[str, pa.RecordBatch] = {}
    held: dict[str, list[pa.RecordBatch]] = {}
    instances: dict[Id, Instance] = {}


class Fused(NamedTuple):
    """A component, its plan, and the topics that it listens to."""

    smc: Smc
    plan: Plan
    topics: Mapping[str, Topic]

    def span(self, name: str) -> Span:
        found = span(self.smc.inputs[name].query)
        assert found is not None
        return found

    def topic(self, name: str) -> Topic:
        return self.topics[self.smc.inputs[name].query.topics[0]]

    @property
    def here(self) -> Where:
        return self.smc.here if isinstance(self.smc.here, tuple) else None


def take(fused: Fused, state: State, topic: str, batch: pa.RecordBatch) -> None:
    """Put readings into the input buffer; what is late is looked at as it comes, and is seen from the
    next evaluation on.  [F76]"""
    batch = bare(batch)
    late = times(batch) < state.until
    if late.any():
        for name, one in fused.smc.inputs.items():
            if topic in one.query.topics:
                some = batch.filter(pa.array(late))
                state.content[name] = concatenate(
                    [state.content[name], some] if name in state.content else [some]
                )
        batch = batch.filter(pa.array(~late))
    if len(batch):
        state.held.setdefault(topic, []).append(batch)


def due(fused: Fused, state: State) -> Instant | None:
    """The next instant of evaluation."""
    found = [int(times(batch).min()) for held in state.held.values() for batch in held]
    for name, content in state.content.items():
        for shift in fused.span(name).shifts[1:]:
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
        rule = smc.enter if one.since is None else smc.exit
        if one.pending is not None and rule is not None:
            yield one.pending + rule.hold, id


def is_fresh(state: State) -> bool:
    """Whether nothing is known."""
    return not state.instances and not any(map(len, _batches(state)))


def advance(fused: Fused, state: State, until: Instant) -> list[Published]:
    """Let InfoS time come as far as ``until``, which it does not reach.  It never goes back.  [F76]"""
    told: list[Published] = []
    while (next := due(fused, state)) is not None and next < until:
        state.until = max(state.until, next)
        told += _evaluated(fused, state, min(until, _reach(fused.smc, state, next)))
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


def _evaluated(fused: Fused, state: State, until: Instant) -> list[Published]:
    """Evaluate a stretch of time, up to before ``until``."""
    keys: dict[str, int] = {}
    ready = _ready(state, until)
    coded = {
        name: _coded(fused, name, _gathered(fused, state, name, ready), keys) for name in fused.smc.inputs
    }
    for _, (_, key) in _ripe(fused.smc, state):
        keys.setdefault(key, len(keys))
    seen = {
        name: Series(
            fused.smc.inputs[name].query,
            fused.span(name),
            fused.smc.collide,
            rows,
            codes,
            len(keys),
            fused.here,
        )
        for name, (rows, codes) in coded.items()
    }
    screened = Screened(fused.smc, fused.plan, seen, state.until, until)
    turning = Turning(fused.smc, list(keys), until, screened, Visible(fused.smc, seen))
    told = turning.told(state.instances)
    for name, series in seen.items():
        kept = series.kept(until)
        batch = series.rows.batch
        state.content[name] = trimmed(batch if kept.all() else batch.filter(pa.array(kept)))
    state.until = until
    return told


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


def _gathered(fused: Fused, state: State, name: str, ready: Mapping[str, list[pa.RecordBatch]]) -> Rows:
    """What a query may look at, in the order in which it came."""
    topic = fused.topic(name)
    parts = [state.content[name]] if name in state.content else []
    parts += ready.get(topic.name, [])
    batch = concatenate(parts) if len(parts) > 1 else parts[0] if parts else bare(from_events(topic, []))
    return Rows(topic, batch)


def _coded(fused: Fused, name: str, rows: Rows, keys: dict[str, int]) -> tuple[Rows, Ints]:
    """The readings that a query looks at, each with the code of its key; new keys get the next."""
    one = fused.smc.inputs[name]
    codes = np.zeros(len(rows), np.int64)
    if one.coded is None:
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


# --- from points to columns and back -----------------------------------------------------------


def of_points(fused: Fused, points: component.State) -> State:
    """The state of a component that was evaluated one instant after another."""
    smc = fused.smc
    held: dict[str, list[Knowledge]] = {}
    for _, _, known in sorted(points.held, key=lambda row: row[1]):
        held.setdefault(known.topic, []).append(known)
    content = {
        name: of_knowledge(
            fused.topic(name), [k for known in points.info.points[name].values() for k in known]
        )
        for name in smc.inputs
        if points.info.points.get(name)
    }
    batches = {topic: [of_knowledge(fused.topics[topic], known)] for topic, known in held.items()}
    return State(points.until, content, batches, points.instances)


def to_points(fused: Fused, state: State) -> component.State:
    """The state to evaluate one instant after another."""
    points = component.State(state.until, instances=state.instances, tick=_tick(fused.smc, state))
    for name, content in state.content.items():
        for known in to_knowledge(fused.topic(name), content):
            component.look(fused.smc, points, name, known)
    for topic, held in state.held.items():
        for batch in held:
            for known in to_knowledge(fused.topics[topic], batch):
                component.take(fused.smc, points, known)
    for at, id in _ripe(fused.smc, state):
        component.wake(points, at, id)
    return points
