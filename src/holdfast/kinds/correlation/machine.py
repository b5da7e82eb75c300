"""The machine of correlations: simple events that agree in time and space, one for each filter. [J1, J2]

A machine runs up to 64 correlations with the same window and delivery. Each correlation is a bit of a word.
Whether an event takes part may depend on later events, so the machine emits the event when its complex event
is complete. The notification has the event's own time. Events that no window can reach any more are dropped.

A step gets one batch per topic. The order of topics and rows does not matter; only the watermark does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...engine.machine import (
    Batches,
    Emission,
    Machine,
    Relevance,
    Traits,
    in_time,
    mark_rows,
    transitions,
)
from ...model.batch import from_ipc, latest_time, times, to_events, to_ipc
from ...model.event import Event, Transition
from ...model.instant import BEGINNING, NEVER, Duration, Instant
from ...model.qos import Late
from ...model.topic import Topic
from .arrivals import Arrival, arrive, find_combinations, older, to_arrivals, to_columns
from .combination import combine
from .entries import (
    Entries,
    StoredEntries,
    Words,
    bits,
    join_entries,
    keep,
    known,
    of_rows,
    only,
    renumber,
    select,
)
from .joint import Joint, Slot, participants

MOST = 64
"""The maximal number of correlations of one machine: the bits of a word."""

FEW = 16
"""The number of fresh events up to which single events are faster than columns."""


class CorrelationState(NamedTuple):
    """The state of a correlation machine: stored events, in columns or as single events.

    ``single`` is sorted by time. ``passed`` is the watermark of the correlations, ``latest`` the latest time
    of any event.
    """

    stored: dict[str, StoredEntries]
    single: list[Arrival]
    passed: Instant = BEGINNING
    latest: Instant = BEGINNING


@dataclass(frozen=True)
class CorrelationMachine(Machine[CorrelationState]):
    """The machine of up to 64 correlations.

    ``match`` and ``match_one`` find the filters that events match. ``within_reach`` finds the correlations in
    which events could take part, judged by location and source only.
    """

    joints: tuple[Joint, ...]
    slots: tuple[Slot, ...]
    topics: Mapping[str, Topic]
    within: Duration
    wait: Duration | None
    late: Late
    match: Callable[[str, pa.RecordBatch], Entries]
    match_one: Callable[[Event], list[tuple[int, int]]]
    within_reach: Callable[[str, pa.RecordBatch], Words]

    @cached_property
    def traits(self) -> Traits:
        lateness = self.wait if self.late == "drop" else None
        return Traits(uses_watermark=True, lookaround=self.within, lateness=lateness)

    @cached_property
    def needs(self) -> Words:
        """For each slot the correlations that have a filter on it, as bits."""
        found = np.zeros(len(self.slots), np.uint64)
        for i, joint in enumerate(self.joints):
            for slot in joint.slots:
                found[slot] |= np.uint64(1 << i)
        return found

    @cached_property
    def listening(self) -> dict[str, int]:
        """For each topic the correlations that consume it, as bits."""
        found = dict.fromkeys(self.topics, 0)
        for slot, need in zip(self.slots, self.needs.tolist(), strict=True):
            found[slot.topic] |= need
        return found

    @cached_property
    def emits_events(self) -> np.uint64:
        """The correlations that emit simple events, as bits."""
        return np.uint64(sum(1 << i for i, joint in enumerate(self.joints) if joint.tell == "events"))

    @cached_property
    def _is_plain(self) -> bool:
        """Whether all correlations emit simple events and none compares distances."""
        return all(joint.tell == "events" and joint.near == np.inf for joint in self.joints)

    @property
    def memory(self) -> Duration:
        """The duration for which an event is stored, because a partner may still arrive.

        Where events may arrive out of order, the duration is twice the window. A disorder of up to one window
        therefore changes nothing.
        """
        return self.within if self.traits.lateness is not None else 2 * self.within

    def initial(self) -> CorrelationState:
        return CorrelationState({}, [])

    # --- events ---

    def react(self, state: CorrelationState, event: Event) -> tuple[CorrelationState, list[Transition]]:
        """Store one event. Emit it as late if it is older than the watermark and late events are dropped."""
        state = state._replace(latest=max(state.latest, event.time))
        matches = self.match_one(event) if event.topic in self.topics else []
        if matches:
            arrival = Arrival(event.time, event, matches)
            if self.traits.lateness is not None and event.time < state.passed:
                return state, [Transition(event, "late", None, None, i) for i in bits(arrival.word)]
            arrive(state.single, arrival)
        return state, []

    def step(
        self, state: CorrelationState, batches: Batches, watermark: Instant
    ) -> tuple[CorrelationState, Emission]:
        """Store a batch of each topic, then advance to the watermark."""
        state, late = self._take(state, batches)
        state, emission = self._advance(state, watermark)
        return state, emission._replace(single=[*late, *emission.single])

    def _take(self, state: CorrelationState, batches: Batches) -> tuple[CorrelationState, list[Transition]]:
        """Store a batch of each topic. Return the transitions of late events."""
        late: list[Transition] = []
        latest = state.latest
        for topic, batch in batches.items():
            until = latest_time(batch)
            latest = latest if until is None else max(latest, until)
            entries = self.match(topic, batch)
            if self.traits.lateness is not None:
                missed = times(batch) < state.passed
                if missed.any():
                    late += self._late(topic, batch, entries, missed)
                    entries = select(entries, ~missed[entries.rows])
            keep(state.stored, topic, batch, entries)
        return state._replace(latest=latest), late

    def _late(
        self, topic: str, batch: pa.RecordBatch, entries: Entries, missed: NDArray[np.bool_]
    ) -> list[Transition]:
        """Return the transitions of the late rows of a batch, one for each correlation that they match."""
        words = of_rows(entries, len(batch))
        rows = np.flatnonzero(missed & (words != 0))
        events = to_events(self.topics[topic], batch.take(pa.array(rows)))
        return [
            Transition(event, "late", None, None, i)
            for event, word in zip(events, words[rows].tolist(), strict=True)
            for i in bits(word)
        ]

    def advance(
        self, state: CorrelationState, watermark: Instant
    ) -> tuple[CorrelationState, list[Transition]]:
        """Advance to the watermark, and emit the events that newly take part.

        The watermark ``NEVER`` stands for the end of all events.
        """
        state, emission = self._advance(state, watermark)
        return state, transitions(self.topics, emission)

    def _advance(self, state: CorrelationState, until: Instant) -> tuple[CorrelationState, Emission]:
        """Advance to ``until``, with single events if few are fresh, otherwise in columns."""
        is_fresh = any(stored.fresh.any() for stored in state.stored.values())
        if self._is_plain and state.single and not is_fresh:
            state = self._singly(state)
            now = self._now(state, until)
            ready = state.single if self.wait is None else state.single[: older(state.single, now)]
            fresh = [arrival for arrival in ready if arrival.fresh]
            if len(fresh) <= FEW:
                out = [
                    Transition(arrival.event, "atomic", None, None, i)
                    for arrival, new in find_combinations(ready, fresh, self.needs.tolist(), self.within)
                    for i in bits(new)
                ]
                return self._forget(state._replace(passed=now)), Emission({}, sorted(out, key=in_time))
        return self._look(state, until)

    def _look(self, state: CorrelationState, until: Instant) -> tuple[CorrelationState, Emission]:
        """Advance to ``until`` and search for matches in columns."""
        state = self._in_columns(state)
        now = self._now(state, until)
        emission = Emission({})
        if any((stored.fresh & self._ready(stored, now)).any() for stored in state.stored.values()):
            emission = self._emit(state, now)
        return self._forget(state._replace(passed=now)), emission

    def _now(self, state: CorrelationState, until: Instant) -> Instant:
        """Return the watermark of the correlations, given the watermark of events."""
        return max(state.latest + 1 if until == NEVER else until - (self.wait or 0), state.passed)

    def _in_columns(self, state: CorrelationState) -> CorrelationState:
        """Return the state with single events moved to the columns of their topics."""
        by_topic: dict[str, list[Arrival]] = {}
        for arrival in state.single:
            by_topic.setdefault(arrival.event.topic, []).append(arrival)
        stored = state.stored.copy()
        for name, arrivals in by_topic.items():
            stored[name] = join_entries(stored.get(name), to_columns(self.topics[name], arrivals))
        return state._replace(stored=stored, single=[])

    def _singly(self, state: CorrelationState) -> CorrelationState:
        """Return the state with all stored events as single events."""
        if not state.stored:
            return state
        arrivals = [to_arrivals(self.topics[name], stored) for name, stored in state.stored.items()]
        single = sorted(chain(*arrivals, state.single), key=attrgetter("time"))
        return state._replace(stored={}, single=single)

    def _ready(self, stored: StoredEntries, now: Instant) -> NDArray[np.bool_]:
        """Return a mask of the events to include in a search.

        For ordered delivery these are the events before the watermark, otherwise all events.
        """
        if self.wait is None:
            return np.ones(len(stored.fresh), np.bool_)
        return times(stored.events) < now

    def _emit(self, state: CorrelationState, now: Instant) -> Emission:
        """Search the events that are ready, and emit events that newly take part and new complex events."""
        ready = {topic: self._ready(stored, now) for topic, stored in state.stored.items()}
        found = participants(state.stored, ready, self.joints, self.needs, self.within)
        rows: dict[str, pa.RecordBatch] = {}
        for topic, stored in state.stored.items():
            words = of_rows(found[topic], len(stored.emitted)) & self.emits_events & ~stored.emitted
            if (new := np.flatnonzero(words)).size:
                rows[topic] = mark_rows(stored.events.take(pa.array(new)), words[new], "atomic")
                stored.emitted[new] |= words[new]
        complex_events = [
            Transition(event, "atomic", None, None, i)
            for i, joint in enumerate(self.joints)
            if joint.tell != "events"
            for event in combine(state.stored, found, joint, i, self.slots, self.topics, self.within)
        ]
        for topic, stored in state.stored.items():
            stored.fresh[ready[topic]] = False
        return Emission(rows, sorted(complex_events, key=in_time))

    def _forget(self, state: CorrelationState) -> CorrelationState:
        """Drop events that no window can reach any more."""
        oldest = max(state.passed - self.memory, BEGINNING)
        past = older(state.single, oldest + 1)
        state.single[:past] = [arrival for arrival in state.single[:past] if arrival.fresh]
        for topic, stored in list(state.stored.items()):
            stays = (times(stored.events) > oldest) | stored.fresh
            if not stays.all():
                state.stored[topic] = only(stored, stays)
        return state

    # --- pushdown ---

    def relevance(self, topic: str, batch: pa.RecordBatch) -> Relevance:
        """Return the relevance of rows.

        An event is outside a correlation if its location or source excludes it.
        """
        words = self.within_reach(topic, batch)
        outside = [
            np.count_nonzero(~words & np.uint64(1 << i)) if self.listening[topic] >> i & 1 else 0
            for i in range(len(self.joints))
        ]
        matching = np.zeros(len(batch), np.bool_)
        matching[self.match(topic, batch).rows] = True
        return Relevance(matching, np.array(outside, np.int64))

    # --- state ---

    def due(self, state: CorrelationState) -> Instant | None:
        """Return the watermark at which the earliest fresh event can be searched, or `None` if no event is
        fresh.

        For unordered delivery it is ``BEGINNING``, because fresh events do not wait.
        """
        waiting = [arrival.time for arrival in state.single if arrival.fresh]
        fresh = (times(stored.events)[stored.fresh] for stored in state.stored.values())
        waiting += [int(moments.min()) for moments in fresh if len(moments)]
        if not waiting:
            return None
        return BEGINNING if self.wait is None else min(waiting) + self.wait

    def is_initial(self, state: CorrelationState, condition: int) -> bool:
        bit = 1 << condition
        in_columns = ((stored.entries.words & np.uint64(bit)).any() for stored in state.stored.values())
        return not any(arrival.word & bit for arrival in state.single) and not any(in_columns)

    def dump(self, state: CorrelationState) -> bytes:
        state = self._in_columns(state)
        stored = {
            topic: (
                to_ipc(own.events.replace_schema_metadata(None)),
                own.emitted.tolist(),
                own.fresh.tolist(),
                [column.tolist() for column in own.entries],
            )
            for topic, own in state.stored.items()
        }
        return msgspec.msgpack.encode((self.slots, stored, state.passed, state.latest))

    def load(self, raw: bytes, was: Sequence[int | None] | None = None) -> CorrelationState:
        """Return the state from a snapshot. Slots and correlations that no longer exist are dropped."""
        slots, stored, passed, latest = msgspec.msgpack.decode(raw, type=_StoredCorrelations)
        state = CorrelationState({}, [], passed, latest)
        number = np.array([self.slots.index(slot) if slot in self.slots else -1 for slot in slots], np.int64)
        for topic, (events, emitted, fresh, (rows, of, words)) in stored.items():
            if topic in self.topics:
                entries = Entries(np.array(rows, np.int64), number[of], np.array(words, np.uint64))
                state.stored[topic] = StoredEntries(
                    known(self.topics[topic], from_ipc(events)),
                    np.array(emitted, np.uint64),
                    np.array(fresh, np.bool_),
                    select(entries, entries.slots >= 0),
                )
        if was is None:
            return state
        for topic, stored in list(state.stored.items()):
            entries = stored.entries._replace(words=renumber(stored.entries.words, was))
            entries = select(entries, entries.words != 0)
            stored = stored._replace(emitted=renumber(stored.emitted, was), entries=entries)
            state.stored[topic] = only(stored, of_rows(stored.entries, len(stored.emitted)) != 0)
        return state


_StoredCorrelations = tuple[
    list[Slot],
    dict[str, tuple[bytes, list[int], list[bool], tuple[list[int], list[int], list[int]]]],
    Instant,
    Instant,
]
