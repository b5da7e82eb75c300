"""Live on Spark: files arrive, a definition runs over them, and each notification is emitted once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.csv as csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import holdfast as hf
from support.chaos import generate
from support.patience import PATIENCE
from support.runtimes import session
from support.stored_log import APP as KEPT
from support.stored_log import store_readings

WARM = """
topic Temperature (value float)
state Warm on Temperature [value > 25; value < 22] per source
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    session()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "warm.hf").write_text(WARM)
    (tmp_path / "inbox").mkdir()
    return tmp_path


@pytest.fixture
def run(holdfast: Any) -> Callable[..., Any]:
    def ran(*more: str, sink: str = "jsonl:out.jsonl", app: str = "warm.hf", status: int = 0) -> Any:
        done = holdfast(
            "run", app, "--source", "dir:inbox", "--checkpoint", "checkpoint", "--sink", sink,
            "--available-now", "--settle", "0", *more,
        )  # fmt: skip
        assert done.status == status, done.err
        return done

    return ran


def write(name: str, *rows: tuple[str, str, float]) -> None:
    """A CSV file that arrives complete: clock, source, value."""
    lines = [f"2026-07-01T{clock}Z,{source},{value}" for clock, source, value in rows]
    part = Path("inbox") / f".{name}.part"
    part.write_text("\n".join(["time,source,value", *lines]) + "\n")
    part.rename(Path("inbox") / name)


def read_rows(path: str = "out.jsonl") -> list[tuple[str, str, str, str]]:
    lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return [(n["subscription"], n["scope"], n["status"], n["time"][11:16]) for n in lines]


def test_files_of_every_format_give_what_replay_gives(site: Path, run: Any, holdfast: Any) -> None:
    generate(site / "inbox", files=3, rows=6_000, sensors=20)
    rows = pq.read_table("inbox/0001.parquet").to_pylist()
    lines = [json.dumps({**row, "time": row["time"].isoformat()}) for row in rows]
    Path("inbox/0001.jsonl").write_text("\n".join(lines) + "\n")
    csv.write_csv(pq.read_table("inbox/0002.parquet"), "inbox/0002.csv")
    for name in ("0001", "0002"):
        Path(f"inbox/{name}.parquet").unlink()
    run("--batch", "1", sink="parquet:out")
    assert holdfast("replay", "warm.hf", "-i", "inbox", "-o", "replay.parquet").status == 0
    expected = pq.read_table("replay.parquet")
    assert len(expected) > 50
    by_arrow = ds.dataset("out").to_table()
    assert by_arrow.schema.equals(expected.schema)
    assert sorted(by_arrow.column("id").to_pylist()) == sorted(expected.column("id").to_pylist())
    by_duckdb = duckdb.sql("select * from 'out/**/*.parquet'").fetchall()
    assert sorted(by_duckdb) == sorted(duckdb.sql("select * from 'replay.parquet'").fetchall())


def test_spark_reads_the_logs_of_two_services_and_gives_their_notification_ids(
    site: Path, holdfast: Any
) -> None:
    """Two services, one Spark job: it reads what is sealed, then what came later, and emits each
    notification once."""
    Path("kept.hf").write_text(KEPT)
    north, south = site / "north", site / "south"
    expected = set(store_readings(north, 0, 30)) | set(store_readings(south, 1_000, 30))
    command = (
        "run", "kept.hf", "--source", f"log:{north}", "--source", f"log:{south}", "--settle", "0",
        "--checkpoint", "checkpoint", "--sink", "jsonl:out.jsonl", "--available-now",
    )  # fmt: skip
    assert holdfast(*command).status == 0
    expected |= set(store_readings(south, 1_030, 20))
    done = holdfast(*command)
    assert done.status == 0, done.err
    emitted = [json.loads(line)["id"] for line in Path("out.jsonl").read_text().splitlines()]
    assert len(emitted) == len(set(emitted))
    assert set(emitted) == expected


