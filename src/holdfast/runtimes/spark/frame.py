"""A user's own DataFrame goes in, natively as far as possible; notifications come out.

In the JVM: columns are given our names and kinds, rows that satisfy no predicate are dropped, and
stretches in which nothing changes are collapsed (see ``collapse``); of topics to which components
listen all rows stay.  What is left crosses to Python once, is packed by machine and shard, meets in
shards and is stepped there.

Collapsing reads the frame three times (a sample, the spans, the rows) instead of once, so it is
done only where that is cheap and gives the same rows: files, tables and the cache, at most selected
and filtered.  Ten million rows of 1,000 sensors in eight Parquet files, ``[value > 25; value < 22]``
per source: once Spark is warm 6.5 to 8 seconds of processor time with it and 9 to 11.5 without; in
the first run of a session, most of which is starting and compiling, as much with it as without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, concat, expr, isnan, lit, raise_error, when, xxhash64
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

from ...compilers.machine import Group
from ...compilers.sql import Naming, literal, matching, quoted
from ...errors import UsageError, did_you_mean
from ...files.reading import Reading
from ...lang.app import App
from ...lang.check import check
from ...lang.condition import Checked
from ...lang.parse import parse
from ...model.batch import AXES, TIME, TYPES, times
from ...model.instant import BEGINNING, Duration
from ...model.topic import Kind, Topic
from .collapse import collapsed, is_repeatable, stretches, width
from .pack import SPARK_SCHEMA, inmost, packed, reaching
from .replay import notifications
from .shard import Work
from .slices import spread

Bad = Literal["fail", "drop"]
"""What becomes of a frame's rows that have no time, source or topic."""

ROWS = 1 << 17
"""How many rows are packed at a time."""

_KINDS: dict[Kind, tuple[type[DataType], str, str]] = {
    "float": (NumericType, "double", "a number"),
    "int": (IntegralType, "bigint", "a whole number"),
    "text": (StringType, "string", "text"),
    "bool": (BooleanType, "boolean", "a truth value"),
}
"""Of what type a column must be, what it is cast to, and how that is said."""

_FAULT = "@fault"
_YEARS = "time < TIMESTAMP'0001-01-01 00:00:00Z' OR time > TIMESTAMP'9999-12-31 23:59:59.999999Z'"


def replay(
    app: App | str,
    frame: DataFrame,
    *,
    map: Mapping[str, str] | None = None,
    topic: str | None = None,
    lets: Mapping[str, float | int | str | bool] | None = None,
    bad: Bad = "fail",
    span: Duration | Literal["auto"] | None = "auto",
) -> DataFrame:
    """The notifications of a batch DataFrame, in no particular order.

    Columns are those of files: ``time`` (a timestamp; without a time zone it is UTC), ``source``,
    if there are such ``topic``, ``sequence``, ``place``, ``x``, ``y``, ``z``, and the attributes;
    ``map`` leads from our names to the frame's, ``topic`` is that of rows that do not say theirs.

    A row without time, source or topic cannot be used.  The action that meets one fails, and
    Spark's error says why; with ``bad="drop"`` such rows are left out.

    Rows are processed by (time, source, sequence).  A row without a sequence gets a hash of what
    it says beside time and source: ids are the same whatever the partitions, the order of the rows
    and the other rows of the frame, and rows that are alike in everything have the same id.

    ``span`` is the length of the stretches that are collapsed, in microseconds: chosen by a sample
    of the rows, which is read at once, or given, or ``None`` to collapse nothing.
    """
    if frame.isStreaming:
        raise UsageError("replay takes a DataFrame that ends, and this one is a stream")
    checked = check(parse(app) if isinstance(app, str) else app, lets=lets)
    work = Work.on_history(checked)
    rows = _matching(checked, frame, map, topic, bad, all=False)
    found = stretches(work.conditions, lambda topic: naming(checked, topic))
    found = {topic: own for topic, own in found.items() if topic not in heard(checked)}
    if span == "auto":
        ours = laid_out(checked, frame, map=map, topic=topic)
        span = width(ours, found) if found and is_repeatable(frame) else None
    if found and span is not None:
        rows = collapsed(rows, found, span)
    shards = work.shards(frame.sparkSession.sparkContext.defaultParallelism)
    return notifications(work, packed_rows(checked, work, _numbered(rows), shards), shards)


