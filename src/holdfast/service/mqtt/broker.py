"""The address of an MQTT broker, and the creation of clients that publish to it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from ...errors import UsageError

INFLIGHT = 10_000
"""How many messages a broker may send before the first of them is acknowledged (MQTT 5)."""
HEARTBEAT = "holdfast-heartbeat/{client}"
SESSION_SECONDS = 30 * 86_400
"""How long a broker preserves the session of a client that is away (MQTT 5)."""


class Will(NamedTuple):
    """Retained messages on a channel that show whether the service is connected."""

    channel: str
    gone: str
    here: str


@dataclass(frozen=True)
class MqttBroker:
    """The address of a broker, and the credentials and identity of the service there."""

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
    """The name of a shared subscription: services with the same name share the messages."""
    will: Will | None = None
    heartbeat: str = HEARTBEAT
    """The channel of the feed's heartbeats; empty for none."""

    @property
    def name(self) -> str:
        return f"mqtt{'s' if self.tls else ''}://{self.host}:{self.port}"


def broker_of(url: str) -> MqttBroker:
    """Parse the URL of a broker, such as ``mqtt://user@host:1883``, or ``mqtts://`` for TLS.

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
    return MqttBroker(
        parts.hostname, port or (8883 if tls else 1883), tls, user=parts.username, password=parts.password
    )


def publisher(broker: MqttBroker, suffix: str) -> paho.Client:
    """Return a client that only publishes, with the address of a broker and a session of its own.

    It is not connected yet; ``loop_start`` connects it. The broker preserves its session while it is away.
    """
    is_five = broker.version == 5
    client = paho.Client(
        CallbackAPIVersion.VERSION2,
        client_id=broker.client + suffix,
        protocol=paho.MQTTv5 if is_five else paho.MQTTv311,
        clean_session=None if is_five else False,
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
    client.reconnect_delay_set(1, 30)
    client.max_inflight_messages_set(INFLIGHT)
    if is_five:
        properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = SESSION_SECONDS
        properties.ReceiveMaximum = INFLIGHT
        client.connect_async(broker.host, broker.port, clean_start=False, properties=properties)
    else:
        client.connect_async(broker.host, broker.port)
    return client
