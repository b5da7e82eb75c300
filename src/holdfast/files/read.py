"""Reading of files as batches of events, in file order, for all formats.

Unusable rows are rejected with a reason. A file that is not in the format of its name is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError, UsageError
from ..model.topic import Topic
from . import from_csv, from_jsonl, from_parquet, from_table
from .chunk import BAD_TIME, NO_SOURCE, NO_TIME, Chunk, needs_unit, to_batches
from .convert import convert, exact_int
from .find import InputFile
from .reading import Reading, Sheet, lay_out
from .rest import Decisive, columns_for_later
from .tally import Rejects, Tally
from .wide import split_by_sensor

CHUNK_ROWS = 1 << 17

_NAMES = {
    "csv": from_csv.names,
    "jsonl": from_jsonl.names,
    "parquet": from_parquet.names,
    "table": from_table.names,
}
_EXAMPLE = "--time-format '%d.%m.%Y %H:%M'"
_SAMPLE_ROWS = 1_000
_SAMPLE_BLOCK = 1 << 20
_TELLING = 10
"""After this many bad rows without a good one at the beginning of a file, the file is in error, not its
rows."""


def read(
    file: InputFile,
    reading: Reading,
    tally: Tally,
    rejects: Rejects,
    *,
    row_groups: Sequence[int] | None = None,
    chunk_rows: int = CHUNK_ROWS,
    decisive: Decisive | None = None,
    encode: from_parquet.Encode = pc.dictionary_encode,
) -> Iterator[tuple[Topic, pa.RecordBatch]]:
    """Yield the file's events in file order, as batches of one topic each.

    Columns are those of ``model.batch.schema``; ``source`` is dictionary-encoded. ``row_groups`` restricts a
    Parquet file. With ``decisive`` the batches may lack other columns, which ``rest.read_missing_columns``
    adds to the rows that remain. ``encode`` makes a dictionary of source names where a Parquet file has none.
    """
    sheet = _sheet(file, reading)
    if sheet is None:
        return
    later = [] if decisive is None else columns_for_later(*sheet, decisive)
    for chunk in _chunks(sheet, tally, _Portion(row_groups, chunk_rows, later=later, encode=encode)):
        yield from _batches(sheet, chunk, tally, rejects)


def inspect(file: InputFile, reading: Reading) -> list[str]:
    """Return the file's columns. Raises an error now if the whole file cannot be used."""
    sheet = _sheet(file, reading)
    if sheet is None:
        return []
    sample = Tally()
    groups = None if file.format != "parquet" else _first_group(file)
    for chunk in _chunks(sheet, Tally(), _Portion(groups, _SAMPLE_ROWS, _SAMPLE_BLOCK)):
        for _ in _batches(sheet, chunk, sample, Rejects()):
            pass
        _require_sense(sheet, chunk, sample)
        break
    return list(sheet.layout.names)


def _sheet(file: InputFile, reading: Reading) -> Sheet | None:
    """Return a file with its layout, or ``None`` for a text file without a line."""
    names = _NAMES[file.format](file)
    if not names and file.format != "parquet":
        return None
    return Sheet(file, lay_out(file, names, reading, open_ended=file.format == "jsonl"), reading)


class _Portion(NamedTuple):
    """The portion of a file to read: row groups, rows or bytes at a time, columns to read later.

    ``encode`` makes a dictionary of source names.
    """

    row_groups: Sequence[int] | None
    chunk_rows: int
    block: int | None = None
    later: Sequence[str] = ()
    encode: from_parquet.Encode = pc.dictionary_encode


def _chunks(sheet: Sheet, tally: Tally, portion: _Portion) -> Iterator[Chunk]:
    found = _raw_chunks(sheet, tally, portion)
    return (split_by_sensor(chunk, sheet) for chunk in found) if sheet.layout.sensors else found


def _raw_chunks(sheet: Sheet, tally: Tally, portion: _Portion) -> Iterator[Chunk]:
    file, layout, reading = sheet
    wanted, chunk_rows = layout.columns_to_read(reading), portion.chunk_rows
    match file.format:
        case "csv":
            sizes = {"block": portion.block} if portion.block else {}
            return from_csv.chunks(file, wanted, tally, chunk_rows=chunk_rows, **sizes)
        case "jsonl":
            return from_jsonl.chunks(file, wanted, tally, chunk_rows=chunk_rows)
        case "table":
            return from_table.chunks(file, wanted, tally, chunk_rows=chunk_rows)
        case "parquet":
            source = None if layout.sensors else layout.source
            columns = from_parquet.ParquetColumns(
                wanted, source, portion.later, reading.where, portion.encode
            )
            return from_parquet.chunks(
                file, columns, tally, chunk_rows=chunk_rows, row_groups=portion.row_groups
            )


def _batches(
    sheet: Sheet, chunk: Chunk, tally: Tally, rejects: Rejects
) -> Iterator[tuple[Topic, pa.RecordBatch]]:
    try:
        yield from to_batches(sheet, chunk, tally, rejects)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{sheet.file.path}: text that is not UTF-8: {error}; write the file again"
        ) from None


def _first_group(file: InputFile) -> list[int]:
    with from_parquet.open_parquet(file) as table:
        return [0] if table.num_row_groups else []


def _require_sense(sheet: Sheet, chunk: Chunk, sample: Tally) -> None:
    """Raise an error if all of the first rows are rejected for the same reason.

    The options for reading are then probably wrong.
    """
    enough = 1 if sheet.file.is_typed else _TELLING
    if sample.used or sample.other_topics or len(sample.rejected) != 1:
        return
    reason, count = next(iter(sample.rejected.items()))
    if count < enough or not len(chunk.rows):
        return
    raise InputError(_nonsense(sheet, chunk, reason))


def _nonsense(sheet: Sheet, chunk: Chunk, reason: str) -> str:
    file, layout, reading = sheet
    first = chunk.data(0)
    head = f"{file.path}: none of the first {len(chunk.rows)} rows can be used: {reason}."
    theirs = "+".join(layout.time)
    if reason == BAD_TIME:
        text = convert(chunk.columns[layout.time[0]], "text")[0][0].as_py()
        if len(layout.time) == 1 and reading.time_unit is None and exact_int(text) is not None:
            raise UsageError(needs_unit(file, theirs, text))
        return f"{head}\n  Column '{theirs}' begins with '{text}'. Say how to read it: {_EXAMPLE}."
    if reason in (NO_TIME, NO_SOURCE):
        ours, where = ("time", theirs) if reason == NO_TIME else ("source", layout.source)
        return f"{head}\n  Column '{where}' is empty. Map another: --map {ours}=NAME."
    return f"{head}\n  The first is: {first}\n  Correct the topic's declaration, or map columns with --map."
