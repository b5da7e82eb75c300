"""Access to everything that Holdfast uses behind Spark's public interface.

No other module of `src` may use such names. A classic session runs in the same process as its Java driver. A
session of Spark Connect talks to a server and offers only the public interface. Each function here documents
its result for a Connect session.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import spark_partition_id

SPARK_ERRORS = (PySparkException, Py4JError)
"""The errors with which Spark ends a call. `Py4JError` is not public, but it is all that a classic session
raises when its Java process has died or when Java raises an error that PySpark does not translate."""


def untranslated_message(error: Exception) -> str | None:
    """Return the message of a Java error that PySpark did not translate, or `None` for any other error.

    The text of the Python exception is a Java stack; only the Java object behind it has the bare message.
    """
    return str(error.java_exception) if isinstance(error, Py4JJavaError) else None


def spark_home() -> Path:
    """Return the folder of the Spark that PySpark starts. PySpark has no public name for it."""
    return Path(_find_spark_home())


def core_count(spark: SparkSession) -> int:
    """Return the number of tasks that a session runs at once.

    Spark has no public name for this number. A Connect session has no Spark context; there a small job counts
    the partitions of a range, which has as many by default.
    """
    if is_classic(spark):
        return int(spark.sparkContext.defaultParallelism)
    return spark.range(1 << 16).select(spark_partition_id()).distinct().count()


def optimized_plan(frame: DataFrame) -> Any | None:
    """Return the optimized logical plan of a frame as a Java object, or `None` for a Connect session.

    The plan tells whether a frame only reads files and which filters apply to them. Spark has no public
    interface to it, so frames of a Connect session always take the plans that need no such knowledge.
    """
    return frame._jdf.queryExecution().optimizedPlan() if is_classic(frame.sparkSession) else None


def is_classic(spark: SparkSession) -> bool:
    """Whether the session runs beside its own Java driver, and not behind Spark Connect."""
    return not type(spark).__module__.startswith("pyspark.sql.connect")
