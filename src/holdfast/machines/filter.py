"""State filters: pass the event that starts a condition and the event that ends it.

A machine runs up to 64 filters that watch one topic in the same scopes.  Each filter has one bit
for each scope [F3, F8], initially 0: the filters of one scope are the bits of a word.  An event
goes through the scopes that contain it from the innermost outward: what passes the inner filter
feeds the outer one, and what passes the outermost is a transition [F10].
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..kernels.toggle import both_ways, pair, toggle
from ..model.batch import TIME, from_ipc, reached, stood_for, times, to_ipc, with_progress
from ..model.event import STATUSES, Event, Transition
from ..model.instant import BEGINNING, NEVER, Instant
from ..model.topic import Topic
from .keys import Keys, Touched, grown
from .machine import CONDITIONS, SCOPE, SINCE, STATUS, Batches, Mask, Survey, Told, with_columns

Words = NDArray[Any]  # one unsigned integer for each scope or row; bit f belongs to filter f
Rows = NDArray[np.intp]
Chain = tuple[str | None, ...]

MOST = 64
"""How many filters one machine can hold."""

_CHUNK = 1 << 16  # rows whose masks stay in the cache between predicate and toggle
_FEW = 1 << 12  # scopes among which nobody looks for some that can be let go
_KEY, _WORD = "@key", "@word"


@dataclass(frozen=True)
class StateFilter:
    """``[enter; leave]``, for one event."""

    enter: Callable[[Event], bool]
    leave: Callable[[Event], bool]
    momentary: bool = False


def word_of(filters: int) -> Any:
    """The unsigned integer that has a bit for each of so many filters."""
    assert 1 <= filters <= MOST
    return np.uint8 if filters <= 8 else np.uint64


class Level(NamedTuple):
    """The scopes of one level of nesting and the bits of their filters."""

    keys: Keys
    words: Words


class State(NamedTuple):
    """Levels, innermost first; ``since[f, c]`` is when filter f began to hold in outermost scope c.  A state
    that notes what changes has in ``touched`` the scopes of each level."""

    levels: tuple[Level, ...]
    since: NDArray[np.int64]
    touched: tuple[Touched, ...] = ()


@dataclass(frozen=True)
class Filters:
    """The machine.  ``enters`` and ``leaves`` tell for each event of a batch which filters' predicates
    hold; a momentary filter leaves as it enters.  ``chain`` and ``scoping`` give the keys of the
    scopes of an event and of a batch, innermost first; ``shown`` turns an outermost key into the
    scope that people read."""

    topic: Topic
    filters: tuple[StateFilter, ...]
    enters: Callable[[pa.RecordBatch], Words]
    leaves: Callable[[pa.RecordBatch], Words]
    depth: int
    chain: Callable[[Event], Chain | None]
    scoping: Callable[[pa.RecordBatch], tuple[tuple[NDArray[np.int32], pa.StringArray], ...]]
    shown: Callable[[str], str | None]
    lacking: Callable[[pa.RecordBatch], Sequence[Mask]] | None = None
    """For each filter which events of a batch lack what it is to compare them with."""

    strictest = None
    is_timed = False
    margin = None
    compacts = True

    @cached_property
    def topics(self) -> dict[str, Topic]:
        return {self.topic.name: self.topic}

    @cached_property
    def word(self) -> Any:
        return word_of(len(self.filters))

    @cached_property
    def moving(self) -> Any:
        """The filters whose bit moves: all but the momentary ones."""
        return self.word(sum(1 << f for f, spec in enumerate(self.filters) if not spec.momentary))

    def initial(self) -> State:
        levels = tuple(Level(Keys(), np.zeros(8, self.word)) for _ in range(self.depth))
        return State(levels, np.full((len(self.filters), 8), BEGINNING, np.int64))

    def due(self, state: State) -> Instant | None:
        return None  # a filter acts on events alone

    # --- one event ---

    def react(self, state: State, event: Event) -> tuple[State, list[Transition]]:
        """Inactive, test the entrance predicate; active, the exit predicate; a hit toggles.  [S2]"""
        chain = self.chain(event)
        if chain is None:
            return state, []
        state, codes = self._codes_of(state, chain)
        met = [(words, code) for code, (_, words) in zip(codes, state.levels, strict=True) if code >= 0]
        bits = [int(words[code]) for words, code in met]
        out: list[Transition] = []
        for f, spec in enumerate(self.filters):
            if spec.momentary:
                if spec.enter(event):
                    out.append(Transition(event, "atomic", self._scope(chain), None, f))
            elif _passes(bits, f, spec, event):
                since = state.since[f]
                began = int(since[codes[-1]])
                since[codes[-1]] = event.time if began == BEGINNING else BEGINNING
                if began == BEGINNING:
                    out.append(Transition(event, "ingress", self._scope(chain), None, f))
                else:
                    out.append(Transition(event, "egress", self._scope(chain), began, f))
        for (words, code), word in zip(met, bits, strict=True):
            words[code] = word
        for touched, code in zip(state.touched, codes, strict=False):
            touched.add(np.array([code]))
        return state, out

    def _codes_of(self, state: State, chain: Chain) -> tuple[State, list[int]]:
        codes = [
            -1 if key is None else level.keys.code(key)
            for key, level in zip(chain, state.levels, strict=True)
        ]
        if any(code >= len(words) for code, (_, words) in zip(codes, state.levels, strict=True)):
            less = self._without_idle(state)
            if less is not state:
                return self._codes_of(less, chain)
            state = self._widened(state)
        return state, codes

    def _widened(self, state: State) -> State:
        """The state with a word for every key."""
        levels = tuple(Level(keys, grown(words, len(keys))) for keys, words in state.levels)
        return State(levels, grown(state.since, len(levels[-1].words), BEGINNING), state.touched)

    def _without_idle(self, state: State) -> State:
        """The state, where there is no room for another scope, without those in which nothing holds, if
        they are most of many: they cannot be told from new ones."""
        levels = [_busy(level) for level in state.levels]
        if all(level is old for (level, _), old in zip(levels, state.levels, strict=True)):
            return state
        since, held = state.since, levels[-1][1]
        if held is not None:
            since = np.full_like(since, BEGINNING)
            since[:, : len(held)] = state.since[:, held]
        for touched in state.touched:
            touched.lose()
        return State(tuple(level for level, _ in levels), since, state.touched)

    def _scope(self, chain: Chain) -> str | None:
        key = chain[-1]
        assert key is not None
        return self.shown(key)

    def advance(self, state: State, until: Instant) -> tuple[State, list[Transition]]:
        return state, []

    # --- a batch ---

    def step(self, state: State, batches: Batches, until: Instant) -> tuple[State, Told]:
        if (batch := batches.get(self.topic.name)) is None:
            return state, Told({})
        state, passed = self._stepped(state, batch)
        return state, Told({self.topic.name: passed})

    def _stepped(self, state: State, batch: pa.RecordBatch) -> tuple[State, pa.RecordBatch]:
        found = self.scoping(batch)
        state, tables = self._known(state, found)
        (codes, _), words = found[0], state.levels[0].words
        rows: list[Rows] = []
        moved: list[Rows] = []
        enters: list[Words] = []
        leaves: list[Words] = []
        hits = np.empty(min(len(batch), _CHUNK), self.word)
        for at, enter, leave in self._masks(batch, found[-1][0]):
            part = slice(at, at + len(enter))
            hit = hits[: len(enter)]
            toggle(_mapped(codes[part], tables[0]), enter, leave, words, self.moving, hit)
            some = np.flatnonzero(hit != 0)
            rows.append(some + at)
            moved.append(rows[-1][(hit[some] & self.moving) != 0])
            enters.append(enter[some] & hit[some])
            leaves.append(leave[some] & hit[some])
        if state.touched:  # who moves no innermost bit moves none
            some = _concatenated(moved, np.intp)
            for touched, (own, _), table in zip(state.touched, found, tables, strict=True):
                touched.add(_mapped(own[some], table))
        return self._outward(
            state,
            batch,
            _concatenated(rows, np.intp),
            _concatenated(enters, self.word),
            _concatenated(leaves, self.word),
            found,
            tables,
        )

    def _masks(
        self, batch: pa.RecordBatch, outermost: NDArray[np.int32]
    ) -> Iterator[tuple[int, Words, Words]]:
        """For each chunk: where it begins, and the filters whose predicates hold at each event; one
        outside every scope does nothing."""
        for at in range(0, len(batch), _CHUNK):
            part = batch if len(batch) <= _CHUNK else batch.slice(at, _CHUNK)
            enter, leave = self.enters(part), self.leaves(part)
            scopes = outermost[at : at + _CHUNK]
            if scopes.min() < 0:
                enter, leave = enter * (scopes >= 0), leave * (scopes >= 0)
            yield at, enter, leave

    def _known(self, state: State, found: Any) -> tuple[State, list[NDArray[np.int32] | None]]:
        """The state with room for every key of a batch, and how its codes translate into ours."""
        tables = _translations(state, found)
        less = self._without_idle(state)
        if less is not state:
            state, tables = less, _translations(less, found)
        return self._widened(state), tables

    def _outward(
        self,
        state: State,
        batch: pa.RecordBatch,
        rows: Rows,
        enter: Words,
        leave: Words,
        found: Any,
        tables: list[NDArray[np.int32] | None],
    ) -> tuple[State, pa.RecordBatch]:
        """Take what passed the innermost filters through the levels around them."""
        hits = enter | leave
        for (codes, _), table, level in list(zip(found, tables, state.levels, strict=True))[1:]:
            hits = np.empty(len(rows), self.word)
            toggle(_mapped(codes[rows], table), enter, leave, level.words, self.moving, hits)
            passed = np.flatnonzero(hits)
            rows, hits = rows[passed], hits[passed]
            enter, leave = enter[passed] & hits, leave[passed] & hits
        outermost = _mapped(found[-1][0][rows], tables[-1])
        return state, self._transitions(state, batch, rows, hits, outermost)

    def _transitions(
        self, state: State, batch: pa.RecordBatch, rows: Rows, hits: Words, outermost: Any
    ) -> pa.RecordBatch:
        """The events that passed, with the filter, what it means there, and since when."""
        if not len(rows):
            return with_columns(batch.slice(0, 0), _nothing())
        moments = times(batch)[rows]
        picks: list[Rows] = []
        sinces: list[NDArray[np.int64]] = []
        statuses: list[NDArray[np.int8]] = []
        anything = int(np.bitwise_or.reduce(hits))
        told = [f for f in range(len(self.filters)) if anything >> f & 1]
        for f in told:
            pick = np.flatnonzero(hits & self.word(1 << f))
            began = np.full(len(pick), BEGINNING, np.int64)
            if self.filters[f].momentary:
                status = np.full(len(pick), STATUSES.index("atomic"), np.int8)
            else:
                pair(outermost[pick], moments[pick], state.since[f], began, BEGINNING)
                status = (began != BEGINNING).astype(np.int8)  # ingress, egress
            picks.append(pick)
            sinces.append(began)
            statuses.append(status)
        which = np.concatenate(picks)
        own = np.repeat(np.uint64(1) << np.array(told, np.uint64), [len(p) for p in picks])
        by_row = np.argsort(which, kind="stable")  # of one event what one filter says after the other
        which, own, since = which[by_row], own[by_row], np.concatenate(sinces)[by_row]
        status = np.concatenate(statuses)[by_row]
        named, scopes = np.unique(outermost[which], return_inverse=True)
        names = [self.shown(key) for key in state.levels[-1].keys.take(named).to_pylist()]
        added = {
            CONDITIONS: pa.array(own),
            STATUS: pa.DictionaryArray.from_arrays(status, list(STATUSES)),
            SCOPE: pa.array(names, pa.string()).take(pa.array(scopes)),
            SINCE: pa.array(since, pa.int64(), mask=since == BEGINNING).cast(TIME),
        }
        return with_columns(batch.take(pa.array(rows[which])), added)

    # --- a stretch of history alone ---

    def reduce(
        self, batches: Batches, *, closed: bool = True, latest: Instant = NEVER
    ) -> dict[str, pa.RecordBatch]:
        """Drop what passes neither from bit 0 nor from bit 1; where the part is not closed, only
        what satisfies neither predicate."""
        name = self.topic.name
        if name not in batches:
            return {}
        batch = batches[name]
        rows = (
            self._able_to_pass(batch, self.scoping(batch))
            if closed
            else [np.flatnonzero(self.matters(name, batch))]
        )
        return {name: _thinned(batch, rows)}

    def matters(self, topic: str, batch: pa.RecordBatch) -> Mask:
        return self._mattering(batch, self.scoping(batch)[-1][0])

    def survey(self, topic: str, batch: pa.RecordBatch, *, closed: bool = False) -> Survey:
        found = self.scoping(batch)
        outermost = found[-1][0]
        if closed:
            matters = np.zeros(len(batch), np.bool_)
            matters[_concatenated(self._able_to_pass(batch, found), np.intp)] = True
        else:
            matters = self._mattering(batch, outermost)
        nowhere = outermost < 0
        if self.lacking is None:
            return Survey(matters, np.full(len(self.filters), np.count_nonzero(nowhere), np.int64))
        outside = [np.count_nonzero(nowhere | lacks) for lacks in self.lacking(batch)]
        return Survey(matters, np.array(outside, np.int64))

    def _mattering(self, batch: pa.RecordBatch, outermost: NDArray[np.int32]) -> Mask:
        masks = self._masks(batch, outermost)
        return _concatenated([(enter | leave) != 0 for _, enter, leave in masks], np.bool_)

    def _able_to_pass(self, batch: pa.RecordBatch, found: Any) -> list[Rows]:
        """The rows of a closed part that pass if their innermost scope began with all bits 0 or all 1."""
        codes, keys = found[0]
        low = np.zeros(len(keys), self.word)
        high = np.full(len(keys), ~self.word(0), self.word)
        kept: list[Rows] = []
        for at, enter, leave in self._masks(batch, found[-1][0]):
            hits_low, hits_high = np.empty_like(enter), np.empty_like(enter)
            part = codes[at : at + len(enter)]
            both_ways(part, enter, leave, low, high, self.moving, hits_low, hits_high)
            kept.append(at + np.flatnonzero((hits_low | hits_high) != 0))
        return kept

    # --- some scopes alone ---

    def meets(self, events: Iterable[Event]) -> tuple[list[str], ...]:
        """The scopes that events come to, level by level."""
        chains = [chain for event in events if (chain := self.chain(event)) is not None]
        levels = zip(*chains, strict=True) if chains else [()] * self.depth
        return tuple(list(dict.fromkeys(key for key in level if key is not None)) for level in levels)

    def taken_over(self, state: State, other: State, keys: tuple[Sequence[str], ...]) -> State:
        """A state that knows of some scopes what another knows; that one may still be used."""
        texts = [pa.array(some, pa.string()) for some in keys]
        ours = [level.keys.codes(some) for level, some in zip(state.levels, texts, strict=True)]
        theirs = [level.keys.known(some) for level, some in zip(other.levels, texts, strict=True)]
        state = self._widened(state)
        for level, old, at, there in zip(state.levels, other.levels, ours, theirs, strict=True):
            level.words[at] = np.where(there < 0, 0, old.words[there])
        state.since[:, ours[-1]] = np.where(theirs[-1] < 0, BEGINNING, other.since[:, theirs[-1]])
        return state

    # --- what holds, and keeping it ---

    def holding(self, state: State) -> list[tuple[int, str | None, Instant]]:
        keys = state.levels[-1].keys
        return [
            (int(f), self.shown(keys.key(int(c))), int(state.since[f, c]))
            for f, c in np.argwhere(state.since[:, : len(keys)] != BEGINNING)
        ]

    def unknown(self, state: State) -> list[tuple[int, str | None, Instant | None]]:
        return []

    def last(self, state: State, condition: int) -> list[Transition]:
        return []

    def inform(self, state: State, condition: int, latest: Sequence[Event]) -> State:
        return state

    def is_fresh(self, state: State, condition: int) -> bool:
        bit = self.word(1 << condition)
        return not any((words & bit).any() for _, words in state.levels)

    def to_bytes(self, state: State) -> bytes:
        """Only scopes with a bit set are kept: the others cannot be told from new ones."""
        return _kept(state, [np.flatnonzero(words[: len(keys)]) for keys, words in state.levels])

    def noting(self, state: State) -> State:
        return state._replace(touched=tuple(Touched() for _ in state.levels))

    def noted(self, state: State) -> bytes | None:
        codes = [some for touched in state.touched if (some := touched.take()) is not None]
        if len(codes) < len(state.levels):
            return None
        return _kept(state, codes) if any(map(len, codes)) else b""

    def from_bytes(self, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        return self.renewed(self.initial(), raw, was)

    def renewed(self, state: State, raw: bytes, was: Sequence[int | None] | None = None) -> State:
        numbers = range(len(self.filters)) if was is None else was
        staying = [(f, old) for f, old in enumerate(numbers) if old is not None]
        tables = [from_ipc(table) for table in msgspec.msgpack.decode(raw, type=list[bytes])]
        codes = [
            level.keys.codes(table.column(_KEY)) for level, table in zip(state.levels, tables, strict=True)
        ]
        state = self._widened(state)
        for level, table, at in zip(state.levels, tables, codes, strict=True):
            words = _words(table, _WORD)
            level.words[at] = 0
            for f, old in staying:
                level.words[at] |= (((words >> np.uint64(old)) & np.uint64(1)) << np.uint64(f)).astype(
                    self.word
                )
        for f, old in staying:
            state.since[f][codes[-1]] = np.asarray(tables[-1].column(f"{SINCE}{old}"))
        return state


def _kept(state: State, codes: Sequence[NDArray[Any]]) -> bytes:
    """Some scopes of each level."""
    tables = []
    for (keys, words), some in zip(state.levels, codes, strict=True):
        columns = {_KEY: keys.take(some), _WORD: pa.array(words[some].astype(np.uint64))}
        if keys is state.levels[-1].keys:
            columns |= {f"{SINCE}{f}": pa.array(since[some]) for f, since in enumerate(state.since)}
        tables.append(to_ipc(pa.RecordBatch.from_pydict(columns)))
    return msgspec.msgpack.encode(tables)


def _passes(bits: list[int], f: int, spec: StateFilter, event: Event) -> bool:
    """Whether an event passes filter f in every scope it meets, innermost first; ``bits`` are the
    words of those scopes, and toggle where it passes."""
    for i, word in enumerate(bits):
        if not (spec.leave(event) if word >> f & 1 else spec.enter(event)):
            return False
        bits[i] = word ^ (1 << f)
    return True


def _busy(level: Level) -> tuple[Level, Rows | None]:
    """The level, if it is full, without scopes whose bits are all 0, and those that are left; the level as
    it is where they are few."""
    keys, words = level
    if len(keys) <= len(words) or len(words) < _FEW:
        return level, None
    held = np.flatnonzero(words)
    if 2 * len(held) > len(words):
        return level, None
    fewer, own = Keys(), np.zeros_like(words)
    fewer.codes(keys.take(held))
    own[: len(held)] = words[held]
    return Level(fewer, own), held


# --- words and rows --------------------------------------------------------------------------------


def _words(batch: pa.RecordBatch, name: str) -> Words:
    return batch.column(batch.schema.get_field_index(name)).to_numpy()


def _translations(state: State, found: Any) -> list[NDArray[np.int32] | None]:
    """From a batch's codes to ours, level by level."""
    return [_translation(level.keys, keys) for level, (_, keys) in zip(state.levels, found, strict=True)]


