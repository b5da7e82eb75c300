"""Conversion of the rows of a frame or stream to Holdfast's columns, types and Arrow batches.

The JVM renames and casts columns and drops rows that satisfy no predicate, unless an operator needs all of
them. The other rows cross to Python once. Expressions are written as SQL, because text crosses to the JVM in
one call. An expression that is built by calls needs a call for each of its parts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.types import (
    BooleanType,
    DataType,
    IntegralType,
    NullType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from ....errors import UsageError, did_you_mean
from ....files.reading import Reading
from ....lang.condition import Checked, ScopedCondition
from ....lang.expressions.sql import Naming, literal, quote_name, some_of
from ....model.batch import AXES, TIME, TYPES
from ....model.topic import Kind, Topic
from ....plan.compile import read_whole, relevant_in_sql
from ..job import Job
from ..pack import SPARK_SCHEMA
from ..reading import Reader
from .zones import instant

Bad = Literal["fail", "drop"]
"""What happens to rows of a frame that have no time, source or topic."""

ROWS = 1 << 17
"""How many rows are packed at a time."""

_KINDS: dict[Kind, tuple[type[DataType], str, str]] = {
    "float": (NumericType, "double", "a number"),
    "int": (IntegralType, "bigint", "a whole number"),
    "text": (StringType, "string", "text"),
    "bool": (BooleanType, "boolean", "a truth value"),
}
"""For each kind of attribute the required type of a column, the type that it is cast to, and how messages
name it."""

_BLANK, _NOT_BLANK = literal(r"^\s*$"), literal(r"\S")  # patterns
_FAULTS = {
    "no time": "time IS NULL",
    "a time outside the years 1 to 9999": "time < TIMESTAMP'0001-01-01 00:00:00Z'"
    " OR time > TIMESTAMP'9999-12-31 23:59:59.999999Z'",
    "no source": f"source IS NULL OR (source < '!' AND source RLIKE {_BLANK})",
}
"""Why a row of a declared topic is rejected, and the predicate for it."""


def events(job: Job, frame: DataFrame, reading: Reading | None = None, *, bad: Bad = "fail") -> DataFrame:
    """Return the rows of a frame or stream that satisfy some predicate, in Holdfast's columns.

    If an operator needs every row of a topic, all rows of the topic are returned.
    """
    require_known(bad)
    reading = reading or Reading(job.checked.topics)
    return add_sequence(usable_rows(job, frame, to_own_columns(job.checked, frame, reading), reading, bad))


def usable_rows(
    job: Job,
    frame: DataFrame,
    rows: DataFrame,
    reading: Reading,
    bad: Bad,
    filters: Mapping[str, str] | None = None,
) -> DataFrame:
    """Return the relevant rows of a frame in Holdfast's columns.

    A row has a sequence only if the frame has one. `filters` has the predicate of each topic as SQL, by
    default that of all relevant rows. Do not filter the result further: Spark moves filters ahead, and would
    then skip the rows that must fail.
    """
    filters = _relevance_filters(job, ends=not frame.isStreaming) if filters is None else dict(filters)
    only = None if reading.theirs("topic") in frame.columns else _default(reading)
    if only is not None:
        is_relevant = filters.get(only, "false")
    else:
        missing = {
            topic.name: _missing_attribute(topic, frame.columns, reading) for topic in _topics_in_use(job)
        }
        tests = filters | {name: _raise_error(literal(what)) for name, what in missing.items() if what}
        cases = (f"CASE WHEN topic = {literal(name)} THEN {test} END" for name, test in tests.items())
        is_relevant = some_of(cases)
    sound, fault = _soundness(job.checked, only)
    if bad == "drop":
        return rows.where(f"{sound} AND ({is_relevant})")
    message = f"concat('a row of the frame has ', {fault}, {literal(_REMEDY)})"
    return rows.where(
        f"CASE WHEN {sound} THEN coalesce({is_relevant}, false) ELSE {_raise_error(message)} END"
    )


_REMEDY = "; bad='drop' leaves such rows out"


def require_known(bad: Bad) -> None:
    """Raise an error unless `bad` is `"fail"` or `"drop"`."""
    if bad not in ("fail", "drop"):
        raise UsageError(f"bad={bad!r}: rows that cannot be used make it 'fail', or one can 'drop' them")


def _relevance_filters(job: Job, *, ends: bool) -> dict[str, str]:
    """Return the SQL predicate of the relevant rows of each topic."""
    checked, whole = job.checked, whole_topics(job, ends=ends)

    def relevance(topic: Topic) -> str:
        return relevant_in_sql(checked, topic, naming(checked, topic))

    return {topic.name: "true" if topic.name in whole else relevance(topic) for topic in _topics_in_use(job)}


def whole_topics(job: Job, *, ends: bool = True) -> Collection[str]:
    """Return the topics of which all rows are needed.

    Their rows advance a watermark, or SQL cannot select the relevant ones. If the frame `ends`, an operator
    with a lookaround needs no watermark.
    """
    clocks = [one.clock for one in job.watermark_operators.values() if one.machine.traits.lookaround is None]
    watermark_topics = frozenset().union(*clocks) if ends else job.watermark_topics
    return watermark_topics.union(topic.name for topic in read_whole(job.checked))


def _raise_error(message: str) -> str:
    return f"CAST(raise_error({message}) AS BOOLEAN)"


def _topics_in_use(job: Job) -> list[Topic]:
    return [topic for topic in job.checked.topics if topic.name in job.pushdown.consumers]


def naming(checked: Checked, topic: Topic) -> Naming:
    """Return a function from the attributes of a topic to the names of their columns."""
    columns = _columns(checked.topics)
    own = {a.name: columns[a.name, a.kind] for a in topic.attributes}
    return lambda name: quote_name(own.get(name, name))


def _columns(topics: Sequence[Topic]) -> dict[tuple[str, Kind], str]:
    """Return a column name for each attribute name and kind.

    Names are numbered because Spark's names ignore case.
    """
    found = dict.fromkeys((a.name, a.kind) for topic in topics for a in topic.attributes)
    return {(name, kind): f"{i} {name}" for i, (name, kind) in enumerate(found)}


def to_own_columns(checked: Checked, frame: DataFrame, reading: Reading) -> DataFrame:
    """Return all rows of a frame in Holdfast's columns and types."""
    types = _types(frame, reading)
    names = frame.columns
    at = {name: f"`{name.replace('`', '``')}`" for name in names}
    if len({name.lower() for name in names}) < len(names):  # Spark takes some for one
        at = {name: f"c{i}" for i, name in enumerate(names)}
        frame = frame.toDF(*(f"c{i}" for i in range(len(names))))

    def read(ours: str, kind: Kind) -> str | None:
        name = reading.theirs(ours)
        if name not in at:
            return None
        _require_kind(ours, name, types[name], kind)
        return f"CAST({at[name]} AS {_KINDS[kind][1]})"

    columns = {"topic": _topic(read("topic", "text"), names, reading)}
    columns["time"] = _time(reading, at, types)
    source = read("source", "text")
    assert source is not None
    columns["source"] = source
    carried = _coordinates([read(axis, "float") for axis in AXES])
    if (place := read("place", "text")) is not None or _by_place(checked):
        carried["place"] = _or_null(place, "text")
    for (name, kind), column in _columns(checked.topics).items():
        carried[column] = _or_null(read(name, kind), kind)
    columns["sequence"] = _or_null(read("sequence", "int"), "int")
    return frame.selectExpr(*(f"{sql} AS {quote_name(name)}" for name, sql in (columns | carried).items()))


