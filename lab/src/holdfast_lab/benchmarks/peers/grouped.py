"""Spark: ``applyInPandas``, a loop over the readings of each sensor."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from pyspark.sql import SparkSession

SCHEMA = "time timestamp, source string, status string"


def run(spark: SparkSession, folder: Path, output: Path) -> None:
    readings = spark.read.parquet(str(folder))
    readings.groupBy("source").applyInPandas(transitions, SCHEMA).write.parquet(str(output))


def transitions(readings: pd.DataFrame) -> pd.DataFrame:
    """The rows at which one sensor becomes warm, or ceases to be."""
    readings = readings.sort_values("time")
    rows, statuses, _ = walk(readings["value"].tolist(), False)
    turns = readings.iloc[rows][["time", "source"]].assign(status=statuses)
    # Spark takes no text that lies in several pieces, or in none, as pandas' own kind of text may.
    return turns.astype({"source": object, "status": object})


def walk(values: list[float], warm: bool) -> tuple[list[int], list[str], bool]:
    """Which values turn the bit, what each of them means, and the bit after the last."""
    rows, statuses = [], []
    for i, value in enumerate(values):
        if value < 22 if warm else value > 25:
            warm = not warm
            rows.append(i)
            statuses.append("ingress" if warm else "egress")
    return rows, statuses, warm
