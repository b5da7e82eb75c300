"""Ordered delivery: hold events back until event time has passed them, then take them in order.

Wraps any machine of one topic.  An event is processed once time is more than ``wait`` beyond it; it is
late if time was so already when it came [F13].  Late events leave as transitions with status
``late``, or, with ``late apply``, go to the machine as they come.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from ..model.batch import (
    compact,
    concatenate,
    from_events,
    from_ipc,
    in_order,
    known_of,
    times,
    to_events,
    to_ipc,
)
from ..model.event import Event, Transition
from ..model.instant import BEGINNING, NEVER, Duration, Instant
from ..model.qos import Late
from ..model.topic import Topic
from .machine import EVERY, Batches, Machine, Mask, Noting, Survey, Told, marked, mattering

Held = tuple[tuple[Instant, str, int], int, Event]


class State(NamedTuple):
    """``held`` is a heap of single events, ``batches`` what came in batches; never both.  What is older
    than ``until`` has been processed."""

    inner: Any
    until: Instant
    arrived: int
    held: list[Held]
    batches: list[pa.RecordBatch]
    since: list[pa.RecordBatch] | None = None
    """What has begun to wait, in a state that notes what changes."""


@dataclass(frozen=True)
class Ordered:
    """The machine ``inner``, fed in the order of (time, source, sequence)."""

    inner: Machine
    topic: Topic
    wait: Duration
    late: Late

    is_timed = True
    margin = None
    compacts = False

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self.inner.topics

    @property
    def strictest(self) -> Duration | None:
        return self.wait if self.late == "drop" else None

    def initial(self) -> State:
        return State(self.inner.initial(), BEGINNING, 0, [], [])

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        if event.time < state.until:
            if self.late == "drop":
                return state, [Transition(event, "late", None, None, -1)]
            inner, out = self.inner.react(state.inner, event)
            return state._replace(inner=inner), out
        if state.since is not None:
            state.since.append(from_events(self.topic, [event]))
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
        state, until = self._singly(state), self._behind(until)
        inner, out = state.inner, []
        while state.held and state.held[0][2].time < until:
            inner, passed = self.inner.react(inner, heapq.heappop(state.held)[2])
            out += passed
        if self.inner.is_timed:
            inner, passed = self.inner.advance(inner, until)
            out += passed
        return state._replace(inner=inner, until=max(state.until, until)), out

    def _behind(self, until: Instant) -> Instant:
        """Up to when events are processed once time has come as far as ``until``."""
        return until if until in (BEGINNING, NEVER) else until - self.wait

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, Told]:
        state, until = self._in_batches(state), self._behind(until)
        inner, name = state.inner, self.topic.name
        held, out = state.batches, list[pa.RecordBatch]()
        if name in batches:
            inner, batch = self._in_time(state._replace(inner=inner), batches[name], out)
            held = [*held, batch]  # one without events, too: it says how far time has come
            if state.since is not None:
                state.since.append(batch)
        if _earliest(held) < until:
            pool = concatenate(held)
            due = times(pool) < until
            ready = in_order(pool.filter(pa.array(due)))
            held = [compact(pool.filter(pa.array(~due)))]
            inner, told = self.inner.step(inner, {name: ready}, until)
            out.append(told.rows[name])
        elif self.inner.is_timed:
            inner, told = self.inner.step(
                inner, {name: batches[name].slice(0, 0)} if name in batches else {}, until
            )
            out += told.rows.values()
        waiting = [part for part in held if len(part)]
        state = State(inner, max(state.until, until), state.arrived, [], waiting, state.since)
        return state, Told({name: concatenate(out) if len(out) > 1 else out[0]} if out else {})

    def _in_time(
        self, state: State, batch: pa.RecordBatch, out: list[pa.RecordBatch]
    ) -> tuple[Any, pa.RecordBatch]:
        """The events that are not late; of those that are, what is said goes to ``out``."""
        late = times(batch) < state.until
        if not late.any():
            return state.inner, batch
        missed, batch = batch.filter(pa.array(late)), batch.filter(pa.array(~late))
        if self.late == "drop":
            out.append(marked(missed, np.full(len(missed), EVERY), "late"))
            return state.inner, batch
        inner, told = self.inner.step(state.inner, {self.topic.name: missed}, BEGINNING)
        out.append(told.rows[self.topic.name])
        return inner, batch

    def _in_batches(self, state: State) -> State:
        """The state with single events held as a batch."""
        if not state.held:
            return state
        events = [event for _, _, event in sorted(state.held, key=lambda held: held[1])]
        return state._replace(held=[], batches=[from_events(self.topic, events)])

    def reduce(
        self, batches: Batches, *, closed: bool = True, latest: Instant = NEVER
    ) -> dict[str, pa.RecordBatch]:
        """What arrives is not in order yet, so no part of it is closed."""
        return mattering(self, batches, latest)

    def matters(self, topic: str, batch: pa.RecordBatch) -> Mask:
        return self.inner.matters(topic, batch)

    def survey(self, topic: str, batch: pa.RecordBatch, *, closed: bool = False) -> Survey:
        return self.inner.survey(topic, batch)

    def due(self, state: State) -> Instant | None:
        held = state.held[0][2].time if state.held else _earliest(state.batches)
        inner = self.inner.due(state.inner)
        first = held if inner is None else min(held, inner)
        return None if first == NEVER else first + self.wait

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        return self.inner.holding(state.inner)

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        return self.inner.unknown(state.inner)

    def last(self, state: State, condition: int) -> list[Transition]:
        return self.inner.last(state.inner, condition)

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state._replace(inner=self.inner.inform(state.inner, condition, latest))

    def is_fresh(self, state: State, condition: int) -> bool:
        return not state.held and not state.batches and self.inner.is_fresh(state.inner, condition)

    def to_bytes(self, state: State) -> bytes:
        return _kept(state, self.inner.to_bytes(state.inner), self._in_batches(state).batches)

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        inner, until, arrived, held = msgspec.msgpack.decode(raw, type=_Kept)
        return State(self.inner.from_bytes(inner, was), until, arrived, [], self._read(held))

    def _read(self, held: bytes | None) -> list[pa.RecordBatch]:
        return [] if held is None else [known_of(self.topic, from_ipc(held))]

    # --- what has changed: what the machine inside says, and what has begun to wait ---

    def noting(self, state: State) -> State:
        if not isinstance(self.inner, Noting):
            return state
        return state._replace(inner=self.inner.noting(state.inner), since=[])

    def noted(self, state: State) -> bytes | None:
        if state.since is None or not isinstance(self.inner, Noting):
            return None
        since, inner = _waiting(state.since, state.until), self.inner.noted(state.inner)
        state.since.clear()
        return None if inner is None else _kept(state, inner, since)

    def renewed(self, state: State, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        assert isinstance(self.inner, Noting)
        changed, until, arrived, since = msgspec.msgpack.decode(raw, type=_Kept)
        inner = self.inner.renewed(state.inner, changed, was) if changed else state.inner
        batches = [*self._in_batches(state).batches, *self._read(since)]
        return State(inner, until, arrived, [], _waiting(batches, until), state.since)


_Kept = tuple[bytes, int, int, bytes | None]
"""The state inside, up to when events have been processed, how many came, and those that wait."""


def _kept(state: State, inner: bytes, held: list[pa.RecordBatch]) -> bytes:
    raw = to_ipc(concatenate(held)) if held else None
    return msgspec.msgpack.encode((inner, state.until, state.arrived, raw))


def _waiting(batches: Iterable[pa.RecordBatch], until: Instant) -> list[pa.RecordBatch]:
    """The events that have not been processed, where those before an instant have."""
    left = (batch.filter(pa.array(times(batch) >= until)) for batch in batches)
    return [batch for batch in left if len(batch)]


def _earliest(batches: list[pa.RecordBatch]) -> Instant:
    return min((int(times(batch).min()) for batch in batches if len(batch)), default=NEVER)
