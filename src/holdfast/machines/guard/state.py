"""What a guarded state remembers: a record for each scope, and the readings that may be told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...kernels.guard import BEGUN, EXPECTED, LAST, NEVER, NOBODY, NONE, SEEN
from ...model.batch import from_ipc, known_of, to_ipc
from ...model.instant import BEGINNING, Duration, Instant
from ...model.topic import Topic
from ..keys import Keys, Touched, grown
from .readings import Readings

RECORD = np.dtype(
    [
        ("last", np.int64),
        ("since", np.int64),
        ("cand", np.int64),
        ("count", np.int32),
        ("last_row", np.int32),
        ("cand_row", np.int32),
        ("flags", np.uint8),
        ("level", np.uint8),
        ("enter", np.uint8),
        ("leave", np.uint8),
    ]
)
"""A cell, what a state knows of a scope, as ``kernels/guard.py`` wants it."""

_WARM = 1 << 12  # scopes that single events may have touched before their records are told


class Cell:
    """A record as an object: single events go through the same lines as batches, in Python."""

    __slots__ = (  # noqa: RUF023 -- in the order of the record
        "last", "since", "cand", "count", "last_row", "cand_row", "flags", "level", "enter", "leave",
    )  # fmt: skip

    def __init__(self, record: tuple[Any, ...]) -> None:
        (
            self.last, self.since, self.cand, self.count, self.last_row, self.cand_row,
            self.flags, self.level, self.enter, self.leave,
        ) = record  # fmt: skip

    def record(self) -> tuple[Any, ...]:
        return (
            self.last, self.since, self.cand, self.count, self.last_row, self.cand_row,
            self.flags, self.level, self.enter, self.leave,
        )  # fmt: skip


class Hot(NamedTuple):
    """A scope as single events have it: its cells, when it is due (alone in a list), and how long each state
    must hold there, if readings say so."""

    cells: list[Cell]
    due: list[Instant]
    waits: list[Duration] | None


@dataclass(slots=True)
class State:
    """Scopes by code, each with a cell of every state.  ``due`` is when time alone does something to each,
    ``next`` no later than the first of these; ``until`` how far time has come, ``latest`` the latest reading,
    ``start`` since when scopes are expected.  ``waits`` are those of cells, where readings tell them.
    ``lags`` are how far behind ``until`` the time of each scope is: its sources report late."""

    beginnings: tuple[int, ...]
    """What is so of a scope before its first reading, for each state."""
    keys: Keys
    scopes: NDArray[Any]
    due: NDArray[np.int64]
    lags: NDArray[np.int64]
    waits: NDArray[np.int64] | None
    texts: Keys
    last: Readings
    """The last reading of each scope."""
    begun: Readings
    """The reading with which the holding began, of each cell."""
    next: Instant = NEVER
    until: Instant = BEGINNING
    latest: Instant = BEGINNING
    start: Instant | None = None
    taken: bool = False
    """Whether it has had a reading."""
    lagging: bool = False
    """Whether any scope lags, or did."""
    hot: dict[int, Hot] = field(default_factory=dict)
    """What single events have touched, and the records do not yet say."""
    touched: Touched | None = None
    """The scopes of which something has changed, in a state that notes that."""

    @property
    def width(self) -> int:
        """How many states there are."""
        return len(self.beginnings)

    @property
    def room(self) -> int:
        """For how many scopes there are records."""
        return len(self.due)

    @property
    def there(self) -> NDArray[Any]:
        """The records of all scopes, a row for each."""
        self.settle()
        return self.scopes[: len(self.keys) * self.width].reshape(-1, self.width)

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Which scopes can be told from new ones."""
        found: NDArray[np.bool_] = (self.there["last"] != NONE).any(axis=1)
        return found

    def wakes(self, codes: NDArray[Any] | None = None) -> NDArray[np.int64]:
        """How far time must have come before it alone does something to each scope, or to some."""
        some = slice(len(self.keys)) if codes is None else codes
        due = self.due[some]
        return np.where(due == NEVER, due, due + self.lags[some]) if self.lagging else due

    @property
    def nbytes(self) -> int:
        """Memory, as far as it grows with scopes."""
        kept = (self.keys, self.texts, self.last, self.begun)
        arrays = (self.scopes, self.due, self.lags)
        waits = () if self.waits is None else (self.waits,)
        return sum(one.nbytes for one in (*kept, *arrays, *waits))

    def widen(self) -> None:
        """Have records for every key."""
        have, size = self.room, len(self.keys)
        if size > have:
            self.due, self.lags = grown(self.due, size, NEVER), grown(self.lags, size, 0)
            self.scopes = grown(self.scopes, self.room * self.width)
            new = self.scopes[have * self.width :].reshape(-1, self.width)
            new[:] = [(NONE, NONE, NONE, 0, NOBODY, BEGUN, flags, 0, 0, 0) for flags in self.beginnings]
            if self.waits is not None:
                self.waits = grown(self.waits, 2 * len(self.scopes))

    def heated(self, code: int) -> Hot:
        """A scope, to take a single event."""
        found = self.hot.get(code)
        if found is None:
            if len(self.hot) >= _WARM:
                self.settle()
            at, end = code * self.width, (code + 1) * self.width
            cells = [Cell(record) for record in self.scopes[at:end].tolist()]
            waits = None if self.waits is None else self.waits[2 * at : 2 * end].tolist()
            found = self.hot[code] = Hot(cells, [int(self.due[code])], waits)
        return found

    def settle(self) -> None:
        """Let the records say what single events have done."""
        for code, (cells, _, waits) in self.hot.items():
            at, end = code * self.width, (code + 1) * self.width
            self.scopes[at:end] = [cell.record() for cell in cells]
            if self.waits is not None and waits is not None:
                self.waits[2 * at : 2 * end] = waits
        self.hot.clear()

    def cells(self, codes: NDArray[Any]) -> NDArray[Any]:
        """The numbers of all cells of some scopes."""
        found: NDArray[Any] = (codes[:, None] * self.width + np.arange(self.width)).ravel()
        return found


