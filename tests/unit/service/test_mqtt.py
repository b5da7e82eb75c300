"""The MQTT subscriber: packets are decoded wherever the network cuts them, and acknowledged by hand."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from holdfast.errors import InputError
from holdfast.service.mqtt import packets, subscriber
from holdfast.service.mqtt.broker import MqttBroker, Will
from holdfast.service.mqtt.packets import Message, MqttSubscription
from holdfast.service.mqtt.subscriber import MqttSubscriber

PONG = b"\xd0\x00"
LONG = b"x" * 300


def packet(command, rest):
    low, high = len(rest) % 128, len(rest) // 128
    return bytes([command, low | 128, high] if high else [command, low]) + rest


def publish_packet(number, payload, *, version=5, properties=b"", again=False, qos=1):
    head = b"\x00\x03a/b" + (number.to_bytes(2) if qos else b"")
    command = 0x30 | qos << 1 | (8 if again else 0)
    return packet(command, head + (bytes([len(properties)]) + properties) * (version == 5) + payload)


@pytest.mark.parametrize("version", [5, 3])
def test_messages_decode_equally_however_they_are_cut(version):
    with_properties = publish_packet(2, b"kept", version=version, properties=b"\x01\x01")
    raw = publish_packet(1, b"21.5", version=version) + PONG + with_properties
    raw += publish_packet(3, LONG, version=version, again=True) + publish_packet(
        0, b"", version=version, qos=0
    )
    expected = [
        Message(9, 1, 1, False, "a/b", b"21.5"), Message(9, 2, 1, False, "a/b", b"kept"),
        Message(9, 3, 1, True, "a/b", LONG), Message(9, 0, 0, False, "a/b", b""),
    ]  # fmt: skip
    for cut in range(len(raw) + 1):
        buffer, found = bytearray(), []
        for piece in (raw[:cut], raw[cut:]):
            buffer += piece
            complete, size = packets.split(buffer)
            del buffer[:size]
            found += complete
        messages = [packets.message(one, 9, version) for one in found if one.type == packets.PUBLISH]
        assert messages == expected, f"cut at {cut}"


@pytest.mark.parametrize("raw", [b"\x30" + b"\xff" * 5, publish_packet(1, b"")[:2] + b"\xff" * 8])
def test_malformed_packets_are_input_errors(raw):
    with pytest.raises(InputError):
        [packets.message(one, 1, 5) for one in packets.split(raw)[0]]


def test_messages_are_acknowledged_by_number_and_quality():
    messages = [Message(1, 1, 1, False, "a", b""), Message(1, 0, 0, False, "a", b"")]
    assert packets.acknowledgements([]) == b""
    assert packets.acknowledgements([*messages, Message(1, 700, 2, False, "a", b"")]) == (
        b"\x40\x02\x00\x01\x50\x02\x02\xbc"
    )


def test_a_connect_packet_contains_the_will_and_the_credentials():
    broker = MqttBroker(
        "here", client="us", user="me", password="ok", version=3, will=Will("w", "gone", "back")
    )
    assert packets.connect(broker) == (
        b"\x10\x1f\x00\x04MQTT\x04\xec\x00\x3c\x00\x02us\x00\x01w\x00\x04gone\x00\x02me\x00\x02ok"
    )
    with_properties = packets.connect(MqttBroker("here", client="us"))
    assert with_properties.startswith(b"\x10\x17\x00\x04MQTT\x05\x00\x00\x3c\x08\x11")


class Events:
    """A listener that notes what it is called with."""

    def __init__(self):
        self.found, self.changed = [], asyncio.Event()

    def __getattr__(self, name):
        def note(*values):
            self.found.append((name.removeprefix("on_"), *map(str, values)))
            self.changed.set()

        return note

    async def until(self, name, count=1):
        async with asyncio.timeout(10):
            while sum(one[0] == name for one in self.found) < count:
                self.changed.clear()
                await self.changed.wait()


def scenario(serve, follow, **settings):
    """Run a subscriber beside a broker that a function plays; returns the events of the subscriber."""

    async def play():
        events = Events()

        async def serve_and_close(reader, writer):
            with suppress(EOFError):
                await serve(reader, writer)
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(serve_and_close, "127.0.0.1", 0)
        broker = MqttBroker("127.0.0.1", server.sockets[0].getsockname()[1], **settings)
        client = MqttSubscriber(broker, [MqttSubscription("a/#", 1, only_new=True)], events)
        task = asyncio.create_task(client.run())
        try:
            await follow(client, events)
        finally:
            await client.disconnect(0)
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            server.close()
        return events.found

    return asyncio.run(play())


async def next_packet(reader):
    head, size = await reader.readexactly(2)
    return head, await reader.readexactly(size)


def test_a_lost_connection_is_restored_and_unacknowledged_messages_are_repeated(monkeypatch):
    monkeypatch.setattr(subscriber, "FIRST_WAIT", 0.01)
    sent = []

    async def serve(reader, writer):
        await next_packet(reader)
        writer.write(b"\x20\x03\x01\x00\x00")  # the session is present
        known = len(sent)
        while (one := await next_packet(reader))[0] != 0x82:
            sent.append(one)
        writer.write(b"\x90\x04" + one[1][:2] + b"\x00\x01" + publish_packet(7, b"21.5"))
        while len(sent) < known + 1:
            sent.append(await next_packet(reader))

    async def follow(client, events):
        await events.until("message")
        client.publish("beat", b"1", qos=1)
        await events.until("disconnect")
        await events.until("message", 2)

    found = scenario(serve, follow)
    assert [name for name, *_ in found][:4] == ["connect", "subscribe", "message", "disconnect"]
    assert [head for head, _ in sent] == [0x32, 0x3A]
    assert sent[0][1] == sent[1][1]


def test_a_refused_client_tries_again_and_reports_why(monkeypatch):
    monkeypatch.setattr(subscriber, "FIRST_WAIT", 0.01)

    async def serve(reader, writer):
        await next_packet(reader)
        writer.write(b"\x20\x02\x00\x05")
        await writer.drain()

    async def follow(_client, events):
        await events.until("connect", 2)

    found = scenario(serve, follow, version=3)
    assert set(found) == {("connect", "0", "Not authorized")}


def test_messages_of_quality_2_are_completed():
    answers = []

    async def serve(reader, writer):
        await next_packet(reader)
        writer.write(b"\x20\x02\x00\x00" + publish_packet(9, b"21.5", version=3, qos=2))
        await next_packet(reader)  # SUBSCRIBE
        answers.append(await next_packet(reader))
        writer.write(b"\x62\x02\x00\x09")
        answers.append(await next_packet(reader))
        writer.write(b"\xe0\x00")

    async def follow(client, events):
        await events.until("message")
        client.acknowledge([Message(1, 9, 2, False, "a/b", b"")])
        await events.until("disconnect")

    scenario(serve, follow, version=3)
    assert answers == [(0x50, b"\x00\x09"), (0x70, b"\x00\x09")]
