"""Sinks: a batch leaves the same output whether it is done once, twice, or after a crash."""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pyarrow.dataset as ds
import pytest

from holdfast import Event, Notification, check, parse
from holdfast.errors import UsageError

sinks = pytest.importorskip("holdfast.runtimes.spark.streaming.output")
notice = pytest.importorskip("holdfast.runtimes.table")
stream = pytest.importorskip("holdfast.runtimes.spark.streaming.query")
live = pytest.importorskip("support.live")

DOORS = parse("topic Door (open bool)\nstate Open on Door [open; !open] per source")
TOPICS = check(DOORS).topics


def to_notices(*marks: tuple[int, str | None, str]):
    """Notifications as a table: time, scope, status."""
    return notice.to_table(
        TOPICS,
        [
            Notification("Open", Event("Door", time, scope or "d", {"open": True}, time), status, scope, None)
            for time, scope, status in marks
        ],
    )


def one(time: int):
    return to_notices((time, "d", "ingress"))


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """No file can become longer than this."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# --- the order of emission ---------------------------------------------------------------------------


def order(*tables) -> list[tuple[int, str | None]]:
    table = sinks.in_emission_order(tables)
    times = table.column("time").cast("int64").to_pylist()
    return list(zip(times, table.column("scope").to_pylist(), strict=True))


def test_notifications_of_shards_are_merged_by_time():
    a = to_notices((1, "a", "ingress"), (5, "a", "egress"))
    b = to_notices((2, "b", "ingress"), (4, "b", "egress"))
    assert order(a, b) == order(b, a) == [(1, "a"), (2, "b"), (4, "b"), (5, "a")]


def test_notifications_of_a_scope_stay_in_order_of_arrival_whatever_their_times():
    a = to_notices((5, "a", "ingress"), (1, "a", "egress"), (6, "a", "ingress"))
    b = to_notices((2, "b", "ingress"), (4, "b", "egress"))
    assert order(a, b) == order(b, a) == [(2, "b"), (4, "b"), (5, "a"), (1, "a"), (6, "a")]


def test_an_empty_batch_has_no_order():
    assert order(to_notices()) == []


# --- JSON lines --------------------------------------------------------------------------------------


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


def times(path: Path) -> list[str]:
    return [json.loads(line)["time"][-4:-1] for line in path.read_text().splitlines()]


def test_lines_are_appended_batch_by_batch(out):
    sink, lengths = sinks.JsonLinesOutput(out, TOPICS), {}
    for i in range(3):
        sink.write(i, one(i), lengths)
        assert lengths == {str(out): out.stat().st_size}
    assert times(out) == ["000", "001", "002"]


def test_an_empty_batch_creates_no_file(out):
    lengths: dict[str, int] = {}
    sinks.JsonLinesOutput(out, TOPICS).write(0, to_notices(), lengths)
    assert (out.exists(), lengths) == (False, {})


@pytest.mark.parametrize("torn", [1, 40, 10_000], ids=["one byte", "half a line", "all and more"])
@pytest.mark.parametrize("again", [[7], []], ids=["says it again", "says nothing now"])
def test_lines_of_a_batch_that_died_are_cut_off(out, torn, again):
    sink, lengths = sinks.JsonLinesOutput(out, TOPICS), {}
    sink.write(0, one(1), lengths)
    known = dict(lengths)
    sink.write(1, one(7), lengths)
    whole = out.read_bytes()
    out.write_bytes((whole[: known[str(out)]] + whole[known[str(out)] :] * 100)[: known[str(out)] + torn])
    sink.write(1, to_notices(*((time, "d", "ingress") for time in again)), known)
    assert times(out) == ["001", *(f"00{time}" for time in again)]


def test_a_file_that_was_moved_away_is_started_again(out, tmp_path):
    sink, lengths = sinks.JsonLinesOutput(out, TOPICS), {}
    sink.write(0, one(1), lengths)
    sink.write(1, one(2), lengths)
    out.rename(tmp_path / "yesterday.jsonl")
    sink.write(2, one(3), lengths)
    sink.write(3, one(4), lengths)
    assert times(out) == ["003", "004"]
    assert times(tmp_path / "yesterday.jsonl") == ["001", "002"]


@pytest.mark.parametrize("size", [500, 100_000], ids=["little", "more than a buffer"])
def test_a_full_disk_does_not_change_existing_lines(out, size):
    lengths: dict[str, int] = {}
    sinks.append(out, iter([b"x" * 100]), lengths)
    with room_for(150), pytest.raises(OSError, match="File too large"):
        sinks.append(out, iter([b"y" * size]), dict(lengths))
    assert out.read_bytes() == b"x" * 100
    sinks.append(out, iter([b"z"]), lengths)
    assert out.read_bytes() == b"x" * 100 + b"z"


def test_a_full_disk_adds_nothing_to_a_file_that_became_shorter(out):
    out.write_bytes(b"x" * 10)
    with room_for(50), pytest.raises(OSError, match="File too large"):
        sinks.append(out, iter([b"y" * 90]), {str(out): 100})
    assert out.read_bytes() == b"x" * 10


# --- Parquet -----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out"


def found(folder: Path) -> list[int]:
    """The times of what any reader finds."""
    return sorted(ds.dataset(folder).to_table().column("time").cast("int64").to_pylist())


def tree(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def test_each_batch_with_notifications_makes_a_folder(folder):
    sink = sinks.open_output(f"parquet:{folder}", TOPICS, "me", {})
    sink.claim("me")
    for i, table in enumerate([one(1), to_notices(), to_notices((2, "a", "ingress"), (3, "b", "ingress"))]):
        sink.write(i, table, {})
    assert found(folder) == [1, 2, 3]
    assert tree(folder.parent) == [
        "out", "out/_holdfast",
        "out/batch-000000000", "out/batch-000000000/notifications.parquet",
        "out/batch-000000002", "out/batch-000000002/notifications.parquet",
    ]  # fmt: skip


def test_a_repeated_batch_replaces_its_folder(folder):
    sink = sinks.ParquetOutput(folder, TOPICS)
    sink.write(0, one(1), {})
    sink.write(1, one(2), {})
    sink.write(1, to_notices((2, "a", "ingress"), (3, "b", "ingress")), {})
    assert found(folder) == [1, 2, 3]
    sink.write(1, to_notices(), {})
    assert tree(folder.parent) == [
        "out", "out/batch-000000000", "out/batch-000000000/notifications.parquet",
    ]  # fmt: skip


def test_staged_files_of_a_crash_are_removed(folder):
    stage = folder.parent / ".out.staging" / "batch-000000001"
    stage.mkdir(parents=True)
    (stage / "notifications.parquet").write_bytes(b"PAR1 half")
    sinks.ParquetOutput(folder, TOPICS).write(1, one(1), {})
    assert not stage.parent.exists()
    assert found(folder) == [1]


def test_a_crash_between_the_two_renames_is_repaired(folder, monkeypatch):
    sink = sinks.ParquetOutput(folder, TOPICS)
    sink.write(0, one(1), {})

    def dies(path, target):
        if target == folder / "batch-000000000":
            raise KeyboardInterrupt
        return renamed(path, target)

    renamed = Path.rename
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", dies)
        patch.setattr(sinks.shutil, "rmtree", lambda *args, **options: None)
        with pytest.raises(KeyboardInterrupt):
            sink.write(0, one(1), {})
    sink.write(0, one(1), {})
    assert found(folder) == [1]
    assert tree(folder.parent) == [
        "out", "out/batch-000000000", "out/batch-000000000/notifications.parquet",
    ]  # fmt: skip


def test_a_full_disk_does_not_change_existing_batches(folder):
    sink = sinks.ParquetOutput(folder, TOPICS)
    sink.write(0, one(1), {})
    before = tree(folder.parent)
    for batch in (0, 1):
        with room_for(200), pytest.raises(OSError, match="File too large"):
            sink.write(batch, one(2), {})
        assert tree(folder.parent) == before
        assert found(folder) == [1]


# --- where nothing can be undone ---------------------------------------------------------------------


def test_the_console_sink_prints_lines(capsys):
    sinks.open_output("console", TOPICS, "me", {}).write(0, one(1), {})
    (line,) = capsys.readouterr().out.splitlines()
    assert json.loads(line)["status"] == "ingress"


def test_a_callback_receives_notifications_and_recognises_repetitions_by_id():
    received: list[Notification] = []
    sink = sinks.CallbackOutput(received.append, TOPICS)
    sink.write(0, to_notices((1, "a", "ingress"), (2, "a", "egress")), {})
    sink.write(0, to_notices((1, "a", "ingress"), (2, "a", "egress")), {})
    assert [n.status for n in received] == ["ingress", "egress", "ingress", "egress"]
    assert len({n.id for n in received}) == 2


# --- whose place it is -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kafka:x", "--sink kafka:x: write parquet:PATH, jsonl:PATH or console"),
        ("console:x", "--sink console:x: write parquet:PATH, jsonl:PATH or console"),
        ("jsonl:", "--sink jsonl:: write parquet:PATH, jsonl:PATH or console"),
        ("parquet", "--sink parquet: write parquet:PATH, jsonl:PATH or console"),
        ("jsonl:folder", "--sink jsonl:folder: this is a folder; name a file"),
        ("jsonl:file", "--sink jsonl:file: not a file of this query; name another or move it"),
        ("jsonl:none/out", "none' for the sink; create it first"),
        ("parquet:none/out", "none' for the sink; create it first"),
        ("parquet:file", "file' is not a folder; name another"),
        ("parquet:folder", "folder' is not empty and not of this query; name another"),
        ("parquet:taken", "taken' holds the output of another checkpoint; name another"),
    ],
)
def test_a_sink_that_belongs_to_others_is_refused_and_not_changed(text, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("folder", "taken"):
        (tmp_path / name).mkdir()
    (tmp_path / "folder" / "mine.parquet").write_text("mine")
    (tmp_path / "taken" / "_holdfast").write_text("somebody\n")
    (tmp_path / "file").write_text("mine")
    before = tree(tmp_path)
    with pytest.raises(UsageError) as refused:
        sinks.open_output(text, TOPICS, "me", {})
    assert message in str(refused.value)
    assert tree(tmp_path) == before
    assert (tmp_path / "file").read_text() == "mine"


def test_a_sink_of_the_same_query_is_opened_again(out, folder):
    first = sinks.open_output(f"parquet:{folder}", TOPICS, "me", {})
    first.claim("me")
    first.write(0, one(1), {})
    assert sinks.open_output(f"parquet:{folder}", TOPICS, "me", {}) == first
    lengths: dict[str, int] = {}
    first = sinks.open_output(f"jsonl:{out}", TOPICS, "me", lengths)
    first.write(0, one(1), lengths)
    assert sinks.open_output(f"jsonl:{out}", TOPICS, "me", lengths) == first


def begin(settings) -> None:
    """Start a query as far as it goes without Spark."""
    with pytest.raises(AttributeError, match="sparkContext"), stream.started(settings, SimpleNamespace()):
        pass


def test_a_query_that_died_before_it_saved_its_plan_recognises_its_sink(monkeypatch):
    with live.site() as here:
        settings = here.live(DOORS, sink=f"parquet:{here.folder / 'out'}")
        with monkeypatch.context() as patch:
            patch.setattr(stream.Checkpoint, "save", lambda *_: live.Stream._die("planned", "planned"))
            with pytest.raises(live.Crash), stream.started(settings, SimpleNamespace()):
                pass
        begin(settings)


@pytest.mark.parametrize("setting", ["sink", "late", "rejects", "checkpoint"])
def test_an_output_inside_the_input_folder_is_refused(setting):
    """Otherwise the query would read its own output."""
    with live.site() as here:
        place = here.inbox / "out.jsonl"
        settings = here.live(
            DOORS, **{"sink": print, setting: f"jsonl:{place}" if setting == "sink" else place}
        )
        with pytest.raises(UsageError, match=r"out\.jsonl"), stream.started(settings, SimpleNamespace()):
            pass


def open_stream(here, **settings):
    return live.Stream(here.live(DOORS, **settings))


@pytest.mark.parametrize("sink", ["jsonl", "parquet"])
def test_a_query_that_died_before_its_first_record_recognises_its_sink(sink):
    with live.site() as here:
        place = f"{sink}:{here.folder / 'out'}"
        here.put("1.parquet", TOPICS[0], [Event("Door", 1, "d", {"open": True}, 1)])
        with pytest.raises(live.Crash):
            open_stream(here, sink=place).run("sunk")
        again = open_stream(here, sink=place)
        again.run()
        assert again.record.subscriptions["Open"].transitions == 1


@pytest.mark.parametrize("option", ["late", "rejects"])
def test_a_file_of_the_user_is_not_overwritten_with_late_or_rejected_rows(option):
    app = parse("topic Door (open bool)\nstate Open on Door [open; !open] per source ordered 5 us")
    with live.site() as here:
        mine = here.folder / "mine.jsonl"
        mine.write_text("mine\n")
        with suppress(UsageError):
            query = live.Stream(here.live(app, sink=print, **{option: mine}))
            for number, time in enumerate([100, 1]):
                here.put(f"{number}.parquet", TOPICS[0], [Event("Door", time, "d", {"open": True}, number)])
                query.run()
            (here.inbox / "3.csv").write_text("time,source,open\nnever,d,true\n1970-01-01T00:00Z,d,true\n")
            query.run()
        assert mine.read_text().startswith("mine\n")
