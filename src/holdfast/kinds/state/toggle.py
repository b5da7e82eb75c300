"""The machine of state filters: they pass the event that starts a condition and the event that ends it.

A machine runs up to 64 filters over one topic and the same scopes. Each filter has one bit for each scope
[F3, F8], initially 0. The bits of one scope are a word.

An event goes through the scopes that contain it, from the innermost outward. Events that pass the inner
filter are the input of the outer filter. An event that passes the outermost filter is a transition [F10].
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

from ...engine.key_codes import KeyCodes, Touched, with_room
from ...engine.machine import (
    CONDITIONS,
    SCOPE,
    SINCE,
    STATUS,
    Batches,
    Emission,
    Machine,
    Mask,
    Relevance,
    Traits,
    with_columns,
)
from ...kernels.toggle import both_ways, pair, toggle
from ...model.batch import TIME, from_ipc, times, to_ipc
from ...model.event import STATUSES, Event, Transition
from ...model.instant import BEGINNING, Instant
from ...model.topic import Topic
from ..revision import Renumbering

Words = NDArray[Any]  # one unsigned integer for each scope or row; bit f belongs to filter f
Codes = NDArray[np.int32]
Rows = NDArray[np.intp]
Chain = tuple[str | None, ...]
ScopeKeys = tuple[Sequence[str], ...]
"""Keys of scopes, level by level."""

MOST = 64
"""The maximal number of filters of one machine."""

_CHUNK = 1 << 16  # rows whose masks stay in the cache between predicate and toggle
_FEW = 1 << 12  # with fewer scopes, the search for idle scopes costs more than it saves
_KEY, _WORD = "@key", "@word"


@dataclass(frozen=True)
class StateFilter:
    """The predicates ``[enter; leave]`` of one filter, for single events."""

    enter: Callable[[Event], bool]
    leave: Callable[[Event], bool]
    momentary: bool = False


def word_of(filters: int) -> Any:
    """Return the unsigned integer type that has a bit for each filter."""
    assert 1 <= filters <= MOST
    return np.uint8 if filters <= 8 else np.uint64


class Level(NamedTuple):
    """The scopes of one level of nesting, and a word for each scope with the bits of its filters."""

    keys: KeyCodes
    words: Words


class ToggleState(NamedTuple):
    """The state of a machine: its levels, the innermost first.

    ``since[f, c]`` is the time at which filter ``f`` started in outermost scope ``c``; `BEGINNING` if it is
    inactive. ``touched`` has the changed scopes of each level, if changes are tracked.
    """

    levels: tuple[Level, ...]
    since: NDArray[np.int64]
    touched: tuple[Touched, ...] = ()


@dataclass(frozen=True)
class ToggleMachine(Machine[ToggleState]):
    """The machine of up to 64 state filters.

    ``enters`` and ``leaves`` return for each event of a batch the filters whose predicate is true, as bits.
    For a momentary filter both are equal. ``chain`` and ``scoping`` return the keys of the scopes of an event
    and of a batch, the innermost first. ``readable_scope`` converts an outermost key to its label.
    """

    topic: Topic
    filters: tuple[StateFilter, ...]
    enters: Callable[[pa.RecordBatch], Words]
    leaves: Callable[[pa.RecordBatch], Words]
    depth: int
    chain: Callable[[Event], Chain | None]
    scoping: Callable[[pa.RecordBatch], tuple[tuple[Codes, pa.StringArray], ...]]
    readable_scope: Callable[[str], str | None]
    rows_without_match: Callable[[pa.RecordBatch], Sequence[Mask]] | None = None
    """Returns for each filter a mask of the events without a row in its tables; ``None`` without tables."""

    has_deltas = True

    traits = Traits(compacts=True)

    @cached_property
    def topics(self) -> dict[str, Topic]:
        return {self.topic.name: self.topic}

    @cached_property
    def word(self) -> Any:
        return word_of(len(self.filters))

    @cached_property
    def moving(self) -> Any:
        """The filters that have a bit, as bits: all filters except momentary ones."""
        return self.word(sum(1 << f for f, spec in enumerate(self.filters) if not spec.momentary))

    def initial(self) -> ToggleState:
        levels = tuple(Level(KeyCodes(), np.zeros(8, self.word)) for _ in range(self.depth))
        return ToggleState(levels, np.full((len(self.filters), 8), BEGINNING, np.int64))

    # --- one event ---

    def react(self, state: ToggleState, event: Event) -> tuple[ToggleState, list[Transition]]:
        """Apply one event.

        An inactive filter tests the entrance predicate, an active filter the exit predicate. A match toggles
        the bit. [S2]
        """
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

    def _codes_of(self, state: ToggleState, chain: Chain) -> tuple[ToggleState, list[int]]:
        """Return the state with room for the keys of an event, and the codes of these keys; -1 for a missing
        key."""
        levels = zip(chain, state.levels, strict=True)
        codes = [-1 if key is None else keys.code(key) for key, (keys, _) in levels]
        if any(code >= len(words) for code, (_, words) in zip(codes, state.levels, strict=True)):
            less = self._without_idle(state)
            if less is not state:
                return self._codes_of(less, chain)
            state = self._widen(state)
        return state, codes

    def _widen(self, state: ToggleState) -> ToggleState:
        """Return the state with arrays that have room for every key."""
        levels = tuple(Level(keys, with_room(words, len(keys))) for keys, words in state.levels)
        return ToggleState(levels, with_room(state.since, len(levels[-1].words), BEGINNING), state.touched)

    def _without_idle(self, state: ToggleState) -> ToggleState:
        """Return the state without idle scopes, which are equal to new scopes.

        Unless the arrays are full and most scopes are idle, return the state itself.
        """
        levels = [_busy(level) for level in state.levels]
        if all(level is old for (level, _), old in zip(levels, state.levels, strict=True)):
            return state
        since, held = state.since, levels[-1][1]
        if held is not None:
            since = np.full_like(since, BEGINNING)
            since[:, : len(held)] = state.since[:, held]
        for touched in state.touched:
            touched.lose()
        return ToggleState(tuple(level for level, _ in levels), since, state.touched)

    def _scope(self, chain: Chain) -> str | None:
        key = chain[-1]
        assert key is not None
        return self.readable_scope(key)

    # --- a batch ---

    def step(self, state: ToggleState, batches: Batches, watermark: Instant) -> tuple[ToggleState, Emission]:
        if (batch := batches.get(self.topic.name)) is None:
            return state, Emission({})
        state, passed = self._step_topic(state, batch)
        return state, Emission({self.topic.name: passed})

    def _step_topic(self, state: ToggleState, batch: pa.RecordBatch) -> tuple[ToggleState, pa.RecordBatch]:
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
            toggle(_map_codes(codes[part], tables[0]), enter, leave, words, self.moving, hit)
            hit_rows = np.flatnonzero(hit != 0)
            rows.append(hit_rows + at)
            moved.append(rows[-1][(hit[hit_rows] & self.moving) != 0])
            enters.append(enter[hit_rows] & hit[hit_rows])
            leaves.append(leave[hit_rows] & hit[hit_rows])
        if state.touched:  # an event that moves no innermost bit moves no outer one
            hit_rows = _concatenate(moved, np.intp)
            for touched, (level_codes, _), table in zip(state.touched, found, tables, strict=True):
                touched.add(_map_codes(level_codes[hit_rows], table))
        words_passed = _concatenate(enters, self.word), _concatenate(leaves, self.word)
        return self._outward(state, batch, _concatenate(rows, np.intp), *words_passed, found, tables)

    def _masks(self, batch: pa.RecordBatch, outermost: Codes) -> Iterator[tuple[int, Words, Words]]:
        """Yield for each chunk its offset and the filters whose predicates are true at each event.

        An event outside every scope matches nothing.
        """
        for at in range(0, len(batch), _CHUNK):
            part = batch if len(batch) <= _CHUNK else batch.slice(at, _CHUNK)
            enter, leave = self.enters(part), self.leaves(part)
            scopes = outermost[at : at + _CHUNK]
            if scopes.min() < 0:
                enter, leave = enter * (scopes >= 0), leave * (scopes >= 0)
            yield at, enter, leave

    def _known(self, state: ToggleState, found: Any) -> tuple[ToggleState, list[Codes | None]]:
        """Return the state with room for every key of a batch, and tables from the batch's codes to the
        state's codes."""
        tables = _translations(state, found)
        less = self._without_idle(state)
        if less is not state:
            state, tables = less, _translations(less, found)
        return self._widen(state), tables

    def _outward(
        self,
        state: ToggleState,
        batch: pa.RecordBatch,
        rows: Rows,
        enter: Words,
        leave: Words,
        found: Any,
        tables: list[Codes | None],
    ) -> tuple[ToggleState, pa.RecordBatch]:
        """Pass the events that passed the innermost filters through the outer levels."""
        hits = enter | leave
        for (codes, _), table, level in list(zip(found, tables, state.levels, strict=True))[1:]:
            hits = np.empty(len(rows), self.word)
            toggle(_map_codes(codes[rows], table), enter, leave, level.words, self.moving, hits)
            passed = np.flatnonzero(hits)
            rows, hits = rows[passed], hits[passed]
            enter, leave = enter[passed] & hits, leave[passed] & hits
        outermost = _map_codes(found[-1][0][rows], tables[-1])
        return state, self._transitions(state, batch, rows, hits, outermost)

    def _transitions(
        self, state: ToggleState, batch: pa.RecordBatch, rows: Rows, hits: Words, outermost: Any
    ) -> pa.RecordBatch:
        """Return the events that passed, with filter, status, scope and start."""
        if not len(rows):
            return with_columns(batch.slice(0, 0), _nothing())
        moments = times(batch)[rows]
        picks: list[Rows] = []
        sinces: list[NDArray[np.int64]] = []
        statuses: list[NDArray[np.int8]] = []
        anything = int(np.bitwise_or.reduce(hits))
        numbers = [f for f in range(len(self.filters)) if anything >> f & 1]
        for f in numbers:
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
        bits = np.repeat(np.uint64(1) << np.array(numbers, np.uint64), [len(p) for p in picks])
        by_row = np.argsort(which, kind="stable")  # several transitions of one filter at one event
        which, bits, since = which[by_row], bits[by_row], np.concatenate(sinces)[by_row]
        status = np.concatenate(statuses)[by_row]
        named, scopes = np.unique(outermost[which], return_inverse=True)
        names = [self.readable_scope(key) for key in state.levels[-1].keys.take(named).to_pylist()]
        added = {
            CONDITIONS: pa.array(bits),
            STATUS: pa.DictionaryArray.from_arrays(status, list(STATUSES)),
            SCOPE: pa.array(names, pa.string()).take(pa.array(scopes)),
            SINCE: pa.array(since, pa.int64(), mask=since == BEGINNING).cast(TIME),
        }
        return with_columns(batch.take(pa.array(rows[which])), added)

    # --- pushdown ---

    def relevance(self, topic: str, batch: pa.RecordBatch) -> Relevance:
        found = self.scoping(batch)
        outermost = found[-1][0]
        masks = list(self._masks(batch, outermost))
        satisfies = _concatenate([(enter | leave) != 0 for _, enter, leave in masks], np.bool_)
        nowhere = outermost < 0
        lacks_row = self.rows_without_match
        unmatched = [None] * len(self.filters) if lacks_row is None else lacks_row(batch)
        outside = [np.count_nonzero(nowhere if lacks is None else nowhere | lacks) for lacks in unmatched]
        return Relevance(satisfies, np.array(outside, np.int64), lambda: self._deciding_rows(masks, found[0]))

    def _deciding_rows(self, masks: Sequence[tuple[int, Words, Words]], innermost: Any) -> Mask:
        """Return a mask of the rows that can change the output.

        A row can change the output if it passes when its innermost scope starts with all bits 0 or with all
        bits 1.
        """
        codes, keys = innermost
        decides = np.zeros(len(codes), np.bool_)
        low = np.zeros(len(keys), self.word)
        high = np.full(len(keys), ~self.word(0), self.word)
        for at, enter, leave in masks:
            hits_low, hits_high = np.empty_like(enter), np.empty_like(enter)
            part = codes[at : at + len(enter)]
            both_ways(part, enter, leave, low, high, self.moving, hits_low, hits_high)
            decides[at : at + len(enter)] = (hits_low | hits_high) != 0
        return decides

    # --- single scopes ---

    def meets(self, events: Iterable[Event]) -> tuple[list[str], ...]:
        """Return the keys of the scopes of events, level by level."""
        chains = [chain for event in events if (chain := self.chain(event)) is not None]
        levels = zip(*chains, strict=True) if chains else [()] * self.depth
        return tuple(list(dict.fromkeys(key for key in level if key is not None)) for level in levels)

    def replace_scopes(self, state: ToggleState, other: ToggleState, keys: ScopeKeys) -> ToggleState:
        """Replace the scopes ``keys`` by those of another state, which is not changed."""
        texts = [pa.array(key, pa.string()) for key in keys]
        codes = [level.keys.codes(text) for level, text in zip(state.levels, texts, strict=True)]
        state = self._widen(state)
        for level, old, at, text in zip(state.levels, other.levels, codes, texts, strict=True):
            known = old.keys.known(text)
            level.words[at] = np.where(known < 0, 0, old.words[known])
        state.since[:, at] = np.where(known < 0, BEGINNING, other.since[:, known])
        return state

    # --- snapshots ---

    def active(self, state: ToggleState) -> list[tuple[int, str | None, Instant]]:
        keys = state.levels[-1].keys
        return [
            (int(f), self.readable_scope(keys.key(int(c))), int(state.since[f, c]))
            for f, c in np.argwhere(state.since[:, : len(keys)] != BEGINNING)
        ]

    def is_initial(self, state: ToggleState, condition: int) -> bool:
        bit = self.word(1 << condition)
        return not any((words & bit).any() for _, words in state.levels)

    def dump(self, state: ToggleState) -> bytes:
        """Encode the scopes that have a bit set. All other scopes are equal to new ones."""
        return _select_scopes(state, [np.flatnonzero(words[: len(keys)]) for keys, words in state.levels])

    def track_changes(self, state: ToggleState) -> ToggleState:
        return state._replace(touched=tuple(Touched() for _ in state.levels))

    def delta(self, state: ToggleState) -> bytes | None:
        codes = [changed for touched in state.touched if (changed := touched.take()) is not None]
        if len(codes) < len(state.levels):
            return None
        return _select_scopes(state, codes) if any(map(len, codes)) else b""

    def load(self, raw: bytes, was: Renumbering | None = None) -> ToggleState:
        return self.apply_delta(self.initial(), raw, was)

    def apply_delta(self, state: ToggleState, raw: bytes, was: Renumbering | None = None) -> ToggleState:
        """Return the state with the scopes of a snapshot or delta; `was` renumbers the filters."""
        numbers, one = range(len(self.filters)) if was is None else was, np.uint64(1)
        staying = [(f, old) for f, old in enumerate(numbers) if old is not None]
        tables = [from_ipc(table) for table in msgspec.msgpack.decode(raw, type=list[bytes])]
        levels = zip(state.levels, tables, strict=True)
        codes = [level.keys.codes(table.column(_KEY)) for level, table in levels]
        state = self._widen(state)
        for level, table, at in zip(state.levels, tables, codes, strict=True):
            words = table.column(_WORD).to_numpy()
            level.words[at] = 0
            for f, old in staying:
                bits = ((words >> np.uint64(old)) & one) << np.uint64(f)
                level.words[at] |= bits.astype(self.word)
        for f, old in staying:
            state.since[f][codes[-1]] = np.asarray(tables[-1].column(f"{SINCE}{old}"))
        return state


