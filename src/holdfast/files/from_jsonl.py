"""Reading of JSON lines as chunks: one object per line. Lines can have different keys.

``NaN`` and ``Infinity``, which Python writes though JSON has no such values, are accepted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from ..errors import InputError
from .chunk import Chunk, RowFault
from .content import ByteStream
from .find import InputFile
from .tally import Tally

MALFORMED, NOT_AN_OBJECT = "malformed JSON", "not a JSON object"

_BLOCK = 1 << 20
_LONGEST = 64 << 20
_SAMPLE = 100
_BROKEN = object()
_decode = msgspec.json.Decoder().decode


def names(file: InputFile) -> list[str]:
    """Return the keys of the first hundred lines, in order of appearance; an empty list for an empty file."""
    with ByteStream(file) as stream:
        lines = list(islice(_lines(file, stream), _SAMPLE))
    start = lines[0][1] if lines else b""
    if start.lstrip(b"\xef\xbb\xbf \t").startswith(b"["):
        raise InputError(
            f"{file.path}: is one JSON array, not one object a line; convert it with: jq -c '.[]'"
        )
    parsed = (_parse(file, at, line) for at, line in lines)
    objects = [found for found in parsed if isinstance(found, dict)]
    if lines and not objects:
        raise InputError(
            f"{file.path}: none of its first lines is a JSON object; JSON lines has one object a line. "
            f"It starts with: {start[:60].decode('utf-8', 'replace')}"
        )
    return list(dict.fromkeys(key for found in objects for key in found))


def chunks(file: InputFile, wanted: Sequence[str], tally: Tally, *, chunk_rows: int) -> Iterator[Chunk]:
    """Yield the wanted keys as chunks of columns, in file order. A line that is not an object is a fault."""
    decoder = _decoder(wanted)
    with ByteStream(file) as stream:
        before = 0
        for at, lines in _blocks(file, stream):
            tally.bytes += stream.position - before
            before = stream.position
            for i in range(0, len(lines), chunk_rows):
                part = lines[i : i + chunk_rows]
                yield _regular(decoder, at + i, part, wanted) or _chunk(file, at + i, part, wanted)


def _blocks(file: InputFile, stream: ByteStream) -> Iterator[tuple[int, list[bytes]]]:
    """Yield blocks of lines with the number of their first line, from zero."""
    rest, at = b"", 0
    while block := stream.read(_BLOCK):
        *lines, rest = (rest + block).split(b"\n")
        if len(rest) > _LONGEST:
            raise InputError(
                f"{file.path}, line {at + 1}: no end within 64 MB; JSON lines has one object a line"
            )
        yield at, lines
        at += len(lines)
    if rest:
        yield at, [rest]


def _lines(file: InputFile, stream: ByteStream) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not blank, with their numbers."""
    for at, lines in _blocks(file, stream):
        yield from _lines_with_text(at, lines)


def _lines_with_text(at: int, lines: Sequence[bytes]) -> Iterator[tuple[int, bytes]]:
    return ((at + i, line) for i, line in enumerate(lines) if line and not line.isspace())


def _decoder(wanted: Sequence[str]) -> msgspec.json.Decoder[Any]:
    """Return a decoder of lines that decodes only the wanted values."""
    fields: list[Any] = [
        (f"f{i}", Any, msgspec.field(name=name, default=None)) for i, name in enumerate(wanted)
    ]
    return msgspec.json.Decoder(msgspec.defstruct("Row", fields, gc=False))


def _regular(
    decoder: msgspec.json.Decoder[Any], at: int, lines: Sequence[bytes], wanted: Sequence[str]
) -> Chunk | None:
    """Decode lines to columns at once; ``None`` if that is not possible.

    All lines must be JSON objects, and no wanted value a list or an object.
    """
    try:
        found = decoder.decode_lines(b"\n".join(lines))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if len(found) != len(lines):
        return None  # blank lines
    columns: dict[str, pa.Array] = {}
    for i, name in enumerate(wanted):
        column, nested = _column(list(map(attrgetter(f"f{i}"), found)))
        if nested:
            return None
        columns[name] = column
    rows = np.arange(at, at + len(lines), dtype=np.int64)
    return Chunk(rows, columns, show=lambda i: _parse_or_text(lines[i]))


def _parse_or_text(line: bytes) -> Any:
    """Return the parsed content of a line.

    If values that are not wanted cannot be parsed, return its text.
    """
    try:
        return _decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return line.decode("utf-8", "replace")


def _parse(file: InputFile, at: int, line: bytes) -> Any:
    """Return the parsed content of a line, or ``_BROKEN`` if it is not JSON."""
    try:
        return _decode(line)
    except UnicodeDecodeError:
        raise InputError(_not_utf8(file, at)) from None
    except (msgspec.DecodeError, RecursionError):
        return _parse_leniently(file, at, line)


def _parse_leniently(file: InputFile, at: int, line: bytes) -> Any:
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(_not_utf8(file, at)) from None
    try:
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except (ValueError, RecursionError):
        return _BROKEN
    return found


def _not_utf8(file: InputFile, at: int) -> str:
    return (
        f"{file.path}, line {at + 1}: is not UTF-8 text; convert the file, "
        "for example with: iconv -f latin1 -t utf-8"
    )


def _chunk(file: InputFile, start: int, lines: Sequence[bytes], wanted: Sequence[str]) -> Chunk:
    """Decode lines to columns, one line at a time. Lines that are not objects become faults."""
    objects: list[tuple[int, dict[str, Any]]] = []
    faults: list[RowFault] = []
    for at, line in _lines_with_text(start, lines):
        found = _parse(file, at, line)
        if isinstance(found, dict):
            objects.append((at, found))
        else:
            reason = MALFORMED if found is _BROKEN else NOT_AN_OBJECT
            faults.append(RowFault(at, reason, line.decode("utf-8", "replace")))
    columns = {name: _column([found.get(name) for _, found in objects]) for name in wanted}
    nested = {name: bad for name, (_, bad) in columns.items() if bad}
    if nested:
        reasons = {i: f"{name}: a list or an object" for name, bad in nested.items() for i in bad}
        faults += [RowFault(objects[i][0], reason, objects[i][1]) for i, reason in reasons.items()]
        objects = [pair for i, pair in enumerate(objects) if i not in reasons]
        columns = {name: _column([found.get(name) for _, found in objects]) for name in wanted}
    return Chunk(
        np.array([at for at, _ in objects], np.int64),
        {name: column for name, (column, _) in columns.items()},
        tuple(faults),
        lambda i: objects[i][1],
    )


def _column(values: list[Any]) -> tuple[pa.Array, list[int]]:
    """Return values as one column, with the indices of lists and objects, which are not values.

    Values of several types become text, which every conversion parses.
    """
    try:
        column = pa.array(values)
        if not pa.types.is_nested(column.type):
            return column, []
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        pass
    nested = [i for i, value in enumerate(values) if isinstance(value, (list, dict))]
    return pa.array(
        [None if i in set(nested) else _text(v) for i, v in enumerate(values)], pa.string()
    ), nested


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, (str, list, dict)):
        return value if isinstance(value, str) else None
    if isinstance(value, float):
        return None if value != value else str(pa.scalar(value).cast(pa.string()).as_py())
    return str(value).lower() if isinstance(value, bool) else str(value)
