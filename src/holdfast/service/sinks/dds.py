"""Notifications into a domain of DDS: one topic, an instance for each subscription and scope."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cyclonedds.core import DDSException
from cyclonedds.pub import DataWriter
from cyclonedds.topic import Topic

from ...runtimes.local.engine import Holding
from ..dds import LAST_WORDS, PATIENCE, TOLD, Membership, told_sample, told_type
from ..store import Told
from .delivery import Unavailable


class DdsSink:
    """Writes samples, and waits until all readers that are there have them."""

    kind = "dds"
    heeds_mutes = True
    refresh_every = None

    def __init__(self, membership: Membership) -> None:
        self.name = membership.name
        participant = membership.participant()
        self._type = told_type()
        self._writer = DataWriter(participant, Topic(participant, TOLD, self._type), qos=LAST_WORDS)

    async def deliver(self, told: Sequence[Told]) -> None:
        await asyncio.to_thread(self._deliver, told)

    def _deliver(self, told: Sequence[Told]) -> None:
        try:
            for one in told:
                self._writer.write(told_sample(self._type, one))
            if not self._writer.wait_for_acks(PATIENCE):
                raise Unavailable("a reader does not acknowledge")
        except DDSException as error:
            raise Unavailable(str(error)) from None

    async def refresh(self, active: Sequence[Holding]) -> None: ...

    async def close(self) -> None: ...
