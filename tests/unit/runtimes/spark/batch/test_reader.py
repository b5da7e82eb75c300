"""Readers and shards without Spark between them: the notifications of the local replay."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import App, Event, Replay, check, parse
from holdfast.files.find import find
from holdfast.files.reading import Reading
from holdfast.lang import ops
from holdfast.model.batch import from_events
from support.histories import REGIONS, TOPIC, histories, subscriptions
from support.runtimes import in_order

replay = pytest.importorskip("holdfast.runtimes.spark.batch.replay")
source = pytest.importorskip("holdfast.runtimes.spark.batch.reader")
notice = pytest.importorskip("holdfast.runtimes.table")
pack = pytest.importorskip("holdfast.runtimes.spark.pack")
history = pytest.importorskip("holdfast.runtimes.spark.batch.shard")
plan = pytest.importorskip("holdfast.runtimes.spark.job")
readings = pytest.importorskip("holdfast.runtimes.spark.reading")


def by_readers(checked, files):
    """The notifications, and the readers' reports."""
    reading = Reading(checked.topics)
    job = plan.Job.on_history(checked)
    tasks = tuple(replay.plan_tasks(files, reading, cores=1))
    read_job = source.ReadJob(job, reading, tasks, shards=2)
    shards, reports = {}, []
    for number in range(len(tasks)):
        for row in source.read_task(read_job, number):
            kind, number, shard, _, raw = row.to_pylist()[0].values()
            if kind == pack.PacketKind.REPORT:
                reports.append(readings.decode_report(raw))
            else:
                shards.setdefault((number, shard), []).append(raw)
    tables = [history.run_shard(job, key[0], raw)[0] for key, raw in shards.items()]
    found = [n for table in tables for n in notice.from_table(checked.topics, table)]
    return sorted(found, key=lambda n: n.order), reports


@given(
    subs=subscriptions(most=3),
    events=histories(),
    sorted_files=st.booleans(),
    files=st.integers(1, 3),
    group=st.integers(1, 9),
    rows=st.integers(1, 8),
    large=st.sampled_from([0, 5, 1 << 20]),
    held=st.sampled_from([0, 100, 1 << 20]),
)
def test_readers_and_shards_give_the_notifications_of_a_local_replay(
    subs, events, sorted_files, files, group, rows, large, held
):
    checked = check(App((ops.DeclareTopic(TOPIC), *REGIONS, *subs)))
    history = in_order(events) if sorted_files else list(events)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay, "LARGE", large)
        patch.setattr(source, "ROWS", rows)
        patch.setattr(source, "MOST_IN_MEMORY", held)
        size = -(-len(history) // files) or 1
        for i in range(files):
            part = history[i * size : (i + 1) * size]
            pq.write_table(
                pa.Table.from_batches([from_events(TOPIC, part)]),
                Path(folder) / f"{i}.parquet",
                row_group_size=group,
            )
        inputs = find([folder])
        local = Replay(checked, inputs, Reading(checked.topics))
        expected = list(local)
        found, reports = by_readers(checked, inputs)
    assert repr(found) == repr(expected)
    assert sum(report.relevant for report in reports) == local.kept
    assert sum(report.rows for report in reports) == local.tally.rows


WARM = "topic Reading (value float)\nstate Warm on Reading [value > 25; value < 22] per source"


def ticks(seconds, sensors=4):
    """Readings of all sensors at the same times, in an order that is not that of their names."""
    return [
        Event("Reading", t * 1_000_000, f"s{i}", {"value": 20.0 + 7 * (t // 7 % 2)}, t * sensors + j)
        for t in range(seconds)
        for j, i in enumerate(range(sensors, 0, -1))
    ]


def test_a_large_file_is_shared_and_compacted_by_several_readers(tmp_path):
    checked = check(parse(WARM))
    (topic,) = checked.topics
    table = pa.Table.from_batches([from_events(topic, ticks(300))])
    pq.write_table(table, tmp_path / "one.parquet", row_group_size=47)  # cuts moments in two
    inputs = find([str(tmp_path)])
    tasks = list(replay.plan_tasks(inputs, Reading(checked.topics), cores=1))
    assert len(tasks) == replay.SHARES
    assert all(task.closed for task in tasks)
    assert [len(task.part.shared) for task in tasks] == [1, 2, 2, 1]
    found, reports = by_readers(checked, inputs)
    assert repr(found) == repr(list(Replay(checked, inputs, Reading(checked.topics))))
    whole = sum(len(pack.to_ipc(batch)) for batch in table.to_batches())
    assert sum(report.packed for report in reports) < whole / 2


def test_unordered_rows_of_a_file_are_divided_by_row_groups(tmp_path, monkeypatch):
    monkeypatch.setattr(replay, "LARGE", 100)
    checked = check(parse(WARM))
    (topic,) = checked.topics
    shuffled = sorted(ticks(100), key=lambda event: event.sequence % 13)
    pq.write_table(
        pa.Table.from_batches([from_events(topic, shuffled)]), tmp_path / "one.parquet", row_group_size=50
    )
    inputs = find([str(tmp_path)])
    tasks = list(replay.plan_tasks(inputs, Reading(checked.topics), cores=1))
    assert [(len(task.part.pieces[0].row_groups), task.closed) for task in tasks] == [(2, False)] * 4
    assert repr(by_readers(checked, inputs)[0]) == repr(
        list(Replay(checked, inputs, Reading(checked.topics)))
    )


def test_many_small_files_are_read_together(tmp_path):
    checked = check(parse(WARM))
    (topic,) = checked.topics
    for i in range(40):
        part = [event for event in ticks(400) if event.time // 10_000_000 == i]
        pq.write_table(pa.Table.from_batches([from_events(topic, part)]), tmp_path / f"{39 - i:02}.parquet")
    inputs = find([str(tmp_path)])
    tasks = list(replay.plan_tasks(inputs, Reading(checked.topics), cores=1))
    assert [len(task.part.pieces) for task in tasks] == [10] * replay.SHARES
    assert repr(by_readers(checked, inputs)[0]) == repr(
        list(Replay(checked, inputs, Reading(checked.topics)))
    )
