"""The rows of a user's frame or stream: in our columns and kinds, those that can matter; then as batches.

In the JVM: columns are given our names and kinds, and rows that satisfy no predicate are dropped, unless
somebody must see them all.  What is left crosses to Python once.  What the JVM is to do is said as SQL: text
crosses to it at once, an expression that is built by calls needs a call for each of its parts.
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

from ....compilers.families import listened, mattering
from ....compilers.sql import Naming, literal, quoted, some_of
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

_BLANK, _SAID = literal(r"^\s*$"), literal(r"\S")  # patterns
_FAULTS = {
    "no time": "time IS NULL",
    "a time outside the years 1 to 9999": "time < TIMESTAMP'0001-01-01 00:00:00Z'"
    " OR time > TIMESTAMP'9999-12-31 23:59:59.999999Z'",
    "no source": f"source IS NULL OR (source < '!' AND source RLIKE {_BLANK})",
}
"""Why a row of a declared topic cannot be used, and where that is so."""


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
    wanted: Mapping[str, str] | None = None,
) -> DataFrame:
    """The same of rows that were laid out, and a row has a sequence only if the frame gave it one; ``wanted``
    says which rows of which topics matter, if it is not all that can.

    Whoever filters further may keep Spark from ever seeing a row that cannot be used: it filters early.
    """
    wanted = _wanted(work, ends=not frame.isStreaming) if wanted is None else dict(wanted)
    only = None if reading.theirs("topic") in frame.columns else _default(reading)
    if only is not None:
        matters = wanted.get(only, "false")
    else:
        lacking = {topic.name: _lacking(topic, frame.columns, reading) for topic in _watched(work)}
        tests = wanted | {name: _failing(literal(what)) for name, what in lacking.items() if what}
        cases = (f"CASE WHEN topic = {literal(name)} THEN {test} END" for name, test in tests.items())
        matters = some_of(cases)
    sound, fault = _soundness(work.checked, only)
    if bad == "drop":
        return rows.where(f"{sound} AND ({matters})")
    told = f"concat('a row of the frame has ', {fault}, {literal(_REMEDY)})"
    return rows.where(f"CASE WHEN {sound} THEN coalesce({matters}, false) ELSE {_failing(told)} END")


_REMEDY = "; bad='drop' leaves such rows out"


def require_known(bad: Bad) -> None:
    """Raise if nobody knows what is to become of bad rows."""
    if bad not in ("fail", "drop"):
        raise UsageError(f"bad={bad!r}: rows that cannot be used make it 'fail', or one can 'drop' them")


def _wanted(work: Work, *, ends: bool) -> dict[str, str]:
    """Which rows of each topic can matter."""
    checked, whole = work.checked, seen_whole(work, ends=ends)

    def some(topic: Topic) -> str:
        return mattering(checked, topic, naming(checked, topic))

    return {topic.name: "true" if topic.name in whole else some(topic) for topic in _watched(work)}


def seen_whole(work: Work, *, ends: bool = True) -> Collection[str]:
    """The topics of which every row is wanted: they tell the time, or SQL cannot say what matters.

    Of a frame that ends nobody needs the time who looks only so far around an event."""
    minding = [one.clock for one in work.timed.values() if one.machine.margin is None]
    clocks = frozenset().union(*minding) if ends else work.clocks
    return clocks.union(topic.name for topic in listened(work.checked))


def _failing(message: str) -> str:
    return f"CAST(raise_error({message}) AS BOOLEAN)"


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
    """All rows in our columns and kinds."""
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
    carried = _located([read(axis, "float") for axis in AXES])
    if (place := read("place", "text")) is not None or _by_place(checked):
        carried["place"] = _or_nothing(place, "text")
    for (name, kind), column in _columns(checked.topics).items():
        carried[column] = _or_nothing(read(name, kind), kind)
    columns["sequence"] = _or_nothing(read("sequence", "int"), "int")
    return frame.selectExpr(*(f"{sql} AS {quoted(name)}" for name, sql in (columns | carried).items()))


def _by_place(checked: Checked) -> bool:
    """Whether places keep scopes apart."""
    return any("place" in level for condition in checked.conditions for level in condition.keys)


def _or_nothing(column: str | None, kind: Kind) -> str:
    return f"CAST(NULL AS {_KINDS[kind][1]})" if column is None else column


def _soundness(checked: Checked, only: str | None) -> tuple[str, str]:
    """Where a row can be used, and why not elsewhere; rows of topics that nobody declared may be anything.
    All may be of the ``only`` topic that there is."""
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
        said = f"CASE WHEN {column} RLIKE {_SAID} THEN {column} END"
        return said if default is None else f"coalesce({said}, {literal(default)})"
    if default is None:
        declared = ", ".join(topic.name for topic in reading.topics) or "none"
        raise UsageError(
            f"which topic are the frame's rows of? Declared: {declared}. Give topic=…, or a column 'topic', "
            f"for example map={{'topic': 'NAME'}}. The frame has: {_listed(names)}."
        )
    if lacking := _lacking(reading.by_name[default], names, reading):
        raise UsageError(lacking)
    return literal(default)


def _default(reading: Reading) -> str | None:
    """The topic of rows that do not say theirs."""
    only = reading.topics[0].name if len(reading.topics) == 1 else None
    return reading.topic or only


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


def _time(reading: Reading, at: Mapping[str, str], types: Mapping[str, DataType]) -> str:
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


def _located(axes: Sequence[str | None]) -> dict[str, str]:
    """The coordinates as far as there is no gap: no y without x."""
    found: dict[str, str] = {}
    inner = ""
    for axis, column in zip(AXES, takewhile(lambda c: c is not None, axes), strict=False):
        inner += f"{' AND ' * bool(inner)}NOT isnan({column}) AND {column} IS NOT NULL"
        found[axis] = f"CASE WHEN {inner} THEN {column} END"
    return found


def numbered(rows: DataFrame) -> DataFrame:
    """The rows with a sequence each."""
    return rows.withColumn("sequence", expr(sequence(rows.columns)))


def sequence(columns: Sequence[str]) -> str:
    """The sequence of a row that has these columns: a hash of what it says, where it has none.

    Columns that a row leaves empty do not change the hash.
    """
    digest = " ^ ".join(["0L", *map(_own, saying(columns))])
    return f"coalesce(sequence, ({digest}) & {2**63 - 1}L)"


def saying(columns: Sequence[str]) -> list[str]:
    """The columns that tell rows of one source and time apart."""
    return [column for column in columns if column not in ("topic", "time", "source", "sequence")]


def _own(column: str) -> str:
    """What a column adds to the hash."""
    name, value = literal(column.split(" ")[-1]), quoted(column)
    return f"CASE WHEN {value} IS NOT NULL THEN xxhash64({name}, {value}) ELSE 0L END"


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
