"""Bad input through the command line: one screen that names the place and the remedy, an exit status, and
nothing half-written."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.patience import PATIENCE

HOLDFAST = Path(sys.executable).with_name("holdfast")
WARM = "topic Reading (value float)\nstate Warm on Reading [value > 25; value < 22] per source\n"
GOOD = "time,source,value\n2020-01-01T00:00:00Z,s1,26\n2020-01-01T00:01:00Z,s1,21\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a definition, good data and an output of an earlier run; the commands run there."""
    (tmp_path / "app.hf").write_text(WARM)
    (tmp_path / "good.csv").write_text(GOOD)
    (tmp_path / "out.jsonl").write_text("of an earlier run\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def one_screen(ran: Any, status: int, *words: str) -> None:
    """A short message with the given words, no traceback, and the status."""
    assert ran.status == status, ran.err
    assert ran.out == ""
    assert len(ran.err.splitlines()) <= 24
    assert "Traceback" not in ran.err
    assert "error" in ran.err.lower()
    for word in words:
        assert word in ran.err


def require_untouched(place: Path, *more: str) -> None:
    """Require that nothing is half-written: no new file, and the earlier output unchanged."""
    assert (place / "out.jsonl").read_text() == "of an earlier run\n"
    assert not list(place.rglob("*.part"))
    assert {path.name for path in place.iterdir()} == {"app.hf", "good.csv", "out.jsonl", *more}


def replay(holdfast: Any, *arguments: str) -> Any:
    return holdfast("replay", "app.hf", *arguments, "-o", "out.jsonl", "--rejects", "rejects.jsonl")


# --- files whose content does not match their suffix -------------------------------------------------

PARQUET = pa.table({"time": pa.array([0], pa.timestamp("us", "UTC")), "source": ["s"], "value": [1.0]})


def parquet_bytes() -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(PARQUET, out)
    return out.getvalue().to_pybytes()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.parquet", GOOD.encode()),
        ("data.parquet", b""),
        ("data.parquet", parquet_bytes()[:-20]),
        ("data.parquet", b"PAR1" + b"\x00" * 200 + b"PAR1"),
        ("data.csv", parquet_bytes()),
        ("data.csv", gzip.compress(GOOD.encode(), mtime=0)),
        ("data.csv.gz", GOOD.encode()),
        ("data.jsonl", GOOD.encode()),
        ("data.csv", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"),
        ("data.csv", GOOD.encode("utf-16")),
        ("data.csv", GOOD.replace("s1", "é").encode("latin-1")),
        ("data.csv", b'time,source,value\n2020-01-01T00:00:00Z,"s1,26\n2020-01-01T00:00:00Z,s1,26\n'),
    ],
)
def test_a_file_whose_content_does_not_match_its_suffix_fails(
    name: str, content: bytes, place: Path, holdfast: Any
) -> None:
    (place / name).write_bytes(content)
    one_screen(replay(holdfast, "-i", "good.csv", "-i", name), 1, name)
    require_untouched(place, name)


