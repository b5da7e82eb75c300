"""Times as files hold them become instants: microseconds, UTC.

A time without a zone is taken to be in the zone of the reading.  Where clocks are set back, the
time that occurs twice is the earlier one; where they are set forward, a time that does not exist
is read with the offset before the change (as Python does with ``fold=0``).  Finer times are cut
to the microsecond before, floats are rounded to the nearest.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.batch import TIME
from ..model.instant import DAY, EARLIEST, HOUR, LATEST, SECOND, parse_instant
from .convert import Mask, WrongType, convert, decoded, is_text, nowhere, trimmed, truths
from .reading import Reading

Instants = np.ndarray[Any, np.dtype[np.int64]]


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH = datetime(1970, 1, 1)
_ZONED = r"([Zz]|[+-]\d{2}(:?\d{2})?)$"
_ISO = re.compile(r"(\d{4}-\d\d-\d\d|\d{8}(?=[Tt ]))([Tt ]\d.*)?", re.DOTALL)
_UTC_WORD = re.compile(r"\s*(?:[Zz]|UTC|GMT)$")


class NeedsUnit(Exception):
    """The times are numbers, and nobody said of what."""


def to_instants(column: pa.Array, reading: Reading) -> tuple[pa.Array, Mask]:
    """The column as instants, and which rows hold something that is not a time.

    Integers and floats need ``time_unit``; so does text that is a number.
    """
    column = decoded(column)
    kind = column.type
    if pa.types.is_null(kind):
        return pa.nulls(len(column), TIME), nowhere(column)
    if pa.types.is_timestamp(kind):
        return _of_timestamps(column, reading.zone)
    if pa.types.is_date(kind):
        return _of_timestamps(column.cast(pa.timestamp("ms")), reading.zone)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        if reading.time_unit is None:
            raise NeedsUnit
        return _of_numbers(column, reading.time_unit)
    if is_text(kind):
        return _of_text(trimmed(column), reading)
    raise WrongType


def _of_timestamps(column: pa.Array, zone: tzinfo) -> tuple[pa.Array, Mask]:
    if column.type == TIME and not column.null_count and _has_dates(column):
        return column, nowhere(column)
    per_second = _PER_SECOND[column.type.unit]
    ticks, valid = _ticks(column.cast(pa.int64()))
    micros, out = _to_micros(ticks, per_second)
    if column.type.tz is None:
        micros = to_utc(np.where(valid & ~out, micros, 0), zone)
    return _instants(micros, valid, out)


def _has_dates(column: pa.Array) -> bool:
    """Whether a calendar reaches every time of the column."""
    ends = pc.min_max(column.view(pa.int64()))
    return not len(column) or bool(ends["min"].as_py() >= EARLIEST and ends["max"].as_py() <= LATEST)


def _of_numbers(column: pa.Array, unit: str) -> tuple[pa.Array, Mask]:
    per_second = _PER_SECOND[unit]
    if pa.types.is_integer(column.type):
        whole, bad = convert(column, "int")  # an unsigned one may be too large
        ticks, valid = _ticks(whole)
        micros, out = _to_micros(ticks, per_second)
        return _instants(micros, valid | bad, out | bad)
    numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    valid = ~np.isnan(numbers)
    scaled = np.where(valid, numbers, 0.0) * (SECOND / per_second)
    out = ~((scaled >= EARLIEST) & (scaled <= LATEST))
    return _instants(np.rint(np.where(out, 0.0, scaled)).astype(np.int64), valid, out)


def _ticks(column: pa.Array) -> tuple[Instants, Mask]:
    valid = truths(pc.is_valid(column))
    return pc.fill_null(column, 0).to_numpy(zero_copy_only=False), valid


def _to_micros(ticks: Instants, per_second: int) -> tuple[Instants, Mask]:
    """Ticks as whole microseconds, floored, and which of them no calendar reaches."""
    if per_second > SECOND:
        micros = ticks // (per_second // SECOND)
        return micros, (micros < EARLIEST) | (micros > LATEST)
    factor = SECOND // per_second
    out = (ticks < -(-EARLIEST // factor)) | (ticks > LATEST // factor)
    return np.where(out, 0, ticks) * factor, out


def _instants(micros: Instants, valid: Mask, out: Mask) -> tuple[pa.Array, Mask]:
    out = out | (micros < EARLIEST) | (micros > LATEST)
    return pa.array(micros, pa.int64(), mask=~valid | out).cast(TIME), valid & out


def to_utc(local: Instants, zone: tzinfo) -> Instants:
    """Microseconds on a zone's clock as instants.

    The offset is asked once an hour of clock time, and for each time in an hour in which it changes.
    """
    if zone is UTC or not len(local):
        return local
    hours, back = np.unique(local // HOUR, return_inverse=True)
    first = np.array([_offset(int(hour) * HOUR, zone) for hour in hours], np.int64)
    last = np.array([_offset(int(hour) * HOUR + HOUR - 1, zone) for hour in hours], np.int64)
    offsets = first[back]
    for i in np.flatnonzero((first != last)[back]):
        offsets[i] = _offset(int(local[i]), zone)
    return local - offsets


def _offset(local: int, zone: tzinfo) -> int:
    inside = min(max(local, EARLIEST + DAY), LATEST - DAY)
    offset = zone.utcoffset(_EPOCH + timedelta(microseconds=inside))
    return 0 if offset is None else offset // timedelta(microseconds=1)


# --- text ------------------------------------------------------------------------------------------


def _of_text(text: pa.Array, reading: Reading) -> tuple[pa.Array, Mask]:
    if reading.time_unit is not None:
        return _of_numbers_in_text(text, reading)
    if reading.time_format is not None:
        return _one_by_one(text, reading)
    return _of_iso(text, reading)


def _of_numbers_in_text(text: pa.Array, reading: Reading) -> tuple[pa.Array, Mask]:
    """Text that is a number counts since 1970; other text is read as if no unit were given."""
    assert reading.time_unit is not None
    whole, not_whole = convert(text, "int")
    if not not_whole.any():
        return _of_numbers(whole, reading.time_unit)
    numbers, words = convert(text, "float")
    fractions = pc.if_else(pa.array(not_whole), numbers, pa.scalar(None, pa.float64()))
    rest = pc.if_else(pa.array(words), text, pa.scalar(None, pa.string()))
    found = (
        _of_numbers(whole, reading.time_unit),
        _of_numbers(fractions, reading.time_unit),
        _of_text(rest, replace(reading, time_unit=None)),
    )
    return pc.coalesce(*(instants for instants, _ in found)), found[0][1] | found[1][1] | found[2][1]


def _of_iso(text: pa.Array, reading: Reading) -> tuple[pa.Array, Mask]:
    """ISO 8601, whole columns at a time while they are regular, judged by the first of them."""
    first = pc.index(pc.is_valid(text), True).as_py()
    if first < 0:
        return pa.nulls(len(text), TIME), nowhere(text)
    try:
        if re.search(_ZONED, text[first].as_py()[10:]):
            return _of_timestamps(text.cast(TIME), UTC)
        return _of_timestamps(text.cast(pa.timestamp("us")), reading.zone)
    except pa.ArrowInvalid:
        pass
    zoned = pc.match_substring_regex(pc.utf8_slice_codeunits(text, 10, None), _ZONED)
    nothing = pa.scalar(None, pa.string())
    try:
        local = _of_timestamps(pc.if_else(zoned, nothing, text).cast(pa.timestamp("us")), reading.zone)
        fixed = _of_timestamps(pc.if_else(zoned, text, nothing).cast(TIME), reading.zone)
        return pc.coalesce(local[0], fixed[0]), local[1] | fixed[1]
    except pa.ArrowInvalid:
        return _one_by_one(text, reading)


def _one_by_one(text: pa.Array, reading: Reading) -> tuple[pa.Array, Mask]:
    """Each distinct text once."""
    coded = text.dictionary_encode()
    found = [_instant(word, reading) for word in coded.dictionary.to_pylist()]
    micros = pa.array(found, pa.int64()).take(coded.indices)
    bad = truths(pc.and_(pc.is_valid(text), pc.is_null(micros)))
    return micros.cast(TIME), bad


def _instant(word: str, reading: Reading) -> int | None:
    if reading.time_format is None:
        if _ISO.fullmatch(word) is None:
            return None
        word = _UTC_WORD.sub("+00:00", word)
    try:
        at = parse_instant(word, reading.zone, reading.time_format)
    except (ValueError, OverflowError):
        return None
    return at if EARLIEST <= at <= LATEST else None
