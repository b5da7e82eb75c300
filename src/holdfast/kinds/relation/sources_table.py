"""Members of relations from a table beside the definition: CSV with a header."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from ...errors import DefinitionError, Place

MOST = 10_000_000
"""The maximal number of rows, because they are held in memory."""


def rows(path: Path, columns: tuple[str, ...], at: Place | None) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Yield the cells of some columns, with the number of each line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from _cells(file, path, columns, at)
    except OSError as error:
        raise DefinitionError(f"cannot read {path}: {error.strerror}", at) from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise DefinitionError(f"{path} is not a table in CSV: {error}", at) from None


def _cells(
    file: Iterator[str], path: Path, columns: tuple[str, ...], at: Place | None
) -> Iterator[tuple[int, tuple[str, ...]]]:
    table = csv.reader(file)
    header = [name.strip() for name in next(table, [])]
    absent = [name for name in columns if name not in header]
    if absent:
        has = f"it has {', '.join(header)}" if header else "it is empty"
        raise DefinitionError(
            f"{path} has no column '{absent[0]}'; {has}", at, hint=f"Its first line is: {','.join(columns)}"
        )
    places = [header.index(name) for name in columns]
    for row in table:
        if not row:
            continue
        if len(row) <= max(places) or not all(row[i].strip() for i in places):
            raise DefinitionError(
                f"{path}, line {table.line_num}: a cell of {', '.join(columns)} is empty", at
            )
        if table.line_num > MOST:
            raise DefinitionError(f"{path} has more than {MOST:,} lines", at)
        yield table.line_num, tuple(row[i].strip() for i in places)
