"""States with guards, over one level of scopes.

Of a reading only whether the predicates hold there matters, at each level of silence; so any condition that
gives these words can be guarded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels import guard as kernel
from ...kernels.guard import BEGUN, EXPECTED, LAST, NEVER, NONE, ON, TELLS, UNDECIDED, UNKNOWN
from ...model.batch import concatenate, in_turn, reached, times
from ...model.event import Event, Transition
from ...model.guard import Care
from ...model.instant import BEGINNING, EARLIEST, Duration, Instant
from ...model.topic import Topic
from .. import machine as told_as
from ..keys import Touched
from ..machine import Batches, Mask, Survey, Told, may_be_late, thinned
from . import state as states
from . import told
from .state import Cell, State

Words = NDArray[np.uint8]
Scoping = Callable[[pa.RecordBatch], tuple[tuple[NDArray[np.int32], pa.StringArray], ...]]

MOST = 64
"""How many states one machine can hold."""

LONGEST = 1 << 62
"""No duration need be longer, and sums with it stay within 64 bits."""

ROOM = 1 << 14
"""How much may be told before it is gathered."""

FEW = 2048
"""Fewer readings are taken one by one: to look at them is less work than to arrange them in columns."""

_FEW_SCOPES = 1 << 12  # among which nobody looks for some that can be let go


class Lengths(NamedTuple):
    """How long predicates must hold, for one event and for a batch: lines like those of words."""

    of_one: Callable[[Event], list[Duration]]
    of_batch: Callable[[pa.RecordBatch], NDArray[np.int64]]


@dataclass(frozen=True)
class Rule:
    """What one state says beside its predicates, and the silences that it tells apart."""

    care: Care
    silences: tuple[Duration, ...] = ()

    @property
    def beginning(self) -> int:
        """What is so of a scope before its first reading."""
        return {"off": 0, "on": ON, "unknown": UNKNOWN | UNDECIDED}[self.care.initially]

    @property
    def waits(self) -> tuple[Duration, Duration]:
        """How long entrance and exit must hold."""
        return min(self.care.enter.length, LONGEST), min(self.care.exit.length, LONGEST)

    @property
    def gap(self) -> Duration:
        """The shortest silence that is anything."""
        return min(*self.silences, self.care.unknown or LONGEST, self.care.forget or LONGEST, LONGEST)

    @property
    def readings(self) -> int:
        """After so many that say the same, one more makes no difference."""
        return max(self.care.enter.readings, self.care.exit.readings, 1)

    def row(self, depth: int) -> list[int]:
        """The rule as the kernel wants it, with room for so many silences."""
        care = self.care
        ends = (-1 if length is None else min(length, LONGEST) for length in (care.unknown, care.forget))
        lengths = [*self.silences, *[0] * (depth - len(self.silences))]
        head = [care.enter.readings, care.exit.readings, *ends, self.beginning, int(care.quietly)]
        return [*head, len(self.silences), *lengths]


@dataclass(frozen=True)
class Guard:
    """The machine.  ``words`` tells for one event the levels of silence at which predicates hold: of each
    state's entrance, then of each exit; ``columns`` the same of a batch, a line for each.  ``chain`` and
    ``scoping`` give the key of the scope, ``shown`` what people read; ``expected`` are the keys of scopes
    that are there before they speak.

    A scope whose latest reading came late, as from a device that had stored it, has a time of its own: others
    as late may follow.  Its time stands until as long again has passed, and then goes on as far behind."""

    topic: Topic
    rules: tuple[Rule, ...]
    words: Callable[[Event], Sequence[int]]
    columns: Callable[[pa.RecordBatch], Words]
    chain: Callable[[Event], tuple[str | None, ...] | None]
    scoping: Scoping
    shown: Callable[[str], str | None]
    expected: tuple[str, ...] = ()
    lengths: Lengths | None = None
    """How long predicates must hold, where readings say so; else the rules do."""

    is_timed = True
    pauses = True
    margin = None
    compacts = True

    @cached_property
    def topics(self) -> dict[str, Topic]:
        return {self.topic.name: self.topic}

    @property
    def strictest(self) -> Duration | None:
        """What is older than what has come may be too old to end a silence."""
        return 0 if self.keeps_last else None

    # --- what the kernel wants to know ---

    @cached_property
    def _rules(self) -> tuple[Any, ...]:
        """Rules and waits as Python has them quickest."""
        depth = max(len(rule.silences) for rule in self.rules)
        waits = [length for rule in self.rules for length in rule.waits]
        return [tuple(rule.row(depth)) for rule in self.rules], waits

    @cached_property
    def _arrays(self) -> tuple[Any, ...]:
        """The same as compiled code has them."""
        rules, waits = self._rules
        return np.array(rules, np.int64), np.array(waits, np.int64)

    @cached_property
    def keeps_last(self) -> bool:
        """Whether something is told of the last reading."""
        return any(rule.gap < LONGEST for rule in self.rules)

    @cached_property
    def _keeps_begun(self) -> bool:
        return self.lengths is not None or any(any(rule.waits) for rule in self.rules)

    # --- beginning ---

    def initial(self) -> State:
        state = states.new(self.topic, tuple(rule.beginning for rule in self.rules), self.lengths is not None)
        if self.expected:
            state.keys.codes(pa.array(self.expected, pa.string()))
            state.widen()
            state.there["flags"] |= EXPECTED
        return state

    def started(self, state: State, at: Instant) -> None:
        """Those who are expected are so from the first moment that is heard of."""
        if state.start is None and self.expected:
            state.start = at
            codes = np.flatnonzero((state.there["flags"] & EXPECTED).any(axis=1))
            some, width = state.there[codes], len(self.rules)
            some["last"] = at
            some["since"] = np.where(some["flags"] & ON, at, NONE)
            words = self.words(Event(self.topic.name, at, ""))
            some["enter"], some["leave"] = list(words[:width]), list(words[width:])
            state.there[codes] = some
            if state.waits is not None:  # no reading has told any
                state.waits.reshape(-1, width, 2)[codes] = self._arrays[1].reshape(width, 2)
            self.look(state, codes)

    def look(self, state: State, codes: NDArray[Any]) -> None:
        """See when scopes are due."""
        self._run(state, codes.astype(np.int32), np.full(len(codes), NONE), None)
        state.next = int(state.wakes().min(initial=NEVER))

    # --- one event ---

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        at = event.time
        if at > state.latest:
            state.latest = at
        chain = self.chain(event)
        if chain is None:
            return state, []
        key = chain[-1]
        assert key is not None
        if state.start is None:
            self.started(state, at)
        state, code = self._code(state, key)
        state.taken = True
        return state, self._take_one(state, code, at, self.words(event), event)

    def _code(self, state: State, key: str) -> tuple[State, int]:
        code = state.keys.code(key)
        if code >= state.room:
            less = self._without_gone(state)
            if less is not state:
                return self._code(less, key)
            state.widen()
        return state, code

    def _take_one(
        self, state: State, code: int, at: Instant, words: Sequence[int], event: Event | None
    ) -> list[Transition]:
        """Let time come so far for one scope, and take its reading, if there is one."""
        cells, due, own = state.heated(code)
        if state.touched is not None:
            state.touched.add(np.array([code]))
        rules, waits = self._rules
        each: int = 0
        lengths: Sequence[Duration] = ()
        if own is not None and self.lengths is not None:
            waits, each = own, 1
            lengths = () if event is None else self.lengths.of_one(event)
        before, out = due[0], dict[tuple[int, int], int]()
        _, count = kernel.taken.body(
            (0,), (at,), event is not None, words, cells, due, rules, waits, each, lengths, state.until,
            0, NEVER, out,
        )  # fmt: skip
        said: list[Transition] = []
        if count:
            known = self.topic, self.shown, state, code, out
            said = [told.transition(*known, n, event) for n in range(count)]
            if count > 1:
                said.sort(key=_moment)
        if event is not None:
            self._keep_one(state, code, cells, event)
            if (state.until > at or state.lagging) and at == cells[0].last:
                state.lags[code], state.lagging = 2 * (max(state.until, at) - at), True
        if due[0] != before or state.lagging:
            state.due[code] = due[0]
            state.next = min(state.next, due[0] + (int(state.lags[code]) if state.lagging else 0))
        return said

    def _keep_one(self, state: State, code: int, cells: Sequence[Cell], event: Event) -> None:
        """Keep a reading that was taken, as far as it may be told later."""
        is_last = False
        for f, cell in enumerate(cells):
            if cell.cand_row == 0:
                if self._keeps_begun and cell.cand != NONE:
                    state.begun.put_one(code * len(cells) + f, event)
                cell.cand_row = BEGUN
            elif cell.cand_row == LAST and cell.last_row == 0:
                if self._keeps_begun and cell.cand != NONE:
                    state.begun.put_one(code * len(cells) + f, state.last.event(code, event.time))
                cell.cand_row = BEGUN
            if cell.last_row == 0:
                is_last, cell.last_row = True, LAST
        if is_last and self.keeps_last:
            state.last.put_one(code, event)

    # --- some scopes alone ---

    def meets(self, events: Iterable[Event]) -> tuple[list[str]]:
        """The scopes that events come to."""
        chains = [chain for event in events if (chain := self.chain(event)) is not None]
        return (list(dict.fromkeys(chain[-1] for chain in chains if chain[-1] is not None)),)

    def taken_over(self, state: State, other: State, keys: tuple[Sequence[str], ...]) -> State:
        """A state that knows of some scopes what another knows; that one may still be used."""
        states.take_over(state, other, pa.array(keys[-1], pa.string()))
        return state

    # --- time ---

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        limit = self._limit(state, until)
        if limit <= state.next:
            return state, []
        due = np.flatnonzero(state.wakes() < limit)
        said: list[Transition] = []
        if len(due) < FEW:
            for code in due.tolist():
                said += self._take_one(state, code, limit - int(state.lags[code]), (), None)
            state.next = int(state.wakes().min(initial=NEVER))
            return state, sorted(said, key=_moment)
        passed = self._passed(state, limit)
        return state, told_as.transitions(self.topics, Told({self.topic.name: passed}))

    def _limit(self, state: State, until: Instant) -> Instant:
        """Note that time has come so far; up to which instant things happen by it."""
        if until == BEGINNING:
            return state.until
        limit = until
        if until == NEVER:  # nobody is waited for any longer
            limit, state.next = max(state.latest, state.until) + 1, BEGINNING
            state.lags[:], state.lagging = 0, False
        if limit > BEGINNING + 1:
            if state.start is None:
                self.started(state, limit)
            state.until = max(state.until, limit)
        return state.until

    def _passed(self, state: State, limit: Instant) -> pa.RecordBatch:
        """What is told when time has come so far, in columns."""
        due = np.flatnonzero(state.wakes() < limit).astype(np.int32)
        out = self._run(state, due, limit - state.lags[due], None)
        state.next = int(state.wakes().min(initial=NEVER))
        return told.rows(self.topic, self.shown, state, out, None)

    def resume(self, state: State, until: Instant) -> State:
        """Go on after a pause: the own time of each scope goes on from where it was, or from its last
        reading."""
        last = state.there["last"].max(axis=1, initial=NONE)
        lags = state.lags[: len(last)]
        own = np.maximum(last, max(state.until, EARLIEST) - lags)
        lags[:], state.lagging = np.where(last == NONE, 0, np.maximum(until, own) - own), True
        if state.touched is not None:
            state.touched.add(np.arange(len(last)))
        self._limit(state, until)
        state.next = int(state.wakes().min(initial=NEVER))
        return state

    def due(self, state: State) -> Instant | None:
        state.next = int(state.wakes().min(initial=NEVER))
        return None if state.next == NEVER else state.next

    # --- a batch ---

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, Told]:
        name = self.topic.name
        parts: list[pa.RecordBatch] = []
        if (batch := batches.get(name)) is not None:
            if (latest := reached(batch)) is not None:
                state.latest = max(state.latest, latest)
            if len(batch):
                state, some = self._stepped(state, batch)
                parts.append(some)
        limit = self._limit(state, until)
        if limit > state.next:
            parts.append(self._passed(state, limit))
        if not any(map(len, parts)):
            nothing = told.NOTHING
            none = {} if batch is None else {name: told.rows(self.topic, self.shown, state, nothing, batch)}
            return state, Told(none)
        whole = parts[0] if len(parts) == 1 else concatenate(parts)
        return state, Told({name: in_turn(whole, times(whole), told_as.SCOPE)})

    def _stepped(self, state: State, batch: pa.RecordBatch) -> tuple[State, pa.RecordBatch]:
        codes, keys = self.scoping(batch)[-1]
        inside = np.flatnonzero(codes >= 0)
        if not len(inside):
            return state, told.rows(self.topic, self.shown, state, told.NOTHING, batch)
        moments = times(batch)
        if state.start is None:
            self.started(state, int(moments[inside[0]]))
        table = state.keys.codes(keys)
        if len(state.keys) > state.room:
            less = self._without_gone(state)
            if less is not state:
                state, table = less, less.keys.codes(keys)
            state.widen()
        state.taken = True
        own = np.append(table, np.int32(-1)).astype(np.int32)[codes]
        lengths = None if self.lengths is None else self.lengths.of_batch(batch)
        out = self._run(state, own, moments, self.columns(batch), lengths)
        said = told.rows(self.topic, self.shown, state, out, batch)
        met = np.unique(own[inside])
        self._keep(state, met, batch)
        if state.lagging or state.until > int(moments[inside].min()):
            state.lagging = True
            newest = np.full(len(state.keys), NONE)
            np.maximum.at(newest, own[inside], moments[inside])
            news = met[newest[met] == state.there["last"][met, 0]]
            state.lags[news] = 2 * (np.maximum(state.until, newest[news]) - newest[news])
        state.next = min(state.next, int(state.wakes(met).min()))
        return state, said

    def _run(
        self, state: State, codes: Any, moments: Any, words: Words | None, lengths: Any = None
    ) -> NDArray[np.int64]:
        """Take readings, or without any let time pass; what is told."""
        state.settle()
        if state.touched is not None:
            state.touched.add(codes)
        reads, width = words is not None, len(self.rules)
        flat: Any = np.zeros(0, np.uint8) if words is None else words.ravel()
        rules, waits = self._arrays
        scopes: Any = state.scopes
        each, lengths = 0, np.zeros(0, np.int64) if lengths is None else lengths.ravel()
        if interpreted := kernel.taken.is_python(len(codes)):
            met = state.cells(np.unique(codes[codes >= 0])).tolist()
            scopes = {cell: Cell(state.scopes[cell].item()) for cell in met}
            codes, moments, flat = codes.tolist(), moments.tolist(), flat.tolist()
            rules, waits = self._rules
        if state.waits is not None:
            waits, each = state.waits, 1
        found: list[NDArray[np.int64]] = []
        at = 0
        while at < len(codes):
            out = np.empty((ROOM + TELLS * width, 6), np.int64)
            at, count = kernel.taken(
                codes, moments, reads, flat, scopes, state.due, rules, waits, each, lengths, state.until,
                at, len(out), out,
            )  # fmt: skip
            found.append(out[:count])
        if interpreted:
            for cell, one in scopes.items():
                state.scopes[cell] = one.record()
        return np.concatenate(found) if found else told.NOTHING

    def _keep(self, state: State, met: NDArray[Any], batch: pa.RecordBatch) -> None:
        """Keep of a batch that was taken the readings that may be told later."""
        cells = state.cells(met)
        some = state.scopes[cells]
        begun = some["cand_row"] >= 0
        if self._keeps_begun:
            holds = some["cand"] != NONE
            overwritten = (some["cand_row"] == LAST) & (some["last_row"] >= 0)
            if (moved := overwritten & holds).any():
                state.begun.put(cells[moved], state.last.take(cells[moved] // state.width))
            begins = begun & holds
            state.begun.put(cells[begins], batch.take(pa.array(some["cand_row"][begins])))
            begun |= overwritten
        some["cand_row"] = np.where(begun, BEGUN, some["cand_row"])
        spoke = some["last_row"] >= 0
        if self.keeps_last:
            last = some["last_row"].reshape(-1, state.width).max(axis=1)
            state.last.put(met[last >= 0], batch.take(pa.array(last[last >= 0])))
        some["last_row"] = np.where(spoke, LAST, some["last_row"])
        state.scopes[cells] = some

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
        """One without a row in a table is not outside: it ends a silence all the same."""
        nowhere = self.scoping(batch)[-1][0] < 0
        matters = self._mattering(batch) if closed else ~nowhere
        return Survey(matters, np.full(len(self.rules), np.count_nonzero(nowhere), np.int64))

    def _mattering(self, batch: pa.RecordBatch) -> Mask:
        codes, keys = self.scoping(batch)[-1]
        found = np.zeros(len(batch), np.bool_)
        if len(batch):
            words, moments, width = self.columns(batch), times(batch), len(self.rules)
            for f, rule in enumerate(self.rules):
                stays, scopes = np.zeros(len(batch), np.bool_), np.full((len(keys), 3), -1, np.int64)
                kernel.mattering(
                    codes, moments, words[f], words[width + f], scopes, rule.gap, rule.readings, stays
                )
                found |= stays
        return found

    # --- what holds, and keeping it ---

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        there = state.there
        found = np.argwhere((there["flags"] & ON != 0) & (there["last"] != NONE))
        return [(f, self.shown(state.keys.key(c)), int(there["since"][c, f])) for c, f in found.tolist()]

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        there = state.there
        found = np.argwhere((there["flags"] & UNKNOWN != 0) & (there["last"] != NONE)).tolist()
        held = [None if (since := int(there["since"][c, f])) == NONE else since for c, f in found]
        return [(f, self.shown(state.keys.key(c)), since) for (c, f), since in zip(found, held, strict=True)]

    def last(self, state: State, condition: int) -> list[Transition]:
        return []

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state

    def is_fresh(self, state: State, condition: int) -> bool:
        return not state.taken

    def _without_gone(self, state: State) -> State:
        """The state, where there is no room for another scope, without those that were forgotten, if they are
        most of many."""
        if state.room < _FEW_SCOPES or 2 * np.count_nonzero(state.alive) > state.room:
            return state
        return states.compacted(state, self.topic)

    def to_bytes(self, state: State) -> bytes:
        """Only scopes that can be told from new ones are kept."""
        return states.to_bytes(state, np.flatnonzero(state.alive))

    def noting(self, state: State) -> State:
        state.touched = Touched()
        return state

    def noted(self, state: State) -> bytes | None:
        codes = None if state.touched is None else state.touched.take()
        return None if codes is None else states.to_bytes(state, codes)

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        return self.renewed(self.initial(), raw, was)

    def renewed(self, state: State, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        numbers = range(len(self.rules)) if was is None else was
        if any(number is not None for number in numbers):
            codes = states.from_bytes(self.topic, raw, state, numbers, self._arrays[1].reshape(-1, 2))
            self.look(state, codes)
        return state


def _moment(said: Transition) -> Instant:
    return said.event.time
