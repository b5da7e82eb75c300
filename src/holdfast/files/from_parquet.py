"""Reading of Parquet files as chunks of columns in the file's own types."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import InputError
from .chunk import Chunk, Rows, plain
from .convert import is_text
from .find import InputFile
from .reading import Where
from .tally import Tally


def names(file: InputFile) -> list[str]:
    """Return the column names from the footer."""
    return list(form(file).names)


def form(file: InputFile) -> pa.Schema:
    """Return the columns and their types from the footer."""
    with open_parquet(file) as table:
        return table.schema_arrow


def open_parquet(
    file: InputFile, *, dictionaries: Sequence[str] = (), footer: pq.FileMetaData | None = None
) -> pq.ParquetFile:
    """Open a Parquet file. The footer is read from the file unless ``footer`` is given."""
    try:
        return pq.ParquetFile(
            file.path,
            metadata=footer,
            read_dictionary=list(dictionaries),
            page_checksum_verification=True,
        )
    except (pa.ArrowException, OSError) as error:
        raise InputError(_not_parquet(file, error)) from None


Encode = Callable[[pa.StringArray], pa.DictionaryArray]
"""Maps names to a dictionary and the code of each name in it."""


class ParquetColumns(NamedTuple):
    """The columns and rows of a Parquet file to read.

    ``later`` are columns for a second pass. ``where`` selects rows. ``encode`` makes a dictionary of source
    names where the file has none.
    """

    wanted: Sequence[str]
    source: str | None
    later: Sequence[str] = ()
    where: Where | None = None
    encode: Encode = pc.dictionary_encode


def chunks(
    file: InputFile,
    columns: ParquetColumns,
    tally: Tally,
    *,
    chunk_rows: int,
    row_groups: Sequence[int] | None = None,
) -> Iterator[Chunk]:
    """Yield the wanted columns of some or all row groups in file order, with ``source`` as a dictionary.

    Columns in ``later`` are not read, except in rows that are shown as rejected.
    """
    wanted, source, later, where, encode = columns
    asked = where.columns if where is not None else ()
    first = [name for name in wanted if name not in later]
    with open_parquet(file) as table:
        footer = table.metadata
        groups = range(footer.num_row_groups) if row_groups is None else row_groups
        kind = table.schema_arrow.field(source).type if source else pa.null()
        spelled = kind == pa.string() and _is_spelled(footer, source, groups)
        coded = [source] if source and is_text(kind) and not spelled else []
    with open_parquet(file, dictionaries=coded, footer=footer) as table:
        starts = _starts(footer)
        per_row = file.size / max(1, footer.num_rows)
        for group in groups:
            at = int(starts[group])
            for batch in _batches(file, table, list(dict.fromkeys((*first, *asked))), group, chunk_rows):
                tally.bytes += int((at + len(batch)) * per_row) - int(at * per_row)
                rows = np.arange(at, at + len(batch), dtype=np.int64)
                at += len(batch)
                if where is not None:
                    rows, batch = _only(rows, batch, where)
                found = {name: batch.column(name) for name in first}
                if source and spelled:
                    found[source] = encode(found[source])
                yield Chunk(rows, found, later=tuple(later), show=_whole(file, rows, wanted, later))


def _is_spelled(footer: pq.FileMetaData, name: str | None, groups: Iterable[int]) -> bool:
    """Whether a text column has no dictionary, or its writer stopped using one.

    Each value then takes four bytes and its text, by which this function recognizes such columns.
    """
    paths = [footer.schema.column(i).path for i in range(len(footer.schema))]
    chunks = [footer.row_group(group).column(paths.index(name)) for group in groups]
    return sum(c.total_uncompressed_size for c in chunks) > 4 * sum(c.num_values for c in chunks)


def _only(rows: Rows, batch: pa.RecordBatch, where: Where) -> tuple[Rows, pa.RecordBatch]:
    """Return the rows that satisfy a condition, with their numbers."""
    some = batch.append_column(_AT, pa.array(rows)).filter(where.holds)
    return some.column(_AT).to_numpy(), some


_AT = "@at"


def read_rows(file: InputFile, rows: Rows, wanted: Sequence[str]) -> Iterator[tuple[Rows, pa.Table]]:
    """Yield the wanted columns of some rows, row group by row group, each with the indices of its rows."""
    with open_parquet(file) as table:
        starts = _starts(table.metadata)
        groups = np.searchsorted(starts, rows, "right") - 1
        for group in np.unique(groups):
            mine = np.flatnonzero(groups == group)
            with _report_damage(file, int(group)):
                whole = table.read_row_group(int(group), columns=list(wanted))
            yield mine, whole.take(pa.array(rows[mine] - starts[group])).combine_chunks()


def _starts(footer: pq.FileMetaData) -> Rows:
    """Return the number of the first row of each row group."""
    sizes = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
    return np.concatenate([[0], np.cumsum(sizes[:-1])]).astype(np.int64)


def _whole(
    file: InputFile, rows: Rows, wanted: Sequence[str], later: Sequence[str]
) -> Callable[[int], Any] | None:
    """Return a function that shows a row completely, including columns that were left for the second pass.

    Returns ``None`` if no columns were left.
    """

    def show(i: int) -> Any:
        ((_, row),) = read_rows(file, rows[i : i + 1], wanted)
        return {name: plain(row.column(name)[0].as_py()) for name in wanted}

    return show if later else None


def _batches(
    file: InputFile, table: pq.ParquetFile, wanted: Sequence[str], group: int, chunk_rows: int
) -> Iterator[pa.RecordBatch]:
    with _report_damage(file, group):
        yield from table.iter_batches(chunk_rows, row_groups=[group], columns=list(wanted))


@contextmanager
def _report_damage(file: InputFile, group: int) -> Iterator[None]:
    try:
        yield
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
