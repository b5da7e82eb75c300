"""Packets: the rows that travel between Spark's readers and shards, and the encoding of their payload.

Events are packed into one row per operator and shard, instead of one row per event. A shard is a stable hash
of the key by which an operator groups its events, so all events of a scope are in one shard. The column
``kind`` distinguishes events from control packets: reports of readers, watermarks, and states that move to a
new generation.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...engine.key_codes import checksums
from ...engine.operator import Keys, Operator
from ...engine.slices import slices_of
from ...model.batch import from_ipc, latest_time, to_ipc, trim_dictionaries, with_totals
from ...model.instant import BEGINNING, Instant


class PacketKind(IntEnum):
    """The kind of a packet's payload. Packets of the kinds `EVENTS` and `HISTORY` belong to one operator."""

    EVENTS = 0
    """Events for an operator, or only a watermark for it (`unpack`)."""
    REPORT = 1
    """The report of a reader (`reading.Report`)."""
    WATERMARKS = 2
    """The watermark of each topic as a reader knows it."""
    NOTIFICATIONS = 3
    """Notifications as a table, on their way to the driver."""
    REVISION = 4
    """States of revised operators, rebuilt from the files that were read before (`streaming.revision`)."""
    SHARD_STATE = 5
    """The stored state of a shard, moved from an earlier generation; `part` is its stage."""
    HISTORY = 6
    """Derived events of the past for a revised operator, which it processes before all others."""


class Packet(msgspec.Struct, frozen=True):
    """A packet after its arrival in a shard."""

    kind: PacketKind
    operator: int | None
    part: int
    payload: bytes


SCHEMA = pa.schema(
    [
        pa.field("kind", pa.int32()),
        pa.field("operator", pa.int32()),
        pa.field("shard", pa.int32()),
        pa.field("part", pa.int32()),
        pa.field("payload", pa.binary()),
    ]
)
SPARK_SCHEMA = "kind int, operator int, shard int, part int, payload binary"
"""The columns of packets: ``kind`` is a `PacketKind`, ``operator`` the number of the operator that the packet
belongs to, if any. In a stream ``part`` gives the order in which the parts of a batch arrived."""

_TOPIC, _SLICE = b"holdfast.topic", b"holdfast.slice"
_NO_EVENTS = pa.RecordBatch.from_pylist([], pa.schema([]))


class OperatorEvents(NamedTuple):
    """Relevant events of one topic for one operator."""

    number: int
    operator: Operator
    topic: str
    events: pa.RecordBatch


def pack(
    batch: OperatorEvents, shards: int, part: int = 0, kind: PacketKind = PacketKind.EVENTS
) -> Iterator[pa.RecordBatch]:
    """Yield the events as packets, by the shard of their key. Events without a key go to the first shard."""
    number, operator, topic, events = batch
    keys = operator.keys(topic, events)
    shard_of_row = np.append(_shards(keys, shards), np.int32(0))[keys.codes]
    for shard in np.unique(shard_of_row):
        rows = trim_dictionaries(events.filter(pa.array(shard_of_row == shard)))
        payload = to_ipc(rows.replace_schema_metadata({_TOPIC: topic}))
        yield packet_row(kind, int(shard), payload, operator=number, part=part)


def _shards(keys: Keys, shards: int) -> NDArray[np.int32]:
    return (checksums(keys.array) % np.uint32(shards)).astype(np.int32)


def shards_of(keys: Sequence[str], shards: int) -> list[int]:
    """Return the shard of each key, by a hash that is the same in all processes."""
    numbers: list[int] = _shards(Keys(np.arange(len(keys)), keys), shards).tolist()
    return numbers


def pack_history(batch: OperatorEvents, shards: int) -> Iterator[pa.RecordBatch]:
    """Yield events of a complete history as packets.

    They are packed by slices of time if the machine has a lookaround, otherwise by key. An operator with a
    lookaround has no state that outlives a slice, so different shards can process its slices even if it has
    no key.
    """
    number, operator, topic, events = batch
    if operator.machine.traits.lookaround is None:
        yield from pack(batch, shards)
        return
    for slice, rows in slices_of(operator.machine.traits.lookaround, events):
        labeled = trim_dictionaries(rows).replace_schema_metadata({_TOPIC: topic, _SLICE: str(slice)})
        yield packet_row(PacketKind.EVENTS, slice % shards, to_ipc(labeled), operator=number)