def new(topic: Topic, beginnings: tuple[int, ...], each: bool) -> State:
    """The state of nobody."""
    texts = Keys()
    stores = Readings(topic, texts), Readings(topic, texts)
    waits = np.empty(0, np.int64) if each else None
    due, lags = np.empty(0, np.int64), np.empty(0, np.int64)
    return State(beginnings, Keys(), np.empty(0, RECORD), due, lags, waits, texts, *stores)


def compacted(state: State, topic: Topic) -> State:
    """The state without scopes that cannot be told from new ones."""
    alive = np.flatnonzero(state.alive)
    less = new(topic, state.beginnings, state.waits is not None)
    codes = less.keys.codes(state.keys.take(alive))
    less.widen()
    _give(state, less, alive, codes)
    less.next, less.until, less.latest = state.next, state.until, state.latest
    less.start, less.taken = state.start, state.taken
    if state.touched is not None:
        less.touched = state.touched
        less.touched.lose()
    return less


def take_over(state: State, other: State, keys: pa.StringArray) -> None:
    """Let a state know of some scopes what another knows."""
    codes, theirs = state.keys.codes(keys), other.keys.known(keys)
    codes, theirs = codes[theirs >= 0], theirs[theirs >= 0]
    state.widen()
    _give(other, state, theirs, codes)
    state.next = min(state.next, int(state.wakes(codes).min(initial=NEVER)))
    state.until, state.latest = max(state.until, other.until), max(state.latest, other.latest)
    state.taken |= other.taken


def _give(old: State, new: State, codes: NDArray[Any], to: NDArray[Any]) -> None:
    """Give what is known of some scopes to a state in which they have other codes."""
    there = old.there["flags"][codes]
    new.settle()
    new.lagging |= old.lagging
    cells, theirs = old.cells(codes), new.cells(to)
    new.scopes[theirs], new.due[to], new.lags[to] = old.scopes[cells], old.due[codes], old.lags[codes]
    if old.waits is not None and new.waits is not None:
        new.waits.reshape(-1, 2)[theirs] = old.waits.reshape(-1, 2)[cells]
    spoke = np.flatnonzero((there & SEEN).any(axis=1))
    if not old.last.is_empty:
        new.last.put(to[spoke], old.last.take(codes[spoke]))
    some = old.scopes[cells]
    waits = np.flatnonzero((some["cand"] != NONE) & (some["cand_row"] == BEGUN))
    if not old.begun.is_empty:
        new.begun.put(theirs[waits], old.begun.take(cells[waits]))


# --- as bytes ----------------------------------------------------------------------------------------


class _Kept(msgspec.Struct):
    scopes: bytes
    last: bytes | None
    begun: bytes | None
    until: Instant
    latest: Instant
    start: Instant | None
    taken: bool


