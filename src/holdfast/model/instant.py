"""Instants are whole microseconds since 1970-01-01 UTC; durations are whole microseconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Annotated, NamedTuple

from ..errors import UsageError
from .quantity import DURATION

Instant = int
Duration = Annotated[int, DURATION]

MILLISECOND = 1_000
SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

NEVER = 2**63 - 1  # later than every instant
BEGINNING = -(2**63)  # earlier than every instant

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = datetime(1970, 1, 1)
_TICK = timedelta(microseconds=1)
_NAMES = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (SECOND, "s"), (MILLISECOND, "ms"))


def from_datetime(moment: datetime, zone: tzinfo = UTC) -> Instant:
    """The instant of a datetime; a naive one is taken to be in ``zone``."""
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)
    return (aware - _EPOCH) // _TICK


EARLIEST, LATEST = from_datetime(datetime.min), from_datetime(datetime.max)
"""The instants that have a date: the years 1 to 9999."""


def parse_datetime(text: str, format: str | None = None) -> datetime:
    """What ISO 8601 text (or text in a ``strptime`` format) says."""
    text = text.strip()
    return datetime.strptime(text, format) if format else datetime.fromisoformat(text)


def parse_instant(text: str, zone: tzinfo = UTC, format: str | None = None) -> Instant:
    """The instant that it names."""
    return from_datetime(parse_datetime(text, format), zone)


YEAR_2000 = 30 * 365 * DAY


def instant(when: str | datetime) -> Instant:
    """The instant that ISO 8601 text or a datetime names; UTC unless it says otherwise.

    >>> instant("2007-09-13T13:35:00Z") == instant("2007-09-13 15:35+02:00") == 1189690500000000
    True
    """
    try:
        at = parse_instant(when) if isinstance(when, str) else from_datetime(when)
    except (AttributeError, OverflowError, TypeError, ValueError):
        raise UsageError(f"{repr(when)[:60]} is not a time; {_instead(when)}") from None
    if not isinstance(at, int) or not EARLIEST <= at <= LATEST:  # pandas.NaT is a datetime
        raise UsageError(f"{when} is not in the years 1 to 9999")
    return at


class Unit(NamedTuple):
    """What a clock counts, and how many microseconds that is."""

    name: str
    factor: int


def counted_in(number: float) -> Unit | None:
    """The unit in which a number since 1970 that is no microseconds falls into our days.

    >>> counted_in(1_767_225_600), counted_in(1_767_225_600_000), counted_in(60_000_000)
    (Unit(name='seconds', factor=1000000), Unit(name='milliseconds', factor=1000), None)
    """
    units = (Unit("seconds", SECOND), Unit("milliseconds", MILLISECOND))
    return next((unit for unit in units if YEAR_2000 <= number * unit.factor < 4 * YEAR_2000), None)


def _instead(when: object) -> str:
    """What to write in place of something that is no time; numbers are known by their size."""
    try:
        size = abs(float(when))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 'write a datetime, or ISO 8601 text such as "2026-06-21T08:00Z"'
    if (unit := counted_in(size)) is not None:
        return f"by its size it counts {unit.name} since 1970: an instant is that times {unit.factor:_}"
    return "an instant is whole microseconds since 1970; a number that is one is used as it is"


def show_instant(at: Instant) -> str:
    """
    >>> show_instant(1189690500000000)
    '2007-09-13T13:35:00.000000Z'
    """
    seconds, micros = divmod(at, SECOND)
    days, second = divmod(seconds, 86_400)
    return f"{_show_day(days)}T{_show_clock(second)}.{micros:06d}Z"


@lru_cache(maxsize=4_096)
def _show_day(days: int) -> str:
    return (_NAIVE_EPOCH + timedelta(days=days)).date().isoformat()


@lru_cache(maxsize=86_400)
def _show_clock(second: int) -> str:
    return (_NAIVE_EPOCH + timedelta(seconds=second)).time().isoformat()


def show_duration(length: Duration) -> str:
    """The duration in its largest whole unit.

    >>> show_duration(30_000_000), show_duration(90_000_000), show_duration(1_500)
    ('30 s', '90 s', '1500 us')
    """
    for size, name in _NAMES:
        if length and length % size == 0:
            return f"{length // size} {name}"
    return f"{length} us"
