"""The state of a shard: one value in Spark's state store for all machines and scopes of the shard.

Rows come packed (``pack``): Python sees a few blobs for each shard and batch, not one row for each
event.  What a batch lets pass leaves as one blob, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from ...errors import UsageError
from ...machines.ordered import Ordered
from ...model.batch import concatenate, from_events, from_ipc, to_ipc
from ...model.instant import BEGINNING, NEVER, Instant
from ...model.topic import Topic
from .checkpoint import Runner
from .notice import schema_of, table_of
from .pack import PROGRESS, REPORT

STORE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    )
}
"""What a session must be set to: other stores do not know ``transformWithState``."""

OUTPUT = "shard int, kind string, payload binary"
NOTIFICATIONS, READ = "notifications", "read"
"""The kinds of rows that leave: notifications as an Arrow table, and what a reader said."""


class _Kept(msgspec.Struct):
    prints: tuple[str, ...]
    state: bytes


class Shard(msgspec.Struct):
    """What a shard remembers: the machines' states by number, and how far time has come."""

    machines: dict[int, _Kept] = {}
    reached: dict[str, Instant] = {}


class Packet(msgspec.Struct):
    """A packed row that has arrived."""

    machine: int
    part: int
    events: bytes


Arranging = Callable[[pa.RecordBatch], pa.RecordBatch]
"""The order in which a shard takes the events of a batch, given as they arrived."""


def as_arrived(events: pa.RecordBatch) -> pa.RecordBatch:
    return events


def stepped(
    runners: Sequence[Runner],
    topics: Sequence[Topic],
    shard: Shard,
    packets: Iterable[Packet],
    arranged: Arranging = as_arrived,
) -> tuple[Shard, pa.Table]:
    """Take a batch's packets: the shard afterwards, and its notifications as each machine gave them."""
    arrived = sorted(packets, key=lambda packet: packet.part)
    before, shard.reached = dict(shard.reached), _advanced(shard.reached, arrived)
    events: dict[int, list[pa.RecordBatch]] = {}
    for packet in arrived:
        if packet.machine >= 0:
            events.setdefault(packet.machine, []).append(from_ipc(packet.events))
    machines, tables = {}, []
    for runner in runners:
        mine = events.get(runner.number)
        known = shard.machines.get(runner.number)
        waits = runner.group.wait is not None
        if mine is None and not (waits and before != shard.reached):
            if known is not None:
                machines[runner.number] = known
            continue
        topic, machine = runner.group.topic, runner.group.machine
        state = _state(runner, known, before.get(topic.name, BEGINNING))
        batch = arranged(concatenate(mine)) if mine else from_events(topic, [])
        state, passed = machine.step(state, batch, _until(runner, shard.reached))
        machines[runner.number] = _Kept(runner.prints, machine.to_bytes(state))
        if len(passed):
            tables.append(table_of(runner.group, topics, passed))
    shard.machines = machines
    return shard, pa.concat_tables(tables) if tables else schema_of(topics).empty_table()


def _advanced(reached: dict[str, Instant], arrived: Iterable[Packet]) -> dict[str, Instant]:
    latest = dict(reached)
    for packet in arrived:
        if packet.machine == PROGRESS:
            told = msgspec.msgpack.decode(packet.events, type=dict[str, int])
            latest.update({topic: max(at, latest.get(topic, BEGINNING)) for topic, at in told.items()})
    return latest


def _state(runner: Runner, known: _Kept | None, reached: Instant) -> Any:
    """The machine's state; one that starts late starts where time has come to for all."""
    machine = runner.group.machine
    if known is not None:
        if not set(runner.prints) <= set(known.prints):
            names = ", ".join(chain.from_iterable(runner.group.conditions))
            raise UsageError(f"the definition has changed ({names}): start it with a new checkpoint")
        return machine.from_bytes(known.state, [known.prints.index(print) for print in runner.prints])
    state = machine.initial()
    reached = max(reached, runner.reached)
    if isinstance(machine, Ordered) and reached > BEGINNING:
        state, _ = machine.advance(state, _behind(reached, runner.group.wait))
    return state


def _until(runner: Runner, reached: dict[str, Instant]) -> Instant:
    return _behind(reached.get(runner.group.topic.name, BEGINNING), runner.group.wait)


def _behind(reached: Instant, wait: int | None) -> Instant:
    return reached if reached in (BEGINNING, NEVER) else reached - (wait or 0)


class ShardProcessor(StatefulProcessor):
    """``stepped`` as Spark calls it.  ``runners`` gives the machines, once in each worker."""

    def __init__(
        self,
        runners: Callable[[], Sequence[Runner]],
        topics: Sequence[Topic],
        arranged: Arranging = as_arrived,
    ) -> None:
        self._runners, self._topics, self._arranged = runners, tuple(topics), arranged

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._machines = self._runners()
        self._shard = handle.getValueState("shard", "state binary")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803
        (number,) = key
        packets = [Packet(row.machine, row.part, bytes(row.events)) for row in rows]
        for packet in packets:
            if packet.machine == REPORT:
                yield Row(shard=number, kind=READ, payload=packet.events)
        kept = self._shard.get()
        shard = Shard() if kept is None else msgspec.msgpack.decode(bytes(kept[0]), type=Shard)
        shard, passed = stepped(self._machines, self._topics, shard, packets, self._arranged)
        self._shard.update((msgspec.msgpack.encode(shard),))
        if len(passed):
            yield Row(
                shard=number, kind=NOTIFICATIONS, payload=to_ipc(passed.combine_chunks().to_batches()[0])
            )

    def close(self) -> None:
        pass
