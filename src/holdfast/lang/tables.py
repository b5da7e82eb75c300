"""Tables of a definition: read, checked and converted to columns.

An invalid table is an error at its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ..errors import DefinitionError, Place, did_you_mean
from ..model.folder import Folder
from ..model.table import DEFAULT, DURATION, Column, Table, digest_of
from ..model.topic import Attribute, Kind
from ..model.unit import UNITS, nearest
from .literal import read_duration, split_quantity
from .ops import DeclareTable, place_of
from .typed import Members
from .types import of_attribute

if TYPE_CHECKING:
    import pyarrow as pa

Wrong = Callable[..., DefinitionError]
Row = tuple[str, ...]


def tables(declared: Sequence[DeclareTable], folder: Folder, given: Mapping[str, Any]) -> dict[str, Table]:
    """Return the tables of a definition by name. ``given`` has data that replaces files."""
    found = {}
    for statement in declared:
        _require_sense(statement)
        data = given.get(statement.name)
        found[statement.name] = _table(statement, folder, statement.data if data is None else data)
    return found


def members(known: Mapping[str, Table]) -> dict[str, Members]:
    """Return the columns of tables by the names that predicates use, such as ``Limits.high``."""
    return {
        name: {
            column.name: of_attribute(attribute)
            for column, attribute in zip(table.columns, table.attributes, strict=True)
        }
        for name, table in known.items()
    }


def distinct_rows(
    roster: str, columns: Sequence[str], known: Mapping[str, Table], at: Place | None
) -> list[Row]:
    """Return the distinct values of some columns of a table, for a roster. The default row is skipped."""
    if roster not in known:
        raise DefinitionError(f"there is no table '{roster}'", at, hint=did_you_mean(roster, known))
    table = known[roster]
    arrays = dict(zip(table.by, table.keys, strict=True))
    arrays |= {
        column.name: array
        for column, array in zip(table.columns, table.data, strict=True)
        if column.kind == "text"
    }
    if missing := [name for name in columns if name not in arrays]:
        message = f"table '{roster}' has no text column '{missing[0]}'; it has {', '.join(arrays)}"
        raise DefinitionError(message, at, hint=did_you_mean(missing[0], arrays))
    rows = zip(*(arrays[name].to_pylist() for name in columns), strict=True)
    return list(dict.fromkeys(row for row in rows if None not in row and DEFAULT not in row))


def _require_sense(statement: DeclareTable) -> None:
    seen: set[str] = set()
    for column in statement.columns:
        at = place_of(column.name, statement.at)
        if column.name in seen:
            raise DefinitionError(f"table '{statement.name}' has two columns '{column.name}'", at)
        if column.unit is not None and column.unit not in UNITS:
            raise DefinitionError(f"unknown unit '{column.unit}'", at, hint=nearest(column.unit))
        seen.add(column.name)
    for name in statement.by:
        if name not in seen:
            raise DefinitionError(
                f"table '{statement.name}' has no column '{name}'",
                place_of(name, statement.at),
                hint=did_you_mean(name, seen),
            )
    if len(seen) == len(statement.keys):
        raise DefinitionError(
            f"table '{statement.name}' has nothing but its key",
            statement.at,
            hint="Declare what is looked up: (source text, high float)",
        )


def _table(statement: DeclareTable, folder: Folder, data: Any) -> Table:
    def wrong(message: str, hint: str | None = None) -> DefinitionError:
        shown = f'"{statement.path}"' if statement.path else "the data that was given"
        return DefinitionError(f"table '{statement.name}', {shown}: {message}", statement.at, hint=hint)

    read = _read(folder / statement.path, wrong) if data is None else _of_frame(data, wrong)
    names = list(read.column_names)
    for column in statement.columns:
        if column.name not in names:
            hint = did_you_mean(column.name, names)
            raise wrong(f"has no column '{column.name}'; it has {', '.join(names) or 'nothing'}", hint)
        if names.count(column.name) > 1:
            raise wrong(f"has two columns '{column.name}'")
    keys = tuple(_texts(read.column(name), name, wrong) for name in statement.keys)
    _require_once(keys, wrong)
    columns = tuple(a for a in statement.columns if a.name not in statement.keys)
    made = tuple(_column(read.column(a.name), a, wrong) for a in columns)
    kinds = tuple(map(_attribute, columns))
    lengths = frozenset(str(a.name) for a in columns if a.kind == DURATION)
    by, digest = tuple(map(str, statement.keys)), digest_of((*keys, *made))
    return Table(statement.name, by, kinds, keys, made, digest, lengths)


def _attribute(column: Column) -> Attribute:
    kind = "int" if column.kind == DURATION else cast("Kind", column.kind)
    return Attribute(str(column.name), kind, column.unit)


# --- reading -----------------------------------------------------------------------------------------


def _read(path: Path, wrong: Wrong) -> pa.Table:
    """Read a Parquet file, or a CSV file with every cell as text."""
    import pyarrow as pa

    try:
        if path.suffix == ".parquet":
            from pyarrow import parquet

            return parquet.read_table(path)
        from pyarrow import csv

        with path.open("rb") as file:
            header = file.readline().decode("utf-8-sig").rstrip("\r\n")
        names = [name.strip().strip('"') for name in header.split(",")]
        return csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=names, skip_rows=1),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
            ),
        )
    except OSError as error:
        raise wrong(f"cannot be read: {error.strerror or error}") from None
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise wrong(f"cannot be read: {error}") from None


def _of_frame(data: Any, wrong: Wrong) -> pa.Table:
    import pyarrow as pa

    if isinstance(data, (pa.Table, pa.RecordBatch)):
        return data if isinstance(data, pa.Table) else pa.Table.from_batches([data])
    if hasattr(data, "to_arrow"):
        return data.to_arrow()
    if hasattr(data, "toArrow"):
        return data.toArrow()
    if hasattr(data, "columns") and hasattr(data, "dtypes"):
        return pa.Table.from_pandas(data, preserve_index=False)
    raise wrong(f"a table is a file, an Arrow table or a data frame, not {type(data).__name__}")


# --- checking ----------------------------------------------------------------------------------------


def _texts(column: Any, name: str, wrong: Wrong) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        found = column.combine_chunks().cast(pa.string())
    except (pa.ArrowException, NotImplementedError):
        raise wrong(f"'{name}' is a key, and {column.type} cannot be one") from None
    found = pc.utf8_trim_whitespace(found)
    empty = pc.or_kleene(pc.is_null(found), pc.equal(found, ""))
    if pc.any(empty).as_py():
        raise wrong(f"row {pc.index(empty, True).as_py() + 2} has no {name}")
    return found


def _require_once(keys: Sequence[Any], wrong: Wrong) -> None:
    """Refuse a table in which a key occurs twice."""
    import pyarrow as pa

    table = pa.table({str(i): key for i, key in enumerate(keys)})
    names = table.column_names
    if len(table.group_by(names).aggregate([])) == len(table):
        return
    seen: dict[tuple[str, ...], int] = {}
    for number, row in enumerate(zip(*(key.to_pylist() for key in keys), strict=True), 2):
        if row in seen:
            shown = ", ".join(row)
            raise wrong(f"'{shown}' stands in row {seen[row]} and again in row {number}")
        seen[row] = number


def _column(column: Any, attribute: Column, wrong: Wrong) -> pa.Array:
    """Convert a column to its declared type. An empty cell is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = column.combine_chunks()
    if pa.types.is_string(found.type):
        found = pc.utf8_trim_whitespace(found)
        found = pc.if_else(pc.equal(found, ""), pa.scalar(None, pa.string()), found)
    if attribute.kind == DURATION:
        return _durations(found, attribute, wrong)
    wanted = {"float": pa.float64(), "int": pa.int64(), "text": pa.string(), "bool": pa.bool_()}[
        attribute.kind
    ]
    try:
        return found.cast(wanted)
    except (pa.ArrowException, NotImplementedError):
        row, cell = next((i, c) for i, c in enumerate(found) if not _fits(c, wanted))
        message = f"row {row + 2}: '{cell.as_py()}' in '{attribute.name}' is not {_CALLED[attribute.kind]}"
        raise wrong(message) from None


