"""Spark: readings that say nothing dropped, the others compared with the one before by ``lag``.

Right because the two predicates exclude one another; few people see it.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql.functions import col, lag, lit, when


def run(spark: SparkSession, folder: Path, output: Path) -> None:
    query(spark.read.parquet(str(folder))).write.parquet(str(output))


def query(readings: DataFrame) -> DataFrame:
    """The transitions of readings: time, source and status."""
    before = lag("warm", 1, False).over(Window.partitionBy("source").orderBy("time"))
    return (
        readings.filter((col("value") > 25) | (col("value") < 22))
        .select("time", "source", (col("value") > 25).alias("warm"))
        .withColumn("before", before)
        .filter(col("warm") != col("before"))
        .select("time", "source", when(col("warm"), lit("ingress")).otherwise("egress").alias("status"))
    )
