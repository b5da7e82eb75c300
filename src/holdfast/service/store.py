"""What was told, to whom, and what the engine remembered: a database beside the log.

Everything in it can be computed again from the log after the snapshot, so that it may lag behind the
log but never lead it.  A notification has a position of its own here, and enters once: its id is unique.
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
from ..lang.levels import BEFORE, LEVEL
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
REJECTS_KEPT = 10_000
_TRIES = 600
_PAYLOAD_KEPT = 4_096
_WAL_PAGES = 10_000
"""Pages that are written beside the database before who writes moves them into it; snapshots do so before."""
_COLUMNS = "position, id, subscription, scope, status, time, since, arrived, line, level, was"
_FORM = 3
"""The form of the tables; another one is refused."""


Key = tuple[str, str | None]
"""A condition in a scope."""


class Told(NamedTuple):
    """A notification as sinks have it; ``line`` is its JSON."""

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
    """Of levels: the level that this leads to."""
    was: str | None = None
    """Of levels: the level before."""

    @property
    def key(self) -> Key:
        return self.subscription, self.scope

    @property
    def what(self) -> tuple[object, ...]:
        """What is told; or what is taken back."""
        return (self.subscription, self.scope, meant(self.status), self.time, self.since)


class Snapshot(NamedTuple):
    """What the engine remembered before a position of the log."""

    position: int
    definition: str
    engine: bytes
    origins: bytes
    files: Mapping[str, str] = MappingProxyType({})
    """The files that the definition names, as they are kept."""


class Mark(NamedTuple):
    """Somebody has seen a condition, or wants to hear nothing of it until then."""

    kind: str
    subscription: str
    scope: str | None
    until: Instant
    who: str
    note: str
    at: Instant


class Withheld(NamedTuple):
    """What a sink was not sent of a muted condition in a scope: the positions of the first and of the latest
    notification, and whether the first one starts the condition, so that the sink does not know it.  Of
    levels, ``level`` is the one that the sink knows, or learns first.  ``began`` is when an episode began of
    which the sink knows nothing: another may end meanwhile, where corrections come."""

    first: int
    latest: int
    starts: bool
    level: str | None = None
    began: Instant | None = None

    @property
    def positions(self) -> set[int]:
        """Those of what the sink is sent when the mute is over."""
        return {self.first, self.latest} if self.starts else {self.latest}


class StoreFull(HoldfastError):
    """The database cannot be written now."""


def told(
    notification: Notification, arrived: Instant, id: str | None = None, *, has_level: bool = False
) -> Told:
    """A notification that is not yet in the database, under its own id or another."""
    id = id or notification.id
    n = notification
    level, was = (n.event.attributes.get(name) for name in (LEVEL, BEFORE)) if has_level else (None, None)
    return Told(
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


def begins(one: Told) -> bool:
    """Whether a condition holds from then on that did not before."""
    return one.status == "ingress" or (one.status == "revised" and _holds(one))


def ends(one: Told) -> bool:
    """Whether a condition holds no longer that did; ``since`` is then when it began."""
    return one.status in ("egress", "withdrawn") or (one.status == "revised" and not _holds(one))


def _holds(revised: Told) -> bool:
    return json.loads(revised.line)["since"] is not None


class Store:
    """The database; safe to use from several threads."""

    def __init__(self, path: Path) -> None:
        hide(path)
        self._writing = self._opened(path)
        self._reading = self._opened(path)
        self._settling = self._opened(path)
        self._write_lock, self._read_lock = Lock(), Lock()
        with self._written() as database:
            (form,) = database.execute("PRAGMA user_version").fetchone()
            if form != _FORM and database.execute("SELECT 1 FROM sqlite_master").fetchone():
                raise UsageError(f"{path} is of another version of Holdfast: start with an empty folder")
            database.executescript(_TABLES)
            database.execute(f"PRAGMA user_version = {_FORM}")

    @staticmethod
    def _opened(path: Path) -> sqlite3.Connection:
        database = sqlite3.connect(path, timeout=60, check_same_thread=False)
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute(f"PRAGMA wal_autocheckpoint = {_WAL_PAGES}")
        return database

    def close(self) -> None:
        for lock, database in ((self._write_lock, self._writing), (self._read_lock, self._reading)):
            with lock:
                database.close()
        self._settling.close()

    @contextmanager
    def _written(self) -> Iterator[sqlite3.Connection]:
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

    def add(self, told: Sequence[Told], evaluated: int = 0) -> list[Told]:
        """Enter notifications, and how far the log was ``evaluated`` then; return those that were not there
        yet, with their positions.  An acknowledgement is of what was active: a start, an end or a higher
        level ends it."""
        fresh = []
        with self._written() as database:
            database.execute("UPDATE log SET evaluated = max(evaluated, ?)", (evaluated,))
            for one in told:
                done = database.execute(
                    f"INSERT INTO notifications ({_COLUMNS}) "
                    "VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                    one[1:],
                )
                if not done.rowcount:
                    continue
                fresh.append(one._replace(position=done.lastrowid or 0))
                if begins(one) or ends(one) or one.status in ("raised", "reopened"):
                    database.execute(
                        "DELETE FROM marks WHERE kind = 'acknowledge' AND subscription = ? AND scope = ?",
                        (one.subscription, one.scope or ""),
                    )
        return fresh

    def notifications(
        self, after: int = 0, most: int = 1_000, *, subscription: str | None = None
    ) -> list[Told]:
        """Notifications in the order in which they were told, after a position."""
        where, values = "position > ?", [cast(Any, after)]
        if subscription is not None:
            where, values = where + " AND subscription = ?", [*values, subscription]
        query = f"SELECT {_COLUMNS} FROM notifications WHERE {where} ORDER BY position LIMIT ?"
        return [Told(*row) for row in self._rows(query, [*values, most])]

    def history(
        self, subscription: str, scope: str | None, stretch: tuple[Instant, Instant], most: int
    ) -> list[Told]:
        """What was told of a scope, by time."""
        query = (
            f"SELECT {_COLUMNS} FROM notifications WHERE subscription = ? AND scope IS ? "
            "AND time >= ? AND time < ? ORDER BY time, position LIMIT ?"
        )
        return [Told(*row) for row in self._rows(query, (subscription, scope, *stretch, most))]

    def last_of(self, subscription: str, scope: str | None) -> Told | None:
        """What was told last of a scope."""
        query = (
            f"SELECT {_COLUMNS} FROM notifications WHERE subscription = ? AND scope IS ? "
            "AND status <> 'summary' ORDER BY time DESC, position DESC LIMIT 1"
        )
        return next((Told(*row) for row in self._rows(query, (subscription, scope))), None)

    def unsure(self, most: int = 10_000) -> list[Told]:
        """The latest word of each scope of which that word is ``unknown``."""
        query = (
            f"SELECT {_COLUMNS} FROM notifications AS n WHERE status = 'unknown' AND NOT EXISTS (SELECT 1 "
            "FROM notifications AS m WHERE m.subscription = n.subscription AND m.scope IS n.scope "
            "AND m.position > n.position) ORDER BY position LIMIT ?"
        )
        return [Told(*row) for row in self._rows(query, (most,))]

    def between(self, start: Instant, end: Instant, most: int) -> list[Told]:
        """What was told of a stretch of time, and the ends of what had begun before its end."""
        query = (
            f"SELECT {_COLUMNS} FROM notifications WHERE time >= ? AND (time < ? OR since < ?) "
            "ORDER BY time, position LIMIT ?"
        )
        return [Told(*row) for row in self._rows(query, (start, end, end, most))]

    def at(self, positions: Collection[int]) -> list[Told]:
        """The notifications at some positions, in their order."""
        query = f"SELECT {_COLUMNS} FROM notifications WHERE position = ?"
        return [Told(*row) for position in sorted(positions) for row in self._rows(query, (position,))]

    @property
    def last(self) -> int:
        """The position of the last notification."""
        return self._rows("SELECT COALESCE(MAX(position), 0) FROM notifications")[0][0]

    def forget(self, before: Instant) -> int:
        """Remove notifications that arrived before an instant, and what sinks refused before it.  Kept are
        those that a sink has still to be sent, and the latest of each scope that is not over."""
        with self._written() as database:
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

    def keep(
        self, snapshot: Snapshot, requests: Iterable[tuple[bytes, bytes, Instant]] = (), before: Instant = 0
    ) -> None:
        """Keep a snapshot in place of the one before, with the requests since then, and wait until the disk
        has it.  Requests from ``before`` an instant are forgotten."""
        files = json.dumps(dict(snapshot.files))
        with self._written() as database:
            database.execute(
                "INSERT OR REPLACE INTO snapshots VALUES (0, ?, ?, ?, ?, ?)", (*snapshot[:-1], files)
            )
            database.execute("UPDATE log SET evaluated = max(evaluated, ?)", (snapshot.position,))
            database.executemany("INSERT OR REPLACE INTO requests VALUES (?, ?, ?)", requests)
            database.execute("DELETE FROM requests WHERE at < ?", (before,))
        self._settle()

    def _settle(self) -> None:
        """Wait until the disk has what was written, in one thread at a time; who writes goes on meanwhile."""
        for _ in range(_TRIES):
            try:
                busy, written, moved = self._settling.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            except sqlite3.OperationalError as error:
                raise StoreFull(f"the service's database cannot be written: {error}") from error
            if not busy and moved >= written:
                return
            time.sleep(0.1)  # somebody reads what was before, or moves what was written
        raise StoreFull("the service's database is read by somebody who does not end")

    def body_of(self, key: bytes) -> bytes | None:
        """What the request with a key brought, by its digest, if there was one."""
        rows = self._rows("SELECT body FROM requests WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    def snapshot(self) -> Snapshot | None:
        for position, definition, engine, origins, files in self._rows(
            "SELECT position, definition, engine, origins, files FROM snapshots"
        ):
            return Snapshot(position, definition, engine, origins, json.loads(files))
        return None

    # --- the log beside it ---

    def log(self) -> tuple[bytes, int]:
        """The number of the log that belongs to this database, and how far it was evaluated at least."""
        rows = self._rows("SELECT number, evaluated FROM log")
        return rows[0] if rows else (b"", 0)

    def belong_to(self, number: bytes) -> None:
        """From now on belong to a log."""
        with self._written() as database:
            database.execute(
                "INSERT INTO log VALUES (0, ?, 0) ON CONFLICT DO UPDATE SET number = excluded.number",
                (number,),
            )

    def lags(self) -> dict[str, Duration]:
        """How long readings of topics took from their time to their arrival, when that was noted last."""
        return dict(self._rows("SELECT topic, lag FROM lags"))

    def note_lags(self, lags: Mapping[str, Duration]) -> None:
        """Note how long readings take, for the start after this one."""
        with self._written() as database:
            database.executemany("INSERT OR REPLACE INTO lags VALUES (?, ?)", list(lags.items()))

    def set_aside(self, position: int, span: int) -> None:
        """Remember that the evaluation passes over positions of the log."""
        with self._written() as database:
            database.execute("INSERT OR REPLACE INTO set_aside VALUES (?, ?)", (position, span))

    def are_aside(self, position: int) -> list[tuple[int, int]]:
        """The positions from there on that the evaluation passes over, each with how many."""
        return self._rows("SELECT * FROM set_aside WHERE position >= ? ORDER BY position", (position,))

    # --- sinks ---

    def reached(self, sink: str) -> int | None:
        """How far a sink has come; nothing for one that is new."""
        rows = self._rows("SELECT position FROM sinks WHERE name = ?", (sink,))
        return rows[0][0] if rows else None

    def reach(self, sink: str, position: int, withheld: Mapping[Key, Withheld | None] | None = None) -> None:
        """A sink has had everything up to a position, but for what is withheld from it; ``withheld`` has what
        changes of that."""
        with self._written() as database:
            database.execute("INSERT OR REPLACE INTO sinks VALUES (?, ?)", (sink, position))
            for (name, scope), row in (withheld or {}).items():
                where = "sink = ? AND subscription = ? AND scope IS ?"
                database.execute(f"DELETE FROM withheld WHERE {where}", (sink, name, scope))
                if row is not None:
                    database.execute(
                        "INSERT INTO withheld VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (sink, name, scope, *row)
                    )

    def withheld(self, sink: str) -> dict[Key, Withheld]:
        """What a sink was not sent of conditions that are muted."""
        query = "SELECT subscription, scope, first, latest, starts, level, began FROM withheld WHERE sink = ?"
        return {
            (name, scope): Withheld(first, latest, bool(starts), *more)
            for name, scope, first, latest, starts, *more in self._rows(query, (sink,))
        }

    def keep_sinks(self, names: Iterable[str]) -> None:
        """Forget sinks that are no more, so that they hold nothing back."""
        with self._written() as database:
            known = {name for (name,) in database.execute("SELECT name FROM sinks")}
            gone = [(name,) for name in known - set(names)]
            database.executemany("DELETE FROM sinks WHERE name = ?", gone)
            database.executemany("DELETE FROM withheld WHERE sink = ?", gone)

    def bury(self, sink: str, position: int, reason: str, at: Instant) -> None:
        """Put aside a notification that a sink refuses."""
        with self._written() as database:
            database.execute(
                "INSERT OR REPLACE INTO dead_letters VALUES (?, ?, ?, ?, 0)", (sink, position, reason, at)
            )

    def unbury(self, sink: str, position: int) -> None:
        """A sink has taken a notification that it had refused."""
        with self._written() as database:
            database.execute("DELETE FROM dead_letters WHERE sink = ? AND position = ?", (sink, position))

    def dead_letters(self, most: int = 100) -> list[dict[str, Any]]:
        """What sinks refused, the latest first."""
        rows = self._rows(
            "SELECT d.sink, d.position, d.reason, d.at, d.resend, n.line FROM dead_letters d "
            "LEFT JOIN notifications n ON n.position = d.position ORDER BY d.at DESC LIMIT ?",
            (most,),
        )
        names = ("sink", "position", "reason", "at", "resend", "line")
        return [dict(zip(names, (*row[:4], bool(row[4]), row[5]), strict=True)) for row in rows]

    def buried(self, sink: str) -> int:
        """How many notifications a sink has refused and not taken since."""
        return self._rows("SELECT COUNT(*) FROM dead_letters WHERE sink = ?", (sink,))[0][0]

    def resend(self, sink: str, position: int | None = None) -> int:
        """Ask for a refused notification to be sent again, or for all of a sink; how many are."""
        with self._written() as database:
            done = database.execute(
                "UPDATE dead_letters SET resend = 1 WHERE sink = ? AND (? IS NULL OR position = ?)",
                (sink, position, position),
            )
            return done.rowcount

    def to_resend(self, sink: str, most: int) -> list[Told]:
        """Refused notifications of a sink that are to be sent again."""
        query = (
            f"SELECT {_COLUMNS} FROM notifications WHERE position IN (SELECT position FROM dead_letters "
            "WHERE sink = ? AND resend = 1 ORDER BY position LIMIT ?) ORDER BY position"
        )
        return [Told(*row) for row in self._rows(query, (sink, most))]

    # --- what people say of conditions ---

    def mark(self, mark: Mark) -> None:
        with self._written() as database:
            database.execute(
                "INSERT OR REPLACE INTO marks VALUES (?, ?, ?, ?, ?, ?, ?)",
                mark._replace(scope=mark.scope or ""),
            )

    def unmark(self, kind: str, subscription: str, scope: str | None) -> None:
        with self._written() as database:
            database.execute(
                "DELETE FROM marks WHERE kind = ? AND subscription = ? AND scope = ?",
                (kind, subscription, scope or ""),
            )

    def marks(self, now: Instant) -> list[Mark]:
        """The marks that count now."""
        rows = self._rows(
            "SELECT kind, subscription, scope, until, who, note, at FROM marks WHERE until > ?", (now,)
        )
        return [mark._replace(scope=mark.scope or None) for mark in (Mark(*row) for row in rows)]

    # --- what was no reading ---

    def reject(self, rejected: Sequence[Rejected], counts: Mapping[str, int]) -> None:
        """Keep what could not be used, the latest ten thousand, and count all of it."""
        with self._written() as database:
            database.executemany(
                "INSERT INTO rejects (at, feed, channel, reason, payload) VALUES (?, ?, ?, ?, ?)",
                [(r.at, r.feed, r.channel, r.reason, r.payload[:_PAYLOAD_KEPT]) for r in rejected],
            )
            database.execute(
                "DELETE FROM rejects WHERE number <= (SELECT MAX(number) FROM rejects) - ?", (REJECTS_KEPT,)
            )
            database.executemany(
                "INSERT INTO counts VALUES (?, ?) ON CONFLICT DO UPDATE SET count = count + excluded.count",
                list(counts.items()),
            )

    def rejects(self, most: int = 100) -> list[dict[str, Any]]:
        """What could not be used, the latest first."""
        rows = self._rows(
            "SELECT at, feed, channel, reason, payload FROM rejects ORDER BY number DESC LIMIT ?", (most,)
        )
        return [
            {"at": at, "feed": feed, "channel": channel, "reason": reason,
             "payload": payload.decode("utf-8", "replace")}
            for at, feed, channel, reason, payload in rows
        ]  # fmt: skip

    def counts(self) -> dict[str, int]:
        """How much of what was counted."""
        return dict(self._rows("SELECT name, count FROM counts"))
