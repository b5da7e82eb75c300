"""The correlations of a definition over history: several topics, merged by time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...compilers.correlation import correlators
from ...compilers.machine import Coverage
from ...files.sort import Sorter
from ...lang.condition import Checked
from ...model.batch import times
from ...model.event import Notification
from ...model.instant import BEGINNING, NEVER, Instant
from ...model.qos import TIMELY


class Conjunction:
    """Correlations at work on a history, part by part.

    An event is told with its own time, but only when its partners have come, up to a window later: so
    notifications wait until all that stand before them in the output are known.
    """

    def __init__(self, checked: Checked) -> None:
        self._correlations = checked.correlations
        self._groups = correlators(replace(one, delivery=TIMELY) for one in checked.correlations)
        self._states = [group.machine.initial() for group in self._groups]
        self._waiting: list[Notification] = []
        self._window = max((group.within for group in self._groups), default=0)
        self._listened = [t for t in checked.topics if any(t.name in g.machine.topics for g in self._groups)]

    @property
    def topics(self) -> list[str]:
        """The topics that correlations look at."""
        return [topic.name for topic in self._listened]

    def matters(self, topic: str, batch: pa.RecordBatch, coverage: Coverage) -> NDArray[np.bool_]:
        """Which events match a filter; those that come from elsewhere are counted."""
        found = np.zeros(len(batch), np.bool_)
        for group in self._groups:
            if topic in group.machine.topics:
                found |= group.machine.matters(topic, batch)
                for names, outside in zip(group.names, group.machine.outside(topic, batch), strict=True):
                    coverage.outside.update(dict.fromkeys(names, int(outside)) if outside else {})
        return found

    def misplaced(self, coverage: Coverage) -> list[str]:
        """The correlations that not one event could concern."""
        return [
            one.name
            for one in self._correlations
            if 0 < coverage.outside[one.name] == sum(coverage.events[t.name] for t in one.listens)
        ]

    def settled(self, until: Instant) -> Instant:
        """Up to when everything is known once time has come as far as ``until``."""
        return max(until - self._window, BEGINNING) if self._groups and until < NEVER else until

    def notifications(self, sorters: Mapping[str, Sorter], end: Instant) -> Iterator[Notification]:
        """What correlations say of a part whose time ends at ``end``, in the order of an output."""
        streams = {topic: sorter.drain() for topic, sorter in sorters.items()}
        first = {topic: next(stream, None) for topic, stream in streams.items()}
        heads = {topic: batch for topic, batch in first.items() if batch is not None}
        while heads:
            topic = min(heads, key=lambda name: int(times(heads[name])[-1]))
            batch = heads.pop(topic)
            until = int(times(batch)[-1])
            if (following := next(streams[topic], None)) is not None:
                heads[topic] = following
            until = min((int(times(head)[0]) for head in heads.values()), default=until)
            yield from self._stepped({topic: batch}, until)
        yield from self._stepped({}, end)

    def _stepped(self, batches: dict[str, pa.RecordBatch], until: Instant) -> list[Notification]:
        for i, group in enumerate(self._groups):
            mine = {topic: batch for topic, batch in batches.items() if topic in group.machine.topics}
            self._states[i], told = group.machine.step(self._states[i], mine, until)
            self._waiting += group.addressed(told)
        self._waiting.sort(key=attrgetter("order"))
        known = self.settled(until)
        settled = next((i for i, n in enumerate(self._waiting) if n.event.time > known), len(self._waiting))
        told_now, self._waiting = self._waiting[:settled], self._waiting[settled:]
        return told_now