def test_a_live_query_continues_after_a_stop(site: Path, run: Any, holdfast: Any) -> None:
    write("b.csv", ("12:00", "attic", 26), ("12:01", "lab", 27))
    run()
    write("a.csv", ("12:05", "attic", 21))  # an earlier name, and later
    write("c.csv", ("12:06", "lab", 20), ("12:07", "attic", 30))
    Path("checkpoint/stop").touch()  # as a stop leaves it
    done = run()
    assert not Path("checkpoint/stop").exists()
    assert read_rows() == [
        ("Warm", "attic", "ingress", "12:00"),
        ("Warm", "lab", "ingress", "12:01"),
        ("Warm", "attic", "egress", "12:05"),
        ("Warm", "lab", "egress", "12:06"),
        ("Warm", "attic", "ingress", "12:07"),
    ]
    assert "3 files read" in done.err
    run()
    assert len(read_rows()) == 5, "nothing new, nothing said"
    emitted = json.loads(holdfast("status", "--checkpoint", "checkpoint", "--json").out)
    assert emitted["running"] is False
    assert emitted["subscriptions"]["Warm"] == {
        "read": 5, "passed": 5, "transitions": 5, "late": 0, "outside": 0,
    }  # fmt: skip
    since = "2026-07-01T12:07:00.000000Z"
    assert emitted["conditions"] == [
        {"subscription": "Warm", "scope": "attic", "since": since, "known": True}
    ]
    assert "Warm attic since 2026-07-01T12:07" in holdfast("status", "--checkpoint", "checkpoint").out


def test_ordered_conditions_wait_and_report_late_events(site: Path, run: Any, holdfast: Any) -> None:
    Path("warm.hf").write_text(WARM.replace("per source", "per source ordered 5 min"))
    write("1.csv", ("12:02", "attic", 26), ("12:00", "attic", 24))
    write("2.csv", ("12:04", "lab", 21))
    run()
    assert not Path("out.jsonl").exists(), "time has not come so far"
    write("3.csv", ("12:10", "lab", 26), ("12:03", "attic", 21))
    run()
    assert read_rows() == [("Warm", "attic", "ingress", "12:02"), ("Warm", "attic", "egress", "12:03")]
    write("4.csv", ("12:04", "attic", 30), ("12:11", "lab", 20))
    done = run("--finish")
    assert read_rows()[2:] == [("Warm", "lab", "ingress", "12:10"), ("Warm", "lab", "egress", "12:11")]
    assert read_rows("checkpoint/late.jsonl") == [("Warm", None, "late", "12:04")]
    assert holdfast("status", "--checkpoint", "checkpoint", "--json").out.count('"late": 1') == 1
    assert "Warm" in done.err


def test_other_subscriptions_keep_their_state_when_one_is_added(site: Path, run: Any) -> None:
    """In short; random ones come and go in ``equivalence/test_live.py``."""
    write("1.csv", ("12:00", "attic", 26), ("12:00", "lab", 40))
    run()
    Path("warm.hf").write_text(WARM + "state Hot on Temperature [value > 35; value < 30] per source\n")
    write("2.csv", ("12:01", "attic", 41), ("12:01", "lab", 41))
    run(sink="jsonl:other.jsonl")
    assert read_rows("other.jsonl") == [
        ("Hot", "attic", "ingress", "12:01"),
        ("Hot", "lab", "ingress", "12:01"),
    ]


@pytest.mark.soak
def test_other_subscriptions_keep_their_state_when_some_are_added_and_removed(site: Path, run: Any) -> None:
    test_other_subscriptions_keep_their_state_when_one_is_added(site, run)
    Path("warm.hf").write_text(
        "topic Temperature (value float)\nstate Hot on Temperature [value > 35; value < 30] per source\n"
    )
    write("3.csv", ("12:02", "attic", 21))
    run(sink="jsonl:other.jsonl")
    Path("warm.hf").write_text(WARM + "state Hot on Temperature [value > 35; value < 30] per source\n")
    write("4.csv", ("12:03", "lab", 20), ("12:04", "attic", 26))
    run(sink="jsonl:other.jsonl")
    assert read_rows("other.jsonl")[2:] == [
        ("Hot", "attic", "egress", "12:02"),
        ("Hot", "lab", "egress", "12:03"),  # and not the end of the Warm that was removed
        ("Warm", "attic", "ingress", "12:04"),
    ]


def test_a_revision_is_decided_by_the_files_that_were_read(site: Path, run: Any) -> None:
    write("1.csv", ("12:00", "attic", 26), ("12:00", "lab", 30))
    run()
    Path("warm.hf").write_text(WARM.replace("> 25", "> 28"))
    write("2.csv", ("12:01", "lab", 29))
    run()
    write("3.csv", ("12:02", "attic", 20), ("12:02", "lab", 20))
    run()
    assert read_rows()[2:] == [
        ("Warm", "attic", "revised", "12:00"),  # and of the lab nothing: it was above 28, too
        ("Warm", "lab", "egress", "12:02"),
    ]