# --- rows in our columns ---------------------------------------------------------------------------


def events(
    checked: Checked,
    frame: DataFrame,
    *,
    map: Mapping[str, str] | None = None,
    topic: str | None = None,
    bad: Bad = "fail",
    all: bool = False,
) -> DataFrame:
    """The rows of a frame, or of a stream, that satisfy some predicate, in our columns; or all rows
    of topics that are watched."""
    return _numbered(_matching(checked, frame, map, topic, bad, all))


def _matching(
    checked: Checked,
    frame: DataFrame,
    map: Mapping[str, str] | None,
    topic: str | None,
    bad: Bad,
    all: bool,
) -> DataFrame:
    if bad not in ("fail", "drop"):
        raise UsageError(f"bad={bad!r}: rows that cannot be used make it 'fail', or one can 'drop' them")
    rows = laid_out(checked, frame, map=map, topic=topic)
    reading = Reading(checked.topics, map or {}, topic=topic)
    matters = lit(False)
    for watched in _watched(checked):
        mine = expr(f"topic = {literal(watched.name)}")
        lacking = _lacking(watched, frame.columns, reading)
        if lacking:
            matters |= when(mine, _failing(lit(lacking)))
        else:
            matters |= mine if all or watched in heard(checked) else mine & _matters(checked, watched)
    sound = col(_FAULT).isNull()
    if bad == "drop":
        return rows.filter(sound & matters).drop(_FAULT)
    told = concat(lit("a row of the frame has "), col(_FAULT), lit("; bad='drop' leaves such rows out"))
    return rows.filter(when(sound, coalesce(matters, lit(False))).otherwise(_failing(told))).drop(_FAULT)


def _failing(message: Column) -> Column:
    return raise_error(message).cast("boolean")


def _watched(checked: Checked) -> list[Topic]:
    return list(dict.fromkeys([*(condition.topic for condition in checked.conditions), *heard(checked)]))


def heard(checked: Checked) -> list[Topic]:
    """The topics of readings to which components or correlations listen."""
    listened = {topic for one in checked.components for topic in one.listens}
    listened |= {topic for one in checked.correlations for topic in one.listens}
    return [topic for topic in checked.topics if topic in listened]


def _matters(checked: Checked, topic: Topic) -> Column:
    mine = [condition for condition in checked.conditions if condition.topic == topic]
    tests = [op for c in mine for op in ([c.enter] if c.momentary else [c.enter, c.exit])]
    return expr(matching(tests, topic, naming(checked, topic)))


def naming(checked: Checked, topic: Topic) -> Naming:
    """What the attributes of a topic are called in rows that were laid out."""
    columns = _columns(checked.topics)
    own = {a.name: columns[a.name, a.kind] for a in topic.attributes}
    return lambda name: quoted(own.get(name, name))


def _columns(topics: Sequence[Topic]) -> dict[tuple[str, Kind], str]:
    """A column for each name and kind; Spark's names do not tell capitals apart, so it is numbered."""
    found = dict.fromkeys((a.name, a.kind) for topic in topics for a in topic.attributes)
    return {(name, kind): f"{i} {name}" for i, (name, kind) in enumerate(found)}


