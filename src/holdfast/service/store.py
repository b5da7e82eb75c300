"""The database beside the log: notifications, positions of sinks, marks of users, and the engine's snapshot.

Notifications and snapshots can be computed again from the log, so the database may lag behind the log but
never lead it. A notification has a position of its own here. Its id is unique, so each notification is stored
once.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from ..errors import HoldfastError, UsageError
from ..files.write import event_line
from ..lang.condition import BEFORE, LEVEL
from ..model.event import Notification, meant
from ..model.instant import Duration, Instant
from .feeds.submission import Rejected
from .log.log import hide

_TABLES = """
CREATE TABLE IF NOT EXISTS notifications (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, subscription TEXT NOT NULL,
    scope TEXT, status TEXT NOT NULL, time INTEGER NOT NULL, since INTEGER, arrived INTEGER NOT NULL,
    line TEXT NOT NULL, level TEXT, was TEXT
);
CREATE INDEX IF NOT EXISTS by_scope ON notifications (subscription, scope, time);
CREATE INDEX IF NOT EXISTS by_time ON notifications (time);
CREATE INDEX IF NOT EXISTS unsure ON notifications (position) WHERE status = 'unknown';
CREATE TABLE IF NOT EXISTS snapshots (
    one INTEGER PRIMARY KEY CHECK (one = 0), position INTEGER NOT NULL, definition TEXT NOT NULL,
    engine BLOB NOT NULL, origins BLOB NOT NULL, files TEXT NOT NULL DEFAULT '{}'
);
CREATE TABLE IF NOT EXISTS sinks (name TEXT PRIMARY KEY, position INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS dead_letters (
    sink TEXT NOT NULL, position INTEGER NOT NULL, reason TEXT NOT NULL, at INTEGER NOT NULL,
    resend INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (sink, position)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS withheld (
    sink TEXT NOT NULL, subscription TEXT NOT NULL, scope TEXT, first INTEGER NOT NULL,
    latest INTEGER NOT NULL, starts INTEGER NOT NULL, level TEXT, began INTEGER
);
CREATE INDEX IF NOT EXISTS withheld_from ON withheld (sink, subscription, scope);
CREATE TABLE IF NOT EXISTS marks (
    kind TEXT NOT NULL, subscription TEXT NOT NULL, scope TEXT NOT NULL, until INTEGER NOT NULL,
    who TEXT NOT NULL, note TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (kind, subscription, scope)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rejects (
    number INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL, feed TEXT NOT NULL,
    channel TEXT NOT NULL, reason TEXT NOT NULL, payload BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS log (
    one INTEGER PRIMARY KEY CHECK (one = 0), number BLOB NOT NULL, evaluated INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS requests (
    key BLOB PRIMARY KEY, body BLOB NOT NULL, at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS requests_by_time ON requests (at);
CREATE TABLE IF NOT EXISTS lags (topic TEXT PRIMARY KEY, lag INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS set_aside (position INTEGER PRIMARY KEY, span INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, count INTEGER NOT NULL) WITHOUT ROWID;
"""
MAX_REJECTS = 10_000
_TRIES = 600
_MAX_PAYLOAD = 4_096
_MAX_WAL_PAGES = 10_000
"""Pages in the database's own write-ahead log before a writer must move them into the database. Snapshots
usually move them earlier."""
_COLUMNS = "position, id, subscription, scope, status, time, since, arrived, line, level, was"
_FORM = 3
"""The version of the tables; another version is refused."""


Key = tuple[str, str | None]
"""A condition in a scope."""


class NotificationRow(NamedTuple):
    """A notification as it is stored and sent to sinks. ``line`` is its JSON text."""

    position: int
    id: str
    subscription: str
    scope: str | None
    status: str
    time: Instant
    since: Instant | None
    arrived: Instant
    line: str
    level: str | None = None
    """For levels: the level after this notification."""
    was: str | None = None
    """For levels: the level before."""

    @property
    def key(self) -> Key:
        return self.subscription, self.scope

    @property
    def what(self) -> tuple[object, ...]:
        """The key under which a notification and a later one that takes it back are equal."""
        return (self.subscription, self.scope, meant(self.status), self.time, self.since)


class ServiceSnapshot(NamedTuple):
    """The state of the engine before a position of the log, with its definition and the recent origins."""

    position: int
    definition: str
    engine: bytes
    origins: bytes
    files: Mapping[str, str] = MappingProxyType({})
    """The digests of the files that the definition names, by name."""


class Mark(NamedTuple):
    """An acknowledgement or a mute of a condition by a user, valid until ``until``."""

    kind: str
    subscription: str
    scope: str | None
    until: Instant
    who: str
    note: str
    at: Instant


class Withheld(NamedTuple):
    """The notifications of a muted scope that a sink has not received.

    ``first`` and ``latest`` are their first and last positions. ``starts`` tells whether the first one starts
    the condition, so that the sink does not know that it is active. For levels, ``level`` is the level that
    the sink knows. ``began`` is the start of the withheld episode; with corrections, another episode may end
    meanwhile.
    """

    first: int
    latest: int
    starts: bool
    level: str | None = None
    began: Instant | None = None

    @property
    def positions(self) -> set[int]:
        """The positions of the notifications that the sink receives when the mute ends."""
        return {self.first, self.latest} if self.starts else {self.latest}


class StoreFull(HoldfastError):
    """Raised when the database cannot be written now, for example because the disk is full."""


def to_row(
    notification: Notification, arrived: Instant, id: str | None = None, *, has_level: bool = False
) -> NotificationRow:
    """Return a notification as a row without a position yet. ``id`` replaces the notification's own id."""
    id = id or notification.id
    n = notification
    level, was = (n.event.attributes.get(name) for name in (LEVEL, BEFORE)) if has_level else (None, None)
    return NotificationRow(
        0,
        id,
        n.subscription,
        n.scope,
        n.status,
        n.event.time,
        n.since,
        arrived,
        event_line(n, id).rstrip("\n"),
        cast("str | None", level),
        cast("str | None", was),
    )


def starts_condition(row: NotificationRow) -> bool:
    """Whether a condition becomes active with a notification."""
    return row.status == "ingress" or (row.status == "revised" and _holds(row))


def ends_condition(row: NotificationRow) -> bool:
    """Whether a condition ends with a notification; the row's ``since`` is then its start."""
    return row.status in ("egress", "withdrawn") or (row.status == "revised" and not _holds(row))


def _holds(revised: NotificationRow) -> bool:
    return json.loads(revised.line)["since"] is not None


class ServiceStore:
    """The database of the service. All methods can be called from any thread, and may block.

    One connection writes, one reads, and one waits for the disk. A method that cannot write raises
    ``StoreFull``.
    """

    def __init__(self, path: Path) -> None:
        hide(path)
        self._writing = self._open(path)
        self._reading = self._open(path)
        self._checkpointing = self._open(path)
        self._write_lock, self._read_lock = Lock(), Lock()
        with self._transaction() as database:
            (form,) = database.execute("PRAGMA user_version").fetchone()
            if form != _FORM and database.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise UsageError(f"{path} is of another version of Holdfast: start with an empty folder")
            database.executescript(_TABLES)
            database.execute(f"PRAGMA user_version = {_FORM}")

    @staticmethod
    def _open(path: Path) -> sqlite3.Connection:
        database = sqlite3.connect(path, timeout=60, check_same_thread=False)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA wal_autocheckpoint = {_MAX_WAL_PAGES}")
        return database

    def close(self) -> None:
        """Close the connections to the database."""
        for lock, database in ((self._write_lock, self._writing), (self._read_lock, self._reading)):
            with lock:
                database.close()
        self._checkpointing.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._write_lock:
            try:
                with self._writing:
                    yield self._writing
            except sqlite3.OperationalError as error:
                raise StoreFull(f"the service's database cannot be written: {error}") from error

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._read_lock:
            return self._reading.execute(query, values).fetchall()

    # --- notifications ---

    def add(self, rows: Sequence[NotificationRow], evaluated: int = 0) -> list[NotificationRow]:
        """Insert notifications and record that the log is evaluated up to the position ``evaluated``.

        Returns the notifications that were new, with their positions. A start, an end or a higher level
        removes an acknowledgement, which is valid for one state only.
        """
        stored = []
        with self._transaction() as database:
            database.execute("UPDATE log SET evaluated = max(evaluated, ?)", (evaluated,))
            for row in rows:
                done = database.execute(
                    f"INSERT INTO notifications ({_COLUMNS}) "
                    "VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    row[1:],
                )
                if not done.rowcount:
                    continue
                stored.append(row._replace(position=done.lastrowid or 0))
                if starts_condition(row) or ends_condition(row) or row.status in ("raised", "reopened"):
                    database.execute(
                        "DELETE FROM marks WHERE kind = 'acknowledge' AND subscription = ? AND scope = ?",
                        (row.subscription, row.scope or ""),
                    )
        return stored

    def notifications(
        self, after: int = 0, most: int = 1_000, *, subscription: str | None = None
    ) -> list[NotificationRow]:
        """Return at most ``most`` notifications after a position, in order of position."""
        where, values = "position > ?", [cast(Any, after)]
        if subscription is not None:
            where, values = where + " AND subscription = ?", [*values, subscription]
        query = f"SELECT {_COLUMNS} FROM notifications WHERE {where} ORDER BY position LIMIT ?"
        return [NotificationRow(*row) for row in self._rows(query, [*values, most])]

    def history(
        self, subscription: str, scope: str | None, period: tuple[Instant, Instant], most: int
    ) -> list[NotificationRow]:
        """Return at most ``most`` notifications of a scope in a period, by time.

        The end of the period is exclusive.
        """
        query = (
            f"SELECT {_COLUMNS} FROM notifications WHERE subscription = ? AND scope IS ? "
            "AND time >= ? AND time < ? ORDER BY time, position LIMIT ?"
        )
        return [NotificationRow(*row) for row in self._rows(query, (subscription, scope, *period, most))]

    def last_of(self, subscription: str, scope: str | None) -> NotificationRow | None:
        """Return the latest notification of a scope by event time, or ``None``."""
        query = (
            f"SELECT {_COLUMNS} FROM notifications WHERE subscription = ? AND scope IS ? "
            "AND status <> 'summary' ORDER BY time DESC, position DESC LIMIT 1"
        )
        return next((NotificationRow(*row) for row in self._rows(query, (subscription, scope))), None)

    def unknown_scopes(self, most: int = 10_000) -> list[NotificationRow]:
        """Return the latest notification of each unknown scope."""
        query = (
            f"SELECT {_COLUMNS} FROM notifications AS n WHERE status = 'unknown' AND NOT EXISTS (SELECT 1 "
            "FROM notifications AS m WHERE m.subscription = n.subscription AND m.scope IS n.scope "
            "AND m.position > n.position) ORDER BY position LIMIT ?"
        )
        return [NotificationRow(*row) for row in self._rows(query, (most,))]

    def notifications_between(self, start: Instant, end: Instant, most: int) -> list[NotificationRow]:
        """Return the notifications in a period, by time.

        Later ends of conditions that had started before the period's end are included.
        """
        query = (
            f"SELECT {_COLUMNS} FROM notifications WHERE time >= ? AND (time < ? OR since < ?) "
            "ORDER BY time, position LIMIT ?"
        )
        return [NotificationRow(*row) for row in self._rows(query, (start, end, end, most))]

    def notifications_at(self, positions: Collection[int]) -> list[NotificationRow]:
        """Return the notifications at given positions, in order. Removed notifications are left out."""
        query = f"SELECT {_COLUMNS} FROM notifications WHERE position = ?"
        return [
            NotificationRow(*row) for position in sorted(positions) for row in self._rows(query, (position,))
        ]

    @property
    def last(self) -> int:
        """The position of the last notification; 0 if there is none."""
        return self._rows("SELECT COALESCE(MAX(position), 0) FROM notifications")[0][0]

    def forget(self, before: Instant) -> int:
        """Remove notifications that arrived before an instant, and dead letters from before it.

        Returns the number of removed notifications. Notifications are retained if a sink has still to receive
        them, or if they are the latest one of a scope that is active or unknown.
        """
        with self._transaction() as database:
            database.execute("DELETE FROM dead_letters WHERE at < ?", (before,))
            done = database.execute(
                "DELETE FROM notifications AS n WHERE arrived < ? "
                "AND position <= (SELECT COALESCE(MIN(position), 1 << 62) FROM sinks) "
                "AND position NOT IN (SELECT position FROM dead_letters "
                "UNION SELECT first FROM withheld UNION SELECT latest FROM withheld) "
                "AND (status IN ('egress', 'withdrawn', 'retracted', 'atomic') OR EXISTS (SELECT 1 "
                "FROM notifications AS m WHERE m.subscription = n.subscription AND m.scope IS n.scope "
                "AND m.position > n.position))",
                (before,),
            )
            return done.rowcount

    # --- snapshots ---

    def save_snapshot(
        self,
        snapshot: ServiceSnapshot,
        requests: Iterable[tuple[bytes, bytes, Instant]] = (),
        before: Instant = 0,
    ) -> None:
        """Replace the snapshot, add the requests since then, and wait until the disk has both.

        Requests from before ``before`` are removed.
        """
        files = json.dumps(dict(snapshot.files))
        with self._transaction() as database:
            database.execute(
                "INSERT OR REPLACE INTO snapshots VALUES (0, ?, ?, ?, ?, ?)", (*snapshot[:-1], files)
            )
            database.execute("UPDATE log SET evaluated = max(evaluated, ?)", (snapshot.position,))
            database.executemany("INSERT OR REPLACE INTO requests VALUES (?, ?, ?)", requests)
            database.execute("DELETE FROM requests WHERE at < ?", (before,))
        self._wait_for_disk()

    def _wait_for_disk(self) -> None:
        """Wait until the disk has everything that was written. Other threads can write meanwhile."""
        for _ in range(_TRIES):
            try:
                busy, written, moved = self._checkpointing.execute(
                    "PRAGMA wal_checkpoint(PASSIVE)"
                ).fetchone()
            except sqlite3.OperationalError as error:
                raise StoreFull(f"the service's database cannot be written: {error}") from error
            if not busy and moved >= written:
                return
            time.sleep(0.1)  # a reader or another checkpoint is active
        raise StoreFull("the service's database is read by somebody who does not end")

    def request_body(self, key: bytes) -> bytes | None:
        """Return the digest of the body that belongs to a request's key, or ``None`` for an unknown key."""
        rows = self._rows("SELECT body FROM requests WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    def snapshot(self) -> ServiceSnapshot | None:
        """Return the stored snapshot, or ``None`` if there is none."""
        for position, definition, engine, origins, files in self._rows(
            "SELECT position, definition, engine, origins, files FROM snapshots"
        ):
            return ServiceSnapshot(position, definition, engine, origins, json.loads(files))
        return None

    # --- the log beside it ---

    def log(self) -> tuple[bytes, int]:
        """Return the number of the log that belongs to this database, and the evaluated position."""
        rows = self._rows("SELECT number, evaluated FROM log")
        return rows[0] if rows else (b"", 0)

    def bind_to_log(self, number: bytes) -> None:
        """Store the number of the log that belongs to this database."""
        with self._transaction() as database:
            database.execute(
                "INSERT INTO log VALUES (0, ?, 0) ON CONFLICT DO UPDATE SET number = excluded.number",
                (number,),
            )

    def lags(self) -> dict[str, Duration]:
        """Return the lag of each topic, as stored by ``note_lags``."""
        return dict(self._rows("SELECT topic, lag FROM lags"))

    def note_lags(self, lags: Mapping[str, Duration]) -> None:
        """Store the lags of topics for the next start."""
        with self._transaction() as database:
            database.executemany("INSERT OR REPLACE INTO lags VALUES (?, ?)", list(lags.items()))

    def skip(self, position: int, span: int) -> None:
        """Record that the evaluation skips ``span`` positions of the log from ``position`` on."""
        with self._transaction() as database:
            database.execute("INSERT OR REPLACE INTO set_aside VALUES (?, ?)", (position, span))

    def positions_to_skip(self, position: int) -> list[tuple[int, int]]:
        """Return the ranges that the evaluation skips from ``position`` on, as pairs of position and
        length.
        """
        return self._rows("SELECT * FROM set_aside WHERE position >= ? ORDER BY position", (position,))

    # --- sinks ---

    def sink_position(self, sink: str) -> int | None:
        """Return the position of a sink, or ``None`` for a new sink."""
        rows = self._rows("SELECT position FROM sinks WHERE name = ?", (sink,))
        return rows[0][0] if rows else None

    def set_sink_position(
        self, sink: str, position: int, withheld: Mapping[Key, Withheld | None] | None = None
    ) -> None:
        """Record that a sink has received everything up to a position except what is withheld.

        ``withheld`` has the changes of the withheld scopes; ``None`` removes a scope.
        """
        with self._transaction() as database:
            database.execute("INSERT OR REPLACE INTO sinks VALUES (?, ?)", (sink, position))
            for (name, scope), row in (withheld or {}).items():
                where = "sink = ? AND subscription = ? AND scope IS ?"
                database.execute(f"DELETE FROM withheld WHERE {where}", (sink, name, scope))
                if row is not None:
                    database.execute(
                        "INSERT INTO withheld VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (sink, name, scope, *row)
                    )

    def withheld(self, sink: str) -> dict[Key, Withheld]:
        """Return the notifications that are withheld from a sink, by condition and scope."""
        query = "SELECT subscription, scope, first, latest, starts, level, began FROM withheld WHERE sink = ?"
        return {
            (name, scope): Withheld(first, latest, bool(starts), *more)
            for name, scope, first, latest, starts, *more in self._rows(query, (sink,))
        }

    def retain_sinks(self, names: Iterable[str]) -> None:
        """Remove all sinks that are not in ``names``, so that no notifications are retained for them."""
        with self._transaction() as database:
            known = {name for (name,) in database.execute("SELECT name FROM sinks")}
            gone = [(name,) for name in known - set(names)]
            database.executemany("DELETE FROM sinks WHERE name = ?", gone)
            database.executemany("DELETE FROM withheld WHERE sink = ?", gone)

    def add_dead_letter(self, sink: str, position: int, reason: str, at: Instant) -> None:
        """Record a dead letter: a notification that a sink refuses, with the reason."""
        with self._transaction() as database:
            database.execute(
                "INSERT OR REPLACE INTO dead_letters VALUES (?, ?, ?, ?, 0)",
                (sink, position, reason, at),
            )

    def remove_dead_letter(self, sink: str, position: int) -> None:
        """Remove a dead letter, because the sink has accepted it."""
        with self._transaction() as database:
            database.execute("DELETE FROM dead_letters WHERE sink = ? AND position = ?", (sink, position))

    def dead_letters(self, most: int = 100) -> list[dict[str, Any]]:
        """Return at most ``most`` dead letters, the latest first."""
        rows = self._rows(
            "SELECT d.sink, d.position, d.reason, d.at, d.resend, n.line FROM dead_letters d "
            "LEFT JOIN notifications n ON n.position = d.position ORDER BY d.at DESC LIMIT ?",
            (most,),
        )
        names = ("sink", "position", "reason", "at", "resend", "line")
        return [dict(zip(names, (*row[:4], bool(row[4]), row[5]), strict=True)) for row in rows]

    def dead_letter_count(self, sink: str) -> int:
        """Return the number of dead letters of a sink."""
        return self._rows("SELECT COUNT(*) FROM dead_letters WHERE sink = ?", (sink,))[0][0]

    def resend(self, sink: str, position: int | None = None) -> int:
        """Mark a dead letter, or all of a sink, to be sent again. Returns how many were marked."""
        with self._transaction() as database:
            done = database.execute(
                "UPDATE dead_letters SET resend = 1 WHERE sink = ? AND (? IS NULL OR position = ?)",
                (sink, position, position),
            )
            return done.rowcount

    def to_resend(self, sink: str, most: int) -> list[NotificationRow]:
        """Return the dead letters of a sink that are marked to be sent again."""
        query = (
            f"SELECT {_COLUMNS} FROM notifications WHERE position IN (SELECT position FROM dead_letters "
            "WHERE sink = ? AND resend = 1 ORDER BY position LIMIT ?) ORDER BY position"
        )
        return [NotificationRow(*row) for row in self._rows(query, (sink, most))]

    # --- what people say of conditions ---

    def mark(self, mark: Mark) -> None:
        """Store an acknowledgement or a mute. It replaces an earlier one of the same kind and scope."""
        with self._transaction() as database:
            database.execute(
                "INSERT OR REPLACE INTO marks VALUES (?, ?, ?, ?, ?, ?, ?)",
                mark._replace(scope=mark.scope or ""),
            )

    def unmark(self, kind: str, subscription: str, scope: str | None) -> None:
        """Remove an acknowledgement or a mute, if there is one."""
        with self._transaction() as database:
            database.execute(
                "DELETE FROM marks WHERE kind = ? AND subscription = ? AND scope = ?",
                (kind, subscription, scope or ""),
            )

    def marks(self, now: Instant) -> list[Mark]:
        """Return the acknowledgements and mutes that are valid now."""
        rows = self._rows(
            "SELECT kind, subscription, scope, until, who, note, at FROM marks WHERE until > ?", (now,)
        )
        return [mark._replace(scope=mark.scope or None) for mark in (Mark(*row) for row in rows)]

    # --- what was no reading ---

    def reject(self, rejected: Sequence[Rejected], counts: Mapping[str, int]) -> None:
        """Store rejected messages, and add to the counts by reason.

        Only the latest ten thousand messages are retained.
        """
        with self._transaction() as database:
            database.executemany(
                "INSERT INTO rejects (at, feed, channel, reason, payload) VALUES (?, ?, ?, ?, ?)",
                [(r.at, r.feed, r.channel, r.reason, r.payload[:_MAX_PAYLOAD]) for r in rejected],
            )
            database.execute(
                "DELETE FROM rejects WHERE number <= (SELECT MAX(number) FROM rejects) - ?", (MAX_REJECTS,)
            )
            database.executemany(
                "INSERT INTO counts VALUES (?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
                list(counts.items()),
            )

    def rejects(self, most: int = 100) -> list[dict[str, Any]]:
        """Return at most ``most`` rejected messages, the latest first."""
        rows = self._rows(
            "SELECT at, feed, channel, reason, payload FROM rejects ORDER BY number DESC LIMIT ?", (most,)
        )
        return [
            {"at": at, "feed": feed, "channel": channel, "reason": reason,
             "payload": payload.decode("utf-8", "replace")}
            for at, feed, channel, reason, payload in rows
        ]  # fmt: skip

    def counts(self) -> dict[str, int]:
        """Return the number of rejected messages by reason."""
        return dict(self._rows("SELECT name, count FROM counts"))