def pack_derived(
    operators: Mapping[int, Operator], derived: Mapping[str, pa.RecordBatch], shards: int
) -> Iterator[pa.RecordBatch]:
    """Yield derived events as packets for the operators of later stages that consume them."""
    for number, operator in operators.items():
        for topic in operator.upstream_topics & derived.keys():
            yield from pack(OperatorEvents(number, operator, topic, derived[topic]), shards)


def pack_standings(
    started: Mapping[int, Operator],
    revised: Container[int],
    active: Mapping[str, pa.RecordBatch],
    shards: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the active scopes of upstreams as packets for the operators that start in this batch.

    An operator that replaces a former one (`revised`) receives them as history, before all other events.
    """
    for number, operator in started.items():
        kind = PacketKind.HISTORY if number in revised else PacketKind.EVENTS
        for topic in operator.upstream_topics & active.keys():
            yield from pack(OperatorEvents(number, operator, topic, active[topic]), shards, kind=kind)


def pack_watermark(number: int, operator: Operator, at: Instant, shards: int) -> Iterator[pa.RecordBatch]:
    """Return a watermark for an operator as packets, one for each of its shards."""
    places = range(shards if operator.key else 1)
    return (_watermark_row(number, shard, at) for shard in places)


def pack_pending(number: int, operator: Operator, at: Instant, shards: int) -> Iterator[pa.RecordBatch]:
    """Return packets with the earliest time for which an upstream may still emit.

    They are for the shards that wait for this upstream.
    """
    places = range(shards) if operator.keyed else _shards(operator.keys("", _NO_EVENTS), shards)
    return (_watermark_row(number, int(shard), at) for shard in places)


def _watermark_row(number: int, shard: int, at: Instant) -> pa.RecordBatch:
    payload = to_ipc(with_totals(_NO_EVENTS, 0, at))
    return packet_row(PacketKind.EVENTS, shard, payload, operator=number)


def pack_watermarks(
    watermarks: Mapping[str, Instant], shards: int, part: int = 0
) -> Iterator[pa.RecordBatch]:
    """Return the watermarks of topics as packets, one for each shard.

    Without watermarks there are no packets.
    """
    payload = msgspec.msgpack.encode(watermarks)
    places = range(shards if watermarks else 0)
    return (packet_row(PacketKind.WATERMARKS, shard, payload, part=part) for shard in places)


class OperatorInput(NamedTuple):
    """The decoded payload of an `EVENTS` or `HISTORY` packet. Without a topic it is only a watermark."""

    topic: str | None
    slice: int | None
    events: pa.RecordBatch

    @property
    def watermark(self) -> Instant:
        """The event time up to which the packet is complete."""
        at = latest_time(self.events)
        return BEGINNING if at is None else at


def unpack(payload: bytes) -> OperatorInput:
    """Decode the payload of a packet that belongs to an operator."""
    batch = from_ipc(payload)
    labels = batch.schema.metadata or {}
    if _TOPIC not in labels:
        return OperatorInput(None, None, batch)
    slice = int(labels[_SLICE]) if _SLICE in labels else None
    return OperatorInput(labels[_TOPIC].decode(), slice, batch.replace_schema_metadata(None))


def encode_table(table: pa.Table) -> bytes:
    """Encode a table that has at least one row as Arrow IPC bytes."""
    return to_ipc(table.combine_chunks().to_batches()[0])


def packet_row(
    kind: PacketKind, shard: int, payload: bytes, *, operator: int | None = None, part: int = 0
) -> pa.RecordBatch:
    """Return a packet as a batch of one row, as the data source passes it to Spark."""
    cells = [[int(kind)], [operator], [shard], [part], [payload]]
    arrays = [pa.array(cell, field.type) for cell, field in zip(cells, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