def laid_out(
    checked: Checked, frame: DataFrame, *, map: Mapping[str, str] | None = None, topic: str | None = None
) -> DataFrame:
    """All rows in our columns and kinds, and why a row cannot be used, if it cannot."""
    reading = Reading(checked.topics, map or {}, topic=topic)
    types = _types(frame, reading)
    theirs = frame.toDF(*(f"c{i}" for i in range(len(frame.columns))))
    at = {name: col(f"c{i}") for i, name in enumerate(frame.columns)}

    def read(ours: str, kind: Kind) -> Column | None:
        name = reading.theirs(ours)
        if name not in at:
            return None
        _require_kind(ours, name, types[name], kind)
        return at[name].cast(_KINDS[kind][1])

    columns = {"topic": _topic(read("topic", "text"), frame.columns, reading)}
    columns["time"] = _time(reading.theirs("time"), at, types)
    source = read("source", "text")
    assert source is not None
    columns["source"] = source
    carried = _located([read(axis, "float") for axis in AXES])
    if (place := read("place", "text")) is not None:
        carried["place"] = place
    for (name, kind), column in _columns(checked.topics).items():
        carried[column] = _or_nothing(read(name, kind), kind)
    columns["sequence"] = _or_nothing(read("sequence", "int"), "int")
    rows = theirs.select(*(column.alias(name) for name, column in (columns | carried).items()))
    return rows.withColumn(_FAULT, _fault(checked))


def _or_nothing(column: Column | None, kind: Kind) -> Column:
    return lit(None).cast(_KINDS[kind][1]) if column is None else column


def _fault(checked: Checked) -> Column:
    """Why a row of a declared topic cannot be used."""
    declared = ", ".join(literal(topic.name) for topic in checked.topics)
    blank = col("source").isNull() | ((col("source") < "!") & col("source").rlike(r"^\s*$"))
    return (
        when(col("topic").isNull(), "no topic")
        .when(expr(f"topic NOT IN ({declared})"), lit(None))
        .when(col("time").isNull(), "no time")
        .when(expr(_YEARS), "a time outside the years 1 to 9999")
        .when(blank, "no source")
    )


def _topic(column: Column | None, names: Sequence[str], reading: Reading) -> Column:
    only = reading.topics[0].name if len(reading.topics) == 1 else None
    default = reading.topic or only
    if column is not None:
        said = when(column.rlike(r"\S"), column)
        return said if default is None else coalesce(said, lit(default))
    if default is None:
        declared = ", ".join(topic.name for topic in reading.topics) or "none"
        raise UsageError(
            f"which topic are the frame's rows of? Declared: {declared}. Give topic=…, or a column 'topic', "
            f"for example map={{'topic': 'NAME'}}. The frame has: {_listed(names)}."
        )
    if lacking := _lacking(reading.by_name[default], names, reading):
        raise UsageError(lacking)
    return lit(default)


def _lacking(topic: Topic, names: Sequence[str], reading: Reading) -> str | None:
    """What a topic declares and the frame does not have."""
    wanted = (a.name for a in topic.attributes if reading.theirs(a.name) not in names)
    return next((_missing(name, names, reading, topic) for name in wanted), None)


def _missing(ours: str, names: Sequence[str], reading: Reading, topic: Topic | None = None) -> str:
    theirs = reading.theirs(ours)
    mapped = f" (mapped from '{ours}')" if theirs != ours else ""
    whose = f" that topic '{topic.name}' declares" if topic is not None else ""
    near = did_you_mean(theirs, names)
    return (
        f"the column '{theirs}'{mapped}{whose} is missing. The frame has: {_listed(names)}. "
        f"{near + ' ' if near else ''}Say which column it is: map={{'{ours}': 'NAME'}}."
    )


def _listed(names: Sequence[str], most: int = 30) -> str:
    more = f", … ({len(names) - most} more)" if len(names) > most else ""
    return (", ".join(names[:most]) + more) or "no columns"


def _types(frame: DataFrame, reading: Reading) -> dict[str, DataType]:
    """The types of the frame's columns, among which ours are found once each."""
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
    fitting, cast, said = _KINDS[kind]
    if not isinstance(type, (fitting, NullType)):
        mapped = f" (mapped from '{ours}')" if theirs != ours else ""
        raise UsageError(
            f"the column '{theirs}'{mapped} must be {said}, not {type.simpleString()}; "
            f"cast it, for example to {cast}"
        )


