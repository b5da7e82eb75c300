"""The log of files that have arrived, in their order. Entries are only appended.

The offset of a stream is the number of entries that it has read. A file is appended when it is complete; its
name and time do not matter. It is never appended twice, and its place never changes.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from ....errors import InputError, UsageError
from ....files.find import InputFile, beneath, format_of, split_topic
from ....model.instant import Instant

_MAGIC = b"PAR1"


class Entry(msgspec.Struct, frozen=True):
    """A file that has arrived. No event in it is later than `latest`, if that is known."""

    path: str
    topic: str | None
    size: int
    latest: Instant | None = None

    def input_file(self, number: int) -> InputFile:
        """Return the file for readers.

        Its place in the log is the major part of its rows' sequence numbers.
        """
        known = format_of(self.path)
        assert known is not None
        return InputFile(self.path, number, known[0], known[1], self.topic)


class Folder(msgspec.Struct, frozen=True):
    """A folder in which files arrive; `topic` is the topic of rows without one."""

    path: str
    topic: str | None = None


def folders(sources: Sequence[str], topics: Sequence[str]) -> tuple[Folder, ...]:
    """Return the folders that sources name.

    A source is `dir:PATH`, `dir:TOPIC=PATH`, or `log:PATH` for the log of a service.
    """
    found: dict[str, Folder] = {}
    for text in sources:
        kind, _, place = text.partition(":")
        if kind not in ("dir", "log") or not place:
            raise UsageError(f"--source {text}: write dir:PATH, dir:TOPIC=PATH, or log:PATH")
        topic, path = split_topic(place, topics) if kind == "dir" else (None, _readings_folder(place))
        path = os.path.realpath(path)
        if not os.path.isdir(path):
            raise UsageError(f"--source {text}: there is no folder '{path}'; create it first")
        for other_folder in found:
            if os.path.commonpath([path, other_folder]) in (path, other_folder):
                raise UsageError(f"--source {text}: lies in another source, or around it ({other_folder})")
        found[path] = Folder(path, topic)
    return tuple(found.values())


def _readings_folder(place: str) -> str:
    """Return the folder in which a service stores the sealed files of its log."""
    if not (Path(place) / "wal").is_dir():
        raise UsageError(f"--source log:{place}: no service keeps its log there; name its --data folder")
    readings = Path(place) / "readings"
    readings.mkdir(exist_ok=True)
    return str(readings)


@dataclass
class Waiting:
    """Files that have arrived and are not in the log: incomplete ones and those of an unknown format."""

    incomplete: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)


class FileLog:
    """The log on disk. Another process may append to it, so each write first reads the new entries."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0
        self.entries: list[Entry] = []
        self._known: set[tuple[str, str | None]] = set()

    def discover(
        self, folders: Sequence[Folder], settle: float, latest: Callable[[Entry, int], Instant | None]
    ) -> Waiting:
        """Append the complete files that have arrived, sorted by path, and return the others.

        A file is complete if it has not changed for `settle` seconds and, for Parquet, has its footer.
        `latest` returns the latest time in a file, if that is known.
        """
        waiting = Waiting()
        now = time.time()
        new = [
            Entry(path, folder.topic, size)
            for folder in folders
            for path, size in _find_complete(folder.path, settle, now, waiting, self._is_known(folder.topic))
        ]
        if new:
            with self._lock() as file:
                fresh = [entry for entry in new if (entry.path, entry.topic) not in self._known]
                dated = [
                    msgspec.structs.replace(entry, latest=latest(entry, len(self.entries) + i))
                    for i, entry in enumerate(fresh)
                ]
                raw = b"".join(msgspec.json.encode(entry) + b"\n" for entry in dated)
                os.pwrite(file, raw, self._read)
                os.fsync(file)
                self._append(raw)
        return waiting

    def refresh(self) -> None:
        """Read entries that another process has appended.

        An incomplete last line is removed, because no reader has used it.
        """
        with self._lock():
            pass

    @contextmanager
    def _lock(self) -> Iterator[int]:
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = os.fstat(file).st_size
            if size < self._read:
                raise InputError(f"{self._path}: shorter than it was; nobody may change the log of files")
            raw = os.pread(file, size - self._read, self._read)
            self._append(raw[: raw.rfind(b"\n") + 1])
            os.ftruncate(file, self._read)
            yield file
        finally:
            os.close(file)

    def _append(self, raw: bytes) -> None:
        try:
            added = msgspec.json.Decoder(Entry).decode_lines(raw)
        except msgspec.DecodeError as error:
            raise InputError(f"{self._path}: damaged ({error}); nobody may change the log of files") from None
        self.entries += added
        self._known.update((entry.path, entry.topic) for entry in added)
        self._read += len(raw)

    def _is_known(self, topic: str | None) -> Callable[[str], bool]:
        return lambda path: (path, topic) in self._known


def _find_complete(
    folder: str, settle: float, now: float, waiting: Waiting, known: Callable[[str], bool]
) -> Iterator[tuple[str, int]]:
    try:
        paths = sorted(beneath(folder), key=lambda path: Path(path).as_posix())
    except FileNotFoundError:  # a folder went away while it was listed
        return
    for path in paths:
        if known(path):
            continue
        format = format_of(path)
        if format is None or not _is_printable(path):
            waiting.unknown.append(os.fsencode(path).decode("utf-8", "replace"))
            continue
        try:
            found = os.stat(path)
            is_complete = now - found.st_mtime >= settle and (format[0] != "parquet" or _has_footer(path))
        except FileNotFoundError:  # renamed meanwhile
            continue
        if is_complete:
            yield path, found.st_size
        else:
            waiting.incomplete.append(path)


def _is_printable(path: str) -> bool:
    """Whether a name can be written as JSON. A name that is not valid UTF-8 cannot."""
    return path.isprintable() or path.encode("utf-8", "ignore").decode() == path


def _has_footer(path: str) -> bool:
    """Whether a Parquet file ends with a footer, as a complete file does. Other files count as complete."""
    with open(path, "rb") as file:
        if not _MAGIC.startswith(file.read(4)):
            return True  # not Parquet at all: reading it will say so
        if file.seek(0, os.SEEK_END) < 12:
            return False
        file.seek(-4, os.SEEK_END)
        return file.read(4) == _MAGIC