def test_a_torn_gzip_fails_and_leaves_nothing(place: Path, holdfast: Any) -> None:
    lines = "".join(f"2020-01-01T00:00:{i % 60:02}Z,s{i},{i * 7919 % 97}\n" for i in range(60_000))
    raw = gzip.compress(("time,source,value\n" + lines).encode())
    (place / "data.csv.gz").write_bytes(raw[: len(raw) // 2])
    one_screen(replay(holdfast, "-i", "good.csv", "-i", "data.csv.gz"), 1, "data.csv.gz", "gzip", "again")
    require_untouched(place, "data.csv.gz")


def test_a_damaged_gzip_fails_and_leaves_nothing(place: Path, holdfast: Any) -> None:
    raw = bytearray(gzip.compress(("time,source,value\n" + "2020-01-01T00:00:00Z,s1,26\n" * 50_000).encode()))
    raw[len(raw) // 2] ^= 0xFF
    (place / "data.csv.gz").write_bytes(bytes(raw))
    one_screen(replay(holdfast, "-i", "data.csv.gz"), 1, "data.csv.gz", "gzip")
    require_untouched(place, "data.csv.gz")


def test_a_parquet_file_damaged_inside_fails_and_leaves_nothing(place: Path, holdfast: Any) -> None:
    many = pa.table(
        {
            "time": pa.array(range(50_000), pa.timestamp("us", "UTC")),
            "source": ["s"] * 50_000,
            "value": [float(i % 89) for i in range(50_000)],
        }
    )
    pq.write_table(many, place / "data.parquet", compression="zstd", row_group_size=5_000)
    raw = bytearray((place / "data.parquet").read_bytes())
    half = len(raw) // 2
    raw[half : half + 4000] = bytes(range(7, 207)) * 20
    (place / "data.parquet").write_bytes(bytes(raw))
    one_screen(replay(holdfast, "-i", "data.parquet"), 1, "data.parquet")
    require_untouched(place, "data.parquet")


# --- columns ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["time", "source", "value"])
@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_missing_column_is_named_with_what_the_file_has(
    missing: str, format: str, place: Path, holdfast: Any
) -> None:
    table = PARQUET.rename_columns(
        [f"my_{name}" if name == missing else name for name in PARQUET.column_names]
    )
    if format == "csv":
        (place / "data.csv").write_text(GOOD.replace(missing, f"my_{missing}", 1))
    else:
        pq.write_table(table, place / "data.parquet")
    ran = replay(holdfast, "-i", f"data.{format}")
    one_screen(ran, 2, f"data.{format}", f"'{missing}'", f"my_{missing}", f"--map {missing}=")
    require_untouched(place, f"data.{format}")


def test_a_mapped_column_that_no_file_has_is_a_usage_error(place: Path, holdfast: Any) -> None:
    one_screen(replay(holdfast, "-i", "good.csv", "--map", "value=temp"), 2, "good.csv", "'temp'", "source")
    require_untouched(place)


@pytest.mark.parametrize("text", ["value", "=x", "value=", "value=a=b=c,"])
def test_an_unreadable_map_option_is_a_usage_error(text: str, place: Path, holdfast: Any) -> None:
    one_screen(replay(holdfast, "-i", "good.csv", "--map", text), 2, "--map")
    require_untouched(place)


def test_a_map_of_a_name_that_no_topic_has_is_a_usage_error(place: Path, holdfast: Any) -> None:
    one_screen(replay(holdfast, "-i", "good.csv", "--map", "valeu=value"), 2, "valeu", "value")
    require_untouched(place)


def test_a_column_that_occurs_twice_is_named(place: Path, holdfast: Any) -> None:
    (place / "data.csv").write_text("time,source,value,value\n2020-01-01T00:00:00Z,s1,26,1\n")
    one_screen(replay(holdfast, "-i", "data.csv"), 2, "data.csv", "'value'", "twice")
    require_untouched(place, "data.csv")


def test_a_parquet_column_of_a_wrong_type_is_named(place: Path, holdfast: Any) -> None:
    pq.write_table(PARQUET.set_column(2, "value", pa.array([[1.0]])), place / "data.parquet")
    one_screen(replay(holdfast, "-i", "data.parquet"), 1, "data.parquet", "'value'", "float")
    require_untouched(place, "data.parquet")


def test_numeric_times_in_parquet_require_a_unit(place: Path, holdfast: Any) -> None:
    pq.write_table(PARQUET.set_column(0, "time", pa.array([1_577_836_800])), place / "data.parquet")
    one_screen(replay(holdfast, "-i", "data.parquet"), 2, "data.parquet", "'time'", "--time-unit")
    require_untouched(place, "data.parquet")


@pytest.mark.parametrize("format", ["csv", "jsonl"])
def test_numeric_times_in_text_require_a_unit(format: str, place: Path, holdfast: Any) -> None:
    text = {
        "csv": "time,source,value\n1577836800,s1,26\n1577836801,s1,21\n",
        "jsonl": '{"time": 1577836800, "source": "s1", "value": 26}\n',
    }
    (place / f"data.{format}").write_text(text[format])
    ran = replay(holdfast, "-i", f"data.{format}")
    assert "--time-unit" in ran.err, "every row was rejected, and nothing says what would do"


# --- rows ---------------------------------------------------------------------------------------------

ROWS = (
    "time,source,value\n"
    "2020-01-01T00:00:00Z,s1,26\n"
    "yesterday,s1,1\n"
    "2020-01-01T00:00:30Z,s1,warm\n"
    "2020-01-01T00:00:40Z,,20\n"
    ",s1,20\n"
    "2020-01-01T00:00:50Z,s1\n"
    "2020-02-30T00:00:50Z,s1,20\n"
    "2020-01-01T00:01:00Z,s1,21\n"
)


def test_bad_rows_are_rejected_with_their_reasons_and_counted(place: Path, holdfast: Any) -> None:
    (place / "data.csv").write_text(ROWS)
    ran = replay(holdfast, "-i", "data.csv")
    assert ran.status == 0, ran.err
    lines = [json.loads(line) for line in (place / "out.jsonl").read_text().splitlines()]
    assert [line["status"] for line in lines] == ["ingress", "egress"]
    rejects = [json.loads(line) for line in (place / "rejects.jsonl").read_text().splitlines()]
    assert {reject["row"]: reject["reason"] for reject in rejects} == {
        2: "unreadable time",
        3: "value: not a float",
        4: "no source",
        5: "no time",
        6: "wrong number of columns",
        7: "unreadable time",
    }
    assert all(reject["file"].endswith("data.csv") for reject in rejects)
    assert "8 rows read" in ran.err
    assert "2 rows rejected: unreadable time" in ran.err
    assert "1 row rejected: value: not a float" in ran.err
    assert not list(place.rglob("*.part"))


def test_bad_json_lines_are_rejected(place: Path, holdfast: Any) -> None:
    (place / "data.jsonl").write_text(
        '{"time": "2020-01-01T00:00:00Z", "source": "s1", "value": 26}\n'
        '{"time": "2020-01-01T00:00:10Z", "source": "s1", "value": \n'
        "[1, 2]\n"
        '{"time": "2020-01-01T00:00:20Z", "source": "s1", "value": "warm"}\n'
        '{"time": "2020-01-01T00:00:20Z", "source": "s1", "value": [1]}\n'
        '{"time": "2020-01-01T00:00:20Z", "source": "s1", "value": true}\n'
        '{"source": "s1", "value": 21}\n'
        "\n"
        '{"time": "2020-01-01T00:01:00Z", "source": "s1", "value": 21}\n'
    )
    ran = replay(holdfast, "-i", "data.jsonl")
    assert ran.status == 0, ran.err
    assert len((place / "out.jsonl").read_text().splitlines()) == 2
    rejects = [json.loads(line) for line in (place / "rejects.jsonl").read_text().splitlines()]
    assert [reject["row"] for reject in rejects] == [2, 3, 4, 5, 6, 7]


def test_strict_makes_the_first_bad_row_fatal(place: Path, holdfast: Any) -> None:
    (place / "data.csv").write_text(ROWS)
    ran = replay(holdfast, "-i", "data.csv", "--strict")
    one_screen(ran, 1, "data.csv", "row 2", "unreadable time", "yesterday", "--strict")
    require_untouched(place, "data.csv")


def test_strict_accepts_good_rows(place: Path, holdfast: Any) -> None:
    ran = holdfast("replay", "app.hf", "-i", "good.csv", "--strict")
    assert len(ran.lines) == 2


def test_without_a_rejects_file_bad_rows_are_still_counted(place: Path, holdfast: Any) -> None:
    (place / "data.csv").write_text(ROWS)
    ran = holdfast("replay", "app.hf", "-i", "data.csv")
    assert len(ran.lines) == 2
    assert "rejected" in ran.err


# --- definitions --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (WARM.replace("on Reading", "on Readin"), ["app.hf:2:", "'Readin'", "Did you mean 'Reading'?"]),
        (WARM.replace("value < 22", "valeu < 22"), ["app.hf:2:", "'valeu'", "value"]),
        (WARM + "state X on Reading [value > 1; value < 1] ordered -5 s\n", ["app.hf:3:51", "negative"]),
        (WARM + "state X on Reading [value > 1; value < 1] ordered 5\n", ["app.hf:3:", "unit", "5 s"]),
        (
            WARM + "region a = rectangle (0, 0) (10, 10)\nregion b = rectangle (5, 5) (15, 15)\n"
            "state X on Reading [value > 1; value < 1] scope a, b\n",
            ["app.hf:5:", "'a'", "'b'", "overlap", "disjoint or nested"],
        ),
        (WARM.replace("float", "flaot"), ["app.hf:1:", "'flaot'", "float, int, text or bool"]),
        (WARM.replace("value > 25", 'value > "25"'), ["app.hf:2:", "text", "number"]),
        (WARM.replace("[value", "[valu€"), ["app.hf:2:"]),
        ("topic R (v float °C)\nstate X on R [v > 3 m; v < 2 m] per source\n", ["app.hf:2:", "°C", "m"]),
        ('gazetteer "nowhere.toml"\n' + WARM, ["app.hf:1:", "nowhere.toml"]),
        (
            WARM + "state Warm on Reading [value > 1; value < 1] per source\n",
            ["app.hf:3:", "twice", "line 2"],
        ),
    ],
)
@pytest.mark.parametrize("command", ["check", "explain", "replay"])
def test_an_error_in_a_definition_is_shown_with_a_caret(
    text: str, words: list[str], command: str, place: Path, holdfast: Any
) -> None:
    (place / "app.hf").write_text(text, encoding="utf-8")
    ran = replay(holdfast, "-i", "good.csv") if command == "replay" else holdfast(command, "app.hf")
    one_screen(ran, 2, "^", *words)
    require_untouched(place)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (WARM.replace("on Reading", "on Readin"), "Readin"),
        (WARM.replace("per source", "per sorce"), "sorce"),
        (WARM.replace("topic Reading (value float)", "topic Reading (value float, time text)"), "time"),
        (
            'gazetteer "places.toml"\n' + WARM.replace("per source", "scope romms"),
            "romms",
        ),
    ],
)
def test_the_caret_stands_under_the_wrong_word(text: str, word: str, place: Path, holdfast: Any) -> None:
    (place / "places.toml").write_text("[rooms]\na = {}\n")
    (place / "app.hf").write_text(text)
    shown, caret = holdfast("check", "app.hf").err.splitlines()[1:3]
    assert shown[caret.index("^") :].startswith(word)


