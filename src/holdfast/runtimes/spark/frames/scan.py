"""Frames that are only a scan of Parquet files, selected and filtered: our own readers read those better.

Nothing is guessed: a plan, an option, a type or a condition that is not understood here is a reason to leave
the frame to Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from ....files.find import InputFile
from ....files.from_parquet import opened
from ....files.reading import FIXED, Reading, Where
from ....model.batch import TIME
from ..plan import Work


class Scan(NamedTuple):
    """The files of a frame, and how they are to be read."""

    files: list[InputFile]
    reading: Reading


class Unlike(Exception):
    """Why a frame is not such a scan."""


def scan(work: Work, frame: DataFrame, reading: Reading) -> Scan:
    """The frame as a scan of files; raises ``Unlike`` if it is none."""
    top = frame._jdf.queryExecution().optimizedPlan()
    output = dict(_attributes(top))
    names = dict.fromkeys((*FIXED, *(a.name for topic in reading.topics for a in topic.attributes)))
    given = {ours: output[theirs] for ours in names if (theirs := reading.theirs(ours)) in output}
    columns, conditions, files = _walked(top, {at: reading.theirs(ours) for ours, at in given.items()})
    rename = {ours: columns[at] for ours, at in given.items()}
    absent = [ours for ours in names if ours not in given]
    if len(work.checked.topics) > 1 and "sequence" not in rename:
        raise Unlike("rows of several topics have no sequence")
    if "sequence" not in rename and any(one.needs is not None for one in work.operators.values()):
        raise Unlike("rows have no sequence, and some of their columns would not be read")
    types = dict(frame.dtypes)
    for file in files:
        _require_alike(file, {found: types[reading.theirs(ours)] for ours, found in rename.items()})
        for condition in conditions:
            _require_alike(file, condition.types)
        _require_absent(file, absent)
        if "sequence" in rename:
            _require_full(file, rename["sequence"])
    return Scan(files, replace(reading, rename=rename, where=_together(conditions)))


# --- the plan --------------------------------------------------------------------------------------


def _walked(plan: Any, wanted: Mapping[int, str]) -> tuple[dict[int, str], list[Condition], list[InputFile]]:
    """For each attribute of a plan the column of the files that it is, the conditions on rows, the files.
    Attributes that are ``wanted``, by whatever name, must be such columns."""
    name = plan.getClass().getSimpleName()
    if name == "LogicalRelation":
        columns = {at: name for name, at in _attributes(plan)}
        _require_read(wanted, columns)
        return columns, [], _files(plan.relation())
    if name not in ("Project", "Filter"):
        raise Unlike(f"it is more than a scan of files ({name})")
    if name == "Filter":
        columns, conditions, files = _walked(plan.child(), wanted)
        return columns, [*conditions, _where(plan.condition(), columns)], files
    chosen: dict[int, int] = {}
    for one in _each(plan.projectList()):
        of = one.child() if one.getClass().getSimpleName() == "Alias" else one
        if of.getClass().getSimpleName() == "AttributeReference":
            chosen[one.exprId().id()] = of.exprId().id()
    _require_read(wanted, chosen)
    columns, conditions, files = _walked(plan.child(), {chosen[at]: name for at, name in wanted.items()})
    return {at: columns[of] for at, of in chosen.items() if of in columns}, conditions, files


def _require_read(wanted: Mapping[int, str], read: Collection[int]) -> None:
    for at, name in wanted.items():
        if at not in read:
            raise Unlike(f"the column '{name}' is computed")


def _attributes(plan: Any) -> list[tuple[str, int]]:
    return [(one.name(), one.exprId().id()) for one in _each(plan.output())]


def _each(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(i) for i in range(sequence.size()))


_PARQUET = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
_FILES = "org.apache.spark.sql.execution.datasources.InMemoryFileIndex"
"""What Spark itself reads files with.  A table format such as Delta has classes of its own, also derived ones
that call themselves Parquet: which rows are deleted, or what columns are called, stands beside the files."""


def _class_of(java: Any) -> str:
    name: str = java.getClass().getName()
    return name


_HARMLESS = {"path", "paths", "recursivefilelookup", "pathglobfilter"}


def _files(relation: Any) -> list[InputFile]:
    """The files of a relation, if they are Parquet files of this machine, read without further ado."""
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        raise Unlike("it is not a scan of files")
    if _class_of(relation.fileFormat()) != _PARQUET or _class_of(relation.location()) != _FILES:
        raise Unlike("what its files say is not all: they are no plain list of Parquet files")
    if relation.partitionSchema().size() or relation.bucketSpec().isDefined():
        raise Unlike("its files are in folders by column, or in buckets")
    options = relation.options().keySet().toSeq()
    if unknown := [key for key in _each(options) if key.lower() not in _HARMLESS]:
        raise Unlike(f"it has the option {unknown[0]}")
    found = [urlsplit(uri) for uri in relation.location().inputFiles()]
    if any(uri.scheme != "file" or uri.netloc for uri in found):
        raise Unlike("its files are not in a file system of this machine")
    paths = sorted(unquote(uri.path) for uri in found)
    return [InputFile(path, rank, "parquet") for rank, path in enumerate(paths)]


# --- the files -------------------------------------------------------------------------------------

_TYPES: Mapping[str, pa.DataType] = {
    "double": pa.float64(), "float": pa.float32(), "bigint": pa.int64(), "int": pa.int32(),
    "smallint": pa.int16(), "tinyint": pa.int8(), "string": pa.string(), "boolean": pa.bool_(),
    "timestamp": TIME, "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip
_SINCE_1900 = -2_208_988_800_000_000
"""Spark may count older times by another calendar."""


def _require_alike(file: InputFile, types: Mapping[str, str]) -> None:
    """The file's columns are of the types that the frame has them in."""
    with opened(file) as table:
        form, footer = table.schema_arrow, table.metadata
    for name, kind in types.items():
        if name not in form.names or form.field(name).type != _TYPES.get(kind):
            raise Unlike(f"{file.path} has no column '{name}' of type {kind}")
        if kind.startswith("timestamp"):
            for low in _statistics(footer, name, "min_raw"):
                if low is None or low < _SINCE_1900:
                    raise Unlike(f"{file.path} does not say that its times are of our calendar")


