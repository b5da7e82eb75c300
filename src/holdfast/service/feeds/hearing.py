"""A client that hears plain messages without ado.

Paho makes a dozen objects of each message of MQTT 5, to say that it has no properties; that costs more than
all that is done with it here.  Whatever is not plain, and all of it should Paho change, goes Paho's way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import paho.mqtt.client as paho


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


class Hearing(paho.Client):
    """``hear`` is called with plain messages, ``on_message`` with others."""

    hear: Callable[[Plain], None] | None = None

    def _handle_publish(self) -> Any:
        try:
            came: Any = self._in_packet
            found = plain(came["command"], came["packet"], self._protocol == paho.MQTTv5)
        except (AttributeError, IndexError, KeyError, TypeError):
            found = None
        if found is None or self.hear is None:
            return super()._handle_publish()
        self.hear(found)
        return paho.MQTT_ERR_SUCCESS
