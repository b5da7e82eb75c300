"""The rows of a user's frame or stream: in our columns and kinds, those that can matter; then as batches.

In the JVM: columns are given our names and kinds, and rows that satisfy no predicate are dropped, unless
somebody must see them all.  What is left crosses to Python once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
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

from ....compilers.families import listened, mattering
from ....compilers.sql import Naming, literal, quoted
from ....errors import UsageError, did_you_mean
from ....files.reading import Reading
from ....lang.condition import Checked
from ....model.batch import AXES, TIME, TYPES
from ....model.topic import Kind, Topic
from ..pack import SPARK_SCHEMA
from ..plan import Work
from ..reading import Reader
from .zones import instant

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


def events(work: Work, frame: DataFrame, reading: Reading | None = None, *, bad: Bad = "fail") -> DataFrame:
    """The rows of a frame, or of a stream, that satisfy some predicate, in our columns; all rows of topics
    that must be seen whole."""
    require_known(bad)
    reading = reading or Reading(work.checked.topics)
    return numbered(able(work, frame, laid_out(work.checked, frame, reading), reading, bad))


def able(
    work: Work,
    frame: DataFrame,
    rows: DataFrame,
    reading: Reading,
    bad: Bad,
    wanted: Mapping[str, Column] | None = None,
) -> DataFrame:
    """The same of rows that were laid out, and a row has a sequence only if the frame gave it one; ``wanted``
    says which rows of which topics matter, if it is not all that can.

    Whoever filters further may keep Spark from ever seeing a row that cannot be used: it filters early.
    """
    matters = lit(False)
    wanted = _wanted(work, ends=not frame.isStreaming) if wanted is None else wanted
    for topic in _watched(work):
        mine = expr(f"topic = {literal(topic.name)}")
        if lacking := _lacking(topic, frame.columns, reading):
            matters |= when(mine, _failing(lit(lacking)))
        elif topic.name in wanted:
            matters |= mine & wanted[topic.name]
    sound = col(_FAULT).isNull()
    if bad == "drop":
        return rows.filter(sound & matters).drop(_FAULT)
    told = concat(lit("a row of the frame has "), col(_FAULT), lit("; bad='drop' leaves such rows out"))
    return rows.filter(when(sound, coalesce(matters, lit(False))).otherwise(_failing(told))).drop(_FAULT)


def require_known(bad: Bad) -> None:
    """Raise if nobody knows what is to become of bad rows."""
    if bad not in ("fail", "drop"):
        raise UsageError(f"bad={bad!r}: rows that cannot be used make it 'fail', or one can 'drop' them")


def _wanted(work: Work, *, ends: bool) -> dict[str, Column]:
    """Which rows of each topic can matter."""
    checked, whole = work.checked, seen_whole(work, ends=ends)

    def some(topic: Topic) -> Column:
        return expr(mattering(checked, topic, naming(checked, topic)))

    return {topic.name: lit(True) if topic.name in whole else some(topic) for topic in _watched(work)}


def seen_whole(work: Work, *, ends: bool = True) -> Collection[str]:
    """The topics of which every row is wanted: they tell the time, or SQL cannot say what matters.

    Of a frame that ends nobody needs the time who looks only so far around an event."""
    minding = [one.clock for one in work.timed.values() if one.machine.margin is None]
    clocks = frozenset().union(*minding) if ends else work.clocks
    return clocks.union(topic.name for topic in listened(work.checked))


def _failing(message: Column) -> Column:
    return raise_error(message).cast("boolean")


def _watched(work: Work) -> list[Topic]:
    return [topic for topic in work.checked.topics if topic.name in work.listening]


def naming(checked: Checked, topic: Topic) -> Naming:
    """What the attributes of a topic are called in rows that were laid out."""
    columns = _columns(checked.topics)
    own = {a.name: columns[a.name, a.kind] for a in topic.attributes}
    return lambda name: quoted(own.get(name, name))


def _columns(topics: Sequence[Topic]) -> dict[tuple[str, Kind], str]:
    """A column for each name and kind; Spark's names do not tell capitals apart, so it is numbered."""
    found = dict.fromkeys((a.name, a.kind) for topic in topics for a in topic.attributes)
    return {(name, kind): f"{i} {name}" for i, (name, kind) in enumerate(found)}


def laid_out(checked: Checked, frame: DataFrame, reading: Reading) -> DataFrame:
    """All rows in our columns and kinds, and why a row cannot be used, if it cannot."""
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
    columns["time"] = _time(reading, at, types)
    source = read("source", "text")
    assert source is not None
    columns["source"] = source
    carried = _located([read(axis, "float") for axis in AXES])
    if (place := read("place", "text")) is not None or _by_place(checked):
        carried["place"] = _or_nothing(place, "text")
    for (name, kind), column in _columns(checked.topics).items():
        carried[column] = _or_nothing(read(name, kind), kind)
    columns["sequence"] = _or_nothing(read("sequence", "int"), "int")
    rows = theirs.select(*(column.alias(name) for name, column in (columns | carried).items()))
    return rows.withColumn(_FAULT, _fault(checked))


def _by_place(checked: Checked) -> bool:
    """Whether places keep scopes apart."""
    return any("place" in level for condition in checked.conditions for level in condition.keys)


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


def _time(reading: Reading, at: Mapping[str, Column], types: Mapping[str, DataType]) -> Column:
    """The instant; a time without a zone is of the zone of the reading, whatever the session's."""
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


def _located(axes: Sequence[Column | None]) -> dict[str, Column]:
    """The coordinates as far as there is no gap: no y without x."""
    found: dict[str, Column] = {}
    inner = lit(True)
    for axis, column in zip(AXES, takewhile(lambda c: c is not None, axes), strict=False):
        assert column is not None
        found[axis] = when(inner & ~isnan(column), column)
        inner = found[axis].isNotNull()
    return found


def numbered(rows: DataFrame) -> DataFrame:
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


# --- rows as batches -------------------------------------------------------------------------------


def without_topic(work: Work, rows: DataFrame) -> DataFrame:
    """Rows that need not say their topic, where only one is watched."""
    return rows.drop("topic") if len(_watched(work)) == 1 else rows


def batches_by_topic(work: Work, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Rows as ``mapInArrow`` gives them become batches, many rows at a time."""
    columns, watched = _columns(work.checked.topics), _watched(work)
    for table in _gathered(batches):
        for topic in watched:
            if len(batch := _of_topic(table, topic, columns)):
                yield topic.name, batch


def packed_rows(work: Work, rows: DataFrame, shards: int) -> DataFrame:
    """Rows that ``events`` gave, packed by operator and shard."""

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = Reader(work)
        found = (mine for some in batches_by_topic(work, batches) for mine in reader.take(*some))
        return reader.spread(found, shards)

    return without_topic(work, rows).mapInArrow(pack, SPARK_SCHEMA)


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
