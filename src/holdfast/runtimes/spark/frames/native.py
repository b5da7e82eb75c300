"""The plan `native`: state filters as a window query of Spark. Python only computes the ids of notifications.

The rows that satisfy some predicate are shuffled and sorted once. The row before shows whether a row changes
the state, and the change before shows since when the state was active. For a single filter, the state after a
row and the number that orders rows of one time share a column; rows are then no larger than those of a
hand-written query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, functions
from pyspark.sql.types import StructField, TimestampType

from ....engine.machine import SINCE, STATUS
from ....engine.operator import Operator
from ....kinds.kind import FilterSql, WindowForm, WindowQuery
from ....kinds.registry import kind
from ....lang.expressions.sql import literal, quote_name, some_of
from ....model.batch import AXES
from ....model.event import notification_id
from ....model.topic import Kind
from ....plan.compile import conditions
from ...table import IDENTIFYING, attributes_of, ids
from ..job import Job
from ..schema import spark_schema
from .closed import is_repeatable
from .rows import naming, sequence, whole_topics
from .scan import PlanDoesNotFit

MOST = 4
"""The largest number of operators, because each reads the frame separately."""


def require(job: Job, frame: DataFrame) -> None:
    """Raise `PlanDoesNotFit` with the reason if Spark cannot run the whole definition as a window query."""
    if not job.operators:
        raise PlanDoesNotFit("there is nothing to run")
    if whole_topics(job) or not all(field.compacts for field in job.operators.values()):
        raise PlanDoesNotFit("it is more than state filters")
    for operator in job.operators.values():
        form, filters = _form(job, operator)
        if (reason := form.reason_against(filters, job.published)) is not None:
            raise PlanDoesNotFit(reason)
    if (many := len(job.operators)) > 1 and (many > MOST or not is_repeatable(frame)):
        raise PlanDoesNotFit("it would be read once for each set of scopes")


def notifications(
    job: Job, columns: Sequence[str], select: Callable[[Mapping[str, str]], DataFrame], *, has_sequence: bool
) -> DataFrame:
    """Return the notifications of a job on rows in Holdfast's `columns`.

    `select` returns the rows that satisfy one predicate for each topic. `has_sequence` tells whether the
    frame has a sequence.
    """
    parts = []
    for operator in job.operators.values():
        (topic,) = operator.topics.values()
        form, filters = _form(job, operator)
        query = form.query(filters, naming(job.checked, topic))
        inside = (f"{name} IS NOT NULL" for name in query.apart if name != "source")
        own = select({topic.name: " AND ".join([f"({query.where})", *inside])})
        parts.append(
            _to_notifications(
                job, operator, columns, _passing_rows(own, columns, query, has_sequence), query.scope
            )
        )
    return reduce(DataFrame.union, parts)


def _form(job: Job, operator: Operator) -> tuple[WindowForm, list[Any]]:
    """Return the form of an operator as a window query, and its checked conditions."""
    known = conditions(job.checked)
    filters = [known[names[0]] for names in operator.names]
    form = kind(filters[0]).window
    if form is None:
        raise PlanDoesNotFit("it is more than state filters")
    return form, filters


def _passing_rows(
    rows: DataFrame, columns: Sequence[str], query: WindowQuery, has_sequence: bool
) -> DataFrame:
    """Return the rows that pass a filter, with its number, the status and the start.

    A row that passes several filters is returned once for each of them.
    """
    moving = [(i, turn) for i, turn in enumerate(query.filters) if turn.exit is not None]
    if not moving:
        rows = _add_columns(rows, columns, {})
        return _explode(rows, [_momentary(i, turn) for i, turn in enumerate(query.filters)])
    order = [name for name in ("time", "source") if name not in query.apart]
    window = f"PARTITION BY {', '.join(query.apart) or '0'} ORDER BY {', '.join(order)}"
    if len(query.filters) == 1:
        return _run_single(rows, columns, query.filters[0], window, has_sequence)
    window = f"{window}, sequence"
    before = f"({window} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    rows = _add_columns(rows, columns, {f"@on{i}": _bit(turn) for i, turn in moving})
    was = {f"@was{i}": f"coalesce(last(`@on{i}`, true) OVER {before}, false)" for i, _ in moving}
    rows = _with(rows, was)
    turned = {i: f"(`@on{i}` <> `@was{i}`)" for i, _ in moving}
    passing = [*turned.values(), *(f"({turn.enter})" for turn in query.filters if turn.exit is None)]
    rows = rows.where(some_of(f"coalesce({test}, false)" for test in passing))
    starts = {
        f"@began{i}": f"last(CASE WHEN {turned[i]} AND `@on{i}` THEN time END, true) OVER {before}"
        for i, _ in moving
    }
    rows = _with(rows, starts)
    cells = {i: _cell(i, _status(f"`@on{i}`"), _ending(f"`@on{i}`", f"`@began{i}`")) for i, _ in moving}
    changed = {i: f"CASE WHEN {turned[i]} THEN {cell} END" for i, cell in cells.items()}
    return _explode(rows, [changed.get(i) or _momentary(i, turn) for i, turn in enumerate(query.filters)])


def _add_columns(rows: DataFrame, columns: Sequence[str], bits: Mapping[str, str]) -> DataFrame:
    """Return the rows with a sequence and the state that each row sets."""
    columns_to_keep = (quote_name(name) for name in columns if name != "sequence")
    found = {"sequence": sequence(columns), **bits}
    return rows.selectExpr(*columns_to_keep, *(f"{sql} AS {quote_name(name)}" for name, sql in found.items()))


def _bit(turn: FilterSql) -> str:
    """Return the SQL expression of the state that a row sets; null if it sets none."""
    return f"CASE WHEN {turn.enter} THEN true WHEN {turn.exit} THEN false END"


def _run_single(
    rows: DataFrame, columns: Sequence[str], turn: FilterSql, window: str, has_sequence: bool
) -> DataFrame:
    """Return the rows that change the state of the only filter, with the status and the start."""
    on = f"coalesce({turn.enter}, false)"
    if has_sequence:
        window = f"{window}, sequence"
        rows = _add_columns(rows, columns, {"@on": on})
        rows = _with(rows, {"@was": f"lag(`@on`, 1, false) OVER ({window})"}).where("`@on` <> `@was`")
    else:
        window = f"{window}, `@turn`"
        rows = _turning_rows(rows, columns, on, window)
    since = _ending("`@on`", f"lag(time) OVER ({window})")
    return _with(rows, {"@condition": "0", STATUS: _status("`@on`"), SINCE: since})


_LOWEST = "shiftleft(1L, 63)"


def _turning_rows(rows: DataFrame, columns: Sequence[str], on: str, window: str) -> DataFrame:
    """Return the rows that change the state, of a frame without a sequence.

    A hash of 63 bits replaces the sequence. The hash and the new state form one integer, by which rows are
    sorted.
    """
    columns_to_keep = (quote_name(name) for name in columns if name != "sequence")
    turn = f"(shiftleft({sequence(columns)}, 1) | CAST({on} AS BIGINT)) ^ {_LOWEST}"
    rows = rows.selectExpr(*columns_to_keep, f"{turn} AS `@turn`")
    before = f"lag(`@turn`, 1, {_LOWEST}) OVER ({window})"
    rows = _with(rows, {"@before": before}).where("`@turn` & 1 <> `@before` & 1")
    number = f"shiftrightunsigned(`@turn` ^ {_LOWEST}, 1)"
    return _with(rows, {"@on": "`@turn` & 1 = 1", "sequence": number})


def _with(rows: DataFrame, added: Mapping[str, str]) -> DataFrame:
    return rows.selectExpr("*", *(f"{sql} AS {quote_name(name)}" for name, sql in added.items()))


def _status(on: str) -> str:
    return f"CASE WHEN {on} THEN 'ingress' ELSE 'egress' END"


def _ending(on: str, starts: str) -> str:
    """Return the SQL expression of an interval's start, for the row that ends it."""
    return f"CASE WHEN NOT {on} THEN {starts} END"