@pytest.mark.parametrize(
    "gazetteer", ["[rooms\n", 'rooms = "a"\n', "[rooms]\na = { inn = 'b' }\n", "[rooms]\na = { in = 'b' }\n"]
)
def test_an_error_in_a_gazetteer_names_the_file(gazetteer: str, place: Path, holdfast: Any) -> None:
    (place / "places.toml").write_text(gazetteer)
    (place / "app.hf").write_text('gazetteer "places.toml"\n' + WARM.replace("per source", "scope rooms"))
    one_screen(replay(holdfast, "-i", "good.csv"), 2, "places.toml")
    require_untouched(place, "places.toml")


def test_a_missing_definition_is_a_usage_error(place: Path, holdfast: Any) -> None:
    one_screen(holdfast("replay", "nowhere.hf", "-i", "good.csv"), 2, "nowhere.hf")


def test_a_definition_that_is_not_text_is_a_usage_error(place: Path, holdfast: Any) -> None:
    (place / "app.hf").write_bytes(b"\xff\xfe\x00topic")
    one_screen(replay(holdfast, "-i", "good.csv"), 2, "app.hf", "UTF-8")
    require_untouched(place)


# --- options ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-i", "nowhere.csv"], ["nowhere.csv", "does not exist"]),
        (["-i", "nowhere*.csv"], ["nowhere*.csv"]),
        (["-i", "Readin=good.csv"], ["Readin"]),
        (["-i", "good.csv", "--topic", "Readin"], ["Readin", "Reading"]),
        (["-i", "good.csv", "--zone", "Europe/Lodnon"], ["Europe/Lodnon", "zone"]),
        (["-i", "good.csv", "--zone", "../../etc/passwd"], ["zone"]),
        (["-i", "good.csv", "--zone", ""], ["zone"]),
        (["-i", "good.csv", "--time-unit", "m"], ["--time-unit", "ms"]),
        (["-i", "good.csv", "--format", "xml"], ["xml", "jsonl, csv, parquet"]),
        (["-i", "good.csv", "--as", "interval"], ["interval", "intervals"]),
        (["-i", "good.csv", "--engine", "sprak"], ["sprak"]),
        (["-i", "good.csv", "--let", "hgih=3"], ["hgih"]),
        (["-i", "good.csv", "--memory", "0"], ["--memory"]),
        (["-i", "good.csv", "--nonsense"], ["--nonsense"]),
    ],
)
def test_wrong_options_are_usage_errors(
    options: list[str], words: list[str], place: Path, holdfast: Any
) -> None:
    one_screen(replay(holdfast, *options), 2, *words)
    require_untouched(place)


