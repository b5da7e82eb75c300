"""The state of states with minimum durations: a record for each scope, and readings that transitions may
carry.

`to_bytes` and `from_bytes` define the format of snapshots; change them together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ....engine.key_codes import KeyCodes, Touched, with_room
from ....kernels.guard import BEGUN, EXPECTED, LAST, NEVER, NOBODY, NONE, SEEN
from ....model.batch import from_ipc, known_of, to_ipc
from ....model.instant import BEGINNING, Duration, Instant
from ....model.topic import Topic
from .readings import StoredReadings

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
"""The record of a cell: the state of one condition in one scope.

The layout is the one that ``kernels/guard.py`` requires.
"""

_MOST_CACHED = 1 << 12  # scopes in the cache of single events before their records are written back


class Cell:
    """A record as an object. With it, the kernel's code also runs on single events in Python."""

    __slots__ = (  # noqa: RUF023 -- in the order of the record
        "last", "since", "cand", "count", "last_row", "cand_row", "flags", "level", "enter", "leave",
    )  # fmt: skip

    def __init__(self, record: tuple[Any, ...]) -> None:
        (
            self.last, self.since, self.cand, self.count, self.last_row, self.cand_row,
            self.flags, self.level, self.enter, self.leave,
        ) = record  # fmt: skip

    def record(self) -> tuple[Any, ...]:
        """Return the fields in the order of the record."""
        return _FIELDS(self)


_FIELDS = attrgetter(*Cell.__slots__)


class Hot(NamedTuple):
    """The records of a scope in the form for single events.

    The due time is in a list, so that the kernel can set it. ``waits`` has minimum durations if tables define
    them.
    """

    cells: list[Cell]
    due: list[Instant]
    waits: list[Duration] | None


