"""The state of a shard: one value in Spark's state store for all operators and scopes of the shard, and a
list of patches to it, one of each batch since, so that a batch writes what has changed and not what is there.

Rows come packed (``pack``): Python sees a few blobs for each shard and batch, not one row for each
event.  What a batch lets pass leaves as one blob, too.  Where conditions build on others under
another key, one such state follows the other: what a stage is not about passes it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from itertools import chain
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from ..pack import (
    HEARD_BEFORE,
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
from .patch import patch, patched
from .shard import Arranging, Packet, Post, Shard, as_arrived, stepped

MOST_PATCHES = 64
"""After so many batches a state is written anew: until then all patches are read with it."""
LITTLE = 1 << 16
"""So many bytes of patches are kept whatever the size of the state."""

STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
"""What a session must be set to: other stores do not know ``transformWithState``."""


class ShardProcessor(StatefulProcessor):
    """``stepped`` as Spark calls it at a stage: packed rows in, packed rows out."""

    def __init__(self, work: Work, stage: int, shards: int, arranged: Arranging = as_arrived) -> None:
        self._work, self._stage, self._shards, self._arranged = work, stage, shards, arranged

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._shard = handle.getValueState("shard", "state binary")
        self._patches = handle.getListState("patches", "patch binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], _timers: Any) -> Iterator[Row]:  # noqa: N802
        (number,) = key
        packets = [Packet(row.machine, row.part, bytes(row.events)) for row in rows]
        before = self._before()
        kept = Shard.from_bytes(before) if before else Shard()
        shard, said = stepped(self._work, Post(self._stage, number), kept, packets, self._arranged)
        self._keep(before, shard.to_bytes())
        later = {i for i, operator in self._work.operators.items() if operator.stage > self._stage}
        going_on = {*later, REPORT, TOLD, *([PROGRESS, PAST] if later else [])}
        going_on |= {HEARD_BEFORE - number for number in later}
        told = [Packet(TOLD, 0, as_bytes(said.told))] if len(said.told) else []
        for packet in (*packets, *told):
            if packet.machine in going_on:
                yield Row(machine=packet.machine, shard=number, part=packet.part, events=packet.events)
        operators = self._work.operators
        awaited = (unsaid(i, operators[i], at, self._shards) for i, at in said.unsaid.items())
        begun = {i: operators[i] for i in said.begun}
        held = told_before(begun, self._work.revisions, said.holding, self._shards)
        for row in chain(held, passed_on(operators, said.heard, self._shards), *awaited):
            yield Row(**row.to_pylist()[0])

    def _before(self) -> bytes:
        kept = self._shard.get()
        whole = b"" if kept is None else bytes(kept[0])
        patches = [bytes(raw) for (raw,) in self._patches.get()]
        self._room = max(len(whole), LITTLE) - sum(map(len, patches)) if len(patches) < MOST_PATCHES else 0
        return reduce(patched, patches, whole)

    def _keep(self, before: bytes, now: bytes) -> None:
        """Write what has changed, or all of it where that is no more, or much has changed since it was."""
        if before == now:
            return
        change = patch(before, now)
        if len(change) > min(self._room, len(now)):
            self._shard.update((now,))
            self._patches.clear()
        else:
            self._patches.appendValue((change,))

    def close(self) -> None:
        pass


def stated(
    rows: DataFrame, work: Work, stages: int, shards: int, arranged: Arranging = as_arrived
) -> DataFrame:
    """What packed rows become: a state operator for each stage, one after the other, leaves reports of
    readers and notifications."""
    for stage in range(stages):
        processor = ShardProcessor(work, stage, shards, arranged)
        rows = rows.groupBy("shard").transformWithState(processor, SPARK_SCHEMA, "append", "none")
    return rows
