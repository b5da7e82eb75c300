"""Which parts of the input are closed: nothing of the rest falls between their first and last event.

From the footers of Parquet files alone: row groups that overlap in time, or touch, belong to one
part.  What says nothing about its times (CSV, JSON lines, a footer without statistics, times that
are text) may overlap everything, and so makes one part of all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo

import numpy as np
import pyarrow.parquet as pq

from ..model.instant import BEGINNING, HOUR, NEVER, Instant
from .find import InputFile
from .from_parquet import opened
from .reading import Reading
from .times import to_utc

_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_TO_MICROS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
_SWING = 3 * HOUR  # no clock change is larger


@dataclass(frozen=True, slots=True)
class Piece:
    """A file, or some of its row groups; ``row_groups is None`` is the whole file."""

    file: InputFile
    row_groups: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Pieces whose events may interleave; ``rows`` is unknown where only reading would tell."""

    pieces: tuple[Piece, ...]
    rows: int | None
    bytes: int


@dataclass(frozen=True, slots=True)
class _Span:
    start: Instant
    end: Instant
    file: InputFile
    row_group: int | None
    rows: int | None
    bytes: int


SMALL = 1 << 20
"""Parts of fewer rows are joined to their neighbours: each part costs a look at its files."""


def closed_parts(files: Iterable[InputFile], reading: Reading, small: int = SMALL) -> list[Part]:
    """Parts that are disjoint in time, in order of time; neighbours are joined up to ``small`` rows."""
    spans = sorted((span for file in files for span in _spans(file, reading)), key=lambda span: span.start)
    parts: list[list[_Span]] = []
    reached, rows = BEGINNING, 0
    for span in spans:
        if parts and (span.start <= reached or rows + (span.rows or small) < small):
            parts[-1].append(span)
        else:
            parts.append([span])
            rows = 0
        rows += span.rows or 0
        reached = max(reached, span.end)
    return [_part(part) for part in parts]


def _part(spans: Sequence[_Span]) -> Part:
    by_rank: dict[int, list[_Span]] = {}
    for span in spans:
        by_rank.setdefault(span.file.rank, []).append(span)
    pieces = tuple(_piece(by_rank[rank]) for rank in sorted(by_rank))
    rows = [span.rows for span in spans if span.rows is not None]
    return Part(pieces, sum(rows) if len(rows) == len(spans) else None, sum(span.bytes for span in spans))


def _piece(spans: Sequence[_Span]) -> Piece:
    groups = tuple(sorted(span.row_group for span in spans if span.row_group is not None))
    return Piece(spans[0].file, groups or None)


def _spans(file: InputFile, reading: Reading) -> list[_Span]:
    if file.format != "parquet":
        return [_Span(BEGINNING, NEVER, file, None, None, file.size)] if file.size else []
    with opened(file) as table:
        return [
            _Span(*_range(table, group, reading), file, group, rows, _bytes(table, group))
            for group in range(table.num_row_groups)
            if (rows := table.metadata.row_group(group).num_rows)
        ]


def _bytes(table: pq.ParquetFile, group: int) -> int:
    columns = table.metadata.row_group(group)
    return sum(columns.column(i).total_compressed_size for i in range(columns.num_columns))


def _range(table: pq.ParquetFile, group: int, reading: Reading) -> tuple[Instant, Instant]:
    """The first and last time in a row group, or all of time."""
    theirs = reading.theirs("time")
    paths = [table.metadata.schema.column(i).path for i in range(len(table.metadata.schema))]
    clock = _clock(table, paths.index(theirs), reading) if theirs in paths else None
    if clock is None:
        return BEGINNING, NEVER
    statistics = table.metadata.row_group(group).column(paths.index(theirs)).statistics
    if statistics is None or not statistics.has_min_max:
        return BEGINNING, NEVER
    (up, down), zone = clock
    return in_utc(statistics.min_raw * up // down, statistics.max_raw * up // down, zone)


def _clock(table: pq.ParquetFile, column: int, reading: Reading) -> tuple[tuple[int, int], tzinfo] | None:
    """How the stored numbers become microseconds, and on whose clock; nothing if they are not times."""
    stored = table.metadata.schema.column(column)
    if stored.physical_type != "INT64":
        return None
    logical = json.loads(stored.logical_type.to_json())
    if logical.get("Type") == "Timestamp":
        zone = UTC if logical["isAdjustedToUTC"] else reading.zone
        return _TO_MICROS[_UNITS[logical["timeUnit"]]], zone
    if logical.get("Type") in ("None", "Int") and reading.time_unit is not None:
        return _TO_MICROS[reading.time_unit], UTC
    return None


def in_utc(first: int, last: int, zone: tzinfo) -> tuple[Instant, Instant]:
    """A range on a zone's clock as a range of instants that contains it.

    Where the clock is changed near an end, a later reading may be an earlier instant.
    """
    local = np.clip(np.array([first, first + _SWING, last - _SWING, last]), -(2**61), 2**61)
    start, after, before, end = (int(i) for i in to_utc(local, zone) - local)
    return (
        first + start - (_SWING if after != start else 0),
        last + end + (_SWING if before != end else 0),
    )
