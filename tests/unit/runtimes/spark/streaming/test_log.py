"""The log of arrivals: a file enters once, when it is complete, and its place never changes."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from holdfast.errors import InputError, UsageError

log = pytest.importorskip("holdfast.runtimes.spark.streaming.log")

NOBODY_KNOWS = lambda entry, number: None  # noqa: E731


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "inbox").mkdir()
    return tmp_path / "inbox"


@pytest.fixture
def files(tmp_path: Path):
    return log.FileLog(tmp_path / "files.jsonl")


def look(files, *inboxes: Path, settle: float = 0):
    return files.discover([log.Folder(str(inbox)) for inbox in inboxes], settle, NOBODY_KNOWS)


def names(files) -> list[str]:
    return [Path(entry.path).name for entry in files.entries]


def parquet(path: Path) -> bytes:
    pq.write_table(pa.table({"time": [1, 2]}), path)
    return path.read_bytes()


# --- what has arrived --------------------------------------------------------------------------------


def test_files_enter_sorted_by_path_and_later_ones_after_them(files, inbox):
    for name in ("c.csv", "b.jsonl"):
        (inbox / name).write_text("x\n")
    look(files, inbox)
    (inbox / "sub").mkdir()
    (inbox / "sub" / "z.csv").write_text("x\n")
    (inbox / "a.csv.gz").write_text("x\n")
    look(files, inbox)
    look(files, inbox)
    assert names(files) == ["b.jsonl", "c.csv", "a.csv.gz", "z.csv"]
    assert [entry.size for entry in files.entries] == [2, 2, 2, 2]


def test_a_scan_visits_every_file_until_it_is_moved_away(files, inbox, monkeypatch):
    """A read file is remembered, and not opened again."""
    seen, known = [], log.FileLog._is_known
    monkeypatch.setattr(
        log.FileLog,
        "_is_known",
        lambda self, topic: lambda path: (seen.append(path), known(self, topic)(path))[1],
    )
    for i in range(9):
        (inbox / f"{i}.csv").write_text("x\n")
    look(files, inbox)
    look(files, inbox)
    assert len(seen) == 9 + 9
    for path in list(inbox.iterdir())[:8]:
        path.unlink()
    look(files, inbox)
    assert len(seen) == 9 + 9 + 1
    assert len(files.entries) == 9


def test_the_list_of_files_needs_about_three_hundred_bytes_for_each(files, inbox):
    name = str(inbox / ("readings-of-the-hour-%06d.parquet"))
    written = b"".join(
        msgspec.json.encode(log.Entry(name % i, None, 1_000 + i, i)) + b"\n" for i in range(2_000)
    )
    files._path.write_bytes(written)
    tracemalloc.start()
    try:
        files.refresh()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(files.entries) == 2_000
    assert 200 < taken / 2_000 < 600


def test_a_rewritten_file_does_not_enter_again(files, inbox):
    (inbox / "a.csv").write_text("x\n")
    look(files, inbox)
    (inbox / "a.csv").write_text("x\ny\n")
    look(files, inbox)
    assert [entry.size for entry in files.entries] == [2]


def test_a_parquet_file_enters_when_its_footer_is_complete(files, inbox):
    whole = parquet(inbox / "a.parquet")
    for size in range(len(whole)):
        (inbox / "a.parquet").write_bytes(whole[:size])
        waiting = look(files, inbox)
        assert waiting.incomplete == [str(inbox / "a.parquet")], f"{size} of {len(whole)} bytes"
        assert files.entries == []
    (inbox / "a.parquet").write_bytes(whole)
    assert look(files, inbox).incomplete == []
    assert names(files) == ["a.parquet"]


def test_a_file_with_only_the_name_of_parquet_enters_so_that_reading_reports_the_error(files, inbox):
    (inbox / "a.parquet").write_text("time,source,value\n")
    assert look(files, inbox).incomplete == []
    assert names(files) == ["a.parquet"]


def test_a_file_that_has_just_changed_waits(files, inbox):
    (inbox / "a.csv").write_text("x\n")
    written = (inbox / "a.csv").stat().st_mtime
    assert look(files, inbox, settle=3600).incomplete == [str(inbox / "a.csv")]
    os.utime(inbox / "a.csv", (written - 3601, written - 3601))
    assert look(files, inbox, settle=3600).incomplete == []
    assert names(files) == ["a.csv"]


def test_hidden_files_are_ignored_and_unknown_ones_are_listed(files, inbox):
    for name in (".a.csv", "_b.csv", "c.tmp", "d.parquet.gz", "e.csv"):
        (inbox / name).write_text("x\n")
    (inbox / "_temporary").mkdir()
    (inbox / "_temporary" / "f.csv").write_text("x\n")
    waiting = look(files, inbox)
    assert names(files) == ["e.csv"]
    assert [Path(path).name for path in waiting.unknown] == ["c.tmp", "d.parquet.gz"]


def test_a_vanished_folder_has_no_files_and_may_come_back(files, inbox, tmp_path):
    (inbox / "a.csv").write_text("x\n")
    inbox.rename(tmp_path / "away")
    assert look(files, inbox).incomplete == []
    (tmp_path / "away").rename(inbox)
    look(files, inbox)
    assert names(files) == ["a.csv"]


def test_a_file_that_vanishes_during_a_scan_is_ignored(files, inbox):
    (inbox / "a.csv").symlink_to(inbox / "gone.csv")
    waiting = look(files, inbox)
    assert (names(files), waiting.incomplete) == ([], [])


def test_a_name_that_is_not_utf_8_does_not_end_the_query(files, inbox):
    (inbox / "a.csv").write_text("x\n")
    Path(os.fsdecode(os.fsencode(inbox) + b"/\xff.csv")).write_text("x\n")
    look(files, inbox)
    assert "a.csv" in names(files)


def test_the_latest_time_of_a_footer_is_stored_with_the_file(files, inbox, tmp_path):
    (inbox / "a.csv").write_text("x\n")
    (inbox / "b.csv").write_text("x\n")
    files.discover([log.Folder(str(inbox), "Door")], 0, lambda entry, number: 10 + number)
    again = log.FileLog(tmp_path / "files.jsonl")
    again.refresh()
    assert [(entry.topic, entry.latest) for entry in again.entries] == [("Door", 10), ("Door", 11)]
    assert again.entries[1].input_file(1).rank == 1


# --- on disk -----------------------------------------------------------------------------------------


def test_a_torn_last_line_is_dropped(files, inbox, tmp_path):
    (inbox / "a.csv").write_text("x\n")
    look(files, inbox)
    whole = (tmp_path / "files.jsonl").read_bytes()
    (tmp_path / "files.jsonl").write_bytes(whole + b'{"path": "/inbox/b.c')
    again = log.FileLog(tmp_path / "files.jsonl")
    again.refresh()
    assert names(again) == ["a.csv"]
    assert (tmp_path / "files.jsonl").read_bytes() == whole
    (inbox / "b.csv").write_text("x\n")
    look(again, inbox)
    assert names(again) == ["a.csv", "b.csv"]
    assert len((tmp_path / "files.jsonl").read_text().splitlines()) == 2


def test_a_line_that_is_no_entry_is_reported_as_damage(inbox, tmp_path):
    (tmp_path / "files.jsonl").write_text('{"path":"a.csv","topic":null,"size":2}\n\0\0\0\n')
    with pytest.raises(InputError, match=r"files\.jsonl: damaged"):
        log.FileLog(tmp_path / "files.jsonl").refresh()


def test_two_processes_that_append_in_turn_see_one_log(files, inbox, tmp_path):
    other = log.FileLog(tmp_path / "files.jsonl")
    for i, who in enumerate([files, other, other, files, other, files]):
        (inbox / f"{9 - i}.csv").write_text("x\n")
        look(who, inbox)
    files.refresh()
    other.refresh()
    assert names(files) == names(other) == ["9.csv", "8.csv", "7.csv", "6.csv", "5.csv", "4.csv"]


def test_a_file_found_by_two_processes_enters_once(files, inbox, tmp_path):
    other = log.FileLog(tmp_path / "files.jsonl")
    (inbox / "a.csv").write_text("x\n")
    look(files, inbox)
    look(other, inbox)
    look(other, inbox)
    assert names(other) == ["a.csv"]
    assert len((tmp_path / "files.jsonl").read_text().splitlines()) == 1


def test_log_entries_are_readable_json_lines(files, inbox, tmp_path):
    (inbox / "a.csv").write_text("x\n")
    look(files, inbox)
    (line,) = (tmp_path / "files.jsonl").read_bytes().splitlines()
    assert msgspec.json.decode(line) == {
        "path": str(inbox / "a.csv"), "topic": None, "size": 2, "latest": None,
    }  # fmt: skip


# --- sources -----------------------------------------------------------------------------------------


def test_a_source_is_a_folder_with_or_without_a_topic(tmp_path):
    (tmp_path / "doors").mkdir()
    (tmp_path / "x=y").mkdir()
    assert log.folders([f"dir:Door={tmp_path / 'doors'}", f"dir:{tmp_path / 'x=y'}"], ["Door"]) == (
        log.Folder(str(tmp_path / "doors"), "Door"),
        log.Folder(str(tmp_path / "x=y"), None),
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("inbox", "--source inbox: write dir:PATH, dir:TOPIC=PATH, or log:PATH"),
        ("kafka:inbox", "--source kafka:inbox: write dir:PATH, dir:TOPIC=PATH, or log:PATH"),
        ("dir:", "--source dir:: write dir:PATH, dir:TOPIC=PATH, or log:PATH"),
        ("dir:nowhere", "nowhere'; create it first"),
        ("dir:Dor=inbox", "Dor=inbox'; create it first"),
        ("dir:file.csv", "file.csv'; create it first"),
    ],
)
def test_a_wrong_source_is_refused_with_the_accepted_forms(source, message, tmp_path, inbox, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file.csv").write_text("x\n")
    with pytest.raises(UsageError) as refused:
        log.folders([source], ["Door"])
    assert message in str(refused.value)


@pytest.mark.parametrize("second", ["inbox", "inbox/sub", "."])
def test_sources_inside_each_other_are_refused(second, tmp_path, inbox, monkeypatch):
    (inbox / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="lies in another source, or around it"):
        log.folders(["dir:inbox", f"dir:{second}"], [])
