"""Faults around a live query: a full disk, a signal, files that vanish."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import threading
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from support.chaos import WARM, LiveProcess, batches_done, generate, wait_for
from support.runtimes import session


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    session()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "warm.hf").write_text(WARM)
    (tmp_path / "inbox").mkdir()
    return tmp_path


def arguments(sink: str, batch: str = "1") -> list[str]:
    return [
        "warm.hf", "--source", "dir:inbox", "--checkpoint", "checkpoint", "--sink", sink, "--settle", "0",
        "--batch", batch,
    ]  # fmt: skip


@pytest.mark.parametrize("sink", ["parquet:out", pytest.param("jsonl:out.jsonl", marks=pytest.mark.soak)])
def test_a_full_disk_ends_the_query_and_no_notification_is_missing_afterwards(
    site: Path, holdfast: Any, sink: str
) -> None:
    generate(site / "inbox", files=2, rows=40_000)
    command = ["run", *arguments(sink, batch="100"), "--available-now", "--finish"]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, before[1]))  # ours alone: Spark runs already
    try:
        full = holdfast(*command)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert full.status == 1
    assert "File too large" in full.err
    assert "Traceback" not in full.err
    assert not list(site.glob("out/batch*"))
    assert sorted(p.name for p in site.iterdir() if "staging" in p.name) == []
    again = holdfast(*command)
    assert again.status == 0, again.err
    assert holdfast("replay", "warm.hf", "-i", "inbox", "-o", "replay.jsonl").status == 0
    wanted = sorted((site / "replay.jsonl").read_text().splitlines())
    assert len(wanted) > 500
    if sink.startswith("jsonl"):
        assert sorted((site / "out.jsonl").read_text().splitlines()) == wanted
    else:
        assert len(ds.dataset("out").to_table().column("id").unique()) == len(wanted)
        assert ds.dataset("out").count_rows() == len(wanted)


def test_a_damaged_checkpoint_is_refused_in_one_sentence_and_not_changed(site: Path, holdfast: Any) -> None:
    generate(site / "inbox", files=2, rows=1_000)
    command = ["run", *arguments("jsonl:out.jsonl"), "--available-now"]
    assert holdfast(*command).status == 0
    whole = site / "whole"
    shutil.copytree("checkpoint", whole)
    for part, stored in [
        ("spark/metadata", 10),
        ("spark/offsets/0", 30),
        ("spark/commits/0", 0),
        ("spark/state/0/0/1.changelog", 5),
        ("files.jsonl", 20),
        ("ledger.sqlite", 1_000),
    ]:
        damaged = site / "checkpoint" / part
        damaged.write_bytes(damaged.read_bytes()[:stored])
        before = contents(site)
        refused = holdfast(*command)
        assert refused.status == 2, part
        assert refused.err.startswith("error: ")
        assert len(refused.err.strip().splitlines()) == 1
        assert "start a new checkpoint" in refused.err
        assert contents(site) == before
        shutil.rmtree("checkpoint")
        shutil.copytree(whole, "checkpoint")
    generate(site / "inbox", files=3, rows=1_000)
    again = holdfast(*command)
    assert again.status == 0, again.err
    assert "3 files read" in again.err


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_time_outs_of_spark_do_not_end_a_query(
    site: Path, holdfast: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate(site / "inbox", files=1, rows=1_000)
    queries = pytest.importorskip("holdfast.runtimes.spark.streaming.query")
    write, calls = queries._Batches._write, []

    def slow_at_first(batches: Any, *what: Any) -> None:
        calls.append(what)
        if len(calls) == 1:
            raise RuntimeError("Timed out while waiting for the Python worker to connect back")
        write(batches, *what)

    monkeypatch.setattr(queries._Batches, "_write", slow_at_first)
    ran = holdfast("run", *arguments("jsonl:out.jsonl"), "--available-now", "--finish")
    assert ran.status == 0, ran.err
    assert "started again by itself 1 time" in holdfast("status", "--checkpoint", "checkpoint").out
    assert holdfast("replay", "warm.hf", "-i", "inbox", "-o", "replay.jsonl").status == 0
    assert sorted(Path("out.jsonl").read_text().splitlines()) == sorted(
        Path("replay.jsonl").read_text().splitlines()
    )


def test_a_file_removed_before_it_was_read_is_reported(site: Path, holdfast: Any) -> None:
    generate(site / "inbox", files=3, rows=1_000)
    damaged = Path("inbox/0001.parquet").read_bytes()
    Path("inbox/0001.parquet").write_bytes(damaged[:50] + bytes(len(damaged) - 100) + damaged[-50:])
    command = ["run", *arguments("jsonl:out.jsonl"), "--available-now"]
    assert "0001.parquet" in holdfast(*command).err
    Path("inbox/0001.parquet").unlink()
    gone = holdfast(*command)
    assert gone.status == 1
    assert "0001.parquet: removed before it could be read" in gone.err
    Path("inbox/0001.parquet").write_bytes(damaged)
    assert holdfast(*command).status == 0
    emitted = holdfast("status", "--checkpoint", "checkpoint")
    assert "3 files read" in emitted.out


def six_batches(site: Path) -> list[str]:
    """Write six files, each of the size of a batch."""
    generate(site / "inbox", files=6, rows=1_000, padding=1_200)
    return [*arguments("parquet:out"), "--every", "0"]


def test_a_live_query_asked_to_stop_finishes_its_batch(site: Path, holdfast: Any) -> None:
    """In this process, whose Spark runs already; as a process of its own in ``script/soak``."""
    command, over, seen = six_batches(site), threading.Event(), []

    def ask() -> None:
        if wait_for(lambda: over.is_set() or batches_done(site / "checkpoint") >= 1) and not over.is_set():
            seen.append(hf.spark.status(site / "checkpoint")["running"])
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    asking = threading.Thread(target=ask)
    asking.start()
    try:
        ran = holdfast("run", *command)
    finally:
        over.set()
        asking.join()
    assert ran.status == 0, ran.err
    assert seen == [True]
    assert signal.getsignal(signal.SIGTERM) == before
    its_last_batch_is_whole(site, ran.err, holdfast)


@pytest.mark.soak
def test_a_live_process_asked_to_stop_finishes_its_batch(site: Path, holdfast: Any) -> None:
    command, log = six_batches(site), site / "log"
    with LiveProcess(command, log) as live:
        assert wait_for(lambda: batches_done(site / "checkpoint") >= 1, process=live), log.read_text()
        assert holdfast("status", "--checkpoint", "checkpoint").out.startswith("running")
        assert live.terminate() == 0, log.read_text()
    its_last_batch_is_whole(site, log.read_text(), holdfast)
    assert os.path.exists(site / "checkpoint/spark.log")


def its_last_batch_is_whole(site: Path, output: str, holdfast: Any) -> None:
    done = batches_done(site / "checkpoint")
    assert "Traceback" not in output
    assert "conditions active now" in output
    commits = {int(p.name) for p in (site / "checkpoint/spark/commits").iterdir() if p.name.isdigit()}
    assert max(commits) + 1 == done, "the last batch was committed, not cut off"
    folders = [p for p in (site / "out").iterdir() if p.name.startswith("batch-")]
    assert len(folders) == done
    assert all(pq.read_table(folder).num_rows for folder in folders)
    assert holdfast("status", "--checkpoint", "checkpoint").out.startswith("not running")