def _select_scopes(state: ToggleState, codes: Sequence[NDArray[Any]]) -> bytes:
    """Encode the scopes of each level that have the given codes."""
    tables = []
    for (keys, words), level_codes in zip(state.levels, codes, strict=True):
        columns = {_KEY: keys.take(level_codes), _WORD: pa.array(words[level_codes].astype(np.uint64))}
        if keys is state.levels[-1].keys:
            columns |= {f"{SINCE}{f}": pa.array(since[level_codes]) for f, since in enumerate(state.since)}
        tables.append(to_ipc(pa.RecordBatch.from_pydict(columns)))
    return msgspec.msgpack.encode(tables)


def _passes(bits: list[int], f: int, spec: StateFilter, event: Event) -> bool:
    """Whether an event passes filter ``f`` in every scope that contains it, the innermost first.

    ``bits`` has the words of these scopes. The function toggles the bits of the scopes that the event passes.
    """
    for i, word in enumerate(bits):
        if not (spec.leave(event) if word >> f & 1 else spec.enter(event)):
            return False
        bits[i] = word ^ (1 << f)
    return True


def _busy(level: Level) -> tuple[Level, Rows | None]:
    """Return a full level without its idle scopes, and the former codes of the remaining scopes.

    If the level has room or few idle scopes, return the level itself and ``None``.
    """
    keys, words = level
    if len(keys) <= len(words) or len(words) < _FEW:
        return level, None
    held = np.flatnonzero(words)
    if 2 * len(held) > len(words):
        return level, None
    fewer, fewer_words = KeyCodes(), np.zeros_like(words)
    fewer.codes(keys.take(held))
    fewer_words[: len(held)] = words[held]
    return Level(fewer, fewer_words), held


