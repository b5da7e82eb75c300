"""The plan of which parts of the input are closed: no other event falls between their first and last event.

Only the footers of Parquet files are read. Row groups that overlap in time belong to one part. Row groups
that touch belong to one part too, or to two parts that record the instant they share. A file without time
statistics (CSV, JSON lines, no statistics in the footer, times as text) may overlap every other file, so all
input is one part.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from itertools import pairwise

import numpy as np
import pyarrow.parquet as pq

from ..model.instant import BEGINNING, HOUR, NEVER, Instant
from .find import InputFile
from .from_parquet import open_parquet
from .reading import Reading
from .times import to_utc

_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
_TO_MICROS = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
_SWING = 3 * HOUR  # no clock change is larger


@dataclass(frozen=True, slots=True)
class Piece:
    """A file, or some of its row groups. ``row_groups`` is ``None`` for the whole file."""

    file: InputFile
    row_groups: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """Files and row groups whose events lie between ``start`` and ``end``.

    ``rows`` is ``None`` if the number is unknown before reading. ``shared`` are the ends at which other parts
    may have events too.
    """

    pieces: tuple[Piece, ...]
    rows: int | None
    bytes: int
    start: Instant = BEGINNING
    end: Instant = NEVER
    shared: tuple[Instant, ...] = ()


@dataclass(frozen=True, slots=True)
class _TimeSpan:
    start: Instant
    end: Instant
    file: InputFile
    row_group: int | None
    rows: int | None
    bytes: int


_Clock = tuple[tuple[int, int], tzinfo]

SMALL = 1 << 20
"""Parts with fewer rows are joined with their neighbours, because each part costs opening its files."""


def closed_parts(files: Iterable[InputFile], reading: Reading, small: int = SMALL) -> list[Part]:
    """Return parts that are disjoint in time, in order of time.

    Neighbours are joined up to ``small`` rows.
    """
    spans = sorted((span for file in files for span in _spans(file, reading)), key=lambda span: span.start)
    parts: list[list[_TimeSpan]] = []
    latest_end, rows = BEGINNING, 0
    for span in spans:
        if parts and (span.start <= latest_end or rows + (span.rows or small) < small):
            parts[-1].append(span)
        else:
            parts.append([span])
            rows = 0
        rows += span.rows or 0
        latest_end = max(latest_end, span.end)
    return [_part(part) for part in parts]


def latest_in(file: InputFile, reading: Reading) -> Instant | None:
    """Return the largest time in the footer of a file, or ``None`` if the footer does not have it."""
    latest = max((span.end for span in _spans(file, reading)), default=BEGINNING)
    return None if latest == NEVER else latest


def touching_parts(files: Iterable[InputFile], reading: Reading) -> list[Part]:
    """Return the smallest parts that share at most an instant with one another, in order of time."""
    spans = sorted((span for file in files for span in _spans(file, reading)), key=lambda span: span.start)
    parts: list[list[_TimeSpan]] = []
    latest_end = BEGINNING
    for span in spans:
        if parts and span.start < latest_end:
            parts[-1].append(span)
        else:
            parts.append([span])
        latest_end = max(latest_end, span.end)
    return with_shared([_part(part) for part in parts])


def with_shared(parts: Sequence[Part]) -> list[Part]:
    """Return touching parts with the instants that they share with their neighbours.

    The parts must be in order of time.
    """
    ends = {a.end for a, b in pairwise(parts) if a.end == b.start}
    return [replace(part, shared=tuple(ends & {part.start, part.end})) for part in parts]


def join_parts(parts: Sequence[Part]) -> Part:
    """Join adjacent parts to one part, with its pieces in order of time."""
    pieces: list[Piece] = []
    for piece in (piece for part in parts for piece in part.pieces):
        last = pieces[-1] if pieces else None
        if last is not None and last.file == piece.file and _follows(last, piece):
            pieces[-1] = Piece(piece.file, (*(last.row_groups or ()), *(piece.row_groups or ())))
        else:
            pieces.append(piece)
    rows = [part.rows for part in parts if part.rows is not None]
    return Part(
        tuple(pieces),
        sum(rows) if len(rows) == len(parts) else None,
        sum(part.bytes for part in parts),
        parts[0].start,
        parts[-1].end,
    )


def shares(parts: Sequence[Part], rows: int) -> list[Part]:
    """Join adjacent parts to parts of about ``rows`` rows each."""
    joining: list[list[Part]] = []
    done = 0
    for part in parts:
        size = part.rows or 0
        if not joining or done + size // 2 >= rows * len(joining):
            joining.append([])
        joining[-1].append(part)
        done += size
    return [join_parts(some) for some in joining]


def _follows(first: Piece, second: Piece) -> bool:
    return bool(first.row_groups and second.row_groups and first.row_groups[-1] < second.row_groups[0])


def split(part: Part, count: int) -> list[Part]:
    """Divide a part into at most ``count`` parts, by row groups or files."""
    units = [
        Piece(piece.file, None if group is None else (group,))
        for piece in part.pieces
        for group in piece.row_groups or (None,)
    ]
    size = -(-len(units) // max(1, count))
    singles = [Part((unit,), None, 0, part.start, part.end) for unit in units]
    return [join_parts(singles[i : i + size]) for i in range(0, len(singles), size)]


def _part(spans: Sequence[_TimeSpan]) -> Part:
    by_rank: dict[int, list[_TimeSpan]] = {}
    for span in spans:
        by_rank.setdefault(span.file.rank, []).append(span)
    pieces = tuple(_piece(by_rank[rank]) for rank in sorted(by_rank))
    rows = [span.rows for span in spans if span.rows is not None]
    return Part(
        pieces,
        sum(rows) if len(rows) == len(spans) else None,
        sum(span.bytes for span in spans),
        min(span.start for span in spans),
        max(span.end for span in spans),
    )


def _piece(spans: Sequence[_TimeSpan]) -> Piece:
    groups = tuple(sorted(span.row_group for span in spans if span.row_group is not None))
    return Piece(spans[0].file, groups or None)


def _spans(file: InputFile, reading: Reading) -> list[_TimeSpan]:
    if file.format != "parquet":
        return [_TimeSpan(BEGINNING, NEVER, file, None, None, file.size)] if file.size else []
    with open_parquet(file) as table:
        footer = table.metadata
        theirs = reading.theirs("time")
        paths = [footer.schema.column(i).path for i in range(len(footer.schema))]
        column = paths.index(theirs) if theirs in paths else None
        clock = None if column is None else _clock(footer, column, reading)
        groups = ((i, footer.row_group(i)) for i in range(footer.num_row_groups))
        return [
            _TimeSpan(*_range(group, column, clock), file, i, group.num_rows, group.total_byte_size)
            for i, group in groups
            if group.num_rows
        ]


def _range(group: pq.RowGroupMetaData, column: int | None, clock: _Clock | None) -> tuple[Instant, Instant]:
    """Return the first and the last time in a row group, or all of time if they are unknown."""
    if clock is None:
        return BEGINNING, NEVER
    statistics = group.column(column).statistics
    if statistics is None or not statistics.has_min_max:
        return BEGINNING, NEVER
    (up, down), zone = clock
    return in_utc(statistics.min_raw * up // down, statistics.max_raw * up // down, zone)


def _clock(footer: pq.FileMetaData, column: int, reading: Reading) -> _Clock | None:
    """Return how to convert the stored numbers of a column to microseconds, and their zone.

    Returns ``None`` if the numbers are not times.
    """
    stored = footer.schema.column(column)
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
    """Return a range of instants that contains a range of local times.

    Near a change of the clock a later local time can be an earlier instant, so the range can be wider.
    """
    local = np.clip(np.array([first, first + _SWING, last - _SWING, last]), -(2**61), 2**61)
    start, after, before, end = (int(i) for i in to_utc(local, zone) - local)
    return (
        first + start - (_SWING if after != start else 0),
        last + end + (_SWING if before != end else 0),
    )
