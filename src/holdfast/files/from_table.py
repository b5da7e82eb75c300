"""Reading of tables in memory as chunks: Arrow tables, and data frames that convert to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..errors import UsageError
from .chunk import Chunk
from .find import InputFile
from .tally import Tally


def is_table(given: Any) -> bool:
    """Whether an input is a table and not a file name."""
    return isinstance(given, (pa.Table, pa.RecordBatch)) or hasattr(given, "columns")


def in_memory(given: Any, rank: int) -> InputFile:
    """Return a table or data frame as an input.

    It can be one of pyarrow, pandas or polars, or any data that Arrow can import.
    """
    return InputFile(f"table {rank + 1}", rank, "table", table=_arrow(given))


def _arrow(given: Any) -> pa.Table:
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    try:
        if hasattr(given, "iloc"):  # pandas: its index is a column, unless it only counts
            counts = type(given.index).__name__ == "RangeIndex"
            return pa.Table.from_pandas(given if counts else given.reset_index(), preserve_index=False)
        if hasattr(given, "__arrow_c_stream__"):
            return pa.table(given)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(f"this data frame cannot become an Arrow table: {error}") from None
    raise UsageError(
        f"a table is a pyarrow Table, or a data frame of pandas or polars, not {type(given).__name__}"
    )


def names(file: InputFile) -> list[str]:
    """Return the column names of the table."""
    return list(file.table.column_names)


def chunks(file: InputFile, wanted: Sequence[str], tally: Tally, *, chunk_rows: int) -> Iterator[Chunk]:
    """Yield the wanted columns in the table's order."""
    at = 0
    for batch in file.table.select(list(wanted)).to_batches(max_chunksize=chunk_rows):
        tally.bytes += batch.nbytes
        rows = np.arange(at, at + len(batch), dtype=np.int64)
        at += len(batch)
        yield Chunk(rows, {name: batch.column(i) for i, name in enumerate(wanted)})
