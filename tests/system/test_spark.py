"""The command line on Spark prints the same as in the process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdfast
from support.runtimes import session

DEFINITION = """
gazetteer "site.toml"
topic Reading (value float, n int)
topic Door (open bool)
state  Warm  on Reading [value > 25; value < 22] per source
state  Rooms on Reading [value > 25; value < 22] scope rooms within floors
state  Far   on Reading [value > 25; value < 22] scope cellar
state  Open  on Door [open; !open] per source
filter Many  on Reading where n + 1 > 9
"""
GAZETTEER = """
rooms.a = { in = "first" }
rooms.b = { in = "first" }
floors.first = {}
cellars.cellar = {}
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    session()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.hf").write_text(DEFINITION)
    (tmp_path / "site.toml").write_text(GAZETTEER)
    (tmp_path / "data").mkdir()
    for part in range(3):
        rows = [
            f"2026-01-01T00:00:{i:02}Z,Reading,s{i % 3},{'ab'[i % 2]},{20 + i * 7 % 11},{i % 12},"
            if i % 4
            else f"2026-01-01T00:00:{i:02}Z,Door,d{i % 2},,,,{i % 8 == 0}"
            for i in range(part, 60, 3)
        ]
        text = "\n".join(["time,topic,source,place,value,n,open", *rows, "yesterday,Reading,s1,a,1,1,"])
        (tmp_path / "data" / f"{part}.csv").write_text(text + "\n")
    return tmp_path


def test_output_on_spark_equals_local_output_line_by_line(site: Path, holdfast: Any) -> None:
    both = {}
    for engine in ("local", "spark"):
        ran = holdfast(
            "replay", "app.hf", "-i", "data", "--engine", engine, "-o", f"{engine}.jsonl",
            "--rejects", f"{engine}.rejects",
        )  # fmt: skip
        assert ran.status == 0, ran.err
        both[engine] = ran.err
    lines = (site / "local.jsonl").read_text()
    assert len(lines.splitlines()) > 20
    assert (site / "spark.jsonl").read_text() == lines
    assert both["spark"] == both["local"]
    assert "3 rows rejected: unreadable time" in both["spark"]
    assert "not one row lies in a scope of 'Far'" in both["spark"]
    rejected = [
        [(Path(r["file"]).name, r["row"], r["reason"], r["data"]) for r in map(json.loads, text)]
        for text in ((site / f"{e}.rejects").read_text().splitlines() for e in ("local", "spark"))
    ]
    assert rejected[0] == rejected[1]


def test_an_error_in_a_spark_reader_is_one_message(site: Path, holdfast: Any) -> None:
    ran = holdfast("replay", "app.hf", "-i", "data", "--engine", "spark", "--strict", "-o", "out.jsonl")
    assert ran.status == 1
    assert "unreadable time" in ran.err
    assert "Traceback" not in ran.err
    assert not (site / "out.jsonl").exists()


def test_the_master_option_requires_spark(site: Path, holdfast: Any) -> None:
    ran = holdfast("replay", "app.hf", "-i", "data", "--master", "local[1]")
    assert ran.status == 2
    assert "--engine spark" in ran.err