@pytest.mark.parametrize("option", ["-o", "--rejects"])
@pytest.mark.parametrize("path", ["nowhere/out.jsonl", "."])
def test_an_output_that_cannot_be_written_is_a_usage_error(
    option: str, path: str, place: Path, holdfast: Any
) -> None:
    one_screen(holdfast("replay", "app.hf", "-i", "good.csv", option, path), 2, path)
    require_untouched(place)


@pytest.mark.parametrize("option", ["-o", "--rejects"])
def test_an_input_is_never_overwritten(option: str, place: Path, holdfast: Any) -> None:
    one_screen(holdfast("replay", "app.hf", "-i", "good.csv", option, "good.csv"), 2, "good.csv")
    assert (place / "good.csv").read_text() == GOOD


def test_output_and_rejects_cannot_be_one_file(place: Path, holdfast: Any) -> None:
    (place / "data.csv").write_text(ROWS)
    ran = holdfast("replay", "app.hf", "-i", "data.csv", "-o", "out.jsonl", "--rejects", "out.jsonl")
    one_screen(ran, 2, "out.jsonl")
    require_untouched(place, "data.csv")


def test_parquet_output_to_a_terminal_is_refused(place: Path, holdfast: Any) -> None:
    one_screen(holdfast("replay", "app.hf", "-i", "good.csv", "--format", "parquet"), 2, "--output")


