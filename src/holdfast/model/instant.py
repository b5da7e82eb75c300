"""Conversion of instants and durations.

An instant counts microseconds since 1970-01-01 UTC; a duration, microseconds.
"""

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


def from_datetime(date_time: datetime, zone: tzinfo = UTC) -> Instant:
    """Return the instant of a datetime. A datetime without a zone is in ``zone``."""
    aware = date_time if date_time.tzinfo is not None else date_time.replace(tzinfo=zone)
    return (aware - _EPOCH) // _TICK


EARLIEST, LATEST = from_datetime(datetime.min), from_datetime(datetime.max)
"""The first and the last instant with a date: the years 1 to 9999."""


def parse_datetime(text: str, format: str | None = None) -> datetime:
    """Parse ISO 8601 text, or text in a ``strptime`` format."""
    text = text.strip()
    return datetime.strptime(text, format) if format else datetime.fromisoformat(text)


def parse_instant(text: str, zone: tzinfo = UTC, format: str | None = None) -> Instant:
    """Parse text to an instant. A time without a zone is in ``zone``."""
    return from_datetime(parse_datetime(text, format), zone)


YEAR_2000 = 30 * 365 * DAY


def instant(when: str | datetime) -> Instant:
    """Convert ISO 8601 text or a datetime to an instant. Without a zone it is UTC.

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


class TimeUnit(NamedTuple):
    """A unit in which clocks count, and its length in microseconds."""

    name: str
    factor: int


def unit_of_epoch(number: float) -> TimeUnit | None:
    """Guess the unit of a number since 1970 from its size.

    The guess is the unit in which the number is a date from 2000 to 2090; ``None`` if it is neither seconds
    nor milliseconds.

    >>> [unit_of_epoch(number) for number in (1_767_225_600, 1_767_225_600_000, 60_000_000)]
    [TimeUnit(name='seconds', factor=1000000), TimeUnit(name='milliseconds', factor=1000), None]
    """
    units = (TimeUnit("seconds", SECOND), TimeUnit("milliseconds", MILLISECOND))
    return next((unit for unit in units if YEAR_2000 <= number * unit.factor < 4 * YEAR_2000), None)


def _instead(when: object) -> str:
    """Return a hint how to write a value that is not a time.

    The unit of numbers is guessed from their size.
    """
    try:
        size = abs(float(when))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return 'write a datetime, or ISO 8601 text such as "2026-06-21T08:00Z"'
    if (unit := unit_of_epoch(size)) is not None:
        return f"by its size it counts {unit.name} since 1970: an instant is that times {unit.factor:_}"
    return "an instant is whole microseconds since 1970; a number that is one is used as it is"


def show_instant(at: Instant) -> str:
    """Format an instant as ISO 8601 in UTC, with microseconds.

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
    """Format a duration in the largest unit in which it is a whole number.

    >>> show_duration(30_000_000), show_duration(90_000_000), show_duration(1_500)
    ('30 s', '90 s', '1500 us')
    """
    for size, name in _NAMES:
        if length and length % size == 0:
            return f"{length // size} {name}"
    return f"{length} us"
