"""The machine of components that build on one another.

A batch of a detector is one batch for each topic.  Events are put in the order of their time before
they are looked at, so it does not matter how a history is cut into batches, nor in which order topics
and rows come: only how far time has come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...model.batch import reached, stood_for, to_events, with_progress
from ...model.event import Event, Transition
from ...model.instant import BEGINNING, NEVER, Duration, Instant
from ...model.query import Pool, Whole
from ...model.topic import Topic
from . import component
from .component import Id, Told
from .dag import levels
from .knowledge import Knowledge, of_event, to_event
from .query import is_looked_at
from .smc import Smc

Batches = Mapping[str, pa.RecordBatch]


class State(msgspec.Struct):
    """The state of every component, and the latest time that any event had."""

    components: list[component.State]
    reached: Instant = BEGINNING


def scope(id: Id) -> str | None:
    """A replica and its key as people read them."""
    return ",".join(filter(None, id)) or None


@dataclass(frozen=True)
class Detector:
    """The machine.  ``topics`` are those of readings; ``shown`` turns the id of a replica or spawned
    component into the scope that people read."""

    smcs: tuple[Smc, ...]
    topics: Mapping[str, Topic]
    shown: Callable[[Id], str | None] = scope

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

    def adopted(self, state: State, was: Sequence[int | None], latest: Sequence[Knowledge] = ()) -> State:
        """The state of a machine whose component ``i`` had the number ``was[i]``; one that had none
        starts afresh, with the latest event of every publisher that it listens to.  [F53, F75]"""
        until = max((one.until for one in state.components), default=BEGINNING)
        found = State([], state.reached)
        for smc, number in zip(self.smcs, was, strict=True):
            if number is not None:
                found.components.append(state.components[number])
                continue
            fresh = component.State(until)
            for known in latest:
                if known.topic in smc.topics:
                    component.take(smc, fresh, known)
            found.components.append(fresh)
        return found

    # --- events ---

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        """Take one event; a late one is told, or goes into the cube as it comes."""
        state.reached = max(state.reached, event.time)
        known = of_event(event)
        late = []
        for i, (smc, own) in enumerate(zip(self.smcs, state.components, strict=True)):
            if event.topic not in smc.topics:
                continue
            if smc.late == "drop" and component.is_late(own, known):
                late.append(Transition(event, "late", None, None, i))
            else:
                component.take(smc, own, known)
        return state, late

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        """Let event time come as far as ``until``; if nothing more will come, to the last event."""
        out: list[Transition] = []
        published: list[Knowledge] = []
        for i in self.order:
            smc, own = self.smcs[i], state.components[i]
            for known in published:
                if known.topic in smc.topics:
                    component.take(smc, own, known)
            told = component.advance(smc, own, state.reached + 1 if until == NEVER else until - self.waits[i])
            published += (said.event for said in told)
            out += (self._transition(i, said) for said in told)
        return state, sorted(out, key=lambda t: (t.event.time, t.condition, t.scope or ""))

    def _transition(self, condition: int, said: Told) -> Transition:
        known = said.event
        return Transition(to_event(known), known.status, self.shown(said.id), said.since, condition)

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, list[Transition]]:
        """Take a batch of each topic, after which event time has come as far as ``until``."""
        late: list[Transition] = []
        for topic, batch in batches.items():
            for event in to_events(self.topics[topic], batch):
                state, some = self.react(state, event)
                late += some
            latest = reached(batch)
            state.reached = state.reached if latest is None else max(state.reached, latest)
        state, out = self.advance(state, until)
        return state, late + out

    # --- a stretch of history alone ---

    def reduce(self, batches: Batches, *, closed: bool = True) -> dict[str, pa.RecordBatch]:
        """Drop what no component looks at; batches still say how far time has come."""
        kept = {t: b.filter(pa.array(self.matters(t, b))) for t, b in batches.items() if t in self.topics}
        return {t: with_progress(b, stood_for(batches[t]), reached(batches[t])) for t, b in kept.items()}

    def matters(self, topic: str, batch: pa.RecordBatch) -> NDArray[np.bool_]:
        """Which events some component looks at: of its topics, in the locations of a query."""
        mine = [smc for smc in self.smcs if topic in smc.topics]
        if any(_looks_everywhere(smc, topic) for smc in mine):
            return np.ones(len(batch), np.bool_)
        known = (of_event(event) for event in to_events(self.topics[topic], batch))
        return np.fromiter((any(_looks_at(smc, k) for smc in mine) for k in known), np.bool_, len(batch))

    def outside(self, topic: str, batch: pa.RecordBatch) -> NDArray[np.int64]:
        """For each component, how many events of a topic lie in no scope or location of it."""
        known = [of_event(event) for event in to_events(self.topics[topic], batch)]
        return np.array(
            [sum(not _looks_at(smc, k) for k in known) if topic in smc.topics else 0 for smc in self.smcs]
        )

    # --- state ---

    def due(self, state: State) -> Instant | None:
        instants = (component.due(own) for own in state.components)
        return min((at for at in instants if at is not None), default=None)

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        return [
            (i, self.shown(id), one.since)
            for i, own in enumerate(state.components)
            for id, one in own.instances.items()
            if one.since is not None
        ]

    def last(self, state: State, condition: int) -> list[Transition]:
        """The last event of a component, of each of its scopes.  [F75]"""
        instances = state.components[condition].instances.items()
        return [self._transition(condition, Told(one.last, id, None)) for id, one in instances if one.last]

    def latest(self, state: State) -> Iterator[Knowledge]:
        """The last event of every component."""
        for own in state.components:
            yield from (one.last for one in own.instances.values() if one.last is not None)

    def is_fresh(self, state: State, condition: int) -> bool:
        own = state.components[condition]
        return not (own.instances or own.held or own.hosts or any(own.info.points.values()))

    def to_bytes(self, state: State) -> bytes:
        return msgspec.msgpack.encode(state)

    def from_bytes(self, raw: bytes, picked: Sequence[int] | None = None) -> State:
        kept = msgspec.msgpack.decode(raw, type=State)
        return kept if picked is None else State([kept.components[i] for i in picked], kept.reached)


def _looks_everywhere(smc: Smc, topic: str) -> bool:
    """Whether it looks at every event of a topic, wherever and whosever it is."""
    return topic == smc.here or any(
        topic in one.query.topics and one.key is None and isinstance(one.query.location, Pool)
        and isinstance(one.query.location.group, Whole)
        for one in smc.inputs.values()
    )  # fmt: skip


def _looks_at(smc: Smc, known: Knowledge) -> bool:
    here = smc.here if isinstance(smc.here, tuple) else None
    return known.topic == smc.here or any(
        is_looked_at(one.query, known, here) and (one.key is None or one.key(known) is not None)
        for one in smc.inputs.values()
    )
