"""Bad rows are rejected with a reason; a file with unexpected contents is an error with a remedy."""

from __future__ import annotations

import gzip
import json
import os
import sys

import pyarrow as pa
import pytest

from holdfast.errors import InputError, UsageError
from holdfast.files.find import find
from holdfast.files.from_csv import _forget
from holdfast.files.reading import Reading, parse_rename
from holdfast.files.tally import Rejects, Tally

GOOD = "2007-09-13T13:35:00Z,s,1\n"
HEADER = "time,source,value\n"


# --- rows ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("yesterday,s,1", "unreadable time"),
        ("2007-02-30,s,1", "unreadable time"),
        (",s,1", "no time"),
        ("2007-09-13,,1", "no source"),
        ("2007-09-13,  ,1", "no source"),
        ("2007-09-13,s,warm", "value: not a float"),
        ("2007-09-13,s,1_0", "value: not a float"),
        ("2007-09-13,s", "wrong number of columns"),
        ("2007-09-13,s,1,2", "wrong number of columns"),
    ],
)
def test_a_bad_csv_row_is_rejected_and_the_rest_is_read(put, reads, row, reason):
    path = put("a.csv", HEADER + GOOD + row + "\n" + GOOD)
    result = reads(path)
    assert result.reasons == [(2, reason)]
    assert result.tally.rejected == {reason: 1}
    assert [e.sequence for e in result.events] == [0, 2]
    with pytest.raises(InputError, match=f"a.csv, row 2: {reason}"):
        reads(path, strict=True)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"time": "2007-09-13", "source": "s", "i": 2**63}, "i: not an int of 64 bits"),
        ({"time": "2007-09-13", "source": "s", "i": 1.5}, "i: not an int of 64 bits"),
        ({"time": "2007-09-13", "source": "s", "i": True}, "i: not an int of 64 bits"),
        ({"time": "2007-09-13", "source": "s", "i": "1e300"}, "i: not an int of 64 bits"),
        ({"time": "2007-09-13", "source": "s", "f": True}, "f: not a float"),
        ({"time": "2007-09-13", "source": "s", "f": [1]}, "f: a list or an object"),
        ({"time": "2007-09-13", "source": "s", "topic": []}, "topic: a list or an object"),
        ({"time": "2007-09-13", "source": "s", "topic": {"a": [{}]}}, "topic: a list or an object"),
        ({"time": "2007-09-13", "source": "s", "b": 2}, "b: not a bool"),
        ({"time": "2007-09-13", "source": "s", "b": "maybe"}, "b: not a bool"),
        ({"time": "2007-09-13", "source": None}, "no source"),
        ({"source": "s"}, "no time"),
        ({"time": True, "source": "s"}, "unreadable time"),
    ],
)
def test_a_bad_json_row_is_rejected(put, reads, mixed, row, reason):
    good = {"time": "2007-09-13", "source": "s", "f": 1, "i": 1, "t": "t", "b": True}
    path = put("a.jsonl", "".join(json.dumps(r) + "\n" for r in (good, row, good)))
    result = reads(path, topics=(mixed,))
    assert result.rejected == [(2, reason, row)]
    assert [e.sequence for e in result.events] == [0, 2]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"time": ', "malformed JSON"),
        ("[1, 2]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('{"time": "\\ud800"}', "malformed JSON"),
        ("[" * 100_000, "malformed JSON"),
    ],
)
def test_a_bad_json_line_is_rejected(put, reads, line, reason):
    good = '{"time": "2007-09-13", "source": "s", "value": 1}\n'
    result = reads(put("a.jsonl", good + "\n" + line + "\n" + good))
    assert result.reasons == [(3, reason)]
    assert [e.sequence for e in result.events] == [0, 3]


def test_a_bad_json_row_with_a_number_beyond_floats_is_reported_as_text(put, reads):
    line = '{"time": "soon", "source": "s", "value": 1, "other": 1e400}'
    result = reads(put("a.jsonl", '{"time": "2007-09-13", "source": "s", "value": 1}\n' + line))
    assert result.rejected == [(2, "unreadable time", line)]


