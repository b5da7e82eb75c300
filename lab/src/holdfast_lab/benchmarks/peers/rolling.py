"""Spark: congestion per road as rolling means by range windows, the bit as their last known verdict.

Of a folder of Parquet files (topic, time, place, value).  A mean changes when a reading leaves its
window, too, so that every reading adds a row there; without those rows (``exact=False``, the shorter
query) a jam is found only when the next reading comes.  Right because the two predicates exclude
one another.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession, Window
from pyspark.sql.functions import avg, coalesce, col, lag, last, lit, timestamp_micros, unix_micros, when
from pyspark.sql.functions import max as latest

LOOP, SPEED = 30_000_000, 60_000_000


def run(spark: SparkSession, folder: Path, output: Path, *, exact: bool = True) -> None:
    readings = spark.read.parquet(str(folder)).select(
        unix_micros("time").alias("at"),
        "place",
        when(col("topic") == "InductiveLoop", col("value")).alias("loop"),
        when(col("topic") == "CarSpeed", col("value")).alias("speed"),
    )
    rows = readings
    if exact:
        left = col("at") + when(col("loop").isNotNull(), LOOP).otherwise(SPEED) + 1
        nothing = lit(None).cast("double")
        leaving = readings.select(left.alias("at"), "place", nothing.alias("loop"), nothing.alias("speed"))
        end = readings.agg(latest("at")).collect()[0][0]
        rows = readings.union(leaving.filter(col("at") <= end))
    by_road = Window.partitionBy("place").orderBy("at")
    bit = when((col("loop") > 2.5) & (col("speed") < 7), 1).when(col("speed") > 15, 0)
    (
        rows.withColumns(
            {
                "loop": avg("loop").over(by_road.rangeBetween(-LOOP, 0)),
                "speed": avg("speed").over(by_road.rangeBetween(-SPEED, 0)),
            }
        )
        .withColumn("held", coalesce(last(bit, ignorenulls=True).over(by_road), lit(0)))
        .withColumn("before", lag("held", 1, 0).over(by_road))
        .filter(col("held") != col("before"))
        .select(
            timestamp_micros("at").alias("time"),
            col("place").alias("scope"),
            when(col("held") == 1, "ingress").otherwise("egress").alias("status"),
            col("speed").alias("level"),
        )
        .write.parquet(str(output))
    )
