"""Conversion of segments to Parquet files, one for each topic, in columns that all readers of files accept.

Each segment leaves a seal: its positions, the files with sizes and digests, and the ranges that could not be
read. The seals reveal missing and damaged files later.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b, file_digest
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple
from urllib.parse import quote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ...model.batch import concatenate
from .frame import ORIGIN, Framed, Readings, Unreadable, span
from .log import LogSegment, hide, read_segment, scan_segment, segments_of, sync_folder

log = logging.getLogger("holdfast.service")

FOLDER = "readings"
_PIECES = 1_000
SEALS = "seals"
_SUFFIX = ".json"
_TRIMMED = "trimmed"
"""A file beside the others when some were removed, with the name of the last of them."""


class SealedFile(msgspec.Struct, frozen=True):
    """The size in bytes and the digest of a file of readings."""

    size: int
    digest: str


class Seal(msgspec.Struct, frozen=True):
    """The record of a sealed segment, from its ``first`` position to the one ``after`` it.

    The log before it ended at ``follows``. ``lost`` are ranges of positions that could not be read.
    """

    first: int
    after: int
    follows: int
    files: dict[str, SealedFile]
    lost: tuple[tuple[int, int], ...] = ()


class DamagedSeal(NamedTuple):
    """A seal whose own file is damaged."""

    first: int


def seal(folder: Path, position: int) -> list[Path]:
    """Convert the segments before a position to Parquet files and return their paths.

    A file appears under its name only when it is complete.
    """
    segments = segments_of(folder)
    done: list[Path] = []
    for segment, following in pairwise(segments):
        if following.first > position:
            break
        done += _seal_segment(segment, following, folder)
    return done


def _seal_segment(segment: LogSegment, following: LogSegment, folder: Path) -> list[Path]:
    found = list(read_segment(segment))
    files = _write_tables(found, segment, folder / FOLDER)
    header, next_header = scan_segment(segment).header, scan_segment(following).header
    first, after = segment.first, following.first if next_header is None else next_header.follows
    lost = _lost_ranges(found, first, after)
    known = {path.name: SealedFile(path.stat().st_size, digest(path)) for path in files}
    sync_folder(folder / FOLDER)
    _put(folder / SEALS, Seal(first, after, first if header is None else header.follows, known, lost))
    if lost:  # the damaged bytes may be of use to an administrator
        segment.path.rename(folder / f"damaged-{segment.path.name}")
    else:
        segment.path.unlink()
    return files


def _lost_ranges(found: Sequence[Framed], first: int, after: int) -> tuple[tuple[int, int], ...]:
    """Return the ranges of positions of a segment that could not be read."""
    damaged = [
        (framed.position, framed.position + span(framed.entry))
        for framed in found
        if isinstance(framed.entry, Unreadable) and framed.entry.is_damage
    ]
    end = found[-1].position + span(found[-1].entry) if found else first
    return (*damaged, *([(end, after)] if end < after else []))


def digest(path: Path) -> str:
    """Return a digest of a file's bytes in hexadecimal."""
    with open(path, "rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


def _put(folder: Path, seal_: Seal) -> None:
    folder.mkdir(mode=0o750, exist_ok=True)
    raw = msgspec.json.encode(seal_)
    part = folder / f".{seal_.first:020}{_SUFFIX}.part"
    with open(part, "wb") as file:
        file.write(raw + b"\n" + blake2b(raw, digest_size=16).hexdigest().encode())
        file.flush()
        os.fsync(file.fileno())
    hide(part)
    part.replace(folder / f"{seal_.first:020}{_SUFFIX}")
    sync_folder(folder)


def seals(folder: Path) -> list[Seal | DamagedSeal]:
    """Return the seals of a log in order of position; ``DamagedSeal`` for a seal that cannot be read."""
    return [_seal_at(path) for path in sorted((folder / SEALS).glob(f"*{_SUFFIX}"))]


def _seal_at(path: Path) -> Seal | DamagedSeal:
    try:
        raw, _, known = path.read_bytes().rpartition(b"\n")
        if blake2b(raw, digest_size=16).hexdigest().encode() == known:
            return msgspec.json.decode(raw, type=Seal)
    except (OSError, msgspec.MsgspecError):
        pass
    return DamagedSeal(int(path.name.removesuffix(_SUFFIX)))


def _write_tables(found: Sequence[Framed], segment: LogSegment, folder: Path) -> list[Path]:
    folder.mkdir(exist_ok=True, mode=0o750)
    topics: dict[str, list[pa.RecordBatch]] = {}
    for framed in found:
        if isinstance(framed.entry, Readings):
            batches = topics.setdefault(framed.entry.topic, [])
            batches.append(framed.entry.batch)
            if len(batches) == _PIECES:  # a small batch takes a hundred times the memory of its rows
                batches[:] = [concatenate(batches)]
    return [
        _table(folder / f"{segment.first:020}-{quote(topic, safe='')}.parquet", topic, batches)
        for topic, batches in topics.items()
    ]


def _table(path: Path, topic: str, batches: Sequence[pa.RecordBatch]) -> Path:
    batch = concatenate(batches).drop_columns([ORIGIN])
    topics_column = pa.DictionaryArray.from_arrays(pa.array([0] * len(batch), pa.int8()), [topic])
    table = pa.Table.from_batches([batch.append_column("topic", topics_column)])
    part = path.with_name(f".{path.name}.part")
    pq.write_table(table, part, compression="zstd", write_page_checksum=True)
    with open(part, "rb") as file:
        os.fsync(file.fileno())
    hide(part)
    part.replace(path)
    return path


def reading_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a log, oldest first."""
    return sorted((folder / FOLDER).glob("*.parquet"))


def has_removed_files(folder: Path) -> bool:
    """Whether files of readings were removed by ``retain``."""
    return (folder / FOLDER / _TRIMMED).exists()


def last_removed_file(folder: Path) -> str:
    """Return the name of the last file that ``retain`` removed, or empty text.

    Files up to it are not missing.
    """
    path = folder / FOLDER / _TRIMMED
    return path.read_text() if path.exists() else ""


def retain(folder: Path, *, seconds: float | None, size: int | None) -> list[Path]:
    """Remove the oldest files, by age and by total size, and return them.

    Files older than ``seconds`` are removed, then the oldest ones until at most ``size`` bytes are left.
    ``None`` stands for no limit.
    """
    files = [(path, path.stat()) for path in reading_files(folder)]
    total = sum(found.st_size for _, found in files)
    removed = []
    for path, found in files:
        too_old = seconds is not None and time.time() - found.st_mtime > seconds
        if not too_old and (size is None or total <= size):
            break
        hide(folder / FOLDER / _TRIMMED)
        (folder / FOLDER / _TRIMMED).write_text(path.name)
        path.unlink()
        removed.append(path)
        total -= found.st_size
    if removed:
        _forget_seals(folder, removed[-1].name)
    return removed


def _forget_seals(folder: Path, last: str) -> None:
    """Remove the seals of segments whose files were all removed."""
    for known in seals(folder):
        names = known.files if isinstance(known, Seal) else ()
        if f"{known.first:020}" <= last and all(name <= last for name in names):
            (folder / SEALS / f"{known.first:020}{_SUFFIX}").unlink()


@contextmanager
def history(folder: Path) -> Iterator[list[str]]:
    """Yield the files with all readings of a log, including readings that are not sealed yet.

    The service may be running. A segment that it seals meanwhile is read once.
    """
    with TemporaryDirectory(prefix="holdfast-log-") as scratch:
        pending = segments_of(
            folder
        )  # listed first: a segment sealed after this is in both lists, under one name
        tail: list[Path] = []
        for segment in pending:
            try:
                tail += _write_tables(_readable(segment), segment, Path(scratch))
            except FileNotFoundError:
                continue
        names = {path.name for path in tail}
        yield [str(path) for path in [*(p for p in reading_files(folder) if p.name not in names), *tail]]


def _readable(segment: LogSegment) -> list[Framed]:
    found = list(read_segment(segment))
    for framed in found:
        if isinstance(framed.entry, Unreadable):
            log.warning(
                "%s: an entry at %d is left out: %s", segment.path, framed.position, framed.entry.reason
            )
    return found
