"""The machine of components that build on one another.

A batch of a detector is one batch for each topic.  Events are put in the order of their time before
they are looked at, so it does not matter how a history is cut into batches, nor in which order topics
and rows come: only how far time has come.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...model.batch import TIME, concatenate, from_ipc, reached, times, to_events, to_ipc
from ...model.event import Event, Transition
from ...model.instant import BEGINNING, NEVER, Duration, Instant
from ...model.topic import Topic
from .. import machine
from ..inherited import Bit
from ..machine import Batches, Mask, Survey, Told, in_time, mattering, transitions, with_columns
from . import columns, component
from .columns import Fused, Spoken
from .component import Id, Published, signature
from .dag import levels
from .knowledge import Knowledge, of_event, to_event
from .plan import Plan
from .rows import SIGNATURE, Rows, bare, of_knowledge, to_knowledge, with_status
from .smc import Input, Smc
from .telling import Said

FEW = 64
"""Fewer readings than these are taken one by one, unless the component is at work in columns."""
LONG = (8, 512)
"""Where what is kept for ever is more than so many times a batch, columns are not begun, and are left: they
go through all of it for each batch; one by one it is kept up."""
ENOUGH = 1 << 14
"""So much is gone through for any batch."""
MOST = 64
"""So many conditions have a place in the word that tells whose a row is."""


class State(msgspec.Struct):
    """The state of every component, and the latest time that any event had."""

    components: list[component.State | columns.State]
    reached: Instant = BEGINNING


def scope(id: Id) -> str | None:
    """A replica and its key as people read them."""
    return ",".join(filter(None, id)) or None


@dataclass(frozen=True)
class Detector:
    """The machine.  ``topics`` are those of readings; ``shown`` turns the id of a replica or spawned
    component into the scope that people read; a component with a plan takes many readings at once."""

    smcs: tuple[Smc, ...]
    topics: Mapping[str, Topic]
    shown: Callable[[Id], str | None] = scope
    plans: tuple[Plan | None, ...] = ()

    is_timed = True
    margin = None
    compacts = False

    @cached_property
    def strictest(self) -> Duration | None:
        dropping = (wait for smc, wait in zip(self.smcs, self.waits, strict=True) if smc.late == "drop")
        return min(dropping, default=None)

    @cached_property
    def fused(self) -> tuple[Fused | None, ...]:
        """The components that have a plan, each at its number."""
        plans = self.plans or (None,) * len(self.smcs)
        return tuple(
            None if plan is None else Fused(smc, plan) for smc, plan in zip(self.smcs, plans, strict=True)
        )

    @cached_property
    def published(self) -> Mapping[str, Topic]:
        """The topics of components that have a plan."""
        return {plan.topic.name: plan.topic for plan in self.plans if plan is not None}

    @cached_property
    def levels(self) -> dict[str, int]:
        """How far each derived topic is above the readings; a circle is refused.  [F52]"""
        return levels(self.smcs)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The components, each after those that it builds on."""
        return tuple(sorted(range(len(self.smcs)), key=lambda i: self.levels[self.smcs[i].topic]))

    @cached_property
    def waits(self) -> tuple[Duration, ...]:
        """How long each component waits for events: no shorter than those that it builds on.  [F76]"""
        found: dict[str, Duration] = {}
        for i in self.order:
            smc = self.smcs[i]
            below = (found[topic] for topic in smc.topics if topic in found)
            found[smc.topic] = max(smc.wait, found.get(smc.topic, 0), *below)
        return tuple(found[smc.topic] for smc in self.smcs)

    def initial(self) -> State:
        return State([component.State() for _ in self.smcs])

    # --- events ---

    @cached_property
    def _reach(self) -> dict[str, tuple[int, ...]]:
        """For each topic of readings the components that hear of it, by others, too."""
        found: dict[str, tuple[int, ...]] = {}
        for topic in self.topics:
            heard, mine = {topic}, list[int]()
            for i in self.order:
                if heard.intersection(self.smcs[i].topics):
                    heard.add(self.smcs[i].topic)
                    mine.append(i)
            found[topic] = tuple(mine)
        return found

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        """Take one event; a late one is told, or goes into the cube as it comes."""
        state.reached = max(state.reached, event.time)
        known = of_event(event)
        late = []
        for i in sorted(self._reach.get(event.topic, ())):
            own = self._points(state, i)
            if event.topic in self.smcs[i].topics and not self._taken(i, own, known):
                late.append(Transition(event, "late", None, None, i))
        return state, late

    def _taken(self, i: int, own: component.State, known: Knowledge) -> bool:
        """Give knowledge to a component, unless it is too late for it."""
        if self.smcs[i].late == "drop" and component.is_late(own, known):
            return False
        component.take(self.smcs[i], own, known)
        return True

    def _points(self, state: State, i: int) -> component.State:
        """The state of a component to which events come one by one."""
        own, fused = state.components[i], self.fused[i]
        if isinstance(own, columns.State):
            assert fused is not None
            own = state.components[i] = columns.to_points(fused, own)
        return own

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        """Let event time come as far as ``until``; if nothing more will come, to the last event."""
        state, told = self._advanced(state, until)
        return state, transitions(self.topics, told)

    def _advanced(self, state: State, until: Instant) -> tuple[State, Told]:
        single: list[Transition] = []
        rows: dict[str, list[pa.RecordBatch]] = {}
        published: dict[str, list[pa.RecordBatch | Sequence[Knowledge]]] = {}
        shown = cache(self.shown)
        for i in self.order:
            smc = self.smcs[i]
            for topic in smc.topics:
                self._hear(state, i, topic, published.get(topic, ()))
            told = self._spoken(state, i, state.reached + 1 if until == NEVER else until - self.waits[i])
            heard = published.setdefault(smc.topic, [])
            heard += [[said.event for said in told.single]] if told.single else []
            heard += (_heard(smc, said) for said in told.rows)
            single += (_transition(i, said, shown(said.id)) for said in told.single)
            for said in told.rows:
                if i < MOST:
                    rows.setdefault(smc.topic, []).append(_rows(i, said, shown))
                else:
                    single += self._one_by_one(i, said, shown)
        whole = {topic: _in_order(some) for topic, some in rows.items()}
        return state, Told(whole, sorted(single, key=in_time), self.published)

    def _hear(
        self, state: State, i: int, topic: str, spoken: Sequence[pa.RecordBatch | Sequence[Knowledge]]
    ) -> None:
        """Let a component hear what those below it have said under a topic: if it is much, as columns."""
        if not spoken:
            return
        fused, own = self.fused[i], state.components[i]
        if isinstance(own, component.State) and self._in_columns(state, i, sum(map(len, spoken))):
            own = state.components[i]
        if isinstance(own, columns.State):
            assert fused is not None
            for some in spoken:
                batch = some if isinstance(some, pa.RecordBatch) else of_knowledge(fused.topics[topic], some)
                columns.take(fused, own, topic, batch)
            return
        for some in spoken:
            known = to_knowledge(self.published[topic], some) if isinstance(some, pa.RecordBatch) else some
            for one in known:
                component.take(self.smcs[i], own, one)

    def _one_by_one(self, i: int, said: Said, shown: Callable[[Id], str | None]) -> Iterator[Transition]:
        known = to_knowledge(self.published[self.smcs[i].topic], _heard(self.smcs[i], said))
        for event, number, since in zip(known, said.whose.tolist(), said.since.tolist(), strict=True):
            id = said.ids[number]
            yield _transition(i, Published(event, id, None if since == NEVER else since), shown(id))

    def _spoken(self, state: State, i: int, until: Instant) -> Spoken:
        own, fused = state.components[i], self.fused[i]
        if isinstance(own, columns.State):
            assert fused is not None
            return columns.advance(fused, own, until)
        return Spoken(component.advance(self.smcs[i], own, until), [])

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, Told]:
        """Take a batch of each topic, after which event time has come as far as ``until``."""
        late: list[Transition] = []
        sizes = (sum(len(batches[t]) for t in smc.topics if t in batches) for smc in self.smcs)
        in_columns = [self._in_columns(state, i, size) for i, size in enumerate(sizes)]
        for topic, batch in batches.items():
            missed: list[tuple[int, int]] = []
            for i, smc in enumerate(self.smcs):
                if topic in smc.topics:
                    take = self._take_columns if in_columns[i] else self._take_points
                    missed += ((row, i) for row in take(state, i, topic, batch))
            late += self._late(topic, batch, sorted(missed))
            latest = reached(batch)
            state.reached = state.reached if latest is None else max(state.reached, latest)
        state, told = self._advanced(state, until)
        return state, told._replace(single=[*late, *told.single])

    def _in_columns(self, state: State, i: int, size: int) -> bool:
        """Whether a component takes so many readings as columns; if so, its state is made ready for it."""
        own, fused = state.components[i], self.fused[i]
        if fused is None:
            return False
        if isinstance(own, columns.State):
            return size == 0 or columns.kept_for_ever(fused, own) <= max(ENOUGH, LONG[1] * size)
        if size < FEW or columns.kept_for_ever(fused, own) > max(ENOUGH, LONG[0] * size):
            return False
        state.components[i] = columns.of_points(fused, own)
        return True

    def _take_columns(self, state: State, i: int, topic: str, batch: pa.RecordBatch) -> list[int]:
        """Give a batch to a component; the rows that are too late for it."""
        own, fused = state.components[i], self.fused[i]
        assert isinstance(own, columns.State) and fused is not None
        late = times(batch) < own.until
        if self.smcs[i].late == "apply" or not late.any():
            columns.take(fused, own, topic, batch)
            return []
        columns.take(fused, own, topic, batch.filter(pa.array(~late)))
        return [int(row) for row in np.flatnonzero(late)]

    def _take_points(self, state: State, i: int, topic: str, batch: pa.RecordBatch) -> list[int]:
        own = self._points(state, i)
        known = map(of_event, to_events(self.topics[topic], batch))
        return [row for row, one in enumerate(known) if not self._taken(i, own, one)]

    def _late(self, topic: str, batch: pa.RecordBatch, missed: Sequence[tuple[int, int]]) -> list[Transition]:
        """Rows that were too late for a component, in order."""
        if not missed:
            return []
        events = to_events(self.topics[topic], batch.take(pa.array([row for row, _ in missed])))
        return [
            Transition(event, "late", None, None, i) for event, (_, i) in zip(events, missed, strict=True)
        ]

    # --- a stretch of history alone ---

    def reduce(
        self, batches: Batches, *, closed: bool = True, latest: Instant = NEVER
    ) -> dict[str, pa.RecordBatch]:
        """Drop what no component looks at."""
        return mattering(self, batches, latest)

    def matters(self, topic: str, batch: pa.RecordBatch) -> Mask:
        """Which events some component looks at: of its topics, in the locations of a query."""
        return self.survey(topic, batch).matters

    def survey(self, topic: str, batch: pa.RecordBatch, *, closed: bool = False) -> Survey:
        """An event that one component looks at concerns those that build on it, too."""
        looked_at, nothing = self._looked_at(topic, batch), np.zeros(len(batch), np.bool_)
        concerned: dict[str, Mask] = {}
        outside = np.zeros(len(self.smcs), np.int64)
        for i in self._reach[topic]:
            smc = self.smcs[i]
            below = (concerned[name] for name in smc.topics if name in concerned)
            mine = np.logical_or.reduce([looked_at.get(i, nothing), *below])
            concerned[smc.topic] = concerned.get(smc.topic, nothing) | mine
            outside[i] = np.count_nonzero(~mine) if i in looked_at else 0
        return Survey(np.logical_or.reduce([nothing, *looked_at.values()]), outside)

    def _looked_at(self, topic: str, batch: pa.RecordBatch) -> dict[int, Mask]:
        """Which events each component that listens to a topic looks at."""
        rows = Rows(self.topics[topic], batch)
        return {i: _looked_at(smc, rows) for i, smc in enumerate(self.smcs) if topic in smc.topics}

    # --- state ---

    def due(self, state: State) -> Instant | None:
        instants = zip((self._due(state, i) for i in range(len(self.smcs))), self.waits, strict=True)
        return min((at + wait for at, wait in instants if at is not None), default=None)

    def _due(self, state: State, i: int) -> Instant | None:
        own, fused = state.components[i], self.fused[i]
        if isinstance(own, columns.State):
            assert fused is not None
            return columns.due(fused, own)
        return component.due(own)

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        return [
            (i, self.shown(id), one.since)
            for i, own in enumerate(state.components)
            for id, one in own.instances.items()
            if one.since is not None
        ]

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        return []

    def last(self, state: State, condition: int) -> list[Transition]:
        """The last event of a component, of each of its scopes.  [F75]"""
        known = ((id, one.last) for id, one in state.components[condition].instances.items())
        return [
            _transition(condition, Published(last, id, None), self.shown(id)) for id, last in known if last
        ]

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        """Let a component know the latest event of every publisher that it listens to.  [F53, F75]"""
        smc, own = self.smcs[condition], self._points(state, condition)
        others = (one.last for other in state.components for one in other.instances.values())
        for known in [*map(of_event, latest), *(last for last in others if last is not None)]:
            if known.topic in smc.topics:
                component.take(smc, own, known)
        return state

    def bits(self, state: State, condition: int) -> dict[str | None, Bit]:
        """What holds of a component: whose it is, and its last event."""
        held = state.components[condition].instances.items()
        return {
            self.shown(id): Bit(one.since, msgspec.msgpack.encode((id, one.last)))
            for id, one in held
            if one.since is not None
        }

    def with_bits(self, state: State, condition: int, bits: Iterable[Bit]) -> State:
        for bit in bits:
            id, last = msgspec.msgpack.decode(bit.seed, type=tuple[Id, Knowledge | None])
            state.components[condition].instances[id] = component.Instance(bit.since, last)
        return state

    def roused(self, state: State, condition: int, bits: Iterable[Bit]) -> State:
        own, smc = self._points(state, condition), self.smcs[condition]
        for bit in bits:
            id, _ = msgspec.msgpack.decode(bit.seed, type=tuple[Id, Knowledge | None])
            if not isinstance(smc.here, str) or id[0] in own.hosts:
                component.wake(own, own.until, id)
        return state

    def without(self, bit: Bit, attributes: Collection[str]) -> Bit:
        id, last = msgspec.msgpack.decode(bit.seed, type=tuple[Id, Knowledge | None])
        if last is not None:
            kept = {name: value for name, value in last.attributes.items() if name not in attributes}
            last = msgspec.structs.replace(last, attributes=kept)
        return Bit(bit.since, msgspec.msgpack.encode((id, last)))

    def is_fresh(self, state: State, condition: int) -> bool:
        own = state.components[condition]
        if isinstance(own, columns.State):
            return columns.is_fresh(own)
        return not (own.instances or own.held or own.hosts or any(own.info.points.values()))

    def to_bytes(self, state: State) -> bytes:
        return msgspec.msgpack.encode(state, enc_hook=to_ipc)

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        kept = msgspec.msgpack.decode(raw, type=State, dec_hook=lambda _, batch: from_ipc(batch))
        if was is None:
            return kept
        until = max((one.until for one in kept.components), default=BEGINNING)
        found = (component.State(until) if old is None else kept.components[old] for old in was)
        return State(list(found), kept.reached)


