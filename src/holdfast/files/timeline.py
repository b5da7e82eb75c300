"""A chart of intervals in the terminal: a bar for each condition and scope, and its longest interval."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import IO, NamedTuple

from ..model.event import Notification
from ..model.instant import DAY, EARLIEST, HOUR, LATEST, MINUTE, SECOND, Duration, Instant
from .interval import Interval

WIDTH = 40
"""The width of the time axis in columns."""

MOST = 50
"""How many bars are shown."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TimeAxis(NamedTuple):
    """The time axis of a chart.

    It has a start, the step between marks in microseconds, the characters per step, and the format of the
    marks.
    """

    start: Instant
    step: Duration
    columns: int
    form: str

    @property
    def length(self) -> Duration:
        """The duration of the whole axis in microseconds."""
        return self.step * WIDTH // self.columns

    def column(self, at: Instant) -> int:
        """Return the character column of an instant. Later instants are in the last column."""
        return min((at - self.start) * WIDTH // self.length, WIDTH - 1)

    def marks(self) -> str:
        """Return the line of marks above the bars."""
        starts = range(self.start, self.start + self.length, self.step)
        return "".join(_format_time(at, self.form).ljust(self.columns) for at in starts)

    def clock(self, at: Instant) -> str:
        """Return an instant as text, with the precision of the bars."""
        if self.length > DAY:
            return _format_time(at, "%Y-%m-%d" if self.step >= 30 * DAY else "%m-%d %H:%M")
        return _format_time(at, "%H:%M" if self.step >= MINUTE else "%H:%M:%S")


_STEPS = (
    *((step * SECOND, 8, "%M:%S") for step in (1, 2, 5, 10, 30)),
    *((step * MINUTE, 8, "%H:%M") for step in (1, 2, 5, 10, 30)),
    *((step * HOUR, 5, "%H") for step in (1, 3)),
    *((step * DAY, 8, "%m-%d") for step in (1, 2, 7, 30)),
    *((step * DAY, 8, "%Y-%m") for step in (91, 365)),
    *((step * 365 * DAY, 8, "%Y") for step in (4, 10, 50, 100, 500, 5_000)),
)
"""Steps between marks: their length, their width in columns, and the format of the marks."""


def axis(first: Instant, last: Instant) -> TimeAxis:
    """Return the shortest axis with round marks from one instant to another.

    >>> axis(0, 24 * HOUR - 1).marks()
    '00   03   06   09   12   15   18   21   '
    """
    found = (TimeAxis(first // step * step, step, columns, form) for step, columns, form in _STEPS)
    return next(one for one in found if last < one.start + one.length)


def chart(intervals: Sequence[Interval], *, until: Instant | None = None, now: str = "open") -> Iterator[str]:
    """Yield the lines of a chart of intervals, by condition and scope.

    The axis reaches at least to ``until``. ``now`` is the text for the end of open intervals.
    """
    if not intervals:
        yield "Nothing held."
        return
    ends = [at for one in intervals for at in (one.start, one.end, until) if at is not None]
    scale = axis(min(ends), max(ends))
    day = _format_time(scale.start, "%Y-%m-%d %H:%M")
    yield f"Active intervals (bars begin {day} UTC; longest interval and count):\n"
    yield from bars(intervals, scale, (), now)


def bars(intervals: Iterable[Interval], scale: TimeAxis, order: Sequence[str], now: str) -> Iterator[str]:
    """Yield the line of marks, then a bar for each condition and scope.

    ``order`` lists the names of conditions.
    """
    found: dict[tuple[str, str], list[Interval]] = {}
    for one in intervals:
        found.setdefault((one.subscription, one.scope or ""), []).append(one)
    place = {name: i for i, name in enumerate(order)}
    rows = sorted(found.items(), key=lambda row: (place.get(row[0][0], len(place)), *row[0]))
    left, right = (max(len(row[0][i]) for row in rows) + 1 for i in (0, 1))
    yield f"{'':{left + right}}{scale.marks()}"
    for (name, scope), some in rows[:MOST]:
        yield f"{name:<{left}}{scope:<{right}}{_bar(some, scale)} {_words(some, scale, now)}"
    if len(rows) > MOST:
        yield f"… and {len(rows) - MOST:,} more"


def _bar(intervals: Sequence[Interval], scale: TimeAxis) -> str:
    cells = ["·"] * WIDTH
    for one in intervals:
        first = scale.column(one.start)
        last = WIDTH - 1 if one.end is None else scale.column(one.end)
        cells[first : last + 1] = ("│" if one.end == one.start else "█") * (last + 1 - first)
    return "".join(cells)


def _words(intervals: Sequence[Interval], scale: TimeAxis, now: str) -> str:
    """Return the longest interval and the number of intervals as text."""
    if all(one.end == one.start for one in intervals):
        return f"{len(intervals)} reading{'s' * (len(intervals) != 1)}"
    whole = scale.start + scale.length
    longest = max(intervals, key=lambda one: (whole if one.end is None else one.end) - one.start)
    end = now if longest.end is None else scale.clock(longest.end)
    words = f"{scale.clock(longest.start)}–{end}"
    return words if len(intervals) == 1 else f"{words}, {len(intervals)} times"


def _format_time(at: Instant, form: str) -> str:
    date_time = _EPOCH + timedelta(microseconds=min(max(at, EARLIEST), LATEST))
    return date_time.strftime(form.replace("%Y", f"{date_time.year:04d}"))


class TimelineText:
    """An output format: collects intervals and draws the chart when they are complete."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._intervals: list[Interval] = []

    def events(self, notifications: Sequence[Notification]) -> None:
        raise NotImplementedError("a chart is drawn of intervals")

    def intervals(self, intervals: Sequence[Interval]) -> None:
        self._intervals += intervals

    def finish(self) -> None:
        text = "".join(f"{line}\n" for line in chart(self._intervals))
        self._file.write(text.encode("utf-8", "replace"))
        self._file.flush()

    def abandon(self) -> None:
        pass
