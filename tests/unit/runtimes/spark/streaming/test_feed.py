"""The reader of a live query: each file once, whole or not at all, and what is wrong is named."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Event, check, parse
from holdfast.errors import InputError
from holdfast.files.reading import Reading
from holdfast.files.tally import Rejects, Tally
from holdfast.model.batch import from_ipc, to_events
from holdfast.model.instant import BEGINNING, NEVER

feeds = pytest.importorskip("holdfast.runtimes.spark.streaming.feed")
checkpoints = pytest.importorskip("holdfast.runtimes.spark.streaming.checkpoint")
log = pytest.importorskip("holdfast.runtimes.spark.streaming.log")
pack = pytest.importorskip("holdfast.runtimes.spark.pack")
plan = pytest.importorskip("holdfast.runtimes.spark.job")
readings = pytest.importorskip("holdfast.runtimes.spark.reading")
live = pytest.importorskip("support.live")

TIMELY = "topic Door (open bool)\nstate Open on Door [open; !open] per source"
ORDERED = TIMELY + " ordered 5 us"


@pytest.fixture
def here(tmp_path: Path):
    (tmp_path / "inbox").mkdir()
    (tmp_path / "checkpoint").mkdir()
    return live.Site(tmp_path)


def feed(here, text: str = TIMELY, **settings):
    """A feed of the files that arrive at a site."""
    checked = check(parse(text))
    how = {"settle": 0.0, "batch_bytes": 1 << 20, "readers": 1, **settings}
    folders = (log.Folder(str(here.inbox)),)
    place = checkpoints.Checkpoint(here.checkpoint)
    return feeds.StreamSettings(place, plan.Job(checked), 4, Reading(checked.topics), folders, **how)


def reader(here, text: str = TIMELY, **settings):
    return feeds.FeedReader(feed(here, text, **settings).to_text())


def door(time: int, open: bool | None = True, source: str = "d") -> Event:
    return Event("Door", time, source, {"open": open}, time)


def put(here, name: str, *events: Event, **how) -> None:
    (topic,) = check(parse(TIMELY)).topics
    here.put(name, topic, events, **how)


def batch_of(source, start: int = 0) -> dict[str, int]:
    """The end offset of the next batch."""
    return source.latestOffset({"files": start}, source.getDefaultReadLimit())


def read_all(source, start: int = 0):
    """The reports of the readers of the next batch, and the times of the events that they send."""
    parts = source.partitions({"files": start}, batch_of(source, start))
    rows = [row for part in parts for batch in source.read(part) for row in batch.to_pylist()]
    (topic,) = check(parse(TIMELY)).topics
    output = [readings.decode_report(row["payload"]) for row in rows if row["kind"] == pack.PacketKind.REPORT]
    sent = [
        event.time
        for row in rows
        if row["kind"] == pack.PacketKind.EVENTS
        for event in to_events(topic, from_ipc(row["payload"]))
    ]
    return output, sorted(sent)


# --- which files make a batch ------------------------------------------------------------------------


def entries(sizes: Sequence[int]) -> list:
    return [log.Entry(f"{i}.csv", None, size) for i, size in enumerate(sizes)]


@pytest.mark.parametrize(
    ("sizes", "most", "admitted"),
    [
        ([5], 10, 1),
        ([50], 10, 1),
        ([5, 5, 5], 10, 2),
        ([50, 1], 10, 1),
        ([0, 0, 0], 10, 3),
        ([1, 50, 1], 10, 1),
        ([5, 5, 5], NEVER, 3),
    ],
)
def test_a_batch_is_bounded_in_bytes_and_has_at_least_one_file(sizes, most, admitted):
    assert feeds._admit(entries(sizes), most) == admitted


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=30), st.integers(1, 9))
def test_readers_divide_all_files_among_them_in_order(sizes, readers):
    runs = feeds._share_out(sizes, readers)
    assert [i for run in runs for i in run] == list(range(len(sizes)))
    assert sum(any(sizes[i] for i in run) for run in runs) <= readers
    assert all(len(run) for run in runs)
    share = max(1, -(-sum(sizes) // readers))
    assert all(sum(sizes[i] for i in run) < share + max(sizes) for run in runs)


def test_batches_follow_each_other_through_the_log(here):
    for i in range(5):
        put(here, f"{i}.parquet", door(i, bool(i % 2)))
    size = (here.inbox / "0.parquet").stat().st_size
    source = reader(here, batch_bytes=2 * size + size // 2)
    assert source.initialOffset() == {"files": 0}
    ends = [batch_of(source, start)["files"] for start in (0, 2, 4, 5)]
    assert ends == [2, 4, 5, 5]
    assert [read_all(source, start)[1] for start in (0, 2, 4)] == [[0, 1], [2, 3], [4]]


def test_each_reader_gets_neighbouring_files_and_numbers_rows_by_their_place_in_the_log(here):
    for i in range(6):
        put(here, f"{i}.parquet", door(i))
    source = reader(here, readers=3)
    parts = source.partitions({"files": 1}, batch_of(source))
    assert [(p.number, p.first, len(p.entries)) for p in parts] == [(0, 1, 2), (1, 3, 2), (2, 5, 1)]


def test_nothing_new_is_read_while_a_query_is_to_stop(here):
    put(here, "1.parquet", door(1))
    source = reader(here)
    (here.checkpoint / "stop").touch()
    assert batch_of(source) == {"files": 0}
    (here.checkpoint / "stop").unlink()
    assert batch_of(source) == {"files": 1}


def test_a_query_over_available_files_ignores_later_ones(here):
    put(here, "1.parquet", door(1))
    source = reader(here)
    source.prepareForTriggerAvailableNow()
    put(here, "2.parquet", door(2))
    assert batch_of(source) == {"files": 1}
    assert batch_of(source, 1) == {"files": 1}
    assert batch_of(reader(here), 1) == {"files": 2}


def test_the_end_of_the_stream_follows_the_last_file_and_remains_the_end(here):
    put(here, "1.parquet", door(1))
    source = reader(here, ORDERED, finish=True)
    assert batch_of(source) == {"files": 1}
    end = batch_of(source, 1)
    assert end == {"files": 1, "end": 1}
    assert source.latestOffset(end, source.getDefaultReadLimit()) == end
    (part,) = source.partitions({"files": 1}, end)
    assert (part.entries, part.latest) == ((), NEVER)


def test_incomplete_and_unknown_files_are_listed(here):
    put(here, "1.parquet", door(1))
    whole = (here.inbox / "1.parquet").read_bytes()
    (here.inbox / "2.parquet").write_bytes(whole[:-3])
    (here.inbox / "3.txt").write_text("x")
    assert batch_of(reader(here)) == {"files": 1}
    waiting = msgspec.json.decode((here.checkpoint / "waiting.json").read_bytes())
    assert waiting == {"incomplete": [str(here.inbox / "2.parquet")], "unknown": [str(here.inbox / "3.txt")]}


def test_a_log_shorter_than_what_was_read_of_it_is_detected(here):
    with pytest.raises(AssertionError, match="shorter than what was read of it"):
        reader(here).partitions({"files": 0}, {"files": 3})


# --- what is sent on ---------------------------------------------------------------------------------


def test_only_relevant_events_are_sent_and_all_are_counted(here):
    put(here, "1.parquet", door(1), door(2), door(3), door(4, None), door(5, False), door(6, False))
    (output,), sent = read_all(reader(here))
    assert sent == [1, 5]
    assert (output.files, output.rows, output.events, output.passed) == (1, 6, {"Door": 6}, {0: 2})
    assert output.bytes == (here.inbox / "1.parquet").stat().st_size


def test_the_input_of_one_reader_is_compacted_as_a_whole(here):
    for i in range(4):
        put(here, f"{i}.parquet", door(i))
    assert read_all(reader(here))[1] == [0]
    assert len(read_all(reader(here, readers=4))[1]) == 4


def latest(here, start: int) -> int:
    source = reader(here, ORDERED)
    return source.partitions({"files": start}, batch_of(source))[0].latest


def test_the_latest_time_read_before_decides_which_events_are_late(here):
    for i, events in enumerate(
        [(door(10), door(90)), (door(40),), (door(20, None), door(86, None), door(85))]
    ):
        put(here, f"{i}.parquet", *events)
    assert [latest(here, start) for start in range(3)] == [BEGINNING, 90, 90]
    assert read_all(reader(here, ORDERED), 2)[1] == [20, 85], "86 cannot be late, and says nothing"


def test_any_event_may_be_late_where_a_file_has_no_time_statistics(here):
    put(here, "0.parquet", door(10), write_statistics=False)
    put(here, "1.parquet", door(20, None), door(30, None))
    assert latest(here, 1) == NEVER
    assert read_all(reader(here, ORDERED), 1)[1] == [20, 30]


def watermark_packets(here, text: str, **settings) -> list[tuple[int, dict]]:
    """The watermark packets that shards receive."""
    source = reader(here, text, **settings)
    parts = source.partitions({"files": 0}, batch_of(source))
    rows = [row for part in parts for batch in source.read(part) for row in batch.to_pylist()]
    return [
        (row["shard"], msgspec.msgpack.decode(row["payload"]))
        for row in rows
        if row["kind"] == pack.PacketKind.WATERMARKS
    ]


def test_every_shard_receives_the_watermark_even_of_irrelevant_events(here):
    put(here, "1.parquet", door(1), door(9, None))
    assert watermark_packets(here, ORDERED) == [(shard, {"Door": 9}) for shard in range(4)]


# --- files that cannot be read -----------------------------------------------------------------------


def break_a_row_group(here, name: str) -> None:
    """A file with a whole footer whose second of three row groups is damaged."""
    put(here, name, *(door(100 + i, bool(i % 2)) for i in range(9)), row_group_size=3)
    path = here.inbox / name
    at = pq.ParquetFile(path).metadata.row_group(1).column(0)
    begin = at.dictionary_page_offset or at.data_page_offset
    raw = bytearray(path.read_bytes())
    raw[begin : begin + at.total_compressed_size] = b"\xff" * at.total_compressed_size
    path.write_bytes(raw)


def break_the_footer(here, name: str) -> None:
    (here.inbox / name).write_bytes(b"PAR1 this is no footer PAR1")


def cut_off_gzip(here, name: str) -> None:
    rows = "".join(f"1970-01-01T00:00:{i % 60:02d}Z,d,{bool(i % 2)}\n" for i in range(200_000))
    (here.inbox / name).write_bytes(gzip.compress(f"time,source,open\n{rows}".encode())[:-5000])


def break_the_text(here, name: str) -> None:
    good = b'{"time": "1970-01-01T00:00:01Z", "source": "d", "open": true}\n'
    (here.inbox / name).write_bytes(good * 1000 + b'{"time": "\xff\xfe"\n' + good)


def leave_out_a_column(here, name: str) -> None:
    (here.inbox / name).write_text("time,open\n1970-01-01T00:00:01Z,true\n")


DAMAGES = {
    "b.parquet": break_a_row_group,
    "c.parquet": break_the_footer,
    "d.csv.gz": cut_off_gzip,
    "e.csv": leave_out_a_column,
    "f.jsonl": break_the_text,
}


@pytest.fixture
def in_small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read small chunks, so that much of a small file has been read when the damage is found."""
    monkeypatch.setattr(readings, "read", partial(readings.read, chunk_rows=3))


