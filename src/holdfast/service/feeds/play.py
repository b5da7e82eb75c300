"""A day that is played again and again: readings for a demonstration."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from ...model.batch import TIME, times
from ...model.instant import DAY, MINUTE, Instant
from ..service import Service, Submission
from .submission import table


class Play:
    """Plays batches of one day, each by time, as the service's clock goes on."""

    def __init__(
        self, service: Service, day: Mapping[str, pa.RecordBatch], dawn: Instant, begin: Instant
    ) -> None:
        self._service, self._day, self._dawn = service, day, dawn
        self._reached = begin - begin % DAY
        self.played = 0

    async def run(self) -> None:
        """Submit what has happened since the last look, until cancelled."""
        while True:
            now = self._service.clock()
            while self._reached < now:
                await self._play(self._reached, min(now, self._reached + 30 * MINUTE))
                self._reached = min(now, self._reached + 30 * MINUTE)
            await asyncio.sleep(0.25)

    async def _play(self, start: Instant, end: Instant) -> None:
        entries = []
        for name in sorted(self._day.keys() & self._service.topics.keys()):
            batch = self._day[name]
            for midnight in range(start - start % DAY, end, DAY):
                part = _between(batch, self._dawn - midnight, start, end)
                if len(part):
                    entries.append(table(self._service.topics[name], part))
                    self.played += len(part)
        if entries:
            await self._service.submit(Submission(entries=entries))

    def serves(self, topic: str) -> bool:
        return topic in self._day

    def read_until(self) -> Instant:
        return self._reached

    def status(self) -> dict[str, Any]:
        return {
            "name": "demonstration", "kind": "play", "connected": True, "trouble": None,
            "caught_up": True, "lag": 0.0, "messages": self.played, "waiting": 0, "dropped": 0,
        }  # fmt: skip


def _between(batch: pa.RecordBatch, shift: int, start: Instant, end: Instant) -> pa.RecordBatch:
    """The rows of a stretch of time, once the batch's times are moved back by ``shift``."""
    moved = times(batch) - shift
    first, last = np.searchsorted(moved, [start, end])
    part = batch.slice(first, last - first)
    index = part.schema.get_field_index("time")
    return part.set_column(index, "time", pa.array(moved[first:last]).cast(TIME))
