"""The state of a shard: one value in Spark's state store for all operators and scopes of the shard.

Rows come packed (``pack``): Python sees a few blobs for each shard and batch, not one row for each
event.  What a batch lets pass leaves as one blob, too.  Where conditions build on others under
another key, one such state follows the other: what a stage is not about passes it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from ..pack import PROGRESS, REPORT, SPARK_SCHEMA, TOLD, as_bytes, passed_on
from ..plan import Work
from .shard import Arranging, Packet, Post, Shard, as_arrived, stepped

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
    """``stepped`` as Spark calls it, at a stage which may be the last one."""

    def __init__(
        self, work: Work, stage: int, shards: int, *, is_last: bool, arranged: Arranging = as_arrived
    ) -> None:
        self._work, self._stage, self._shards = work, stage, shards
        self._is_last, self._arranged = is_last, arranged

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._shard = handle.getValueState("shard", "state binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002, N802, N803
        (number,) = key
        packets = [Packet(row.machine, row.part, bytes(row.events)) for row in rows]
        kept = self._shard.get()
        shard = Shard() if kept is None else msgspec.msgpack.decode(bytes(kept[0]), type=Shard)
        shard, said = stepped(self._work, Post(self._stage, number), shard, packets, self._arranged)
        self._shard.update((msgspec.msgpack.encode(shard),))
        if len(said.told):
            packets.append(Packet(TOLD, 0, as_bytes(said.told)))
        yield from self._told(number, packets) if self._is_last else self._passed_on(number, packets)
        for row in passed_on(self._work.operators, said.heard, self._shards):
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
        later = {i for i, operator in self._work.operators.items() if operator.stage > self._stage}
        for packet in packets:
            if packet.machine in later or packet.machine in (REPORT, PROGRESS, TOLD):
                yield Row(machine=packet.machine, shard=number, part=packet.part, events=packet.events)

    def close(self) -> None:
        pass


def stated(
    rows: DataFrame, work: Work, stages: int, shards: int, arranged: Arranging = as_arrived
) -> DataFrame:
    """What packed rows become: a state operator for each stage, one after the other."""
    for stage in range(stages):
        is_last = stage == stages - 1
        processor = ShardProcessor(work, stage, shards, is_last=is_last, arranged=arranged)
        schema = OUTPUT if is_last else SPARK_SCHEMA
        rows = rows.groupBy("shard").transformWithState(processor, schema, "append", "none")
    return rows
