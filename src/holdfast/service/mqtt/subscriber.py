"""A subscriber of an MQTT broker: it stays connected, and acknowledges messages when its owner asks for it.

Everything runs in the event loop. A message of quality 1 stays with the broker until ``acknowledge``.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Protocol

from paho.mqtt.reasoncodes import ReasonCode

from ...errors import InputError
from . import packets
from .broker import MqttBroker
from .packets import Message, MqttPacket, MqttSubscription

log = logging.getLogger("holdfast.service")

FIRST_WAIT, LONGEST_WAIT = 1.0, 30.0
"""Seconds before the next attempt to connect. The wait doubles until the broker admits the client."""
_PATIENCE = 10.0
"""Seconds in which a broker must accept a connection and answer CONNECT."""
_AT_ONCE = 1 << 16
"""Bytes read at once."""
_PING_EVERY = packets.KEEP_ALIVE / 3


class Listener(Protocol):
    """The protocol of listeners, which receive the events of a subscriber in the event loop.

    No method may raise. For each connection the subscriber first calls ``on_connect``. If the broker admits
    it, the subscriber calls ``on_subscribe``, then ``on_message`` and ``on_publish`` as packets arrive.
    ``on_disconnect`` is the last call.
    """

    def on_connect(self, connection: int, result: ReasonCode) -> None:
        """Called when the broker admits or refuses the client.

        ``connection`` counts the attempts that it answered.
        """

    def on_subscribe(self, results: Sequence[ReasonCode]) -> None:
        """Called when the broker grants or refuses the subscriptions; ``results`` are in their order."""

    def on_message(self, message: Message) -> None:
        """Called for each message that the broker delivers."""

    def on_publish(self, result: ReasonCode) -> None:
        """Called when the broker acknowledges a message that was published with quality 1."""

    def on_disconnect(self, reason: str) -> None:
        """Called when the connection is lost or could not be made."""


class MqttSubscriber:
    """A session with a broker: it connects, subscribes, and connects again when the connection is lost."""

    def __init__(
        self, broker: MqttBroker, subscriptions: Sequence[MqttSubscription], listener: Listener
    ) -> None:
        self._broker, self._subscriptions, self._listener = broker, subscriptions, listener
        self._writer: asyncio.StreamWriter | None = None
        self._connection = 0
        self._number = 0
        self._is_leaving = False
        self._unacknowledged: dict[int, bytes] = {}
        """PUBLISH packets by number; the next connection sends them again."""

    async def run(self) -> None:
        """Stay connected until cancelled or disconnected."""
        wait = FIRST_WAIT
        while not self._is_leaving:
            before = self._connection
            try:
                await self._connect()
            except (OSError, EOFError, TimeoutError, InputError, LookupError) as error:
                if not self._is_leaving:
                    self._listener.on_disconnect(f"not connected: {error or type(error).__name__}")
            finally:
                self._close()
            wait = FIRST_WAIT if self._connection > before else wait
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)

    async def _connect(self) -> None:
        """Connect, and handle packets until the connection ends.

        Returns if the broker refuses or cannot be reached.
        """
        broker = self._broker
        try:
            async with asyncio.timeout(_PATIENCE):
                tls = await asyncio.to_thread(_tls_context, broker) if broker.tls else None
                reader, self._writer = await asyncio.open_connection(broker.host, broker.port, ssl=tls)
        except (OSError, TimeoutError):
            return self._listener.on_disconnect("the broker cannot be reached")
        self._write(packets.connect(broker))
        arrivals = _receive(reader)
        async with asyncio.timeout(_PATIENCE):
            first, *others = await anext(arrivals)
        if first.type != packets.CONNACK:
            raise InputError("the broker does not answer as MQTT prescribes")
        result = packets.connection_result(first, broker.version)
        self._connection += not result.is_failure
        self._listener.on_connect(self._connection, result)
        if result.is_failure:
            return None
        if packets.session_is_present(first):
            for unacknowledged in self._unacknowledged.values():
                self._write(packets.mark_as_repetition(unacknowledged))
        else:
            self._unacknowledged.clear()
        self._write(packets.subscribe(self._next_number(), self._subscriptions, broker.version))
        pings = asyncio.create_task(self._ping())
        try:
            self._handle(others)
            async for found in arrivals:
                self._handle(found)
        finally:
            pings.cancel()

    def _handle(self, found: Sequence[MqttPacket]) -> None:
        version, on_message = self._broker.version, self._listener.on_message
        for packet in found:
            match packet.type:
                case packets.PUBLISH:
                    on_message(packets.message(packet, self._connection, version))
                case packets.SUBACK:
                    self._listener.on_subscribe(packets.subscription_results(packet, version))
                case packets.PUBACK:
                    self._unacknowledged.pop(packets.identifier(packet), None)
                    self._listener.on_publish(packets.publication_result(packet))
                case packets.PUBREL:
                    self._write(packets.completion(packet))
                case packets.DISCONNECT:
                    raise EOFError(str(packets.disconnection_reason(packet)))

    async def _ping(self) -> None:
        while True:
            await asyncio.sleep(_PING_EVERY)
            self._write(packets.PING)

    def _write(self, raw: bytes) -> None:
        if self._writer is not None and raw:
            self._writer.write(raw)

    def _next_number(self) -> int:
        while True:
            self._number = self._number % 65_535 + 1
            if self._number not in self._unacknowledged:
                return self._number

    def publish(self, channel: str, payload: bytes, *, qos: int = 0, retain: bool = False) -> None:
        """Publish a message. Without a connection the message is dropped."""
        if self._writer is None:
            return
        number = self._next_number() if qos else 0
        packet = packets.publish(number, channel, payload, self._broker.version, retain=retain)
        if number:
            self._unacknowledged[number] = packet
        self._write(packet)

    def acknowledge(self, messages: Sequence[Message]) -> None:
        """Acknowledge messages of the current connection, so that the broker forgets them.

        Messages of earlier connections are ignored, because the broker repeats them.
        """
        self._write(
            packets.acknowledgements(
                [message for message in messages if message.connection == self._connection]
            )
        )

    async def disconnect(self, patience: float = 2.0) -> None:
        """Disconnect when the broker has acknowledged all published messages.

        The wait takes at most ``patience`` seconds.
        """
        self._is_leaving = True
        end = asyncio.get_running_loop().time() + patience
        while self._writer is not None and self._unacknowledged and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(0.01)
        self._write(packets.GOODBYE)
        if (writer := self._writer) is not None:
            self._close()
            with suppress(OSError):
                await writer.wait_closed()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


async def _receive(reader: asyncio.StreamReader) -> AsyncIterator[list[MqttPacket]]:
    """Yield packets as they arrive. Raises an error when the connection is lost."""
    buffer = bytearray()
    while True:
        found, size = packets.split(buffer)
        del buffer[:size]
        if found:
            yield found
        async with asyncio.timeout(packets.KEEP_ALIVE):  # the answer to a ping comes earlier
            data = await reader.read(_AT_ONCE)
        if not data:
            raise EOFError("the broker has closed the connection")
        buffer += data


def _tls_context(broker: MqttBroker) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=None if broker.ca is None else str(broker.ca))
    if broker.certificate is not None:
        context.load_cert_chain(broker.certificate, broker.key)
    return context
