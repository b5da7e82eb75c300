"""Segments become Parquet files: one for each topic, with the columns that every reader of files knows.

Each segment leaves a seal: its positions, the files with their sizes and digests, and what of it
could not be read.  By the seals a missing or damaged file is noticed.
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
from .log import Segment, hide, read_segment, scan_segment, segments_of, sync_folder

log = logging.getLogger("holdfast.service")

FOLDER = "readings"
_PIECES = 1_000
SEALS = "seals"
_SUFFIX = ".json"
_TRIMMED = "trimmed"
"""Beside the files when some were removed: the name of the last of them."""


class SealedFile(msgspec.Struct, frozen=True):
    """What is known of a file of readings."""

    size: int
    digest: str


class Seal(msgspec.Struct, frozen=True):
    """What is known of a sealed segment: from its ``first`` position to the one ``after`` it, behind a log
    that ended where it ``follows``.  What was ``lost`` are positions that could not be read."""

    first: int
    after: int
    follows: int
    files: dict[str, SealedFile]
    lost: tuple[tuple[int, int], ...] = ()


class Unsealed(NamedTuple):
    """A seal that is damaged itself."""

    first: int


def seal(folder: Path, position: int) -> list[Path]:
    """Turn the segments before a position into Parquet files, which appear when they are complete."""
    segments = segments_of(folder)
    done: list[Path] = []
    for segment, following in pairwise(segments):
        if following.first > position:
            break
        done += _sealed(segment, following, folder)
    return done


def _sealed(segment: Segment, following: Segment, folder: Path) -> list[Path]:
    found = list(read_segment(segment))
    files = _written(found, segment, folder / FOLDER)
    mine, next_one = scan_segment(segment).header, scan_segment(following).header
    first, after = segment.first, following.first if next_one is None else next_one.follows
    lost = _lost(found, first, after)
    known = {path.name: SealedFile(path.stat().st_size, digest(path)) for path in files}
    sync_folder(folder / FOLDER)
    _put(folder / SEALS, Seal(first, after, first if mine is None else mine.follows, known, lost))
    if lost:  # its bytes stay for who wants to look at them
        segment.path.rename(folder / f"damaged-{segment.path.name}")
    else:
        segment.path.unlink()
    return files


def _lost(found: Sequence[Framed], first: int, after: int) -> tuple[tuple[int, int], ...]:
    """Positions of a segment that could not be read, from and to."""
    damaged = [
        (one.position, one.position + span(one.entry))
        for one in found
        if isinstance(one.entry, Unreadable) and one.entry.is_damage
    ]
    reached = found[-1].position + span(found[-1].entry) if found else first
    return (*damaged, *([(reached, after)] if reached < after else []))


def digest(path: Path) -> str:
    """What tells the bytes of a file from others."""
    with open(path, "rb") as file:
        return file_digest(file, lambda: blake2b(digest_size=16)).hexdigest()


def _put(folder: Path, one: Seal) -> None:
    folder.mkdir(mode=0o750, exist_ok=True)
    raw = msgspec.json.encode(one)
    part = folder / f".{one.first:020}{_SUFFIX}.part"
    with open(part, "wb") as file:
        file.write(raw + b"\n" + blake2b(raw, digest_size=16).hexdigest().encode())
        file.flush()
        os.fsync(file.fileno())
    hide(part)
    part.replace(folder / f"{one.first:020}{_SUFFIX}")
    sync_folder(folder)


def seals(folder: Path) -> list[Seal | Unsealed]:
    """The seals of a log, in order."""
    return [_seal_at(path) for path in sorted((folder / SEALS).glob(f"*{_SUFFIX}"))]


def _seal_at(path: Path) -> Seal | Unsealed:
    try:
        raw, _, known = path.read_bytes().rpartition(b"\n")
        if blake2b(raw, digest_size=16).hexdigest().encode() == known:
            return msgspec.json.decode(raw, type=Seal)
    except (OSError, msgspec.MsgspecError):
        pass
    return Unsealed(int(path.name.removesuffix(_SUFFIX)))


def _written(found: Sequence[Framed], segment: Segment, folder: Path) -> list[Path]:
    folder.mkdir(exist_ok=True, mode=0o750)
    topics: dict[str, list[pa.RecordBatch]] = {}
    for framed in found:
        if isinstance(framed.entry, Readings):
            mine = topics.setdefault(framed.entry.topic, [])
            mine.append(framed.entry.batch)
            if len(mine) == _PIECES:  # a piece of few rows takes a hundred times their room
                mine[:] = [concatenate(mine)]
    return [
        _table(folder / f"{segment.first:020}-{quote(topic, safe='')}.parquet", topic, batches)
        for topic, batches in topics.items()
    ]


def _table(path: Path, topic: str, batches: Sequence[pa.RecordBatch]) -> Path:
    batch = concatenate(batches).drop_columns([ORIGIN])
    named = pa.DictionaryArray.from_arrays(pa.array([0] * len(batch), pa.int8()), [topic])
    table = pa.Table.from_batches([batch.append_column("topic", named)])
    part = path.with_name(f".{path.name}.part")
    pq.write_table(table, part, compression="zstd", write_page_checksum=True)
    with open(part, "rb") as file:
        os.fsync(file.fileno())
    hide(part)
    part.replace(path)
    return path


def sealed(folder: Path) -> list[Path]:
    """The Parquet files of a log, oldest first."""
    return sorted((folder / FOLDER).glob("*.parquet"))


def is_trimmed(folder: Path) -> bool:
    """Whether files were removed."""
    return (folder / FOLDER / _TRIMMED).exists()


def trimmed(folder: Path) -> str:
    """The name of the last file that was removed: those up to it are not missed."""
    path = folder / FOLDER / _TRIMMED
    return path.read_text() if path.exists() else ""


def retain(folder: Path, *, seconds: float | None, size: int | None) -> list[Path]:
    """Remove the oldest files that are too old, or too many for a size in bytes; they are returned."""
    files = [(path, path.stat()) for path in sealed(folder)]
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
    """Remove the seals of segments of which every file was removed."""
    for one in seals(folder):
        names = one.files if isinstance(one, Seal) else ()
        if f"{one.first:020}" <= last and all(name <= last for name in names):
            (folder / SEALS / f"{one.first:020}{_SUFFIX}").unlink()


@contextmanager
def history(folder: Path) -> Iterator[list[str]]:
    """The files that hold all readings of a log, also those that are not yet sealed.

    The service may be running: a segment that it seals meanwhile is read once.
    """
    with TemporaryDirectory(prefix="holdfast-log-") as scratch:
        pending = segments_of(folder)  # first: what is sealed after this is in both, under one name
        tail: list[Path] = []
        for segment in pending:
            try:
                tail += _written(_readable(segment), segment, Path(scratch))
            except FileNotFoundError:
                continue
        names = {path.name for path in tail}
        yield [str(path) for path in [*(p for p in sealed(folder) if p.name not in names), *tail]]


def _readable(segment: Segment) -> list[Framed]:
    found = list(read_segment(segment))
    for framed in found:
        if isinstance(framed.entry, Unreadable):
            log.warning(
                "%s: an entry at %d is left out: %s", segment.path, framed.position, framed.entry.reason
            )
    return found
