"""The components of a definition over history: several topics, merged by time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from operator import attrgetter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...compilers.detector import detection
from ...compilers.machine import Coverage
from ...files.plan import Part
from ...files.sort import Sorter
from ...lang.condition import Checked
from ...model.batch import times
from ...model.event import Notification
from ...model.instant import BEGINNING, Instant
from ...model.qos import TIMELY


class Fusion:
    """Components at work on a history, part by part."""

    def __init__(self, checked: Checked) -> None:
        timely = [replace(component, delivery=TIMELY) for component in checked.components]
        self._group = detection(timely, checked.topics)
        self._state = self._group.machine.initial()
        self._waiting: list[Notification] = []
        self._reached = BEGINNING

    @property
    def topics(self) -> list[str]:
        """The topics of readings that components listen to."""
        return list(self._group.machine.topics)

    def matters(self, topic: str, batch: pa.RecordBatch, coverage: Coverage) -> NDArray[np.bool_]:
        """Which readings some component looks at; those in no scope of a component are counted, and
        all of them say how far time has come."""
        self._reached = max(self._reached, int(times(batch).max()))
        looked_at = self._group.machine.looked_at(topic, batch)
        outside = {i: int(np.count_nonzero(~mask)) for i, mask in looked_at.items()}
        coverage.outside.update({self._group.components[i].name: k for i, k in outside.items() if k})
        found: NDArray[np.bool_] = np.logical_or.reduce(list(looked_at.values()))
        return found

    def misplaced(self, coverage: Coverage) -> list[str]:
        """The components that not one reading could concern."""
        return [
            component.name
            for component in self._group.components
            if 0 < coverage.outside[component.name] == sum(coverage.events[t.name] for t in component.listens)
        ]

    def notifications(
        self, sorters: Mapping[str, Sorter], part: Part, *, is_last: bool
    ) -> Iterator[Notification]:
        """What components say of a part, in the order of an output."""
        streams = {topic: sorter.drain() for topic, sorter in sorters.items()}
        first = {topic: next(stream, None) for topic, stream in streams.items()}
        heads = {topic: batch for topic, batch in first.items() if batch is not None}
        last = BEGINNING
        while heads:
            topic = min(heads, key=lambda name: int(times(heads[name])[-1]))
            batch = heads.pop(topic)
            if (following := next(streams[topic], None)) is not None:
                heads[topic] = following
            last = max(last, int(times(batch)[-1]))
            until = min((int(times(head)[0]) for head in heads.values()), default=last)
            yield from self._stepped({topic: batch}, until)
        if is_last:
            yield from self._stepped({}, self._reached + 1)
            yield from self._waiting
        elif last > BEGINNING and part.end not in part.shared:
            yield from self._stepped({}, last + 1)

    def _stepped(self, batches: dict[str, pa.RecordBatch], until: Instant) -> list[Notification]:
        self._state, said = self._group.machine.step(self._state, batches, until)
        self._waiting += self._group.addressed(said)
        self._waiting.sort(key=attrgetter("order"))
        settled = next((i for i, n in enumerate(self._waiting) if n.event.time >= until), len(self._waiting))
        told, self._waiting = self._waiting[:settled], self._waiting[settled:]
        return told

    def holding(self) -> list[tuple[str, str | None, Instant]]:
        """The conditions that hold at the end: (name, scope, since)."""
        return list(self._group.holding(self._state))
