"""The stages of a streaming query, as stateful operators of Spark.

Each stage consumes and emits packets, a few per shard and batch, not one row per event. A stage passes on the
packets that concern later stages.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import chain
from typing import Any

import msgspec
from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from ..fingerprint import Fingerprint
from ..job import Job
from ..pack import (
    SPARK_SCHEMA,
    Packet,
    PacketKind,
    encode_table,
    pack_derived,
    pack_pending,
    pack_standings,
)
from .shard import Arrange, Location, in_arrival_order, process_batch
from .store import ShardStore

STORE_SETTINGS = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
"""Settings that a session needs: `transformWithState` works with this state store only."""


class ShardProcessor(StatefulProcessor):
    """Runs one stage of a job. Spark calls it with the packets of a micro-batch for one shard."""

    def __init__(
        self,
        job: Job,
        stage: int,
        shards: int,
        arrange: Arrange = in_arrival_order,
        fingerprint: Fingerprint | None = None,
    ) -> None:
        self._job, self._stage, self._shards, self._arrange = job, stage, shards, arrange
        self._fingerprint = fingerprint

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Create the store of the shard from Spark's state variables."""
        self._store = ShardStore(
            handle.getValueState("shard", "state binary"),
            handle.getMapState("changes", "number int", "change binary"),
            handle.getValueState("head", "head binary"),
            self._fingerprint,
        )

    def handleInputRows(self, key: Any, rows: Iterator[Row], _timers: Any) -> Iterator[Row]:  # noqa: N802
        """Process the packets of a micro-batch for one shard.

        Yields the packets for later stages and the driver. Spark calls this method.
        """
        (shard,) = key
        packets = [Packet(PacketKind(row.kind), row.operator, row.part, bytes(row.payload)) for row in rows]
        for packet in packets:
            if packet.kind == PacketKind.SHARD_STATE and packet.part == self._stage:
                self._store.restore(packet.payload)
        cached = self._store.load(self._job)
        location = Location(self._stage, shard)
        after, output = process_batch(self._job, location, cached.shard, packets, self._arrange)
        self._store.save(self._job, cached, after)
        yield from (_row(packet, shard) for packet in packets if self._concerns_later_stages(packet))
        if len(output.notifications):
            payload = encode_table(output.notifications)
            yield _row(Packet(PacketKind.NOTIFICATIONS, None, 0, payload), shard)
        operators = self._job.operators
        started = {i: operators[i] for i in output.started}
        batches = chain(
            pack_standings(started, self._job.revisions, output.active, self._shards),
            pack_derived(operators, output.derived, self._shards),
            *(pack_pending(i, operators[i], at, self._shards) for i, at in output.pending.items()),
        )
        for batch in batches:
            yield Row(**batch.to_pylist()[0])

    @cached_property
    def _later(self) -> frozenset[int]:
        """The numbers of the operators of later stages."""
        return frozenset(i for i, o in self._job.operators.items() if o.links.stage > self._stage)

    def _concerns_later_stages(self, packet: Packet) -> bool:
        match packet.kind:
            case PacketKind.EVENTS | PacketKind.HISTORY:
                return packet.operator in self._later
            case PacketKind.WATERMARKS | PacketKind.REVISION:
                return bool(self._later)
            case PacketKind.SHARD_STATE:
                return packet.part > self._stage
        return True

    def close(self) -> None:
        pass


def _row(packet: Packet, shard: int) -> Row:
    kind, operator, part, payload = msgspec.structs.astuple(packet)
    return Row(kind=int(kind), operator=operator, shard=shard, part=part, payload=payload)


def run_stages(
    packets: DataFrame,
    job: Job,
    stages: int,
    shards: int,
    arrange: Arrange = in_arrival_order,
    fingerprint: Fingerprint | None = None,
) -> DataFrame:
    """Run a job on a streaming frame of packets, with one stateful operator per stage.

    The resulting packets are the reports of readers and the notifications. With a `fingerprint`, a state that
    was written with another fingerprint is refused.
    """
    for stage in range(stages):
        processor = ShardProcessor(job, stage, shards, arrange, fingerprint)
        packets = packets.groupBy("shard").transformWithState(processor, SPARK_SCHEMA, "append", "none")
    return packets
