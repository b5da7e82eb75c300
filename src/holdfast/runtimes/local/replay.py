"""History in this process: files in any order and of any size, notifications in order.

The whole input is processed by (time, source, sequence); nothing is late.  Files are read part by
part (a part shares no moment with another).  Where the rows of each scope are in order already, all that
can start or end nothing is dropped as it is read, on all cores (``reduction``); else what satisfies no
predicate.  The rest is sorted, on disk where it is more than memory should hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ...compilers.families import on_history, operators
from ...compilers.operator import Coverage, Operator
from ...errors import InputError, UsageError
from ...files.find import InputFile, find
from ...files.from_table import in_memory, is_table
from ...files.interval import Interval, Pairing
from ...files.merge import merged
from ...files.plan import Part, closed_parts
from ...files.read import inspect, read
from ...files.reading import Reading, TimeUnit, parse_zone
from ...files.sort import Sorter
from ...files.tally import Rejects, Tally
from ...files.write import Form, to_arrow
from ...lang.app import App
from ...lang.check import check
from ...lang.condition import Checked
from ...lang.parse import as_app
from ...machines.machine import Batches
from ...model.batch import from_events, times, with_progress
from ...model.event import Notification
from ...model.instant import BEGINNING, NEVER, Instant
from .reduction import Reduction, Share, Unsorted
from .running import Heard, Running, gathered, passed_on

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
        progress: Callable[[Tally], None] = lambda _tally: None,
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
        self._published = checked.published
        self._operators = operators(on_history(checked))
        self._running = [Running(one, one.machine.initial()) for one in self._operators]
        self._listening: dict[str, list[Operator]] = {
            topic.name: mine
            for topic in checked.topics
            if (mine := [operator for operator in self._operators if topic.name in operator.topics])
        }
        self._reduction: Reduction | None = None
        if Reduction.serves(one for one in self._operators if not one.heard):
            strict = self._rejects.strict
            self._reduction = Reduction(self.parts, self._listening, reading, memory=memory, strict=strict)
        self._reached: dict[str, Instant] = {}
        self._waiting: list[Notification] = []

    def __iter__(self) -> Iterator[Notification]:
        for number, part in enumerate(self.parts):
            with ExitStack() as stack:
                share = self._memory // max(len(self._listening), 1)
                sorters = {
                    topic: stack.enter_context(Sorter(share, self._scratch)) for topic in self._listening
                }
                if not self._reduced(number, sorters):
                    self._load(part, sorters)
                for topic, batch, until in merged({t: sorter.drain() for t, sorter in sorters.items()}):
                    self._step({topic: batch}, until)
                    yield from self._settled(until)
        self._finish()
        yield from self._settled(NEVER)
        if self.tally.rejected and not self.tally.used:
            raise InputError(
                f"not one row can be used ({self.tally.rows:,} read).  The first:\n  {self._rejects.first}\n"
                "  Map columns with --map; say how times are written with --time-format, --time-unit, --zone."
            )

    def to_arrow(self, form: Form = "events") -> pa.Table:
        """The notifications as an Arrow table, a row for each event or for each interval, in the columns
        of ``holdfast replay -o x.parquet``; instead of iterating."""
        return to_arrow(self, form, self._published)

    def to_pandas(self, form: Form = "events") -> Any:
        """The same as a pandas data frame."""
        return self.to_arrow(form).to_pandas()

    def intervals(self) -> list[Interval]:
        """The stretches during which conditions held, in the order in which they end, the open ones last;
        instead of iterating."""
        pairing = Pairing()
        return [*pairing.completed(self), *pairing.still_open()]

    def _reduced(self, number: int, sorters: Mapping[str, Sorter]) -> bool:
        """Read a part and keep only what can start or end something, if its rows are in such an order."""
        if self._reduction is None:
            return False
        shares, tally = [], replace(self.tally, rejected=self.tally.rejected.copy())
        try:
            for share in self._reduction.of(number):
                shares.append(share)
                for topic, events in share.events.items():
                    sorters[topic].add(events)
                tally.bytes += share.tally.bytes
                self._progress(tally)
        except Unsorted:
            self._reduction.close()
            self._reduction = None
            for sorter in sorters.values():
                sorter.close()
            return False
        for share in shares:
            self._count(share)
        return True

    def _count(self, share: Share) -> None:
        self.tally.add(share.tally)
        self.coverage.add(share.coverage)
        self.kept += share.kept
        for row in share.aside.rows:
            self._rejects.write(*row)
        for topic, latest in share.reached.items():
            self._reached[topic] = max(self._reached.get(topic, BEGINNING), latest)

    def _load(self, part: Part, sorters: Mapping[str, Sorter]) -> None:
        """Read a part, keeping only what can matter.  [law 2]"""
        for piece in part.pieces:
            batches = read(piece.file, self._reading, self.tally, self._rejects, row_groups=piece.row_groups)
            for topic, batch in batches:
                if len(batch) and topic.name in sorters:
                    listening = self._listening[topic.name]
                    matters = np.logical_or.reduce(self.coverage.survey(topic.name, batch, listening))
                    self.kept += int(np.count_nonzero(matters))
                    sorters[topic.name].add(batch.filter(pa.array(matters)))
                    latest = int(times(batch).max())
                    self._reached[topic.name] = max(self._reached.get(topic.name, BEGINNING), latest)
                self._progress(self.tally)

    def _step(self, batches: Batches, until: Instant) -> None:
        """Step every operator that listens, and whoever hears it; what they say waits to be put in order."""
        self._waiting += passed_on(
            self._running, dict(batches), lambda one: min(until, one.now(self._reached))
        )

    def _finish(self) -> None:
        """Time ends with the last reading, whether it mattered or not."""
        heard: Heard = {}
        for one in self._running:
            operator = one.operator
            mine = {name: batch for name, batch in heard.items() if name in operator.topics}
            if operator.machine.is_timed:
                topic = next(iter(operator.topics.values()))
                ends = [self._reached[name] for name in operator.clock if name in self._reached]
                batch = mine.get(topic.name, from_events(topic, []))
                mine[topic.name] = with_progress(batch, len(batch), max(ends, default=None))
            if mine:
                told = one.step(mine, NEVER)
                gathered(heard, operator.retold(told))
                self._waiting += operator.notifications(told)

    def _settled(self, until: Instant) -> list[Notification]:
        """What nothing that is still to be said stands before, once time has come so far."""
        margin = max((operator.machine.margin or 0 for operator in self._operators), default=0)
        self._waiting.sort(key=attrgetter("order"))
        known = until if until == NEVER else min(until - margin, *self._due())
        settled = next((i for i, n in enumerate(self._waiting) if n.event.time >= known), len(self._waiting))
        told, self._waiting = self._waiting[:settled], self._waiting[settled:]
        self.passed.update(notification.subscription for notification in told)
        return told

    def _due(self) -> Iterator[Instant]:
        """When those who mind time may speak next: it goes on for each with readings of its own topics."""
        yield NEVER
        for one in self._running:
            machine = one.operator.machine
            if machine.is_timed and (due := machine.due(one.state)) is not None:
                yield due

    def misplaced(self) -> list[str]:
        """The subscriptions that not one event could concern."""
        return self.coverage.misplaced(self._operators)

    def holding(self) -> list[tuple[str, str | None, Instant]]:
        """The conditions that hold at the end: (subscription, scope, since)."""
        found = [row for one in self._running for row in one.operator.holding(one.state)]
        return sorted(found, key=lambda row: (row[0], row[1] or ""))


def replay(
    app: App | str,
    *inputs: Any,
    map: Mapping[str, str] | None = None,
    topic: str | None = None,
    zone: str = "UTC",
    time_format: str | None = None,
    time_unit: TimeUnit | None = None,
    wide: bool = False,
    lets: Mapping[str, float | int | str | bool] | None = None,
    tables: Mapping[str, Any] | None = None,
) -> Replay:
    """The notifications of a definition over files, folders and globs, as ``holdfast replay`` has them, or
    over tables: those of pyarrow, or data frames of pandas or polars.

    ``map`` leads from our column names to theirs: ``{"source": "room"}``.
    """
    checked = check(as_app(app), lets=lets, tables=tables)
    reading = Reading(checked.topics, map or {}, parse_zone(zone), time_format, time_unit, topic, wide)
    return Replay(checked, _found(inputs, [t.name for t in checked.topics]), reading)


def _found(inputs: Sequence[Any], topics: Sequence[str]) -> list[InputFile]:
    """The files that are named, or the tables that are given."""
    if not any(map(is_table, inputs)):
        return find([str(path) for path in inputs], topics)
    if not all(map(is_table, inputs)):
        raise UsageError("give files or tables, not both: nobody could say who comes first at one moment")
    return [in_memory(table, rank) for rank, table in enumerate(inputs)]
