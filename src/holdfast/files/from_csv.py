"""Reading of CSV files as chunks of text columns.

A header names the columns. Fields are separated by commas and can be quoted with ``"``; a quoted field can
contain line ends. Empty lines are not rows.
"""

from __future__ import annotations

import csv
import io
import os
import re
import sys
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv

from ..errors import InputError
from .chunk import Chunk, RowFault
from .content import ByteStream
from .find import InputFile
from .tally import Tally

WRONG_COLUMNS = "wrong number of columns"

_BLOCK = 4 << 20
_HEADER = 1 << 20
_PATIENCE = 60.0  # seconds, for a thread that has only to be given its turn


def names(file: InputFile) -> list[str]:
    """Return the trimmed column names of the header; an empty list for an empty file."""
    return [name.strip() for name in _header(file)]


def _header(file: InputFile) -> list[str]:
    """Return the column names as they are in the header. Cached while the file does not change."""
    try:
        stamp = os.stat(file.path)
    except OSError as error:
        raise InputError(f"{file.path}: cannot be opened: {error}") from None
    return _first_line(file, stamp.st_mtime_ns, stamp.st_size)


@lru_cache(maxsize=256)
def _first_line(file: InputFile, _changed: int, _size: int) -> list[str]:
    with ByteStream(file) as stream:
        head = b""
        while len(head) < _HEADER and (block := stream.read(65536)):
            head += block
            if b"\n" in head.lstrip(b"\xef\xbb\xbf\r\n"):
                break
    try:
        text = head.decode("utf-8-sig", "strict" if len(head) < 4 else "ignore")
        rows = csv.reader(io.StringIO(text, newline=""), strict=False)
        header = next((row for row in rows if row), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{file.path}: its header cannot be read: {error}; is it a CSV file?") from None
    if header and not any(name.strip() for name in header):
        raise InputError(f"{file.path}: its header names no columns; write them in the first line")
    return header


def chunks(
    file: InputFile, wanted: Sequence[str], tally: Tally, *, chunk_rows: int, block: int = _BLOCK
) -> Iterator[Chunk]:
    """Yield the wanted columns as chunks of text, in file order."""
    header = _header(file)
    if not header:
        return
    theirs = {name.strip(): name for name in header}
    bad: deque[tuple[int, str]] = deque()
    with ByteStream(file) as stream, _alone(stream):
        start, before = 0, 0
        for batch in _batches(file, stream, [theirs[name] for name in wanted], bad, block):
            for at in range(0, len(batch), chunk_rows):
                part = batch.slice(at, chunk_rows)
                rows, faults = _places(start, len(part), bad)
                start = int(rows[-1]) + 1
                columns = {name: part.column(i) for i, name in enumerate(wanted)}
                tally.bytes += stream.position - before
                before = stream.position
                yield Chunk(rows, columns, tuple(faults))
        _require_closed(file, stream, start)
        tally.bytes += stream.position - before
    if bad:
        yield Chunk(
            np.zeros(0, np.int64),
            {name: pa.array([], pa.string()) for name in wanted},
            tuple(RowFault(row, WRONG_COLUMNS, text) for row, text in bad),
        )


@contextmanager
def _alone(stream: ByteStream) -> Iterator[None]:
    """Wait at the end of the context until Arrow's threads release the stream.

    A thread of Arrow reads ahead, and releases the stream some time after the last block. That takes the GIL,
    and an interpreter that is shutting down at that time aborts (SIGABRT).
    """
    ours = sys.getrefcount(stream)
    try:
        yield
    except BaseException as error:
        _forget(error)
        raise
    finally:
        until = time.monotonic() + _PATIENCE
        while sys.getrefcount(stream) > ours and time.monotonic() < until:
            time.sleep(0.0002)


def _forget(error: BaseException | None) -> None:
    """Clear the frames of an error and its causes, because they refer to the stream."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__


def _batches(
    file: InputFile, stream: ByteStream, wanted: list[str], bad: deque[tuple[int, str]], block: int
) -> Iterator[pa.RecordBatch]:
    def skip(row: pacsv.InvalidRow) -> str:
        bad.append((row.number - 2, row.text))  # Arrow counts from one, and the header
        return "skip"

    try:
        reader = pacsv.open_csv(
            pa.PythonFile(stream, mode="r"),
            pacsv.ReadOptions(use_threads=False, block_size=block),
            pacsv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
            pacsv.ConvertOptions(
                column_types=dict.fromkeys(wanted, pa.string()),
                include_columns=wanted,
                null_values=[""],  # nothing between two commas; "" in quotes is an empty text
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )
        yield from reader
    except (pa.ArrowException, OSError, KeyError) as error:
        if stream.fault is not None:
            raise stream.fault from None
        if "Empty CSV file" in str(error):
            return
        raise InputError(_message(file, str(error))) from None


def _places(start: int, size: int, bad: deque[tuple[int, str]]) -> tuple[np.ndarray, list[RowFault]]:
    """Return the row numbers of the next ``size`` rows from ``start`` on.

    Skipped rows between them are returned as faults.
    """
    end = start + size
    faults: list[RowFault] = []
    while bad and bad[0][0] < end:
        row, text = bad.popleft()
        faults.append(RowFault(row, WRONG_COLUMNS, text))
        end += 1
    rows = np.arange(start, end, dtype=np.int64)
    return (np.setdiff1d(rows, [fault.row for fault in faults]) if faults else rows), faults


def _require_closed(file: InputFile, stream: ByteStream, row: int) -> None:
    if stream.left_open:
        raise InputError(
            f"{file.path}, row {row}: a quoted field is not closed before the file ends; "
            'close it, or write a quote inside a field as ""'
        )


def _message(file: InputFile, message: str) -> str:
    place = re.search(r"Row #(\d+)", message)
    where = f"{file.path}, row {int(place[1]) - 1}" if place else file.path
    if "UTF8" in message:
        return f"{where}: is not UTF-8 text; convert the file, for example with: iconv -f latin1 -t utf-8"
    if "straddl" in message:
        return (
            f"{where}: a row is longer than {_BLOCK >> 20} MB; probably a quoted field is not closed, "
            "or the file is not CSV"
        )
    return f"{where}: cannot be read as CSV: {message}"
