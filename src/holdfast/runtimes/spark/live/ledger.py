"""What the batches of a live query did: counts, lengths of the files it appends to, what holds now.

A batch may be done again after a crash.  Its record is computed from that of the batch before it
and replaces whatever was recorded of it, so that nothing counts twice.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec

from ....errors import UsageError
from ....model.instant import Instant

_TABLES = """
BEGIN;
CREATE TABLE IF NOT EXISTS batches (number INTEGER PRIMARY KEY, record BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS appended (path TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS holding (
    subscription TEXT NOT NULL, scope TEXT NOT NULL, since INTEGER NOT NULL,
    PRIMARY KEY (subscription, scope)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS unknown (
    subscription TEXT NOT NULL, scope TEXT NOT NULL, PRIMARY KEY (subscription, scope)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS restarts (at REAL NOT NULL, reason TEXT NOT NULL);
COMMIT;
"""
_REMEMBERED = 100  # batches, for the rate; two would do for doing one again


class Counts(msgspec.Struct):
    """What one subscription has seen."""

    read: int = 0
    """Events of its topic."""
    passed: int = 0
    """Events that were sent on to its machine from where they were read."""
    transitions: int = 0
    late: int = 0


class Record(msgspec.Struct):
    """How far a query has come: everything since its beginning, and the last batch."""

    subscriptions: dict[str, Counts] = {}
    files: int = 0
    bytes: int = 0
    rows: int = 0
    rejected: dict[str, int] = {}
    other_topics: dict[str, int] = {}
    quarantined: int = 0
    outside: dict[str, int] = {}
    events: dict[str, int] = {}
    reached: dict[str, Instant] = {}
    """The latest time of each topic."""
    lengths: dict[str, int] = {}
    """How long each file is that the query appends to."""
    finished: bool = False
    """Time has run out; nothing more can come."""
    holding: int = 0
    last_rows: int = 0
    started: float = 0.0
    written: float = 0.0
    """When the last batch began and was written, in seconds since 1970."""


Change = tuple[str, str | None, Instant | None]
"""A subscription, a scope, and since when it holds, or that it no longer does."""

Known = tuple[str, str | None, bool]
"""A subscription, a scope, and whether it is known what holds there."""


class Ledger:
    """The ledger on disk, for the one that runs the query."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._holding: int | None = None
        """How many conditions hold, once somebody has counted: nobody else writes here."""
        with self._opened() as database:
            database.executescript(_TABLES)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=60)) as database, database:
            yield database

    def before(self, batch: int) -> Record:
        """The record as it was when a batch began."""
        with self._opened() as database:
            return _record(database, "WHERE number < ? ORDER BY number DESC", (batch,)) or Record()

    def commit(
        self, batch: int, record: Record, changes: Iterable[Change], known: Iterable[Known] = ()
    ) -> None:
        """Record a batch, first time or again."""
        holding, self._holding = self._holding, None  # until all of it is written
        with self._opened() as database:
            if holding is None:
                holding = _count(database)
            for subscription, scope, since in changes:
                key = (subscription, _text(scope))
                gone = database.execute("DELETE FROM holding WHERE subscription = ? AND scope = ?", key)
                holding -= gone.rowcount
                if since is not None:
                    database.execute("INSERT INTO holding VALUES (?, ?, ?)", (*key, since))
                    holding += 1
            for subscription, scope, is_known in known:
                key = (subscription, _text(scope))
                if is_known:
                    database.execute("DELETE FROM unknown WHERE subscription = ? AND scope = ?", key)
                else:
                    database.execute("INSERT OR IGNORE INTO unknown VALUES (?, ?)", key)
            record.holding = holding
            database.execute(
                "INSERT OR REPLACE INTO batches VALUES (?, ?)", (batch, msgspec.json.encode(record))
            )
            database.execute("DELETE FROM batches WHERE number <= ?", (batch - _REMEMBERED,))
        self._holding = holding

    def claims(self) -> set[str]:
        """The files that this query appends to, or will."""
        with self._opened() as database:
            return {path for (path,) in database.execute("SELECT path FROM appended")}

    def claim(self, paths: Iterable[Path]) -> None:
        """Say that these files are ours, before anything is written to them."""
        with self._opened() as database:
            database.executemany("INSERT OR IGNORE INTO appended VALUES (?)", [(str(p),) for p in paths])

    def note_restart(self, at: float, reason: str) -> None:
        """Record that the query was started again by itself, and why."""
        with self._opened() as database:
            database.execute("INSERT INTO restarts VALUES (?, ?)", (at, reason))

    def keep_only(self, subscriptions: Iterable[str]) -> None:
        """Forget what holds for subscriptions that are no more."""
        names, self._holding = msgspec.json.encode(list(subscriptions)).decode(), None
        with self._opened() as database:
            for table in ("holding", "unknown"):
                database.execute(
                    f"DELETE FROM {table} WHERE subscription NOT IN (SELECT value FROM json_each(?))",
                    (names,),
                )


class Standing(msgspec.Struct):
    """How a query stands, for somebody who looks."""

    batch: int | None
    record: Record
    holding: list[tuple[str, str | None, Instant]]
    unknown: list[tuple[str, str | None]] = []
    """Where nobody knows what holds."""
    restarts: list[tuple[float, str]] = []
    """When the query was started again by itself, in seconds since 1970, and why."""


def standing(path: Path, most: int | None = None) -> Standing:
    """Read a ledger that may be in use; ``most`` bounds how many holding conditions are listed."""
    if not path.exists():
        raise UsageError(f"{path.parent}: nothing has been recorded here; is it the checkpoint of a query?")
    with _readable(path), closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if not tables:
            return Standing(None, Record(), [])  # it is being made
        (number,) = database.execute("SELECT MAX(number) FROM batches").fetchone()
        record = _record(database, "WHERE number = ?", (number,)) or Record()
        record.holding = _count(database)
        rows = database.execute(
            "SELECT subscription, scope, since FROM holding ORDER BY subscription, scope LIMIT ?",
            (-1 if most is None else most,),
        )
        held = [(name, msgspec.json.decode(scope), since) for name, scope, since in rows]
        known = "SELECT subscription, scope FROM unknown ORDER BY subscription, scope"
        lost = database.execute(known).fetchall() if "unknown" in tables else []
        unknown = [(name, msgspec.json.decode(scope)) for name, scope in lost]
        known = "SELECT at, reason FROM restarts ORDER BY at"
        restarts = database.execute(known).fetchall() if "restarts" in tables else []
    return Standing(number, record, held, unknown, restarts)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.DatabaseError, msgspec.DecodeError) as error:
        raise UsageError(
            f"{path}: damaged ({error}); put back a copy of the whole checkpoint, together with the sink, or "
            "start a new checkpoint"
        ) from None


def _count(database: sqlite3.Connection) -> int:
    """How many conditions hold, by a look at all of them."""
    (found,) = database.execute("SELECT COUNT(*) FROM holding").fetchone()
    return int(found)


def _record(database: sqlite3.Connection, where: str, values: tuple[int | None, ...]) -> Record | None:
    found = database.execute(f"SELECT record FROM batches {where} LIMIT 1", values).fetchone()
    return None if found is None else msgspec.json.decode(found[0], type=Record)


def _text(scope: str | None) -> str:
    return msgspec.json.encode(scope).decode()


def added(known: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    """Counts added up."""
    return dict(Counter(known) + Counter(more))
