"""The history that a log still has before a position, from which changed conditions are rebuilt."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...model.batch import concatenate, times
from .damage import damage_of_sealed
from .frame import Advance, Entry, Readings, span
from .log import LogSegment, read_segment, segments_of
from .seal import has_removed_files, reading_files, seals

log = logging.getLogger("holdfast.service")


def is_whole(folder: Path) -> bool:
    """Whether the log is complete: no file was removed, and sealed segments have no losses."""
    firsts = {segment.first for segment in segments_of(folder)} | {one.first for one in seals(folder)}
    return 0 in firsts and not has_removed_files(folder) and not damage_of_sealed(folder)


def entries_before(folder: Path, position: int, together: Collection[Collection[str]]) -> Iterator[Entry]:
    """Yield readings and clock entries before a position in their order.

    Sealed segments have only readings, each topic in its order. Topics of one group in ``together`` are
    merged by watermark. Other topics follow one another, because each change of topic has a cost.
    """
    for first in _firsts(folder):
        if first < position:
            try:
                yield from _read_segment(folder, first, position)
            except FileNotFoundError:  # it was sealed meanwhile
                yield from _read_sealed(folder, first, together)


def _firsts(folder: Path) -> list[int]:
    batches = {segment.first for segment in segments_of(folder)}
    return sorted(batches | {int(path.name.partition("-")[0]) for path in reading_files(folder)})


def _read_segment(folder: Path, first: int, position: int) -> list[Entry]:
    (path,) = [one.path for one in segments_of(folder) if one.first == first] or [folder / "gone"]
    batches = [
        one for one in read_segment(LogSegment(first, path)) if isinstance(one.entry, Readings | Advance)
    ]
    return [one.entry for one in batches if one.position + span(one.entry) <= position]


def _read_sealed(folder: Path, first: int, together: Collection[Collection[str]]) -> Iterator[Readings]:
    paths = {}
    for path in reading_files(folder):
        number, _, topic = path.name.removesuffix(".parquet").partition("-")
        if int(number) == first:
            paths[unquote(topic)] = path
    for topics_of_group in [
        *together,
        *([topic] for topic in paths if not any(topic in topics_of_group for topics_of_group in together)),
    ]:
        batches = {topic: _readings(paths[topic]) for topic in paths if topic in topics_of_group}
        yield from _by_time({topic: batch for topic, batch in batches.items() if batch is not None})


def _readings(path: Path) -> pa.RecordBatch | None:
    """Return the readings of a file, or ``None`` with a warning if it is damaged."""
    try:
        table = pq.ParquetFile(path, page_checksum_verification=True).read().drop_columns(["topic"])
    except (OSError, pa.ArrowException) as error:
        log.warning("%s: damaged, and left out: %s", path, error)
        return None
    return concatenate((table if len(table) else table.schema.empty_table()).to_batches())


def _by_time(batches: Mapping[str, pa.RecordBatch]) -> Iterator[Readings]:
    """Merge readings of several topics by watermark. Each topic stays in its own order."""
    batches = {topic: batch for topic, batch in batches.items() if len(batch)}
    if not batches:
        return
    names, marks = list(batches), [np.maximum.accumulate(times(batch)) for batch in batches.values()]
    numbers = [np.maximum.accumulate(np.asarray(batch.column("sequence"))) for batch in batches.values()]
    order = np.lexsort((np.concatenate(numbers), np.concatenate(marks)))
    topics = np.repeat(np.arange(len(names)), [len(mark) for mark in marks])[order]
    starts_condition = dict.fromkeys(names, 0)
    for run in np.split(topics, np.flatnonzero(np.diff(topics)) + 1):
        name = names[run[0]]
        yield Readings(name, batches[name].slice(starts_condition[name], len(run)))
        starts_condition[name] += len(run)
