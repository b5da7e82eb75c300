"""Intervals in which conditions were active, computed from a DataFrame of notifications."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql.functions import coalesce, col, greatest, lag, lead, lit, unix_micros, when

from ...files.table import EVENT_COLUMNS
from ...model.instant import SECOND

_DROPPED = {*EVENT_COLUMNS, "sequence", "place"}


def intervals(notifications: DataFrame) -> DataFrame:
    """Return a row for each interval, from the notifications of `replay`, `stream` or a `parquet:` sink.

    The columns are `subscription`, `scope`, `start`, `end`, `duration` in seconds, `open`, then `topic`,
    `source` and the attributes of the event that started the interval. They are those of `holdfast replay
    --as intervals`, in no particular order.
    """
    own = [name for name in notifications.columns if name not in _DROPPED]
    by_scope = Window.partitionBy("subscription", "scope").orderBy(*_order(notifications))
    status, at = col("status"), col("time")
    begins, ends = status == "ingress", status == "egress"
    next_status = lead("status").over(by_scope)
    continues = coalesce(lag("status").over(by_scope) == "ingress", lit(False))
    rows = (
        notifications.where("status in ('ingress', 'egress')")
        .withColumn(
            "end", when(begins, when(next_status == "egress", lead("time").over(by_scope))).otherwise(at)
        )
        .withColumn("start", when(begins, at).otherwise(coalesce(col("since"), at)))
        .withColumn("@told", continues)  # Spark has no windows in where
        .where(begins | ~col("@told"))
        .drop("@told")
    )
    momentary = notifications.where(status == "atomic").withColumn("end", at).withColumn("start", at)
    whole = rows.unionByName(momentary)
    length = greatest(lit(0), unix_micros("end") - unix_micros("start")) / lit(float(SECOND))
    return whole.select(
        "subscription",
        "scope",
        "start",
        "end",
        when(col("end").isNotNull(), length).alias("duration"),
        col("end").isNull().alias("open"),
        "topic",
        when(~ends, col("source")).alias("source"),
        *(when(~ends, col(f"`{name}`")).alias(name) for name in own),
    )


def _order(notifications: DataFrame) -> list[Column]:
    """Return the columns by which the notifications of a scope are sorted in the order of emission.

    An end precedes a start of the same event, unless it ends an interval that started at the same time.
    """
    rank = when(col("status") == "ingress", 1).when(col("since") < col("time"), 0).otherwise(2)
    return [col(name) for name in ("time", "source", "sequence") if name in notifications.columns] + [rank]
