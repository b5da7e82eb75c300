"""What a broker sends is heard as it was sent, wherever the network cuts it."""

from __future__ import annotations

import threading
from itertools import pairwise

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from holdfast.service.feeds.hearing import Hearing, Plain

PONG = b"\xd0\x00"
LONG = b"x" * 300


class Wire:
    """A socket that gives what was sent in pieces."""

    def __init__(self, *pieces):
        self._pieces, self.sent = list(pieces), []

    def recv(self, most):
        if not self._pieces:
            raise BlockingIOError
        piece = self._pieces.pop(0)
        if len(piece) > most:
            self._pieces.insert(0, piece[most:])
        return piece[:most]

    def send(self, data):
        self.sent.append((bytes(data), len(self._pieces)))
        return len(data)

    def close(self):
        self._pieces.clear()


def packet(command, rest):
    low, high = len(rest) % 128, len(rest) // 128
    return bytes([command, low | 128, high] if high else [command, low]) + rest


def published(number, payload, *, five, properties=b"", again=False):
    head = b"\x00\x03a/b" + number.to_bytes(2)
    return packet(0x3A if again else 0x32, head + (bytes([len(properties)]) + properties) * five + payload)


def listening(five):
    client = Hearing(
        CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5 if five else paho.MQTTv311, manual_ack=True
    )
    heard = []
    client.hear = heard.append
    client.on_message = lambda _client, _data, it: heard.append((it.mid, bytes(it.payload)))
    return client, heard


def take(client, *pieces):
    client._sock = Wire(*pieces)
    for _ in range(30):  # as often as there is something to read
        assert client.loop_read() == paho.MQTT_ERR_SUCCESS
    client._sock = None


@pytest.mark.parametrize("five", [True, False])
def test_messages_are_the_same_wherever_they_are_cut(five):
    first = published(1, b"21.5", five=five) + PONG
    special = published(2, b"kept", five=five, properties=b"\x01\x01")  # it says that it is text
    raw = first + special + published(3, LONG, five=five, again=True)
    middle = (2, b"kept") if five else Plain(2, 1, False, "a/b", b"kept")
    expected = [Plain(1, 1, False, "a/b", b"21.5"), middle, Plain(3, 1, True, "a/b", LONG)]
    for cut in range(len(raw)):
        client, heard = listening(five)
        take(client, raw[:cut] or raw, raw[cut:] if cut else PONG)
        assert heard == expected, f"cut at {cut}"


def test_what_was_taken_from_a_lost_connection_is_forgotten():
    client, heard = listening(True)
    client._sock = Wire(b"\x30" + b"\xff" * 5 + published(1, b"lost", five=True))  # no length is so long
    assert client.loop_read() == paho.MQTT_ERR_PROTOCOL
    client._in_packet = listening(True)[0]._in_packet  # as Paho begins a connection
    take(client, published(2, b"here", five=True))
    assert [message.payload for message in heard] == [b"here"]


def test_messages_are_acknowledged_together_each_by_its_number():
    client, _ = listening(True)
    client.acknowledge([])
    client.acknowledge([1, 700])
    assert [one["packet"] for one in client._out_packet] == [b"\x40\x02\x00\x01\x40\x02\x02\xbc"]


def test_acknowledgements_do_not_wait_for_the_end_of_a_flood():
    client, heard = listening(True)
    client._thread = threading.current_thread()  # who hears is who sends
    client.hear = lambda message: (heard.append(message), client.acknowledge([message.number]))
    raw = b"".join(published(number, b"21.5", five=True) for number in range(1, 41))
    cuts = [*range(0, len(raw), 47), len(raw)]  # none but the last ends a message
    client._sock = wire = Wire(*(raw[a:b] for a, b in pairwise(cuts)))
    assert client.loop_read() == paho.MQTT_ERR_SUCCESS
    assert len(heard) == 40
    assert wire.sent[0] == (b"\x40\x02\x00\x01", len(cuts) - 3)
    client._sock = None