def test_a_text_parameter_may_look_like_a_number(place: Path, holdfast: Any) -> None:
    (place / "app.hf").write_text(
        'topic Reading (value float, room text)\nlet wanted = "1"\nfilter F on Reading where room == wanted\n'
    )
    (place / "data.csv").write_text("time,source,value,room\n2020-01-01T00:00:00Z,s1,26,413\n")
    assert len(holdfast("replay", "app.hf", "-i", "data.csv", "--let", "wanted=413").lines) == 1


# --- topics ---------------------------------------------------------------------------------------------


def test_rows_of_undeclared_topics_are_counted(place: Path, holdfast: Any) -> None:
    (place / "data.csv").write_text(
        "time,source,topic,value\n2020-01-01T00:00:00Z,s1,Reading,26\n2020-01-01T00:00:00Z,s1,Wind,26\n"
    )
    ran = holdfast("replay", "app.hf", "-i", "data.csv")
    assert len(ran.lines) == 1
    assert "Wind" in ran.err


def test_input_of_two_topics_without_a_topic_column_requires_the_topic_option(
    place: Path, holdfast: Any
) -> None:
    (place / "app.hf").write_text(WARM + "topic Other (value float)\nfilter O on Other where value > 1\n")
    one_screen(replay(holdfast, "-i", "good.csv"), 2, "topic", "--topic")
    require_untouched(place)


# --- little and nothing ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.csv", b""),
        ("data.csv", b"time,source,value\n"),
        ("data.jsonl", b""),
        ("data.jsonl", b"\n\n"),
        ("data.csv.gz", gzip.compress(b"", mtime=0)),
        ("data.csv.gz", gzip.compress(b"time,source,value\n", mtime=0)),
    ],
)
def test_an_empty_input_gives_an_empty_output(name: str, content: bytes, place: Path, holdfast: Any) -> None:
    (place / name).write_bytes(content)
    ran = replay(holdfast, "-i", name)
    assert ran.status == 0, ran.err
    assert (place / "out.jsonl").read_text() == ""
    assert "0 rows read" in ran.err


