"""The encoding of log entries as bytes. A damaged byte costs at most its own entry.

Each entry stands between two copies of a head. A segment starts with the log's random number, which marks
every head. Clients do not know the number, so no text in an entry can be mistaken for a head when a reader
searches for the next one. With the second copy, a damaged head costs nothing, and an entry can be found from
its end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import NamedTuple
from zlib import crc32

import msgspec
import pyarrow as pa

from ...errors import UsageError
from ...model.batch import from_ipc
from ...model.instant import Instant

_FORMAT = b"HFlog\x02\r\n"
_SEGMENT = struct.Struct("<8s8sQQ")  # format, the log's number, first position, end of the log before it
_HEAD = struct.Struct("<8sIIQIBB")  # mark, length, checksum of the body, position, span, kind, flags
_CHECKSUM = struct.Struct("<I")
_SEGMENT_SIZE = _SEGMENT.size + _CHECKSUM.size
_SIZE = _HEAD.size + _CHECKSUM.size
NUMBER_SIZE = 8
_READINGS, _ADVANCE, _DEFINITION, _PAUSE = 1, 2, 3, 4
_LAST, _CLOSING = 1, 2
"""Flags of a head: its entry is the last of a group; it stands after its entry."""
_TOPIC, _REQUEST = b"holdfast.topic", b"holdfast.request"
_COMPRESSED_FROM = 64
"""Rows from which compressing a batch pays."""

ORIGIN = "origin"
"""The column with a digest of the message of each reading, by which repetitions are recognized; 0 is none."""


class Readings(NamedTuple):
    """A log entry with readings of one topic, in order of arrival.

    ``request`` identifies the request with an idempotency key that delivered them; it is empty without a key.
    """

    topic: str
    batch: pa.RecordBatch
    request: bytes = b""


class Advance(NamedTuple):
    """A log entry by which the wall clock advances the event time of topics."""

    until: dict[str, Instant]


class Pause(NamedTuple):
    """A log entry that pauses timers over ``topics``, whose feeds are disconnected or have a backlog.

    Timers over all other topics resume. ``until`` is the event time to which the wall clock advances their
    topics.
    """

    topics: tuple[str, ...] = ()
    until: Mapping[str, Instant] = MappingProxyType({})


class DefinitionEntry(msgspec.Struct, frozen=True):
    """A log entry from which on another definition runs.

    Conditions in ``restart`` start without state. ``files`` has the digests of the copies of files that the
    definition names; other files are read in place.
    """

    text: str
    restart: tuple[str, ...] = ()
    at: Instant = 0
    files: dict[str, str] = {}


class Unreadable(NamedTuple):
    """A log entry that cannot be read and takes ``span`` positions.

    Its bytes are damaged or missing (``is_damage``), or were never a valid entry.
    """

    span: int
    reason: str
    is_damage: bool = True


Entry = Readings | Advance | Pause | DefinitionEntry | Unreadable


def span(entry: Entry) -> int:
    """Return how many positions an entry takes: one for each reading, and one for any other entry."""
    match entry:
        case Readings(_, batch):
            return len(batch)
        case Unreadable(span):
            return span
    return 1


def require_valid(entry: Entry) -> None:
    """Raise an error if a column is malformed, for example by invalid UTF-8 or offsets out of range."""
    if isinstance(entry, Readings):
        entry.batch.validate(full=True)


# --- writing ------------------------------------------------------------------------------------------------


def header(number: bytes, first: int, follows: int) -> bytes:
    """Return the header of a segment, which starts at position ``first`` of the log.

    ``follows`` is the position at which the log before the segment ended.
    """
    return _with_checksum(_SEGMENT.pack(_FORMAT, number, first, follows))


def to_bytes(number: bytes, position: int, entry: Entry, *, is_last: bool = True) -> bytes:
    """Encode an entry. ``is_last`` marks the end of a group, which is durable only as a whole."""
    kind, body = _encode(entry)
    flags = _LAST if is_last else 0
    known = number, len(body), crc32(body), position, span(entry), kind
    return (
        _with_checksum(_HEAD.pack(*known, flags))
        + body
        + _with_checksum(_HEAD.pack(*known, flags | _CLOSING))
    )


def _with_checksum(raw: bytes) -> bytes:
    return raw + _CHECKSUM.pack(crc32(raw))


def _encode(entry: Entry) -> tuple[int, bytes]:
    match entry:
        case Readings(topic, batch, request):
            known = {_TOPIC: topic.encode(), **({_REQUEST: request} if request else {})}
            return _READINGS, _ipc(batch.replace_schema_metadata(known))
        case Advance(until):
            return _ADVANCE, msgspec.json.encode(until)
        case Pause(topics, until):
            return _PAUSE, msgspec.json.encode((topics, dict(until)))
        case DefinitionEntry():
            return _DEFINITION, msgspec.json.encode(entry)
        case Unreadable():
            raise AssertionError("what cannot be read is not written")


def _ipc(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd" if len(batch) >= _COMPRESSED_FROM else None)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    raw: bytes = sink.getvalue().to_pybytes()
    return raw


# --- reading ------------------------------------------------------------------------------------------------


class Header(NamedTuple):
    """The header of a segment: the log's number, the first position, and where the log before it ended."""

    number: bytes
    first: int
    follows: int