# --- words and rows --------------------------------------------------------------------------------


def _translations(state: ToggleState, found: Any) -> list[Codes | None]:
    """Return tables from a batch's codes to the state's codes, level by level."""
    return [_translation(level.keys, keys) for level, (_, keys) in zip(state.levels, found, strict=True)]


def _translation(keys: KeyCodes, local: pa.StringArray) -> Codes | None:
    """Return a table from a batch's codes to the state's codes; ``None`` if both are equal.

    The last entry is the result for -1.
    """
    table = keys.codes(local)
    if np.array_equal(table, np.arange(len(table))):
        return None
    return np.append(table, np.int32(-1)).astype(np.int32)


def _map_codes(codes: Codes, table: Codes | None) -> Codes:
    return codes if table is None else table[codes]


@cache
def _nothing() -> dict[str, pa.Array]:
    """Return the columns of an empty batch of transitions."""
    return {
        CONDITIONS: pa.array([], pa.uint64()),
        STATUS: pa.DictionaryArray.from_arrays(pa.array([], pa.int8()), pa.array(list(STATUSES))),
        SCOPE: pa.array([], pa.string()),
        SINCE: pa.array([], TIME),
    }


def _concatenate(parts: list[Any], dtype: Any) -> Any:
    return np.concatenate(parts) if parts else np.empty(0, dtype)