@pytest.mark.parametrize("format", ["csv", "parquet"])
@pytest.mark.parametrize("form", ["events", "intervals"])
def test_an_empty_table_still_has_its_columns(format: str, form: str, place: Path, holdfast: Any) -> None:
    (place / "data.csv").write_text("time,source,value\n")
    ran = holdfast("replay", "app.hf", "-i", "data.csv", "-o", f"table.{format}", "--as", form)
    assert ran.status == 0, ran.err
    if format == "csv":
        header = (place / "table.csv").read_text().splitlines()[0].split(",")
    else:
        header = pq.read_table(place / "table.parquet").column_names
    assert {"subscription", "scope", "value"} <= set(header)


def test_an_empty_folder_is_a_usage_error(place: Path, holdfast: Any) -> None:
    (place / "folder").mkdir()
    one_screen(replay(holdfast, "-i", "folder"), 2, "folder")
    require_untouched(place, "folder")


# --- pipes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_a_reader_of_the_output_may_stop_early(format: str, place: Path) -> None:
    lines = "".join(
        f"2020-01-01T{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}Z,s1,{26 - i % 2 * 5}\n"
        for i in range(10_000)  # much more than a pipe holds
    )
    (place / "data.csv").write_text("time,source,value\n" + lines)
    command = f"{HOLDFAST} replay app.hf -i data.csv --format {format} | head -1"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=PATIENCE)
    assert len(ran.stdout.splitlines()) == 1
    assert "Traceback" not in ran.stderr
    assert "BrokenPipe" not in ran.stderr
    assert "Exception ignored" not in ran.stderr


def test_a_closed_output_gives_no_traceback(place: Path) -> None:
    ran = subprocess.run(
        ["bash", "-c", f"{HOLDFAST} replay app.hf -i good.csv > /dev/full"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert ran.returncode == 1
    assert "Traceback" not in ran.stderr


def test_a_process_prints_the_same_as_the_main_function(place: Path, holdfast: Any) -> None:
    ran = subprocess.run(
        [HOLDFAST, "replay", "app.hf", "-i", "good.csv"], capture_output=True, text=True, timeout=PATIENCE
    )
    assert (ran.returncode, ran.stdout) == (0, holdfast("replay", "app.hf", "-i", "good.csv").out)
    bad = subprocess.run([HOLDFAST, "check", "nowhere.hf"], capture_output=True, text=True, timeout=PATIENCE)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert "nowhere.hf" in bad.stderr


# --- what is only doubtful ---------------------------------------------------------------------------


def test_ambiguous_and_skipped_local_times_cause_a_warning(place: Path, holdfast: Any) -> None:
    rows = ["2026-03-29 02:30:00,s1,26", "2026-10-25 02:10:00,s1,21", "2026-10-25 02:20:00,s1,26"]
    (place / "local.csv").write_text("time,source,value\n" + "\n".join(rows) + "\n")
    ran = holdfast("replay", "app.hf", "-i", "local.csv", "--zone", "Europe/Berlin")
    assert ran.status == 0
    assert "warning: 2 rows of a local time that clocks show twice" in ran.err
    assert "and 1 of one that they never show" in ran.err
    assert "warning" not in holdfast("replay", "app.hf", "-i", "local.csv").err


@pytest.mark.parametrize("name", ["x.xlsx", "x.jsonl.gz", "x.txt"])
def test_an_output_of_an_unknown_kind_is_refused(place: Path, holdfast: Any, name: str) -> None:
    ran = holdfast("replay", "app.hf", "-i", "good.csv", "-o", name)
    one_screen(ran, 2, name, Path(name).suffix, "--format")
    require_untouched(place)
    assert holdfast("replay", "app.hf", "-i", "good.csv", "-o", name, "--format", "csv").status == 0
    assert (place / name).read_text().startswith("id,")