def test_bad_parquet_rows_are_rejected(put, reads, mixed):
    table = {
        "time": pa.array(["2007-09-13", None, "soon", "2007-09-14"]),
        "source": ["a", "b", "c", None],
        "f": pa.array(["1", "2", "3", "4"]),
        "i": pa.array([1, 2, 3, 2**64 - 1], pa.uint64()),
        "t": ["", "", "", ""],
        "b": [0, 1, 1, 1],
    }
    result = reads(put("a.parquet", table), topics=(mixed,))
    assert result.reasons == [(2, "no time"), (3, "unreadable time"), (4, "no source")]
    assert result.rejected[1][2] == {"time": "soon", "source": "c", "i": 3, "f": "3", "t": "", "b": 1}


def test_times_out_of_the_calendar_are_unreadable(put, reads):
    path = put("a.csv", "time,source,value\n99999999999999,s,1\n1189690500,s,1\n")
    assert reads(path, time_unit="s").reasons == [(1, "unreadable time")]


def test_the_rejects_file_contains_place_and_reason(put, tmp_path):
    (file,) = find([put("a.csv", "")])
    path = tmp_path / "rejects.jsonl"
    with Rejects(str(path)) as rejects:
        rejects.write(file, 7, "no time", {"source": "ø", "at": pa.scalar(0, pa.timestamp("us")).as_py()})
        assert not path.exists()
    assert json.loads(path.read_text()) == {
        "file": file.path,
        "row": 7,
        "reason": "no time",
        "data": {"source": "ø", "at": "1970-01-01 00:00:00"},
    }


def test_the_rejects_file_is_empty_without_bad_rows_and_absent_after_a_failure(tmp_path):
    with Rejects(str(tmp_path / "empty.jsonl")):
        pass
    assert (tmp_path / "empty.jsonl").read_bytes() == b""
    with pytest.raises(RuntimeError), Rejects(str(tmp_path / "none.jsonl")):
        raise RuntimeError
    assert os.listdir(tmp_path) == ["empty.jsonl"]


def test_tallies_add_up():
    one, two = Tally(3, bytes=5), Tally(4, bytes=6)
    one.rejected["no time"] = two.rejected["no time"] = 1
    two.other("Other", 2)
    one.add(two)
    assert (one.rows, one.bytes, one.rejected, one.other_topics, one.used) == (
        7,
        11,
        {"no time": 2},
        {"Other": 2},
        3,
    )


def test_the_count_of_other_topics_is_bounded():
    tally = Tally()
    for i in range(1000):
        tally.other(str(i), 1)
    assert (len(tally.other_topics), tally.other_topics.total()) == (101, 1000)


# --- columns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
def test_a_missing_column_names_the_file_the_columns_and_the_remedy(put, reads, name):
    row = {"tiem": "2007-09-13", "source": "s", "value": 1}
    content = {
        "a.csv": "tiem,source,value\n2007-09-13,s,1\n",
        "a.jsonl": json.dumps(row) + "\n",
        "a.parquet": pa.Table.from_pylist([row]),
    }[name]
    with pytest.raises(UsageError) as caught:
        reads(put(name, content))
    output = str(caught.value)
    assert name in output
    assert "column 'time' is missing" in output
    assert "tiem, source, value" in output
    assert "Did you mean 'tiem'? Say which column it is, for example --map time=tiem" in output


def test_a_missing_attribute_names_its_topic(put, reads):
    with pytest.raises(UsageError, match="'value' that topic 'Temperature' declares"):
        reads(put("a.csv", "time,source,val\n2007-09-13,s,1\n"))


def test_a_mapped_column_must_exist(put, reads):
    with pytest.raises(UsageError, match=r"column 'ts' \(mapped from 'time'\) is missing"):
        reads(put("a.csv", HEADER + GOOD), rename={"time": "ts"})
    with pytest.raises(UsageError, match="column 'where'"):
        reads(put("a.csv", HEADER + GOOD), rename={"place": "where"})


