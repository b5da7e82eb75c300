"""The ledger: what the batches did, each counted once, and what holds now."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.errors import UsageError

ledgers = pytest.importorskip("holdfast.runtimes.spark.streaming.ledger")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path):
    return ledgers.Ledger(path)


def do(ledger, batch: int, rows: int, *changes) -> None:
    """A batch that reads so many rows."""
    record = ledger.before(batch)
    record.rows += rows
    record.subscriptions.setdefault("Warm", ledgers.Counts()).read += rows
    record.lengths["out.jsonl"] = 10 * record.rows
    ledger.commit(batch, record, changes)


def test_a_new_ledger_counts_zero(ledger):
    assert ledger.before(0) == ledgers.Record()


def test_each_batch_adds_to_the_one_before(ledger):
    do(ledger, 0, 5)
    do(ledger, 1, 7)
    assert [ledger.before(batch).rows for batch in (0, 1, 2, 99)] == [0, 5, 12, 12]
    assert ledger.before(2).subscriptions["Warm"].read == 12


def test_a_repeated_batch_counts_once(ledger, path):
    do(ledger, 0, 5)
    for _ in range(3):
        do(ledger, 1, 7, ("Warm", "attic", 1), ("Warm", "lab", None))
    found = ledgers.read_ledger(path)
    assert (found.batch, found.record.rows, found.record.lengths) == (1, 12, {"out.jsonl": 120})
    assert found.holding == [("Warm", "attic", 1)]
    assert found.record.holding == 1


def test_a_batch_that_cannot_be_recorded_changes_nothing(ledger, path):
    do(ledger, 0, 5, ("Warm", "attic", 1))

    def interrupt():
        yield ("Warm", "attic", None)
        yield ("Warm", "lab", 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ledger.commit(1, ledger.before(1), interrupt())
    found = ledgers.read_ledger(path)
    assert (found.batch, found.holding) == (0, [("Warm", "attic", 1)])


def test_a_ledger_survives_a_restart(ledger, path):
    do(ledger, 0, 5, ("Warm", "attic", 1))
    again = ledgers.Ledger(path)
    assert again.before(1) == ledger.before(1)
    do(again, 1, 1)
    assert ledgers.read_ledger(path).holding == [("Warm", "attic", 1)]


def test_the_ledger_lists_active_scopes_after_starts_and_ends(ledger, path):
    do(ledger, 0, 1, ("Warm", "attic", 1), ("Warm", "lab", 2), ("Hot", "attic", 3))
    do(ledger, 1, 1, ("Warm", "attic", None), ("Hot", "attic", 4))
    assert ledgers.read_ledger(path).holding == [("Hot", "attic", 4), ("Warm", "lab", 2)]
    assert ledger.before(1).holding == 3
    assert ledger.before(2).holding == 2


def test_similar_scope_names_are_distinguished(ledger, path):
    scopes = [None, "", "null", '""', "é", "a'b", "\x00", "x\x1fy"]
    do(ledger, 0, 1, *(("Warm", scope, i) for i, scope in enumerate(scopes)))
    assert {scope: since for _, scope, since in ledgers.read_ledger(path).holding} == {
        scope: i for i, scope in enumerate(scopes)
    }


def test_active_scopes_are_listed_in_order_and_limited(ledger, path):
    do(ledger, 0, 1, *(("Warm", f"s{i}", i) for i in (3, 1, 2)), ("Cool", "s9", 9))
    assert [scope for _, scope, _ in ledgers.read_ledger(path).holding] == ["s9", "s1", "s2", "s3"]
    assert [scope for _, scope, _ in ledgers.read_ledger(path, 2).holding] == ["s9", "s1"]
    assert ledgers.read_ledger(path, 0).holding == []
    assert ledgers.read_ledger(path, 0).record.holding == 4


def test_a_removed_subscription_has_no_active_scopes(ledger, path):
    do(ledger, 0, 1, ("Warm", "attic", 1), ("Hot", "attic", 2), ("It's", None, 3))
    ledger.remove_others(["Hot", "It's", "New"])
    assert ledgers.read_ledger(path).holding == [("Hot", "attic", 2), ("It's", None, 3)]
    ledger.remove_others([])
    assert ledgers.read_ledger(path).holding == []


def test_old_batches_are_dropped_and_their_sums_remain(ledger, path):
    for batch in range(130):
        do(ledger, batch, 1)
    assert ledger.before(130).rows == 130
    with sqlite3.connect(path) as database:
        (stored,) = database.execute("SELECT COUNT(*) FROM batches").fetchone()
    database.close()
    assert stored == 100


def test_a_ledger_can_be_read_while_it_is_written(ledger, path):
    do(ledger, 0, 5, ("Warm", "attic", 1))
    looked = []

    def changes():
        yield ("Warm", "attic", None)
        looked.append(ledgers.read_ledger(path))

    ledger.commit(1, ledger.before(1), changes())
    (found,) = looked
    assert (found.batch, found.holding) == (0, [("Warm", "attic", 1)])
    assert ledgers.read_ledger(path).holding == []


def test_reading_a_missing_ledger_is_a_usage_error(path):
    with pytest.raises(UsageError, match="is it the checkpoint of a query"):
        ledgers.read_ledger(path)
    assert not path.exists()


def test_counts_are_added_by_name():
    assert ledgers.add_counts({"late": 1, "bad": 2}, {"bad": 3, "new": 4}) == {"late": 1, "bad": 5, "new": 4}


def test_a_ledger_read_during_its_creation_is_empty(tmp_path):
    path = tmp_path / "ledger.sqlite"
    path.touch()  # what SQLite has on disk before the tables are there, all at once
    assert ledgers.read_ledger(path) == ledgers.LedgerStatus(None, ledgers.Record(), [])
    seen = []
    with closing(sqlite3.connect(path, isolation_level=None)) as maker:
        for statement in ledgers._TABLES.split(";")[:-2]:
            maker.execute(statement)
            seen.append(ledgers.read_ledger(path).batch)
        maker.execute("COMMIT")
    assert seen == [None] * 6
