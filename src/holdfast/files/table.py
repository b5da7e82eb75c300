"""Writers of rows to CSV, Parquet or an Arrow table."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Literal, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from ..model.batch import TIME, TYPES
from ..model.event import Value
from ..model.instant import show_instant
from ..model.topic import Kind, Topic

Cell = Value
ColumnKind = Kind | Literal["time"]
"""The kind of a column; a time is in microseconds."""

EVENT_COLUMNS: dict[str, ColumnKind] = {
    "id": "text",
    "subscription": "text",
    "scope": "text",
    "status": "text",
    "time": "time",
    "since": "time",
    "topic": "text",
    "source": "text",
    "location": "text",
}
INTERVAL_COLUMNS: dict[str, ColumnKind] = {
    "subscription": "text",
    "scope": "text",
    "start": "time",
    "end": "time",
    "duration": "float",
    "open": "bool",
    "topic": "text",
    "source": "text",
}

_ROWS = 1 << 16


class Table(Protocol):
    """The protocol of table writers: they accept rows of cells in the order of their columns."""

    def write(self, rows: Sequence[Sequence[Cell]]) -> None: ...
    def finish(self) -> None: ...
    def abandon(self) -> None: ...


def attribute_columns(
    topics: Sequence[Topic], fixed: Mapping[str, ColumnKind]
) -> dict[str, tuple[str, ColumnKind]]:
    """Return the column and kind of each attribute of any topic, by attribute name.

    A name with two kinds becomes text. An attribute with the name of a fixed column is written to
    ``attributes.NAME``.
    """
    kinds: dict[str, ColumnKind] = {}
    for topic in topics:
        for attribute in topic.attributes:
            known = kinds.setdefault(attribute.name, attribute.kind)
            if known != attribute.kind:
                kinds[attribute.name] = "text"
    return {name: (f"attributes.{name}" if name in fixed else name, kind) for name, kind in kinds.items()}


class CsvTable:
    """Writes CSV: a header, then a line for each row. A missing value is an empty field."""

    def __init__(self, file: IO[bytes], columns: Mapping[str, ColumnKind]) -> None:
        self._file = file
        self._times = [i for i, kind in enumerate(columns.values()) if kind == "time"]
        self._lines([list(columns)])

    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        self._lines([self._to_text(row) for row in rows])

    def finish(self) -> None:
        self._file.flush()

    def abandon(self) -> None:
        pass

    def _to_text(self, row: Sequence[Cell]) -> list[Cell]:
        shown = [_field(cell) for cell in row]
        for i in self._times:
            cell = row[i]
            shown[i] = show_instant(cell) if isinstance(cell, int) else None
        return shown

    def _lines(self, rows: Sequence[Sequence[Cell]]) -> None:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        self._file.write(text.getvalue().encode("utf-8", "replace"))


def _field(cell: Cell) -> Cell:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return None if cell != cell else cell


class ParquetTable:
    """Writes Parquet: typed columns in row groups of bounded size."""

    def __init__(self, file: IO[bytes], columns: Mapping[str, ColumnKind]) -> None:
        self._kinds, self._schema = list(columns.values()), _schema(columns)
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
        self._rows: list[Sequence[Cell]] = []

    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        self._rows += rows
        if len(self._rows) >= _ROWS:
            self._flush()

    def finish(self) -> None:
        self._flush()
        self._writer.close()

    def abandon(self) -> None:
        """Close the file without completing it, after an error."""
        with suppress(OSError, pa.ArrowException):
            self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            self._writer.write_batch(_batch(self._schema, self._kinds, self._rows))
            self._rows = []


class ArrowTable:
    """Collects rows as typed columns in memory."""

    def __init__(self, columns: Mapping[str, ColumnKind]) -> None:
        self._kinds, self._schema = list(columns.values()), _schema(columns)
        self._batches: list[pa.RecordBatch] = []

    @property
    def table(self) -> pa.Table:
        """The rows that were written, as an Arrow table."""
        return pa.Table.from_batches(self._batches, self._schema)

    def write(self, rows: Sequence[Sequence[Cell]]) -> None:
        if rows:
            self._batches.append(_batch(self._schema, self._kinds, rows))

    def finish(self) -> None:
        pass

    def abandon(self) -> None:
        pass


def _schema(columns: Mapping[str, ColumnKind]) -> pa.Schema:
    types = {"time": TIME, **TYPES}
    return pa.schema([(name, types[kind]) for name, kind in columns.items()])


def _batch(schema: pa.Schema, kinds: Sequence[ColumnKind], rows: Sequence[Sequence[Cell]]) -> pa.RecordBatch:
    cells = zip(*rows, strict=True)
    arrays = [_column(kind, column) for kind, column in zip(kinds, cells, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _column(kind: ColumnKind, cells: Sequence[Cell]) -> pa.Array:
    match kind:
        case "time":
            return pa.array(cells, pa.int64()).cast(TIME)
        case "text":
            return pa.array([_to_text(cell) for cell in cells], pa.string())
        case _:
            return pa.array([None if cell != cell else cell for cell in cells], TYPES[kind])


def _to_text(cell: Cell) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    field = _field(cell)
    return None if field is None else str(field)
