"""The log: entries are appended in groups, and a group that was appended stays."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ...errors import HoldfastError, UsageError
from ...model.batch import concatenate
from ...model.event import UNNUMBERED
from .frame import (
    NUMBER_SIZE,
    Entry,
    Framed,
    Readings,
    Record,
    Scan,
    Unreadable,
    entries,
    header,
    scan,
    span,
    to_bytes,
)

log = logging.getLogger("holdfast.service")

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

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES, number: bytes = b"") -> None:
        """``number`` is the log's own, for a folder whose segments do not say it."""
        self.folder = folder
        self._limit = segment_bytes
        wal = folder / "wal"
        wal.mkdir(mode=0o750, parents=True, exist_ok=True)
        self._lock = _locked(folder)
        segments = segments_of(folder) or [Segment(0, wal / _name(0))]
        scans = [scan_segment(segment) for segment in segments]
        known = [one.number for one in scans if one.number]
        self.number = known[0] if known else number or os.urandom(NUMBER_SIZE)
        """By which this log is known from others."""
        self.torn = 0
        """How many bytes of a group that was never acknowledged the last crash left."""
        self._current = segments[-1]
        self._file = os.open(self._current.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o640)
        self.next, self._size = self._recovered(self._current, scans[-1])
        self._begun = time.monotonic()
        sync_folder(wal)

    def _recovered(self, segment: Segment, found: Scan) -> tuple[int, int]:
        """The next position and the size, once what a crash tore is put aside: a group that was not written
        to its end."""
        whole = _whole_groups(found.records)
        after, end = (whole[-1].after, whole[-1].end) if whole else (segment.first, found.begin)
        if end < found.size:
            self.torn = found.size - end
            self._put_aside(segment, after, end)
        if not found.number:  # there is no header yet, or nothing but a damaged one
            os.ftruncate(self._file, 0)
            end = os.write(self._file, header(self.number, segment.first, segment.first))
            os.fsync(self._file)
        self._begins = found.begin or end
        return after, end

    def _put_aside(self, segment: Segment, after: int, end: int) -> None:
        """Cut off what was not written to its end, and keep a copy."""
        torn = self.folder / f"torn-{after:020}.bin"
        log.warning(
            "%s: its last %d bytes are not whole records; they are now in %s",
            segment.path,
            self.torn,
            torn.name,
        )
        with os.fdopen(os.open(torn, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640), "wb") as file:
            file.write(segment.path.read_bytes()[end:])
        os.ftruncate(self._file, end)
        os.fsync(self._file)

    def append(self, group: Sequence[Entry]) -> list[Appended]:
        """Append entries and wait until the disk has them; readings without a number get their position's.

        A group is appended as a whole or, when there is no room, not at all.
        """
        placed, position = [], self.next
        for entry in group:
            placed.append(Appended(position, _numbered(entry, position)))
            position += span(entry)
        raw = b"".join(
            to_bytes(self.number, one.position, one.entry, is_last=one is placed[-1]) for one in placed
        )
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
        is_young = self._size < self._limit and time.monotonic() - self._begun < older_than
        if self._size <= self._begins or is_young:
            return False
        self._begin(self.next)
        return True

    def pass_over(self, position: int) -> None:
        """Go on at a later position: what was between is lost."""
        self._begin(position)
        self.next = position

    def _begin(self, first: int) -> None:
        """Begin a segment; what was before it ended at the next position."""
        following = Segment(first, self.folder / "wal" / _name(first))
        raw = header(self.number, first, self.next)
        try:
            file = _created(following.path, raw)
        except OSError as error:
            raise NoRoom(f"the log in {self.folder} cannot be written: {error.strerror}") from error
        os.close(self._file)
        self._file, self._current, self._begun = file, following, time.monotonic()
        self._size = self._begins = len(raw)

    @property
    def current(self) -> int:
        """The first position of the segment that is being written."""
        return self._current.first

    def after(self, position: int, before: int | None = None) -> Iterator[Appended]:
        """The entries from a position on, as they were appended; what is missing or damaged among them is
        ``Unreadable``."""
        end = self.next if before is None else before
        segments = segments_of(self.folder)
        following = [segment.first for segment in segments[1:]] + [end]
        for segment, ends in zip(segments, following, strict=True):
            if ends <= position:
                continue
            for framed in read_segment(segment):
                after = framed.position + span(framed.entry)
                if framed.position < end and after > position:
                    yield from _missing(position, framed.position)
                    yield Appended(framed.position, framed.entry)
                    position = after
        yield from _missing(position, end)

    def close(self) -> None:
        os.close(self._file)
        os.close(self._lock)


def segments_of(folder: Path) -> list[Segment]:
    """The segments that are not yet sealed, in order."""
    paths = (folder / "wal").glob("*.wal")
    return sorted(Segment(int(path.stem), path) for path in paths)


def read_segment(segment: Segment) -> Iterator[Framed]:
    """The entries of a segment; what is damaged among them is ``Unreadable``."""
    return entries(segment.path.read_bytes(), segment.first)


def scan_segment(segment: Segment) -> Scan:
    """What the bytes of a segment hold; nothing if there is no such file."""
    return scan(segment.path.read_bytes() if segment.path.exists() else b"", segment.first)


def _whole_groups(records: list[Record]) -> list[Record]:
    """The records up to the end of the last group that was written to its end."""
    ends = [i for i, record in enumerate(records) if record.is_last]
    return records[: ends[-1] + 1] if ends else []


def _missing(position: int, end: int) -> Iterator[Appended]:
    if position < end:
        yield Appended(position, Unreadable(end - position, "it is missing"))


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


def _created(path: Path, raw: bytes) -> int:
    """A new file, durable with its first bytes, or none."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o640)
    try:
        _write(file, raw)
        os.fsync(file)
        sync_folder(path.parent)
    except OSError:
        os.close(file)
        path.unlink()
        raise
    return file


def _write(file: int, raw: bytes) -> None:
    view = memoryview(raw)
    while view:
        view = view[os.write(file, view) :]


def hide(path: Path) -> None:
    """Let nobody but the owner and the group read a file, or look into a folder; a file that is not there
    begins empty."""
    if not path.exists():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o640))
    path.chmod(path.stat().st_mode & ~0o007)


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
