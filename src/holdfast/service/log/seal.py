"""Segments become Parquet files: one for each topic, with the columns that every reader of files knows."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from ...model.batch import concatenate
from .frame import ORIGIN, Framed, Readings
from .log import Segment, read_segment, segments_of

FOLDER = "readings"
_PIECES = 1_000
_TRIMMED = "trimmed"
"""Beside the files when some were removed."""
_EMPTY = "began-empty"
"""Beside the files when the first segment had no readings."""


def seal(folder: Path, position: int) -> list[Path]:
    """Turn the segments before a position into Parquet files, which appear when they are complete."""
    segments = segments_of(folder)
    done: list[Path] = []
    for segment, following in pairwise(segments):
        if following.first > position:
            break
        files = _written(segment, read_segment(segment, following.first), folder / FOLDER)
        if not files and segment.first == 0:
            (folder / FOLDER / _EMPTY).touch()
        done += files
        segment.path.unlink()
    return done


def _written(segment: Segment, found: Iterator[Framed], folder: Path) -> list[Path]:
    folder.mkdir(exist_ok=True)
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
    pq.write_table(table, part, compression="zstd")
    with open(part, "rb") as file:
        os.fsync(file.fileno())
    part.replace(path)
    return path


def sealed(folder: Path) -> list[Path]:
    """The Parquet files of a log, oldest first."""
    return sorted((folder / FOLDER).glob("*.parquet"))


def is_trimmed(folder: Path) -> bool:
    """Whether files were removed."""
    return (folder / FOLDER / _TRIMMED).exists()


def began_empty(folder: Path) -> bool:
    """Whether the first segment was sealed and had no readings: no file of it is missing."""
    return (folder / FOLDER / _EMPTY).exists()


def retain(folder: Path, *, seconds: float | None, size: int | None) -> list[Path]:
    """Remove the oldest files that are too old, or too many for a size in bytes; they are returned."""
    files = [(path, path.stat()) for path in sealed(folder)]
    total = sum(found.st_size for _, found in files)
    removed = []
    for path, found in files:
        too_old = seconds is not None and time.time() - found.st_mtime > seconds
        if not too_old and (size is None or total <= size):
            break
        (folder / FOLDER / _TRIMMED).touch()
        path.unlink()
        removed.append(path)
        total -= found.st_size
    return removed


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
                tail += _written(segment, read_segment(segment), Path(scratch))
            except FileNotFoundError:
                continue
        names = {path.name for path in tail}
        yield [str(path) for path in [*(p for p in sealed(folder) if p.name not in names), *tail]]
