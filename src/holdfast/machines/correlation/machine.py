"""Correlations: simple events that agree in time and space, one for each filter.  [J1, J2]

A machine runs up to 64 correlations with the same window and delivery: they are the bits of a word.  An
event takes part in a complex event whether its partners come before or after it, so it is told when the
event that completes it has come; its notification has its own time.  What no window can reach any more is
forgotten.

A batch is one batch for each topic, in any order: only how far time has come matters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...model.batch import from_ipc, reached, times, to_events, to_ipc
from ...model.event import Event, Transition
from ...model.instant import BEGINNING, NEVER, Duration, Instant
from ...model.qos import Late
from ...model.topic import Topic
from ..machine import Batches, Mask, Survey, Told, in_time, marked, mattering, transitions
from .arrivals import Arrival, arrive, in_columns, older, singly, taking_part
from .combination import combined
from .entries import Entries, Kept, Words, bits, chosen, joined, keep, known, of_rows, only, renumbered
from .joint import Joint, Slot, participants

MOST = 64
"""How many correlations one machine can hold."""

FEW = 16
"""So many events are looked at one by one; for more, columns are worth their cost."""


class State(NamedTuple):
    """What is not forgotten: in columns, or one by one in order of time; ``passed`` is how far time has
    come for the correlations, ``reached`` the latest time of any event."""

    kept: dict[str, Kept]
    single: list[Arrival]
    passed: Instant = BEGINNING
    reached: Instant = BEGINNING


@dataclass(frozen=True)
class Correlations:
    """The machine.  ``match`` and ``match_one`` find what events match, ``within_reach`` in which
    correlations they could take part, if their values were right."""

    joints: tuple[Joint, ...]
    slots: tuple[Slot, ...]
    topics: Mapping[str, Topic]
    within: Duration
    wait: Duration | None
    late: Late
    match: Callable[[str, pa.RecordBatch], Entries]
    match_one: Callable[[Event], list[tuple[int, int]]]
    within_reach: Callable[[str, pa.RecordBatch], Words]

    is_timed = True
    compacts = False

    @property
    def margin(self) -> Duration:
        return self.within

    @property
    def strictest(self) -> Duration | None:
        return self.wait if self.late == "drop" else None

    @cached_property
    def needs(self) -> Words:
        """For each slot the correlations that have a filter there."""
        found = np.zeros(len(self.slots), np.uint64)
        for i, joint in enumerate(self.joints):
            for slot in joint.slots:
                found[slot] |= np.uint64(1 << i)
        return found

    @cached_property
    def listening(self) -> dict[str, int]:
        """For each topic the correlations that look at it."""
        found = dict.fromkeys(self.topics, 0)
        for slot, need in zip(self.slots, self.needs.tolist(), strict=True):
            found[slot.topic] |= need
        return found

    @cached_property
    def simply(self) -> np.uint64:
        """The correlations that tell simple events."""
        return np.uint64(sum(1 << i for i, joint in enumerate(self.joints) if joint.tell == "events"))

    @cached_property
    def _is_plain(self) -> bool:
        """Whether time alone decides, and simple events are told."""
        return all(joint.tell == "events" and joint.near == np.inf for joint in self.joints)

    @property
    def memory(self) -> Duration:
        """How long an event is kept: while a partner can come.  Where events may come out of order, twice
        as long, so that a disorder of up to a window changes nothing."""
        return self.within if self.strictest is not None else 2 * self.within

    def initial(self) -> State:
        return State({}, [])

    # --- events ---

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        """Take one event; a late one is told, or taken as it comes."""
        state = state._replace(reached=max(state.reached, event.time))
        matches = self.match_one(event) if event.topic in self.topics else []
        if matches:
            one = Arrival(event.time, event, matches)
            if self.strictest is not None and event.time < state.passed:
                return state, [Transition(event, "late", None, None, i) for i in bits(one.word)]
            arrive(state.single, one)
        return state, []

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, Told]:
        """Take a batch of each topic, after which event time has come as far as ``until``."""
        state, late = self._taken(state, batches)
        state, told = self._advanced(state, until)
        return state, told._replace(single=[*late, *told.single])

    def _taken(self, state: State, batches: Batches) -> tuple[State, list[Transition]]:
        """Take a batch of each topic; those that are late are told."""
        late: list[Transition] = []
        latest = state.reached
        for topic, batch in batches.items():
            until = reached(batch)
            latest = latest if until is None else max(latest, until)
            entries = self.match(topic, batch)
            if self.strictest is not None:
                missed = times(batch) < state.passed
                if missed.any():
                    late += self._late(topic, batch, entries, missed)
                    entries = chosen(entries, ~missed[entries.rows])
            keep(state.kept, topic, batch, entries)
        return state._replace(reached=latest), late

    def _late(
        self, topic: str, batch: pa.RecordBatch, entries: Entries, missed: NDArray[np.bool_]
    ) -> list[Transition]:
        words = of_rows(entries, len(batch))
        rows = np.flatnonzero(missed & (words != 0))
        events = to_events(self.topics[topic], batch.take(pa.array(rows)))
        return [
            Transition(event, "late", None, None, i)
            for event, word in zip(events, words[rows].tolist(), strict=True)
            for i in bits(word)
        ]

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        """Let event time come as far as ``until``, or if nothing more will come to the last event, and tell
        what takes part by now."""
        state, told = self._advanced(state, until)
        return state, transitions(self.topics, told)

    def _advanced(self, state: State, until: Instant) -> tuple[State, Told]:
        if self._is_plain and state.single and not any(kept.fresh.any() for kept in state.kept.values()):
            state = self._singly(state)
            now = self._now(state, until)
            ready = state.single if self.wait is None else state.single[: older(state.single, now)]
            fresh = [one for one in ready if one.fresh]
            if len(fresh) <= FEW:
                out = [
                    Transition(one.event, "atomic", None, None, i)
                    for one, new in taking_part(ready, fresh, self.needs.tolist(), self.within)
                    for i in bits(new)
                ]
                return self._forget(state._replace(passed=now)), Told({}, sorted(out, key=in_time))
        return self._look(state, until)

    def _look(self, state: State, until: Instant) -> tuple[State, Told]:
        """Let event time come as far as ``until``; what takes part by now, in columns."""
        state = self._in_columns(state)
        now = self._now(state, until)
        told = Told({})
        if any((kept.fresh & self._ready(kept, now)).any() for kept in state.kept.values()):
            told = self._told(state, now)
        return self._forget(state._replace(passed=now)), told

    def _now(self, state: State, until: Instant) -> Instant:
        """How far time has come for the correlations."""
        return max(state.reached + 1 if until == NEVER else until - (self.wait or 0), state.passed)

    def _in_columns(self, state: State) -> State:
        """The state with single events among those of their topics."""
        by_topic: dict[str, list[Arrival]] = {}
        for one in state.single:
            by_topic.setdefault(one.event.topic, []).append(one)
        coming = {name: in_columns(self.topics[name], some) for name, some in by_topic.items()}
        kept = state.kept | {name: joined(state.kept.get(name), some) for name, some in coming.items()}
        return state._replace(kept=kept, single=[])

    def _singly(self, state: State) -> State:
        """The state with all events one by one."""
        if not state.kept:
            return state
        every = [one for name, kept in state.kept.items() for one in singly(self.topics[name], kept)]
        return state._replace(kept={}, single=sorted(every + state.single, key=attrgetter("time")))

    def _ready(self, kept: Kept, now: Instant) -> NDArray[np.bool_]:
        """Which events are to be looked at: those that time has passed, or all that have come."""
        if self.wait is None:
            return np.ones(len(kept.fresh), np.bool_)
        return times(kept.events) < now

    def _told(self, state: State, now: Instant) -> Told:
        """Look at what is ready."""
        ready = {topic: self._ready(kept, now) for topic, kept in state.kept.items()}
        found = participants(state.kept, ready, self.joints, self.needs, self.within)
        rows: dict[str, pa.RecordBatch] = {}
        for topic, kept in state.kept.items():
            words = of_rows(found[topic], len(kept.told)) & self.simply & ~kept.told
            if (new := np.flatnonzero(words)).size:
                rows[topic] = marked(kept.events.take(pa.array(new)), words[new], "atomic")
                kept.told[new] |= words[new]
        complex_events = [
            Transition(event, "atomic", None, None, i)
            for i, joint in enumerate(self.joints)
            if joint.tell != "events"
            for event in combined(state.kept, found, joint, i, self.slots, self.topics, self.within)
        ]
        for topic, kept in state.kept.items():
            kept.fresh[ready[topic]] = False
        return Told(rows, sorted(complex_events, key=in_time))

    def _forget(self, state: State) -> State:
        """Forget what no window can reach any more."""
        oldest = max(state.passed - self.memory, BEGINNING)
        past = older(state.single, oldest + 1)
        state.single[:past] = [one for one in state.single[:past] if one.fresh]
        for topic, kept in list(state.kept.items()):
            stays = (times(kept.events) > oldest) | kept.fresh
            if not stays.all():
                state.kept[topic] = only(kept, stays)
        return state

    # --- a stretch of history alone ---

    def reduce(
        self, batches: Batches, *, closed: bool = True, latest: Instant = NEVER
    ) -> dict[str, pa.RecordBatch]:
        """Drop what matches no filter."""
        return mattering(self, batches, latest)

    def matters(self, topic: str, batch: pa.RecordBatch) -> Mask:
        """Which events match a filter."""
        found = np.zeros(len(batch), np.bool_)
        found[self.match(topic, batch).rows] = True
        return found

    def survey(self, topic: str, batch: pa.RecordBatch, *, closed: bool = False) -> Survey:
        """A correlation has no scope for events that cannot concern it for where they come from."""
        words = self.within_reach(topic, batch)
        outside = [
            np.count_nonzero(~words & np.uint64(1 << i)) if self.listening[topic] >> i & 1 else 0
            for i in range(len(self.joints))
        ]
        return Survey(self.matters(topic, batch), np.array(outside, np.int64))

    # --- state ---

    def due(self, state: State) -> Instant | None:
        """The earliest event that still waits to be passed by time; where none waits, at once."""
        waiting = [one.time for one in state.single if one.fresh]
        waiting += [
            int(times(kept.events)[kept.fresh].min()) for kept in state.kept.values() if kept.fresh.any()
        ]
        if not waiting:
            return None
        return BEGINNING if self.wait is None else min(waiting) + self.wait

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        """Nothing: complex events are moments."""
        return []

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        return []

    def last(self, state: State, condition: int) -> list[Transition]:
        return []

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state

    def is_fresh(self, state: State, condition: int) -> bool:
        bit = 1 << condition
        return not any(one.word & bit for one in state.single) and not any(
            (kept.entries.words & np.uint64(bit)).any() for kept in state.kept.values()
        )

    def to_bytes(self, state: State) -> bytes:
        state = self._in_columns(state)
        kept = {
            topic: (
                to_ipc(one.events.replace_schema_metadata(None)),
                one.told.tolist(),
                one.fresh.tolist(),
                [column.tolist() for column in one.entries],
            )
            for topic, one in state.kept.items()
        }
        return msgspec.msgpack.encode((self.slots, kept, state.passed, state.reached))

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        slots, kept, passed, latest = msgspec.msgpack.decode(raw, type=_Kept)
        state = State({}, [], passed, latest)
        number = np.array([self.slots.index(slot) if slot in self.slots else -1 for slot in slots], np.int64)
        for topic, (events, told, fresh, (rows, of, words)) in kept.items():
            if topic in self.topics:
                entries = Entries(np.array(rows, np.int64), number[of], np.array(words, np.uint64))
                state.kept[topic] = Kept(
                    known(self.topics[topic], from_ipc(events)),
                    np.array(told, np.uint64),
                    np.array(fresh, np.bool_),
                    chosen(entries, entries.slots >= 0),
                )
        if was is None:
            return state
        for topic, kept in list(state.kept.items()):
            entries = kept.entries._replace(words=renumbered(kept.entries.words, was))
            kept = kept._replace(told=renumbered(kept.told, was), entries=chosen(entries, entries.words != 0))
            state.kept[topic] = only(kept, of_rows(kept.entries, len(kept.told)) != 0)
        return state


_Kept = tuple[
    list[Slot],
    dict[str, tuple[bytes, list[int], list[bool], tuple[list[int], list[int], list[int]]]],
    Instant,
    Instant,
]
