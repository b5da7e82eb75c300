from __future__ import annotations

import csv
import json
import math
import os
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.errors import UsageError
from holdfast.files.write import event_line, open_writer
from holdfast.model.event import Event, Notification
from holdfast.model.instant import SECOND, parse_instant
from holdfast.model.topic import Attribute, Topic

T0 = parse_instant("2007-09-13T13:35:00Z")
TOPICS = (
    Topic("Temperature", (Attribute("value", "float"), Attribute("status", "text"))),
    Topic("Sighting", (Attribute("name", "text"), Attribute("value", "int"), Attribute("seen", "bool"))),
)


def note(how, at, *, scope="r1", since=None, by="Warm", source="s1", **attributes):
    event = Event("Temperature", T0 + at * SECOND, source, attributes or {"value": 25.4}, at)
    return Notification(by, event, how, scope, None if since is None else T0 + since * SECOND)


def write_notes(tmp_path, notes, format="jsonl", form="events", topics=TOPICS):
    path = tmp_path / f"out.{format}"
    with open_writer(str(path), format, form, topics) as writer:
        for each in notes:
            writer.write([each])
    assert os.listdir(tmp_path) == [path.name]
    return path


VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
TEXTS = st.text(st.characters(codec="utf-8"))


@given(
    TEXTS, TEXTS, st.none() | TEXTS, st.none() | TEXTS,
    st.none() | st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=3),
    st.dictionaries(TEXTS, VALUES),
)  # fmt: skip
def test_an_output_line_is_the_json_of_the_notification(
    subscription, source, scope, place, point, attributes
):
    location = None if point is None else tuple(point)
    event = Event("Temperature", T0, source, attributes, 3, location, place)
    notification = Notification(subscription, event, "egress", scope, T0 - 1)
    assert event_line(notification) == json.dumps(notification.to_json(), ensure_ascii=False) + "\n"


def test_a_line_looks_as_documented(tmp_path):
    path = write_notes(tmp_path, [note("ingress", 0, scope="room-12", source="s4", value=25.4)])
    line = path.read_text()
    assert line.startswith('{"id": "')
    assert line.endswith(
        '"subscription": "Warm", "scope": "room-12", "status": "ingress", '
        '"time": "2007-09-13T13:35:00.000000Z", "since": null, "topic": "Temperature", "source": "s4", '
        '"location": null, "attributes": {"value": 25.4}}\n'
    )


def test_nan_is_null_and_infinity_is_text():
    found = json.loads(event_line(note("atomic", 0, a=math.nan, b=math.inf, c=-math.inf)))
    assert found["attributes"] == {"a": None, "b": "inf", "c": "-inf"}


def test_csv_has_a_column_for_each_attribute(tmp_path):
    notes = [
        note("ingress", 0, value=25.5, status="ok"),
        note("egress", 1, since=0, scope=None, value=math.nan, by='a "b", c'),
    ]
    with open(write_notes(tmp_path, notes, "csv"), newline="") as file:
        first, second = csv.DictReader(file)
    assert list(first) == [
        "id", "subscription", "scope", "status", "time", "since", "topic", "source", "location",
        "value", "attributes.status", "name", "seen",
    ]  # fmt: skip
    assert (first["value"], first["attributes.status"], first["since"]) == ("25.5", "ok", "")
    assert (second["value"], second["scope"], second["since"]) == ("", "", "2007-09-13T13:35:00.000000Z")
    assert second["subscription"] == 'a "b", c'


def test_parquet_has_proper_types(tmp_path):
    event = Event("Sighting", T0, "c", {"name": "J", "value": 3, "seen": True}, 0, (1.0, 2.5))
    notes = [note("ingress", 0), Notification("P", event, "egress", None, T0 - SECOND)]
    table = pq.read_table(write_notes(tmp_path, notes, "parquet"))
    assert table.schema.field("time").type == pa.timestamp("us", "UTC")
    assert table.schema.field("seen").type == pa.bool_()
    first, second = table.to_pylist()
    assert (first["value"], second["value"]) == ("25.4", "3")  # declared with two kinds
    assert first["time"] == datetime(2007, 9, 13, 13, 35, tzinfo=UTC)
    assert (second["location"], second["seen"], second["scope"]) == ("[1.0, 2.5]", True, None)


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("form", ["events", "intervals"])
def test_an_output_without_notifications_is_a_valid_file(tmp_path, format, form):
    path = write_notes(tmp_path, [], format, form)
    if format == "parquet":
        assert pq.read_table(path).num_rows == 0
    else:
        assert len(path.read_text().splitlines()) == (1 if format == "csv" else 0)