def test_another_separator_is_recognised(put, reads):
    with pytest.raises(UsageError, match="separated by ';'"):
        reads(put("a.csv", "time;source;value\n2007-09-13;s;1\n"))


def test_a_column_that_occurs_twice_is_ambiguous(put, reads):
    with pytest.raises(UsageError, match="'value' occurs twice"):
        reads(put("a.csv", "time,source,value,value\n2007-09-13,s,1,2\n"))


def test_options_are_checked(temperature):
    with pytest.raises(UsageError, match="Did you mean 'time'"):
        Reading((temperature,), {"tine": "ts"})
    with pytest.raises(UsageError, match="Did you mean 'Temperature'"):
        Reading((temperature,), topic="Temprature")
    for text in ("time", "time=", "=ts", "time=a,time=b"):
        with pytest.raises(UsageError, match="--map"):
            parse_rename(text)


def test_a_parquet_column_of_a_wrong_type_is_an_error(put, reads, mixed):
    good = {
        "time": pa.array([0], pa.timestamp("us")),
        "source": ["s"],
        "f": [1.0],
        "i": [1],
        "t": ["t"],
        "b": [True],
    }
    for name, column, output in (
        ("f", pa.array([[1.0]]), r"'f' is of type list<.*declared as float \(topic 'Mixed'\)"),
        ("i", pa.array([True]), "'i' is of type bool, but 'i' is declared as int"),
        ("f", pa.array(["warm"]), "f: not a float"),
        ("t", pa.array([{"a": 1}]), "'t' is of type struct"),
        ("time", pa.array([[0]]), "'time' is of type list"),
        ("source", pa.array([None], pa.string()), "no source"),
    ):
        with pytest.raises(InputError, match=output):
            reads(put("a.parquet", {**good, name: column}), topics=(mixed,))


@pytest.mark.parametrize(
    ("value", "unit"),
    [(1189690500, "s"), (1189690500000, "ms"), (1189690500000000, "us"), (1189690500 * 10**9, "ns")],
)
def test_numeric_times_need_a_unit(put, reads, value, unit):
    csv = put("a.csv", HEADER + f"{value},s,1\n" * 20)
    jsonl = put("a.jsonl", f'{{"time": {value}, "source": "s", "value": 1}}\n')
    parquet = put("a.parquet", {"time": [value], "source": ["s"], "value": [1]})
    for path in (csv, jsonl, parquet):
        with pytest.raises((InputError, UsageError), match=f"--time-unit.*probably {unit}"):
            reads(path)
        assert {e.time for e in reads(path, time_unit=unit).events} == {1189690500000000}


def test_times_in_another_format_are_an_error_at_once(put, reads):
    path = put("a.csv", HEADER + "13.9.2007 13:35,s,1\n" * 20)
    with pytest.raises(
        InputError, match=r"unreadable time.*\n.*begins with '13.9.2007 13:35'.*--time-format"
    ):
        reads(path)
    assert len(reads(path, time_format="%d.%m.%Y %H:%M").events) == 20


# --- files -----------------------------------------------------------------------------------------


def parquet_bytes(tmp_path, put):
    rows = {"time": pa.array(range(1000), pa.timestamp("us")), "source": ["s"] * 1000, "value": [1.0] * 1000}
    with open(put("whole.parquet", rows), "rb") as file:
        return file.read()


