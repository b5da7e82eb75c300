"""Spark: correlations without a join of events, by windows over a range of time.

A match is complete if the matches of its subscription up to a window before it have every attribute, and
takes part if one up to a window after it is complete.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from pathlib import Path

from pyspark.sql import SparkSession, Window
from pyspark.sql.functions import col, max

from .interval_join import matches


def run(spark: SparkSession, folder: Path, output: Path, attributes: list[str], within: int) -> None:
    of_subscription = Window.partitionBy("subscription").orderBy("micros")
    before, after = of_subscription.rangeBetween(1 - within, 0), of_subscription.rangeBetween(0, within - 1)
    complete = reduce(and_, (max(col("attribute") == name).over(before) for name in attributes))
    (
        matches(spark, folder)
        .withColumn("complete", complete)
        .withColumn("takes_part", max("complete").over(after))
        .filter("takes_part")
        .select("subscription", "sequence")
        .write.parquet(str(output))
    )
