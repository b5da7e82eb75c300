"""Parquet files as chunks of columns in the file's own types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..errors import InputError
from .chunk import Chunk
from .convert import is_text
from .find import InputFile
from .tally import Tally


def names(file: InputFile) -> list[str]:
    """The columns, from the footer."""
    with opened(file) as table:
        return list(table.schema_arrow.names)


def opened(
    file: InputFile, *, dictionaries: Sequence[str] = (), footer: pq.FileMetaData | None = None
) -> pq.ParquetFile:
    """The file, its footer read, unless it is given."""
    try:
        return pq.ParquetFile(file.path, metadata=footer, read_dictionary=list(dictionaries))
    except (pa.ArrowException, OSError) as error:
        raise InputError(_not_parquet(file, error)) from None


def chunks(
    file: InputFile,
    wanted: Sequence[str],
    tally: Tally,
    *,
    chunk_rows: int,
    source: str,
    row_groups: Sequence[int] | None = None,
) -> Iterator[Chunk]:
    """The wanted columns of some or all row groups, in file order; ``source`` as a dictionary."""
    with opened(file) as table:
        coded = [source] if is_text(table.schema_arrow.field(source).type) else []
        footer = table.metadata
    with opened(file, dictionaries=coded, footer=footer) as table:
        sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        per_row = file.size / max(1, footer.num_rows)
        for group in range(len(sizes)) if row_groups is None else row_groups:
            at = int(starts[group])
            for batch in _batches(file, table, wanted, group, chunk_rows):
                tally.bytes += int((at + len(batch)) * per_row) - int(at * per_row)
                rows = np.arange(at, at + len(batch), dtype=np.int64)
                at += len(batch)
                yield Chunk(rows, {name: batch.column(name) for name in wanted})


def _batches(
    file: InputFile, table: pq.ParquetFile, wanted: Sequence[str], group: int, chunk_rows: int
) -> Iterator[pa.RecordBatch]:
    try:
        yield from table.iter_batches(chunk_rows, row_groups=[group], columns=list(wanted))
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{file.path}: row group {group} cannot be read: {str(error)[:200]}. "
            "The file is damaged; write or copy it again."
        ) from None


def _not_parquet(file: InputFile, error: Exception) -> str:
    if file.size == 0:
        return f"{file.path}: is empty (0 bytes), not a Parquet file; write it again, or leave it out"
    with open(file.path, "rb") as raw:
        head = raw.read(4096)
    if head.startswith(b"PAR1"):
        return (
            f"{file.path}: its footer cannot be read ({_short(error)}). Torn? Write or copy the file again."
        )
    is_text = b"\x00" not in head and b"\n" in head
    do = "name it by its format (.csv, .jsonl)" if is_text else "check where it comes from"
    return f"{file.path}: is not a Parquet file, as its name says; {do}"


def _short(error: Exception) -> str:
    return str(error).splitlines()[0][:120]
