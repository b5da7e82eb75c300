"""A state with guards, over one level of scopes.

Of a reading only whether the predicates hold there matters, at each level of silence; so any condition that
gives these words can be guarded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.guard import (
    BEGUN,
    CODE,
    EXPECTED,
    LAST,
    NEVER,
    NOBODY,
    NONE,
    ON,
    ROW,
    SINCE,
    STATUS,
    TELLS,
    TIME,
    UNDECIDED,
    UNKNOWN,
    mattering,
    taken,
)
from ...model import batch as batches_of
from ...model.batch import concatenate, reached, times
from ...model.event import STATUSES, Event, Transition
from ...model.guard import Care
from ...model.instant import BEGINNING, Duration, Instant
from ...model.topic import Topic
from .. import machine as told_as
from ..machine import Batches, Mask, Survey, Told, may_be_late, thinned, with_columns
from . import state as states
from .state import Scope, State

Words = NDArray[np.uint8]
Scoping = Callable[[pa.RecordBatch], tuple[tuple[NDArray[np.int32], pa.StringArray], ...]]

LONGEST = 1 << 62
"""No duration need be longer, and sums with it stay within 64 bits."""

ROOM = 1 << 14
"""How much may be told before it is gathered."""

FEW = 2048
"""Fewer readings are taken one by one: to look at them is less work than to arrange them in columns."""

_FEW_SCOPES = 1 << 12  # among which nobody looks for some that can be let go


@dataclass(frozen=True)
class Guard:
    """The machine.  ``words`` tells for one event the levels of silence at which entrance and exit hold,
    ``enters`` and ``leaves`` for each of a batch; ``silences`` are these levels; ``chain`` and ``scoping``
    give the key of the scope, ``shown`` what people read; ``expected`` are the keys of scopes that are there
    before they speak."""

    topic: Topic
    care: Care
    silences: tuple[Duration, ...]
    words: Callable[[Event], tuple[int, int]]
    enters: Callable[[pa.RecordBatch], Words]
    leaves: Callable[[pa.RecordBatch], Words]
    chain: Callable[[Event], tuple[str | None, ...] | None]
    scoping: Scoping
    shown: Callable[[str], str | None]
    expected: tuple[str, ...] = ()

    is_timed = True
    margin = None
    compacts = True

    @cached_property
    def topics(self) -> dict[str, Topic]:
        return {self.topic.name: self.topic}

    @property
    def strictest(self) -> Duration | None:
        """What is older than what has come may be too old to end a silence."""
        return 0 if self._keeps_last else None

    # --- what the kernel wants to know ---

    @cached_property
    def beginning(self) -> int:
        """What is so of a scope before its first reading."""
        return {"off": 0, "on": ON, "unknown": UNKNOWN | UNDECIDED}[self.care.initially]

    @cached_property
    def _waits(self) -> tuple[Duration, Duration]:
        return min(self.care.enter.length, LONGEST), min(self.care.exit.length, LONGEST)

    @cached_property
    def _terms(self) -> tuple[int, int, int, int]:
        unknown, forget = (
            -1 if length is None else min(length, LONGEST) for length in (self.care.unknown, self.care.forget)
        )
        return unknown, forget, self.beginning, int(self.care.quietly)

    @cached_property
    def _rules(self) -> tuple[Any, ...]:
        """The rules as Python has them quickest."""
        waits = {(0, 0): self._waits[0], (0, 1): self._waits[1]}
        counts = (self.care.enter.readings, self.care.exit.readings)
        return 0, waits, counts, self.silences, self._terms

    @cached_property
    def _arrays(self) -> tuple[Any, ...]:
        """The rules as compiled code has them."""
        _, _, counts, silences, terms = self._rules
        arrays = (np.array(some, np.int64) for some in ([self._waits], counts, silences, terms))
        return 0, *arrays

    @cached_property
    def _keeps_last(self) -> bool:
        """Whether something is told of the last reading."""
        return bool(self.silences) or self.care.unknown is not None or self.care.forget is not None

    @cached_property
    def _keeps_begun(self) -> bool:
        return bool(self.care.enter.length or self.care.exit.length)

    @cached_property
    def _gap(self) -> Duration:
        """The shortest silence that is anything."""
        lengths = (*self.silences, self.care.unknown or LONGEST, self.care.forget or LONGEST)
        return min(lengths)

    # --- beginning ---

    def initial(self) -> State:
        state = states.new(self.topic)
        if self.expected:
            state.keys.codes(pa.array(self.expected, pa.string()))
            state.widen(self.beginning)
            state.there["flags"] |= EXPECTED
        return state

    def _started(self, state: State, at: Instant) -> None:
        """Those who are expected are so from the first moment that is heard of."""
        if state.start is None and self.expected:
            state.start = at
            self._expect(state, np.flatnonzero(state.there["flags"] & EXPECTED), at)

    def _expect(self, state: State, codes: NDArray[Any], at: Instant) -> None:
        some = state.scopes[codes]
        some["last"] = at
        some["since"] = np.where(some["flags"] & ON, at, NONE)
        some["enter"], some["leave"] = self.words(Event(self.topic.name, at, ""))
        state.scopes[codes] = some
        self.look(state, codes)

    def look(self, state: State, codes: NDArray[Any]) -> None:
        """See when scopes are due."""
        self._run(state, codes.astype(np.int32), np.full(len(codes), NONE), None, None)
        state.next = int(state.due[: len(state.keys)].min(initial=NEVER))

    # --- one event ---

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        state.latest = max(state.latest, event.time)
        chain = self.chain(event)
        if chain is None:
            return state, []
        key = chain[-1]
        assert key is not None
        if state.start is None:
            self._started(state, event.time)
        state, code = self._code(state, key)
        state.taken = True
        enter, leave = self.words(event)
        return state, self._take_one(state, code, event.time, (enter, leave), event)

    def _code(self, state: State, key: str) -> tuple[State, int]:
        code = state.keys.code(key)
        if code >= len(state.scopes):
            less = self._without_gone(state)
            if less is not state:
                return self._code(less, key)
            state.widen(self.beginning)
        return state, code

    def _take_one(
        self, state: State, code: int, at: Instant, words: tuple[int, int] | None, event: Event | None
    ) -> list[Transition]:
        """Let time come so far for one scope, and take its reading, if there is one."""
        scope = Scope(state.scopes[code].item())
        out: dict[tuple[int, int], int] = {}
        reads = words is not None
        enters, leaves = ((words[0],), (words[1],)) if words is not None else ((), ())
        _, count = taken.body(
            (code,), (at,), reads, enters, leaves, {code: scope}, state.due, *self._rules, state.until,
            0, TELLS, out,
        )  # fmt: skip
        said = [self._transition(state, out, n, event) for n in range(count)] if count else []
        if event is not None:
            if scope.cand_row == 0:
                if self._keeps_begun and scope.cand != NONE:
                    state.begun.put_one(code, event)
                scope.cand_row = BEGUN
            elif scope.cand_row == LAST and scope.last_row == 0:
                if self._keeps_begun and scope.cand != NONE:
                    state.begun.put_one(code, state.last.event(code, at))
                scope.cand_row = BEGUN
            if scope.last_row == 0:
                if self._keeps_last:
                    state.last.put_one(code, event)
                scope.last_row = LAST
        state.scopes[code] = scope.record()
        due = int(state.due[code])
        if due < state.next:
            state.next = due
        return said

    def _transition(
        self, state: State, out: dict[tuple[int, int], int], n: int, event: Event | None
    ) -> Transition:
        code, row, at = out[n, CODE], out[n, ROW], out[n, TIME]
        key = state.keys.key(code)
        if row >= 0:
            assert event is not None
            told = event if at == event.time else replace(event, time=at)
        elif row == NOBODY:
            told = Event(self.topic.name, at, self.shown(key) or "", self._nothing)
        else:
            told = (state.begun if row == BEGUN else state.last).event(code, at)
        since = out[n, SINCE]
        status = STATUSES[out[n, STATUS]]
        return Transition(told, status, self.shown(key), None if since == NONE else since, 0)

    @cached_property
    def _nothing(self) -> dict[str, None]:
        return {attribute.name: None for attribute in self.topic.attributes}

    # --- time ---

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        limit = self._limit(state, until)
        if limit <= state.next:
            return state, []
        due = np.flatnonzero(state.due[: len(state.keys)] < limit)
        said: list[Transition] = []
        if len(due) < FEW:
            for code in due.tolist():
                said += self._take_one(state, code, limit, None, None)
            state.next = int(state.due[: len(state.keys)].min(initial=NEVER))
            return state, sorted(said, key=lambda one: one.event.time)
        told = self._passed(state, limit)
        return state, told_as.transitions(self.topics, Told({self.topic.name: told}))

    def _limit(self, state: State, until: Instant) -> Instant:
        """Note that time has come so far; up to which instant things happen by it."""
        if until == BEGINNING:
            return state.until
        limit = max(state.latest, state.until) + 1 if until == NEVER else until
        if limit > BEGINNING + 1:
            if state.start is None:
                self._started(state, limit)
            state.until = max(state.until, limit)
        return state.until

    def _passed(self, state: State, limit: Instant) -> pa.RecordBatch:
        """What is told when time has come so far, in columns."""
        due = np.flatnonzero(state.due[: len(state.keys)] < limit).astype(np.int32)
        out = self._run(state, due, np.full(len(due), limit), None, None)
        state.next = int(state.due[: len(state.keys)].min(initial=NEVER))
        return self._told(state, out, None)

    def due(self, state: State) -> Instant | None:
        state.next = int(state.due[: len(state.keys)].min(initial=NEVER))
        return None if state.next == NEVER else state.next

    # --- a batch ---

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, Told]:
        name = self.topic.name
        parts: list[pa.RecordBatch] = []
        if (batch := batches.get(name)) is not None:
            if (latest := reached(batch)) is not None:
                state.latest = max(state.latest, latest)
            if len(batch):
                state, told = self._stepped(state, batch)
                parts.append(told)
        limit = self._limit(state, until)
        if limit > state.next:
            parts.append(self._passed(state, limit))
        if not any(map(len, parts)):
            return state, Told({name: self._told(state, _NOTHING, batch)} if batch is not None else {})
        whole = parts[0] if len(parts) == 1 else concatenate(parts)
        order = np.argsort(times(whole), kind="stable")
        return state, Told({name: whole.take(pa.array(order))})

    def _stepped(self, state: State, batch: pa.RecordBatch) -> tuple[State, pa.RecordBatch]:
        codes, keys = self.scoping(batch)[-1]
        inside = np.flatnonzero(codes >= 0)
        if not len(inside):
            return state, self._told(state, _NOTHING, batch)
        moments = times(batch)
        if state.start is None:
            self._started(state, int(moments[inside[0]]))
        table = state.keys.codes(keys)
        if len(state.keys) > len(state.scopes):
            less = self._without_gone(state)
            if less is not state:
                state, table = less, less.keys.codes(keys)
            state.widen(self.beginning)
        state.taken = True
        own = np.append(table, np.int32(-1)).astype(np.int32)[codes]
        out = self._run(state, own, moments, self.enters(batch), self.leaves(batch))
        told = self._told(state, out, batch)
        met = np.unique(own[inside])
        self._commit(state, met, batch)
        state.next = min(state.next, int(state.due[met].min()))
        return state, told

    def _run(
        self, state: State, codes: Any, moments: Any, enters: Words | None, leaves: Words | None
    ) -> NDArray[np.int64]:
        """Take readings, or without any let time pass; what is told."""
        reads = enters is not None
        none = np.zeros(0, np.uint8)
        first, second = (none, none) if enters is None or leaves is None else (enters, leaves)
        rules: tuple[Any, ...] = self._arrays
        scopes: Any = state.scopes
        if interpreted := taken.is_python(len(codes)):
            scopes = {code: Scope(state.scopes[code].item()) for code in set(codes.tolist()) if code >= 0}
            codes, moments, first, second = (some.tolist() for some in (codes, moments, first, second))
            rules = self._rules
        found: list[NDArray[np.int64]] = []
        at = 0
        while at < len(codes):
            out = np.empty((ROOM + TELLS, 5), np.int64)
            at, told = taken(
                codes, moments, reads, first, second, scopes, state.due, *rules, state.until, at, len(out),
                out,
            )  # fmt: skip
            found.append(out[:told])
        if interpreted:
            for code, scope in scopes.items():
                state.scopes[code] = scope.record()
        return np.concatenate(found) if found else _NOTHING

    def _commit(self, state: State, met: NDArray[Any], batch: pa.RecordBatch) -> None:
        """Keep of a batch that was taken the readings that may be told later."""
        some = state.scopes[met]
        if self._keeps_begun:
            overwritten = (some["cand_row"] == LAST) & (some["last_row"] >= 0) & (some["cand"] != NONE)
            codes = met[overwritten]
            if len(codes):
                state.begun.put(codes, state.last.take(codes))
            begun = (some["cand_row"] >= 0) & (some["cand"] != NONE)
            state.begun.put(met[begun], batch.take(pa.array(some["cand_row"][begun])))
            some["cand_row"] = np.where((some["cand_row"] >= 0) | overwritten, BEGUN, some["cand_row"])
        else:
            some["cand_row"] = BEGUN
        spoke = some["last_row"] >= 0
        if self._keeps_last:
            state.last.put(met[spoke], batch.take(pa.array(some["last_row"][spoke])))
        some["last_row"] = np.where(spoke, LAST, some["last_row"])
        state.scopes[met] = some

    def _told(self, state: State, out: NDArray[np.int64], batch: pa.RecordBatch | None) -> pa.RecordBatch:
        """What is told, as rows: of readings of the batch, and of such as are kept."""
        codes, rows = out[:, CODE], out[:, ROW]
        empty = batches_of.from_events(self.topic, [])
        parts, places = [empty if batch is None else batch.slice(0, 0)], []
        for where in (rows >= 0, rows == BEGUN, rows == LAST, rows == NOBODY):
            at = np.flatnonzero(where)
            if not len(at):
                continue
            places.append(at)
            kind = int(rows[at[0]])
            if kind >= 0:
                assert batch is not None
                parts.append(batch.take(pa.array(rows[at])))
            elif kind == NOBODY:
                names = [self.shown(key) or "" for key in state.keys.take(codes[at]).to_pylist()]
                silent = [Event(self.topic.name, 0, name) for name in names]
                parts.append(batches_of.from_events(self.topic, silent))
            else:
                parts.append((state.begun if kind == BEGUN else state.last).take(codes[at]))
        whole = concatenate(parts) if len(parts) > 1 else parts[0]
        if places:
            back = np.empty(len(out), np.int64)
            back[np.concatenate(places)] = np.arange(len(out))
            whole = whole.take(pa.array(back))
        when = pa.array(out[:, TIME]).cast(batches_of.TIME)
        whole = whole.set_column(whole.schema.get_field_index("time"), "time", when)
        named, scopes = np.unique(codes, return_inverse=True)
        shown = [self.shown(key) for key in state.keys.take(named).to_pylist()]
        since = out[:, SINCE]
        added = {
            told_as.CONDITIONS: pa.array(np.ones(len(out), np.uint64)),
            told_as.STATUS: pa.DictionaryArray.from_arrays(out[:, STATUS].astype(np.int8), list(STATUSES)),
            told_as.SCOPE: pa.array(shown, pa.string()).take(pa.array(scopes)),
            told_as.SINCE: pa.array(since, pa.int64(), mask=since == NONE).cast(batches_of.TIME),
        }
        return with_columns(whole.replace_schema_metadata(None), added)

    # --- a stretch of history alone ---

    def reduce(
        self, batches: Batches, *, closed: bool = True, latest: Instant = NEVER
    ) -> dict[str, pa.RecordBatch]:
        name = self.topic.name
        if name not in batches:
            return {}
        batch = batches[name]
        stays = self._mattering(batch) if closed else self.matters(name, batch)
        return {name: thinned(batch, stays | (may_be_late(self, batch, latest) & self.matters(name, batch)))}

    def matters(self, topic: str, batch: pa.RecordBatch) -> Mask:
        """All readings in a scope: one that satisfies nothing interrupts a guard, and ends a silence."""
        return self.scoping(batch)[-1][0] >= 0

    def survey(self, topic: str, batch: pa.RecordBatch, *, closed: bool = False) -> Survey:
        outside = np.count_nonzero(self.scoping(batch)[-1][0] < 0)
        matters = self._mattering(batch) if closed else self.matters(topic, batch)
        return Survey(matters, np.array([outside]))

    def _mattering(self, batch: pa.RecordBatch) -> Mask:
        codes, keys = self.scoping(batch)[-1]
        stays = np.zeros(len(batch), np.bool_)
        if len(batch):
            scopes = np.full((len(keys), 3), -1, np.int64)
            mattering(
                codes,
                times(batch),
                self.enters(batch),
                self.leaves(batch),
                scopes,
                self._gap,
                max(self.care.enter.readings, self.care.exit.readings, 1),
                stays,
            )
        return stays

    # --- what holds, and keeping it ---

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        there = state.there
        found = np.flatnonzero((there["flags"] & ON != 0) & (there["last"] != NONE))
        return [(0, self.shown(state.keys.key(c)), int(there["since"][c])) for c in found.tolist()]

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        there = state.there
        found = np.flatnonzero((there["flags"] & UNKNOWN != 0) & (there["last"] != NONE))
        held = [None if since == NONE else int(since) for since in there["since"][found]]
        return [
            (0, self.shown(state.keys.key(c)), since) for c, since in zip(found.tolist(), held, strict=True)
        ]

    def last(self, state: State, condition: int) -> list[Transition]:
        return []

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state

    def is_fresh(self, state: State, condition: int) -> bool:
        return not state.taken

    def _without_gone(self, state: State) -> State:
        """The state, where there is no room for another scope, without those that were forgotten, if they are
        most of many."""
        size = len(state.scopes)
        if size < _FEW_SCOPES or 2 * np.count_nonzero(state.scopes["last"] != NONE) > size:
            return state
        return states.compacted(state, self.topic, self.beginning)

    def to_bytes(self, state: State) -> bytes:
        return states.to_bytes(state)

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        state = self.initial()
        if was is not None and was[0] is None:
            return state
        codes = states.from_bytes(raw, state, self.beginning)
        self.look(state, codes)
        return state


_NOTHING = np.empty((0, 5), np.int64)