def to_bytes(state: State, codes: NDArray[Any]) -> bytes:
    """What is to be kept of some scopes, and of time."""
    some, cells = state.there[codes], state.cells(codes)
    columns = {_KEY: state.keys.take(codes), _LAG: pa.array(state.lags[codes])}
    for f in range(state.width):
        columns |= {_of(name, f): pa.array(np.ascontiguousarray(some[name][:, f])) for name in _PLAIN}
        columns[_of(_BEGUN, f)] = pa.array(some["cand_row"][:, f].astype(np.int8))
        if state.waits is not None:
            own = state.waits.reshape(-1, 2 * state.width)[codes]
            columns |= {_of(name, f): pa.array(own[:, 2 * f + i]) for i, name in enumerate(_WAITS)}
    last = None if state.last.is_empty else to_ipc(state.last.take(codes))
    waits = ((some["cand"] != NONE) & (some["cand_row"] == BEGUN)).ravel()
    begun = to_ipc(_only(state.begun.take(cells), waits)) if waits.any() else None
    rest = state.until, state.latest, state.start, state.taken
    return msgspec.msgpack.encode(_Kept(to_ipc(pa.RecordBatch.from_pydict(columns)), last, begun, *rest))


def _only(readings: pa.RecordBatch, wanted: NDArray[np.bool_]) -> pa.RecordBatch:
    """Some of the readings; the others, of which nobody will be told, are missing."""
    mask = pa.array(wanted)
    columns = {
        name: column if name == "time" else pc.if_else(mask, column, None)
        for name, column in zip(readings.schema.names, readings.columns, strict=True)
    }
    return pa.RecordBatch.from_pydict(columns)


def from_bytes(
    topic: Topic, raw: bytes, state: State, was: Sequence[int | None], waits: NDArray[np.int64]
) -> NDArray[Any]:
    """Put into a state what was kept; the codes of what was there.  When they are due is not kept.
    State f had the number ``was[f]``; ``None`` if it begins now.  ``waits`` are those of states, in pairs,
    which their cells have if readings told no state's when it was kept."""
    kept = msgspec.msgpack.decode(raw, type=_Kept)
    table = from_ipc(kept.scopes)
    codes = state.keys.codes(table.column(_KEY))
    state.widen()
    state.lags[codes] = lags = table.column(_LAG).to_numpy()
    state.lagging |= bool(lags.any())
    some = state.there[codes]
    readings = None if kept.last is None else known_of(topic, from_ipc(kept.last))
    has_last = np.zeros(len(codes), np.bool_)
    if readings is not None:
        has_last = readings.column("source").is_valid().to_numpy(zero_copy_only=False)
    for f, number in enumerate(was):
        if number is not None:
            expected = some["flags"][:, f] & EXPECTED
            for name in _PLAIN:
                some[name][:, f] = table.column(_of(name, number)).to_numpy()
            own = some[:, f]
            own["last_row"] = np.where((own["flags"] & SEEN != 0) & has_last, LAST, NOBODY)
            own["cand_row"] = _begun(table.column(_of(_BEGUN, number)))
            own["flags"] |= expected
            if state.waits is not None:
                names = [_of(name, number) for name in _WAITS]
                were_told = names[0] in table.schema.names
                lengths = [table.column(name).to_numpy() for name in names] if were_told else waits[f]
                state.waits.reshape(-1, state.width, 2)[codes, f] = np.stack(lengths, axis=-1)
    state.there[codes] = some
    if readings is not None:
        state.last.put(codes, readings)
    if kept.begun is not None and len(codes):
        begun = known_of(topic, from_ipc(kept.begun))
        width = sum(name.startswith(_BEGUN) for name in table.schema.names)
        for f, number in enumerate(was):
            if number is not None:
                rows = np.arange(len(codes)) * width + number
                state.begun.put(codes * state.width + f, begun.take(pa.array(rows)))
    state.until, state.latest = kept.until, kept.latest
    state.start, state.taken = kept.start, kept.taken
    return codes


def _begun(kept: pa.Array) -> NDArray[Any]:
    """Which reading is told; once it was only kept whether it is the one with which the holding began."""
    found = np.asarray(kept)
    return np.where(found, BEGUN, LAST) if found.dtype == np.bool_ else found


_KEY, _LAG, _BEGUN, _WAITS, _ROWS = "@key", "@lag", "@begun", ("@enter", "@exit"), ("last_row", "cand_row")
_PLAIN = [name for name in RECORD.names or () if name not in _ROWS]


def _of(name: str, state: int) -> str:
    """The column of a state; that of the first has the plain name, as where there is one alone."""
    return f"{name}{state or ''}"
