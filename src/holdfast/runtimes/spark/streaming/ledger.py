"""The ledger of a query: counts of its batches, lengths of its output files, and the active conditions.

A batch may be repeated after a crash. Its record is computed from the record of the batch before and replaces
an earlier record of the same batch, so nothing is counted twice.
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
_HISTORY = 100  # batches, for the rate; two would do for doing one again


class Counts(msgspec.Struct):
    """The counts of one subscription since the start of the query."""

    read: int = 0
    """Events of its topic."""
    passed: int = 0
    """Events that readers sent to its operator."""
    transitions: int = 0
    late: int = 0


class Record(msgspec.Struct):
    """The totals of a query since its start, and the last batch."""

    subscriptions: dict[str, Counts] = {}
    files: int = 0
    bytes: int = 0
    rows: int = 0
    rejected: dict[str, int] = {}
    other_topics: dict[str, int] = {}
    quarantined: int = 0
    outside: dict[str, int] = {}
    events: dict[str, int] = {}
    watermarks: dict[str, Instant] = {}
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


ActiveChange = tuple[str, str | None, Instant | None]
"""A subscription, a scope, and since when it holds, or that it no longer does."""

KnownChange = tuple[str, str | None, bool]
"""A subscription, a scope, and whether it is known what holds there."""


class Ledger:
    """The ledger on disk. Only the process that runs the query may write it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._holding: int | None = None
        """How many conditions hold, once somebody has counted: nobody else writes here."""
        with self._connect() as database:
            database.executescript(_TABLES)

    @contextmanager
    def _connect(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._path, timeout=60)) as database, database:
            yield database

    def before(self, batch: int) -> Record:
        """Return the record as it was before a batch; an empty record before the first one."""
        with self._connect() as database:
            return _record(database, "WHERE number < ? ORDER BY number DESC", (batch,)) or Record()

    def commit(
        self, batch: int, record: Record, changes: Iterable[ActiveChange], known: Iterable[KnownChange] = ()
    ) -> None:
        """Write the record of a batch, and the changes of its active and unknown scopes.

        Replaces a record of the same batch.
        """
        holding, self._holding = self._holding, None  # until all of it is written
        with self._connect() as database:
            if holding is None:
                holding = _count(database)
            for subscription, scope, since in changes:
                key = (subscription, _encode_scope(scope))
                deleted = database.execute("DELETE FROM holding WHERE subscription = ? AND scope = ?", key)
                holding -= deleted.rowcount
                if since is not None:
                    database.execute("INSERT INTO holding VALUES (?, ?, ?)", (*key, since))
                    holding += 1
            for subscription, scope, is_known in known:
                key = (subscription, _encode_scope(scope))
                if is_known:
                    database.execute("DELETE FROM unknown WHERE subscription = ? AND scope = ?", key)
                else:
                    database.execute("INSERT OR IGNORE INTO unknown VALUES (?, ?)", key)
            record.holding = holding
            database.execute(
                "INSERT OR REPLACE INTO batches VALUES (?, ?)", (batch, msgspec.json.encode(record))
            )
            database.execute("DELETE FROM batches WHERE number <= ?", (batch - _HISTORY,))
        self._holding = holding

    def claims(self) -> set[str]:
        """Return the files that the query has claimed to append to."""
        with self._connect() as database:
            return {path for (path,) in database.execute("SELECT path FROM appended")}

    def claim(self, paths: Iterable[Path]) -> None:
        """Record that files belong to this query, before anything is written to them."""
        with self._connect() as database:
            database.executemany("INSERT OR IGNORE INTO appended VALUES (?)", [(str(p),) for p in paths])

    def record_restart(self, at: float, reason: str) -> None:
        """Record that the query has restarted by itself, and why."""
        with self._connect() as database:
            database.execute("INSERT INTO restarts VALUES (?, ?)", (at, reason))

    def remove_others(self, subscriptions: Iterable[str]) -> None:
        """Remove the active and unknown scopes of subscriptions that no longer exist."""
        names, self._holding = msgspec.json.encode(list(subscriptions)).decode(), None
        with self._connect() as database:
            for table in ("holding", "unknown"):
                database.execute(
                    f"DELETE FROM {table} WHERE subscription NOT IN (SELECT value FROM json_each(?))",
                    (names,),
                )


class LedgerStatus(msgspec.Struct):
    """The status of a query, as `read_ledger` returns it."""

    batch: int | None
    record: Record
    holding: list[tuple[str, str | None, Instant]]
    unknown: list[tuple[str, str | None]] = []
    """The scopes in which it is unknown whether the condition is active."""
    restarts: list[tuple[float, str]] = []
    """When the query restarted by itself, in seconds since 1970, and why."""


def read_ledger(path: Path, most: int | None = None) -> LedgerStatus:
    """Read a ledger that may be in use. Lists at most `most` active conditions."""
    if not path.exists():
        raise UsageError(f"{path.parent}: nothing has been recorded here; is it the checkpoint of a query?")
    with _readable(path), closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=60)) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
        if not tables:
            return LedgerStatus(None, Record(), [])  # it is being made
        (number,) = database.execute("SELECT MAX(number) FROM batches").fetchone()
        record = _record(database, "WHERE number = ?", (number,)) or Record()
        record.holding = _count(database)
        rows = database.execute(
            "SELECT subscription, scope, since FROM holding ORDER BY subscription, scope LIMIT ?",
            (-1 if most is None else most,),
        )
        holding_rows = [(name, msgspec.json.decode(scope), since) for name, scope, since in rows]
        known = "SELECT subscription, scope FROM unknown ORDER BY subscription, scope"
        unknown_rows = database.execute(known).fetchall() if "unknown" in tables else []
        unknown = [(name, msgspec.json.decode(scope)) for name, scope in unknown_rows]
        known = "SELECT at, reason FROM restarts ORDER BY at"
        restarts = database.execute(known).fetchall() if "restarts" in tables else []
    return LedgerStatus(number, record, holding_rows, unknown, restarts)


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
    """Count the active conditions in the table."""
    (found,) = database.execute("SELECT COUNT(*) FROM holding").fetchone()
    return int(found)


def _record(database: sqlite3.Connection, where: str, values: tuple[int | None, ...]) -> Record | None:
    found = database.execute(f"SELECT record FROM batches {where} LIMIT 1", values).fetchone()
    return None if found is None else msgspec.json.decode(found[0], type=Record)


def _encode_scope(scope: str | None) -> str:
    return msgspec.json.encode(scope).decode()


def add_counts(known: dict[str, int], more: dict[str, int]) -> dict[str, int]:
    """Return the sums of two sets of counts by key."""
    return dict(Counter(known) + Counter(more))
