"""The log: entries are appended in groups, and a group that was appended stays."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ...errors import HoldfastError, InputError, UsageError
from ...model.batch import concatenate
from ...model.event import UNNUMBERED
from .frame import Entry, Framed, Readings, entries, span, to_bytes

SEGMENT_BYTES = 64 << 20


class NoRoom(HoldfastError):
    """The log cannot be written now: nothing may be acknowledged until it can."""


class Appended(NamedTuple):
    """An entry as the log has it: numbered, at its position."""

    position: int
    entry: Entry

    @property
    def after(self) -> int:
        return self.position + span(self.entry)


def joined(group: Iterable[Appended]) -> Iterator[Appended]:
    """The same entries, with readings of one topic that follow one another as one: where a history is cut
    makes no difference, and each piece costs."""
    for topic, some in groupby(group, key=lambda one: getattr(one.entry, "topic", None)):
        mine = list(some)
        if topic is None or len(mine) == 1:
            yield from mine
        else:
            batches = [one.entry.batch for one in mine if isinstance(one.entry, Readings)]
            yield Appended(mine[0].position, Readings(topic, concatenate(batches)))


class Segment(NamedTuple):
    """A file of entries; the first has this position."""

    first: int
    path: Path


class Log:
    """Appends to the log in a folder, for one process at a time."""

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = folder
        self._limit = segment_bytes
        wal = folder / "wal"
        wal.mkdir(parents=True, exist_ok=True)
        self._lock = _locked(folder)
        segments = segments_of(folder)
        self.torn = 0
        """How many bytes of an entry that was never acknowledged the last crash left."""
        last = segments[-1] if segments else Segment(0, wal / _name(0))
        self._file = os.open(last.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o640)
        self._current, self.next, self._size = last, *self._recovered(last)
        self._begun = time.monotonic()
        sync_folder(wal)

    def _recovered(self, segment: Segment) -> tuple[int, int]:
        """The next position and the size, once what a crash tore is put aside."""
        raw = segment.path.read_bytes()
        after, end = segment.first, 0
        for framed in entries(raw):
            after, end = framed.position + span(framed.entry), framed.end
        if end < len(raw):
            self.torn = len(raw) - end
            (self.folder / f"torn-{after:020}.bin").write_bytes(raw[end:])
            os.ftruncate(self._file, end)
            os.fsync(self._file)
        return after, end

    def append(self, group: Sequence[Entry]) -> list[Appended]:
        """Append entries and wait until the disk has them; readings without a number get their position's.

        A group is appended as a whole or, when there is no room, not at all.
        """
        placed, position = [], self.next
        for entry in group:
            placed.append(Appended(position, _numbered(entry, position)))
            position += span(entry)
        raw = b"".join(to_bytes(one.position, one.entry) for one in placed)
        try:
            _write(self._file, raw)
            os.fdatasync(self._file)
        except OSError as error:
            os.ftruncate(self._file, self._size)
            raise NoRoom(f"the log in {self.folder} cannot be written: {error.strerror}") from error
        self.next, self._size = position, self._size + len(raw)
        return placed

    def rotate(self, older_than: float = float("inf")) -> bool:
        """Begin a new segment if this one is full, or has something and is so many seconds old."""
        if not self._size or (self._size < self._limit and time.monotonic() - self._begun < older_than):
            return False
        following = Segment(self.next, self.folder / "wal" / _name(self.next))
        try:
            file = os.open(following.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o640)
            sync_folder(self.folder / "wal")
        except OSError as error:
            raise NoRoom(f"the log in {self.folder} cannot be written: {error.strerror}") from error
        os.close(self._file)
        self._file, self._current, self._size, self._begun = file, following, 0, time.monotonic()
        return True

    @property
    def current(self) -> int:
        """The first position of the segment that is being written."""
        return self._current.first

    def after(self, position: int) -> Iterator[Appended]:
        """The entries from a position on, as they were appended."""
        segments = segments_of(self.folder)
        if segments and position < segments[0].first:
            raise InputError(
                f"{self.folder}: the log begins at {segments[0].first}, the snapshot needs {position}; "
                "restore both from the same backup"
            )
        ends = [segment.first for segment in segments[1:]] + [self.next]
        for segment, end in zip(segments, ends, strict=True):
            if end > position:
                for framed in read_segment(segment, end):
                    if framed.position >= position:
                        yield Appended(framed.position, framed.entry)

    def close(self) -> None:
        os.close(self._file)
        os.close(self._lock)


def segments_of(folder: Path) -> list[Segment]:
    """The segments that are not yet sealed, in order."""
    paths = (folder / "wal").glob("*.wal")
    return sorted(Segment(int(path.stem), path) for path in paths)


def read_segment(segment: Segment, end: int | None = None) -> Iterator[Framed]:
    """The entries of a segment, which reaches to ``end`` if that is known."""
    reached = segment.first
    for framed in entries(segment.path.read_bytes()):
        yield framed
        reached = framed.position + span(framed.entry)
    if end is not None and reached < end:
        raise InputError(f"{segment.path}: damaged; it should reach to {end} and can be read to {reached}")


def is_log(folder: Path) -> bool:
    """Whether a service keeps its log there."""
    return (folder / "wal").is_dir()


def _name(first: int) -> str:
    return f"{first:020}.wal"


def _numbered(entry: Entry, position: int) -> Entry:
    if not isinstance(entry, Readings):
        return entry
    batch = entry.batch
    index = batch.schema.get_field_index("sequence")
    given = np.asarray(batch.column(index))
    if not (given == UNNUMBERED).any():
        return entry
    numbers = np.where(given == UNNUMBERED, np.arange(position, position + len(batch)), given)
    return Readings(entry.topic, batch.set_column(index, batch.schema.field(index), pa.array(numbers)))


def _write(file: int, raw: bytes) -> None:
    view = memoryview(raw)
    while view:
        view = view[os.write(file, view) :]


def sync_folder(folder: Path) -> None:
    """Let the names in a folder outlast a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _locked(folder: Path) -> int:
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o640)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise UsageError(f"{folder}: another service uses this folder; stop it, or name another") from None
    return file
