"""Losses without a message in earlier versions: second mappings, keys with dots, readings without a key,
acknowledgements of unknown names."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from zoneinfo import ZoneInfo

import httpx
import pyarrow as pa
import pytest

from holdfast.errors import DefinitionError, InputError, UsageError
from holdfast.files.interval import Interval
from holdfast.model.instant import instant
from holdfast.model.topic import Attribute, Topic
from holdfast.service.config import parse
from holdfast.service.feeds.arrow import read_stream
from holdfast.service.feeds.mapping import Pattern, Route, finder, read
from holdfast.service.feeds.quick import QuickReader
from holdfast.service.serve import Address, ServicePlan, serving
from holdfast.service.trial import differences
from support.patience import PATIENCE

METER = Topic("Meter", (Attribute("energy", "float"),))
POWER = Topic("Power", (Attribute("watts", "float"),))
TOPICS = {topic.name: topic for topic in (METER, POWER)}
NOW = instant("2026-06-21T12:00Z")


def read_events(route, payload):
    (found,) = finder([route])("m/s1")
    return [event for event, _ in read(found, TOPICS, payload, NOW)]


# --- times without a zone ---


def test_a_time_without_a_zone_is_refused_with_a_hint():
    route, payload = Route(Pattern("m/{source}"), "Meter"), b'{"Time": "2026-01-01T12:00:00", "energy": 1}'
    route = replace(route, fields={"time": "Time"})
    with pytest.raises(InputError, match=r"has no zone: set time_zone in the mapping of .m/\{source\}."):
        read_events(route, payload)
    with pytest.raises(InputError, match="has no zone"):
        QuickReader(finder([route])).read("m/s1", TOPICS, payload, NOW)
    (event,) = read_events(replace(route, time_zone=ZoneInfo("Europe/Berlin")), payload)
    assert event.time == instant("2026-01-01T11:00:00Z")
    (event,) = read_events(
        replace(route, time_zone=ZoneInfo("Europe/Berlin")), payload.replace(b':00"', b':00Z"')
    )
    assert event.time == instant("2026-01-01T12:00:00Z"), "it says its zone"


def test_a_mapping_has_a_time_zone():
    text = '[[mqtt]]\nurl = "mqtt://broker"\n[[mqtt.map]]\nfrom = "m/{source}"\ntopic = "Meter"\n'
    (part,) = parse(text + 'time_zone = "Europe/Berlin"\n').mqtt[0].map
    assert part.route().time_zone == ZoneInfo("Europe/Berlin")
    with pytest.raises(DefinitionError, match="there is no time zone 'Berlin'"):
        parse(text + 'time_zone = "Berlin"\n')


def test_a_time_without_a_zone_is_refused_over_http(asked):
    async def story(client, _site):
        reading = {"topic": "Temperature", "source": "a", "time": "2026-06-21T12:00:00", "value": 1.0}
        answer = await client.post("/api/readings", content=json.dumps(reading))
        assert answer.status_code == 422
        assert "has no zone" in answer.json()["rejected"][0]["reason"]

    asked(story)


def test_an_arrow_column_of_times_without_a_zone_is_refused():
    batch = pa.RecordBatch.from_pydict(
        {"time": pa.array([0], pa.timestamp("ms")), "source": ["a"], "energy": [1.0]}
    )
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, batch.schema) as writer:
        writer.write_batch(batch)
    with pytest.raises(UsageError, match="the column 'time' has no zone"):
        read_stream(METER, stream.getvalue().to_pybytes(), NOW, 1 << 20)


# --- mappings ---


def test_both_mappings_of_one_pattern_receive_a_message():
    one, other = Route(Pattern("m/{source}"), "Meter"), Route(Pattern("m/{source}"), "Power")
    generic = Route(Pattern("m/#"), "Meter")
    find = finder([one, other, generic])
    events = [
        event for found in find("m/s1") for event, _ in read(found, TOPICS, b'{"energy": 1, "watts": 2}', NOW)
    ]
    assert [(event.topic, event.attributes) for event in events] == [
        ("Meter", {"energy": 1.0}),
        ("Power", {"watts": 2.0}),
    ]
    assert find("m/a/b") == ((generic, {}),)


@pytest.mark.parametrize(
    ("path", "payload"),
    [
        ("1.8.0", {"1.8.0": 5}),
        ("data.1-0:1.8.0", {"data": {"1-0:1.8.0": 5}}),
        ("a.b.c", {"a.b": {"c": 5}, "a": {"x": 1}}),
        ("values.1", {"values": [4, 5]}),
    ],
)
def test_a_json_key_may_have_dots(path, payload):
    route = Route(Pattern("m/{source}"), "Meter", fields={"energy": path})
    (event,) = read_events(route, json.dumps(payload).encode())
    assert event.attributes == {"energy": 5.0}
    quick = QuickReader(finder([route])).read("m/s1", TOPICS, json.dumps(payload).encode(), NOW)
    assert quick is None or quick[0] == event


def test_a_location_under_a_key_with_dots_is_not_lost():
    route = Route(Pattern("m/{source}"), "Meter", fields={"x": "pos.x", "y": "pos.y"})
    payload = b'{"energy": 1, "pos.x": 3, "pos.y": 4}'
    assert read_events(route, payload)[0].location == (3.0, 4.0)
    assert QuickReader(finder([route])).read("m/s1", TOPICS, payload, NOW) is None


# --- readings without a key ---


def test_readings_without_the_key_of_a_condition_are_counted(tmp_path):
    definition = tmp_path / "app.hf"
    definition.write_text(
        "topic Climate (temperature float)\n"
        "state Warm on Climate [temperature > 25; temperature < 22] per place\n"
        "state Hot on Climate [temperature > 25 for 1 min; temperature < 22] per place\n"
        "state Any on Climate [temperature > 25; temperature < 22] per source\n"
    )

    async def story():
        plan = ServicePlan(definition, tmp_path / "data", Address("127.0.0.1", 0))
        async with serving(plan) as (site, address), httpx.AsyncClient(
            base_url=f"http://{address}", timeout=PATIENCE, trust_env=False
        ) as client:  # fmt: skip
            rows = [
                {"source": "a", "temperature": 30.0},
                {"source": "a", "temperature": 30.0, "place": "lab"},
            ]
            await client.post("/api/readings", content="\n".join(map(json.dumps, rows)))
            await site.service.wait_until_evaluated()
            status = (await client.get("/api/status")).json()
            assert status["without_key"] == {"Warm: no place": 1, "Hot: no place": 1}
            text = (await client.get("/metrics")).text
            assert 'holdfast_without_key_total{reason="Warm: no place"} 1' in text

    asyncio.run(story())


# --- marks and differences ---


def test_an_acknowledgement_of_an_unknown_name_is_refused(asked):
    async def story(client, _site):
        for path in ("mute", "acknowledge"):
            answer = await client.post(f"/api/{path}", json={"subscription": "Worm", "scope": "s1"})
            assert answer.status_code == 422
            assert "there is no condition 'Worm'. Did you mean 'Warm'" in answer.json()["error"]
        answer = await client.post("/api/mute", json={"subscription": "Warm", "scope": "s1"})
        assert answer.json() == {"done": True}

    asked(story)


def test_a_mute_without_a_scope_mutes_all_scopes(asked):
    async def story(client, site):
        await client.post("/api/mute", json={"subscription": "Warm", "scope": None})
        reading = {"topic": "Temperature", "source": "s1", "value": 30.0}
        await client.post("/api/readings", content=json.dumps(reading))
        await site.service.wait_until_evaluated()
        rows = (await client.get("/api/conditions")).json()
        assert [row["muted"] is not None for row in rows if row["subscription"] == "Warm"] == [True]

    asked(story)


def test_a_backtest_counts_all_differences_and_shows_the_first():
    then = [Interval("Warm", "s", at, at + 1, "", None, None) for at in range(5)]
    found = differences(then, then[:1], most=2)
    assert (found["more"], found["fewer"], len(found["only_then"])) == ({"Warm": 4}, {}, 2)
