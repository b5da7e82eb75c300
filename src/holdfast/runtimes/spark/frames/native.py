"""State filters as Spark's own window query; only what passes crosses to Python, to be given its id.

One shuffle of the rows that some predicate holds for, sorted once: the value before tells what changed, and
the change before tells since when.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql.functions import array, array_compact, coalesce, col, expr, inline, lag, lit, struct, when
from pyspark.sql.functions import last as latest

from ....compilers.changes import Changes, Turn, changes, hindrance
from ....compilers.families import conditions
from ....compilers.keys import shown
from ....compilers.operator import Operator
from ....compilers.sql import literal
from ....machines.machine import CONDITIONS, SCOPE, SINCE, STATUS, Told, with_columns
from ....model.batch import TIME
from ...table import identified, table_of
from ..plan import Work
from ..schema import spark_schema
from .closed import is_repeatable
from .rows import batch_of, naming, seen_whole
from .scan import Unlike

MOST = 4
"""How many operators may each go through the frame."""


def require(work: Work, frame: DataFrame) -> None:
    """Raise why Spark cannot run the whole definition by itself, if it cannot."""
    if not work.operators or seen_whole(work):
        raise Unlike("somebody must see every row" if work.operators else "there is nothing to run")
    for operator in work.operators.values():
        if (reason := hindrance(_filters(work, operator))) is not None:
            raise Unlike(reason)
    if len(work.operators) > (MOST if is_repeatable(frame) else 1):
        raise Unlike("it would be read once for each set of scopes")


def notifications(work: Work, rows: DataFrame) -> DataFrame:
    """The notifications of rows that were laid out and numbered."""
    parts = []
    for number, operator in work.operators.items():
        (topic,) = operator.topics.values()
        query = changes(_filters(work, operator), naming(work.checked, topic))
        mine = rows.filter(expr(f"topic = {literal(topic.name)} AND ({query.where})"))
        told = partial(_told, work, number)
        parts.append(_turned(mine, query).mapInArrow(told, spark_schema(work.published)))
    return reduce(DataFrame.union, parts)


def _filters(work: Work, operator: Operator) -> list[Any]:
    """The checked conditions of an operator."""
    known = conditions(work.checked)
    return [known[names[0]] for names in operator.names]


def _turned(rows: DataFrame, query: Changes) -> DataFrame:
    """The rows that pass some filter, once for each: which it is, what it means there, and since when."""
    return _passing(rows, query).withColumn(
        SCOPE, lit(None).cast("string") if query.scope is None else expr(query.scope)
    )


def _passing(rows: DataFrame, query: Changes) -> DataFrame:
    apart = [expr(name) for name in query.apart]
    inside = reduce(Column.__and__, [column.isNotNull() for column in apart], lit(True))
    rows = rows.filter(inside).drop("topic")
    scope = lit(None).cast("string") if query.scope is None else expr(query.scope)
    if all(turn.exit is None for turn in query.turns):
        return _each(rows, [_momentary(i, turn) for i, turn in enumerate(query.turns)]).withColumn(
            SCOPE, scope
        )
    window = Window.partitionBy(*apart or [lit(0)]).orderBy("time", "source", "sequence")
    if len(query.turns) == 1:
        return _alternating(rows, query.turns[0], window)
    before = window.rowsBetween(Window.unboundedPreceding, -1)
    moving = [(i, turn.enter, turn.exit) for i, turn in enumerate(query.turns) if turn.exit is not None]
    bits = {f"@on{i}": when(expr(enter), True).when(expr(exit), False) for i, enter, exit in moving}
    rows = rows.withColumns(bits)
    was = {f"@was{i}": coalesce(latest(f"@on{i}", True).over(before), lit(False)) for i, *_ in moving}
    rows = rows.withColumns(was)
    turned = {i: col(f"@on{i}") != col(f"@was{i}") for i, *_ in moving}
    passing = [*turned.values(), *(expr(turn.enter) for turn in query.turns if turn.exit is None)]
    rows = rows.filter(reduce(Column.__or__, [coalesce(one, lit(False)) for one in passing]))
    began = {
        f"@began{i}": latest(when(turned[i] & col(f"@on{i}"), col("time")), True).over(before)
        for i, *_ in moving
    }
    rows = rows.withColumns(began)
    cells = [
        _momentary(i, turn)
        if turn.exit is None
        else when(turned[i], _cell(i, _status(f"@on{i}"), when(~col(f"@on{i}"), col(f"@began{i}"))))
        for i, turn in enumerate(query.turns)
    ]
    return _each(rows, cells).drop(*bits, *was, *began)


def _alternating(rows: DataFrame, turn: Turn, window: WindowSpec) -> DataFrame:
    """The same for one filter, of rows that all satisfy one of its predicates."""
    on = coalesce(expr(turn.enter), lit(False))
    rows = rows.withColumn("@on", on).withColumn("@was", lag("@on", 1, False).over(window))
    rows = rows.filter(col("@on") != col("@was")).withColumn("@began", lag("time").over(window))
    added = {"@condition": lit(0), STATUS: _status("@on"), SINCE: when(~col("@on"), col("@began"))}
    return rows.withColumns(added).drop("@on", "@was", "@began")


def _status(on: str) -> Column:
    return when(col(on), "ingress").otherwise("egress")


def _momentary(number: int, turn: Turn) -> Column:
    return when(expr(turn.enter), _cell(number, lit("atomic"), lit(None)))


def _cell(number: int, status: Column, since: Column) -> Column:
    return struct(lit(number).alias("@condition"), status.alias(STATUS), since.cast("timestamp").alias(SINCE))


def _each(rows: DataFrame, cells: Sequence[Column]) -> DataFrame:
    """A row for each cell that is not null."""
    return rows.select("*", inline(array_compact(array(*cells))))


def _told(work: Work, number: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows that passed become notifications."""
    operator = work.operators[number]
    (topic,) = operator.topics.values()
    for rows in batches:
        if len(rows):
            passed = with_columns(batch_of(work, topic, rows), _added(rows))
            table = table_of(work.published, operator, Told({topic.name: passed}))
            yield from identified(table).to_batches()


def _added(rows: pa.RecordBatch) -> dict[str, pa.Array]:
    """What a machine adds to events that passed."""
    scopes = rows.column(SCOPE).dictionary_encode()
    names = [shown(key) for key in scopes.dictionary.to_pylist()]
    words = np.uint64(1) << rows.column("@condition").to_numpy().astype(np.uint64)
    return {
        CONDITIONS: pa.array(words),
        STATUS: rows.column(STATUS),
        SCOPE: pa.array(names, pa.string()).take(scopes.indices),
        SINCE: rows.column(SINCE).cast(TIME),
    }