def test_a_revision_that_cannot_continue_is_refused_with_the_change(site: Path, run: Any) -> None:
    write("1.csv", ("12:00", "attic", 26))
    run()
    Path("warm.hf").write_text(WARM.replace("per source", "per source ordered 1 s"))
    refused = run(status=2).err
    assert "'Warm' has changed: its delivery was 'timely'" in refused
    assert "It cannot keep what is known: it is ordered" in refused
    Path("warm.hf").write_text(WARM.replace("value float", "value int"))
    assert "its list of attributes was 'source text, value float'" in run(status=2).err
    Path("warm.hf").write_text(WARM)
    assert "--shards 4: this checkpoint has 16" in run("--shards", "4", status=2).err
    assert "--zone was 'UTC'" in run("--zone", "Europe/Paris", status=2).err
    write("2.csv", ("12:01", "attic", 20))
    run()
    assert [mark for _, _, mark, _ in read_rows()] == ["ingress", "egress"]


def test_a_damaged_file_stops_the_query_or_is_quarantined(site: Path, run: Any) -> None:
    write("1.csv", ("12:00", "attic", 26))
    Path("inbox/2.parquet").write_bytes(b"PAR1 this is no footer PAR1")
    write("3.csv", ("12:02", "attic", 20))
    stopped = run(status=1)
    assert "2.parquet" in stopped.err
    assert "Traceback" not in stopped.err
    assert not Path("out.jsonl").exists(), "nothing of a batch that failed"
    done = run("--bad-files", "quarantine")
    assert [mark for _, _, mark, _ in read_rows()] == ["ingress", "egress"]
    (bad,) = [json.loads(line) for line in Path("checkpoint/quarantine.jsonl").read_text().splitlines()]
    assert bad["file"].endswith("2.parquet")
    assert "footer" in bad["reason"]
    assert "1 file quarantined" in done.err


def test_rejected_rows_are_stored_with_their_reason(site: Path, run: Any) -> None:
    Path("inbox/1.csv").write_text("time,source,value\nyesterday,attic,26\n2026-07-01T12:00Z,attic,26\n")
    done = run()
    assert "1 row rejected: unreadable time" in done.err
    (row,) = [json.loads(line) for line in Path("checkpoint/rejects.jsonl").read_text().splitlines()]
    assert (row["row"], row["reason"]) == (1, "unreadable time")
    write("2.csv", ("12:01", "attic", 20))
    Path("inbox/3.csv").write_text("time,source,value\ntomorrow,attic,26\n")
    assert "tomorrow" in run("--strict", status=1).err
    assert len(read_rows()) == 1


def test_a_callback_receives_every_notification_of_a_live_query(site: Path) -> None:
    write("1.csv", ("12:00", "attic", 26), ("12:01", "attic", 20))
    received: list[hf.Notification] = []
    live = hf.spark.live(
        hf.load("warm.hf"), "inbox", checkpoint="checkpoint", sink=received.append, every=None, settle=0
    )
    record = hf.spark.run(live, session())
    assert [(n.status, n.scope) for n in received] == [("ingress", "attic"), ("egress", "attic")]
    assert record.subscriptions["Warm"].transitions == 2


def test_a_running_query_can_be_inspected_and_stopped(site: Path) -> None:
    write("1.csv", ("12:00", "attic", 26))
    live = hf.spark.live(
        hf.load("warm.hf"), "inbox", checkpoint="checkpoint", sink="jsonl:out.jsonl", every=0.1, settle=0
    )
    with hf.spark.started(live, session()) as query:
        while not query.record.files:
            query.wait(0.2)
        assert hf.spark.status(Path("checkpoint"))["running"]
        with pytest.raises(hf.UsageError, match="another 'holdfast run' uses this checkpoint"):
            hf.spark.run(live, session())
        write("2.csv", ("12:01", "attic", 20))
        while query.record.files < 2:
            query.wait(0.2)
        query.stop()
        assert query.wait(PATIENCE)
    assert [mark for _, _, mark, _ in read_rows()] == ["ingress", "egress"]
    assert not hf.spark.status(Path("checkpoint"))["running"]


def test_a_sink_of_another_program_is_refused(site: Path, run: Any, holdfast: Any) -> None:
    Path("out.jsonl").write_text("mine\n")
    assert "not a file of this query" in run(status=2).err
    Path("out").mkdir()
    Path("out/mine.parquet").write_text("mine")
    assert "not empty" in run(sink="parquet:out", status=2).err
    assert "write parquet:PATH, jsonl:PATH or console" in run(sink="kafka:x", status=2).err
    assert "there is no folder" in holdfast(
        "run", "warm.hf", "--source", "dir:nowhere", "--checkpoint", "c"
    ).err  # fmt: skip
    assert "--finish ends the stream" in holdfast(
        "run", "warm.hf", "--source", "dir:inbox", "--checkpoint", "c", "--finish"
    ).err  # fmt: skip
    assert "not the checkpoint of a query" in holdfast("status", "--checkpoint", "nowhere").err