def test_files_whose_content_does_not_match_their_suffix_are_an_error(put, reads, tmp_path):
    parquet = parquet_bytes(tmp_path, put)
    csv = (HEADER + GOOD * 50).encode()
    cases = [
        ("a.csv", parquet, "is a Parquet file, not text.*rename"),
        ("a.jsonl", parquet, "is a Parquet file, not text.*rename"),
        ("a.parquet", csv, r"is not a Parquet file.*\.csv"),
        ("b.parquet", b"", "is empty .*not a Parquet file"),
        ("c.parquet", parquet[: len(parquet) // 2], "footer cannot be read"),
        ("d.parquet", bytes(range(256)) * 20, "is not a Parquet file"),
        ("b.csv", gzip.compress(csv, mtime=0), "is compressed with gzip.*rename it to end in .gz"),
        ("c.csv", bytes(range(256)) * 20, "holds binary data"),
        ("d.csv", csv.decode().encode("utf-16"), "is UTF-16 text"),
        ("b.jsonl", b"[\n{}\n]", "is one JSON array.*jq"),
        ("c.jsonl", csv, "none of its first lines is a JSON object"),
        ("e.csv", HEADER.encode() + GOOD.encode() + b"2007-09-13,\xf8,1\n", "e.csv, row 2: is not UTF-8"),
        ("d.jsonl", b'{"time": "2007-09-13", "source": "\xf8", "value": 1}\n', "line 1: is not UTF-8"),
        ("f.csv", HEADER + '2007-09-13,"s,1\n' + GOOD, "quoted field is not closed"),
        ("g.csv", HEADER + '2007-09-13,"s,1\n' + GOOD * 200_000, "probably a quoted field is not closed"),
        ("h.csv", ",,\n", "names no columns"),
    ]  # fmt: skip
    for name, content, output in cases:
        path = put(name, content)
        with pytest.raises(InputError, match=output) as caught:
            reads(path)
        assert path in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__cause__ is None


def test_torn_and_damaged_gzip_files_are_an_error(put, reads, tmp_path):
    text = HEADER + "".join(f"2007-09-13T13:35:00Z,s{os.urandom(4).hex()},{i}\n" for i in range(30_000))
    whole = gzip.compress(text.encode())
    lines = "".join(f'{{"time": "2007-09-13", "source": "{os.urandom(4).hex()}"}}\n' for _ in range(30_000))
    json_whole = gzip.compress(lines.encode())
    for name, raw, output in (
        ("torn.csv.gz", whole[: len(whole) // 2], "torn or damaged after"),
        ("tail.csv.gz", whole[:-4], "torn or damaged after"),
        ("flip.csv.gz", whole[:-8] + b"\0\0\0\0" + whole[-4:], "torn or damaged after"),
        ("torn.jsonl.gz", json_whole[: len(json_whole) // 2], "torn or damaged after"),
        ("text.csv.gz", text.encode(), "not compressed with gzip, as its name says"),
    ):
        path = tmp_path / name
        path.write_bytes(raw)
        with pytest.raises(InputError, match=output):
            reads(str(path))


def test_a_damaged_row_group_is_an_error(put, reads, tmp_path):
    raw = bytearray(parquet_bytes(tmp_path, put))
    raw[4:60] = b"\xff" * 56
    with pytest.raises(InputError, match="row group 0 cannot be read"):
        reads(put("a.parquet", bytes(raw)))


def test_parquet_text_that_is_not_utf8_is_an_error(put, reads, sighting):
    words = pa.array([b"\xff\xfe"], pa.binary())
    bad = pa.Array.from_buffers(pa.string(), 1, words.buffers())
    times = pa.array([0], pa.timestamp("us"))
    for columns in ({"source": bad, "name": ["x"]}, {"source": ["s"], "name": bad}):
        path = put("a.parquet", {"time": times, "room": ["r"], **columns})
        with pytest.raises(InputError, match="not UTF-8"):
            reads(path, topics=(sighting,))


def test_reading_a_damaged_file_does_not_wait_for_streams_held_by_the_error():
    """A reader waits at its end until the file is released; the frames of an error would hold it for good."""

    def reading(held):
        raise EOFError

    class Held:
        pass

    one = Held()
    free = sys.getrefcount(one)
    with pytest.raises(EOFError) as error:
        reading(one)
    assert sys.getrefcount(one) > free
    _forget(error.value)
    assert sys.getrefcount(one) == free
