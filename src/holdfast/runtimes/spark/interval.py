"""Notifications in a DataFrame become the stretches during which conditions held."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql.functions import coalesce, col, greatest, lag, lead, lit, unix_micros, when

from ...files.table import EVENT_COLUMNS
from ...model.instant import SECOND

_NOT_KEPT = {*EVENT_COLUMNS, "sequence", "place"}


def intervals(notifications: DataFrame) -> DataFrame:
    """A row for each stretch of the notifications that ``replay``, ``stream`` or a ``parquet:`` sink gives:
    ``subscription``, ``scope``, ``start``, ``end``, ``duration`` in seconds, ``open``, then ``topic``,
    ``source`` and the attributes of the event that started it.

    They are those of ``holdfast replay --as intervals``, in no particular order.
    """
    own = [name for name in notifications.columns if name not in _NOT_KEPT]
    by_scope = Window.partitionBy("subscription", "scope").orderBy(*_order(notifications))
    status, at = col("status"), col("time")
    begins, ends = status == "ingress", status == "egress"
    after = lead("status").over(by_scope)
    told = coalesce(lag("status").over(by_scope) == "ingress", lit(False))
    rows = (
        notifications.where("status in ('ingress', 'egress')")
        .withColumn("end", when(begins, when(after == "egress", lead("time").over(by_scope))).otherwise(at))
        .withColumn("start", when(begins, at).otherwise(coalesce(col("since"), at)))
        .withColumn("@told", told)  # Spark has no windows in where
        .where(begins | ~col("@told"))
        .drop("@told")
    )
    moments = notifications.where(status == "atomic").withColumn("end", at).withColumn("start", at)
    whole = rows.unionByName(moments)
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
    """The order in which a condition said them: an end before a start of the same event, unless it ends
    what began in that moment."""
    said = when(col("status") == "ingress", 1).when(col("since") < col("time"), 0).otherwise(2)
    return [col(name) for name in ("time", "source", "sequence") if name in notifications.columns] + [said]
