"""A broker of MQTT, and clients of it whose sessions outlive a connection."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import urlsplit

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from ..errors import UsageError

INFLIGHT = 10_000
"""Messages that a broker may send before the first of them is acknowledged (MQTT 5)."""
HEARTBEAT = "holdfast-heartbeat/{client}"
_A_MONTH = 30 * 86_400


class Will(NamedTuple):
    """Where a broker says, retained, whether we are there."""

    channel: str
    gone: str
    here: str


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
    will: Will | None = None
    heartbeat: str = HEARTBEAT
    """The channel of our own heartbeats; nothing for none."""

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


Client = TypeVar("Client", bound=paho.Client)


def client_of(kind: type[Client], broker: Broker, suffix: str, *, manual_ack: bool) -> Client:
    """A client of a broker, not yet connected, that has a session there which outlives a connection."""
    five = broker.version == 5
    client = kind(
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
