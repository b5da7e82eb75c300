"""Readings from an MQTT broker, acknowledged when the log has them.

Paho's network thread only puts messages into a list; everything else happens in the event loop.  A
message of quality 1 or 2 stays with the broker until it is acknowledged; one that the broker sends
again, because we died in between, is known by its number and content.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from ...errors import InputError, UsageError
from ..service import Service, Submission
from .mapping import Route, finder, read
from .submission import NOWHERE, Given, Rejected, origin

log = logging.getLogger("holdfast.service")

INFLIGHT = 10_000
"""Messages that a broker may send before the first of them is acknowledged (MQTT 5)."""
UNACKNOWLEDGED = 100_000
"""Messages of quality 0 beyond so many that wait are dropped, and counted."""
_AT_ONCE = 5_000
_A_MONTH = 30 * 86_400


@dataclass(frozen=True)
class Broker:
    """A broker, and who we are there."""

    host: str
    port: int = 1883
    tls: bool = False
    client: str = "holdfast"
    user: str | None = None
    password: str | None = None
    version: int = 5
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    share: str | None = None
    """Several services of one name share the messages among them."""
    will: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        return f"mqtt{'s' if self.tls else ''}://{self.host}:{self.port}"


def broker_of(url: str) -> Broker:
    """The broker that a URL names: ``mqtt://user@host:1883``, ``mqtts://`` for TLS.

    >>> broker_of("mqtts://localhost").port
    8883
    """
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        raise UsageError(f"'{url}': the port is no number") from None
    if parts.scheme not in ("mqtt", "mqtts") or not parts.hostname:
        raise UsageError(f"'{url}' is no address of a broker; write mqtt://HOST:PORT or mqtts://HOST:PORT")
    tls = parts.scheme == "mqtts"
    return Broker(
        parts.hostname, port or (8883 if tls else 1883), tls, user=parts.username, password=parts.password
    )


def client_of(broker: Broker, suffix: str, *, manual_ack: bool) -> paho.Client:
    """A client of a broker, not yet connected, that has a session there which outlives a connection."""
    five = broker.version == 5
    client = paho.Client(
        CallbackAPIVersion.VERSION2,
        client_id=broker.client + suffix,
        protocol=paho.MQTTv5 if five else paho.MQTTv311,
        clean_session=None if five else False,
        manual_ack=manual_ack,
    )
    if broker.user is not None:
        client.username_pw_set(broker.user, broker.password)
    if broker.tls:
        client.tls_set(
            None if broker.ca is None else str(broker.ca),
            None if broker.certificate is None else str(broker.certificate),
            None if broker.key is None else str(broker.key),
            cert_reqs=ssl.CERT_REQUIRED,
        )
    if broker.will is not None:
        client.will_set(*broker.will, qos=1, retain=True)
    client.reconnect_delay_set(1, 30)
    client.max_inflight_messages_set(INFLIGHT)
    return client


def connect(client: paho.Client, broker: Broker) -> None:
    """Begin to connect, and go on trying; the network thread starts."""
    if broker.version == 5:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = _A_MONTH
        properties.ReceiveMaximum = INFLIGHT
        client.connect_async(broker.host, broker.port, clean_start=False, properties=properties)
    else:
        client.connect_async(broker.host, broker.port)
    client.loop_start()


class Message(NamedTuple):
    """What came, over which connection, and what is needed to acknowledge it."""

    connection: int
    number: int
    qos: int
    again: bool
    channel: str
    payload: bytes

    @property
    def origin(self) -> int:
        if not self.qos:
            return NOWHERE
        return origin(str(self.number).encode(), self.channel.encode(), self.payload)


@dataclass
class MqttFeed:
    """A broker's messages as readings."""

    service: Service
    broker: Broker
    routes: Sequence[Route]
    messages: int = 0
    dropped: int = 0
    connected: bool = False
    trouble: str | None = None
    _inbox: deque[Message] = field(default_factory=deque)
    _connection: int = 0

    def __post_init__(self) -> None:
        self._find = finder(self.routes)
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._client = client_of(self.broker, "", manual_ack=True)
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_message = self._on_message
        self._client.on_subscribe = self._on_subscribe

    # --- in paho's thread ---

    def _on_connect(self, client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        self._connection += 1
        if reason.is_failure:
            self._say(f"refused: {reason}")
            return
        self.connected = True
        self._say(None)
        client.subscribe([self._wanted(route) for route in self.routes])

    def _wanted(self, route: Route) -> tuple[str, Any]:
        share = "" if self.broker.share is None else f"$share/{self.broker.share}/"
        if self.broker.version == 5:  # what is retained comes once, not at every connection
            retained = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
            return share + route.pattern.filter, SubscribeOptions(route.qos, retainHandling=retained)
        return share + route.pattern.filter, route.qos

    def _on_subscribe(self, _client: Any, _data: Any, _mid: Any, reasons: Any, _properties: Any) -> None:
        if refused := [str(reason) for reason in reasons if reason.is_failure]:
            self._say(f"the broker refuses a subscription: {refused[0]}")

    def _on_disconnect(self, _client: Any, _data: Any, _flags: Any, reason: Any, _properties: Any) -> None:
        self.connected = False
        self._connection += 1
        self._say(f"not connected: {reason}")

    def _on_message(self, _client: Any, _data: Any, message: paho.MQTTMessage) -> None:
        if not message.qos and len(self._inbox) > UNACKNOWLEDGED:
            self.dropped += 1
            return
        was_empty = not self._inbox
        self._inbox.append(
            Message(
                self._connection, message.mid, message.qos, message.dup, message.topic, bytes(message.payload)
            )
        )
        if was_empty:
            self._loop.call_soon_threadsafe(self._wake.set)

    def _say(self, trouble: str | None) -> None:
        if trouble != self.trouble:
            log.warning("%s: %s", self.broker.name, trouble or "connected")
            self.trouble = trouble

    # --- in the event loop ---

    async def run(self) -> None:
        """Take messages until cancelled."""
        connect(self._client, self.broker)
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._inbox:
                    await self._take([self._inbox.popleft() for _ in range(min(len(self._inbox), _AT_ONCE))])
        finally:
            self._client.disconnect()
            await asyncio.to_thread(self._client.loop_stop)

    async def _take(self, messages: list[Message]) -> None:
        """Messages into the log; then, and only then, the broker may forget them."""
        now = self.service.clock()
        rejected: list[Rejected] = []
        for again, some in groupby(messages, key=lambda message: message.again):
            given = [one for message in some for one in self._given(message, now, rejected)]
            if given:
                await self.service.submit(Submission(given, again=again))
        await self.service.reject(rejected)
        self.messages += len(messages)
        for message in messages:
            if message.qos and message.connection == self._connection:
                self._client.ack(message.number, message.qos)

    def _given(self, message: Message, now: int, rejected: list[Rejected]) -> list[Given]:
        try:
            found = self._find(message.channel)
            if found is None:
                raise InputError("no mapping takes this channel")
            events = read(found, self.service.topics, message.payload, now)
        except InputError as error:
            rejected.append(Rejected("mqtt", message.channel, str(error), message.payload, now))
            return []
        self.service.counts.corrected += sum(wrong for _, wrong in events)
        first = message.origin
        return [Given(event, first + i if first else NOWHERE) for i, (event, _) in enumerate(events)]

    def status(self) -> dict[str, Any]:
        """How it stands."""
        return {
            "name": self.broker.name,
            "kind": "mqtt",
            "connected": self.connected,
            "trouble": self.trouble,
            "messages": self.messages,
            "waiting": len(self._inbox),
            "dropped": self.dropped,
        }
