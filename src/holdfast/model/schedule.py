"""Schedules of windows such as ``Sat 00:00 – Mon 06:00``, recurring or once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from .instant import NEVER, SECOND, Instant

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY, _WEEK = 24 * 60, 7 * 24 * 60
_STEPS = 1_000
_CLOCK = r"(\d{1,2}):(\d{2})"
_WEEKLY = re.compile(rf"([A-Za-z]{{3,}})\s+{_CLOCK}\s*(?:–|-|to)\s*([A-Za-z]{{3,}})\s+{_CLOCK}")
_DAILY = re.compile(rf"{_CLOCK}\s*(?:–|-|to)\s*{_CLOCK}")
_DATE = rf"(\d{{4}}-\d\d-\d\d)\s+{_CLOCK}"
_ONCE = re.compile(rf"{_DATE}\s*(?:–|-|to)\s*{_DATE}")


@dataclass(frozen=True, slots=True)
class ScheduleWindow:
    """A window from ``start`` to before ``end`` in local time.

    Both are minutes of the week or of the day; ``period`` is its length. For a window that occurs once,
    ``period`` is ``None`` and both are minutes since the year 1.
    """

    start: int
    end: int
    period: int | None

    def left(self, minute: float) -> float | None:
        """Return the minutes of the window that remain at a minute since the year 1.

        Returns ``None`` if the minute is outside the window.
        """
        if self.period is None:
            return self.end - minute if self.start <= minute < self.end else None
        length = (self.end - self.start - 1) % self.period + 1
        since = (minute - self.start) % self.period
        return length - since if since < length else None


@dataclass(frozen=True)
class Schedule:
    """Windows in the local time of a zone, during which a mute is on."""

    windows: tuple[ScheduleWindow, ...]
    zone: str = "UTC"

    @cached_property
    def _zone(self) -> ZoneInfo:
        return ZoneInfo(self.zone)

    def is_on(self, at: Instant) -> bool:
        """Whether an instant is in one of the windows."""
        return self._left(at) is not None

    def ends(self, at: Instant) -> Instant:
        """Return the first instant from ``at`` on that is in no window.

        Returns ``NEVER`` if the windows cover all time.
        """
        for _ in range(_STEPS):
            if (left := self._left(at)) is None:
                return at
            wall = self._wall(at) + timedelta(minutes=left)
            then = _instant(wall.replace(tzinfo=self._zone))
            at = then if then > at else at + 60 * SECOND  # the hour that comes twice
        return NEVER

    def _left(self, at: Instant) -> float | None:
        wall = self._wall(at)
        minute = (wall - _FIRST) / timedelta(minutes=1)
        found = [left for window in self.windows if (left := window.left(minute)) is not None]
        return max(found, default=None)

    def _wall(self, at: Instant) -> datetime:
        """Return the local time of an instant."""
        date_time = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=at)
        return date_time.astimezone(self._zone).replace(tzinfo=None)


_FIRST = datetime(1, 1, 1)  # a Monday


def _instant(date_time: datetime) -> Instant:
    return (date_time - datetime.fromtimestamp(0, UTC)) // timedelta(microseconds=1)


def schedule(text: str, zone: str | None) -> Schedule:
    """Parse a schedule: windows separated by commas. Raises ``ValueError`` if it is invalid."""
    try:
        ZoneInfo(zone or "UTC")
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"unknown time zone '{zone}'") from None
    return Schedule(tuple(_window(part.strip()) for part in text.split(",")), zone or "UTC")


def _window(text: str) -> ScheduleWindow:
    if found := _WEEKLY.fullmatch(text):
        day, hour, minute, other, last_hour, last_minute = found.groups()
        start = _day(day) * _DAY + _minutes(hour, minute)
        return ScheduleWindow(start, _day(other) * _DAY + _minutes(last_hour, last_minute), _WEEK)
    if found := _DAILY.fullmatch(text):
        hour, minute, last_hour, last_minute = found.groups()
        return ScheduleWindow(_minutes(hour, minute), _minutes(last_hour, last_minute), _DAY)
    if found := _ONCE.fullmatch(text):
        date, hour, minute, other, last_hour, last_minute = found.groups()
        start, end = _at_date(date, hour, minute), _at_date(other, last_hour, last_minute)
        if end <= start:
            raise ValueError(f"'{text}' ends before it starts")
        return ScheduleWindow(start, end, None)
    raise ValueError(f"'{text}' is no stretch of time such as Sat 00:00 – Mon 06:00, or 22:00 – 06:00")


def _day(word: str) -> int:
    if (short := word[:3].lower()) not in DAYS:
        raise ValueError(f"'{word}' is no day of the week")
    return DAYS.index(short)


def _minutes(hour: str, minute: str) -> int:
    if int(hour) > 24 or int(minute) > 59 or (int(hour) == 24 and int(minute)):
        raise ValueError(f"no clock shows {hour}:{minute}")
    return int(hour) * 60 + int(minute)


def _at_date(date: str, hour: str, minute: str) -> int:
    try:
        day = datetime.fromisoformat(date)
    except ValueError:
        raise ValueError(f"there is no {date}") from None
    return (day - _FIRST) // timedelta(minutes=1) + _minutes(hour, minute)
