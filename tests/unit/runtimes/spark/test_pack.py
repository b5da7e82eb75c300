"""Packed rows: events that meet are in one shard, wherever they were read, and come out as they went in."""

from __future__ import annotations

import pytest

from holdfast import Event, check, parse
from holdfast.engine import slices
from holdfast.model.batch import from_events, to_events

pack = pytest.importorskip("holdfast.runtimes.spark.pack")
plan = pytest.importorskip("holdfast.runtimes.spark.job")

TOPIC = "topic T (value float, room text)\n"
WARM = "state Warm on T [value > 25; value < 22] per room\n"
BOTH = 'correlate Both within 2 s  value of "s1" > 1  value of "s2" > 2\n'


def mine(text: str, *events: Event):
    job = plan.Job(check(parse(TOPIC + text)))
    ((number, operator),) = job.operators.items()
    return pack.OperatorEvents(number, operator, "T", from_events(operator.topics["T"], events))


def reading(time: int, room: str | None, value: float = 1.0) -> Event:
    return Event("T", time, "s1", {"value": value, "room": room}, time)


def unpack(rows) -> dict[int, list[tuple]]:
    """The times of the events in each shard, with topic and slice."""
    found: dict[int, list[tuple]] = {}
    for row in rows:
        topic, slice, events = pack.unpack(row.column("payload")[0].as_py())
        assert events.schema.metadata is None
        times = [event.time for event in to_events(check(parse(TOPIC)).topics[0], events)]
        found.setdefault(row.column("shard")[0].as_py(), []).append((topic, slice, times))
    return found


def test_events_of_a_key_meet_in_one_shard_and_keyless_ones_in_the_first():
    rooms = [f"room {i}" for i in range(8)]
    events = [reading(i, room) for i, room in enumerate([*rooms, None, *rooms])]
    whole = unpack(pack.pack(mine(WARM, *events), shards=3))
    assert sorted(whole) == [0, 1, 2]
    shard_of = {time: shard for shard, some in whole.items() for _, _, times in some for time in times}
    assert [shard_of[i] for i in range(8)] == [shard_of[i + 9] for i in range(8)]
    assert shard_of[8] == 0
    assert shard_of[0] == 1, "for good: checkpoints rely on it"
    alone = unpack(pack.pack(mine(WARM, events[3]), shards=3))
    assert alone == {shard_of[3]: [("T", None, [3])]}


def test_history_is_distributed_by_slices_where_lookaround_is_bounded(monkeypatch):
    monkeypatch.setattr(slices, "HOUR", 0)
    monkeypatch.setattr(slices, "MARGINS", 2)
    seconds = [reading(i * 1_000_000, None) for i in range(8)]
    rows = list(pack.pack_history(mine(BOTH, *seconds), shards=2))
    pieces = [piece for some in unpack(rows).values() for piece in some]
    assert {slice for _, slice, _ in pieces} >= {0, 1}
    assert {time for _, _, times in pieces for time in times} == {event.time for event in seconds}
    assert all(row.column("shard")[0].as_py() == pack.unpack(row.column("payload")[0].as_py()).slice % 2
               for row in rows)  # fmt: skip


def test_every_shard_of_an_operator_receives_the_watermark():
    ((number, operator),) = plan.Job(check(parse(TOPIC + WARM))).operators.items()
    rows = list(pack.pack_watermark(number, operator, 7, shards=3))
    assert [row.column("shard")[0].as_py() for row in rows] == [0, 1, 2]
    assert {pack.unpack(row.column("payload")[0].as_py()).watermark for row in rows} == {7}
