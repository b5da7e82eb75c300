"""A database of the periods in which conditions were active, for charts at any zoom.

The same bars are stored at several levels of detail. On a level of width w, intervals of one scope that are
less than w apart are one bar. So a chart of an hour and one of a year read about as many bars as they have
pixels. The notifications determine all of it; the database follows them at its own position.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from ..model.instant import DAY, HOUR, MINUTE, SECOND, Duration, Instant
from .hub import Hub
from .log.log import hide
from .store import NotificationRow, ends_condition

log = logging.getLogger("holdfast.service")

WIDTHS: tuple[Duration, ...] = (0, SECOND, 10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 6 * HOUR, 2 * DAY)
_REMEMBERED = 200_000
"""How many bars are kept in memory, because the next interval may extend them."""

_TABLES = """
CREATE TABLE IF NOT EXISTS series (
    number INTEGER PRIMARY KEY, subscription TEXT NOT NULL, scope TEXT NOT NULL, scoped INTEGER NOT NULL,
    kind TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    UNIQUE (subscription, scope, scoped, kind)
);
CREATE TABLE IF NOT EXISTS bars (
    level INTEGER NOT NULL, series INTEGER NOT NULL, start INTEGER NOT NULL, end INTEGER NOT NULL,
    count INTEGER NOT NULL, PRIMARY KEY (level, series, start)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS unsure (series INTEGER PRIMARY KEY, start INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS reached (one INTEGER PRIMARY KEY CHECK (one = 0), position INTEGER NOT NULL);
"""


_BARS = "SELECT start, end, count FROM bars"


class Row(NamedTuple):
    """A row of the chart: a condition and scope, and whether its bars are active or unknown intervals."""

    subscription: str
    scope: str | None
    kind: str = "holds"


Period = tuple[Instant, Instant]
Bar = list[int]
"""Start, end, and how many intervals it stands for."""


class TimelineView(NamedTuple):
    """The part of the timeline that a chart shows: period, width in pixels, and selection of rows."""

    start: Instant
    end: Instant
    width: int
    subscription: str | None = None
    find: str = ""
    skip: int = 0
    most: int = 200

    @property
    def pixel(self) -> Duration:
        return max(1, (self.end - self.start) // max(1, self.width))

    def has(self, row: Row) -> bool:
        mine = self.subscription is None or row.subscription == self.subscription
        return mine and self.find.lower() in f"{row.subscription} {row.scope or ''}".lower()


class Timeline:
    """The timeline's bars, in a database of their own.

    ``follow`` writes them; ``rows`` can be called from any thread.
    """

    def __init__(self, path: Path) -> None:
        hide(path)
        self._database = sqlite3.connect(path, timeout=60, check_same_thread=False)
        self._lock = Lock()
        with self._lock, self._database as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = NORMAL")
            database.executescript(_TABLES)
            found = database.execute("SELECT position FROM reached").fetchone()
        self.position: int = found[0] if found else 0
        self._numbers: dict[Row, int] = {}
        self._latest: dict[tuple[int, int], Bar] = {}

    def close(self) -> None:
        with self._lock:
            self._database.close()

    # --- what was told becomes bars ---

    async def follow(self, hub: Hub) -> None:
        """Add notifications as they are published, until cancelled. Waits while the disk has no room."""
        async for rows_added in hub.stream(self.position, 5_000):
            while rows_added:
                try:
                    await asyncio.to_thread(self.add, rows_added)
                    break
                except sqlite3.OperationalError as error:
                    log.warning("the timeline cannot be written: %s", error)
                    await asyncio.sleep(1)

    async def has(self, position: int) -> None:
        """Wait until notifications up to a position are added, for two seconds at most."""
        for _ in range(200):
            if self.position >= position:
                return
            await asyncio.sleep(0.01)

    def add(self, rows_added: Sequence[NotificationRow]) -> None:
        """Add notifications to the bars. Notifications that were added before are ignored."""
        changed: dict[tuple[int, int, Instant], Bar] = {}
        with self._lock:
            try:
                with self._database as database:
                    for notification in rows_added:
                        if notification.position > self.position:
                            self._take(database, notification, changed)
                    _write(database, changed)
                    database.execute(
                        "INSERT OR REPLACE INTO reached VALUES (0, ?)", (rows_added[-1].position,)
                    )
            except sqlite3.OperationalError:
                self._latest.clear()
                self._numbers.clear()
                raise
            self.position = max(self.position, rows_added[-1].position)
            if len(self._latest) > _REMEMBERED:
                self._latest.clear()
            if len(self._numbers) > _REMEMBERED:
                self._numbers.clear()

    def _take(
        self, database: sqlite3.Connection, notification: NotificationRow, changed: dict[Any, Bar]
    ) -> None:
        row = Row(notification.subscription, notification.scope)
        match notification.status:
            case _ if ends_condition(notification):
                self._add_interval(
                    database,
                    row,
                    notification.time if notification.since is None else notification.since,
                    notification.time,
                    changed,
                )
            case "atomic":
                self._add_interval(database, row, notification.time, notification.time, changed)
            case "unknown":
                unsure = self._extend_series(
                    database, row._replace(kind="unknown"), notification.time, notification.time
                )
                database.execute("INSERT OR IGNORE INTO unsure VALUES (?, ?)", (unsure, notification.time))
                return
            case "reopened":
                active = (
                    notification.time if notification.since is None else notification.since,
                    notification.time,
                )
                self._take_back(database, row, active, changed)
                return
            case "ingress" | "known" | "revised":
                pass
            case _:  # the condition stays active, for example at another level
                return
        self._end_unknown(database, row._replace(kind="unknown"), notification.time, changed)

    def _end_unknown(
        self, database: sqlite3.Connection, row: Row, at: Instant, changed: dict[Any, Bar]
    ) -> None:
        """End the unknown interval of a scope, if it has one, and add it to the bars."""
        if (series := self._find_series(database, row)) is None:
            return
        for (start,) in database.execute("DELETE FROM unsure WHERE series = ? RETURNING start", (series,)):
            self._add_interval(database, row, start, at, changed)

    def _add_interval(
        self, database: sqlite3.Connection, row: Row, start: Instant, end: Instant, changed: dict[Any, Bar]
    ) -> None:
        series = self._extend_series(database, row, start, end)
        for level, width in enumerate(WIDTHS):
            last = self._last(database, level, series)
            if last is not None and last[0] <= start <= last[1] + width and (width or start == last[0]):
                last[1], last[2] = max(last[1], end), last[2] + 1
                changed[level, series, last[0]] = last
            else:
                bar = [start, end, 1]
                changed[level, series, start] = bar
                if last is None or start > last[0]:
                    self._latest[level, series] = bar

    def _take_back(
        self, database: sqlite3.Connection, row: Row, interval: Period, changed: dict[Any, Bar]
    ) -> None:
        """Remove an interval from the bars that contain it."""
        if (series := self._find_series(database, row)) is None:
            return
        _write(database, changed)
        changed.clear()
        finest = "DELETE FROM bars WHERE level = 0 AND series = ? AND start = ? AND end = ?"
        database.execute(finest, (series, *interval))
        for level, width in enumerate(WIDTHS):
            self._latest.pop((level, series), None)
            if width:
                _remake(database, level, series, interval)

    def _last(self, database: sqlite3.Connection, level: int, series: int) -> Bar | None:
        if (known := self._latest.get((level, series))) is not None:
            return known
        query = (
            "SELECT start, end, count FROM bars WHERE level = ? AND series = ? ORDER BY start DESC LIMIT 1"
        )
        found = database.execute(query, (level, series)).fetchone()
        if found is None:
            return None
        self._latest[level, series] = list(found)
        return self._latest[level, series]

    def _find_series(self, database: sqlite3.Connection, row: Row) -> int | None:
        if row not in self._numbers:
            query = (
                "SELECT number FROM series WHERE subscription = ? AND scope = ? AND scoped = ? AND kind = ?"
            )
            found = database.execute(query, _columns(row)).fetchone()
            if found is None:
                return None
            self._numbers[row] = found[0]
        return self._numbers[row]

    def _extend_series(self, database: sqlite3.Connection, row: Row, start: Instant, end: Instant) -> int:
        number: int = database.execute(
            "INSERT INTO series (subscription, scope, scoped, kind, first, last) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET first = MIN(first, excluded.first), last = MAX(last, excluded.last) "
            "RETURNING number",
            (*_columns(row), start, end),
        ).fetchone()[0]
        self._numbers[row] = number
        return number

    def forget(self, before: Instant) -> None:
        """Remove the bars of the two finest levels from before an instant. Coarser bars remain."""
        with self._lock, self._database as database:
            database.execute("DELETE FROM bars WHERE level < 2 AND end < ?", (before,))

    # --- pictures ---

    def rows(
        self, view: TimelineView, now: Instant, active: Iterable[tuple[Row, Instant]] = ()
    ) -> tuple[list[dict[str, Any]], int]:
        """Return the rows of a view with their bars, and the total number of rows.

        Bars of `active` conditions last until ``now``.
        """
        starts = {row: since for row, since in active if since < view.end and view.has(row)}
        with self._lock:
            known = self._in_view(view)
            names = sorted(known.keys() | starts.keys(), key=_order)
            level = max(i for i, width in enumerate(WIDTHS) if width <= view.pixel)
            shown = [
                {
                    **row._asdict(),
                    "bars": _merge(self._bars(level, known.get(row), view, now), starts.get(row), view, now),
                }
                for row in names[view.skip : view.skip + view.most]
            ]
        return shown, len(names)

    def _in_view(self, view: TimelineView) -> dict[Row, int]:
        query = (
            "SELECT number, subscription, scope, scoped, kind FROM series "
            "WHERE first < ? AND (last >= ? OR number IN (SELECT series FROM unsure))"
        )
        found = self._database.execute(query, (view.end, view.start))
        rows = {Row(name, scope if scoped else None, kind): n for n, name, scope, scoped, kind in found}
        return {row: number for row, number in rows.items() if view.has(row)}

    def _bars(self, level: int, series: int | None, view: TimelineView, now: Instant) -> list[Bar]:
        if series is None:
            return []
        query = (
            f"{_BARS} WHERE level = ?1 AND series = ?2 AND end >= ?3 AND start < ?4 "
            "AND start >= COALESCE((SELECT MAX(start) FROM bars WHERE level = ?1 AND series = ?2 "
            "AND start <= ?3), ?3) ORDER BY start"
        )
        with closing(self._database.execute(query, (level, series, view.start, view.end))) as cursor:
            found = [list(bar) for bar in cursor]
        unsure = self._database.execute("SELECT start FROM unsure WHERE series = ?", (series,)).fetchone()
        return [*found, [unsure[0], max(unsure[0], now), 1]] if unsure else found


def _write(database: sqlite3.Connection, changed: dict[Any, Bar]) -> None:
    rows = [(level, series, *bar) for (level, series, _), bar in changed.items()]
    database.executemany("INSERT OR REPLACE INTO bars VALUES (?, ?, ?, ?, ?)", rows)


def _remake(database: sqlite3.Connection, level: int, series: int, removed: Period) -> None:
    """Compute a level's bar again after an interval was removed from it.

    The bar is built from the remaining finest bars. One coarse bar stands for finest bars that were removed
    before.
    """
    which = "level = ? AND series = ? AND start <= ? AND end >= ?"
    found = database.execute(f"{_BARS} WHERE {which}", (level, series, *removed)).fetchone()
    if found is None:
        return
    start, end, count = found
    database.execute("DELETE FROM bars WHERE level = ? AND series = ? AND start = ?", (level, series, start))
    inside = "level = 0 AND series = ? AND start >= ? AND start <= ? ORDER BY start"
    finest = [list(bar) for bar in database.execute(f"{_BARS} WHERE {inside}", (series, start, end))]
    before = count - 1 - sum(bar[2] for bar in finest)
    bars: list[Bar] = [[start, finest[0][0] if finest else removed[0], before]] if before > 0 else []
    for bar in finest:
        if bars and bar[0] <= bars[-1][1] + WIDTHS[level]:
            bars[-1][1], bars[-1][2] = max(bars[-1][1], bar[1]), bars[-1][2] + bar[2]
        else:
            bars.append(bar)
    _write(database, {(level, series, bar[0]): bar for bar in bars})


def _columns(row: Row) -> tuple[str, str, bool, str]:
    return row.subscription, row.scope or "", row.scope is not None, row.kind


def _order(row: Row) -> tuple[str, str, str]:
    return row.subscription, row.scope or "", row.kind


def _merge(found: Iterable[Bar], starts: Instant | None, view: TimelineView, now: Instant) -> list[Bar]:
    """Cut bars to the period of a view, and merge bars that fall on one pixel."""
    going_on = [] if starts is None else [[starts, max(starts, now), 1]]
    merged: list[Bar] = []
    for start, end, count in [*found, *going_on]:
        left, right = max(start, view.start), min(end, view.end)
        if merged and left - merged[-1][1] <= view.pixel:
            merged[-1] = [merged[-1][0], max(merged[-1][1], right), merged[-1][2] + count]
        else:
            merged.append([left, right, count])
    return merged