def _require_absent(file: InputFile, absent: list[str]) -> None:
    with opened(file) as table:
        if there := set(absent).intersection(table.schema_arrow.names):
            raise Unlike(f"{file.path} has a column '{min(there)}', which the frame has not")


def _require_full(file: InputFile, name: str) -> None:
    with opened(file) as table:
        if any(count != 0 for count in _statistics(table.metadata, name, "null_count")):
            raise Unlike(f"{file.path} may have rows without '{name}'")


def _statistics(footer: Any, name: str, which: str) -> Iterator[Any]:
    """What the row groups of a file say of a column."""
    column = [footer.schema.column(i).path for i in range(len(footer.schema))].index(name)
    if footer.schema.column(column).physical_type != "INT64":
        yield None
        return
    for i in range(footer.num_row_groups):
        said = footer.row_group(i).column(column).statistics
        yield getattr(said, which) if said is not None and said.has_min_max else None


# --- conditions on rows ----------------------------------------------------------------------------


class Condition(NamedTuple):
    """A condition on rows as an expression of Arrow's, and the types of the columns that it needs."""

    holds: Any
    types: dict[str, str]


def _together(conditions: list[Condition]) -> Where | None:
    if not conditions:
        return None
    holds = conditions[0].holds
    for one in conditions[1:]:
        holds = holds & one.holds
    return Where(tuple(dict.fromkeys(name for one in conditions for name in one.types)), holds)


def _where(condition: Any, columns: Mapping[int, str]) -> Condition:
    used: dict[str, str] = {}
    holds = _translated(condition, columns, used)
    return Condition(holds, used)


_COMPARED = {
    "EqualTo": lambda a, b: a == b, "LessThan": lambda a, b: a < b, "LessThanOrEqual": lambda a, b: a <= b,
    "GreaterThan": lambda a, b: a > b, "GreaterThanOrEqual": lambda a, b: a >= b,
}  # fmt: skip


def _translated(one: Any, columns: Mapping[int, str], used: dict[str, str]) -> Any:
    """A condition of Spark's as one of Arrow's, which treat what is missing alike."""
    name = one.getClass().getSimpleName()
    match name:
        case "And" | "Or":
            left, right = (_translated(side, columns, used) for side in (one.left(), one.right()))
            return left & right if name == "And" else left | right
        case "IsNotNull" | "IsNull":
            column, _ = _column(one.child(), columns, used)
            return column.is_valid() if name == "IsNotNull" else ~column.is_valid()
        case "In":
            column, kind = _column(one.value(), columns, used)
            values = [_literal(value) for value in _each(one.list())]
            if kind in ("float", "double") or any(not value.is_valid for value in values):
                raise Unlike("its rows are filtered by a condition that only Spark can tell")
            return column.isin(pa.array([value.as_py() for value in values], values[0].type))
        case _ if name in _COMPARED and one.right().getClass().getSimpleName() == "Literal":
            column, kind = _column(one.left(), columns, used)
            value = _literal(one.right())
            found = _COMPARED[name](column, value)
            if kind in ("float", "double"):
                if value.as_py() != value.as_py():
                    raise Unlike("its rows are compared with NaN")
                if name.startswith("Greater"):  # than which nothing is greater for Spark
                    return found | pc.is_nan(column)
            return found
    raise Unlike(f"its rows are filtered by a condition that only Spark can tell ({name})")


def _column(one: Any, columns: Mapping[int, str], used: dict[str, str]) -> tuple[Any, str]:
    if one.getClass().getSimpleName() != "AttributeReference" or one.exprId().id() not in columns:
        raise Unlike("its rows are filtered by something that is computed")
    name, kind = columns[one.exprId().id()], one.dataType().simpleString()
    if kind not in _TYPES:
        raise Unlike(f"its rows are filtered by a column of type {kind}")
    used[name] = kind
    return pc.field(name), kind


def _literal(one: Any) -> pa.Scalar:
    if one.getClass().getSimpleName() != "Literal":
        raise Unlike("its rows are filtered by something that is computed")
    kind, value = one.dataType().simpleString(), one.value()
    if kind not in _TYPES:
        raise Unlike(f"its rows are compared with a value of type {kind}")
    if kind == "string" and value is not None:
        value = value.toString()
    return pa.scalar(value, _TYPES[kind])
