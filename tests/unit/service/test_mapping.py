from __future__ import annotations

import pytest

from holdfast.errors import InputError, UsageError
from holdfast.model.instant import MINUTE, SECOND, instant
from holdfast.model.topic import Attribute, Topic
from holdfast.service.feeds.mapping import Pattern, Route, finder, read, require_sense

CLIMATE = Topic("Climate", (Attribute("temperature", "float"), Attribute("co2", "int")))
DOOR = Topic("Door", (Attribute("open", "bool"),))
LEVEL = Topic("Level", (Attribute("value", "float"),))
TOPICS = {topic.name: topic for topic in (CLIMATE, DOOR, LEVEL)}
NOW = instant("2026-06-21T12:00Z")


def read_events(route, channel, payload, now=NOW):
    (found,) = finder([route])(channel)
    return [event for event, _ in read(found, TOPICS, payload, now)]


def test_a_channel_contains_place_and_source():
    route = Route(Pattern("building/{place}/{source}/climate"), "Climate")
    (event,) = read_events(route, "building/lab/s4/climate", b'{"temperature": 21, "co2": 480}')
    assert (event.topic, event.time, event.source, event.place) == ("Climate", NOW, "s4", "lab")
    assert event.attributes == {"temperature": 21.0, "co2": 480}
    assert finder([route])("building/lab/climate") == ()
    assert finder([route])("building/lab/s4/climate/x") == ()


@pytest.mark.parametrize(
    ("pattern", "filter", "fits", "does_not"),
    [
        ("a/{source}", "a/+", ["a/b", "a/"], ["a", "a/b/c", "b/x"]),
        ("a/+/{source}/#", "a/+/+/#", ["a/b/c/d", "a/b/c/d/e", "a/b/c"], ["a/b"]),
        ("a.c/{source}", "a.c/+", ["a.c/x"], ["abc/x"]),
        ("#", "#", ["a", "a/b"], []),
    ],
)
def test_patterns_match_as_in_mqtt_brokers(pattern, filter, fits, does_not):
    it = Pattern(pattern)
    assert it.filter == filter
    match = it.matcher()
    assert [channel for channel in fits if match(channel) is None] == []
    assert [channel for channel in does_not if match(channel) is not None] == []


@pytest.mark.parametrize("pattern", ["a/x{source}", "a/#/b", "a/b#", "{a}/{a}", "a/{}", "a/{so urce}"])
def test_invalid_patterns_are_refused(pattern):
    with pytest.raises(UsageError):
        Pattern(pattern)


def test_fields_are_found_by_paths():
    fields = {"temperature": "data.t.0", "time": "meta.ts", "source": "meta.id", "x": "at.x", "y": "at.y"}
    route = Route(Pattern("in/#"), "Climate", fields=fields, time_unit="ms")
    payload = (
        b'{"data": {"t": [21.5]}, "co2": 4, "meta": {"ts": 1781000000123, "id": 17}, "at": {"x": 1, "y": 2}}'
    )
    (event,) = read_events(route, "in/x", payload)
    assert (event.source, event.time, event.location) == ("17", 1781000000123000, (1.0, 2.0))
    assert event.attributes == {"temperature": 21.5, "co2": 4}


def test_a_list_is_several_readings():
    route = Route(Pattern("in/{source}"), "Climate", items="readings")
    payload = b'{"readings": [{"temperature": 1, "sequence": 5}, {"temperature": null}]}'
    first, second = read_events(route, "in/s", payload)
    assert (first.attributes["temperature"], first.sequence) == (1.0, 5)
    assert (second.attributes["temperature"], second.sequence) == (None, -1)


def test_a_payload_may_be_a_plain_number():
    route = Route(Pattern("{topic}/{source}"), payload="number")
    (event,) = read_events(route, "Level/tank", b" 3.25\n")
    assert (event.topic, event.attributes) == ("Level", {"value": 3.25})