def _by_place(checked: Checked) -> bool:
    """Whether some condition has places as scopes."""
    return any("place" in level for condition in checked.of(ScopedCondition) for level in condition.keys)


def _or_null(column: str | None, kind: Kind) -> str:
    return f"CAST(NULL AS {_KINDS[kind][1]})" if column is None else column


def _soundness(checked: Checked, only: str | None) -> tuple[str, str]:
    """Return a predicate for rows that are not rejected, and an expression for the reason of the others.

    Rows of undeclared topics are not checked. `only` is the topic of all rows, or `None` if they have several
    topics.
    """
    declared = ", ".join(literal(topic.name) for topic in checked.topics)
    faulty = " OR ".join(f"({test})" for test in _FAULTS.values())
    reasons = " ".join(f"WHEN {test} THEN '{reason}'" for reason, test in _FAULTS.items())
    if only is not None:
        return f"NOT ({faulty})", f"CASE {reasons} END"
    return (
        f"(topic IS NOT NULL AND (topic NOT IN ({declared}) OR NOT ({faulty})))",
        f"CASE WHEN topic IS NULL THEN 'no topic' {reasons} END",
    )


def _topic(column: str | None, names: Sequence[str], reading: Reading) -> str:
    default = _default(reading)
    if column is not None:
        stripped = f"CASE WHEN {column} RLIKE {_NOT_BLANK} THEN {column} END"
        return stripped if default is None else f"coalesce({stripped}, {literal(default)})"
    if default is None:
        declared = ", ".join(topic.name for topic in reading.topics) or "none"
        raise UsageError(
            f"which topic are the frame's rows of? Declared: {declared}. Give topic=…, or a column 'topic', "
            f"for example map={{'topic': 'NAME'}}. The frame has: {_join_names(names)}."
        )
    if missing := _missing_attribute(reading.by_name[default], names, reading):
        raise UsageError(missing)
    return literal(default)


