"""History in this process: files in any order and of any size, notifications in order.

The whole input is processed by (time, source, sequence); nothing is late.  Files are read part by
part (a part shares no moment with another).  Where the rows of each scope are in order already, all that
can start or end nothing is dropped as it is read, on all cores (``reduction``), and where time by itself
means nothing, operators step through the rest as it comes and only what they say is sorted; else what
satisfies no predicate is dropped, and the rest sorted.  It is sorted on disk where it is more than memory
should hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...compilers.families import on_history, operators
from ...compilers.operator import Coverage, Operator
from ...errors import InputError, UsageError
from ...files.find import InputFile, find
from ...files.from_table import in_memory, is_table
from ...files.interval import Interval, Pairing
from ...files.merge import interleaved, merged
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
from ...machines.machine import Told
from ...model.batch import times
from ...model.event import Notification
from ...model.instant import BEGINNING, NEVER, Instant
from .. import table
from .reduction import Reduction, Share, Unsorted
from .running import Running, Spoken, acquainted, finished, last_words, notifications, spoken

Name = TypeVar("Name", bound=Hashable)
Item = TypeVar("Item")

MEMORY = 128 << 20
"""How many bytes of events may wait in memory to be sorted."""
MOST_WAITING = 1 << 20
"""So many transitions that are told one by one may wait until a part has been read."""


class Replay:
    """The notifications of a history, in order: iterate, then look at what was counted.  Each pass reads the
    history from its beginning and counts anew; a pass that is begun ends one that is under way."""

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
        self.files, self.reading = files, reading
        self._rejects = rejects if rejects is not None else Rejects()
        self._memory, self._scratch, self._progress = memory, scratch, progress
        for file in files:
            inspect(file, reading)
        self.parts = closed_parts(files, reading)
        self._published = checked.published
        self._operators = operators(on_history(checked))
        self._listening: dict[str, list[Operator]] = {
            topic.name: mine
            for topic in checked.topics
            if (mine := [operator for operator in self._operators if topic.name in operator.topics])
        }
        self._apart = not any(one.heard or one.machine.is_timed for one in self._operators)
        """Whether of all events only the order inside a scope matters."""
        self._passes = 0
        self._begin()

    def _begin(self) -> None:
        """Forget what an earlier pass has read and counted."""
        self.tally = Tally()
        self.kept = 0
        """How many events satisfied some predicate."""
        self.passed: Counter[str] = Counter()
        """How many notifications each subscription had."""
        self.coverage = Coverage()
        """How many events lay in scopes."""
        self._running = acquainted([Running(one, one.machine.initial()) for one in self._operators])
        self._reduction: Reduction | None = None
        if Reduction.serves(one for one in self._operators if not one.heard):
            strict = self._rejects.strict
            self._reduction = Reduction(
                self.parts, self._listening, self.reading, memory=self._memory, strict=strict
            )
        self._reached: dict[str, Instant] = {}
        self._until = BEGINNING
        self._waiting: list[Notification] = []

    def _pass(self, items: Callable[[], Iterator[Item]]) -> Iterator[Item]:
        """One pass over the history."""
        if self._passes:
            self._rejects = Rejects(strict=self._rejects.strict)  # rows are put aside by the first pass
            if self._reduction is not None:
                self._reduction.close()
            self._begin()
        self._passes += 1
        number = self._passes
        for item in items():
            yield item
            if number != self._passes:
                raise UsageError("another pass over this replay was begun; take a replay for each of them")

    def __iter__(self) -> Iterator[Notification]:
        return self._pass(self._notifications)

    def _notifications(self) -> Iterator[Notification]:
        for number, part in enumerate(self.parts):
            with ExitStack() as stack:
                told = self._as_it_comes(number, stack)
                yield from self._stepping(number, part, stack) if told is None else self._settling(told)
        self._waiting += finished(self._running, self._reached)
        yield from self._settled(NEVER)
        self._require_use()

    def to_arrow(self, form: Form = "events") -> pa.Table:
        """The notifications as an Arrow table, a row for each event or for each interval, in the columns
        of ``holdfast replay -o x.parquet``; instead of iterating."""
        if form != "events":
            return to_arrow(self, form, self._published)
        tables = [table.schema_of(self._published).empty_table(), *self._pass(self._tables)]
        return table.to_columns(self._published, table.identified(table.ordered(pa.concat_tables(tables))))

    def _tables(self) -> Iterator[pa.Table]:
        """The notifications, by columns where they were told so."""
        for number, part in enumerate(self.parts):
            with ExitStack() as stack:
                told = self._as_it_comes(number, stack)
                for said in self._drained(told) if told is not None else self._in_order(number, part, stack):
                    yield from map(self._table, said)
        yield from map(self._table, last_words(self._running, self._reached))
        yield table.to_table(self._published, self._settled(NEVER))
        self._require_use()

    def _table(self, said: Spoken) -> pa.Table:
        """What an operator has said, as a table."""
        found = table.table_of(self._published, *said)
        for count in pc.value_counts(found.column("subscription")).to_pylist():
            self.passed[count["values"]] += count["counts"]
        return found

    def _drained(self, told: Mapping[int, Sorter]) -> Iterator[list[Spoken]]:
        """What operators have told of a part."""
        for i, sorter in told.items():
            for rows in sorter.drain():
                yield [(self._operators[i], _rows(self._operators[i], rows))]

    def readings(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The readings themselves, in order, as batches with the names of their topics, such as
        ``Engine.revise`` takes for a history; instead of iterating."""
        return self._pass(self._readings)

    def _readings(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        for part in self.parts:
            with ExitStack() as stack:
                sorters = self._sorters(stack, [topic.name for topic in self.reading.topics])
                for piece in part.pieces:
                    rows = read(
                        piece.file, self.reading, self.tally, self._rejects, row_groups=piece.row_groups
                    )
                    for topic, batch in rows:
                        sorters[topic.name].add(batch)
                yield from interleaved({name: sorter.drain() for name, sorter in sorters.items()})
        self._require_use()

    def to_pandas(self, form: Form = "events") -> Any:
        """The same as a pandas data frame."""
        return self.to_arrow(form).to_pandas()

    def intervals(self) -> list[Interval]:
        """The stretches during which conditions held, in the order in which they end, the open ones last;
        instead of iterating."""
        pairing = Pairing()
        return [*pairing.completed(self), *pairing.still_open()]

    def _settling(self, told: Mapping[int, Sorter]) -> Iterator[Notification]:
        """What operators have told of a part, one by one."""
        for i, rows, until in merged({i: sorter.drain() for i, sorter in told.items()}):
            self._waiting += self._operators[i].notifications(_rows(self._operators[i], rows))
            yield from self._settled(until)

    def _stepping(self, number: int, part: Part, stack: ExitStack) -> Iterator[Notification]:
        """What operators tell of a part that is put in order, one by one."""
        for said in self._in_order(number, part, stack):
            self._waiting += notifications(said)
            yield from self._settled(self._until)

    def _in_order(self, number: int, part: Part, stack: ExitStack) -> Iterator[list[Spoken]]:
        """Sort a part and step through it: what those who listen, and whoever hears them, have said."""
        sorters = self._sorters(stack, self._listening)
        if not self._reduced(number, partial(_sort, sorters)):
            self._load(part, sorters)
        for topic, batch, until in merged({t: sorter.drain() for t, sorter in sorters.items()}):
            self._until = until
            yield list(spoken(self._running, {topic: batch}, self._now))

    def _now(self, one: Running) -> Instant:
        return one.now(self._reached, self._until)

    def _require_use(self) -> None:
        if self.tally.rejected and not self.tally.used:
            raise InputError(
                f"not one row can be used ({self.tally.rows:,} read).  The first:\n  {self._rejects.first}\n"
                "  Map columns with --map; say how times are written with --time-format, --time-unit, --zone."
            )

    def _sorters(self, stack: ExitStack, names: Collection[Name]) -> dict[Name, Sorter]:
        share = self._memory // max(len(names), 1)
        return {name: stack.enter_context(Sorter(share, self._scratch)) for name in names}

    def _as_it_comes(self, number: int, stack: ExitStack) -> dict[int, Sorter] | None:
        """Step through a part as it is read, and gather what each operator says; nothing, and all is as it
        was, if the part must be put in order first."""
        if self._reduction is None or not self._apart:
            return None
        told = self._sorters(stack, range(len(self._running)))
        one_by_one = len(self._waiting)
        before: list[bytes] = []
        if self._reduction.splits(number):
            before = [one.operator.machine.to_bytes(one.state) for one in self._running]

        def take(share: Share) -> None:
            for i, one in enumerate(self._running):
                mine = {name: share.events[name] for name in one.operator.topics if name in share.events}
                said = one.step(mine, NEVER)
                self._waiting += one.operator.addressed(said.single)
                for passed in said.rows.values():
                    told[i].add(passed)
            if len(self._waiting) - one_by_one > MOST_WAITING:
                raise Unsorted

        if self._reduced(number, take):
            return told
        for one, state in zip(self._running, before, strict=False):
            one.state = one.operator.machine.from_bytes(state)
        for sorter in told.values():
            sorter.close()
        del self._waiting[one_by_one:]
        return None

    def _reduced(self, number: int, take: Callable[[Share], None]) -> bool:
        """Read a part and keep only what can start or end something, if its rows are in such an order."""
        if self._reduction is None:
            return False
        shares, tally = [], replace(self.tally, rejected=self.tally.rejected.copy())
        try:
            for share in self._reduction.of(number):
                take(share)
                shares.append(share.counted())
                tally.bytes += share.tally.bytes
                self._progress(tally)
        except Unsorted:
            self._reduction.close()
            self._reduction = None
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
            batches = read(piece.file, self.reading, self.tally, self._rejects, row_groups=piece.row_groups)
            for topic, batch in batches:
                if len(batch) and topic.name in sorters:
                    listening = self._listening[topic.name]
                    matters = np.logical_or.reduce(self.coverage.survey(topic.name, batch, listening))
                    self.kept += int(np.count_nonzero(matters))
                    sorters[topic.name].add(batch.filter(pa.array(matters)))
                    latest = int(times(batch).max())
                    self._reached[topic.name] = max(self._reached.get(topic.name, BEGINNING), latest)
                self._progress(self.tally)

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


def _sort(sorters: Mapping[str, Sorter], share: Share) -> None:
    for topic, events in share.events.items():
        sorters[topic].add(events)


def _rows(operator: Operator, rows: pa.RecordBatch) -> Told:
    """Rows that an operator of one topic has told."""
    (topic,) = operator.topics
    return Told({topic: rows})


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
