"""A client that hears plain messages without ado.

Paho looks at the socket four times for each message, and makes a dozen objects of one of MQTT 5, to say that
it has no properties; that costs more than all that is done with it here.  Whatever is not plain, and all of
it should Paho change, goes Paho's way.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import paho.mqtt.client as paho

_AT_ONCE = 1 << 16
"""Bytes that are taken from the socket together at most."""
_PUBLISH = 3
_ACKNOWLEDGED = struct.Struct("!BBH")


class Plain(NamedTuple):
    """A message of quality 0 or 1 that says nothing of itself."""

    number: int
    qos: int
    again: bool
    channel: str
    payload: bytes


def plain(command: int, packet: bytes | bytearray, five: bool) -> Plain | None:
    """The message in a packet, by the first byte of its header and what follows the header.

    >>> plain(0x32, b"\\x00\\x03a/b\\x00\\x07hello", False)
    Plain(number=7, qos=1, again=False, channel='a/b', payload=b'hello')
    """
    qos, end = command >> 1 & 3, 2 + int.from_bytes(packet[:2])
    if qos > 1 or end == 2:  # an alias stands for the channel
        return None
    channel, number = packet[2:end].decode("utf-8", "replace"), 0
    if qos:
        number, end = int.from_bytes(packet[end : end + 2]), end + 2
    if five:
        if packet[end]:  # it has properties
            return None
        end += 1
    return Plain(number, qos, bool(command & 8), channel, bytes(packet[end:]))


def body(raw: bytes, start: int) -> tuple[int, int] | None:
    """Where what follows the header of a packet begins and ends; nothing if not all of it has come.

    >>> body(b"\\x40\\x02\\x00\\x07", 0)
    (2, 4)
    """
    length = 0
    for i, byte in enumerate(raw[start + 1 : start + 5]):
        length |= (byte & 127) << 7 * i
        if byte < 128:
            begin = start + 2 + i
            return (begin, begin + length) if begin + length <= len(raw) else None
    return None


class Hearing(paho.Client):
    """``hear`` is called with plain messages, ``on_message`` with others."""

    hear: Callable[[Plain], None] | None = None
    _ahead, _next = b"", 0
    """What was taken from the socket, and how much of it was looked at."""
    _ahead_of: Any = None

    def acknowledge(self, numbers: Sequence[int]) -> None:
        """Acknowledge messages of quality 1, all with one look at the socket."""
        said = b"".join(_ACKNOWLEDGED.pack(paho.PUBACK, 2, number) for number in numbers)
        if said:
            self._packet_queue(paho.PUBACK, said, numbers[-1], 1)

    def loop_read(self, max_packets: int = 1) -> Any:
        """Hear all that was taken from the socket, not one packet for each look at it.  As long as more comes
        this goes on; what is to be sent, such as acknowledgements, goes out between two takes."""
        result = super().loop_read(max_packets)
        while result == paho.MQTT_ERR_SUCCESS and self._ahead_of is self._sock and self._is_ahead:
            if not self._heard():
                result = super().loop_read(max_packets)
                if result == paho.MQTT_ERR_SUCCESS and self.want_write():
                    result = self.loop_write()
        return result

    @property
    def _is_ahead(self) -> bool:
        return self._next < len(self._ahead)

    def _sock_recv(self, bufsize: int) -> bytes:
        if self._ahead_of is not self._sock or not self._is_ahead:
            self._ahead_of, self._ahead, self._next = self._sock, b"", 0
            self._ahead = super()._sock_recv(max(bufsize, _AT_ONCE))
        found = self._ahead[self._next : self._next + bufsize]
        self._next += len(found)
        return found

    def _heard(self) -> bool:
        """Hear the next packet if it is there as a whole, and a plain message."""
        command = self._ahead[self._next]
        if self.hear is None or command >> 4 != _PUBLISH or self._in_packet["command"]:
            return False
        if (place := body(self._ahead, self._next)) is None:
            return False
        start, end = place
        found = self._plain(command, self._ahead[start:end])
        if found is not None:
            self._next = end
            self.hear(found)
        return found is not None

    def _plain(self, command: int, packet: bytes | bytearray) -> Plain | None:
        try:
            return plain(command, packet, self._protocol == paho.MQTTv5)
        except (IndexError, TypeError):
            return None

    def _handle_publish(self) -> Any:
        try:
            came: Any = self._in_packet
            found = self._plain(came["command"], came["packet"])
        except (AttributeError, KeyError, TypeError):
            found = None
        if found is None or self.hear is None:
            return super()._handle_publish()
        self.hear(found)
        return paho.MQTT_ERR_SUCCESS