class LogRecord(NamedTuple):
    """The bytes of an entry in a segment. ``body`` is ``None`` if they are damaged."""

    position: int
    span: int
    kind: int
    is_last: bool
    body: memoryview | None
    start: int
    end: int

    @property
    def after(self) -> int:
        return self.position + self.span


class SegmentScan(NamedTuple):
    """The result of scanning a segment: its header, its records, and the sizes of its parts."""

    header: Header | None
    """Missing if it is damaged, or not written yet."""
    number: bytes
    """The log's number, also if the header is damaged; empty where it is not known."""
    records: list[LogRecord]
    after: int
    """The position after the last record."""
    begin: int
    """The offset of the first record; 0 if the header is incomplete."""
    end: int
    """The offset after the last record; what follows is incomplete or damaged."""
    size: int


class _Head(NamedTuple):
    length: int
    checksum: int
    position: int
    span: int
    kind: int
    flags: int


def scan(raw: bytes, first: int) -> SegmentScan:
    """Find the records of a segment. After damaged bytes the search continues with the next head."""
    if len(raw) < _SEGMENT_SIZE:
        return SegmentScan(None, b"", [], first, 0, 0, len(raw))
    head = _header(raw)
    mark = head.number if head is not None else raw[_SEGMENT_SIZE : _SEGMENT_SIZE + NUMBER_SIZE]
    is_marked = head is not None or _head_at(raw, _SEGMENT_SIZE, mark) is not None
    if not is_marked and raw[: len(_FORMAT)] != _FORMAT and len(raw) > _SEGMENT_SIZE:
        raise UsageError(
            "this log was written by another version of Holdfast, which this one does not read; name an "
            "empty folder with --data, or start the version that wrote it"
        )
    if not is_marked:
        mark = _find_mark(raw)
    records = list(_records(memoryview(raw), mark, first)) if mark else []
    end = records[-1].end if records else _SEGMENT_SIZE
    return SegmentScan(
        head, mark, records, records[-1].after if records else first, _SEGMENT_SIZE, end, len(raw)
    )


def _header(raw: bytes) -> Header | None:
    found, (checksum,) = raw[: _SEGMENT.size], _CHECKSUM.unpack_from(raw, _SEGMENT.size)
    form, *known = _SEGMENT.unpack(found)
    return Header(*known) if form == _FORMAT and crc32(found) == checksum else None


def _find_mark(raw: bytes) -> bytes:
    """Return the log's number from the last head, if the header and the first head are damaged.

    The result is empty if the last head is damaged, too.
    """
    mark = raw[-_SIZE:][:NUMBER_SIZE]
    return mark if _head_at(raw, len(raw) - _SIZE, mark) is not None else b""


def _head_at(raw: bytes | memoryview, at: int, mark: bytes) -> _Head | None:
    """Return the valid head at an offset, or ``None``."""
    if at < 0 or at + _SIZE > len(raw) or raw[at : at + NUMBER_SIZE] != mark:
        return None
    (checksum,) = _CHECKSUM.unpack_from(raw, at + _HEAD.size)
    if crc32(raw[at : at + _HEAD.size]) != checksum:
        return None
    return _Head(*_HEAD.unpack_from(raw, at)[1:])


