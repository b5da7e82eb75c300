"""The status of a live query, read from its checkpoint."""

from __future__ import annotations

import json
import re

import pytest

from holdfast import Event, check, parse
from holdfast.cli.live import _standing as read_ledger
from holdfast.errors import InputError, UsageError

ledgers = pytest.importorskip("holdfast.runtimes.spark.streaming.ledger")
states = pytest.importorskip("holdfast.runtimes.spark.streaming.status")
checkpoints = pytest.importorskip("holdfast.runtimes.spark.streaming.checkpoint")
live = pytest.importorskip("support.live")

OPEN = """
topic Door (open bool)
state Open on Door [open; !open] per source
"""
AJAR = OPEN + "state Ajar on Door [open; !open] per source ordered 5 us\n"


def door(time: int, open: bool, source: str = "front") -> Event:
    return Event("Door", time, source, {"open": open}, time)


@pytest.fixture
def here():
    with live.site() as place:
        yield place


def take(here, name: str, *events: Event, text: str = OPEN, **settings) -> None:
    (topic,) = check(parse(text)).topics
    if events:
        here.put(name, topic, events)
    live.Stream(here.live(parse(text), sink=lambda n: None, **settings)).run()


def status(here, *most: int) -> dict:
    """The status as JSON."""
    return json.loads(json.dumps(states.status(here.checkpoint, *most)))


def test_status_before_the_first_batch_counts_zero(here):
    take(here, "none")
    emitted = status(here)
    assert emitted["batch"] is None
    assert emitted["seconds_ago"] is None
    assert emitted["files"] == {"read": 0, "quarantined": 0, "waiting": 0, "incomplete": 0, "unknown": 0}
    assert (emitted["rows"], emitted["holding"], emitted["conditions"], emitted["subscriptions"]) == (
        0,
        0,
        [],
        {},
    )


def test_status_counts_events_and_active_scopes(here):
    take(here, "1.parquet", door(1, True), door(2, True), door(3, True, "back"))
    take(here, "2.parquet", door(4, False), door(5, True))
    emitted = status(here)
    assert emitted["batch"] == 1
    assert emitted["seconds_ago"] >= 0
    assert emitted["rows"] == 5
    assert emitted["files"]["read"] == 2
    assert emitted["bytes"] == sum(path.stat().st_size for path in here.inbox.iterdir())
    assert emitted["subscriptions"] == {
        "Open": {"read": 5, "passed": 4, "transitions": 4, "late": 0, "outside": 0}
    }
    assert emitted["holding"] == 2
    assert emitted["conditions"] == [
        {"subscription": "Open", "scope": "back", "since": "1970-01-01T00:00:00.000003Z", "known": True},
        {"subscription": "Open", "scope": "front", "since": "1970-01-01T00:00:00.000005Z", "known": True},
    ]


def test_late_events_are_counted(here):
    take(here, "1.parquet", door(100, True), text=AJAR)
    take(here, "2.parquet", door(1, True), text=AJAR)
    emitted = status(here)["subscriptions"]
    assert {name: counts["late"] for name, counts in emitted.items()} == {"Open": 0, "Ajar": 1}


def test_status_lists_a_limited_number_of_conditions_and_counts_all(here):
    take(here, "1.parquet", *(door(i, True, f"door {i}") for i in range(9)))
    emitted = status(here, 2)
    assert emitted["holding"] == 9
    assert [condition["scope"] for condition in emitted["conditions"]] == ["door 0", "door 1"]
    assert status(here, 0)["conditions"] == []


def test_status_lists_waiting_files_with_the_reason(here):
    take(here, "1.parquet", door(1, True))
    whole = (here.inbox / "1.parquet").read_bytes()
    (here.inbox / "2.parquet").write_bytes(whole[:-2])
    (here.inbox / "3.parquet").write_bytes(b"PAR1 broken PAR1")
    (here.inbox / "notes.txt").write_text("x")
    take(here, "4.parquet", door(2, False), quarantine=True)
    assert status(here)["files"] == {"read": 2, "quarantined": 1, "waiting": 0, "incomplete": 1, "unknown": 1}


def test_a_damaged_list_of_waiting_files_is_named_with_a_remedy(here):
    take(here, "1.parquet", door(1, True))
    (here.checkpoint / "waiting.json").write_text('{"incompl')
    with pytest.raises(InputError, match=r"waiting\.json: damaged; remove it"):
        status(here)


def test_status_reports_automatic_restarts_with_their_reason(here):
    take(here, "1.parquet", door(1, True))
    assert status(here)["restarts"] == {"count": 0}
    ledger = ledgers.Ledger(here.checkpoint / "ledger.sqlite")
    for reason in ("Spark ended the query: EOFException", "Spark ended the query:\n  Timed out"):
        ledger.record_restart(1.0, reason)
    emitted = status(here)["restarts"]
    assert (emitted["count"], emitted["reason"]) == (2, "Spark ended the query:\n  Timed out")
    output = r"started again by itself 2 times, last [\d,]+ s ago: Spark ended the query: Timed out"
    assert any(re.fullmatch(output, line) for line in read_ledger(here.checkpoint, most=0))


def test_a_file_that_entered_and_was_not_read_is_waiting(here):
    take(here, "1.parquet", door(1, True))
    (topic,) = check(parse(OPEN)).topics
    here.put("2.parquet", topic, [door(2, False)])
    stream = live.Stream(here.live(parse(OPEN), sink=lambda n: None))
    with pytest.raises(live.Crash):
        stream.run("planned")
    emitted = status(here)
    assert (emitted["files"]["read"], emitted["files"]["waiting"]) == (1, 1)
    assert emitted["holding"] == 1


def test_status_reports_rejected_rows(here):
    (here.inbox / "1.csv").write_text("time,source,open,topic\nnever,d,true,Door\n1970-01-01,d,true,Lamp\n")
    take(here, "none")
    emitted = status(here)
    assert emitted["rows"] == 2
    assert emitted["rejected"] == {"unreadable time": 1}
    assert emitted["other_topics"] == {"Lamp": 1}


def test_a_query_is_running_while_its_lock_is_held(here):
    take(here, "1.parquet", door(1, True))
    assert status(here)["running"] is False
    with checkpoints.Checkpoint(here.checkpoint).lock():
        assert status(here)["running"] is True
        assert status(here)["holding"] == 1
    assert status(here)["running"] is False


def test_reading_the_status_changes_nothing(here):
    take(here, "1.parquet", door(1, True))
    status(here)
    before = {path.name: path.read_bytes() for path in here.checkpoint.iterdir() if path.is_file()}
    status(here)
    assert {path.name: path.read_bytes() for path in here.checkpoint.iterdir() if path.is_file()} == before


def test_a_removed_subscription_has_no_counts_and_no_active_scopes(here):
    take(here, "1.parquet", door(1, True), text=OPEN + "state Shut on Door [!open; open] per source\n")
    take(here, "2.parquet", door(2, False), text=OPEN + "state Shut on Door [!open; open] per source\n")
    assert status(here)["holding"] == 1
    take(here, "none")
    emitted = status(here)
    assert list(emitted["subscriptions"]) == ["Open"]
    assert emitted["conditions"] == []
    assert emitted["holding"] == 0


@pytest.mark.parametrize("name", ["nowhere", "inbox"])
def test_a_folder_that_is_no_checkpoint_is_refused_with_a_hint(here, name):
    with pytest.raises(UsageError, match="'holdfast run --checkpoint' makes one"):
        states.status(here.folder / name)
    assert sorted(path.name for path in here.folder.iterdir()) == ["inbox"], "looking makes no folder"