WARM = "topic Reading (value float)\nstate Warm on Reading [value > 25; value < 22] per source"


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    """Sensors that are read at the same moments; row groups cut these in two."""
    session()
    rows = [(t, f"s{i}", 20.0 + 7 * ((t // 5 + i) % 2)) for t in range(200) for i in range(9, 0, -1)]
    for part in range(2):
        times, sources, values = zip(*rows[part * 904 : (part + 1) * 904], strict=True)
        columns = {
            "time": pa.array(times).cast(pa.timestamp("s", "UTC")),
            "source": sources,
            "value": values,
        }
        pq.write_table(pa.table(columns), tmp_path / f"{1 - part}.parquet", row_group_size=50)
    return tmp_path


def test_few_notifications_come_from_the_driver_and_many_from_the_executors(
    readings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.runtimes.spark.batch import replay

    local = list(holdfast.replay(WARM, readings))
    assert len(local) > 300
    few = replay.replay(WARM, readings, spark=session())
    assert list(few) == local
    at_once: list[int] = []
    read = replay.from_table
    monkeypatch.setattr(replay, "from_table", lambda topics, t: at_once.append(len(t)) or read(topics, t))
    monkeypatch.setattr(replay, "FEW", 4096)
    many = replay.replay(WARM, readings, spark=session())
    assert list(many) == local
    assert max(at_once) < len(local) / 2  # the driver never has them all
    assert (many.passed, many.holding()) == (few.passed, few.holding())


def test_a_dataframe_is_written_by_the_executors(readings: Path) -> None:
    from holdfast.runtimes.spark.batch import replay

    found = replay.replay(WARM, readings, spark=session())
    found.dataframe.write.parquet(str(readings / "out"))
    written = pq.read_table(readings / "out")
    local = list(holdfast.replay(WARM, readings / "0.parquet", readings / "1.parquet"))
    assert sorted(written.column("source").to_pylist()) == sorted(n.event.source for n in local)
    assert len(set(written.column("id").to_pylist())) == len(local)


def test_a_dataframe_of_damaged_files_is_an_error(readings: Path) -> None:
    from holdfast.runtimes.spark.batch import replay

    whole = (readings / "1.parquet").read_bytes()
    found = replay.replay(WARM, readings, spark=session())
    (readings / "1.parquet").write_bytes(bytes(1000) + whole[1000:])
    with pytest.raises(Exception, match="cannot be read"):
        found.dataframe.count()
    with pytest.raises(holdfast.errors.InputError, match="The file is damaged"):
        list(found)


def test_ambiguous_and_skipped_local_times_are_counted(tmp_path: Path) -> None:
    from holdfast.runtimes.spark.batch import replay

    times = ("2026-03-29T02:30", "2026-06-01T02:30", "2026-10-25T02:30", "2026-10-25T02:45")
    lines = ["time,source,value", *(f"{time},attic,{20 + 10 * (i % 2)}" for i, time in enumerate(times))]
    (tmp_path / "local.csv").write_text("\n".join(lines))
    found = replay.replay(WARM, tmp_path / "local.csv", spark=session(), zone="Europe/Berlin")
    local = holdfast.replay(WARM, tmp_path / "local.csv", zone="Europe/Berlin")
    assert list(found) == list(local)
    assert (found.tally.twice, found.tally.never) == (local.tally.twice, local.tally.never) == (2, 1)


def test_advice_on_spark_equals_local_advice_to_the_last_digit(readings: Path) -> None:
    from holdfast.definition.tune import tunable
    from holdfast.files.find import find
    from holdfast.files.reading import Reading
    from holdfast.files.tally import Tally
    from holdfast.plan.advise.question import AdviceQuestion
    from holdfast.runtimes.local import advise as here
    from holdfast.runtimes.spark.batch import advise as there

    checked = holdfast.check(holdfast.parse(WARM))
    found, reading = tunable(checked, "Warm"), Reading(checked.topics)
    labels = {"s1": [(5_000_000, 9_000_000)], "nobody": [(0, 1)]}
    question = AdviceQuestion(found, guards=[0, 3_000_000], labels=labels, rounds=1)
    (readings / "one.csv").write_text(
        "time,source,value\n1970-01-01T00:00:08Z,s1,warm\n1970-01-01T00:00:09Z,s1,20\n"
    )
    files, tallies = find([str(readings)]), (Tally(), Tally())
    histories = (
        here.history(found, files, reading, tallies[0]),
        there.history(found, files, reading, tallies[1], spark=session()),
    )
    assert tallies[0].rejected == tallies[1].rejected
    assert tallies[1].rejected.total() == 1
    assert tallies[0].rows == tallies[1].rows
    local, spark = (question.ask(history) for history in histories)
    assert local.variants == spark.variants
    assert any(one.starts for one in local.variants)
    as_it_stands = AdviceQuestion(found, guards=[0])
    assert len({str(as_it_stands.ask(history).variants) for history in histories}) == 1
