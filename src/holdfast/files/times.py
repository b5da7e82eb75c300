"""Conversion of times in files to instants: microseconds in UTC.

A time without a zone is in the zone of the reading. Where clocks are set back, a time that occurs twice is
the earlier one. Where clocks are set forward, a time that does not exist is read with the offset before the
change (like ``fold=0`` in Python). Both are counted. Finer times are cut to the microsecond; floats are
rounded to the nearest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.batch import TIME
from ..model.instant import DAY, EARLIEST, HOUR, LATEST, SECOND, from_datetime, parse_datetime
from .convert import Mask, WrongType, convert, decode, is_text, no_rows, trim, truths
from .reading import Reading

Instants = np.ndarray[Any, np.dtype[np.int64]]


_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_EPOCH = datetime(1970, 1, 1)
_TICK = timedelta(microseconds=1)
_ZONED = r"([Zz]|[+-]\d{2}(:?\d{2})?)$"
_ISO = re.compile(r"(\d{4}-\d\d-\d\d|\d{8}(?=[Tt ]))([Tt ]\d.*)?", re.DOTALL)
_UTC_WORD = re.compile(r"\s*(?:[Zz]|UTC|GMT)$")


class NeedsUnit(Exception):
    """Raised when times are numbers and no unit is given."""


class ParsedTimes(NamedTuple):
    """A column as instants, and the mask of rows that are not times.

    ``twice`` and ``never`` count local times that occur twice or never.
    """

    instants: pa.Array
    bad: Mask
    twice: int = 0
    never: int = 0


def _together(some: Sequence[ParsedTimes]) -> ParsedTimes:
    """Merge columns of which at most one has a value in each row."""
    return ParsedTimes(
        pc.coalesce(*(one.instants for one in some)),
        np.logical_or.reduce([one.bad for one in some]),
        sum(one.twice for one in some),
        sum(one.never for one in some),
    )


def to_instants(column: pa.Array, reading: Reading) -> ParsedTimes:
    """Convert a column to instants. Integers, floats and text that is a number need ``time_unit``.

    Raises ``NeedsUnit`` without it.
    """
    column = decode(column)
    kind = column.type
    if pa.types.is_null(kind):
        return ParsedTimes(pa.nulls(len(column), TIME), no_rows(column))
    if pa.types.is_timestamp(kind):
        return _of_timestamps(column, reading.zone)
    if pa.types.is_date(kind):
        return _of_timestamps(column.cast(pa.timestamp("ms")), reading.zone)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        if reading.time_unit is None:
            raise NeedsUnit
        return _of_numbers(column, reading.time_unit)
    if is_text(kind):
        return _of_text(trim(column), reading)
    raise WrongType


def _of_timestamps(column: pa.Array, zone: tzinfo) -> ParsedTimes:
    if column.type == TIME and not column.null_count and _has_dates(column):
        return ParsedTimes(column, no_rows(column))
    per_second = _PER_SECOND[column.type.unit]
    ticks, valid = _ticks(column.cast(pa.int64()))
    micros, out = _to_micros(ticks, per_second)
    if column.type.tz is not None:
        return _instants(micros, valid, out)
    local = np.where(valid & ~out, micros, 0)
    offsets, shifts = _offsets_and_shifts(local, zone).T
    found = _instants(local - offsets, valid, out)
    return ParsedTimes(found.instants, found.bad, *_unclear(shifts[valid & ~out]))


def _has_dates(column: pa.Array) -> bool:
    """Whether every time of the column is in the range of the calendar, the years 1 to 9999."""
    ends = pc.min_max(column.view(pa.int64()))
    return not len(column) or bool(ends["min"].as_py() >= EARLIEST and ends["max"].as_py() <= LATEST)


def _of_numbers(column: pa.Array, unit: str) -> ParsedTimes:
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
    """Convert ticks to whole microseconds, floored. Return them with a mask of those outside the calendar."""
    if per_second > SECOND:
        micros = ticks // (per_second // SECOND)
        return micros, (micros < EARLIEST) | (micros > LATEST)
    factor = SECOND // per_second
    out = (ticks < -(-EARLIEST // factor)) | (ticks > LATEST // factor)
    return np.where(out, 0, ticks) * factor, out


def _instants(micros: Instants, valid: Mask, out: Mask) -> ParsedTimes:
    out = out | (micros < EARLIEST) | (micros > LATEST)
    return ParsedTimes(pa.array(micros, pa.int64(), mask=~valid | out).cast(TIME), valid & out)


def to_utc(local: Instants, zone: tzinfo) -> Instants:
    """Convert local times of a zone, in microseconds, to instants."""
    return local - _offsets_and_shifts(local, zone)[:, 0]


def _offsets_and_shifts(local: Instants, zone: tzinfo) -> Instants:
    """Return the offset of each local time, and the shift of a clock change at that time.

    The shift is negative where the time occurs twice, and positive where it never does. The zone is queried
    once per hour of local time, and for each time in an hour with a change.
    """
    if zone is UTC or not len(local):
        return np.zeros((len(local), 2), np.int64)
    hours, back = np.unique(local // HOUR, return_inverse=True)
    first, last = (
        np.array([_offset_and_shift(int(hour) * HOUR + at, zone) for hour in hours], np.int64)
        for at in (0, HOUR - 1)
    )
    found: Instants = first[back]
    for i in np.flatnonzero((first != last).any(axis=1)[back]):
        found[i] = _offset_and_shift(int(local[i]), zone)
    return found


def _offset_and_shift(local: int, zone: tzinfo) -> tuple[int, int]:
    inside = _EPOCH + _TICK * min(max(local, EARLIEST + DAY), LATEST - DAY)
    before, after = (zone.utcoffset(inside.replace(fold=fold)) or timedelta() for fold in (0, 1))
    return before // _TICK, (after - before) // _TICK


def _unclear(shifts: Instants) -> tuple[int, int]:
    """Return how many local times occur twice, and how many never."""
    return int(np.count_nonzero(shifts < 0)), int(np.count_nonzero(shifts > 0))


# --- text ------------------------------------------------------------------------------------------


def _of_text(text: pa.Array, reading: Reading) -> ParsedTimes:
    if reading.time_unit is not None:
        return _of_numbers_in_text(text, reading)
    if reading.time_format is not None:
        return _one_by_one(text, reading)
    return _of_iso(text, reading)


def _of_numbers_in_text(text: pa.Array, reading: Reading) -> ParsedTimes:
    """Convert text that is a number since 1970. Other text is parsed as if no unit were given."""
    assert reading.time_unit is not None
    whole, not_whole = convert(text, "int")
    if not not_whole.any():
        return _of_numbers(whole, reading.time_unit)
    numbers, words = convert(text, "float")
    fractions = pc.if_else(pa.array(not_whole), numbers, pa.scalar(None, pa.float64()))
    rest = pc.if_else(pa.array(words), text, pa.scalar(None, pa.string()))
    return _together([
        _of_numbers(whole, reading.time_unit),
        _of_numbers(fractions, reading.time_unit),
        _of_text(rest, replace(reading, time_unit=None)),
    ])  # fmt: skip


def _of_iso(text: pa.Array, reading: Reading) -> ParsedTimes:
    """Parse ISO 8601. A whole column is parsed at once while its texts have the form of the first one."""
    first = pc.index(pc.is_valid(text), True).as_py()
    if first < 0:
        return ParsedTimes(pa.nulls(len(text), TIME), no_rows(text))
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
        return _together([local, fixed])
    except pa.ArrowInvalid:
        return _one_by_one(text, reading)


def _one_by_one(text: pa.Array, reading: Reading) -> ParsedTimes:
    """Parse each distinct text of a column once."""
    coded = text.dictionary_encode()
    moments = [_moment(word, reading) for word in coded.dictionary.to_pylist()]
    found = [None if parsed is None else _instant(parsed, reading.zone) for parsed in moments]
    micros = pa.array(found, pa.int64()).take(coded.indices)
    bad = truths(pc.and_(pc.is_valid(text), pc.is_null(micros)))
    local = [None if m is None or m.tzinfo else (m - _EPOCH) // _TICK for m in moments]
    shown = pa.array(local, pa.int64()).take(coded.indices).drop_null().to_numpy()
    return ParsedTimes(micros.cast(TIME), bad, *_unclear(_offsets_and_shifts(shown, reading.zone)[:, 1]))


def _moment(word: str, reading: Reading) -> datetime | None:
    """Parse a text to a date and time, or return ``None`` if it is none."""
    if reading.time_format is None:
        if _ISO.fullmatch(word) is None:
            return None
        word = _UTC_WORD.sub("+00:00", word)
    try:
        return parse_datetime(word, reading.time_format)
    except (ValueError, OverflowError):
        return None


def _instant(parsed: datetime, zone: tzinfo) -> int | None:
    try:
        at = from_datetime(parsed, zone)
    except OverflowError:
        return None
    return at if EARLIEST <= at <= LATEST else None