def _default(reading: Reading) -> str | None:
    """Return the topic of rows without one; `None` if it is ambiguous."""
    only = reading.topics[0].name if len(reading.topics) == 1 else None
    return reading.topic or only


def _missing_attribute(topic: Topic, names: Sequence[str], reading: Reading) -> str | None:
    """Return a message about an attribute that the frame does not have; `None` if it has all."""
    filters = (a.name for a in topic.attributes if reading.theirs(a.name) not in names)
    return next((_missing(name, names, reading, topic) for name in filters), None)


def _missing(ours: str, names: Sequence[str], reading: Reading, topic: Topic | None = None) -> str:
    theirs = reading.theirs(ours)
    mapped = f" (mapped from '{ours}')" if theirs != ours else ""
    whose = f" that topic '{topic.name}' declares" if topic is not None else ""
    near = did_you_mean(theirs, names)
    return (
        f"the column '{theirs}'{mapped}{whose} is missing. The frame has: {_join_names(names)}. "
        f"{near + ' ' if near else ''}Say which column it is: map={{'{ours}': 'NAME'}}."
    )


def _join_names(names: Sequence[str], most: int = 30) -> str:
    more = f", … ({len(names) - most} more)" if len(names) > most else ""
    return (", ".join(names[:most]) + more) or "no columns"


def _types(frame: DataFrame, reading: Reading) -> dict[str, DataType]:
    """Return the types of the frame's columns. Raises an error if a needed column is missing or ambiguous."""
    names = frame.columns
    attributes = {a.name for topic in reading.topics for a in topic.attributes}
    for ours in ("time", "source", *reading.rename):
        if reading.theirs(ours) not in names:
            raise UsageError(_missing(ours, names, reading))
    for ours in ("time", "source", "topic", "sequence", "place", *AXES, *sorted(attributes)):
        if names.count(reading.theirs(ours)) > 1:
            raise UsageError(f"the frame has two columns '{reading.theirs(ours)}'; rename one of them")
    return {field.name: field.dataType for field in frame.schema.fields}


def _require_kind(ours: str, theirs: str, type: DataType, kind: Kind) -> None:
    fitting, cast, stripped = _KINDS[kind]
    if not isinstance(type, (fitting, NullType)):
        mapped = f" (mapped from '{ours}')" if theirs != ours else ""
        raise UsageError(
            f"the column '{theirs}'{mapped} must be {stripped}, not {type.simpleString()}; "
            f"cast it, for example to {cast}"
        )