def _transition(condition: int, said: Published, scope: str | None) -> Transition:
    known = said.event
    return Transition(to_event(known), known.status, scope, said.since, condition)


def _heard(smc: Smc, said: Said) -> pa.RecordBatch:
    """Events of a component as those hear them that build on it."""
    batch = bare(said.events)
    if smc.exit is not None:
        batch = with_status(batch, said.statuses)
    if not smc.spawns:
        return batch
    names = pa.array([signature(smc, id) for id in said.ids], pa.string())
    whose = pa.DictionaryArray.from_arrays(pa.array(said.whose.astype(np.int32)), names)
    return batch.append_column(SIGNATURE, whose)


def _rows(condition: int, said: Said, shown: Callable[[Id], str | None]) -> pa.RecordBatch:
    """Events of a component as rows that are told."""
    scopes = pa.array([shown(id) for id in said.ids], pa.string())
    added = {
        machine.CONDITIONS: pa.array(np.full(len(said.whose), 1 << condition, np.uint64)),
        machine.STATUS: said.statuses,
        machine.SCOPE: scopes.take(pa.array(said.whose)),
        machine.SINCE: pa.array(said.since, mask=said.since == NEVER).cast(TIME),
    }
    return with_columns(said.events, added)


def _in_order(rows: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Rows by time, condition and scope."""
    whole = concatenate(rows) if len(rows) > 1 else rows[0]
    keys = {name: whole.column(name) for name in ("time", machine.CONDITIONS, machine.SCOPE)}
    keys[machine.SCOPE] = keys[machine.SCOPE].fill_null("")
    return whole.take(pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys]))


def _looked_at(smc: Smc, rows: Rows) -> Mask:
    """Which readings a component looks at."""
    if rows.topic.name == smc.here:
        return np.ones(len(rows), np.bool_)
    mine = [one for one in smc.inputs.values() if rows.topic.name in one.query.topics]
    return np.logical_or.reduce([_selected(one, rows, smc) for one in mine])


def _selected(one: Input, rows: Rows, smc: Smc) -> Mask:
    """Which readings lie in the locations of a query, and in a scope."""
    here = smc.here if isinstance(smc.here, tuple) else None
    inside = rows.looked_at(one.query, here)
    found = np.ones(len(rows), np.bool_) if inside is None else inside
    if one.key is None:
        return found
    if one.coded is not None:
        return found & (one.coded(rows).codes >= 0)
    known = to_knowledge(rows.topic, rows.batch)
    return found & np.array([one.key(k) is not None for k in known], np.bool_)
