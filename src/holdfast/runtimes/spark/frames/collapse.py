"""Stretches of history in which nothing changes, collapsed before any row leaves the JVM.

Where all rows of one innermost scope and one span of time enter the same filters and leave the
same, and none of them does both, only the earliest can start or end something.  One aggregate
finds those spans, and a broadcast join drops the rest of their rows.  Rows that a momentary filter
passes and rows in no innermost scope are kept, and so are spans in which something changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    approx_count_distinct,
    broadcast,
    coalesce,
    col,
    count,
    expr,
    lit,
    rand,
    unix_micros,
    when,
)
from pyspark.sql.functions import max as most
from pyspark.sql.functions import min as least

from ....compilers.sql import Naming, Stretch, literal, obstacle, stretch
from ....lang.condition import Condition
from ....model.instant import Duration
from ....model.topic import Topic

SAMPLED = 0.01

ROWS = 64
"""How many rows a span should have at least."""

SPANS = 100_000
"""How many spans there should be at most: they are broadcast."""

SPANS_OF_A_SCOPE = 10
"""With fewer spans for each scope, something changes in too many of them."""

_REPEATABLE = {"Project", "Filter", "LogicalRelation", "DataSourceV2ScanRelation", "InMemoryRelation"}

_SPAN = ("topic", "@key", "@span")


def stretches(conditions: Sequence[Condition], named: Callable[[Topic], Naming]) -> dict[Topic, Stretch]:
    """The topics whose stretches can be told in SQL."""
    watching: dict[Topic, list[Condition]] = {}
    for condition in conditions:
        watching.setdefault(condition.topic, []).append(condition)
    return {topic: stretch(mine, named(topic)) for topic, mine in watching.items() if obstacle(mine) is None}


def is_repeatable(frame: DataFrame) -> bool:
    """Whether a frame is only read (from files, a table, the cache) and cut, so that reading it
    three times is cheap and gives the same rows."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    return bool(plan.deterministic()) and all(name in _REPEATABLE for name in _nodes(plan))


def _nodes(plan: Any) -> Iterator[str]:
    yield plan.getClass().getSimpleName()
    children = plan.children()
    for i in range(children.size()):
        yield from _nodes(children.apply(i))


def width(rows: DataFrame, found: Mapping[Topic, Stretch]) -> Duration | None:
    """How long spans should be, judged by a sample of the rows; nothing if collapsing cannot pay."""
    sample = rows.filter(rand(7) < SAMPLED).select("time", _of_topic(found, "key").alias("@key"))
    micros = unix_micros("time")
    first, last, sampled, scopes = sample.agg(
        least(micros), most(micros), count("*"), approx_count_distinct("@key", 0.1)
    ).collect()[0]
    spans = min(int(sampled / SAMPLED) // ROWS, SPANS)
    if not scopes or spans < scopes * SPANS_OF_A_SCOPE:
        return None
    return max((last - first) * scopes // spans, 1)


def collapsed(rows: DataFrame, found: Mapping[Topic, Stretch], span: Duration) -> DataFrame:
    """The rows that can matter, of those that satisfy some predicate."""
    marked = rows.withColumns(
        {"@key": _of_topic(found, "key"), "@span": expr(f"unix_micros(time) div {span}L")}
    )
    actions = marked.select(
        *_SPAN, "time", _of_topic(found, "enter").alias("@enter"), _of_topic(found, "leave").alias("@leave")
    ).filter((col("@enter").bitwiseOR(col("@leave")) != 0) & col("@key").isNotNull())
    alike = (
        (least("@enter") == most("@enter"))
        & (least("@leave") == most("@leave"))
        & (least("@enter").bitwiseAND(least("@leave")) == 0)
    )
    spans = actions.groupBy(*_SPAN).agg(when(alike, least("time")).alias("@first"))
    always = coalesce(_of_topic(found, "always"), lit(False))
    return (
        marked.join(broadcast(spans), list(_SPAN), "left")
        .filter(col("@first").isNull() | (col("time") <= col("@first")) | always)
        .select(*rows.columns)
    )


def _of_topic(found: Mapping[Topic, Stretch], part: str) -> Column:
    """A part of the stretch of each row's topic; null where there is none."""
    cases = [
        when(expr(f"topic = {literal(topic.name)}"), expr(getattr(own, part))) for topic, own in found.items()
    ]
    return coalesce(*cases)
