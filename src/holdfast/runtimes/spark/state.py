"""The state of a shard: one value in Spark's state store for all machines and scopes of the shard.

Rows come packed (``pack``): Python sees a few blobs for each shard and batch, not one row for each
event.  What a batch lets pass leaves as one blob, too.  Where components build on others under
another key, one such state follows the other: what a stage is not about passes it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from ...model.topic import Topic
from .pack import PROGRESS, REPORT, SPARK_SCHEMA, TOLD, as_bytes
from .shard import passed_on
from .stepping import Arranging, Machines, Packet, Shard, as_arrived, stepped

STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
"""What a session must be set to: other stores do not know ``transformWithState``."""

OUTPUT = "shard int, kind string, payload binary"
NOTIFICATIONS, READ = "notifications", "read"
"""The kinds of rows that leave: notifications as an Arrow table, and what a reader said."""


class ShardProcessor(StatefulProcessor):
    """``stepped`` as Spark calls it, at one of so many stages.  ``machines`` gives the machines, once in
    each worker."""

    def __init__(
        self,
        machines: Callable[[], Machines],
        topics: Sequence[Topic],
        arranged: Arranging = as_arrived,
        *,
        stage: int = 0,
        stages: int = 1,
        shards: int = 1,
    ) -> None:
        self._made, self._topics, self._arranged = machines, tuple(topics), arranged
        self._stage, self._is_last, self._shards = stage, stage == stages - 1, shards

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._machines = self._made()
        self._shard = handle.getValueState("shard", "state binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        (number,) = key
        packets = [Packet(row.machine, row.part, bytes(row.events)) for row in rows]
        kept = self._shard.get()
        shard = Shard() if kept is None else msgspec.msgpack.decode(bytes(kept[0]), type=Shard)
        shard, said = stepped(
            self._machines,
            self._topics,
            shard,
            packets,
            self._arranged,
            stage=self._stage,
            is_first=number == 0,
        )
        self._shard.update((msgspec.msgpack.encode(shard),))
        if len(said.told):
            packets.append(Packet(TOLD, 0, as_bytes(said.told)))
        yield from self._told(number, packets) if self._is_last else self._passed_on(number, packets)
        for row in passed_on(self._machines.operators, said.heard, self._shards):
            yield Row(**row.to_pylist()[0])

    @staticmethod
    def _told(number: int, packets: Sequence[Packet]) -> Iterator[Row]:
        """What leaves the last stage."""
        kinds = {REPORT: READ, TOLD: NOTIFICATIONS}
        for packet in packets:
            if packet.machine in kinds:
                yield Row(shard=number, kind=kinds[packet.machine], payload=packet.events)

    def _passed_on(self, number: int, packets: Sequence[Packet]) -> Iterator[Row]:
        """What a stage leaves to those after it."""
        operators = self._machines.operators
        later = {number for number, operator in operators.items() if operator.stage > self._stage}
        for packet in packets:
            if packet.machine in later or packet.machine in (REPORT, PROGRESS, TOLD):
                yield Row(machine=packet.machine, shard=number, part=packet.part, events=packet.events)

    def close(self) -> None:
        pass


def stated(
    rows: DataFrame,
    machines: Callable[[], Machines],
    topics: Sequence[Topic],
    arranged: Arranging = as_arrived,
    *,
    stages: int,
    shards: int,
) -> DataFrame:
    """What packed rows become: a state operator for each stage, one after the other."""
    for stage in range(stages):
        processor = ShardProcessor(machines, topics, arranged, stage=stage, stages=stages, shards=shards)
        schema = OUTPUT if stage == stages - 1 else SPARK_SCHEMA
        rows = rows.groupBy("shard").transformWithState(processor, schema, "append", "none")
    return rows