def _momentary(number: int, turn: FilterSql) -> str:
    cell = _cell(number, "'atomic'", "NULL")
    return f"CASE WHEN {turn.enter} THEN {cell} END"


def _cell(number: int, status: str, since: str) -> str:
    cell = {"@condition": str(number), STATUS: status, SINCE: f"CAST({since} AS TIMESTAMP_LTZ)"}
    return f"named_struct({', '.join(f'{literal(name)}, {sql}' for name, sql in cell.items())})"


def _explode(rows: DataFrame, cells: Sequence[str]) -> DataFrame:
    """Return a row for each cell that is not null."""
    return rows.selectExpr("*", f"inline(array_compact(array({', '.join(cells)})))")


# --- notifications ---------------------------------------------------------------------------------


def _to_notifications(
    job: Job, operator: Operator, columns: Sequence[str], passed: DataFrame, scope: str | None
) -> DataFrame:
    """Return notifications for the rows that pass. Python computes the ids if they are selected."""
    (topic,) = operator.topics.values()
    recipients = [[literal(name) for name in names] for names in operator.recipients]
    if all(len(names) == 1 for names in recipients):
        subscription = f"get(array({', '.join(name for (name,) in recipients)}), `@condition`)"
    else:  # a row for each
        lists = ", ".join(f"CAST(array({', '.join(names)}) AS ARRAY<STRING>)" for names in recipients)
        passed = passed.selectExpr("*", f"explode(get(array({lists}), `@condition`)) AS `@subscription`")
        subscription = "`@subscription`"
    found = {
        "subscription": subscription,
        "scope": scope,
        "status": quote_name(STATUS),
        "time": "time",
        "since": quote_name(SINCE),
        "topic": literal(topic.name),
        "source": "source",
        "sequence": "sequence",
        "place": "place" if "place" in columns else None,
        "location": _location([axis for axis in AXES if axis in columns]),
    }
    named = naming(job.checked, topic)
    for name, (column, _) in attributes_of(job.published).items():
        if name in topic.by_name:
            found[column] = _value(named(name), topic.by_name[name].kind)
    id, *fields = spark_schema(job.published).fields
    whole = {field.name: f"CAST({found.get(field.name) or 'NULL'} AS {_type(field)})" for field in fields}
    identifying = [f"unix_micros({found[name]})" if name == "time" else whole[name] for name in IDENTIFYING]
    return passed.select(
        _id()(*map(functions.expr, identifying)).alias(id.name),
        *(functions.expr(f"{sql} AS {quote_name(name)}") for name, sql in whole.items()),
    )


def _type(field: StructField) -> str:
    """Return the type of a field in SQL. It does not depend on the session's setting for timestamps."""
    return "TIMESTAMP_LTZ" if isinstance(field.dataType, TimestampType) else field.dataType.simpleString()


def _id() -> Any:
    """Return the function that computes ids. From Spark 4.1 on it computes many rows per call."""
    if hasattr(functions, "arrow_udf"):
        return functions.arrow_udf(ids, "string")
    return functions.udf(notification_id, "string")


def _location(axes: Sequence[str]) -> str | None:
    """Return the SQL expression of an event's known coordinates as an array.

    Returns ``None`` if the frame has no coordinates.
    """
    return (
        f"CASE WHEN {axes[0]} IS NOT NULL THEN array_compact(array({', '.join(axes)})) END" if axes else None
    )


def _value(column: str, kind: Kind) -> str:
    return f"CASE WHEN NOT isnan({column}) THEN {column} END" if kind == "float" else column