def test_rows_before_the_damage_are_read(here, in_small_chunks):
    break_a_row_group(here, "b.parquet")
    rows = readings.read(
        log.Entry(str(here.inbox / "b.parquet"), None, 0).input_file(0),
        feed(here).reading,
        Tally(),
        Rejects(),
    )
    assert len(next(rows)[1]) == 3
    with pytest.raises(InputError):
        list(rows)


def test_a_row_group_damaged_in_the_middle_excludes_the_whole_file(here, in_small_chunks):
    put(here, "a.parquet", door(1))
    break_a_row_group(here, "b.parquet")
    (output,), sent = read_all(reader(here, quarantine=True))
    assert (sent, output.rows, len(output.bad_files)) == ([1], 1, 1)


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_in_the_middle_adds_nothing_and_is_named(here, name):
    put(here, "a.parquet", door(1))
    DAMAGES[name](here, name)
    put(here, "z.parquet", door(9, False))
    (output,), sent = read_all(reader(here, quarantine=True))
    assert sent == [1, 9]
    assert (output.files, output.rows, output.events, output.rejects) == (2, 2, {"Door": 2}, [])
    assert output.bytes == sum((here.inbox / good).stat().st_size for good in ("a.parquet", "z.parquet"))
    ((file, why),) = output.bad_files
    assert file == str(here.inbox / name)
    assert why
    assert output.failed is None


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("settings", [{}, {"quarantine": True, "strict": True}], ids=["stop", "strict"])
def test_a_damaged_file_ends_the_query_and_no_event_is_sent(here, name, settings):
    put(here, "a.parquet", door(1))
    DAMAGES[name](here, name)
    (output,), sent = read_all(reader(here, **settings))
    assert sent == []
    status, message = output.failed
    assert status in (1, 2)
    assert name in message
    assert "Traceback" not in message


