"""Spark streaming: ``transformWithStateInPandas``, the bit of each sensor in Spark's state store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from .grouped import SCHEMA, walk

_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Warm(StatefulProcessor):
    """One bit for each sensor."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._warm = handle.getValueState("warm", "warm boolean")

    def handleInputRows(  # noqa: N802
        self, key: Any, rows: Iterator[pd.DataFrame], _: Any
    ) -> Iterator[pd.DataFrame]:
        readings = pd.concat(list(rows)).sort_values("time")
        before = self._warm.get() if self._warm.exists() else None
        found, statuses, warm = walk(readings["value"].tolist(), before is not None and before[0])
        self._warm.update((warm,))
        if found:
            times = readings["time"].iloc[found].tolist()
            yield pd.DataFrame({"time": times, "source": [key[0]] * len(times), "status": statuses})

    def close(self) -> None:
        pass


def run(spark: SparkSession, folder: Path, output: Path) -> None:
    own = spark.newSession()
    own.conf.set("spark.sql.streaming.stateStore.providerClass", _STORE)
    own.conf.set("spark.sql.shuffle.partitions", spark.sparkContext.defaultParallelism)  # not 200
    readings = (
        own.readStream.schema("time timestamp, source string, value double")
        .option("maxFilesPerTrigger", 1)
        .parquet(str(folder))
    )
    rows = readings.groupBy("source").transformWithStateInPandas(Warm(), SCHEMA, "append", "none")
    writer = rows.writeStream.option("checkpointLocation", f"{output}.checkpoint")
    writer.trigger(availableNow=True).start(str(output), format="parquet").awaitTermination()
