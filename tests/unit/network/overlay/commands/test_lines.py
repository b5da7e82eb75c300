"""Lines in and out: events as people send them, filters as they write them, what they are shown."""

from __future__ import annotations

import json

import pytest

from holdfast.definition.parse import parse
from holdfast.errors import DefinitionError, InputError
from holdfast.model.event import Event, Notification
from holdfast.model.instant import instant
from holdfast.network.overlay.commands.content_filter import content_filter
from holdfast.network.overlay.commands.lines import LineReader
from holdfast.network.overlay.commands.subscribe import delivery_line
from holdfast.network.protocols.cbps.client import (
    AddressedPayload,
    ConditionChange,
    ConditionUnknown,
    ReceivedNotification,
)
from holdfast.network.protocols.cbps.content import Constraint, satisfies
from holdfast.network.protocols.cbps.message import BundleKey

NOW = instant("2026-01-01T00:00:00Z")


def topics_of(text="topic T (value float, count int, name text, open bool)"):
    return {topic.name: topic for topic in parse(text).check().topics}


def test_a_line_becomes_an_event_of_its_topic():
    event_fields = {"topic": "T", "source": "s", "time": "2007-09-13T13:35:00Z", "value": 3, "name": "x"}
    line = json.dumps({**event_fields, "x": 1, "y": 2.5})
    assert LineReader(topics_of()).event(line, NOW) == Event(
        "T",
        instant("2007-09-13T13:35:00Z"),
        "s",
        {"value": 3.0, "count": None, "name": "x", "open": None},
        0,
        (1.0, 2.5),
    )


def test_missing_fields_of_a_line_come_from_options_and_clock():
    lines = LineReader(topics_of(), source="here")
    first, second = (lines.event('{"value": 1.5}', NOW) for _ in range(2))
    assert (first.topic, first.source, first.time, first.sequence) == ("T", "here", NOW, 0)
    assert second.sequence == 1
    assert lines.event('{"sequence": 10}', NOW).sequence == 10
    assert lines.event("{}", NOW).sequence == 11


def test_without_declarations_a_topic_is_inferred_from_its_first_event():
    lines = LineReader(source="s")
    lines.event('{"topic": "Room", "temp": 20, "open": true, "name": "a"}', NOW)
    assert [(a.name, a.kind) for a in lines.topics["Room"].attributes] == [
        ("temp", "float"),
        ("open", "bool"),
        ("name", "text"),
    ]
    with pytest.raises(InputError, match="temp 'hot' is not a number"):
        lines.event('{"topic": "Room", "temp": "hot"}', NOW)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "not a JSON object"),
        ("[1]", "not a JSON object"),
        ('{"value": 1', "not a JSON object"),
        ("[" * 100_000, "not a JSON object"),
        ('{"topic": "U"}', r"topic 'U' is not declared. Declared: T\."),
        ('{"source": ""}', "no source"),
        ('{"source": 7}', "no source"),
        ('{"vlaue": 1}', r"has no attribute 'vlaue'. Did you mean 'value'\?"),
        ('{"value": true}', "value True is not a number"),
        (f'{{"value": {"9" * 400}}}', "has 400 digits; a number has 308 at most"),
        (f'{{"value": 1, "x": -{"9" * 400}}}', "x -9999999999999999999… has 401 digits"),
        ('{"count": 1.5}', "count 1.5 is not a whole number"),
        ('{"count": 9223372036854775808}', "is not a whole number of 64 bits"),
        ('{"name": 5}', "name 5 is not text"),
        ('{"time": 5}', "not text in ISO 8601"),
        ('{"time": "noon"}', "not ISO 8601"),
        ('{"sequence": "a"}', "sequence 'a' is not a whole number"),
        ('{"y": 1}', "x before y"),
        ('{"place": 1}', "place 1 is not text"),
    ],
)
def test_an_invalid_line_raises_a_precise_error(line, reason):
    with pytest.raises(InputError, match=reason):
        LineReader(topics_of(), source="s").event(line, NOW)


def test_a_filter_is_printed_in_the_language():
    wanted = content_filter('topic == "T" && 25 < value && value in [20, 30] && open == true && name != "x"')
    assert wanted.constraints == (
        Constraint("topic", "text", "=", "T"),
        Constraint("value", "double", ">", 25.0),
        Constraint("value", "double", ">=", 20.0),
        Constraint("value", "double", "<=", 30.0),
        Constraint("open", "bool", "=", True),
        Constraint("name", "text", "!=", "x"),
    )
    seen = {"topic": "T", "value": 26, "open": True, "name": "y"}
    assert satisfies(wanted, seen)
    assert not satisfies(wanted, {**seen, "value": 25})


@pytest.mark.parametrize("text", ["a > 1 || b > 2", "a + 1 > 2", "a > b", "!(a > 1)", "a", "a > 5 m"])
def test_a_filter_that_is_no_conjunction_of_comparisons_is_refused_at_its_place(text):
    with pytest.raises(DefinitionError, match=r"--where:1:\d+: a content filter is made of comparisons"):
        content_filter(text)


def test_notifications_are_printed_in_the_format_of_every_runtime():
    event = Event("T", NOW, "s", {"value": 26.0}, 3)
    note = Notification("Warm", event, "ingress", "s", None)
    assert json.loads(delivery_line(ConditionChange("w", note), NOW)) == note.to_json()


def test_a_match_is_shown_as_an_atomic_notification():
    content = {"topic": "T", "time": NOW, "source": "s", "sequence": 3, "place": "hall", "value": 26.0}
    output = json.loads(delivery_line(ReceivedNotification("where", BundleKey("p", 9), content), NOW))
    assert (output["status"], output["location"], output["attributes"]) == ("atomic", "hall", {"value": 26.0})
    assert output["id"] == Notification("where", Event("T", NOW, "s", {}, 3), "atomic", None, None).id


def test_foreign_notifications_are_printed_as_far_as_possible():
    output = json.loads(
        delivery_line(ReceivedNotification("where", BundleKey("xml-1", 9), {"speed": 62, "x": 1.0}), NOW)
    )
    assert (output["topic"], output["source"], output["time"]) == ("", "xml-1", "2026-01-01T00:00:00.000000Z")
    assert (output["location"], output["attributes"]) == ([1.0], {"speed": 62})


def test_an_unknown_condition_is_printed_as_unknown():
    line = delivery_line(ConditionUnknown("w", "Warm", "s1", NOW, "a connection on the way is lost"), NOW + 5)
    output = json.loads(line)
    assert (output["subscription"], output["scope"], output["status"]) == ("Warm", "s1", "unknown")
    assert (output["since"], output["time"]) == ("2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000005Z")
    assert output["why"] == "a connection on the way is lost"
    assert delivery_line(AddressedPayload(BundleKey("p", 1), ("x",)), NOW) is None
