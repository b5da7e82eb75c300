"""The benchmark of the broker: its messages, its counts, and that it measures what it claims."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.network.overlay.wire.frame import to_frame
from holdfast_lab.benchmarks import broker
from holdfast_lab.benchmarks.peers import mosquitto


@given(st.lists(st.binary(max_size=300), max_size=8), st.integers(0, 400))
def test_messages_are_counted_and_the_remainder_is_buffered(bodies, cut):
    for message, count in ((to_frame, broker.count), (mosquitto.publish_packet, mosquitto.count)):
        whole = [message(body) for body in bodies]
        data = b"".join(whole)
        number, at = count(data)
        assert (number, at) == (len(bodies), len(data))
        part = data[: max(0, len(data) - cut)]
        number, at = count(part)
        assert at == sum(map(len, whole[:number]))
        assert at <= len(part) < at + len((*whole, b"x")[number])


@given(st.binary(max_size=20_000))
def test_a_packet_has_its_length(body):
    packet = mosquitto.packet(mosquitto.PUBLISH, body)
    assert packet.endswith(body)
    length = sum((byte & 0x7F) << 7 * i for i, byte in enumerate(packet[1 : len(packet) - len(body)]))
    assert length == len(body)


@pytest.fixture
def short(monkeypatch):
    for name in ("MESSAGES", "THROUGH_CLIENTS", "ROUND_TRIPS"):
        monkeypatch.setattr(broker, name, 200)


@pytest.mark.soak
@pytest.mark.usefixtures("short")
def test_a_short_run_without_mosquitto_measures_our_broker_and_reports_the_missing_peer(monkeypatch):
    monkeypatch.setattr(mosquitto, "program", lambda: None)
    sent: list[str] = []
    rows = broker.run(sent.append)
    assert len(rows) == 12
    assert all(row.value > 0 for row in rows[:5])
    assert not [row for row in rows if "Mosquitto" in row.what]
    assert [line for line in sent if "Mosquitto is not installed" in line]


@pytest.mark.soak
@pytest.mark.usefixtures("short")
@pytest.mark.skipif(mosquitto.program() is None, reason="needs Mosquitto, which is not installed")
def test_a_short_run_measures_both_brokers():
    rows = broker.run(lambda _: None)
    ours = [row for row in rows if not row.what.startswith(("the same", "p50, the same", "p99, the same"))]
    assert len(ours) == 12
    assert all(row.value > 0 for row in ours[:5])
    beside = [row for row in rows if "Mosquitto" in row.what]
    assert len(beside) >= 4
    assert all(row.detail["holdfast_is_times_faster"] > 0 for row in beside)