def test_csv_lines_have_columns():
    route = Route(Pattern("in/{source}"), "Climate", "csv", columns=("time", "temperature", "", "co2"))
    first, second = read_events(route, "in/s", b"2026-06-21T11:00Z,20.5,x,400\n2026-06-21T11:01Z,,x,401\n")
    assert (first.time, first.attributes) == (
        instant("2026-06-21T11:00Z"),
        {"temperature": 20.5, "co2": 400},
    )
    assert second.attributes == {"temperature": None, "co2": 401}


@pytest.mark.parametrize(("text", "value"), [("true", True), ("0", False), ("True", True)])
def test_texts_of_truth_values_are_read(text, value):
    route = Route(Pattern("in/{source}/{open}"), "Door")
    (event,) = read_events(route, f"in/s/{text}", b"{}")
    assert event.attributes == {"open": value}


@pytest.mark.parametrize(
    ("route", "payload", "reason"),
    [
        (Route(Pattern("in/{source}"), "Climate"), b"{", "not JSON"),
        (Route(Pattern("in/{source}"), "Climate"), b"\xff\xfe", "not JSON"),
        (Route(Pattern("in/{source}"), "Climate"), b"7", "must be a JSON object"),
        (Route(Pattern("in/{source}"), "Climate"), b'{"temperature": {}}', "temperature"),
        (Route(Pattern("in/{source}"), "Climate"), b'{"co2": 1.5}', "must be int"),
        (Route(Pattern("in/{source}"), "Climate"), b'{"temperature": "warm"}', "'warm' is not float"),
        (Route(Pattern("in/{source}"), "Climate"), b'{"time": 12}', "give time_unit"),
        (Route(Pattern("in/{source}"), "Climate", time_unit="s"), b'{"time": "x"}', "not a number of s"),
        (Route(Pattern("in/{source}"), "Climate", time_unit="s"), b'{"time": -1e30}', "years 1 to 9999"),
        (Route(Pattern("in/{source}"), "Climate"), b'{"sequence": "x"}', "not a whole number"),
        (Route(Pattern("in/+"), "Climate"), b'{"temperature": 1}', "no source"),
        (Route(Pattern("in/{topic}")), b'{"source": "a"}', "topic 's' is not declared"),
        (Route(Pattern("in/{source}"), "Climate", "number"), b"1", "2 attributes"),
        (Route(Pattern("in/{source}"), "Level", "number"), b"much", "'much' is not float"),
        (Route(Pattern("in/{source}"), "Level", "number"), b"\xff", "not UTF-8"),
        (Route(Pattern("in/{source}"), "Level", "csv", columns=("value",)), b"1,2", "2 columns in place"),
        (Route(Pattern("in/{source}"), "Level", items="a"), b"{}", "'a' is no list"),
    ],
)  # fmt: skip
def test_an_invalid_reading_is_rejected_with_a_reason(route, payload, reason):
    with pytest.raises(InputError, match=reason):
        read_events(route, "in/s", payload)


def test_a_clock_in_the_future_is_bounded():
    route = Route(Pattern("in/{source}"), "Level")
    (found,) = finder([route])("in/s")
    near, far = (
        read(found, TOPICS, b'{"value": 1, "time": "%s"}' % text, NOW)[0]
        for text in (b"2026-06-21T12:00:50Z", b"2026-06-21T12:01:01Z")
    )
    assert (near[0].time, near[1]) == (NOW + 50 * SECOND, False)
    assert (far[0].time, far[1]) == (NOW, True)
    assert far[0].time < NOW + MINUTE


@pytest.mark.parametrize(
    ("route", "reason"),
    [
        (Route(Pattern("in/{source}"), "Climat"), "Did you mean 'Climate'"),
        (Route(Pattern("in/{source}")), "say of which topic"),
        (Route(Pattern("in/{sourc}"), "Level"), "has no 'sourc'. Did you mean 'source'"),
        (Route(Pattern("in/{source}"), "Level", fields={"valu": "a"}), "has no 'valu'"),
        (Route(Pattern("in/{source}"), "Climate", "number"), "needs one attribute"),
        (Route(Pattern("in/{source}"), "Climate", "csv"), "need their columns"),
    ],
)
def test_impossible_routes_are_refused(route, reason):
    with pytest.raises(UsageError, match=reason):
        require_sense(route, TOPICS)