def _time(theirs: str, at: Mapping[str, Column], types: Mapping[str, DataType]) -> Column:
    """The instant; a time without a zone is UTC, whatever zone the session is in."""
    match types[theirs]:
        case TimestampType():
            return at[theirs]
        case TimestampNTZType():
            since = at[theirs] - expr("TIMESTAMP_NTZ'1970-01-01 00:00:00'")
            return expr("TIMESTAMP'1970-01-01 00:00:00Z'") + since
        case other:
            mapped = " (mapped from 'time')" if theirs != "time" else ""
            raise UsageError(
                f"the column '{theirs}'{mapped} must be a timestamp, not {other.simpleString()}; convert "
                "it, for example with to_timestamp, or timestamp_seconds for numbers since 1970"
            )


def _located(axes: Sequence[Column | None]) -> dict[str, Column]:
    """The coordinates as far as there is no gap: no y without x."""
    found: dict[str, Column] = {}
    inner = lit(True)
    for axis, column in zip(AXES, takewhile(lambda c: c is not None, axes), strict=False):
        assert column is not None
        found[axis] = when(inner & ~isnan(column), column)
        inner = found[axis].isNotNull()
    return found


def _numbered(rows: DataFrame) -> DataFrame:
    """The rows with a sequence each: a hash of what a row says, where it has none.

    Columns that a row leaves empty do not change the hash.
    """
    digest = lit(0).cast("bigint")
    for column in rows.columns:
        if column not in ("topic", "time", "source", "sequence"):
            name, value = column.split(" ")[-1], col(quoted(column))
            own = when(value.isNotNull(), xxhash64(lit(name), value)).otherwise(lit(0).cast("bigint"))
            digest = digest.bitwiseXOR(own)
    number = coalesce(col("sequence"), digest.bitwiseAND(lit(2**63 - 1)))
    return rows.withColumn("sequence", number)


# --- rows into shards ------------------------------------------------------------------------------


def packed_rows(checked: Checked, work: Work, rows: DataFrame, shards: int) -> DataFrame:
    """Rows that ``events`` gave, packed by machine and shard."""

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reached = BEGINNING
        for topic, batch in batches_by_topic(checked, batches):
            for number, group in enumerate(work.groups):
                if group.topic == topic:
                    yield from _packed(number, group, batch, shards)
            for number, operator in work.operators.items():
                if topic.name in operator.topics:
                    matters = pa.array(operator.machine.matters(topic.name, batch))
                    mine = operator.needed(topic.name, batch).filter(matters)
                    yield from spread(number, operator, topic.name, mine, shards)
            if topic.name in work.progress:
                reached = max(reached, int(times(batch).max()))
        for number, operator in work.operators.items():
            yield from reaching(number, operator, reached, shards)

    return (rows.drop("topic") if len(_watched(checked)) == 1 else rows).mapInArrow(pack, SPARK_SCHEMA)


def batches_by_topic(
    checked: Checked, batches: Iterable[pa.RecordBatch]
) -> Iterator[tuple[Topic, pa.RecordBatch]]:
    """Rows as ``mapInArrow`` gives them become batches, many rows at a time.

    They need not say their topic where only one is watched.
    """
    columns, watched = _columns(checked.topics), _watched(checked)
    for table in _gathered(batches):
        for topic in watched:
            if len(batch := _of_topic(table, topic, columns)):
                yield topic, batch


def _packed(number: int, group: Group, batch: pa.RecordBatch, shards: int) -> Iterator[pa.RecordBatch]:
    machine = inmost(group.machine)
    mine = batch.filter(pa.array(machine.matters(batch)))
    if len(mine):
        yield from packed(number, machine, mine, shards)


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The batches, many rows at a time."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _of_topic(table: pa.Table, topic: Topic, columns: Mapping[tuple[str, Kind], str]) -> pa.RecordBatch:
    """The rows of a topic as a batch."""
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