def _records(raw: memoryview, mark: bytes, position: int) -> Iterator[LogRecord]:
    at = _SEGMENT_SIZE
    while at < len(raw):
        head = _head_at(raw, at, mark)
        found = None if head is None or head.flags & _CLOSING else _read_record(raw, at, head, mark)
        if found is None or found.position < position:
            found = _find_record(raw, at, mark, position)
        if found is None:  # no complete record follows
            return
        if found.position > position:  # the records between are lost
            yield LogRecord(position, found.position - position, 0, True, None, at, found.start)
        yield found
        position, at = found.after, found.end


def _read_record(raw: memoryview, at: int, head: _Head, mark: bytes) -> LogRecord | None:
    """Return the record that starts with a valid head, or ``None`` if the record is incomplete."""
    start, end = at + _SIZE, at + _SIZE + head.length + _SIZE
    if end > len(raw):
        return None
    body = raw[start : start + head.length]
    if crc32(body) == head.checksum:
        return _record(head, body, at, end)
    is_whole = any(_head_at(raw, place, mark) is not None for place in (end - _SIZE, end)) or end == len(raw)
    return (
        _record(head, None, at, end) if is_whole else None
    )  # otherwise bytes are missing, and its end is elsewhere


def _find_record(raw: memoryview, at: int, mark: bytes, position: int) -> LogRecord | None:
    """Return the next record after damaged bytes, or ``None``.

    It is the damaged record itself if its closing head is valid, else the record that follows.
    """
    place = at
    while (place := raw.obj.find(mark, place + 1)) >= 0:  # type: ignore[attr-defined]
        head = _head_at(raw, place, mark)
        if head is None or head.position < position:
            continue
        if not head.flags & _CLOSING:
            found = _read_record(raw, place, head, mark)
            if found is None and head.position > position:  # the next record is damaged too
                return LogRecord(position, head.position - position, 0, True, None, at, place)
            if found is None:
                continue
            return found
        start = place - head.length
        body = raw[start:place] if start - _SIZE == at else None
        is_right = body is not None and crc32(body) == head.checksum
        return _record(head, body if is_right else None, at, place + _SIZE)
    return None


def _record(head: _Head, body: memoryview | None, start: int, end: int) -> LogRecord:
    return LogRecord(head.position, head.span, head.kind, bool(head.flags & _LAST), body, start, end)


def decode_record(record: LogRecord) -> Entry:
    """Decode the entry of a record. An entry that cannot be decoded becomes ``Unreadable``."""
    if record.body is None:
        return Unreadable(record.span, "its bytes are damaged")
    try:
        entry = _decode(record.kind, bytes(record.body))
    except Exception as error:  # the checksum is valid, so the next entry is not affected
        return Unreadable(record.span, f"it cannot be decoded: {error}", is_damage=False)
    if span(entry) != record.span:
        return Unreadable(record.span, f"it has {span(entry)} readings, not {record.span}", is_damage=False)
    return entry


def _decode(kind: int, body: bytes) -> Entry:
    match kind:
        case 1:
            batch = from_ipc(body)
            batch.validate(full=True)
            known = batch.schema.metadata
            return Readings(
                known[_TOPIC].decode(), batch.replace_schema_metadata(None), known.get(_REQUEST, b"")
            )
        case 2:
            return Advance(msgspec.json.decode(body, type=dict[str, int]))
        case 3:
            return msgspec.json.decode(body, type=DefinitionEntry)
        case 4:
            return Pause(*msgspec.json.decode(body, type=tuple[tuple[str, ...], dict[str, int]]))
    raise ValueError(f"there is no entry of kind {kind}")


class Framed(NamedTuple):
    """An entry with its position and the offset of the byte after it."""

    position: int
    entry: Entry
    end: int


def entries(raw: bytes, first: int = 0) -> Iterator[Framed]:
    """Yield the entries of a segment whose first position is known. Unreadable entries are included."""
    for record in scan(raw, first).records:
        yield Framed(record.position, decode_record(record), record.end)
