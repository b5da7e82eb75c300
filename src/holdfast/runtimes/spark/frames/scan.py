"""The plan `files`: recognition of frames that only read and filter Parquet files.

Holdfast's own readers then read the files. An unknown plan node, option, type or condition makes the plan
unfit, and Spark reads the frame, because a wrong guess would change the result.
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
from ....files.from_parquet import open_parquet
from ....files.reading import FIXED, Reading, Where
from ....model.batch import TIME
from ..classic import optimized_plan
from ..job import Job


class Scan(NamedTuple):
    """The files of a frame, with the options to read them and the condition on their rows."""

    files: list[InputFile]
    reading: Reading


class PlanDoesNotFit(Exception):
    """Raised with the reason why a plan does not fit a frame. The next plan is then tried."""


def scan(job: Job, frame: DataFrame, reading: Reading) -> Scan:
    """Return the files of a frame.

    Raises `PlanDoesNotFit` if the frame does more than read and filter files.
    """
    top = optimized_plan(frame)
    if top is None:
        raise PlanDoesNotFit("Spark Connect does not show how a frame is read")
    output = dict(_attributes(top))
    names = dict.fromkeys((*FIXED, *(a.name for topic in reading.topics for a in topic.attributes)))
    present = {ours: output[theirs] for ours in names if (theirs := reading.theirs(ours)) in output}
    columns, conditions, files = _walk_plan(top, {at: reading.theirs(ours) for ours, at in present.items()})
    rename = {ours: columns[at] for ours, at in present.items()}
    absent = [ours for ours in names if ours not in present]
    if len(job.checked.topics) > 1 and "sequence" not in rename:
        raise PlanDoesNotFit("rows of several topics have no sequence")
    if "sequence" not in rename and any(node.needed_columns is not None for node in job.operators.values()):
        raise PlanDoesNotFit("rows have no sequence, and some of their columns would not be read")
    types = dict(frame.dtypes)
    for file in files:
        _require_alike(file, {found: types[reading.theirs(ours)] for ours, found in rename.items()})
        for condition in conditions:
            _require_alike(file, condition.types)
        _require_absent(file, absent)
        if "sequence" in rename:
            _require_full(file, rename["sequence"])
    return Scan(files, replace(reading, rename=rename, where=_all_of(conditions)))


# --- the plan --------------------------------------------------------------------------------------


def _walk_plan(
    plan: Any, wanted: Mapping[int, str]
) -> tuple[dict[int, str], list[Condition], list[InputFile]]:
    """Return the column in the files of each attribute of a plan, the conditions on rows, and the files.

    Each attribute in `wanted` must be such a column; otherwise `PlanDoesNotFit` is raised.
    """
    name = plan.getClass().getSimpleName()
    if name == "LogicalRelation":
        columns = {at: name for name, at in _attributes(plan)}
        _require_read(wanted, columns)
        return columns, [], _files(plan.relation())
    if name not in ("Project", "Filter"):
        raise PlanDoesNotFit(f"it is more than a scan of files ({name})")
    if name == "Filter":
        columns, conditions, files = _walk_plan(plan.child(), wanted)
        return columns, [*conditions, _where(plan.condition(), columns)], files
    projected: dict[int, int] = {}
    for node in _items(plan.projectList()):
        child = node.child() if node.getClass().getSimpleName() == "Alias" else node
        if child.getClass().getSimpleName() == "AttributeReference":
            projected[node.exprId().id()] = child.exprId().id()
    _require_read(wanted, projected)
    columns, conditions, files = _walk_plan(
        plan.child(), {projected[at]: name for at, name in wanted.items()}
    )
    return {at: columns[child] for at, child in projected.items() if child in columns}, conditions, files


def _require_read(wanted: Mapping[int, str], read: Collection[int]) -> None:
    for at, name in wanted.items():
        if at not in read:
            raise PlanDoesNotFit(f"the column '{name}' is computed")


def _attributes(plan: Any) -> list[tuple[str, int]]:
    return [(node.name(), node.exprId().id()) for node in _items(plan.output())]


def _items(sequence: Any) -> Iterator[Any]:
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
    """Return the files of a relation.

    They must be Parquet files on this machine, read without special options.
    """
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        raise PlanDoesNotFit("it is not a scan of files")
    if _class_of(relation.fileFormat()) != _PARQUET or _class_of(relation.location()) != _FILES:
        raise PlanDoesNotFit("what its files say is not all: they are no plain list of Parquet files")
    if relation.partitionSchema().size() or relation.bucketSpec().isDefined():
        raise PlanDoesNotFit("its files are in folders by column, or in buckets")
    options = relation.options().keySet().toSeq()
    if unknown := [key for key in _items(options) if key.lower() not in _HARMLESS]:
        raise PlanDoesNotFit(f"it has the option {unknown[0]}")
    found = [urlsplit(uri) for uri in relation.location().inputFiles()]
    if any(uri.scheme != "file" or uri.netloc for uri in found):
        raise PlanDoesNotFit("its files are not in a file system of this machine")
    paths = sorted(unquote(uri.path) for uri in found)
    return [InputFile(path, rank, "parquet") for rank, path in enumerate(paths)]


# --- the files -------------------------------------------------------------------------------------

_TYPES: Mapping[str, pa.DataType] = {
    "double": pa.float64(), "float": pa.float32(), "bigint": pa.int64(), "int": pa.int32(),
    "smallint": pa.int16(), "tinyint": pa.int8(), "string": pa.string(), "boolean": pa.bool_(),
    "timestamp": TIME, "timestamp_ntz": pa.timestamp("us"),
}  # fmt: skip
_SINCE_1900 = -2_208_988_800_000_000
"""Spark may count earlier times by another calendar."""


def _require_alike(file: InputFile, types: Mapping[str, str]) -> None:
    """Raise `PlanDoesNotFit` unless the columns of a file have the types that they have in the frame."""
    with open_parquet(file) as table:
        schema, footer = table.schema_arrow, table.metadata
    for name, kind in types.items():
        if name not in schema.names or schema.field(name).type != _TYPES.get(kind):
            raise PlanDoesNotFit(f"{file.path} has no column '{name}' of type {kind}")
        if kind.startswith("timestamp"):
            for low in _statistics(footer, name, "min_raw"):
                if low is None or low < _SINCE_1900:
                    raise PlanDoesNotFit(f"{file.path} does not say that its times are of our calendar")


def _require_absent(file: InputFile, absent: list[str]) -> None:
    with open_parquet(file) as table:
        if there := set(absent).intersection(table.schema_arrow.names):
            raise PlanDoesNotFit(f"{file.path} has a column '{min(there)}', which the frame has not")


def _require_full(file: InputFile, name: str) -> None:
    with open_parquet(file) as table:
        if any(count != 0 for count in _statistics(table.metadata, name, "null_count")):
            raise PlanDoesNotFit(f"{file.path} may have rows without '{name}'")


def _statistics(footer: Any, name: str, which: str) -> Iterator[Any]:
    """Yield a statistic of a column for each row group of a file; `None` where it is missing."""
    column = [footer.schema.column(i).path for i in range(len(footer.schema))].index(name)
    if footer.schema.column(column).physical_type != "INT64":
        yield None
        return
    for i in range(footer.num_row_groups):
        statistics = footer.row_group(i).column(column).statistics
        yield getattr(statistics, which) if statistics is not None and statistics.has_min_max else None


# --- conditions on rows ----------------------------------------------------------------------------


class Condition(NamedTuple):
    """A condition on rows as an expression of Arrow, and the types of the columns that it uses."""

    expression: Any
    types: dict[str, str]


def _all_of(conditions: list[Condition]) -> Where | None:
    if not conditions:
        return None
    expression = conditions[0].expression
    for node in conditions[1:]:
        expression = expression & node.expression
    return Where(tuple(dict.fromkeys(name for node in conditions for name in node.types)), expression)


def _where(condition: Any, columns: Mapping[int, str]) -> Condition:
    used: dict[str, str] = {}
    expression = _translate(condition, columns, used)
    return Condition(expression, used)


_COMPARISONS = {
    "EqualTo": lambda a, b: a == b, "LessThan": lambda a, b: a < b, "LessThanOrEqual": lambda a, b: a <= b,
    "GreaterThan": lambda a, b: a > b, "GreaterThanOrEqual": lambda a, b: a >= b,
}  # fmt: skip


def _translate(node: Any, columns: Mapping[int, str], used: dict[str, str]) -> Any:
    """Translate a condition of Spark to Arrow, and add its columns to `used`.

    Both treat missing values in the same way.
    """
    name = node.getClass().getSimpleName()
    match name:
        case "And" | "Or":
            left, right = (_translate(side, columns, used) for side in (node.left(), node.right()))
            return left & right if name == "And" else left | right
        case "IsNotNull" | "IsNull":
            column, _ = _column(node.child(), columns, used)
            return column.is_valid() if name == "IsNotNull" else ~column.is_valid()
        case "In":
            column, kind = _column(node.value(), columns, used)
            values = [_literal(value) for value in _items(node.list())]
            if kind in ("float", "double") or any(not value.is_valid for value in values):
                raise PlanDoesNotFit("its rows are filtered by a condition that only Spark can tell")
            return column.isin(pa.array([value.as_py() for value in values], values[0].type))
        case _ if name in _COMPARISONS and node.right().getClass().getSimpleName() == "Literal":
            column, kind = _column(node.left(), columns, used)
            value = _literal(node.right())
            found = _COMPARISONS[name](column, value)
            if kind in ("float", "double"):
                if value.as_py() != value.as_py():
                    raise PlanDoesNotFit("its rows are compared with NaN")
                if name.startswith("Greater"):  # than which nothing is greater for Spark
                    return found | pc.is_nan(column)
            return found
    raise PlanDoesNotFit(f"its rows are filtered by a condition that only Spark can tell ({name})")


def _column(node: Any, columns: Mapping[int, str], used: dict[str, str]) -> tuple[Any, str]:
    if node.getClass().getSimpleName() != "AttributeReference" or node.exprId().id() not in columns:
        raise PlanDoesNotFit("its rows are filtered by something that is computed")
    name, kind = columns[node.exprId().id()], node.dataType().simpleString()
    if kind not in _TYPES:
        raise PlanDoesNotFit(f"its rows are filtered by a column of type {kind}")
    used[name] = kind
    return pc.field(name), kind


def _literal(node: Any) -> pa.Scalar:
    if node.getClass().getSimpleName() != "Literal":
        raise PlanDoesNotFit("its rows are filtered by something that is computed")
    kind, value = node.dataType().simpleString(), node.value()
    if kind not in _TYPES:
        raise PlanDoesNotFit(f"its rows are compared with a value of type {kind}")
    if kind == "string" and value is not None:
        value = value.toString()
    return pa.scalar(value, _TYPES[kind])
