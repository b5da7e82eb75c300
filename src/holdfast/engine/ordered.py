"""Ordered delivery: events wait until the watermark has passed them, and are then processed in order.

`Ordered` wraps any machine of one topic. An event is processed once the watermark is more than `wait` beyond
it. It is late if this is already so when the event arrives [F13]. A late event is emitted with the status
`late` or, with `late apply`, processed on arrival.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
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
from .machine import EVERY, Batches, Emission, Machine, Relevance, Traits, Wrapper, mark_rows

Held = tuple[tuple[Instant, str, int], int, Event]
"""A waiting event with its sort key and the number of its arrival."""


class OrderedState(NamedTuple):
    """The state of an ordered machine: the state of the inner machine, and the waiting events.

    Events wait in `held`, a heap of single events, or in `batches`, never in both. Everything before `until`
    has been processed.
    """

    inner: Any
    until: Instant
    arrived: int
    held: list[Held]
    batches: list[pa.RecordBatch]
    since: list[pa.RecordBatch] | None = None
    """The events that started to wait since the last delta; `None` if changes are not tracked."""


@dataclass(frozen=True)
class Ordered(Wrapper[OrderedState]):
    """A machine whose inner machine receives its events in the order of (time, source, sequence)."""

    inner: Machine[Any]
    topic: Topic
    wait: Duration
    late: Late

    has_deltas = True

    @cached_property
    def traits(self) -> Traits:
        return Traits(uses_watermark=True, lateness=self.wait if self.late == "drop" else None)

    def inner_state(self, state: OrderedState) -> Any:
        return state.inner

    def with_inner_state(self, state: OrderedState, inner: Any) -> OrderedState:
        return state._replace(inner=inner)

    def initial(self) -> OrderedState:
        return OrderedState(self.inner.initial(), BEGINNING, 0, [], [])

    def react(self, state: OrderedState, event: Event) -> tuple[OrderedState, list[Transition]]:
        """Store an event until the watermark has passed it.

        A late event is emitted with the status `late` or, with `late apply`, processed at once.
        """
        if event.time < state.until:
            if self.late == "drop":
                return state, [Transition(event, "late", None, None, -1)]
            inner, out = self.inner.react(state.inner, event)
            return state._replace(inner=inner), out
        if state.since is not None:
            state.since.append(from_events(self.topic, [event]))
        return self._hold(self._singly(state), event), []

    @staticmethod
    def _hold(state: OrderedState, event: Event) -> OrderedState:
        heapq.heappush(state.held, (event.order, state.arrived, event))
        return state._replace(arrived=state.arrived + 1)

    def _singly(self, state: OrderedState) -> OrderedState:
        """Return the state with all waiting events as single events."""
        batches, state = state.batches, state._replace(batches=[])
        for batch in batches:
            for event in to_events(self.topic, batch):
                state = self._hold(state, event)
        return state

    def advance(self, state: OrderedState, watermark: Instant) -> tuple[OrderedState, list[Transition]]:
        """Process the stored events that the watermark has passed, in order."""
        state, watermark = self._singly(state), self._behind(watermark)
        inner, out = state.inner, []
        while state.held and state.held[0][2].time < watermark:
            inner, passed = self.inner.react(inner, heapq.heappop(state.held)[2])
            out += passed
        if self.inner.traits.uses_watermark:
            inner, passed = self.inner.advance(inner, watermark)
            out += passed
        return state._replace(inner=inner, until=max(state.until, watermark)), out

    def _behind(self, until: Instant) -> Instant:
        """Return the time before which events are processed at a watermark."""
        return until if until in (BEGINNING, NEVER) else until - self.wait

    def step(
        self, state: OrderedState, batches: Batches, watermark: Instant
    ) -> tuple[OrderedState, Emission]:
        """Store the events of a batch, then process all events that the watermark has passed, in order."""
        state, watermark = self._in_batches(state), self._behind(watermark)
        inner, name = state.inner, self.topic.name
        held, out = state.batches, list[pa.RecordBatch]()
        if name in batches:
            inner, batch = self._in_time(state._replace(inner=inner), batches[name], out)
            held = [*held, batch]  # even a batch without events, which carries the watermark
            if state.since is not None:
                state.since.append(batch)
        if _earliest(held) < watermark:
            pool = concatenate(held)
            due = times(pool) < watermark
            ready = in_order(pool.filter(pa.array(due)))
            held = [compact(pool.filter(pa.array(~due)))]
            inner, emission = self.inner.step(inner, {name: ready}, watermark)
            out.append(emission.rows[name])
        elif self.inner.traits.uses_watermark:
            inner, emission = self.inner.step(
                inner, {name: batches[name].slice(0, 0)} if name in batches else {}, watermark
            )
            out += emission.rows.values()
        waiting = [part for part in held if len(part)]
        state = OrderedState(inner, max(state.until, watermark), state.arrived, [], waiting, state.since)
        return state, Emission({name: concatenate(out) if len(out) > 1 else out[0]} if out else {})

    def _in_time(
        self, state: OrderedState, batch: pa.RecordBatch, out: list[pa.RecordBatch]
    ) -> tuple[Any, pa.RecordBatch]:
        """Return the inner state and the events that are not late. The output for late events is added to
        `out`."""
        late = times(batch) < state.until
        if not late.any():
            return state.inner, batch
        missed, batch = batch.filter(pa.array(late)), batch.filter(pa.array(~late))
        if self.late == "drop":
            out.append(mark_rows(missed, np.full(len(missed), EVERY), "late"))
            return state.inner, batch
        inner, emission = self.inner.step(state.inner, {self.topic.name: missed}, BEGINNING)
        out.append(emission.rows[self.topic.name])
        return inner, batch

    def _in_batches(self, state: OrderedState) -> OrderedState:
        """Return the state with waiting single events as a batch."""
        if not state.held:
            return state
        events = [event for _, _, event in sorted(state.held, key=lambda held: held[1])]
        return state._replace(held=[], batches=[from_events(self.topic, events)])

    def relevance(self, topic: str, batch: pa.RecordBatch) -> Relevance:
        found = self.inner.relevance(topic, batch)
        return Relevance(found.satisfies, found.outside)  # events arrive in any order: no part is closed

    def due(self, state: OrderedState) -> Instant | None:
        held = state.held[0][2].time if state.held else _earliest(state.batches)
        inner = self.inner.due(state.inner)
        first = held if inner is None else min(held, inner)
        return None if first == NEVER else first + self.wait

    def is_initial(self, state: OrderedState, condition: int) -> bool:
        return not state.held and not state.batches and self.inner.is_initial(state.inner, condition)

    def dump(self, state: OrderedState) -> bytes:
        return _encode(state, self.inner.dump(state.inner), self._in_batches(state).batches)

    def load(self, raw: bytes, was: Sequence[int | None] | None = None) -> OrderedState:
        inner, until, arrived, held = msgspec.msgpack.decode(raw, type=_StoredOrdered)
        return OrderedState(self.inner.load(inner, was), until, arrived, [], self._read(held))

    def _read(self, held: bytes | None) -> list[pa.RecordBatch]:
        return [] if held is None else [known_of(self.topic, from_ipc(held))]

    # --- deltas: that of the inner machine, and the events held back since ---

    def track_changes(self, state: OrderedState) -> OrderedState:
        if not self.inner.has_deltas:
            return state
        return state._replace(inner=self.inner.track_changes(state.inner), since=[])

    def delta(self, state: OrderedState) -> bytes | None:
        if state.since is None or not self.inner.has_deltas:
            return None
        since, inner = _waiting(state.since, state.until), self.inner.delta(state.inner)
        state.since.clear()
        return None if inner is None else _encode(state, inner, since)

    def apply_delta(
        self, state: OrderedState, raw: bytes, was: Sequence[int | None] | None = None
    ) -> OrderedState:
        """Return the state with a delta applied: changes of the inner machine, and further waiting events."""
        assert self.inner.has_deltas
        changed, until, arrived, since = msgspec.msgpack.decode(raw, type=_StoredOrdered)
        inner = self.inner.apply_delta(state.inner, changed, was) if changed else state.inner
        batches = [*self._in_batches(state).batches, *self._read(since)]
        return OrderedState(inner, until, arrived, [], _waiting(batches, until), state.since)


_StoredOrdered = tuple[bytes, int, int, bytes | None]
"""The format of snapshots and deltas.

The parts are the inner state, the time before which everything is processed, the number of arrivals, and the
waiting events.
"""


def _encode(state: OrderedState, inner: bytes, held: list[pa.RecordBatch]) -> bytes:
    """Return the inner state, the clock and the waiting events as bytes."""
    raw = to_ipc(concatenate(held)) if held else None
    return msgspec.msgpack.encode((inner, state.until, state.arrived, raw))


def _waiting(batches: Iterable[pa.RecordBatch], until: Instant) -> list[pa.RecordBatch]:
    """Return the events at or after a time."""
    left = (batch.filter(pa.array(times(batch) >= until)) for batch in batches)
    return [batch for batch in left if len(batch)]


def _earliest(batches: list[pa.RecordBatch]) -> Instant:
    """Return the earliest time in batches; `NEVER` if they have no events."""
    return min((int(times(batch).min()) for batch in batches if len(batch)), default=NEVER)
