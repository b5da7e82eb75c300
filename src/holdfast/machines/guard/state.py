"""What a guarded state remembers: a record for each scope, and the readings that may be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.guard import BEGUN, LAST, NEVER, NOBODY, NONE, SEEN
from ...model.batch import from_ipc, to_ipc
from ...model.instant import BEGINNING, Instant
from ...model.topic import Topic
from ..keys import Keys, grown
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
"""A scope, as ``kernels/guard.py`` wants it."""

_KEY, _ROWS = "@key", ("last_row", "cand_row")
_PLAIN = [name for name in RECORD.names or () if name not in _ROWS]


class Scope:
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


@dataclass(slots=True)
class State:
    """Scopes by code.  ``due`` is when time alone does something to each, ``next`` no later than the first of
    these; ``until`` how far time has come, ``latest`` the latest reading, ``start`` since when scopes are
    expected."""

    keys: Keys
    scopes: NDArray[Any]
    due: NDArray[np.int64]
    texts: Keys
    last: Readings
    begun: Readings
    next: Instant = NEVER
    until: Instant = BEGINNING
    latest: Instant = BEGINNING
    start: Instant | None = None
    taken: bool = False
    """Whether it has had a reading."""

    @property
    def there(self) -> NDArray[Any]:
        """The records of all scopes."""
        return self.scopes[: len(self.keys)]

    @property
    def nbytes(self) -> int:
        """Memory, as far as it grows with scopes."""
        kept = (self.keys, self.texts, self.last, self.begun)
        return sum(one.nbytes for one in kept) + self.scopes.nbytes + self.due.nbytes

    def widen(self, beginning: int) -> None:
        """Have a record for every key."""
        have, size = len(self.scopes), len(self.keys)
        if size > have:
            self.scopes = grown(self.scopes, size)
            self.scopes[have:] = (NONE, NONE, NONE, 0, NOBODY, BEGUN, beginning, 0, 0, 0)
            self.due = grown(self.due, size, NEVER)


def new(topic: Topic) -> State:
    """The state of nobody."""
    texts = Keys()
    stores = Readings(topic, texts), Readings(topic, texts)
    return State(Keys(), np.empty(0, RECORD), np.empty(0, np.int64), texts, *stores)


def compacted(state: State, topic: Topic, beginning: int) -> State:
    """The state without scopes that cannot be told from new ones."""
    alive = np.flatnonzero(state.there["last"] != NONE)
    less = new(topic)
    less.keys.codes(state.keys.take(alive))
    less.widen(beginning)
    less.scopes[: len(alive)], less.due[: len(alive)] = state.scopes[alive], state.due[alive]
    move(state, less, alive, np.arange(len(alive)))
    less.next, less.until, less.latest = state.next, state.until, state.latest
    less.start, less.taken = state.start, state.taken
    return less


def move(old: State, new: State, codes: NDArray[Any], to: NDArray[Any]) -> None:
    """Give the readings of some scopes to a state in which they have other codes."""
    spoke = (old.scopes["flags"][codes] & SEEN) != 0
    if not old.last.is_empty:
        new.last.put(to[spoke], old.last.take(codes[spoke]))
    waits = (old.scopes["cand"][codes] != NONE) & (old.scopes["cand_row"][codes] == BEGUN)
    if not old.begun.is_empty:
        new.begun.put(to[waits], old.begun.take(codes[waits]))


class _Kept(msgspec.Struct):
    scopes: bytes
    last: bytes | None
    begun: bytes | None
    until: Instant
    latest: Instant
    start: Instant | None
    taken: bool


def to_bytes(state: State) -> bytes:
    """Only scopes that can be told from new ones are kept."""
    codes = np.flatnonzero(state.there["last"] != NONE)
    some = state.scopes[codes]
    columns = {_KEY: state.keys.take(codes), "@begun": pa.array(some["cand_row"] == BEGUN)}
    columns |= {name: pa.array(np.ascontiguousarray(some[name])) for name in _PLAIN}
    last, begun = (
        None if store.is_empty else to_ipc(store.take(codes)) for store in (state.last, state.begun)
    )
    whole = _Kept(
        to_ipc(pa.RecordBatch.from_pydict(columns)),
        last,
        begun,
        state.until,
        state.latest,
        state.start,
        state.taken,
    )
    return msgspec.msgpack.encode(whole)


def from_bytes(raw: bytes, state: State, beginning: int) -> NDArray[Any]:
    """Put into a new state what was kept; the codes of what was there.  When they are due is not kept."""
    kept = msgspec.msgpack.decode(raw, type=_Kept)
    table = from_ipc(kept.scopes)
    codes = state.keys.codes(table.column(_KEY))
    state.widen(beginning)
    some = np.zeros(len(codes), RECORD)
    for name in _PLAIN:
        some[name] = table.column(name).to_numpy()
    some["last_row"] = np.where(some["flags"] & SEEN, LAST, NOBODY)
    some["cand_row"] = np.where(np.asarray(table.column("@begun")), BEGUN, LAST)
    expected = state.scopes["flags"][codes] & ~np.uint8(beginning)
    some["flags"] |= expected
    state.scopes[codes] = some
    for store, readings in ((state.last, kept.last), (state.begun, kept.begun)):
        if readings is not None:
            store.put(codes, from_ipc(readings))
    state.until, state.latest = kept.until, kept.latest
    state.start, state.taken = kept.start, kept.taken
    return codes
