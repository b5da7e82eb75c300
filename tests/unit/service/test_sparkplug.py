"""Payloads by Eclipse Tahu's schema (in the wheel of pysparkplug 0.6.1) and the encoder of protobuf."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.definition.parse import parse
from holdfast.errors import InputError
from holdfast.model.instant import instant
from holdfast.service.config import MapPart
from holdfast.service.feeds.mapping import finder, read
from holdfast.service.feeds.sparkplug import Nodes, metrics

BIRTH = bytes.fromhex(
    "088094b5d0ee3312220a1353656e736f72732f54656d70657261747572651001200a690000000000803a40120e0a054c6576656c"
    "1002200150fd01120c0a044f70656e1003200b700112110a054c6162656c1004200c7a0453c3bc6412170a0653657269616c1005"
    "200858858080808080808080011801"
)
DATA = bytes.fromhex(
    "08e89bb5d0ee33120b10016900000000000035401205100250fc011212100118f497b5d0ee33690000000000003b401204100338"
    "011802"
)
FORMS = bytes.fromhex(
    "088094b5d0ee3312290a1353656e736f72732f54656d7065726174757265200942034201784a060a04756e6974650000c03f1212"
    "0a03466172200458f7ffffffffffffffff0112110a055461626c6520108a010508011201611800"
)
REBIRTH = bytes.fromhex("088094b5d0ee33121a0a144e6f646520436f6e74726f6c2f52656269727468200b7001")
AT = 1_782_043_200_000
TOPICS = {
    topic.name: topic
    for topic in parse("topic Tank (temperature float, level int, open bool)").check().topics
}


@pytest.fixture
def asked():
    return []


@pytest.fixture
def nodes(asked):
    return Nodes(lambda channel, payload: asked.append((channel, payload)))


def test_a_birth_message_contains_names_and_values(nodes, asked):
    assert nodes.rows("spBv1.0/plant/DBIRTH/edge/tank", BIRTH) == [
        {
            "time": AT, "Sensors/Temperature": 26.5, "Level": -3, "Open": True, "Label": "Süd",
            "Serial": 2**63 + 5,
        }
    ]  # fmt: skip
    assert asked == []


def test_data_messages_have_numbers_and_times(nodes):
    nodes.rows("spBv1.0/plant/DBIRTH/edge/tank", BIRTH)
    assert nodes.rows("spBv1.0/plant/DDATA/edge/tank", DATA) == [
        {"time": AT + 1000, "Sensors/Temperature": 21.0, "Level": -4, "Open": None},
        {"time": AT + 500, "Sensors/Temperature": 27.0},
    ]


def test_unusable_metrics_are_skipped(nodes):
    """Tables, metadata and properties; numbers of 32 bits and far below zero."""
    assert nodes.rows("spBv1.0/plant/NDATA/edge", FORMS) == [
        {"time": AT, "Sensors/Temperature": 1.5, "Far": -9, "Table": None}
    ]


def test_a_missed_birth_message_is_requested_once(nodes, asked):
    for _ in range(3):
        with pytest.raises(InputError, match="metric number 1 has no name"):
            nodes.rows("spBv1.0/plant/DDATA/edge/tank", DATA)
    assert [channel for channel, _ in asked] == ["spBv1.0/plant/NCMD/edge"]
    assert metrics(asked[0][1]) == [one._replace(at=None) for one in metrics(REBIRTH)]
    nodes.rows("spBv1.0/plant/DBIRTH/edge/tank", BIRTH)
    assert len(nodes.rows("spBv1.0/plant/DDATA/edge/tank", DATA)) == 2
    with pytest.raises(InputError):
        nodes.rows("spBv1.0/plant/DDATA/another/tank", DATA)


def test_a_new_birth_of_a_node_invalidates_the_old_numbers(nodes):
    nodes.rows("spBv1.0/plant/DBIRTH/edge/tank", BIRTH)
    nodes.rows("spBv1.0/plant/NBIRTH/edge", b"")
    with pytest.raises(InputError):
        nodes.rows("spBv1.0/plant/DDATA/edge/tank", DATA)


def test_deaths_and_commands_bring_no_readings(nodes):
    for channel in ("spBv1.0/plant/DDEATH/edge/tank", "spBv1.0/plant/NCMD/edge", "spBv1.0/STATE/host", "x"):
        assert nodes.rows(channel, b"\xff") == []


def test_metrics_become_readings_of_a_topic(nodes):
    part = MapPart(
        pattern="spBv1.0/{place}/+/+/{source}", topic="Tank", payload="sparkplug",
        fields={"temperature": "Sensors/Temperature", "level": "Level", "open": "Open"},
    )  # fmt: skip
    channel = "spBv1.0/plant/DBIRTH/edge/tank"
    (found,) = finder([part.route()])(channel)
    ((event, wrong),) = read(found, TOPICS, nodes.rows(channel, BIRTH), instant("2026-07-01T00:00:00Z"))
    assert (event.source, event.place, event.time, wrong) == ("tank", "plant", AT * 1000, False)
    assert event.attributes == {"temperature": 26.5, "level": -3, "open": True}
    assert read(found, TOPICS, [{"time": AT, "Serial": 5}], 0) == [], "no metric of the topic: no reading"


@given(st.binary(max_size=60) | st.tuples(st.integers(0, len(BIRTH)), st.binary(max_size=3)))
def test_random_payloads_are_read_or_refused(payload):
    if isinstance(payload, tuple):
        payload = BIRTH[: payload[0]] + payload[1] + BIRTH[payload[0] + 1 :]
    with suppress(InputError):
        assert isinstance(metrics(payload), list)
