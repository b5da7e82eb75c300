"""Encoding and decoding of MQTT 3.1.1 and 5 packets that a subscriber needs. All functions are pure.

The feed decodes tens of thousands of messages per second. paho-mqtt reads the socket three times for each of
them and creates a dozen objects; here messages are cut from one buffer. Properties and reason codes are rare,
and are left to the public classes of paho-mqtt.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from paho.mqtt.client import MQTTv5, MQTTv311, convert_connack_rc_to_reason_code
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from ...errors import InputError
from .broker import INFLIGHT, SESSION_SECONDS, MqttBroker

CONNACK, PUBLISH, PUBACK, PUBREL, SUBACK, DISCONNECT = 2, 3, 4, 6, 9, 14
"""Types of packets that a broker sends; any other needs no answer."""
KEEP_ALIVE = 60
"""Seconds within which a client must send something; a broker ends the connection after 1.5 times as long."""
PING, GOODBYE = b"\xc0\x00", b"\xe0\x00"
_IDENTIFIED = struct.Struct("!BBH")


class Message(NamedTuple):
    """A message that a broker delivered. ``number`` identifies it in its session; it is 0 for quality 0."""

    connection: int
    number: int
    qos: int
    again: bool
    """Whether the broker says that it may have delivered this message before."""
    channel: str
    payload: bytes


class MqttPacket(NamedTuple):
    """A packet without its header; ``flags`` are the lower four bits of the first byte."""

    type: int
    flags: int
    body: bytes


def split(buffer: bytes | bytearray) -> tuple[list[MqttPacket], int]:
    r"""Return the complete packets at the beginning of a buffer, and how many bytes they take.

    >>> split(b"\x40\x02\x00\x07\xd0")
    ([MqttPacket(type=4, flags=0, body=b'\x00\x07')], 4)
    """
    packets, start, size = list[MqttPacket](), 0, len(buffer)
    while start + 1 < size:
        length = shift = 0
        at = start + 1
        while True:
            if at >= size:
                return packets, start
            byte = buffer[at]
            length |= (byte & 127) << shift
            at, shift = at + 1, shift + 7
            if byte < 128:
                break
            if shift > 21:
                raise InputError("a packet's length has more than four bytes")
        if at + length > size:
            break
        packets.append(MqttPacket(buffer[start] >> 4, buffer[start] & 15, bytes(buffer[at : at + length])))
        start = at + length
    return packets, start


# --- what a subscriber receives ---


def message(packet: MqttPacket, connection: int, version: int) -> Message:
    r"""Return the message in a PUBLISH packet. Its properties are skipped.

    >>> message(MqttPacket(PUBLISH, 2, b"\x00\x03a/b\x00\x07hello"), 1, 3)
    Message(connection=1, number=7, qos=1, again=False, channel='a/b', payload=b'hello')
    """
    _, flags, body = packet
    qos, number = flags >> 1 & 3, 0
    at = 2 + int.from_bytes(body[:2])
    channel = body[2:at].decode("utf-8", "replace")
    if qos:
        number = int.from_bytes(body[at : at + 2])
        at += 2
    if version == 5:
        at = _after_properties(body, at)
    if qos > 2 or at > len(body):
        raise InputError("a PUBLISH packet is malformed")
    return Message(connection, number, qos, bool(flags & 8), channel, body[at:])


def _after_properties(body: bytes, at: int) -> int:
    length = shift = 0
    for byte in body[at : at + 4]:
        length |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return at + length
    raise InputError("the properties of a packet are malformed")


def identifier(packet: MqttPacket) -> int:
    """Return the number of the message that an acknowledgement or a SUBACK packet answers."""
    return int.from_bytes(packet.body[:2])


def connection_result(packet: MqttPacket, version: int) -> ReasonCode:
    """Return from a CONNACK packet whether and why a broker admits or refuses the client."""
    code = packet.body[1]
    if version == 5:
        return ReasonCode(PacketTypes.CONNACK, identifier=code)
    return convert_connack_rc_to_reason_code(code)  # type: ignore[arg-type]


def session_is_present(packet: MqttPacket) -> bool:
    """Return from a CONNACK packet whether the broker still has the session of this client."""
    return bool(packet.body[0] & 1)


def subscription_results(packet: MqttPacket, version: int) -> list[ReasonCode]:
    """Return from a SUBACK packet which subscriptions a broker grants, in the order of the request."""
    at = _after_properties(packet.body, 2) if version == 5 else 2
    return [ReasonCode(PacketTypes.SUBACK, identifier=code) for code in packet.body[at:]]


def publication_result(packet: MqttPacket) -> ReasonCode:
    """Return from a PUBACK packet whether a broker accepts a message."""
    return ReasonCode(PacketTypes.PUBACK, identifier=packet.body[2] if len(packet.body) > 2 else 0)


def disconnection_reason(packet: MqttPacket) -> ReasonCode:
    """Return from a DISCONNECT packet why a broker ends a connection."""
    return ReasonCode(PacketTypes.DISCONNECT, identifier=packet.body[0] if packet.body else 0)


# --- what a subscriber sends ---


def connect(broker: MqttBroker) -> bytes:
    """Return a CONNECT packet for a session that the broker preserves while the client is away."""
    version, will, flags = broker.version, broker.will, 0
    payload = _text(broker.client)
    if will is not None:
        flags |= 0b0010_1100  # retained, quality 1
        payload += (b"\0" if version == 5 else b"") + _text(will.channel) + _text(will.gone)
    if broker.user is not None:
        flags |= 0b1000_0000
        payload += _text(broker.user)
        if broker.password is not None:
            flags |= 0b0100_0000
            payload += _text(broker.password)
    properties = b""
    if version == 5:
        known = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        known.SessionExpiryInterval = SESSION_SECONDS
        known.ReceiveMaximum = INFLIGHT
        properties = known.pack()  # type: ignore[no-untyped-call]
    level = MQTTv5 if version == 5 else MQTTv311
    head = _text("MQTT") + bytes([level, flags]) + KEEP_ALIVE.to_bytes(2)
    return _packet(0x10, head + properties + payload)


class MqttSubscription(NamedTuple):
    """A subscription to request. With ``only_new``, retained messages are delivered only once (MQTT 5)."""

    filter: str
    qos: int
    only_new: bool = False


def subscribe(number: int, subscriptions: Sequence[MqttSubscription], version: int) -> bytes:
    """Return a SUBSCRIBE packet with the given number."""
    parts = [
        _text(subscription.filter)
        + bytes([subscription.qos | (0x10 if subscription.only_new and version == 5 else 0)])
        for subscription in subscriptions
    ]
    return _packet(0x82, number.to_bytes(2) + (b"\0" if version == 5 else b"") + b"".join(parts))


def publish(number: int, channel: str, payload: bytes, version: int, *, retain: bool = False) -> bytes:
    """Return a PUBLISH packet of quality 1, or of quality 0 if ``number`` is 0."""
    head = _text(channel) + (number.to_bytes(2) if number else b"") + (b"\0" if version == 5 else b"")
    return _packet(0x30 | (2 if number else 0) | retain, head + payload)


def mark_as_repetition(packet: bytes) -> bytes:
    """Return a PUBLISH packet with the flag that marks a repetition."""
    return bytes([packet[0] | 8]) + packet[1:]


def acknowledgements(messages: Sequence[Message]) -> bytes:
    """Return the packets that acknowledge messages: PUBACK for quality 1, PUBREC for quality 2.

    >>> acknowledgements([Message(1, 700, 1, False, "a", b"")]).hex()
    '400202bc'
    """
    return b"".join(
        _IDENTIFIED.pack(0x40 if message.qos == 1 else 0x50, 2, message.number)
        for message in messages
        if message.qos
    )


def completion(packet: MqttPacket) -> bytes:
    """Return the PUBCOMP packet that answers a PUBREL packet."""
    return _IDENTIFIED.pack(0x70, 2, identifier(packet))


def _text(text: str) -> bytes:
    raw = text.encode()
    return len(raw).to_bytes(2) + raw


def _packet(head: int, body: bytes) -> bytes:
    return bytes([head, *_length(len(body))]) + body


def _length(size: int) -> Iterator[int]:
    while size > 127:
        yield size & 127 | 128
        size >>= 7
    yield size