def _time(reading: Reading, at: Mapping[str, str], types: Mapping[str, DataType]) -> str:
    """Return the SQL expression of the time.

    A time without a zone has the zone of the reading, not of the session.
    """
    theirs = reading.theirs("time")
    match types[theirs]:
        case TimestampType():
            return at[theirs]
        case TimestampNTZType():
            return instant(at[theirs], str(reading.zone))
        case other:
            mapped = " (mapped from 'time')" if theirs != "time" else ""
            raise UsageError(
                f"the column '{theirs}'{mapped} must be a timestamp, not {other.simpleString()}; convert "
                "it, for example with to_timestamp, or timestamp_seconds for numbers since 1970"
            )


def _coordinates(axes: Sequence[str | None]) -> dict[str, str]:
    """Return the SQL expressions of the coordinates up to the first missing one: y requires x."""
    found: dict[str, str] = {}
    inner = ""
    for axis, column in zip(AXES, takewhile(lambda c: c is not None, axes), strict=False):
        inner += f"{' AND ' * bool(inner)}NOT isnan({column}) AND {column} IS NOT NULL"
        found[axis] = f"CASE WHEN {inner} THEN {column} END"
    return found


def add_sequence(rows: DataFrame) -> DataFrame:
    """Return the rows with a sequence in every row."""
    return rows.withColumn("sequence", expr(sequence(rows.columns)))


def sequence(columns: Sequence[str]) -> str:
    """Return the SQL expression of a row's sequence. Without a sequence it is a hash of the row's content.

    Columns that are null in a row do not change the hash.
    """
    digest = " ^ ".join(["0L", *map(_hash_of, content_columns(columns))])
    return f"coalesce(sequence, ({digest}) & {2**63 - 1}L)"


def content_columns(columns: Sequence[str]) -> list[str]:
    """Return the columns that distinguish rows of one source and time."""
    return [column for column in columns if column not in ("topic", "time", "source", "sequence")]


def _hash_of(column: str) -> str:
    """Return the SQL expression of a column's contribution to the hash."""
    name, value = literal(column.split(" ")[-1]), quote_name(column)
    return f"CASE WHEN {value} IS NOT NULL THEN xxhash64({name}, {value}) ELSE 0L END"


# --- rows as batches -------------------------------------------------------------------------------


def without_topic(job: Job, rows: DataFrame) -> DataFrame:
    """Return rows without the column `topic` if operators consume only one topic."""
    return rows.drop("topic") if len(_topics_in_use(job)) == 1 else rows


def batches_by_topic(job: Job, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Convert the batches of `mapInArrow` to larger batches by topic."""
    columns, consumed = _columns(job.checked.topics), _topics_in_use(job)
    for table in _to_tables(batches):
        for topic in consumed:
            if len(batch := _of_topic(table, topic, columns)):
                yield topic.name, batch


def pack_rows(job: Job, rows: DataFrame, shards: int) -> DataFrame:
    """Pack the rows that `events` returns by operator and shard."""

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = Reader(job)
        found = (
            events_of_operator
            for relevance in batches_by_topic(job, batches)
            for events_of_operator in reader.select(*relevance)
        )
        return reader.pack_history(found, shards)

    return without_topic(job, rows).mapInArrow(pack, SPARK_SCHEMA)


def _to_tables(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield tables of many rows, collected from batches."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= ROWS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _of_topic(table: pa.Table, topic: Topic, columns: Mapping[tuple[str, Kind], str]) -> pa.RecordBatch:
    """Return the rows of a topic as a batch."""
    names = table.column_names
    if "topic" in names:
        table = table.filter(pc.equal(table.column("topic"), topic.name))
    found = {name: table.column(name).cast(type) for name, type in _CARRIED.items() if name in names}
    found |= {a.name: table.column(columns[a.name, a.kind]).cast(TYPES[a.kind]) for a in topic.attributes}
    arrays = {name: column.combine_chunks() for name, column in found.items()}
    return pa.RecordBatch.from_pydict(arrays | {"source": arrays["source"].dictionary_encode()})


_CARRIED = {
    "time": TIME,
    "source": pa.string(),
    "sequence": pa.int64(),
    "place": pa.string(),
    **dict.fromkeys(AXES, pa.float64()),
}
