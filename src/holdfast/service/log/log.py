"""Append and read entries of the log. Entries are appended in groups, and an appended group is durable."""

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
    LogRecord,
    Readings,
    SegmentScan,
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
    """Raised when the log cannot be written now. Nothing may be acknowledged until an append succeeds."""


class Appended(NamedTuple):
    """An entry of the log with its position."""

    position: int
    entry: Entry

    @property
    def after(self) -> int:
        return self.position + span(self.entry)


def join_readings(group: Iterable[Appended]) -> Iterator[Appended]:
    """Join consecutive readings of one topic to one entry, because each entry has a cost.

    The output does not depend on where a history is divided into entries.
    """
    for topic, entries_of_topic in groupby(
        group, key=lambda appended: getattr(appended.entry, "topic", None)
    ):
        consecutive = list(entries_of_topic)
        if topic is None or len(consecutive) == 1:
            yield from consecutive
        else:
            batches = [
                appended.entry.batch for appended in consecutive if isinstance(appended.entry, Readings)
            ]
            yield Appended(consecutive[0].position, Readings(topic, concatenate(batches)))


class LogSegment(NamedTuple):
    """A file of entries; ``first`` is the position of its first entry."""

    first: int
    path: Path


class Log:
    """The log in a folder. Only one process at a time may open it.

    ``append``, ``rotate`` and ``pass_over`` must be called from one thread. ``after`` can be called from any
    thread.
    """

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES, number: bytes = b"") -> None:
        """Open or create the log in a folder, and remove an incomplete group at its end.

        ``number`` is the log's random number, for a folder whose segments do not contain it.
        """
        self.folder = folder
        self._limit = segment_bytes
        wal = folder / "wal"
        wal.mkdir(mode=0o750, parents=True, exist_ok=True)
        self._lock = _lock_folder(folder)
        segments = segments_of(folder) or [LogSegment(0, wal / _name(0))]
        scans = [scan_segment(segment) for segment in segments]
        known = [appended.number for appended in scans if appended.number]
        self.number = known[0] if known else number or os.urandom(NUMBER_SIZE)
        """The random number that distinguishes this log from others."""
        self.torn = 0
        """Bytes of an unacknowledged group that the last crash left incomplete."""
        self._current = segments[-1]
        self._file = os.open(self._current.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o640)
        self.next, self._size = self._recover(self._current, scans[-1])
        self._started_at = time.monotonic()
        sync_folder(wal)

    def _recover(self, segment: LogSegment, found: SegmentScan) -> tuple[int, int]:
        """Remove an incomplete group at the end of a segment.

        Return the next position, and the size of the segment in bytes.
        """
        whole = _whole_groups(found.records)
        after, end = (whole[-1].after, whole[-1].end) if whole else (segment.first, found.begin)
        if end < found.size:
            self.torn = found.size - end
            self._move_torn_end(segment, after, end)
        if not found.number:  # the header is missing or damaged
            os.ftruncate(self._file, 0)
            end = os.write(self._file, header(self.number, segment.first, segment.first))
            os.fsync(self._file)
        self._header_size = found.begin or end
        return after, end

    def _move_torn_end(self, segment: LogSegment, after: int, end: int) -> None:
        """Move the incomplete end of a segment to a file of its own, so that no bytes are lost."""
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
        """Append entries and wait until the disk has them. Readings without a sequence get their position.

        A group is appended as a whole or, if there is no room, not at all; then ``NoRoom`` is raised.
        """
        placed, position = [], self.next
        for entry in group:
            placed.append(Appended(position, _number(entry, position)))
            position += span(entry)
        raw = b"".join(
            to_bytes(self.number, appended.position, appended.entry, is_last=appended is placed[-1])
            for appended in placed
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
        """Start a new segment if the current one is full, or not empty and old. Return whether it did.

        ``older_than`` is in seconds.
        """
        is_young = self._size < self._limit and time.monotonic() - self._started_at < older_than
        if self._size <= self._header_size or is_young:
            return False
        self._start_segment(self.next)
        return True

    def pass_over(self, position: int) -> None:
        """Continue at a later position in a new segment. The entries between are lost."""
        self._start_segment(position)
        self.next = position

    def _start_segment(self, first: int) -> None:
        """Start a segment at position ``first``. Its header says that the log before it ended at ``next``."""
        following = LogSegment(first, self.folder / "wal" / _name(first))
        raw = header(self.number, first, self.next)
        try:
            file = _create(following.path, raw)
        except OSError as error:
            raise NoRoom(f"the log in {self.folder} cannot be written: {error.strerror}") from error
        os.close(self._file)
        self._file, self._current, self._started_at = file, following, time.monotonic()
        self._size = self._header_size = len(raw)

    @property
    def current(self) -> int:
        """The first position of the segment that is being written."""
        return self._current.first

    def after(self, position: int, before: int | None = None) -> Iterator[Appended]:
        """Yield the entries from a position on, as they were appended.

        Missing or damaged entries are ``Unreadable``.
        """
        end = self.next if before is None else before
        segments = segments_of(self.folder)
        following = [segment.first for segment in segments[1:]] + [end]
        for segment, ends_condition in zip(segments, following, strict=True):
            if ends_condition <= position:
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


def segments_of(folder: Path) -> list[LogSegment]:
    """Return the segments that are not sealed yet, in order of position."""
    paths = (folder / "wal").glob("*.wal")
    return sorted(LogSegment(int(path.stem), path) for path in paths)


def read_segment(segment: LogSegment) -> Iterator[Framed]:
    """Yield the entries of a segment. Damaged entries are ``Unreadable``."""
    return entries(segment.path.read_bytes(), segment.first)


def scan_segment(segment: LogSegment) -> SegmentScan:
    """Scan a segment. A missing file counts as an empty segment."""
    return scan(segment.path.read_bytes() if segment.path.exists() else b"", segment.first)


def _whole_groups(records: list[LogRecord]) -> list[LogRecord]:
    """Return the records up to the end of the last complete group."""
    ends_condition = [i for i, record in enumerate(records) if record.is_last]
    return records[: ends_condition[-1] + 1] if ends_condition else []


def _missing(position: int, end: int) -> Iterator[Appended]:
    if position < end:
        yield Appended(position, Unreadable(end - position, "it is missing"))


def is_log(folder: Path) -> bool:
    """Whether a folder contains the log of a service."""
    return (folder / "wal").is_dir()


def _name(first: int) -> str:
    return f"{first:020}.wal"


def _number(entry: Entry, position: int) -> Entry:
    if not isinstance(entry, Readings):
        return entry
    batch = entry.batch
    index = batch.schema.get_field_index("sequence")
    given = np.asarray(batch.column(index))
    if not (given == UNNUMBERED).any():
        return entry
    numbers = np.where(given == UNNUMBERED, np.arange(position, position + len(batch)), given)
    return Readings(entry.topic, batch.set_column(index, batch.schema.field(index), pa.array(numbers)))


def _create(path: Path, raw: bytes) -> int:
    """Create a durable file with its first bytes, or leave no file if that fails.

    Return the open descriptor.
    """
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
    """Remove all permissions of other users from a file or folder. A missing file is created empty."""
    if not path.exists():
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o640))
    path.chmod(path.stat().st_mode & ~0o007)


def sync_folder(folder: Path) -> None:
    """Flush a folder to disk, so that the names of new files survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _lock_folder(folder: Path) -> int:
    file = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o640)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise UsageError(f"{folder}: another service uses this folder; stop it, or name another") from None
    return file
