"""Ordered delivery: hold events back until event time has passed them, then take them in order.

Wraps any machine.  An event is processed once ``until`` is beyond its time; it is late if it is
older than the ``until`` of an earlier step [F13].  Late events leave as transitions with status
``late``, or, with ``late apply``, go to the machine as they come.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..model.batch import (
    TIME,
    TYPES,
    concatenate,
    from_events,
    from_ipc,
    in_order,
    reached,
    stood_for,
    times,
    to_events,
    to_ipc,
    with_progress,
)
from ..model.event import STATUSES, Event, Transition
from ..model.instant import BEGINNING, NEVER, Instant
from ..model.qos import Late
from ..model.topic import Topic
from .machine import CONDITION, SCOPE, SINCE, STATUS, Machine

Held = tuple[tuple[Instant, str, int], int, Event]


class State(NamedTuple):
    """``held`` is a heap of single events, ``batches`` what came in batches; never both."""

    inner: Any
    until: Instant
    arrived: int
    held: list[Held]
    batches: list[pa.RecordBatch]


@dataclass(frozen=True)
class Ordered:
    """The machine ``inner``, fed in the order of (time, source, sequence)."""

    inner: Machine
    topic: Topic
    late: Late

    def initial(self) -> State:
        return State(self.inner.initial(), BEGINNING, 0, [], [])

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        if event.time < state.until:
            if self.late == "drop":
                return state, [Transition(event, "late", None, None, -1)]
            inner, out = self.inner.react(state.inner, event)
            return state._replace(inner=inner), out
        return self._hold(self._singly(state), event), []

    @staticmethod
    def _hold(state: State, event: Event) -> State:
        heapq.heappush(state.held, (event.order, state.arrived, event))
        return state._replace(arrived=state.arrived + 1)

    def _singly(self, state: State) -> State:
        """The state with what came in batches held as single events."""
        batches, state = state.batches, state._replace(batches=[])
        for batch in batches:
            for event in to_events(self.topic, batch):
                state = self._hold(state, event)
        return state

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        state = self._singly(state)
        inner, out = state.inner, []
        while state.held and state.held[0][2].time < until:
            inner, passed = self.inner.react(inner, heapq.heappop(state.held)[2])
            out += passed
        return state._replace(inner=inner, until=max(state.until, until)), out

    def step(self, state: State, batch: pa.RecordBatch, until: Instant) -> tuple[State, pa.RecordBatch]:
        state = self._in_batches(state)
        inner = state.inner
        out: list[pa.RecordBatch] = []
        late = times(batch) < state.until
        if late.any():
            missed, batch = batch.filter(pa.array(late)), batch.filter(pa.array(~late))
            if self.late == "drop":
                out.append(_marked(missed))
            else:
                inner, passed = self.inner.step(inner, missed, BEGINNING)
                out.append(passed)
        batches = [*state.batches, batch] if len(batch) else state.batches
        ready = batch.slice(0, 0)
        if _earliest(batches) < until:
            pool = concatenate(batches)
            due = times(pool) < until
            ready, rest = in_order(pool.filter(pa.array(due))), pool.filter(pa.array(~due))
            batches = [rest] if len(rest) else []
        inner, passed = self.inner.step(inner, ready, until)
        out.append(passed)
        state = State(inner, max(state.until, until), state.arrived, [], batches)
        return state, concatenate(out) if len(out) > 1 else passed

    def _in_batches(self, state: State) -> State:
        """The state with single events held as a batch."""
        if not state.held:
            return state
        events = [event for _, _, event in sorted(state.held, key=lambda held: held[1])]
        return state._replace(held=[], batches=[from_events(self.topic, events)])

    def reduce(self, batch: pa.RecordBatch, *, closed: bool = True, safe: Instant = NEVER) -> pa.RecordBatch:
        """What arrives is not in order yet, so no part of it is closed; and where late events are to
        be told, any event older than ``safe`` may be one."""
        kept = batch.filter(pa.array(self.matters(batch, safe)))
        return with_progress(kept, stood_for(batch), reached(batch))

    def matters(self, batch: pa.RecordBatch, safe: Instant = NEVER) -> NDArray[np.bool_]:
        """Nothing at or after ``safe`` can be late: ``until`` has not passed it when the batch comes."""
        mattering = self.inner.matters(batch)
        return mattering if self.late == "apply" else mattering | (times(batch) < safe)

    def outside(self, batch: pa.RecordBatch) -> int:
        return self.inner.outside(batch)

    def due(self, state: State) -> Instant | None:
        if state.held:
            return state.held[0][2].time
        return _earliest(state.batches) if state.batches else None

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        return self.inner.holding(state.inner)

    def is_fresh(self, state: State, condition: int) -> bool:
        return not state.held and not state.batches and self.inner.is_fresh(state.inner, condition)

    def to_bytes(self, state: State) -> bytes:
        state = self._in_batches(state)
        held = to_ipc(concatenate(state.batches)) if state.batches else None
        return msgspec.msgpack.encode((self.inner.to_bytes(state.inner), state.until, state.arrived, held))

    def from_bytes(self, raw: bytes, picked: Sequence[int] | None = None) -> State:
        kept = msgspec.msgpack.decode(raw, type=tuple[bytes, int, int, bytes | None])
        inner, until, arrived, held = kept
        batches = [] if held is None else [_known(self.topic, from_ipc(held))]
        return State(self.inner.from_bytes(inner, picked), until, arrived, [], batches)


def _known(topic: Topic, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without attributes that have another kind now."""
    kinds = {a.name: TYPES[a.kind] for a in topic.attributes}
    return batch.select([f.name for f in batch.schema if kinds.get(f.name, f.type) == f.type])


def _earliest(batches: list[pa.RecordBatch]) -> Instant:
    return min((int(times(batch).min()) for batch in batches), default=NEVER)


def _marked(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Late events as transitions that concern every condition of the machine."""
    size = len(batch)
    late = np.full(size, STATUSES.index("late"), np.int8)
    added = {
        CONDITION: pa.array(np.full(size, -1, np.int8)),
        STATUS: pa.DictionaryArray.from_arrays(late, list(STATUSES)),
        SCOPE: pa.nulls(size, pa.string()),
        SINCE: pa.nulls(size, TIME),
    }
    return pa.RecordBatch.from_arrays([*batch.columns, *added.values()], names=[*batch.schema.names, *added])
