"""A sink that publishes to an MQTT broker.

Each notification is a message. The current state of its scope is a retained message.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from ...runtimes.local.engine import Holding
from ..mqtt.broker import MqttBroker, publisher
from ..store import NotificationRow
from .message import publications
from .sink import Unavailable

_PATIENCE = 30.0
"""Seconds in which the broker must acknowledge all messages of a batch."""


class MqttSink:
    """A sink that publishes with quality 1, and waits until the broker has acknowledged all messages."""

    kind = "mqtt"
    heeds_mutes = True
    refresh_every = None

    def __init__(self, broker: MqttBroker, events: str | None, state: str | None) -> None:
        self.name = f"{broker.name} ({broker.client})"
        self._broker, self._events, self._state = broker, events, state
        self._client = publisher(broker, "-out")
        self._started = False

    async def deliver(self, rows: Sequence[NotificationRow]) -> None:
        """Publish notifications, and wait until the broker has acknowledged them.

        Connects at the first call.
        """
        if not self._started:
            self._client.loop_start()
            self._started = True
        for _ in range(200):
            if self._client.is_connected():
                break
            await asyncio.sleep(0.01)
        else:
            raise Unavailable(f"not connected to {self._broker.name}")
        sent = [
            self._client.publish(row.channel, row.payload, qos=1, retain=row.retain)
            for row in publications(rows, self._events, self._state)
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
        for row in sent:
            row.wait_for_publish(max(0.0, deadline - time.monotonic()))
            if not row.is_published():
                raise Unavailable("the broker does not acknowledge")
    except (ValueError, RuntimeError) as error:
        raise Unavailable(str(error)) from None
