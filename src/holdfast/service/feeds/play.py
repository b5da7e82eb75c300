"""A feed that plays one recorded day again and again, for demonstrations."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from ...model.batch import TIME, times
from ...model.instant import DAY, MINUTE, Instant
from ..intake import Submission
from ..service import Service
from .feed import FeedStatus
from .submission import table


class Play:
    """A feed that plays batches of one day by the service's clock."""

    def __init__(
        self, service: Service, day: Mapping[str, pa.RecordBatch], dawn: Instant, begin: Instant
    ) -> None:
        self._service, self._day, self._dawn = service, day, dawn
        self._position = begin - begin % DAY
        self.played = 0

    async def run(self) -> None:
        """Submit the readings up to now, until cancelled."""
        while True:
            now = self._service.clock()
            while self._position < now:
                await self._play(self._position, min(now, self._position + 30 * MINUTE))
                self._position = min(now, self._position + 30 * MINUTE)
            await asyncio.sleep(0.25)

    async def _play(self, start: Instant, end: Instant) -> None:
        entries = []
        for name in sorted(self._day.keys() & self._service.topics.keys()):
            batch = self._day[name]
            for midnight in range(start - start % DAY, end, DAY):
                part = _rows_between(batch, self._dawn - midnight, start, end)
                if len(part):
                    entries.append(table(self._service.topics[name], part))
                    self.played += len(part)
        if entries:
            await self._service.submit(Submission(entries=entries))

    def serves(self, topic: str) -> bool:
        return topic in self._day

    def read_until(self) -> Instant:
        return self._position

    def status(self) -> FeedStatus:
        """Return the status of the feed."""
        return {
            "name": "demonstration", "kind": "play", "connected": True, "trouble": None,
            "caught_up": True, "lag": 0.0, "messages": self.played, "waiting": 0, "dropped": 0,
        }  # fmt: skip


def _rows_between(batch: pa.RecordBatch, shift: int, start: Instant, end: Instant) -> pa.RecordBatch:
    """Return the rows of a period, after the times of a batch are shifted back by ``shift`` microseconds."""
    moved = times(batch) - shift
    first, last = np.searchsorted(moved, [start, end])
    part = batch.slice(first, last - first)
    index = part.schema.get_field_index("time")
    return part.set_column(index, "time", pa.array(moved[first:last]).cast(TIME))
