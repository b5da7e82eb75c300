"""The machine of states with minimum durations, over one level of scopes.

The kernel receives bytes (*words*): their bits are the levels of silence at which a predicate is true. It
therefore does not depend on the predicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ....engine.key_codes import Touched
from ....engine.machine import SCOPE, Batches, Emission, Machine, Mask, Relevance, Traits, transitions
from ....kernels import guard as kernel
from ....kernels.guard import BEGUN, EXPECTED, LAST, MOST_TRANSITIONS, NEVER, NONE, ON, UNDECIDED, UNKNOWN
from ....model.batch import concatenate, in_turn, latest_time, times
from ....model.event import Event, Transition
from ....model.guard import Care
from ....model.instant import BEGINNING, EARLIEST, Duration, Instant
from ....model.topic import Topic
from ...revision import Renumbering
from ..toggle import ScopeKeys
from . import emissions
from . import state as states
from .state import Cell, DurationState

Words = NDArray[np.uint8]
Scoping = Callable[[pa.RecordBatch], tuple[tuple[NDArray[np.int32], pa.StringArray], ...]]

MOST = 64
"""The maximal number of states of one machine."""

LONGEST = 1 << 62
"""The largest duration in microseconds. Sums with it stay within 64 bits."""

ROOM = 1 << 14
"""The number of output rows of one kernel call."""

FEW = 2048
"""The number of scopes below which timers fire faster one by one than in columns."""

_FEW_SCOPES = 1 << 12  # with less room, forgotten scopes are not dropped


class Lengths(NamedTuple):
    """Minimum durations that come from tables, for one event and for a batch.

    The order is that of words: all entrances, then all exits.
    """

    of_one: Callable[[Event], list[Duration]]
    of_batch: Callable[[pa.RecordBatch], NDArray[np.int64]]


@dataclass(frozen=True)
class DurationRule:
    """The clauses of one state beside its predicates, and the durations of its ``silent`` predicates in
    microseconds."""

    care: Care
    silences: tuple[Duration, ...] = ()

    @property
    def beginning(self) -> int:
        """The flags of a scope before its first reading."""
        return {"off": 0, "on": ON, "unknown": UNKNOWN | UNDECIDED}[self.care.initially]

    @property
    def waits(self) -> tuple[Duration, Duration]:
        """The minimum durations of entrance and exit, in microseconds."""
        return min(self.care.enter.length, LONGEST), min(self.care.exit.length, LONGEST)

    @property
    def gap(self) -> Duration:
        """The shortest time without data that has an effect, in microseconds."""
        return min(*self.silences, self.care.unknown or LONGEST, self.care.forget or LONGEST, LONGEST)

    @property
    def readings(self) -> int:
        """The number of equal readings in a row after which another one is irrelevant."""
        return max(self.care.enter.readings, self.care.exit.readings, 1)

    def row(self, depth: int) -> list[int]:
        """Return the rule as a row for the kernel, padded to ``depth`` silences."""
        care = self.care
        ends = (-1 if length is None else min(length, LONGEST) for length in (care.unknown, care.forget))
        lengths = [*self.silences, *[0] * (depth - len(self.silences))]
        head = [care.enter.readings, care.exit.readings, *ends, self.beginning, int(care.quietly)]
        return [*head, len(self.silences), *lengths]


@dataclass(frozen=True)
class DurationMachine(Machine[DurationState]):
    """The machine of up to 64 states over one level of scopes.

    ``words`` returns for one event the levels of silence at which predicates are true: all entrances, then
    all exits. ``columns`` returns the same for a batch, with a row for each predicate. ``chain`` and
    ``scoping`` return the key of the scope, `readable_scope` its label. ``expected`` are the keys of scopes
    that exist before their first reading.

    A device may buffer readings and send them late. After a late reading more of them may follow, so the
    scope gets a watermark of its own. It stands still for as long as the reading was late, and then advances
    at that distance.
    """

    topic: Topic
    rules: tuple[DurationRule, ...]
    words: Callable[[Event], Sequence[int]]
    columns: Callable[[pa.RecordBatch], Words]
    chain: Callable[[Event], tuple[str | None, ...] | None]
    scoping: Scoping
    readable_scope: Callable[[str], str | None]
    expected: tuple[str, ...] = ()
    lengths: Lengths | None = None
    """Minimum durations from tables; ``None`` if the rules have all durations."""

    has_deltas = True

    @cached_property
    def traits(self) -> Traits:
        lateness = 0 if self.keeps_last else None
        return Traits(uses_watermark=True, compacts=True, pauses=True, lateness=lateness)

    @cached_property
    def topics(self) -> dict[str, Topic]:
        return {self.topic.name: self.topic}

    # --- arrays for the kernel ---

    @cached_property
    def _rules(self) -> tuple[Any, ...]:
        """Rules and minimum durations as Python objects, for single events."""
        depth = max(len(rule.silences) for rule in self.rules)
        waits = [length for rule in self.rules for length in rule.waits]
        return [tuple(rule.row(depth)) for rule in self.rules], waits

    @cached_property
    def _arrays(self) -> tuple[Any, ...]:
        """Rules and minimum durations as arrays, for compiled code."""
        rules, waits = self._rules
        return np.array(rules, np.int64), np.array(waits, np.int64)

    @cached_property
    def keeps_last(self) -> bool:
        """Whether a transition may carry the last reading of a scope."""
        return any(rule.gap < LONGEST for rule in self.rules)

    @cached_property
    def _keeps_starts(self) -> bool:
        """Whether the reading at which a minimum duration started must be stored."""
        return self.lengths is not None or any(any(rule.waits) for rule in self.rules)

    # --- expected scopes ---

    def initial(self) -> DurationState:
        state = states.new(self.topic, tuple(rule.beginning for rule in self.rules), self.lengths is not None)
        if self.expected:
            state.keys.codes(pa.array(self.expected, pa.string()))
            state.widen()
            state.there["flags"] |= EXPECTED
        return state

    def start_expected(self, state: DurationState, at: Instant) -> None:
        """Start the clock of expected scopes at the first time that the machine processes. Later calls have
        no effect."""
        if state.start is None and self.expected:
            state.start = at
            codes = np.flatnonzero((state.there["flags"] & EXPECTED).any(axis=1))
            records, width = state.there[codes], len(self.rules)
            records["last"] = at
            records["since"] = np.where(records["flags"] & ON, at, NONE)
            words = self.words(Event(self.topic.name, at, ""))
            records["enter"], records["leave"] = list(words[:width]), list(words[width:])
            state.there[codes] = records
            if state.waits is not None:  # no reading has set any duration yet
                state.waits.reshape(-1, width, 2)[codes] = self._arrays[1].reshape(width, 2)
            self.look(state, codes)

    def look(self, state: DurationState, codes: NDArray[Any]) -> None:
        """Compute again when the scopes ``codes`` are due."""
        self._run(state, codes.astype(np.int32), np.full(len(codes), NONE), None)
        state.next = int(state.wakes().min(initial=NEVER))

    # --- one event ---

    def react(self, state: DurationState, event: Event) -> tuple[DurationState, list[Transition]]:
        """Advance the clock of an event's scope to the event, then apply the event."""
        at = event.time
        if at > state.latest:
            state.latest = at
        chain = self.chain(event)
        if chain is None:
            return state, []
        key = chain[-1]
        assert key is not None
        if state.start is None:
            self.start_expected(state, at)
        state, code = self._code(state, key)
        state.taken = True
        return state, self._take_one(state, code, at, self.words(event), event)

    def _code(self, state: DurationState, key: str) -> tuple[DurationState, int]:
        """Return the state with room for a key, and the code of the key."""
        code = state.keys.code(key)
        if code >= state.room:
            less = self._without_gone(state)
            if less is not state:
                return self._code(less, key)
            state.widen()
        return state, code

    def _take_one(
        self, state: DurationState, code: int, at: Instant, words: Sequence[int], event: Event | None
    ) -> list[Transition]:
        """Advance the clock of one scope to ``at``, then apply its reading, if there is one."""
        cells, due, own_waits = state.with_scope(code)
        if state.touched is not None:
            state.touched.add(np.array([code]))
        rules, waits = self._rules
        has_own_waits: int = 0
        lengths: Sequence[Duration] = ()
        if own_waits is not None and self.lengths is not None:
            waits, has_own_waits = own_waits, 1
            lengths = () if event is None else self.lengths.of_one(event)
        before, out = due[0], dict[tuple[int, int], int]()
        _, count = kernel.apply_readings.body(
            (0,), (at,), event is not None, words, cells, due, rules, waits, has_own_waits, lengths,
            state.until, 0, NEVER, out,
        )  # fmt: skip
        emitted: list[Transition] = []
        if count:
            known = self.topic, self.readable_scope, state, code, out
            emitted = [emissions.transition(*known, n, event) for n in range(count)]
            if count > 1:
                emitted.sort(key=_sort_key)
        if event is not None:
            self._keep_one(state, code, cells, event)
            if (state.until > at or state.lagging) and at == cells[0].last:
                state.lags[code], state.lagging = 2 * (max(state.until, at) - at), True
        if due[0] != before or state.lagging:
            state.due[code] = due[0]
            state.next = min(state.next, due[0] + (int(state.lags[code]) if state.lagging else 0))
        return emitted

    def _keep_one(self, state: DurationState, code: int, cells: Sequence[Cell], event: Event) -> None:
        """Store a processed reading if a later transition may carry it."""
        is_last = False
        for f, cell in enumerate(cells):
            if cell.cand_row == 0:
                if self._keeps_starts and cell.cand != NONE:
                    state.starts.put_one(code * len(cells) + f, event)
                cell.cand_row = BEGUN
            elif cell.cand_row == LAST and cell.last_row == 0:
                if self._keeps_starts and cell.cand != NONE:
                    state.starts.put_one(code * len(cells) + f, state.last.event(code, event.time))
                cell.cand_row = BEGUN
            if cell.last_row == 0:
                is_last, cell.last_row = True, LAST
        if is_last and self.keeps_last:
            state.last.put_one(code, event)

    # --- some scopes alone ---

    def meets(self, events: Iterable[Event]) -> tuple[list[str]]:
        """Return the keys of the scopes of events, as the only level."""
        chains = [chain for event in events if (chain := self.chain(event)) is not None]
        return (list(dict.fromkeys(chain[-1] for chain in chains if chain[-1] is not None)),)

    def keys(self, state: DurationState) -> list[str]:
        """Return the keys of all scopes with state."""
        found: list[str] = state.keys.all().to_pylist()
        return found

    def replace_scopes(self, state: DurationState, other: DurationState, keys: ScopeKeys) -> DurationState:
        """Replace the scopes ``keys`` by those of another state, which is not changed."""
        states.take_over(state, other, pa.array(keys[-1], pa.string()))
        return state

    # --- time ---

    def advance(self, state: DurationState, watermark: Instant) -> tuple[DurationState, list[Transition]]:
        """Fire all timers before the watermark: one by one if few scopes are due, otherwise in columns."""
        limit = self._limit(state, watermark)
        if limit <= state.next:
            return state, []
        due = np.flatnonzero(state.wakes() < limit)
        emitted: list[Transition] = []
        if len(due) < FEW:
            for code in due.tolist():
                emitted += self._take_one(state, code, limit - int(state.lags[code]), (), None)
            state.next = int(state.wakes().min(initial=NEVER))
            return state, sorted(emitted, key=_sort_key)
        passed = self._fire_timers(state, limit)
        return state, transitions(self.topics, Emission({self.topic.name: passed}))

    def _limit(self, state: DurationState, until: Instant) -> Instant:
        """Store the watermark; return the time up to which timers fire."""
        if until == BEGINNING:
            return state.until
        limit = until
        if until == NEVER:  # no more readings will arrive, so no source has a delay any longer
            limit, state.next = max(state.latest, state.until) + 1, BEGINNING
            state.lags[:], state.lagging = 0, False
        if limit > BEGINNING + 1:
            if state.start is None:
                self.start_expected(state, limit)
            state.until = max(state.until, limit)
        return state.until

    def _fire_timers(self, state: DurationState, limit: Instant) -> pa.RecordBatch:
        """Fire all timers before ``limit``, and return the transitions as rows."""
        due = np.flatnonzero(state.wakes() < limit).astype(np.int32)
        out = self._run(state, due, limit - state.lags[due], None)
        state.next = int(state.wakes().min(initial=NEVER))
        return emissions.rows(self.topic, self.readable_scope, state, out, None)

    def resume(self, state: DurationState, watermark: Instant) -> DurationState:
        """Continue after a pause.

        The clock of each scope continues from its last value or from its last reading, whichever is later.
        The pause therefore counts for no duration.
        """
        last = state.there["last"].max(axis=1, initial=NONE)
        lags = state.lags[: len(last)]
        clocks = np.maximum(last, max(state.until, EARLIEST) - lags)
        lags[:], state.lagging = np.where(last == NONE, 0, np.maximum(watermark, clocks) - clocks), True
        if state.touched is not None:
            state.touched.add(np.arange(len(last)))
        self._limit(state, watermark)
        state.next = int(state.wakes().min(initial=NEVER))
        return state

    def due(self, state: DurationState) -> Instant | None:
        state.next = int(state.wakes().min(initial=NEVER))
        return None if state.next == NEVER else state.next

    # --- a batch ---

    def step(
        self, state: DurationState, batches: Batches, watermark: Instant
    ) -> tuple[DurationState, Emission]:
        """Apply a batch of readings, then fire the timers before the watermark. The output is sorted by
        time."""
        name = self.topic.name
        parts: list[pa.RecordBatch] = []
        if (batch := batches.get(name)) is not None:
            if (latest := latest_time(batch)) is not None:
                state.latest = max(state.latest, latest)
            if len(batch):
                state, rows = self._step_topic(state, batch)
                parts.append(rows)
        limit = self._limit(state, watermark)
        if limit > state.next:
            parts.append(self._fire_timers(state, limit))
        if not any(map(len, parts)):
            return state, Emission({} if batch is None else {name: self._no_rows(state, batch)})
        whole = parts[0] if len(parts) == 1 else concatenate(parts)
        return state, Emission({name: in_turn(whole, times(whole), SCOPE)})

    def _no_rows(self, state: DurationState, batch: pa.RecordBatch) -> pa.RecordBatch:
        return emissions.rows(self.topic, self.readable_scope, state, emissions.NOTHING, batch)

    def _step_topic(
        self, state: DurationState, batch: pa.RecordBatch
    ) -> tuple[DurationState, pa.RecordBatch]:
        """Apply the readings of a batch; return the state and the transitions as rows."""
        codes, keys = self.scoping(batch)[-1]
        inside = np.flatnonzero(codes >= 0)
        if not len(inside):
            return state, self._no_rows(state, batch)
        moments = times(batch)
        if state.start is None:
            self.start_expected(state, int(moments[inside[0]]))
        table = state.keys.codes(keys)
        if len(state.keys) > state.room:
            less = self._without_gone(state)
            if less is not state:
                state, table = less, less.keys.codes(keys)
            state.widen()
        state.taken = True
        scope_codes = np.append(table, np.int32(-1)).astype(np.int32)[codes]
        lengths = None if self.lengths is None else self.lengths.of_batch(batch)
        out = self._run(state, scope_codes, moments, self.columns(batch), lengths)
        rows = emissions.rows(self.topic, self.readable_scope, state, out, batch)
        met = np.unique(scope_codes[inside])
        self._keep(state, met, batch)
        if state.lagging or state.until > int(moments[inside].min()):
            state.lagging = True
            newest = np.full(len(state.keys), NONE)
            np.maximum.at(newest, scope_codes[inside], moments[inside])
            news = met[newest[met] == state.there["last"][met, 0]]
            state.lags[news] = 2 * (np.maximum(state.until, newest[news]) - newest[news])
        state.next = min(state.next, int(state.wakes(met).min()))
        return state, rows

    def _run(
        self, state: DurationState, codes: Any, moments: Any, words: Words | None, lengths: Any = None
    ) -> NDArray[np.int64]:
        """Apply readings, or only advance the clocks if ``words`` is ``None``; return the kernel's output."""
        state.settle()
        if state.touched is not None:
            state.touched.add(codes)
        reads, width = words is not None, len(self.rules)
        flat: Any = np.zeros(0, np.uint8) if words is None else words.ravel()
        rules, waits = self._arrays
        scopes: Any = state.scopes
        has_own_waits, lengths = 0, np.zeros(0, np.int64) if lengths is None else lengths.ravel()
        if interpreted := kernel.apply_readings.is_python(len(codes)):
            met = state.cells(np.unique(codes[codes >= 0])).tolist()
            scopes = {cell: Cell(state.scopes[cell].item()) for cell in met}
            codes, moments, flat = codes.tolist(), moments.tolist(), flat.tolist()
            rules, waits = self._rules
        if state.waits is not None:
            waits, has_own_waits = state.waits, 1
        found: list[NDArray[np.int64]] = []
        at = 0
        while at < len(codes):
            out = np.empty((ROOM + MOST_TRANSITIONS * width, 6), np.int64)
            at, count = kernel.apply_readings(
                codes, moments, reads, flat, scopes, state.due, rules, waits, has_own_waits, lengths,
                state.until, at, len(out), out,
            )  # fmt: skip
            found.append(out[:count])
        if interpreted:
            for cell, record in scopes.items():
                state.scopes[cell] = record.record()
        return np.concatenate(found) if found else emissions.NOTHING

    def _keep(self, state: DurationState, met: NDArray[Any], batch: pa.RecordBatch) -> None:
        """Store the readings of a processed batch that a later transition may carry."""
        cells = state.cells(met)
        records = state.scopes[cells]
        starts = records["cand_row"] >= 0
        if self._keeps_starts:
            holds = records["cand"] != NONE
            overwritten = (records["cand_row"] == LAST) & (records["last_row"] >= 0)
            if (moved := overwritten & holds).any():
                state.starts.put(cells[moved], state.last.take(cells[moved] // state.width))
            begins = starts & holds
            state.starts.put(cells[begins], batch.take(pa.array(records["cand_row"][begins])))
            starts |= overwritten
        records["cand_row"] = np.where(starts, BEGUN, records["cand_row"])
        reported = records["last_row"] >= 0
        if self.keeps_last:
            last = records["last_row"].reshape(-1, state.width).max(axis=1)
            state.last.put(met[last >= 0], batch.take(pa.array(last[last >= 0])))
        records["last_row"] = np.where(reported, LAST, records["last_row"])
        state.scopes[cells] = records

    # --- pushdown ---

    def relevance(self, topic: str, batch: pa.RecordBatch) -> Relevance:
        """Return the relevance of rows.

        A reading without a row in a table is still inside its scope, because it ends a time without data.
        """
        nowhere = self.scoping(batch)[-1][0] < 0
        outside = np.full(len(self.rules), np.count_nonzero(nowhere), np.int64)
        return Relevance(~nowhere, outside, lambda: self._deciding_rows(batch))

    def _deciding_rows(self, batch: pa.RecordBatch) -> Mask:
        """Return a mask of the rows that can change the output of any state."""
        codes, keys = self.scoping(batch)[-1]
        found = np.zeros(len(batch), np.bool_)
        if len(batch):
            words, moments, width = self.columns(batch), times(batch), len(self.rules)
            for f, rule in enumerate(self.rules):
                stays, scopes = np.zeros(len(batch), np.bool_), np.full((len(keys), 3), -1, np.int64)
                predicates, limits = (words[f], words[width + f]), (rule.gap, rule.readings)
                kernel.mark_relevant(codes, moments, *predicates, scopes, *limits, stays)
                found |= stays
        return found

    # --- snapshots ---

    def active(self, state: DurationState) -> list[tuple[int, str | None, Instant]]:
        records = state.there
        found = np.argwhere((records["flags"] & ON != 0) & (records["last"] != NONE))
        since = records["since"]
        return [(f, self._label(state, c), int(since[c, f])) for c, f in found.tolist()]

    def _label(self, state: DurationState, code: int) -> str | None:
        return self.readable_scope(state.keys.key(code))

    def unknown(self, state: DurationState) -> list[tuple[int, str | None, Instant | None]]:
        records = state.there
        found = np.argwhere((records["flags"] & UNKNOWN != 0) & (records["last"] != NONE)).tolist()
        since = [int(records["since"][c, f]) for c, f in found]
        cells = zip(found, since, strict=True)
        return [(f, self._label(state, c), None if at == NONE else at) for (c, f), at in cells]

    def is_initial(self, state: DurationState, condition: int) -> bool:
        return not state.taken

    def _without_gone(self, state: DurationState) -> DurationState:
        """Return the state without forgotten scopes.

        Unless the arrays are large and most scopes are forgotten, return the state itself.
        """
        if state.room < _FEW_SCOPES or 2 * np.count_nonzero(state.alive) > state.room:
            return state
        return states.compact(state, self.topic)

    def dump(self, state: DurationState) -> bytes:
        """Encode the scopes that differ from new ones."""
        return states.to_bytes(state, np.flatnonzero(state.alive))

    def track_changes(self, state: DurationState) -> DurationState:
        state.touched = Touched()
        return state

    def delta(self, state: DurationState) -> bytes | None:
        codes = None if state.touched is None else state.touched.take()
        return None if codes is None else states.to_bytes(state, codes)

    def load(self, raw: bytes, was: Renumbering | None = None) -> DurationState:
        return self.apply_delta(self.initial(), raw, was)

    def apply_delta(self, state: DurationState, raw: bytes, was: Renumbering | None = None) -> DurationState:
        numbers = range(len(self.rules)) if was is None else was
        if any(number is not None for number in numbers):
            codes = states.from_bytes(self.topic, raw, state, numbers, self._arrays[1].reshape(-1, 2))
            self.look(state, codes)
        return state


def _sort_key(transition: Transition) -> Instant:
    return transition.event.time
