"""Entries as bytes, each with a checksum: what a crash tore is known by it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple
from zlib import crc32

import msgspec
import pyarrow as pa

from ...errors import InputError
from ...model.batch import from_ipc
from ...model.instant import Instant

_HEAD = struct.Struct("<IIQB")  # length of the body, checksum, position, kind
_CHECKED = struct.Struct("<IQB")
_TOPIC = b"holdfast.topic"
_COMPRESSED_FROM = 64
"""Rows from which compressing a batch pays."""

ORIGIN = "origin"
"""A digest of the message that brought a reading, so that one that is sent again is known; 0 is none."""


class Readings(NamedTuple):
    """Readings of one topic, in the order of their arrival."""

    topic: str
    batch: pa.RecordBatch


class Advance(NamedTuple):
    """The wall clock lets the event time of topics come so far."""

    until: dict[str, Instant]


class Pause(NamedTuple):
    """Readings of these topics may wait in a feed that is not connected or has a backlog."""

    topics: tuple[str, ...] = ()


class Definition(msgspec.Struct, frozen=True):
    """From here on another definition runs; what is named in ``restart`` forgets what it knew.  ``files`` are
    those that it names, as they are kept; others are read where they are."""

    text: str
    restart: tuple[str, ...] = ()
    at: Instant = 0
    files: dict[str, str] = {}


Entry = Readings | Advance | Pause | Definition


def span(entry: Entry) -> int:
    """How many positions an entry takes: one for each reading."""
    return len(entry.batch) if isinstance(entry, Readings) else 1


def to_bytes(position: int, entry: Entry) -> bytes:
    """The entry as it is appended."""
    kind, body = _encoded(entry)
    checked = _CHECKED.pack(len(body), position, kind)
    return _HEAD.pack(len(body), crc32(body, crc32(checked)), position, kind) + body


def _encoded(entry: Entry) -> tuple[int, bytes]:
    match entry:
        case Readings(topic, batch):
            return 1, _ipc(batch.replace_schema_metadata({_TOPIC: topic.encode()}))
        case Advance(until):
            return 4, msgspec.json.encode(until)
        case Pause(topics):
            return 5, msgspec.json.encode(topics)
        case Definition():
            return 3, msgspec.json.encode(entry)


def _ipc(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd" if len(batch) >= _COMPRESSED_FROM else None)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    raw: bytes = sink.getvalue().to_pybytes()
    return raw


def _decoded(kind: int, body: bytes) -> Entry:
    match kind:
        case 1:
            batch = from_ipc(body)
            return Readings(batch.schema.metadata[_TOPIC].decode(), batch.replace_schema_metadata(None))
        case 3:
            return msgspec.json.decode(body, type=Definition)
        case 4:
            return Advance(msgspec.json.decode(body, type=dict[str, int]))
        case 5:
            return Pause(msgspec.json.decode(body, type=tuple[str, ...]))
    raise InputError(f"the log has an entry of kind {kind}, which this version of Holdfast does not know")


class Framed(NamedTuple):
    """An entry, where it stands, and where its bytes end."""

    position: int
    entry: Entry
    end: int


def entries(raw: bytes, offset: int = 0) -> Iterator[Framed]:
    """The entries that are whole, up to the first that is not."""
    while len(raw) - offset >= _HEAD.size:
        length, checksum, position, kind = _HEAD.unpack_from(raw, offset)
        start, offset = offset + _HEAD.size, offset + _HEAD.size + length
        if len(raw) < offset:
            return
        body = raw[start:offset]
        if crc32(body, crc32(_CHECKED.pack(length, position, kind))) != checksum:
            return
        yield Framed(position, _decoded(kind, body), offset)