def test_a_removed_file_is_reported_as_missing(here):
    put(here, "a.parquet", door(1))
    put(here, "b.parquet", door(2, False))
    source = reader(here)
    end = batch_of(source)
    (here.inbox / "a.parquet").unlink()
    (part,) = source.partitions({"files": 0}, end)
    (row,) = [row for batch in source.read(part) for row in batch.to_pylist()]
    output = readings.decode_report(row["payload"])
    assert output.failed == (1, f"{here.inbox / 'a.parquet'}: removed before it could be read; put it back")
    (output,), sent = read_all(reader(here, quarantine=True))
    assert sent == [2]
    ((_, why),) = output.bad_files
    assert "removed before it could be read" in why


def test_an_unusable_row_is_rejected_with_its_reason_or_ends_a_strict_query(here):
    (here.inbox / "a.csv").write_text("time,source,open\nyesterday,d,true\n1970-01-01T00:00:01Z,d,true\n")
    (output,), sent = read_all(reader(here))
    assert sent == [1_000_000]
    assert output.rejected == {"unreadable time": 1}
    ((reject,),) = [output.rejects]
    assert tuple(reject[:3]) == (str(here.inbox / "a.csv"), 1, "unreadable time")
    (output,), sent = read_all(reader(here, strict=True))
    assert sent == []
    assert output.failed[0] == 1
    assert "yesterday" in output.failed[1]


