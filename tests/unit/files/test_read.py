"""The same table gives the same events in every format."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from holdfast.errors import UsageError
from holdfast.model.batch import TIME, schema
from holdfast.model.event import Event
from holdfast.model.instant import parse_instant

T0 = parse_instant("2007-09-13T13:35:00Z")
ROWS = [
    {"time": "2007-09-13T13:35:00Z", "source": "s1", "value": 25.5},
    {"time": "2007-09-13T13:35:01Z", "source": "s2", "value": None},
    {"time": "2007-09-13T13:35:02Z", "source": "s1", "value": 7},
]
EVENTS = [
    Event("Temperature", T0 + i * 1_000_000, row["source"], {"value": row["value"]}, i)
    for i, row in enumerate(ROWS)
]


def as_csv(rows):
    header = list(rows[0])
    lines = [",".join(header)]
    return (
        "\n".join([*lines, *(",".join("" if r[k] is None else str(r[k]) for k in header) for r in rows)])
        + "\n"
    )


def as_jsonl(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    "name", ["a.csv", "a.csv.gz", "a.jsonl", "a.ndjson.gz", "a.json", "a.parquet", "a.pq"]
)
def test_every_format_gives_the_same_events(put, reads, name):
    if "csv" in name:
        path = put(name, as_csv(ROWS))
    elif "json" in name:
        path = put(name, as_jsonl(ROWS))
    else:
        path = put(name, pa.Table.from_pylist(ROWS))
    result = reads(path)
    assert result.events == EVENTS
    assert (result.tally.rows, result.tally.used, result.rejected) == (3, 3, [])
    assert result.tally.bytes > 0


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.parquet"])
@pytest.mark.parametrize("chunk_rows", [1, 2, 3, 1000])
def test_results_are_independent_of_where_a_file_is_cut(put, reads, name, chunk_rows):
    content = {"a.csv": as_csv(ROWS), "a.jsonl": as_jsonl(ROWS), "a.parquet": pa.Table.from_pylist(ROWS)}[
        name
    ]
    assert reads(put(name, content), chunk_rows=chunk_rows).events == EVENTS


def test_columns_read_from_files_are_those_of_the_model(put, reads, temperature):
    rows = [{**row, "x": 1, "y": 2.5, "place": "FE05", "extra": [1]} for row in ROWS]
    ((_, batch),) = reads(put("a.parquet", pa.Table.from_pylist(rows))).batches
    expected = schema(temperature, axes=2, place=True)
    decoded = [
        f if f.name != "source" else pa.field("source", batch.schema.field("source").type) for f in expected
    ]
    assert list(batch.schema) == decoded
    assert batch.schema.field("time").type == TIME
    assert batch.schema.field("source").type.value_type == pa.string()


def test_location_and_place_are_read(put, reads):
    csv = "time,source,value,x,y,place\n2007-09-13,s,1,2,3.5,hall\n2007-09-13,s,1,,,\n"
    first, second = reads(put("a.csv", csv)).events
    assert (first.location, first.place) == ((2.0, 3.5), "hall")
    assert (second.location, second.place) == (None, None)


def test_a_coordinate_without_the_previous_ones_is_ignored(put, reads):
    (event,) = reads(put("a.csv", "time,source,value,z\n2007-09-13,s,1,9\n")).events
    assert event.location is None


def test_the_default_sequence_is_file_rank_and_row_number(put, reads):
    a = put("a.csv", "time,source,value\n2007-09-13,s,1\nnever,s,2\n2007-09-13,s,3\n")
    b = put("b.csv", "time,source,value,sequence\n2007-09-13,s,1,7\n2007-09-13,s,1,\n")
    assert [e.sequence for e in reads(a, b).events] == [0, 2, 7, (1 << 32) + 1]


def test_row_groups_keep_the_row_numbers_of_the_file(put, reads):
    path = put("a.parquet", pa.Table.from_pylist(ROWS), row_group_size=1)
    assert reads(path, row_groups=[2, 1]).events == [EVENTS[2], EVENTS[1]]


def test_columns_are_renamed(put, reads):
    path = put("a.csv", "ts,room,v,source\n2007-09-13T13:35:00Z,s1,25.5,other\n")
    assert reads(path, rename={"time": "ts", "source": "room", "value": "v"}).events == EVENTS[:1]


def test_a_time_may_be_two_columns(put, reads):
    path = put("a.csv", "Date,Time AM/PM,source,value\n9/13/2007,1:35:0 PM,s1,25.5\n")
    options = {"rename": {"time": "Date+Time AM/PM"}, "time_format": "%m/%d/%Y %I:%M:%S %p"}
    assert reads(path, **options).events == EVENTS[:1]


def test_a_column_selects_the_topic_and_other_topics_are_counted(put, reads, temperature, sighting):
    lines = [
        {"topic": "Temperature", "time": "2007-09-13T13:35:00Z", "source": "s1", "value": 25.5},
        {"topic": "Humidity", "time": "broken", "value": "x"},
        {"topic": "Sighting", "time": "2007-09-13T13:35:01Z", "source": "c", "name": "John"},
        {"time": "2007-09-13T13:35:01Z", "source": "c"},
    ]
    result = reads(put("a.jsonl", as_jsonl(lines)), topics=(temperature, sighting))
    assert [(e.topic, dict(e.attributes)) for e in result.events] == [
        ("Temperature", {"value": 25.5}),
        ("Sighting", {"name": "John", "room": None}),
    ]
    assert result.tally.other_topics == {"Humidity": 1}
    assert result.reasons == [(4, "no topic")]
    assert (result.tally.rows, result.tally.used) == (4, 2)


def test_a_row_without_a_topic_has_the_topic_of_its_file(put, reads, temperature, sighting):
    path = put("a.csv", "topic,time,source,value,name,room\n,2007-09-13,s,1,,\nSighting,2007-09-13,s,,J,r\n")
    result = reads(f"Temperature={path}", topics=(temperature, sighting))
    assert [e.topic for e in result.events] == ["Temperature", "Sighting"]
    result = reads(path, topics=(temperature, sighting), topic="Temperature")
    assert [e.topic for e in result.events] == ["Temperature", "Sighting"]


def test_files_may_have_different_topics(put, reads, temperature, sighting):
    a = put("a.csv", "time,source,value\n2007-09-13,s,1\n")
    b = put("b.csv", "time,source,name,room\n2007-09-13,s,J,r\n")
    result = reads(f"Temperature={a}", f"Sighting={b}", topics=(temperature, sighting))
    assert [e.topic for e in result.events] == ["Temperature", "Sighting"]


def test_an_input_without_any_hint_of_its_topic_is_refused(put, reads, temperature, sighting):
    path = put("a.csv", "time,source,value\n2007-09-13,s,1\n")
    with pytest.raises(UsageError, match=r"which topic.*Temperature, Sighting.*column 'topic'.*--topic"):
        reads(path, topics=(temperature, sighting))


def test_a_topic_with_a_missing_column_fails_at_its_first_row(put, reads, temperature, sighting):
    good = put("a.csv", "topic,time,source,value\nTemperature,2007-09-13,s,1\n")
    assert len(reads(good, topics=(temperature, sighting)).events) == 1
    bad = put("b.csv", "topic,time,source,value\nSighting,2007-09-13,s,1\n")
    with pytest.raises(UsageError, match="column 'name' that topic 'Sighting' declares is missing"):
        reads(bad, topics=(temperature, sighting))


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.jsonl"])
def test_an_empty_text_file_has_no_rows(put, reads, tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    assert reads(str(tmp_path / name)).events == []


@pytest.mark.parametrize(
    "text", ["time,source,value\n", "time,source,value", "\n\n", "\ufefftime,source,value\r\n"]
)
def test_a_csv_file_with_at_most_a_header_has_no_rows(put, reads, text):
    assert reads(put("a.csv", text)).tally.rows == 0


def test_an_empty_parquet_table_has_no_rows(put, reads):
    path = put(
        "a.parquet",
        pa.Table.from_pylist([], schema=pa.schema([("time", TIME), ("source", "string"), ("value", "int8")])),
    )
    assert reads(path).events == []


def test_csv_quotes_line_ends_blank_lines_and_marks_are_understood(put, reads, sighting):
    text = '\ufeff"time", source ,name,room\r\n2007-09-13,s,"a, ""b""\nc",\r\n\r\n2007-09-14,ø,J,\x20r\r\n'
    first, second = reads(put("a.csv", text), topics=(sighting,)).events
    assert first.attributes == {"name": 'a, "b"\nc', "room": None}
    assert (second.source, second.attributes["room"], second.sequence) == ("ø", " r", 1)


def test_an_empty_csv_field_is_missing_and_quotes_make_an_empty_text(put, reads, sighting):
    text = 'time,source,name,room\n2007-09-13,s,,""\n2007-09-14,s," ",\n'
    first, second = reads(put("a.csv", text), topics=(sighting,)).events
    assert first.attributes == {"name": None, "room": ""}
    assert second.attributes == {"name": " ", "room": None}
    lines = '{"time": "2007-09-13", "source": "s", "name": "", "room": null}\n'
    (event,) = reads(put("a.jsonl", lines), topics=(sighting,)).events
    assert event.attributes == {"name": "", "room": None}


def test_a_blank_source_is_missing(put, reads):
    result = reads(put("a.csv", 'time,source,value\n2007-09-13,"",1\n2007-09-13,  ,1\n2007-09-13,s,1\n'))
    assert [reason for _, reason in result.reasons] == ["no source", "no source"]


def test_a_csv_file_of_several_blocks_keeps_its_row_numbers(put, reads, monkeypatch):
    from holdfast.files import from_csv

    lines = [f"2007-09-13,s{i % 7},{i}" if i % 10 else f"2007-09-13,{i}" for i in range(1000)]
    path = put("a.csv.gz", "time,source,value\n" + "\n".join(lines) + "\n")
    monkeypatch.setattr(from_csv.chunks, "__kwdefaults__", {"block": 300})
    result = reads(path)
    assert [(e.sequence, e.attributes["value"]) for e in result.events] == [
        (i, i) for i in range(1000) if i % 10
    ]
    assert [row for row, _ in result.reasons] == [i + 1 for i in range(1000) if i % 10 == 0]


def test_naive_times_are_in_the_zone(put, reads):
    zone = ZoneInfo("Europe/Zurich")
    naive = datetime(2007, 9, 13, 15, 35)
    csv = put("a.csv", "time,source,value\n2007-09-13 15:35,s1,25.5\n")
    parquet = put("b.parquet", {"time": [naive], "source": ["s1"], "value": [25.5]})
    aware = put("c.parquet", {"time": [naive.replace(tzinfo=zone)], "source": ["s1"], "value": [25.5]})
    times = [e.time for e in reads(csv, parquet, aware, zone=zone).events]
    assert times == [T0, T0, T0]
    assert reads(parquet, zone=UTC).events[0].time == parse_instant("2007-09-13T15:35Z")


def test_parquet_types_are_converted_to_the_declared_ones(put, reads, mixed):
    table = pa.table(
        {
            "time": pa.array([1189690500_000_000_999] * 2, pa.timestamp("ns")),
            "source": pa.array([5, 6], pa.int16()),
            "f": pa.array([0.1, None], pa.float32()),
            "i": pa.array([1.0, float("nan")]),
            "t": pa.array([12, None], pa.int64()),
            "b": pa.array([1, 0], pa.int8()),
        }
    )
    first, second = reads(put("a.parquet", table), topics=(mixed,)).events
    assert (first.time, first.source, second.source) == (T0, "5", "6")
    assert first.attributes == {"f": 0.10000000149011612, "i": 1, "t": "12", "b": True}
    assert second.attributes == {"f": None, "i": None, "t": None, "b": False}


@pytest.mark.parametrize(
    "type", [pa.dictionary(pa.int8(), pa.string()), pa.large_string(), pa.string_view(), pa.binary()]
)
def test_every_parquet_text_type_is_read_as_text(put, reads, sighting, type):
    names = pa.array(["J", None, "ø"]).cast(pa.string()).cast(type)
    sources = pa.array(["s", "s", "ß"]).cast(type)
    times = pa.array([0, 0, 0], pa.timestamp("ms", "Europe/Paris"))
    path = put("a.parquet", {"time": times, "source": sources, "name": names, "room": names})
    result = reads(path, topics=(sighting,))
    assert [(e.source, e.attributes["name"]) for e in result.events] == [("s", "J"), ("s", None), ("ß", "ø")]


def test_json_values_of_several_types_in_one_column(put, reads, mixed):
    rows = [
        {"f": 1, "i": "7", "t": "a", "b": True},
        {"f": "2.5", "i": 2.0, "t": 3, "b": 0},
        {"f": "-inf", "i": 9223372036854775807, "t": True, "b": "off"},
        {"f": float("nan"), "i": None, "t": 2.5, "b": None},
        {"f": float("inf")},
    ]
    lines = as_jsonl([{"time": "2007-09-13", "source": i, **row} for i, row in enumerate(rows)])
    result = reads(put("a.jsonl", lines), topics=(mixed,))
    assert result.rejected == []
    assert result.column("f") == [1.0, 2.5, float("-inf"), None, float("inf")]
    assert result.column("i") == [7, 2, 9223372036854775807, None, None]
    assert result.column("t") == ["a", "3", "true", "2.5", None]
    assert result.column("b") == [True, False, False, None, None]
    assert [e.source for e in result.events] == ["0", "1", "2", "3", "4"]
