"""Checks of Arrow streams from clients. A stream is checked as a whole before any of its rows enters the log.

The decoded size of a stream is bounded before a buffer is decompressed. Each batch is validated to the last
offset and byte of text, so that later stages can rely on it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...errors import UsageError
from ...model.batch import AXES, TIME, conform, times
from ...model.instant import Instant
from ...model.topic import Topic
from .arrival import AHEAD

_LEAST = 16
"""Bytes that a reading takes at least in the log: its time and its number."""
_SCHEMA, _DICTIONARY, _BATCH = 1, 2, 3
"""Kinds of messages in a stream."""


class ArrowStream(NamedTuple):
    """The batches of a stream in the types of their topic, and how many times were corrected."""

    batches: list[pa.RecordBatch]
    corrected: int


def read_stream(topic: Topic, body: bytes, now: Instant, most: int) -> ArrowStream:
    """Read an Arrow stream whose decoded size is at most ``most`` bytes.

    Times too far in the future become ``now``. Raises ``UsageError`` for a stream that is too large or
    invalid.
    """
    try:
        _require_size(sum(map(_decoded_size, _messages(body))), most)
        found, corrected = [], 0
        for batch in _batches(topic, body, most):
            _require_zone(batch.schema)
            conformed, wrong = _correct_times(conform(topic, batch), now)
            found.append(conformed)
            corrected += wrong
    except UsageError:
        raise
    except Exception as error:  # the bytes are from clients: a library can raise anything
        raise UsageError(f"the body is not an Arrow stream that can be read: {error}") from None
    return ArrowStream(found, corrected)


def _require_size(size: int, most: int) -> None:
    if size > most:
        raise UsageError(
            f"decoded, an Arrow stream takes at most {most:,} bytes ('decoded' in [limits]); send it in parts"
        )


def _batches(topic: Topic, body: bytes, most: int) -> Iterator[pa.RecordBatch]:
    """Yield the validated batches with the columns that the topic has. Other columns are skipped."""
    known = {"time", "source", "sequence", "place", *AXES, *topic.by_name}
    names = pa.ipc.open_stream(body).schema.names
    wanted = [i for i, name in enumerate(names) if name in known]
    if not wanted:
        raise UsageError(f"a batch needs a 'time' column; it has {', '.join(names)}")
    options = pa.ipc.IpcReadOptions(
        included_fields=wanted, ensure_alignment=pa.ipc.Alignment.DataTypeSpecific
    )
    total = 0
    for batch in pa.ipc.open_stream(body, options=options):
        total += len(batch) * _LEAST
        _require_size(total, most)
        batch.validate(full=True)
        total += sum(map(_text_size, batch.columns))
        _require_size(total, most)
        yield pa.RecordBatch.from_arrays(list(map(_own_text, batch.columns)), names=batch.schema.names)


def _is_local(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind)) and kind.tz is None


def _require_zone(schema: pa.Schema) -> None:
    if "time" in schema.names and _is_local(schema.field("time").type):
        raise UsageError("the column 'time' has no zone: give its type one, such as timestamp('us', 'UTC')")


def _correct_times(batch: pa.RecordBatch, now: Instant) -> tuple[pa.RecordBatch, int]:
    """Replace times too far in the future by ``now``; return the batch and the number of replaced times."""
    at = times(batch)
    ahead = at > now + AHEAD
    if not ahead.any():
        return batch, 0
    index = batch.schema.get_field_index("time")
    moved = pa.array(np.where(ahead, now, at)).cast(TIME)
    return batch.set_column(index, "time", moved), int(ahead.sum())


def _text_size(column: pa.Array) -> int:
    """Return the size of a column's text in bytes when each row has its own copy.

    A dictionary or a view can refer to one text many times, so its buffers can be much smaller.
    """
    if pa.types.is_dictionary(column.type):
        words = column.dictionary
        lengths = _view_lengths(words) if pa.types.is_string_view(words.type) else _lengths(words)
        return 0 if lengths is None else _total(lengths.take(column.indices))
    return _total(_view_lengths(column)) if pa.types.is_string_view(column.type) else 0


def _lengths(column: pa.Array) -> pa.Array | None:
    """Return the length of each text in bytes, or ``None`` for other types."""
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return pc.binary_length(column).cast(pa.int64()) if is_text else None


def _view_lengths(column: pa.Array) -> pa.Array:
    """Return the length of each string view in bytes. Arrow has no function for views."""
    raw = column.buffers()[1]
    views = np.frombuffer(b"" if raw is None else raw, np.int32)[::4]
    lengths = views[column.offset : column.offset + len(column)].astype(np.int64)
    return pa.array(lengths, mask=np.asarray(column.is_null()))


def _total(lengths: pa.Array) -> int:
    return int(pc.sum(lengths).as_py() or 0)


def _own_text(column: pa.Array) -> pa.Array:
    """Return a column in which each row has its own copy of its text.

    Arrow does not validate text behind missing values, and its cast of views follows invalid offsets there.
    Views are therefore read row by row.
    """
    if pa.types.is_string_view(column.type):
        return pa.array(column.to_pylist(), pa.string())
    if not pa.types.is_dictionary(column.type):
        return column
    return _own_text(column.dictionary).take(column.indices)


# --- the size of what is compressed ------------------------------------------------------------------------


def _messages(body: bytes) -> Iterator[pa.Message]:
    reader = pa.ipc.MessageReader.open_stream(body)
    while True:
        try:
            yield reader.read_next_message()
        except StopIteration:
            return


def _decoded_size(message: pa.Message) -> int:
    """Return the size of a message's buffers after decompression, in bytes, as stated by the message.

    Arrow has no function for it, so the message's head, a flatbuffer, is parsed here. The layout is part of
    Arrow's columnar format (Message.fbs) and cannot change.
    """
    raw = memoryview(message.metadata)
    root = _FlatTable(raw, _uint(raw, 0))
    kind, head = root.byte(1), root.table(2)
    if head is not None and kind == _DICTIONARY:
        head = head.table(1)
    if head is None or kind not in (_DICTIONARY, _BATCH):
        return 0
    body = message.body
    size = 0 if body is None else body.size
    if head.table(3) is None:  # nothing is compressed
        return size
    return size + sum(_expanded_size(memoryview(body), start, length) for start, length in head.pairs(2))


def _expanded_size(body: memoryview, start: int, length: int) -> int:
    """Return the decoded size that stands at the start of a compressed buffer.

    An uncompressed buffer has -1 there.
    """
    if length < 8 or start < 0 or start + 8 > len(body):
        return 0
    (size,) = struct.unpack_from("<q", body, start)
    return max(0, size)


def _uint(raw: memoryview, at: int) -> int:
    return int(struct.unpack_from("<I", raw, at)[0])


class _FlatTable:
    """A reader of one flatbuffer table, given its bytes and offset."""

    def __init__(self, raw: memoryview, at: int) -> None:
        self._raw, self._at = raw, at
        self._fields = at - struct.unpack_from("<i", raw, at)[0]

    def _field(self, number: int) -> int | None:
        """Return the offset of a field by its number, or ``None`` if the field has its default."""
        place = 4 + 2 * number
        if place >= struct.unpack_from("<H", self._raw, self._fields)[0]:
            return None
        offset = struct.unpack_from("<H", self._raw, self._fields + place)[0]
        return self._at + offset if offset else None

    def byte(self, number: int) -> int:
        at = self._field(number)
        return 0 if at is None else self._raw[at]

    def table(self, number: int) -> _FlatTable | None:
        at = self._field(number)
        return None if at is None else _FlatTable(self._raw, at + _uint(self._raw, at))

    def pairs(self, number: int) -> list[tuple[int, int]]:
        """Return a field that is a vector of pairs of 64-bit integers."""
        at = self._field(number)
        if at is None:
            return []
        at += _uint(self._raw, at)
        return [struct.unpack_from("<qq", self._raw, at + 4 + 16 * i) for i in range(_uint(self._raw, at))]
