"""The state of a shard: one value in Spark's state store for all operators and scopes of the shard, and
beside it what each batch has changed since, so that a batch reads and writes what has changed and not what is
there (``store``).

Rows come packed (``pack``): Python sees a few blobs for each shard and batch, not one row for each
event.  What a batch lets pass leaves as one blob, too.  Where conditions build on others under
another key, one such state follows the other: what a stage is not about passes it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from ..fingerprint import Fingerprint
from ..pack import (
    HEARD_BEFORE,
    KEPT,
    PAST,
    PROGRESS,
    REPORT,
    SPARK_SCHEMA,
    TOLD,
    as_bytes,
    passed_on,
    told_before,
    unsaid,
)
from ..plan import Work
from .shard import Arranging, Packet, Post, as_arrived, stepped
from .store import Store

STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
"""What a session must be set to: other stores do not know ``transformWithState``."""


class ShardProcessor(StatefulProcessor):
    """``stepped`` as Spark calls it at a stage: packed rows in, packed rows out."""

    def __init__(
        self,
        work: Work,
        stage: int,
        shards: int,
        arranged: Arranging = as_arrived,
        fingerprint: Fingerprint | None = None,
    ) -> None:
        self._work, self._stage, self._shards, self._arranged = work, stage, shards, arranged
        self._fingerprint = fingerprint

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._store = Store(
            handle.getValueState("shard", "state binary"),
            handle.getMapState("changes", "number int", "change binary"),
            handle.getValueState("head", "head binary"),
            handle.getListState("patches", "patch binary"),
            self._fingerprint,
        )

    def handleInputRows(self, key: Any, rows: Iterator[Row], _timers: Any) -> Iterator[Row]:  # noqa: N802
        (number,) = key
        packets = [Packet(row.machine, row.part, bytes(row.events)) for row in rows]
        for packet in packets:
            if packet.machine == KEPT and packet.part == self._stage:
                self._store.take(packet.events)
        known = self._store.known(self._work)
        shard, said = stepped(self._work, Post(self._stage, number), known.shard, packets, self._arranged)
        self._store.keep(self._work, known, shard)
        later = {i for i, operator in self._work.operators.items() if operator.stage > self._stage}
        going_on = {*later, REPORT, TOLD, *([PROGRESS, PAST] if later else [])}
        going_on |= {HEARD_BEFORE - number for number in later}
        told = [Packet(TOLD, 0, as_bytes(said.told))] if len(said.told) else []
        for packet in (*packets, *told):
            if packet.machine in going_on or (packet.machine == KEPT and packet.part > self._stage):
                yield Row(machine=packet.machine, shard=number, part=packet.part, events=packet.events)
        operators = self._work.operators
        awaited = (unsaid(i, operators[i], at, self._shards) for i, at in said.unsaid.items())
        begun = {i: operators[i] for i in said.begun}
        held = told_before(begun, self._work.revisions, said.holding, self._shards)
        for row in chain(held, passed_on(operators, said.heard, self._shards), *awaited):
            yield Row(**row.to_pylist()[0])

    def close(self) -> None:
        pass


def stated(
    rows: DataFrame,
    work: Work,
    stages: int,
    shards: int,
    arranged: Arranging = as_arrived,
    fingerprint: Fingerprint | None = None,
) -> DataFrame:
    """What packed rows become: a state operator for each stage, one after the other, leaves reports of
    readers and notifications.  With a ``fingerprint`` states that have another one are refused."""
    for stage in range(stages):
        processor = ShardProcessor(work, stage, shards, arranged, fingerprint)
        rows = rows.groupBy("shard").transformWithState(processor, SPARK_SCHEMA, "append", "none")
    return rows
