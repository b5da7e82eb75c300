"""Events that can matter, packed: one row for each operator and shard instead of one for each event.

A shard is a stable hash of the key by which events meet, so that all events of a scope are in one place.
What is packed says of which topic it is, and where history is cut into slices of time, of which slice.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...compilers.operator import Keys, Operator
from ...compilers.slices import sliced
from ...machines.keys import checksums
from ...model.batch import from_ipc, reached, to_ipc, trimmed, with_progress
from ...model.instant import BEGINNING, Instant

SCHEMA = pa.schema(
    [
        pa.field("machine", pa.int32()),
        pa.field("shard", pa.int32()),
        pa.field("part", pa.int32()),
        pa.field("events", pa.binary()),
    ]
)
SPARK_SCHEMA = "machine int, shard int, part int, events binary"
"""``machine`` is the number of an operator; live, ``part`` tells in which order the readers' parts of a batch
arrived."""
REPORT, PROGRESS, TOLD, PAST, KEPT, HEARD_BEFORE = -1, -2, -3, -4, -5, -6
"""What stands for an operator in rows that report what was read, or how far time has come, that hold
notifications, or what the history says of scopes of which it does not follow what is so now, or what a shard
has kept at the stage that ``part`` says; from the last one downwards, that have what operators would have
heard of others in the history, by their numbers."""

_TOPIC, _SLICE = b"holdfast.topic", b"holdfast.slice"
_NOTHING = pa.RecordBatch.from_pylist([], pa.schema([]))


class Mine(NamedTuple):
    """Events of a topic that can matter to an operator."""

    number: int
    operator: Operator
    topic: str
    events: pa.RecordBatch


def packed(mine: Mine, shards: int, part: int = 0) -> Iterator[pa.RecordBatch]:
    """The events by shard, as bytes; those without a key go to the first."""
    number, operator, topic, batch = mine
    keys = operator.keys(topic, batch)
    found = np.append(_shards(keys, shards), np.int32(0))[keys.codes]
    for shard in np.unique(found):
        events = trimmed(batch.filter(pa.array(found == shard)))
        yield row(number, int(shard), to_ipc(events.replace_schema_metadata({_TOPIC: topic})), part)


def _shards(keys: Keys, shards: int) -> NDArray[np.int32]:
    """The shard of each key."""
    return (checksums(keys.array) % np.uint32(shards)).astype(np.int32)


def shards_of(keys: Sequence[str], shards: int) -> list[int]:
    """The shards in which events of some keys meet."""
    found: list[int] = _shards(Keys(np.arange(len(keys)), keys), shards).tolist()
    return found


def spread(mine: Mine, shards: int) -> Iterator[pa.RecordBatch]:
    """The same of history: by slices of time, where the machine need look only so far around an event."""
    number, operator, topic, batch = mine
    if operator.machine.margin is None:
        yield from packed(mine, shards)
        return
    for slice, events in sliced(operator.machine.margin, batch):
        noted = trimmed(events).replace_schema_metadata({_TOPIC: topic, _SLICE: str(slice)})
        yield row(number, slice % shards, to_ipc(noted))


def passed_on(
    operators: Mapping[int, Operator], heard: Mapping[str, pa.RecordBatch], shards: int
) -> Iterator[pa.RecordBatch]:
    """What conditions have said, packed for the operators of later stages that hear it."""
    for number, operator in operators.items():
        for topic in operator.heard & heard.keys():
            yield from packed(Mine(number, operator, topic, heard[topic]), shards)


def told_before(
    begun: Mapping[int, Operator],
    edited: Container[int],
    holding: Mapping[str, pa.RecordBatch],
    shards: int,
) -> Iterator[pa.RecordBatch]:
    """Who holds, packed for the operators that begin; those that take the place of others hear it before
    anything else."""
    for number, operator in begun.items():
        to = HEARD_BEFORE - number if number in edited else number
        for topic in operator.heard & holding.keys():
            yield from packed(Mine(to, operator, topic, holding[topic]), shards)


def reaching(number: int, operator: Operator, at: Instant, shards: int) -> Iterator[pa.RecordBatch]:
    """For each shard of an operator, that time has come so far."""
    return (row(number, shard, _moment(at)) for shard in range(shards if operator.key else 1))


def unsaid(number: int, operator: Operator, at: Instant, shards: int) -> Iterator[pa.RecordBatch]:
    """Wherever an operator hears others, that one of them has still to speak of a moment."""
    places = range(shards) if operator.keyed else _shards(operator.keys("", _NOTHING), shards)
    return (row(number, int(shard), _moment(at)) for shard in places)


def _moment(at: Instant) -> bytes:
    return to_ipc(with_progress(_NOTHING, 0, at))


def progress(reached: Mapping[str, Instant], shards: int, part: int = 0) -> Iterator[pa.RecordBatch]:
    """For each shard how far the time of some topics has come."""
    raw = msgspec.msgpack.encode(reached)
    return (row(PROGRESS, shard, raw, part) for shard in range(shards if reached else 0))


class Piece(NamedTuple):
    """What was packed; without a topic it only says how far time has come."""

    topic: str | None
    slice: int | None
    events: pa.RecordBatch

    @property
    def reached(self) -> Instant:
        """How far time has come with it."""
        at = reached(self.events)
        return BEGINNING if at is None else at


def unpacked(raw: bytes) -> Piece:
    """What was packed for an operator."""
    batch = from_ipc(raw)
    said = batch.schema.metadata or {}
    if _TOPIC not in said:
        return Piece(None, None, batch)
    slice = int(said[_SLICE]) if _SLICE in said else None
    return Piece(said[_TOPIC].decode(), slice, batch.replace_schema_metadata(None))


def as_bytes(table: pa.Table) -> bytes:
    """A table that has rows, as bytes."""
    return to_ipc(table.combine_chunks().to_batches()[0])


def row(number: int, shard: int, raw: bytes, part: int = 0) -> pa.RecordBatch:
    """One row as the data source gives it to Spark."""
    cells = [[number], [shard], [part], [raw]]
    arrays = [pa.array(cell, field.type) for cell, field in zip(cells, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
