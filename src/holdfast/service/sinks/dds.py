"""A sink that writes notifications to a DDS domain, as samples of one topic.

Each subscription and scope is an instance of the topic.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cyclonedds.core import DDSException
from cyclonedds.pub import DataWriter
from cyclonedds.topic import Topic

from ...runtimes.local.engine import Holding
from ..dds import LAST_SAMPLES, NOTIFICATIONS, PATIENCE, Membership, notification_sample, notification_type
from ..store import NotificationRow
from .sink import Unavailable


class DdsSink:
    """A sink that writes samples, and waits until all present readers have acknowledged them."""

    kind = "dds"
    heeds_mutes = True
    refresh_every = None

    def __init__(self, membership: Membership) -> None:
        self.name = membership.name
        participant = membership.participant()
        self._type = notification_type()
        self._writer = DataWriter(
            participant, Topic(participant, NOTIFICATIONS, self._type), qos=LAST_SAMPLES
        )

    async def deliver(self, rows: Sequence[NotificationRow]) -> None:
        await asyncio.to_thread(self._deliver, rows)

    def _deliver(self, rows: Sequence[NotificationRow]) -> None:
        try:
            for row in rows:
                self._writer.write(notification_sample(self._type, row))
            if not self._writer.wait_for_acks(PATIENCE):
                raise Unavailable("a reader does not acknowledge")
        except DDSException as error:
            raise Unavailable(str(error)) from None

    async def refresh(self, active: Sequence[Holding]) -> None: ...

    async def close(self) -> None: ...
