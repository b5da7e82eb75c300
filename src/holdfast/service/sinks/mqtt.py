"""Notifications to an MQTT broker: an event each, and what holds now, retained."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import paho.mqtt.client as paho

from ...runtimes.local.engine import Holding
from ..broker import Broker, client_of, connect
from ..store import Told
from .delivery import Unavailable
from .message import publications

_PATIENCE = 30.0
"""Seconds in which the broker must have acknowledged all that it is sent at once."""


class MqttSink:
    """Publishes with quality 1, and waits until the broker has it."""

    kind = "mqtt"
    heeds_mutes = True
    refresh_every = None

    def __init__(self, broker: Broker, events: str | None, state: str | None) -> None:
        self.name = f"{broker.name} ({broker.client})"
        self._broker, self._events, self._state = broker, events, state
        self._client = client_of(paho.Client, broker, "-out", manual_ack=False)
        self._started = False

    async def deliver(self, told: Sequence[Told]) -> None:
        if not self._started:
            connect(self._client, self._broker)
            self._started = True
        for _ in range(200):
            if self._client.is_connected():
                break
            await asyncio.sleep(0.01)
        else:
            raise Unavailable(f"not connected to {self._broker.name}")
        sent = [
            self._client.publish(one.channel, one.payload, qos=1, retain=one.retain)
            for one in publications(told, self._events, self._state)
        ]
        await asyncio.to_thread(_wait, sent)

    async def refresh(self, active: Sequence[Holding]) -> None: ...

    async def close(self) -> None:
        if self._started:
            self._client.disconnect()
            await asyncio.to_thread(self._client.loop_stop)


def _wait(sent: Sequence[Any]) -> None:
    deadline = time.monotonic() + _PATIENCE
    try:
        for one in sent:
            one.wait_for_publish(max(0.0, deadline - time.monotonic()))
            if not one.is_published():
                raise Unavailable("the broker does not acknowledge")
    except (ValueError, RuntimeError) as error:
        raise Unavailable(str(error)) from None
