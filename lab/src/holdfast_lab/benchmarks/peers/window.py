"""Spark: the bit as the last known value of a window, compared with the one before by ``lag``."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession, Window
from pyspark.sql.functions import coalesce, col, lag, last, lit, when


def run(spark: SparkSession, folder: Path, output: Path) -> None:
    by_source = Window.partitionBy("source").orderBy("time")
    bit = when(col("value") > 25, 1).when(col("value") < 22, 0)
    held = coalesce(last(bit, ignorenulls=True).over(by_source), lit(0))
    (
        spark.read.parquet(str(folder))
        .withColumn("held", held)
        .withColumn("before", lag("held", 1, 0).over(by_source))
        .filter(col("held") != col("before"))
        .select("time", "source", when(col("held") == 1, "ingress").otherwise("egress").alias("status"))
        .write.parquet(str(output))
    )