def test_intervals_pair_starts_with_ends(tmp_path):
    notes = [
        note("egress", 1, since=-10, scope="early"),
        note("ingress", 2, scope="b"),
        note("ingress", 2, scope="a", value=1.0),
        note("atomic", 3, scope=None, by="Hot"),
        note("late", 3, scope="a"),
        note("ingress", 3, scope=None),
        note("egress", 5, scope="a", since=2, value=9.0),
    ]
    lines = [
        json.loads(line) for line in write_notes(tmp_path, notes, form="intervals").read_text().splitlines()
    ]
    second = lambda at: f"2007-09-13T13:35:0{at}.000000Z"  # noqa: E731
    assert [(i["subscription"], i["scope"], i["end"], i["duration"], i["open"]) for i in lines] == [
        ("Warm", "early", second(1), 11.0, False),
        ("Hot", None, second(3), 0.0, False),
        ("Warm", "a", second(5), 3.0, False),
        ("Warm", "b", None, None, True),
        ("Warm", None, None, None, True),
    ]
    assert lines[2] == {
        "subscription": "Warm", "scope": "a", "start": second(2), "end": second(5), "duration": 3.0,
        "open": False, "topic": "Temperature", "source": "s1", "attributes": {"value": 1.0},
    }  # fmt: skip
    assert (lines[0]["source"], lines[0]["attributes"], lines[0]["start"]) == (
        None, None, "2007-09-13T13:34:50.000000Z",
    )  # fmt: skip


def test_intervals_can_be_written_as_tables(tmp_path):
    notes = [note("ingress", 0), note("egress", 2, since=0), note("ingress", 3)]
    done, still = pq.read_table(write_notes(tmp_path, notes, "parquet", "intervals")).to_pylist()
    assert (done["duration"], done["open"], still["end"], still["open"]) == (2.0, False, None, True)
    other = tmp_path / "other"
    other.mkdir()
    with open(write_notes(other, notes, "csv", "intervals")) as f:
        rows = list(csv.DictReader(f))
    assert [(row["duration"], row["open"]) for row in rows] == [("2.0", "false"), ("", "true")]


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, format):
    path = tmp_path / "out"
    path.write_text("before")
    writer = open_writer(str(path), format, "events", TOPICS)
    writer.write([note("ingress", 0)] * 70_000)
    with pytest.raises(RuntimeError), writer:
        raise RuntimeError
    assert (os.listdir(tmp_path), path.read_text()) == (["out"], "before")


def test_a_failure_while_closing_leaves_no_partial_file(tmp_path):
    bad = note("ingress", 0, value="not a number")
    topics = (Topic("Temperature", (Attribute("value", "float"),)),)
    with (
        pytest.raises(pa.ArrowInvalid),
        open_writer(str(tmp_path / "out"), "parquet", "events", topics) as writer,
    ):
        writer.write([bad])
    assert os.listdir(tmp_path) == []


def test_wrong_outputs_are_refused(tmp_path):
    for path, format, form, output in (
        (str(tmp_path / "no" / "out"), "jsonl", "events", "there is no folder"),
        (str(tmp_path), "jsonl", "events", "is a folder"),
        ("-", "parquet", "events", "standard output"),
        (str(tmp_path / "out"), "jsnl", "events", "Did you mean 'jsonl'"),
        (str(tmp_path / "out"), "jsonl", "interval", "Did you mean 'intervals'"),
    ):
        with pytest.raises(UsageError, match=output):
            open_writer(path, format, form, TOPICS)
    assert os.listdir(tmp_path) == []


def test_standard_output_receives_lines(capfdbinary):
    with open_writer("-") as writer:
        writer.write([note("ingress", 0)])
    assert json.loads(capfdbinary.readouterr().out)["subscription"] == "Warm"


def test_a_device_is_written_directly():
    with open_writer("/dev/null") as writer:
        writer.write([note("ingress", 0)])
    assert not os.path.exists("/dev/null.part")
