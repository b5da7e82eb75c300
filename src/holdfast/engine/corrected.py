"""Corrections: a late event is inserted at its time, and transitions that were already emitted are corrected.

`Corrected` wraps an ordered machine. It stores the state of `within` ago and every event since. The scope of
a late event that is not older is replayed without the event and with it, and the difference is emitted. A
start that did not happen is `retracted`, an end that did not happen is `reopened`, and missing transitions
are emitted as usual.

The law: the emitted transitions, without those that were taken back, are those of the same events in order.
The late events of one batch are corrected together, so that no batch takes back what it emits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import msgspec
import pyarrow as pa

from ..model.batch import from_events, from_ipc, known_of, times, to_events, to_ipc
from ..model.event import TAKES_BACK, Event, Transition
from ..model.instant import BEGINNING, NEVER, Duration, Instant
from . import ordered
from .machine import Batches, Emission, Machine, Traits, Wrapper, in_time
from .ordered import Ordered

Keys = tuple[Sequence[str], ...]
"""Keys of scopes, level by level."""

_FEW = 1 << 10  # events that are stored before old ones are removed


class Divisible(Machine[Any]):
    """A machine whose state can be divided by scopes."""

    def meets(self, events: Iterable[Event]) -> Keys:
        """Return the keys of the scopes of events, level by level."""
        raise NotImplementedError

    def replace_scopes(self, state: Any, other: Any, keys: Keys) -> Any:
        """Return `state` with the scopes `keys` as they are in `other`. The state `other` is not changed."""
        raise NotImplementedError


class CorrectedState(NamedTuple):
    """The state of a machine that corrects its transitions.

    `now` is the state of the ordered machine. `base` is the state of the inner machine before the `recent`
    events, which are stored by their outermost scope in the order of arrival. `size` is the number of recent
    events, `least` their number when old events were last removed. Nothing before `floor` is corrected.
    """

    now: ordered.OrderedState
    base: Any
    recent: dict[str, list[Event]]
    size: int
    least: int
    floor: Instant


@dataclass(frozen=True)
class Corrected(Wrapper[CorrectedState]):
    """An ordered machine that corrects its transitions after late events. An event may be late by at most
    `within`."""

    inner: Ordered
    within: Duration

    @cached_property
    def traits(self) -> Traits:
        return Traits(uses_watermark=True, lateness=self.inner.wait + self.within)

    @property
    def _divisible(self) -> Divisible:
        return cast(Divisible, self.inner.inner)

    def inner_state(self, state: CorrectedState) -> Any:
        return state.now

    def with_inner_state(self, state: CorrectedState, inner: Any) -> CorrectedState:
        return state._replace(now=inner)

    def initial(self) -> CorrectedState:
        return CorrectedState(self.inner.initial(), self._divisible.initial(), {}, 0, 0, BEGINNING)

    # --- events ---

    def react(self, state: CorrectedState, event: Event) -> tuple[CorrectedState, list[Transition]]:
        if event.time < state.now.until:
            return self._late(state, [event])
        now, emitted = self.inner.react(state.now, event)
        return self._remember(state._replace(now=now), [event]), emitted

    def advance(self, state: CorrectedState, watermark: Instant) -> tuple[CorrectedState, list[Transition]]:
        now, emitted = self.inner.advance(state.now, watermark)
        return state._replace(now=now), emitted

    def step(
        self, state: CorrectedState, batches: Batches, watermark: Instant
    ) -> tuple[CorrectedState, Emission]:
        """Process a batch: correct after its late events, then process its other events up to the
        watermark."""
        name, corrections = self.inner.topic.name, list[Transition]()
        if (batch := batches.get(name)) is not None:
            late = times(batch) < state.now.until
            if late.any():
                missed = batch.filter(pa.array(late))
                relevant = self._divisible.relevance(name, missed).satisfies
                counts = relevant | (times(missed) < self.final(state))
                state, corrections = self._late(state, self._events(missed.filter(pa.array(counts))))
                batch = batch.filter(pa.array(~late))
            relevant = batch.filter(pa.array(self._divisible.relevance(name, batch).satisfies))
            state, batches = self._remember(state, self._events(relevant)), {name: batch}
        now, emission = self.inner.step(state.now, batches, watermark)
        return state._replace(now=now), Emission(emission.rows, corrections)

    def _events(self, batch: pa.RecordBatch) -> list[Event]:
        return list(to_events(self.inner.topic, batch))

    # --- late events ---

    def final(self, state: CorrectedState) -> Instant:
        """Return the time before which nothing is corrected any more."""
        return max(state.floor, state.now.until - self.within)

    def _late(
        self, state: CorrectedState, events: Sequence[Event]
    ) -> tuple[CorrectedState, list[Transition]]:
        """Insert late events at their times; emit the differences."""
        oldest, by_scope = self.final(state), dict[str, list[Event]]()
        missed = [Transition(event, "late", None, None, -1) for event in events if event.time < oldest]
        for event in events:
            if event.time >= oldest and (scope := self._scope(event)) is not None:
                by_scope.setdefault(scope, []).append(event)
        gone, fresh, inner = list[Transition](), list[Transition](), state.now.inner
        for scope, late in by_scope.items():
            processed = [event for event in state.recent.get(scope, ()) if event.time < state.now.until]
            keys = self._divisible.meets([*processed, *late])
            _, before = self._replay(state, keys, processed)
            part, after = self._replay(state, keys, [*processed, *late])
            inner = self._divisible.replace_scopes(inner, part, keys)
            taken_back, added = difference(before, after)
            gone, fresh = gone + taken_back, fresh + added
        state = state._replace(now=state.now._replace(inner=inner))
        state = self._remember(state, [event for some in by_scope.values() for event in some])
        return state, [*missed, *sorted(gone, key=in_time, reverse=True), *sorted(fresh, key=in_time)]

    def _replay(
        self, state: CorrectedState, keys: Keys, events: Iterable[Event]
    ) -> tuple[Any, list[Transition]]:
        """Return the state of scopes, and their transitions, as if `events` had been the recent events."""
        part, emitted = (
            self._divisible.replace_scopes(self._divisible.initial(), state.base, keys),
            list[Transition](),
        )
        for event in sorted(events, key=lambda event: event.order):
            part, some = self._divisible.react(part, event)
            emitted += some
        if self._divisible.traits.uses_watermark:
            part, some = self._divisible.advance(part, state.now.until)
            emitted += some
        return part, emitted

    # --- recent events ---

    def _scope(self, event: Event) -> str | None:
        """Return the key of the outermost scope of an event, or `None` if it is in no scope."""
        outermost = self._divisible.meets((event,))[-1]
        return outermost[0] if outermost else None

    def _remember(self, state: CorrectedState, events: Iterable[Event]) -> CorrectedState:
        """Store recent events, and remove old events when there are many."""
        size = state.size
        for event in events:
            if (scope := self._scope(event)) is not None:
                state.recent.setdefault(scope, []).append(event)
                size += 1
        state = state._replace(size=size)
        return self._sweep(state) if size > 2 * state.least + _FEW else state

    def _sweep(self, state: CorrectedState) -> CorrectedState:
        """Move the events that can no longer be corrected from the recent events into the base state."""
        oldest, base, recent = self.final(state), state.base, dict[str, list[Event]]()
        old: list[Event] = []
        for scope, events in state.recent.items():
            old += (event for event in events if event.time < oldest)
            if young := [event for event in events if event.time >= oldest]:
                recent[scope] = young
        for event in sorted(old, key=lambda event: event.order):
            base, _ = self._divisible.react(base, event)
        if self._divisible.traits.uses_watermark and oldest < NEVER:
            base, _ = self._divisible.advance(base, oldest)
        size = state.size - len(old)
        return state._replace(base=base, recent=recent, size=size, least=size)

    # --- relevance, active scopes, storage ---

    def due(self, state: CorrectedState) -> Instant | None:
        return self.inner.due(state.now)

    def is_initial(self, state: CorrectedState, condition: int) -> bool:
        if not self.inner.is_initial(state.now, condition):
            return False
        oldest = self.final(state)
        return all(event.time < oldest for events in state.recent.values() for event in events)

    def dump(self, state: CorrectedState) -> bytes:
        recent = from_events(self.inner.topic, [e for events in state.recent.values() for e in events])
        stored = self.inner.dump(state.now), self._divisible.dump(state.base), state.floor, to_ipc(recent)
        return msgspec.msgpack.encode(stored)

    def load(self, raw: bytes, was: Sequence[int | None] | None = None) -> CorrectedState:
        now, base, floor, recent = msgspec.msgpack.decode(raw, type=tuple[bytes, bytes, Instant, bytes])
        state = self.initial()._replace(
            now=self.inner.load(now, was), base=self._divisible.load(base, was), floor=floor
        )
        return self._remember(state, self._events(known_of(self.inner.topic, from_ipc(recent))))


def start_corrections(machine: Machine[Any], state: Any) -> Any:
    """Return the state of a new operator, which corrects nothing before its start."""
    if not isinstance(machine, Corrected):
        return state
    inner = machine.inner.inner
    return without_corrections(state, inner.load(inner.dump(state.now.inner)))


def without_corrections(state: Any, base: Any) -> Any:
    """Return a state after which no earlier transition is corrected.

    `base` is the present state of the inner machine. States of machines without corrections are returned
    unchanged.
    """
    if not isinstance(state, CorrectedState):
        return state
    until = state.now.until
    held = {scope: [e for e in events if e.time >= until] for scope, events in state.recent.items()}
    recent = {scope: events for scope, events in held.items() if events}
    size = sum(map(len, recent.values()))
    return state._replace(base=base, recent=recent, size=size, least=size, floor=until)


def difference(
    before: Sequence[Transition], after: Sequence[Transition]
) -> tuple[list[Transition], list[Transition]]:
    """Return the transitions to take back and the transitions to add, which lead from one list to the other.

    A transition `known` cannot be taken back. It is added only if it is the last transition of its scope.
    """
    last = {(one.condition, one.scope): one for one in after}
    counts, fresh = Counter(map(_what, before)), list[Transition]()
    for one in after:
        if counts[_what(one)]:
            counts[_what(one)] -= 1
        elif one.status != "known" or one is last[one.condition, one.scope]:
            fresh.append(one)
    gone: list[Transition] = []
    for one in reversed(before):
        if counts[_what(one)] and one.status in TAKES_BACK:
            counts[_what(one)] -= 1
            gone.append(one._replace(status=TAKES_BACK[one.status]))
    return gone, fresh


def _what(transition: Transition) -> tuple[Any, ...]:
    """Return the content of a transition. Equal transitions have equal contents, even if they contain NaN."""
    return (*transition[1:], repr(transition.event))