@dataclass(slots=True)
class DurationState:
    """The state of a machine: scopes by code, with one cell per condition.

    ``due`` is the time of each scope's next timer, ``next`` a lower bound of these times. ``until`` is the
    watermark, ``latest`` the time of the latest reading. ``start`` is the time since which scopes are
    expected. ``waits`` are the minimum durations of cells, if tables define them. ``lags`` is the duration by
    which each scope's clock is behind ``until``, for sources that report late.
    """

    beginnings: tuple[int, ...]
    """The flags of a scope before its first reading, for each state."""
    keys: KeyCodes
    scopes: NDArray[Any]
    due: NDArray[np.int64]
    lags: NDArray[np.int64]
    waits: NDArray[np.int64] | None
    texts: KeyCodes
    last: StoredReadings
    """The last reading of each scope."""
    starts: StoredReadings
    """The reading at which the current minimum duration started, for each cell."""
    next: Instant = NEVER
    until: Instant = BEGINNING
    latest: Instant = BEGINNING
    start: Instant | None = None
    taken: bool = False
    """Whether the machine has processed a reading."""
    lagging: bool = False
    """Whether any scope lags or has lagged behind the watermark."""
    hot: dict[int, Hot] = field(default_factory=dict)
    """Scopes changed by single events whose records have not yet been updated."""
    touched: Touched | None = None
    """The changed scopes, if changes are tracked."""

    @property
    def width(self) -> int:
        """The number of conditions, which is the number of cells per scope."""
        return len(self.beginnings)

    @property
    def room(self) -> int:
        """The number of scopes for which there is room."""
        return len(self.due)

    @property
    def there(self) -> NDArray[Any]:
        """The records of all scopes, with a row for each scope. Cached cells are written back first."""
        self.settle()
        return self.scopes[: len(self.keys) * self.width].reshape(-1, self.width)

    @property
    def alive(self) -> NDArray[np.bool_]:
        """A mask of the scopes that differ from new ones."""
        found: NDArray[np.bool_] = (self.there["last"] != NONE).any(axis=1)
        return found

    def wakes(self, codes: NDArray[Any] | None = None) -> NDArray[np.int64]:
        """Return the watermark at which the next timer of each scope fires; `codes` selects scopes."""
        selected = slice(len(self.keys)) if codes is None else codes
        due = self.due[selected]
        return np.where(due == NEVER, due, due + self.lags[selected]) if self.lagging else due

    @property
    def nbytes(self) -> int:
        """The size of the arrays that grow with the number of scopes, in bytes."""
        parts = (self.keys, self.texts, self.last, self.starts)
        arrays = (self.scopes, self.due, self.lags)
        waits = () if self.waits is None else (self.waits,)
        return sum(part.nbytes for part in (*parts, *arrays, *waits))

    def widen(self) -> None:
        """Extend the arrays to one record per key and condition."""
        have, size = self.room, len(self.keys)
        if size > have:
            self.due, self.lags = with_room(self.due, size, NEVER), with_room(self.lags, size, 0)
            self.scopes = with_room(self.scopes, self.room * self.width)
            new = self.scopes[have * self.width :].reshape(-1, self.width)
            new[:] = [(NONE, NONE, NONE, 0, NOBODY, BEGUN, flags, 0, 0, 0) for flags in self.beginnings]
            if self.waits is not None:
                self.waits = with_room(self.waits, 2 * len(self.scopes))

    def with_scope(self, code: int) -> Hot:
        """Return the cached cells of a scope, for a single event. `settle` writes changes back."""
        found = self.hot.get(code)
        if found is None:
            if len(self.hot) >= _MOST_CACHED:
                self.settle()
            at, end = code * self.width, (code + 1) * self.width
            cells = [Cell(record) for record in self.scopes[at:end].tolist()]
            waits = None if self.waits is None else self.waits[2 * at : 2 * end].tolist()
            found = self.hot[code] = Hot(cells, [int(self.due[code])], waits)
        return found

    def settle(self) -> None:
        """Write the cells of single events back to the records."""
        for code, (cells, _, waits) in self.hot.items():
            at, end = code * self.width, (code + 1) * self.width
            self.scopes[at:end] = [cell.record() for cell in cells]
            if self.waits is not None and waits is not None:
                self.waits[2 * at : 2 * end] = waits
        self.hot.clear()

    def cells(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the numbers of all cells of scopes."""
        found: NDArray[Any] = (codes[:, None] * self.width + np.arange(self.width)).ravel()
        return found


def new(topic: Topic, beginnings: tuple[int, ...], has_own_waits: bool) -> DurationState:
    """Return an empty state. `has_own_waits` is true if minimum durations differ between cells."""
    texts = KeyCodes()
    stores = StoredReadings(topic, texts), StoredReadings(topic, texts)
    waits = np.empty(0, np.int64) if has_own_waits else None
    due, lags = np.empty(0, np.int64), np.empty(0, np.int64)
    return DurationState(beginnings, KeyCodes(), np.empty(0, RECORD), due, lags, waits, texts, *stores)


def compact(state: DurationState, topic: Topic) -> DurationState:
    """Return the state without scopes that are equal to new ones."""
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


def take_over(state: DurationState, other: DurationState, keys: pa.StringArray) -> None:
    """Replace the scopes `keys` of `state` by those of another state."""
    codes, other_codes = state.keys.codes(keys), other.keys.known(keys)
    codes, other_codes = codes[other_codes >= 0], other_codes[other_codes >= 0]
    state.widen()
    _give(other, state, other_codes, codes)
    state.next = min(state.next, int(state.wakes(codes).min(initial=NEVER)))
    state.until, state.latest = max(state.until, other.until), max(state.latest, other.latest)
    state.taken |= other.taken


def _give(old: DurationState, new: DurationState, codes: NDArray[Any], to: NDArray[Any]) -> None:
    """Copy the scopes `codes` to another state, in which they have the codes `to`."""
    flags = old.there["flags"][codes]
    new.settle()
    new.lagging |= old.lagging
    cells, new_cells = old.cells(codes), new.cells(to)
    new.scopes[new_cells], new.due[to], new.lags[to] = old.scopes[cells], old.due[codes], old.lags[codes]
    if old.waits is not None and new.waits is not None:
        new.waits.reshape(-1, 2)[new_cells] = old.waits.reshape(-1, 2)[cells]
    seen = np.flatnonzero((flags & SEEN).any(axis=1))
    if not old.last.is_empty:
        new.last.put(to[seen], old.last.take(codes[seen]))
    records = old.scopes[cells]
    waits = np.flatnonzero((records["cand"] != NONE) & (records["cand_row"] == BEGUN))
    if not old.starts.is_empty:
        new.starts.put(new_cells[waits], old.starts.take(cells[waits]))


# --- as bytes ----------------------------------------------------------------------------------------


class _StoredDurations(msgspec.Struct):
    """The format of snapshots and deltas."""

    scopes: bytes
    last: bytes | None
    starts: bytes | None
    until: Instant
    latest: Instant
    start: Instant | None
    taken: bool


def to_bytes(state: DurationState, codes: NDArray[Any]) -> bytes:
    """Encode the scopes `codes` and the clock."""
    records, cells = state.there[codes], state.cells(codes)
    columns = {_KEY: state.keys.take(codes), _LAG: pa.array(state.lags[codes])}
    for f in range(state.width):
        columns |= {_of(name, f): pa.array(np.ascontiguousarray(records[name][:, f])) for name in _PLAIN}
        columns[_of(_BEGUN, f)] = pa.array(records["cand_row"][:, f].astype(np.int8))
        if state.waits is not None:
            own_waits = state.waits.reshape(-1, 2 * state.width)[codes]
            columns |= {_of(name, f): pa.array(own_waits[:, 2 * f + i]) for i, name in enumerate(_WAITS)}
    last = None if state.last.is_empty else to_ipc(state.last.take(codes))
    waits = ((records["cand"] != NONE) & (records["cand_row"] == BEGUN)).ravel()
    starts = to_ipc(_only(state.starts.take(cells), waits)) if waits.any() else None
    scopes = to_ipc(pa.RecordBatch.from_pydict(columns))
    rest = state.until, state.latest, state.start, state.taken
    return msgspec.msgpack.encode(_StoredDurations(scopes, last, starts, *rest))


def _only(readings: pa.RecordBatch, wanted: NDArray[np.bool_]) -> pa.RecordBatch:
    """Return the readings; those that no transition will carry are blank, which saves space."""
    mask = pa.array(wanted)
    columns = {
        name: column if name == "time" else pc.if_else(mask, column, None)
        for name, column in zip(readings.schema.names, readings.columns, strict=True)
    }
    return pa.RecordBatch.from_pydict(columns)


def from_bytes(
    topic: Topic, raw: bytes, state: DurationState, was: Sequence[int | None], waits: NDArray[np.int64]
) -> NDArray[Any]:
    """Fill a state from bytes, and return the codes of the stored scopes. The caller computes their due times
    again.

    Condition ``f`` was stored as number ``was[f]``, which is ``None`` for a new condition. ``waits`` are the
    minimum durations of conditions, in pairs, for cells that were stored without any.
    """
    stored = msgspec.msgpack.decode(raw, type=_StoredDurations)
    table = from_ipc(stored.scopes)
    codes = state.keys.codes(table.column(_KEY))
    state.widen()
    state.lags[codes] = lags = table.column(_LAG).to_numpy()
    state.lagging |= bool(lags.any())
    records = state.there[codes]
    readings = None if stored.last is None else known_of(topic, from_ipc(stored.last))
    has_last = np.zeros(len(codes), np.bool_)
    if readings is not None:
        has_last = readings.column("source").is_valid().to_numpy(zero_copy_only=False)
    for f, number in enumerate(was):
        if number is not None:
            expected = records["flags"][:, f] & EXPECTED
            for name in _PLAIN:
                records[name][:, f] = table.column(_of(name, number)).to_numpy()
            own = records[:, f]
            own["last_row"] = np.where((own["flags"] & SEEN != 0) & has_last, LAST, NOBODY)
            own["cand_row"] = _start_reading(table.column(_of(_BEGUN, number)))
            own["flags"] |= expected
            if state.waits is not None:
                names = [_of(name, number) for name in _WAITS]
                have_events = names[0] in table.schema.names
                lengths = [table.column(name).to_numpy() for name in names] if have_events else waits[f]
                state.waits.reshape(-1, state.width, 2)[codes, f] = np.stack(lengths, axis=-1)
    state.there[codes] = records
    if readings is not None:
        state.last.put(codes, readings)
    if stored.starts is not None and len(codes):
        starts = known_of(topic, from_ipc(stored.starts))
        width = sum(name.startswith(_BEGUN) for name in table.schema.names)
        for f, number in enumerate(was):
            if number is not None:
                rows = np.arange(len(codes)) * width + number
                state.starts.put(codes * state.width + f, starts.take(pa.array(rows)))
    state.until, state.latest = stored.until, stored.latest
    state.start, state.taken = stored.start, stored.taken
    return codes


def _start_reading(stored: pa.Array) -> NDArray[Any]:
    """Return which reading a transition carries. Older snapshots stored this as a boolean."""
    found = np.asarray(stored)
    return np.where(found, BEGUN, LAST) if found.dtype == np.bool_ else found


_KEY, _LAG, _BEGUN, _WAITS, _ROWS = "@key", "@lag", "@begun", ("@enter", "@exit"), ("last_row", "cand_row")
_PLAIN = [name for name in RECORD.names or () if name not in _ROWS]


def _of(name: str, state: int) -> str:
    """Return the name of a condition's column. The first condition has no number in its names."""
    return f"{name}{state or ''}"
