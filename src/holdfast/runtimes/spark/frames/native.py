"""State filters as Spark's own window query; of what passes Python gives the ids, if they are wanted.

One shuffle of the rows that some predicate holds for, sorted once: the value before tells what changed, and
the change before tells since when.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Window, WindowSpec, functions
from pyspark.sql.functions import (
    array,
    array_compact,
    coalesce,
    col,
    explode,
    expr,
    get,
    inline,
    isnan,
    lag,
    lit,
    struct,
    unix_micros,
    when,
)
from pyspark.sql.functions import last as latest

from ....compilers.changes import Changes, Turn, changes, hindrance
from ....compilers.families import conditions
from ....compilers.operator import Operator
from ....machines.machine import SINCE, STATUS
from ....model.batch import AXES
from ....model.event import notification_id
from ....model.topic import Kind
from ...table import IDENTIFYING, attributes_of, ids
from ..plan import Work
from ..schema import spark_schema
from .closed import is_repeatable
from .rows import naming, seen_whole
from .scan import Unlike

MOST = 4
"""How many operators may each go through the frame."""


def require(work: Work, frame: DataFrame) -> None:
    """Raise why Spark cannot run the whole definition by itself, if it cannot."""
    if not work.operators:
        raise Unlike("there is nothing to run")
    if seen_whole(work) or not all(one.compacts for one in work.operators.values()):
        raise Unlike("it is more than state filters")
    for operator in work.operators.values():
        if (reason := hindrance(_filters(work, operator), work.published)) is not None:
            raise Unlike(reason)
    if (many := len(work.operators)) > 1 and (many > MOST or not is_repeatable(frame)):
        raise Unlike("it would be read once for each set of scopes")


def notifications(work: Work, having: Callable[[Mapping[str, Column]], DataFrame]) -> DataFrame:
    """The notifications of rows that are laid out and numbered, ``having`` what matters of their topics."""
    parts = []
    for operator in work.operators.values():
        (topic,) = operator.topics.values()
        query = changes(_filters(work, operator), naming(work.checked, topic))
        inside = (expr(name).isNotNull() for name in query.apart if name != "source")
        mine = having({topic.name: reduce(Column.__and__, inside, expr(query.where))})
        parts.append(_told(work, operator, _passing(mine, query), query.scope))
    return reduce(DataFrame.union, parts)


def _filters(work: Work, operator: Operator) -> list[Any]:
    """The checked conditions of an operator."""
    known = conditions(work.checked)
    return [known[names[0]] for names in operator.names]


def _passing(rows: DataFrame, query: Changes) -> DataFrame:
    """The rows that pass some filter, once for each: which it is, what it means there, and since when."""
    if all(turn.exit is None for turn in query.turns):
        return _each(rows, [_momentary(i, turn) for i, turn in enumerate(query.turns)])
    order = [name for name in ("time", "source", "sequence") if name not in query.apart]
    window = Window.partitionBy(*map(expr, query.apart or ["0"])).orderBy(*order)
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
    return _each(rows, cells)


def _alternating(rows: DataFrame, turn: Turn, window: WindowSpec) -> DataFrame:
    """The same for one filter, of rows that all satisfy one of its predicates."""
    on = coalesce(expr(turn.enter), lit(False))
    rows = rows.withColumn("@on", on).withColumn("@was", lag("@on", 1, False).over(window))
    rows = rows.filter(col("@on") != col("@was")).withColumn("@began", lag("time").over(window))
    added = {"@condition": lit(0), STATUS: _status("@on"), SINCE: when(~col("@on"), col("@began"))}
    return rows.withColumns(added)


def _status(on: str) -> Column:
    return when(col(on), "ingress").otherwise("egress")


def _momentary(number: int, turn: Turn) -> Column:
    return when(expr(turn.enter), _cell(number, lit("atomic"), lit(None)))


def _cell(number: int, status: Column, since: Column) -> Column:
    return struct(lit(number).alias("@condition"), status.alias(STATUS), since.cast("timestamp").alias(SINCE))


def _each(rows: DataFrame, cells: Sequence[Column]) -> DataFrame:
    """A row for each cell that is not null."""
    return rows.select("*", inline(array_compact(array(*cells))))


# --- notifications ---------------------------------------------------------------------------------


def _told(work: Work, operator: Operator, passed: DataFrame, scope: str | None) -> DataFrame:
    """Rows that passed become notifications; only their ids, where somebody wants them, are Python's."""
    (topic,) = operator.topics.values()
    whom, condition = operator.told_to, col("@condition")
    if all(len(names) == 1 for names in whom):
        subscription = get(array(*(lit(name) for (name,) in whom)), condition)
    else:  # a row for each
        lists = array(*(array(*map(lit, names)).cast("array<string>") for names in whom))
        passed = passed.select("*", explode(get(lists, condition)).alias("@subscription"))
        subscription = col("@subscription")
    found = {
        "subscription": subscription,
        "scope": lit(None) if scope is None else expr(scope),
        "status": col(STATUS),
        "time": col("time"),
        "since": col(SINCE),
        "topic": lit(topic.name),
        "source": col("source"),
        "sequence": col("sequence"),
        "place": col("place") if "place" in passed.columns else lit(None),
        "location": _location([col(axis) for axis in AXES if axis in passed.columns]),
    }
    named = naming(work.checked, topic)
    for name, (column, _) in attributes_of(work.published).items():
        if name in topic.by_name:
            found[column] = _value(col(named(name)), topic.by_name[name].kind)
    identifying = (unix_micros(found[name]) if name == "time" else found[name] for name in IDENTIFYING)
    found["id"] = _id()(*(one.cast(kind) for one, kind in zip(identifying, _KINDS, strict=True)))
    fields = spark_schema(work.published).fields
    whole = ((found.get(field.name, lit(None)).cast(field.dataType), field.name) for field in fields)
    return passed.select(*(column.alias(name) for column, name in whole))


_KINDS = ("string", "string", "string", "bigint", "string", "bigint")


def _id() -> Any:
    """The id of a notification: many at once, from Spark 4.1 on."""
    if hasattr(functions, "arrow_udf"):
        return functions.arrow_udf(ids, "string")
    return functions.udf(notification_id, "string")


def _location(axes: Sequence[Column]) -> Column:
    """The coordinates of an event as far as they are known; null where none is."""
    return when(axes[0].isNotNull(), array_compact(array(*axes))) if axes else lit(None)


def _value(column: Column, kind: Kind) -> Column:
    return when(~isnan(column), column) if kind == "float" else column
