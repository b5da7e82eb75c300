"""Corrections: a late event is put in its place, and what was told before is made good.

Wraps an ordered machine, and remembers what was known ``within`` ago and every event since.  A late event
that is no older joins them: its scope goes through its events without it and with it, and what differs is
told.  A start that is none is ``retracted`` and an end that is none ``reopened``; what is so and was not
told is told as in time.

The law: what was told, less what was taken back, is what would have been told of the same events in order.
What a batch corrects is told at once, so that nothing is told that the same batch would take back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

import msgspec
import pyarrow as pa

from ..model.batch import from_events, from_ipc, known_of, times, to_events, to_ipc
from ..model.event import TAKES_BACK, Event, Transition
from ..model.instant import BEGINNING, NEVER, Duration, Instant
from ..model.topic import Topic
from . import ordered
from .machine import Batches, Machine, Mask, Survey, Told, in_time, mattering
from .ordered import Ordered

Keys = tuple[Sequence[str], ...]
"""Keys of scopes, level by level."""

_FEW = 1 << 10  # events that are remembered before it is looked which have become too old


class Divisible(Machine, Protocol):
    """A machine that can be asked about some scopes alone."""

    def meets(self, events: Iterable[Event]) -> Keys:
        """The scopes that events come to."""

    def taken_over(self, state: Any, other: Any, keys: Keys) -> Any:
        """A state that knows of some scopes what another knows; that one may still be used."""


class State(NamedTuple):
    """``now`` is what is known now.  ``base`` is what was known before the ``recent`` events, which are kept
    by their outermost scope, as they came; so many are there, and so many were when the oldest had been taken
    into the base.  Before ``floor`` nothing is corrected."""

    now: ordered.State
    base: Any
    recent: dict[str, list[Event]]
    size: int
    least: int
    floor: Instant


@dataclass(frozen=True)
class Corrected:
    """The machine ``ordered``, which corrects what it has told by events up to ``within`` too late."""

    ordered: Ordered
    within: Duration

    is_timed = True
    margin = None
    compacts = False

    @property
    def topics(self) -> Mapping[str, Topic]:
        return self.ordered.topics

    @property
    def strictest(self) -> Duration | None:
        return self.ordered.wait + self.within

    @property
    def _inner(self) -> Divisible:
        return cast(Divisible, self.ordered.inner)

    def initial(self) -> State:
        return State(self.ordered.initial(), self._inner.initial(), {}, 0, 0, BEGINNING)

    # --- events ---

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        if event.time < state.now.until:
            return self._late(state, [event])
        now, said = self.ordered.react(state.now, event)
        return self._remember(state._replace(now=now), [event]), said

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        now, said = self.ordered.advance(state.now, until)
        return state._replace(now=now), said

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, Told]:
        name, said = self.ordered.topic.name, list[Transition]()
        if (batch := batches.get(name)) is not None:
            late = times(batch) < state.now.until
            if late.any():
                missed = batch.filter(pa.array(late))
                counts = self._inner.matters(name, missed) | (times(missed) < self.final(state))
                state, said = self._late(state, self._events(missed.filter(pa.array(counts))))
                batch = batch.filter(pa.array(~late))
            matters = batch.filter(pa.array(self._inner.matters(name, batch)))
            state, batches = self._remember(state, self._events(matters)), {name: batch}
        now, told = self.ordered.step(state.now, batches, until)
        return state._replace(now=now), Told(told.rows, said)

    def _events(self, batch: pa.RecordBatch) -> list[Event]:
        return list(to_events(self.ordered.topic, batch))

    # --- what comes late ---

    def final(self, state: State) -> Instant:
        """What happened before stands: it is too late to correct it."""
        return max(state.floor, state.now.until - self.within)

    def _late(self, state: State, events: Sequence[Event]) -> tuple[State, list[Transition]]:
        """Put late events in their places."""
        oldest, by_scope = self.final(state), dict[str, list[Event]]()
        missed = [Transition(event, "late", None, None, -1) for event in events if event.time < oldest]
        for event in events:
            if event.time >= oldest and (scope := self._scope(event)) is not None:
                by_scope.setdefault(scope, []).append(event)
        gone, fresh, inner = list[Transition](), list[Transition](), state.now.inner
        for scope, late in by_scope.items():
            heard = [event for event in state.recent.get(scope, ()) if event.time < state.now.until]
            keys = self._inner.meets([*heard, *late])
            _, before = self._replayed(state, keys, heard)
            part, after = self._replayed(state, keys, [*heard, *late])
            inner = self._inner.taken_over(inner, part, keys)
            taken_back, told = difference(before, after)
            gone, fresh = gone + taken_back, fresh + told
        state = state._replace(now=state.now._replace(inner=inner))
        state = self._remember(state, [event for some in by_scope.values() for event in some])
        return state, [*missed, *sorted(gone, key=in_time, reverse=True), *sorted(fresh, key=in_time)]

    def _replayed(self, state: State, keys: Keys, events: Iterable[Event]) -> tuple[Any, list[Transition]]:
        """What is known of some scopes, and what would have been told, if these had been the events."""
        part, said = self._inner.taken_over(self._inner.initial(), state.base, keys), list[Transition]()
        for event in sorted(events, key=lambda event: event.order):
            part, some = self._inner.react(part, event)
            said += some
        if self._inner.is_timed:
            part, some = self._inner.advance(part, state.now.until)
            said += some
        return part, said

    # --- what is remembered ---

    def _scope(self, event: Event) -> str | None:
        """The outermost scope of an event."""
        outermost = self._inner.meets((event,))[-1]
        return outermost[0] if outermost else None

    def _remember(self, state: State, events: Iterable[Event]) -> State:
        size = state.size
        for event in events:
            if (scope := self._scope(event)) is not None:
                state.recent.setdefault(scope, []).append(event)
                size += 1
        state = state._replace(size=size)
        return self._swept(state) if size > 2 * state.least + _FEW else state

    def _swept(self, state: State) -> State:
        """The state, whose base has taken in the events that nothing corrects any more."""
        oldest, base, recent = self.final(state), state.base, dict[str, list[Event]]()
        old: list[Event] = []
        for scope, events in state.recent.items():
            old += (event for event in events if event.time < oldest)
            if young := [event for event in events if event.time >= oldest]:
                recent[scope] = young
        for event in sorted(old, key=lambda event: event.order):
            base, _ = self._inner.react(base, event)
        if self._inner.is_timed and oldest < NEVER:
            base, _ = self._inner.advance(base, oldest)
        size = state.size - len(old)
        return state._replace(base=base, recent=recent, size=size, least=size)

    # --- what can matter, what holds, and keeping it ---

    def reduce(
        self, batches: Batches, *, closed: bool = True, latest: Instant = NEVER
    ) -> dict[str, pa.RecordBatch]:
        """What arrives is not in order yet, so no part of it is closed."""
        return mattering(self, batches, latest)

    def matters(self, topic: str, batch: pa.RecordBatch) -> Mask:
        return self.ordered.matters(topic, batch)

    def survey(self, topic: str, batch: pa.RecordBatch, *, closed: bool = False) -> Survey:
        return self.ordered.survey(topic, batch)

    def due(self, state: State) -> Instant | None:
        return self.ordered.due(state.now)

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        return self.ordered.holding(state.now)

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        return self.ordered.unknown(state.now)

    def last(self, state: State, condition: int) -> list[Transition]:
        return self.ordered.last(state.now, condition)

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state._replace(now=self.ordered.inform(state.now, condition, latest))

    def is_fresh(self, state: State, condition: int) -> bool:
        if not self.ordered.is_fresh(state.now, condition):
            return False
        oldest = self.final(state)
        return all(event.time < oldest for events in state.recent.values() for event in events)

    def to_bytes(self, state: State) -> bytes:
        recent = from_events(self.ordered.topic, [e for events in state.recent.values() for e in events])
        kept = self.ordered.to_bytes(state.now), self._inner.to_bytes(state.base), state.floor, to_ipc(recent)
        return msgspec.msgpack.encode(kept)

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        now, base, floor, recent = msgspec.msgpack.decode(raw, type=tuple[bytes, bytes, Instant, bytes])
        state = self.initial()._replace(
            now=self.ordered.from_bytes(now, was), base=self._inner.from_bytes(base, was), floor=floor
        )
        return self._remember(state, self._events(known_of(self.ordered.topic, from_ipc(recent))))


def begun(machine: Machine, state: Any) -> Any:
    """A state of a machine of which nothing was told yet: it corrects nothing of the time so far."""
    if not isinstance(machine, Corrected):
        return state
    inner = machine.ordered.inner
    return settled(state, inner.from_bytes(inner.to_bytes(state.now.inner)))


def settled(state: Any, base: Any) -> Any:
    """A state with which nothing is corrected that was told so far, if it is one of ours; ``base`` is what
    the inner machine knows now."""
    if not isinstance(state, State):
        return state
    until = state.now.until
    held = {scope: [e for e in events if e.time >= until] for scope, events in state.recent.items()}
    recent = {scope: events for scope, events in held.items() if events}
    size = sum(map(len, recent.values()))
    return state._replace(base=base, recent=recent, size=size, least=size, floor=until)


def difference(
    before: Sequence[Transition], after: Sequence[Transition]
) -> tuple[list[Transition], list[Transition]]:
    """What leads from one account of what happened to another: what is taken back, and what is added.  That
    something still held, ``known``, is nothing to add where more has happened since: nobody takes it back."""
    last = {(one.condition, one.scope): one for one in after}
    told, fresh = Counter(map(_what, before)), list[Transition]()
    for one in after:
        if told[_what(one)]:
            told[_what(one)] -= 1
        elif one.status != "known" or one is last[one.condition, one.scope]:
            fresh.append(one)
    gone: list[Transition] = []
    for one in reversed(before):
        if told[_what(one)] and one.status in TAKES_BACK:
            told[_what(one)] -= 1
            gone.append(one._replace(status=TAKES_BACK[one.status]))
    return gone, fresh


def _what(told: Transition) -> tuple[Any, ...]:
    """What a transition says, so that equal ones say the same: NaN does."""
    return (*told[1:], repr(told.event))
