"""What a log still has of the time before a position, for conditions that are to hear it again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ...model.batch import concatenate, times
from .frame import Definition, Entry, Pause, Readings, span
from .log import Segment, read_segment, segments_of
from .seal import began_empty, is_trimmed, sealed


def is_whole(folder: Path) -> bool:
    """Whether nothing was removed from a log."""
    begins = began_empty(folder) or 0 in _firsts(folder)
    return begins and not is_trimmed(folder)


def before(folder: Path, position: int, together: Collection[Collection[str]]) -> Iterator[Entry]:
    """Readings, and what the clock said, as they came; of segments that are sealed the readings alone,
    those of each topic as they came.  Topics that somebody hears together come by how far time had come, the
    others one after the other: each piece costs."""
    for first in _firsts(folder):
        if first < position:
            try:
                yield from _unsealed(folder, first, position)
            except FileNotFoundError:  # it is sealed by now
                yield from _sealed(folder, first, together)


def _firsts(folder: Path) -> list[int]:
    found = {segment.first for segment in segments_of(folder)}
    return sorted(found | {int(path.name.partition("-")[0]) for path in sealed(folder)})


def _unsealed(folder: Path, first: int, position: int) -> list[Entry]:
    (path,) = [one.path for one in segments_of(folder) if one.first == first] or [folder / "gone"]
    found = [
        one for one in read_segment(Segment(first, path)) if not isinstance(one.entry, (Definition, Pause))
    ]
    return [one.entry for one in found if one.position + span(one.entry) <= position]


def _sealed(folder: Path, first: int, together: Collection[Collection[str]]) -> Iterator[Readings]:
    paths = {}
    for path in sealed(folder):
        number, _, topic = path.name.removesuffix(".parquet").partition("-")
        if int(number) == first:
            paths[unquote(topic)] = path
    for some in [*together, *([topic] for topic in paths if not any(topic in some for some in together))]:
        yield from _by_time({topic: _readings(paths[topic]) for topic in paths if topic in some})


def _readings(path: Path) -> pa.RecordBatch:
    table = pq.ParquetFile(path).read().drop_columns(["topic"])
    return concatenate((table if len(table) else table.schema.empty_table()).to_batches())


def _by_time(found: Mapping[str, pa.RecordBatch]) -> Iterator[Readings]:
    """Readings of topics, each as they came, by how far time had come with them."""
    found = {topic: batch for topic, batch in found.items() if len(batch)}
    if not found:
        return
    names, marks = list(found), [np.maximum.accumulate(times(batch)) for batch in found.values()]
    numbers = [np.maximum.accumulate(np.asarray(batch.column("sequence"))) for batch in found.values()]
    order = np.lexsort((np.concatenate(numbers), np.concatenate(marks)))
    topics = np.repeat(np.arange(len(names)), [len(mark) for mark in marks])[order]
    begins = dict.fromkeys(names, 0)
    for run in np.split(topics, np.flatnonzero(np.diff(topics)) + 1):
        name = names[run[0]]
        yield Readings(name, found[name].slice(begins[name], len(run)))
        begins[name] += len(run)
