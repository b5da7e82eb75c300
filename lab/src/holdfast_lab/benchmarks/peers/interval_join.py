"""Spark: correlations as joins of intervals, the way to write them in SQL.

Matches of every filter are joined with one another within the same stretch of time (each match stands
in the stretch that it lies in and in the one before, so that no pair is lost), combinations that are too
long are thrown away, and of the rest every member is told once.
"""

from __future__ import annotations

from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import array, broadcast, col, explode, floor, greatest, least, lit


def run(spark: SparkSession, folder: Path, output: Path, attributes: list[str], within: int) -> None:
    bucket = floor(col("micros") / within)
    standing = matches(spark, folder).withColumn("stretch", explode(array(bucket, bucket - lit(1))))
    combined = reduce(_join, [_of(standing, i, name) for i, name in enumerate(attributes)])
    times = [col(f"micros_{i}") for i in range(len(attributes))]
    agreeing = combined.filter(greatest(*times) - least(*times) < within)
    members = explode(array(*(col(f"sequence_{i}") for i in range(len(attributes))))).alias("sequence")
    agreeing.select("subscription", members).distinct().write.parquet(str(output))


def matches(spark: SparkSession, folder: Path) -> DataFrame:
    """The events that match a filter, once for each subscription that has such a one."""
    events = spark.read.parquet(str(folder / "events.parquet"))
    ranges = spark.read.parquet(str(folder / "ranges.parquet"))
    mine = (events.attribute == ranges.of) & (events.value >= ranges.low) & (events.value <= ranges.high)
    return events.join(broadcast(ranges), mine).select("subscription", "attribute", "micros", "sequence")


def _of(matches: DataFrame, i: int, attribute: str) -> DataFrame:
    mine = matches.filter(col("attribute") == attribute)
    return mine.select(
        "subscription", "stretch", col("micros").alias(f"micros_{i}"), col("sequence").alias(f"sequence_{i}")
    )


def _join(left: DataFrame, right: DataFrame) -> DataFrame:
    return left.join(right, ["subscription", "stretch"])
