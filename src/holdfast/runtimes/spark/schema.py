"""The columns of notifications as Spark types."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ...model.topic import Topic
from ..table import schema_of


def spark_schema(topics: Sequence[Topic]) -> StructType:
    """Return the columns of the notifications of some topics, as Spark types."""
    return from_arrow_schema(schema_of(topics))
