"""What a log still has of the time before a position, for conditions that are to hear it again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq

from .frame import Definition, Entry, Readings, span
from .log import Segment, read_segment, segments_of
from .seal import is_trimmed, sealed


def is_whole(folder: Path) -> bool:
    """Whether nothing was removed from a log."""
    firsts = _firsts(folder)
    return bool(firsts) and firsts[0] == 0 and not is_trimmed(folder)


def before(folder: Path, position: int) -> Iterator[Entry]:
    """Readings, and what the clock said, as they came; of segments that are sealed the readings alone, one
    topic after the other."""
    for first in _firsts(folder):
        if first < position:
            try:
                yield from _unsealed(folder, first, position)
            except FileNotFoundError:  # it is sealed by now
                yield from _sealed(folder, first)


def _firsts(folder: Path) -> list[int]:
    found = {segment.first for segment in segments_of(folder)}
    return sorted(found | {int(path.name.partition("-")[0]) for path in sealed(folder)})


def _unsealed(folder: Path, first: int, position: int) -> list[Entry]:
    (path,) = [one.path for one in segments_of(folder) if one.first == first] or [folder / "gone"]
    found = [one for one in read_segment(Segment(first, path)) if not isinstance(one.entry, Definition)]
    return [one.entry for one in found if one.position + span(one.entry) <= position]


def _sealed(folder: Path, first: int) -> Iterator[Readings]:
    for path in sealed(folder):
        number, _, topic = path.name.removesuffix(".parquet").partition("-")
        if int(number) == first:
            for batch in pq.ParquetFile(path).iter_batches(1 << 18):
                yield Readings(unquote(topic), batch.drop_columns(["topic"]))