def _translation(keys: Keys, local: pa.StringArray) -> NDArray[np.int32] | None:
    """From a batch's codes to ours; nothing if they are the same.  The last entry serves -1."""
    table = keys.codes(local)
    if np.array_equal(table, np.arange(len(table))):
        return None
    return np.append(table, np.int32(-1)).astype(np.int32)


def _mapped(codes: NDArray[np.int32], table: NDArray[np.int32] | None) -> NDArray[np.int32]:
    return codes if table is None else table[codes]


def _thinned(batch: pa.RecordBatch, kept: list[Rows]) -> pa.RecordBatch:
    """The kept rows, which still say how far time has come and how many events they stood for."""
    rows = _concatenated(kept, np.intp)
    thin = batch if len(rows) == len(batch) else batch.take(pa.array(rows))
    return with_progress(thin, stood_for(batch), reached(batch))


@cache
def _nothing() -> dict[str, pa.Array]:
    """What a batch of no notifications has besides."""
    return {
        CONDITIONS: pa.array([], pa.uint64()),
        STATUS: pa.DictionaryArray.from_arrays(pa.array([], pa.int8()), pa.array(list(STATUSES))),
        SCOPE: pa.array([], pa.string()),
        SINCE: pa.array([], TIME),
    }


def _concatenated(parts: list[Any], dtype: Any) -> Any:
    return np.concatenate(parts) if parts else np.empty(0, dtype)