_CALLED = {"float": "a number", "int": "a whole number", "text": "a text", "bool": "true or false"}


def _fits(cell: Any, wanted: Any) -> bool:
    import pyarrow as pa

    try:
        cell.cast(wanted)
    except (pa.ArrowException, NotImplementedError):
        return False
    return True


def _durations(column: Any, attribute: Column, wrong: Wrong) -> pa.Array:
    """Convert durations in the notation of definitions to microseconds. Plain numbers are seconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_duration(column.type):
        lengths = column.cast(pa.duration("us")).cast(pa.int64())
        below = pc.fill_null(pc.less(lengths, 0), False)
        if pc.any(below).as_py():
            row = pc.index(below, True).as_py() + 2
            raise wrong(f"row {row}: a duration in '{attribute.name}' cannot be negative")
        return lengths
    coded = column.dictionary_encode()
    found: list[int | None] = []
    for value in coded.dictionary.to_pylist():
        text = f"{value} s" if isinstance(value, (int, float)) else str(value)
        try:
            found.append(read_duration(*split_quantity(text)))
        except (ValueError, KeyError, TypeError, AttributeError):
            row = column.to_pylist().index(value) + 2
            why = ", which cannot be negative" if text.lstrip().startswith("-") else ""
            message = f"row {row}: '{value}' in '{attribute.name}' is not a duration{why}"
            raise wrong(message, "As in: 5 min") from None
    return pa.array(found, pa.int64()).take(coded.indices)
