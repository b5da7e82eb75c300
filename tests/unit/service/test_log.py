from __future__ import annotations

import os
import resource
import signal

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import UsageError
from holdfast.model.event import Event
from holdfast.model.topic import Attribute, Topic
from holdfast.runtimes.local.replay import replay
from holdfast.service.feeds.submission import readings
from holdfast.service.log.frame import Advance, DefinitionEntry, Unreadable, entries, header, to_bytes
from holdfast.service.log.log import Log, NoRoom, join_readings
from holdfast.service.log.past import entries_before
from holdfast.service.log.seal import history, reading_files, retain, seal

TOPIC = Topic("Temperature", (Attribute("value", "float"),))
APP = "topic Temperature (value float)\nstate Warm on Temperature [value > 25; value < 22] per source"


def batch_of(*values, sequence=-1, begin=0):
    return readings(
        TOPIC, [Event("Temperature", begin + i, "s1", {"value": v}, sequence) for i, v in enumerate(values)]
    )


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data"


def test_appended_readings_are_read_back(folder):
    log = Log(folder)
    log.append([batch_of(1.0, 2.0), Advance({"T": 7})])
    log.append([DefinitionEntry(APP, ("Warm",), 5)])
    log.close()
    again = Log(folder)
    found = list(again.after(0))
    assert [(one.position, one.after) for one in found] == [(0, 2), (2, 3), (3, 4)]
    assert found[0].entry.batch.column("value").to_pylist() == [1.0, 2.0]
    assert [one.entry for one in found[1:]] == [Advance({"T": 7}), DefinitionEntry(APP, ("Warm",), 5)]
    assert (again.next, again.torn) == (4, 0)
    assert [one.position for one in again.after(2)] == [2, 3]


def test_consecutive_readings_are_one_piece(folder):
    log = Log(folder)
    parts = log.append([batch_of(1.0, 2.0), batch_of(3.0), Advance({"T": 7}), batch_of(4.0)])
    found = list(join_readings(parts))
    assert [(one.position, one.after) for one in found] == [(0, 3), (3, 4), (4, 5)]
    assert found[0].entry.batch.column("value").to_pylist() == [1.0, 2.0, 3.0]
    assert found[1:] == parts[2:]
    log.close()


def test_readings_without_a_number_get_their_position(folder):
    log = Log(folder)
    log.append([Advance({"T": 1})])
    (placed,) = log.append([batch_of(1.0, 2.0)])
    assert placed.entry.batch.column("sequence").to_pylist() == [1, 2]
    (placed,) = log.append([batch_of(1.0, sequence=77)])
    assert placed.entry.batch.column("sequence").to_pylist() == [77]


NUMBER = b"log no 1"
TEN = header(NUMBER, 0, 0) + b"".join(to_bytes(NUMBER, i, Advance({"T": i})) for i in range(10))


@given(st.integers(min_value=0, max_value=len(TEN)))
def test_a_torn_entry_is_whole_or_absent(cut):
    whole = list(entries(TEN))
    assert len(whole) == 10
    assert list(entries(TEN[:cut])) == [one for one in whole if one.end <= cut]


def test_a_torn_tail_is_cut_off_and_the_log_continues(folder):
    log = Log(folder)
    log.append([batch_of(1.0)])
    log.append([batch_of(2.0)])
    log.close()
    (path,) = (folder / "wal").glob("*.wal")
    raw = path.read_bytes()
    path.write_bytes(raw[:-3])
    again = Log(folder)
    assert again.next == 1
    assert again.torn > 0
    assert [len(p.read_bytes()) for p in folder.glob("torn-*")] == [again.torn]
    again.append([batch_of(3.0)])
    assert [one.entry.batch.column("value").to_pylist() for one in again.after(0)] == [[1.0], [3.0]]


def test_an_incomplete_group_is_absent(folder):
    """It was never acknowledged: its sender repeats all of it."""
    log = Log(folder)
    log.append([batch_of(1.0)])
    log.append([batch_of(2.0), Advance({"T": 7}), batch_of(3.0)])
    log.close()
    (path,) = (folder / "wal").glob("*.wal")
    raw = path.read_bytes()
    path.write_bytes(raw[:-3])
    again = Log(folder)
    assert again.next == 1
    assert [one.entry.batch.column("value").to_pylist() for one in again.after(0)] == [[1.0]]


def test_a_folder_is_locked_by_one_log_at_a_time(folder):
    log = Log(folder)
    with pytest.raises(UsageError, match="another service uses this folder"):
        Log(folder)
    log.close()
    Log(folder).close()


def test_nothing_is_appended_or_lost_on_a_full_disk(folder):
    log = Log(folder)
    log.append([batch_of(1.0)])
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
        with pytest.raises(NoRoom, match="cannot be written: File too large"):
            log.append([batch_of(*map(float, range(10_000)))])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    log.append([batch_of(2.0)])
    assert [one.entry.batch.column("value").to_pylist() for one in log.after(0)] == [[1.0], [2.0]]


def test_segments_before_a_snapshot_are_sealed_and_replay_reads_all(folder):
    log = Log(folder)
    for i, value in enumerate([20.0, 26.0, 21.0, 27.0]):
        log.append([batch_of(value, begin=i)])
        if i < 2:
            assert log.rotate(0)
    assert not log.rotate(3600)
    (path,) = seal(folder, 1)
    assert path.name == "00000000000000000000-Temperature.parquet"
    assert pq.read_table(path).column_names == ["time", "source", "sequence", "value", "topic"]
    assert [one.position for one in log.after(1)] == [1, 2, 3]
    (missing, *_) = log.after(0)
    assert missing == (0, Unreadable(1, "it is missing"))
    with history(folder) as paths:
        assert len(paths) == 3
        emitted = [(n.status, n.event.time, n.event.sequence) for n in replay(APP, *paths)]
    assert emitted == [("ingress", 1, 1), ("egress", 2, 2), ("ingress", 3, 3)]


def test_old_files_are_removed_by_age_and_by_size(folder):
    log = Log(folder)
    for value in (1.0, 2.0, 3.0):
        log.append([batch_of(value)])
        log.rotate(0)
    paths = seal(folder, log.next)
    assert retain(folder, seconds=3600, size=None) == []
    os.utime(paths[0], (0, 0))
    assert retain(folder, seconds=3600, size=None) == paths[:1]
    assert retain(folder, seconds=None, size=paths[2].stat().st_size) == paths[1:2]
    assert reading_files(folder) == paths[2:]


def test_sealed_topics_of_one_group_are_merged_by_time_and_each_keeps_its_order(folder):
    log = Log(folder)
    badge = Topic("Badge", (Attribute("value", "float"),))
    log.append([batch_of(1.0, 2.0, begin=10)])
    log.append([readings(badge, [Event("Badge", 11, "b", {"value": 7.0}, -1)])])
    log.append([batch_of(3.0, begin=5), batch_of(4.0, begin=12)])  # the first of them is late
    log.append([readings(badge, [Event("Badge", 30, "b", {"value": 8.0}, -1)])])
    log.rotate(0)
    seal(folder, log.next)

    def merged(*together):
        past = entries_before(folder, log.next, together)
        return [(one.topic, one.batch.column("value").to_pylist()) for one in past]

    assert merged({"Temperature", "Badge"}) == [
        ("Temperature", [1.0, 2.0]),
        ("Badge", [7.0]),
        ("Temperature", [3.0, 4.0]),
        ("Badge", [8.0]),
    ]
    assert merged() == [("Badge", [7.0, 8.0]), ("Temperature", [1.0, 2.0, 3.0, 4.0])]
    log.close()