def test_rejected_rows_of_a_quarantined_file_are_not_reported(here, in_small_chunks):
    table = pa.table({"time": ["soon"] * 5 + ["1970-01-01"] * 4, "source": ["d"] * 9, "open": [True] * 9})
    path = here.inbox / "a.parquet"
    pq.write_table(table, path, row_group_size=5, use_dictionary=False)
    at = pq.ParquetFile(path).metadata.row_group(1).column(0)
    raw = bytearray(path.read_bytes())
    raw[at.data_page_offset : at.data_page_offset + at.total_compressed_size] = (
        b"\xff" * at.total_compressed_size
    )
    path.write_bytes(raw)
    (output,), _ = read_all(reader(here, quarantine=True))
    assert len(output.bad_files) == 1
    assert (output.rejects, output.rejected, output.rows) == ([], {}, 0)


def test_a_query_reports_what_ended_it_and_continues_when_it_is_repaired():
    app = parse(TIMELY)
    (topic,) = check(app).topics
    with live.site() as here:
        received = []
        put(here, "a.parquet", door(1))
        break_the_footer(here, "b.parquet")
        stream = live.Stream(here.live(app, sink=received.append))
        with pytest.raises(InputError, match=r"b\.parquet"):
            stream.run()
        assert received == []
        assert stream.record.files == 0
        here.put("b.parquet", topic, [door(2, False)])
        live.Stream(here.live(app, sink=received.append)).run()
        assert [n.status for n in received] == ["ingress", "egress"]


# --- time by the clock -------------------------------------------------------------------------------

SILENT = "topic Door (open bool)\nstate Dead on Door [silent 10 s; !silent 10 s] per source"
TODAY = 4_000_000_000  # later than any file that a test makes


@pytest.fixture
def clock(monkeypatch):
    """The clock in seconds."""
    now = [TODAY]
    monkeypatch.setattr(feeds.time, "time", lambda: float(now[0]))
    return now


def test_the_clock_advances_the_watermark_with_its_delay_and_not_at_every_look(here, clock):
    put(here, "1.parquet", door(1))
    source = reader(here, SILENT, idle=40.0)
    first = batch_of(source)
    assert first == {"files": 1, "clock": (TODAY - 40) * 1_000_000}
    clock[0] += 9
    assert source.latestOffset(first, source.getDefaultReadLimit()) == first
    clock[0] += 1
    later = source.latestOffset(first, source.getDefaultReadLimit())
    assert later == {"files": 1, "clock": (TODAY - 30) * 1_000_000}
    (part,) = source.partitions(first, later)
    rows = [row for batch in source.read(part) for row in batch.to_pylist()]
    watermark_packets = [
        msgspec.msgpack.decode(row["payload"]) for row in rows if row["kind"] == pack.PacketKind.WATERMARKS
    ]
    assert watermark_packets == [{"Door": (TODAY - 30) * 1_000_000}] * 4
    assert not [row for row in rows if row["kind"] == pack.PacketKind.EVENTS]
    (after,) = source.partitions(later, {**later, "end": 1})
    assert after.until == NEVER


@pytest.mark.parametrize(("text", "how"), [(TIMELY, {"idle": 40.0}), (SILENT, {})])
def test_the_clock_is_ignored_without_timers_or_without_the_option(here, clock, text, how):
    put(here, "1.parquet", door(1))
    assert batch_of(reader(here, text, **how)) == {"files": 1}


def test_a_silent_source_is_detected_without_further_files(clock):
    app, received = parse(SILENT), []
    with live.site() as here:
        put(here, "1.parquet", door(TODAY * 1_000_000))
        stream = live.Stream(here.live(app, sink=received.append, idle=4.0))
        clock[0] += 2
        assert stream.step()
        clock[0] += 12
        assert stream.step()
        assert received == []  # ten seconds, and no more
        clock[0] += 2
        again = live.Stream(here.live(app, sink=received.append, idle=4.0))
        assert again.step()
        assert not again.step()
        assert [(n.status, n.event.time) for n in received] == [("ingress", (TODAY + 10) * 1_000_000)]
        put(here, "2.parquet", door((TODAY + 1) * 1_000_000))
        assert again.step()
        assert len(received) == 1  # an old reading revives no scope
        assert again.record.watermarks == {"Door": (TODAY + 12) * 1_000_000}
