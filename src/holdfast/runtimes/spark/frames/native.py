"""State filters as Spark's own window query; of what passes Python gives the ids, if they are wanted.

One shuffle of the rows that some predicate holds for, sorted once: the value before tells what changed, and
the change before tells since when.  Of one filter, the bit that a row leaves and the number that orders it
among others of its time are one column: rows are then no larger than those of a query by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, functions
from pyspark.sql.types import StructField, TimestampType

from ....compilers.changes import Changes, Turn, changes, hindrance
from ....compilers.families import conditions
from ....compilers.operator import Operator
from ....compilers.sql import literal, quoted, some_of
from ....machines.machine import SINCE, STATUS
from ....model.batch import AXES
from ....model.event import notification_id
from ....model.topic import Kind
from ...table import IDENTIFYING, attributes_of, ids
from ..plan import Work
from ..schema import spark_schema
from .closed import is_repeatable
from .rows import naming, seen_whole, sequence
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


def notifications(
    work: Work, columns: Sequence[str], having: Callable[[Mapping[str, str]], DataFrame], *, numbered: bool
) -> DataFrame:
    """The notifications of rows in our ``columns``, ``having`` what matters of their topics; whether the
    frame numbers them."""
    parts = []
    for operator in work.operators.values():
        (topic,) = operator.topics.values()
        query = changes(_filters(work, operator), naming(work.checked, topic))
        inside = (f"{name} IS NOT NULL" for name in query.apart if name != "source")
        mine = having({topic.name: " AND ".join([f"({query.where})", *inside])})
        parts.append(_told(work, operator, columns, _passing(mine, columns, query, numbered), query.scope))
    return reduce(DataFrame.union, parts)


def _filters(work: Work, operator: Operator) -> list[Any]:
    """The checked conditions of an operator."""
    known = conditions(work.checked)
    return [known[names[0]] for names in operator.names]


def _passing(rows: DataFrame, columns: Sequence[str], query: Changes, numbered: bool) -> DataFrame:
    """The rows that pass some filter, once for each: which it is, what it means there, and since when."""
    moving = [(i, turn) for i, turn in enumerate(query.turns) if turn.exit is not None]
    if not moving:
        rows = _derived(rows, columns, {})
        return _each(rows, [_momentary(i, turn) for i, turn in enumerate(query.turns)])
    order = [name for name in ("time", "source") if name not in query.apart]
    window = f"PARTITION BY {', '.join(query.apart) or '0'} ORDER BY {', '.join(order)}"
    if len(query.turns) == 1:
        return _alternating(rows, columns, query.turns[0], window, numbered)
    window = f"{window}, sequence"
    before = f"({window} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    rows = _derived(rows, columns, {f"@on{i}": _bit(turn) for i, turn in moving})
    was = {f"@was{i}": f"coalesce(last(`@on{i}`, true) OVER {before}, false)" for i, _ in moving}
    rows = _with(rows, was)
    turned = {i: f"(`@on{i}` <> `@was{i}`)" for i, _ in moving}
    passing = [*turned.values(), *(f"({turn.enter})" for turn in query.turns if turn.exit is None)]
    rows = rows.where(some_of(f"coalesce({test}, false)" for test in passing))
    began = {
        f"@began{i}": f"last(CASE WHEN {turned[i]} AND `@on{i}` THEN time END, true) OVER {before}"
        for i, _ in moving
    }
    rows = _with(rows, began)
    cells = {i: _cell(i, _status(f"`@on{i}`"), _ending(f"`@on{i}`", f"`@began{i}`")) for i, _ in moving}
    moved = {i: f"CASE WHEN {turned[i]} THEN {cell} END" for i, cell in cells.items()}
    return _each(rows, [moved.get(i) or _momentary(i, turn) for i, turn in enumerate(query.turns)])


def _derived(rows: DataFrame, columns: Sequence[str], bits: Mapping[str, str]) -> DataFrame:
    """The rows with a sequence each, and with what they leave the bits at."""
    kept = (quoted(name) for name in columns if name != "sequence")
    found = {"sequence": sequence(columns), **bits}
    return rows.selectExpr(*kept, *(f"{sql} AS {quoted(name)}" for name, sql in found.items()))


def _bit(turn: Turn) -> str:
    """What a row leaves the bit at, null if as it was."""
    return f"CASE WHEN {turn.enter} THEN true WHEN {turn.exit} THEN false END"


def _alternating(
    rows: DataFrame, columns: Sequence[str], turn: Turn, window: str, numbered: bool
) -> DataFrame:
    """The same for one filter, of rows that all satisfy one of its predicates."""
    on = f"coalesce({turn.enter}, false)"
    if numbered:
        window = f"{window}, sequence"
        rows = _derived(rows, columns, {"@on": on})
        rows = _with(rows, {"@was": f"lag(`@on`, 1, false) OVER ({window})"}).where("`@on` <> `@was`")
    else:
        window = f"{window}, `@turn`"
        rows = _turning(rows, columns, on, window)
    since = _ending("`@on`", f"lag(time) OVER ({window})")
    return _with(rows, {"@condition": "0", STATUS: _status("`@on`"), SINCE: since})


_LOWEST = "shiftleft(1L, 63)"


def _turning(rows: DataFrame, columns: Sequence[str], on: str, window: str) -> DataFrame:
    """The rows that turn the bit, of a frame that does not number them: the hash of 63 bits that does, and
    then the bit, are one whole number, by which they are ordered."""
    kept = (quoted(name) for name in columns if name != "sequence")
    turn = f"(shiftleft({sequence(columns)}, 1) | CAST({on} AS BIGINT)) ^ {_LOWEST}"
    rows = rows.selectExpr(*kept, f"{turn} AS `@turn`")
    before = f"lag(`@turn`, 1, {_LOWEST}) OVER ({window})"
    rows = _with(rows, {"@before": before}).where("`@turn` & 1 <> `@before` & 1")
    number = f"shiftrightunsigned(`@turn` ^ {_LOWEST}, 1)"
    return _with(rows, {"@on": "`@turn` & 1 = 1", "sequence": number})


def _with(rows: DataFrame, added: Mapping[str, str]) -> DataFrame:
    return rows.selectExpr("*", *(f"{sql} AS {quoted(name)}" for name, sql in added.items()))


def _status(on: str) -> str:
    return f"CASE WHEN {on} THEN 'ingress' ELSE 'egress' END"


def _ending(on: str, began: str) -> str:
    """Since when, where it ends."""
    return f"CASE WHEN NOT {on} THEN {began} END"


def _momentary(number: int, turn: Turn) -> str:
    cell = _cell(number, "'atomic'", "NULL")
    return f"CASE WHEN {turn.enter} THEN {cell} END"


def _cell(number: int, status: str, since: str) -> str:
    cell = {"@condition": str(number), STATUS: status, SINCE: f"CAST({since} AS TIMESTAMP_LTZ)"}
    return f"named_struct({', '.join(f'{literal(name)}, {sql}' for name, sql in cell.items())})"


def _each(rows: DataFrame, cells: Sequence[str]) -> DataFrame:
    """A row for each cell that is not null."""
    return rows.selectExpr("*", f"inline(array_compact(array({', '.join(cells)})))")


# --- notifications ---------------------------------------------------------------------------------


def _told(
    work: Work, operator: Operator, columns: Sequence[str], passed: DataFrame, scope: str | None
) -> DataFrame:
    """Rows that passed become notifications; only their ids, where somebody wants them, are Python's."""
    (topic,) = operator.topics.values()
    whom = [[literal(name) for name in names] for names in operator.told_to]
    if all(len(names) == 1 for names in whom):
        subscription = f"get(array({', '.join(name for (name,) in whom)}), `@condition`)"
    else:  # a row for each
        lists = ", ".join(f"CAST(array({', '.join(names)}) AS ARRAY<STRING>)" for names in whom)
        passed = passed.selectExpr("*", f"explode(get(array({lists}), `@condition`)) AS `@subscription`")
        subscription = "`@subscription`"
    found = {
        "subscription": subscription,
        "scope": scope,
        "status": quoted(STATUS),
        "time": "time",
        "since": quoted(SINCE),
        "topic": literal(topic.name),
        "source": "source",
        "sequence": "sequence",
        "place": "place" if "place" in columns else None,
        "location": _location([axis for axis in AXES if axis in columns]),
    }
    named = naming(work.checked, topic)
    for name, (column, _) in attributes_of(work.published).items():
        if name in topic.by_name:
            found[column] = _value(named(name), topic.by_name[name].kind)
    id, *fields = spark_schema(work.published).fields
    whole = {one.name: f"CAST({found.get(one.name) or 'NULL'} AS {_type(one)})" for one in fields}
    identifying = [f"unix_micros({found[name]})" if name == "time" else whole[name] for name in IDENTIFYING]
    return passed.select(
        _id()(*map(functions.expr, identifying)).alias(id.name),
        *(functions.expr(f"{sql} AS {quoted(name)}") for name, sql in whole.items()),
    )


def _type(field: StructField) -> str:
    """A type as SQL has it, whatever the session takes a timestamp for."""
    return "TIMESTAMP_LTZ" if isinstance(field.dataType, TimestampType) else field.dataType.simpleString()


def _id() -> Any:
    """The id of a notification: many at once, from Spark 4.1 on."""
    if hasattr(functions, "arrow_udf"):
        return functions.arrow_udf(ids, "string")
    return functions.udf(notification_id, "string")


def _location(axes: Sequence[str]) -> str | None:
    """The coordinates of an event as far as they are known; null where none is."""
    return (
        f"CASE WHEN {axes[0]} IS NOT NULL THEN array_compact(array({', '.join(axes)})) END" if axes else None
    )


def _value(column: str, kind: Kind) -> str:
    return f"CASE WHEN NOT isnan({column}) THEN {column} END" if kind == "float" else column
