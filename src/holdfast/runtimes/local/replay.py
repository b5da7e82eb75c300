"""History in this process: files in any order and of any size, notifications in order.

The whole input is processed by (time, source, sequence); nothing is late.  Files are read part by
part (a part shares no moment with another), what satisfies no predicate is dropped as it is read,
and the rest is sorted, on disk where it is more than memory should hold.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ...compilers.machine import Coverage, groups
from ...errors import InputError
from ...files.find import InputFile, find
from ...files.plan import Part, closed_parts
from ...files.read import inspect, read
from ...files.reading import Reading, TimeUnit, parse_zone
from ...files.sort import Sorter
from ...files.tally import Rejects, Tally
from ...lang.app import App
from ...lang.check import check
from ...lang.condition import Checked
from ...lang.parse import parse
from ...machines.machine import transitions
from ...model.batch import times
from ...model.event import Notification
from ...model.instant import BEGINNING, NEVER, Instant
from ...model.qos import TIMELY
from ...model.topic import Topic
from .conjunction import Conjunction
from .fusion import Fusion

MEMORY = 128 << 20
"""How many bytes of events may wait in memory to be sorted."""


class Replay:
    """The notifications of a history, in order: iterate once, then look at what was counted."""

    def __init__(
        self,
        checked: Checked,
        files: Sequence[InputFile],
        reading: Reading,
        *,
        rejects: Rejects | None = None,
        memory: int = MEMORY,
        scratch: Path | None = None,
        progress: Callable[[Tally], None] = lambda tally: None,
    ) -> None:
        self.tally = Tally()
        self.kept = 0
        """How many events satisfied some predicate."""
        self.passed: Counter[str] = Counter()
        """How many notifications each subscription had."""
        self.coverage = Coverage()
        """How many events lay in scopes."""
        self._reading = reading
        self._rejects = rejects if rejects is not None else Rejects()
        self._memory, self._scratch, self._progress = memory, scratch, progress
        for file in files:
            inspect(file, reading)
        self.parts = closed_parts(files, reading)
        timely = [replace(condition, delivery=TIMELY) for condition in checked.conditions]
        self._groups = groups(timely)
        self._states: list[Any] = [group.machine.initial() for group in self._groups]
        self._topics = [
            topic for topic in checked.topics if any(group.topic == topic for group in self._groups)
        ]
        self._fusion = Fusion(checked)
        self._conjunction = Conjunction(checked)

    def __iter__(self) -> Iterator[Notification]:
        waiting: list[Notification] = []
        for part in self.parts:
            with ExitStack() as stack:
                kinds = [topic.name for topic in self._topics], self._fusion.topics, self._conjunction.topics
                share = self._memory // max(sum(map(len, kinds)), 1)
                sorters, fused, joined = (
                    {name: stack.enter_context(Sorter(share, self._scratch)) for name in names}
                    for names in kinds
                )
                self._load(part, sorters, fused, joined)
                is_last = part is self.parts[-1]
                end = NEVER if is_last else part.end
                streams = [self._notifications(topic, sorters[topic.name]) for topic in self._topics]
                streams.append(self._fusion.notifications(fused, part, is_last=is_last))
                streams.append(self._conjunction.notifications(joined, end))
                merged = heapq.merge(waiting, *streams, key=attrgetter("order"))
                waiting, known = [], self._conjunction.settled(end)
                for notification in merged:
                    if notification.event.time > known:  # a correlation may still have something to say
                        waiting.append(notification)
                        continue
                    self.passed[notification.subscription] += 1
                    yield notification
        if self.tally.rejected and not self.tally.used:
            raise InputError(
                f"not one row can be used ({self.tally.rows:,} read).  The first:\n  {self._rejects.first}\n"
                "  Map columns with --map; say how times are written with --time-format, --time-unit, --zone."
            )

    def _load(
        self, part: Part, sorters: dict[str, Sorter], fused: dict[str, Sorter], joined: dict[str, Sorter]
    ) -> None:
        """Read a part, keeping only what can matter.  [law 2]"""
        for piece in part.pieces:
            batches = read(piece.file, self._reading, self.tally, self._rejects, row_groups=piece.row_groups)
            for topic, batch in batches:
                name = topic.name
                if len(batch) and (name in sorters or name in fused or name in joined):
                    mine = [group for group in self._groups if group.topic == topic]
                    self.coverage.count(name, batch, mine)
                    rows = np.zeros(len(batch), np.bool_)
                    if name in sorters:
                        rows = np.logical_or.reduce([group.machine.matters(batch) for group in mine])
                        sorters[name].add(batch.filter(pa.array(rows)))
                    if name in fused:
                        looked_at = self._fusion.matters(name, batch, self.coverage)
                        fused[name].add(batch.filter(pa.array(looked_at)))
                        rows = rows | looked_at
                    if name in joined:
                        matching = self._conjunction.matters(name, batch, self.coverage)
                        joined[name].add(batch.filter(pa.array(matching)))
                        rows = rows | matching
                    self.kept += int(np.count_nonzero(rows))
                self._progress(self.tally)

    def misplaced(self) -> list[str]:
        """The subscriptions that not one event could concern."""
        others = self._fusion.misplaced(self.coverage) + self._conjunction.misplaced(self.coverage)
        return self.coverage.misplaced(self._groups) + others

    def _notifications(self, topic: Topic, sorter: Sorter) -> Iterator[Notification]:
        """What one topic's conditions say, in the order of an output.

        Events of one moment may be cut by a batch: what was said of the last moment waits for
        the next batch.
        """
        waiting: list[Notification] = []
        for batch in sorter.drain():
            moment = int(times(batch)[-1])
            waiting += self._stepped(topic, batch)
            waiting.sort(key=attrgetter("order"))
            settled = next((i for i, n in enumerate(waiting) if n.event.time >= moment), len(waiting))
            yield from waiting[:settled]
            del waiting[:settled]
        yield from waiting

    def _stepped(self, topic: Topic, batch: pa.RecordBatch) -> list[Notification]:
        out: list[Notification] = []
        for i, group in enumerate(self._groups):
            if group.topic == topic:
                self._states[i], passed = group.machine.step(self._states[i], batch, BEGINNING)
                out += group.addressed(transitions(topic, passed))
        return out

    def holding(self) -> list[tuple[str, str | None, Instant]]:
        """The conditions that hold at the end: (subscription, scope, since)."""
        found = [row for g, state in zip(self._groups, self._states, strict=True) for row in g.holding(state)]
        return sorted(found + self._fusion.holding(), key=lambda row: (row[0], row[1] or ""))


def replay(
    app: App | str,
    *inputs: str | Path,
    map: Mapping[str, str] | None = None,
    topic: str | None = None,
    zone: str = "UTC",
    time_format: str | None = None,
    time_unit: TimeUnit | None = None,
    lets: Mapping[str, float | int | str | bool] | None = None,
) -> Replay:
    """The notifications of a definition over files, folders and globs, as ``holdfast replay`` has them.

    ``map`` leads from our column names to theirs: ``{"source": "room"}``.
    """
    checked = check(parse(app) if isinstance(app, str) else app, lets=lets)
    reading = Reading(checked.topics, map or {}, parse_zone(zone), time_format, time_unit, topic)
    return Replay(checked, find([str(path) for path in inputs], [t.name for t in checked.topics]), reading)
