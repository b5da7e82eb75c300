"""Replay of a history in this process: files in any order and of any size, notifications in order.

The whole input is processed by (time, source, sequence); nothing is late. Files are read part by part, and
parts do not overlap in time.

If the rows of each scope are in order already, irrelevant rows are dropped while they are read, on all cores
(``reduction``). If also no operator uses the watermark, operators process the rest unsorted and only their
output is sorted. Otherwise rows that satisfy no predicate are dropped and the rest is sorted, on disk if it
exceeds the memory limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...definition.app import App
from ...definition.check import check
from ...definition.parse import as_app
from ...engine.graph import Graph, LocalStates, Step, Watermarks, notifications
from ...engine.machine import Emission
from ...engine.operator import Operator
from ...errors import InputError, UsageError
from ...files.find import InputFile, find
from ...files.from_table import in_memory, is_table
from ...files.interval import Interval, Pairing
from ...files.merge import interleave, merge_by_time
from ...files.plan import Part, closed_parts
from ...files.read import inspect, read
from ...files.reading import Reading, TimeUnit, parse_zone
from ...files.sort import Sorter
from ...files.tally import Rejects, Tally
from ...files.write import Form, to_arrow
from ...lang.condition import Checked
from ...model.batch import times
from ...model.event import Notification
from ...model.instant import NEVER, Instant
from ...plan.compile import on_history, operators
from ...plan.pushdown import Coverage, Pushdown, satisfying
from .. import table
from .reduction import Reduction, Share

Name = TypeVar("Name", bound=Hashable)
Item = TypeVar("Item")

MEMORY = 128 << 20
"""The limit in bytes for events that wait in memory to be sorted."""


class Replay:
    """The notifications of a history, in order. Iterate, then read the counters.

    Each pass reads the history from its beginning and resets the counters. A new pass ends an earlier one.
    """

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
        self._published = checked.output_topics
        self._operators = operators(on_history(checked))
        self._graph = Graph(dict(enumerate(self._operators)))
        inputs = {i: operator for i, operator in enumerate(self._operators) if not operator.upstream_topics}
        self._pushdown = Pushdown(inputs)
        self._apart = not any(
            operator.upstream_topics or operator.machine.traits.uses_watermark for operator in self._operators
        )
        """Whether the order of events of different scopes is irrelevant."""
        self._passes = 0
        self._begin()

    def _begin(self) -> None:
        """Reset readers, operators and counters."""
        self.tally = Tally()
        self.kept = 0
        """The number of events that satisfied a predicate."""
        self.passed: Counter[str] = Counter()
        """The number of notifications of each condition."""
        self.coverage = Coverage()
        """The numbers of events inside and outside of scopes."""
        self._states, self._watermarks = LocalStates(self._graph), Watermarks()
        self._reduction: Reduction | None = None
        if self._pushdown.compacts:
            strict = self._rejects.strict
            self._reduction = Reduction(
                self.parts, self._pushdown, self.reading, memory=self._memory, strict=strict
            )
        self._waiting: list[Notification] = []

    def _pass(self, items: Callable[[], Iterator[Item]]) -> Iterator[Item]:
        """Run one pass over the history, and yield what `items` yields."""
        if self._passes:
            self._rejects = Rejects(strict=self._rejects.strict)  # only the first pass writes rejected rows
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
                shares, sorters = self._read(number, part, stack)
                if shares is not None:
                    yield from self._merge(self._run_presorted(shares, stack))
                else:
                    for steps in self._run_sorted(sorters):
                        self._waiting += notifications(steps)
                        yield from self._take_final(self._watermarks.limit)
        self._waiting += notifications(self._finish())
        yield from self._take_final(NEVER)
        self._require_use()

    def to_arrow(self, form: Form = "events") -> pa.Table:
        """Return the notifications as an Arrow table, with one row per event or per interval.

        The columns are those of ``holdfast replay -o x.parquet``. Call it instead of iterating.
        """
        if form != "events":
            return to_arrow(self, form, self._published)
        tables = [table.schema_of(self._published).empty_table(), *self._pass(self._tables)]
        return table.to_columns(self._published, table.add_ids(table.sort_rows(pa.concat_tables(tables))))

    def _tables(self) -> Iterator[pa.Table]:
        """Yield the notifications as tables; columnar output is not converted to objects."""
        for number, part in enumerate(self.parts):
            with ExitStack() as stack:
                shares, sorters = self._read(number, part, stack)
                if shares is not None:
                    for i, sorter in self._run_presorted(shares, stack).items():
                        for rows in sorter.drain():
                            emission = _rows(self._operators[i], rows)
                            yield self._table(Step(i, self._operators[i], emission))
                else:
                    for steps in self._run_sorted(sorters):
                        yield from map(self._table, steps)
        yield from map(self._table, self._finish())
        yield table.to_table(self._published, self._take_final(NEVER))
        self._require_use()

    def _finish(self) -> list[Step]:
        """Advance all operators to the end of the history, and return their steps."""
        self._watermarks.limit = NEVER
        return self._graph.run(self._states, {}, self._watermarks, final=True).steps

    def _table(self, step: Step) -> pa.Table:
        """Convert the emission of an operator to a table, and count its notifications."""
        found = table.table_of(self._published, step.operator, step.emission)
        for count in pc.value_counts(found.column("subscription")).to_pylist():
            self.passed[count["values"]] += count["counts"]
        return found

    def readings(self) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yield the readings in order, as batches with the names of their topics, for ``Engine.revise``.

        Call it instead of iterating.
        """
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
                yield from interleave({name: sorter.drain() for name, sorter in sorters.items()})
        self._require_use()

    def to_pandas(self, form: Form = "events") -> Any:
        """Return the notifications as a pandas data frame. Call it instead of iterating."""
        return self.to_arrow(form).to_pandas()

    def intervals(self) -> list[Interval]:
        """Return the intervals of conditions, ordered by their ends; open ones are last.

        Call it instead of iterating.
        """
        pairing = Pairing()
        return [*pairing.pair(self), *pairing.still_open()]

    # --- one part: read, compact, sort if necessary ---

    def _read(
        self, number: int, part: Part, stack: ExitStack
    ) -> tuple[list[Share] | None, dict[str, Sorter]]:
        """Read a part. Return its shares if it need not be sorted, else its rows in sorters by topic.

        Each scope of the shares is in order. The shares are in memory. They are sorted instead if they are
        too large, or if operators compare scopes or use watermarks.
        """
        sorters = self._sorters(stack, self._pushdown.consumers)
        if self._reduction is None:
            self._load(part, sorters)
            return None, sorters
        held, counts, size = list[Share](), list[Share](), 0
        tally = replace(self.tally, rejected=self.tally.rejected.copy())
        for share in self._reduction.of(number):
            if share is None:  # read again, and sort
                self._reduction = None
                sorters = self._sorters(stack, self._pushdown.consumers)
                self._load(part, sorters)
                return None, sorters
            counts.append(share.counts())
            size += share.bytes
            held.append(share)
            if not self._apart or size > self._memory:
                for waiting in held:
                    for topic, events in waiting.events.items():
                        sorters[topic].add(events)
                held.clear()
            tally.bytes += share.tally.bytes
            self._progress(tally)
        for share in counts:
            self._count(share)
        return (None if len(held) < len(counts) else held), sorters

    def _run_presorted(self, shares: Iterable[Share], stack: ExitStack) -> dict[int, Sorter]:
        """Run the operators on the unsorted shares of a part.

        Return sorters with the output of each operator.
        """
        found = self._sorters(stack, range(len(self._operators)))
        for share in shares:
            for step in self._graph.run(self._states, share.events, self._watermarks).steps:
                self._waiting += step.operator.address(step.emission.single)
                for rows in step.emission.rows.values():
                    found[step.id].add(rows)
        return found

    def _run_sorted(self, sorters: Mapping[str, Sorter]) -> Iterator[list[Step]]:
        """Run the operators on the rows of a part in order, and yield their steps."""
        for topic, batch, until in merge_by_time({t: sorter.drain() for t, sorter in sorters.items()}):
            self._watermarks.limit = until
            yield self._graph.run(self._states, {topic: batch}, self._watermarks).steps

    def _merge(self, emitted: Mapping[int, Sorter]) -> Iterator[Notification]:
        """Yield the notifications of a part in order."""
        for i, rows, until in merge_by_time({i: sorter.drain() for i, sorter in emitted.items()}):
            self._waiting += self._operators[i].notifications(_rows(self._operators[i], rows))
            yield from self._take_final(until)

    def _require_use(self) -> None:
        if self.tally.rejected and not self.tally.used:
            raise InputError(
                f"not one row can be used ({self.tally.rows:,} read).  The first:\n  {self._rejects.first}\n"
                "  Map columns with --map; say how times are written with --time-format, --time-unit, --zone."
            )

    def _sorters(self, stack: ExitStack, names: Collection[Name]) -> dict[Name, Sorter]:
        share = self._memory // max(len(names), 1)
        return {name: stack.enter_context(Sorter(share, self._scratch)) for name in names}

    def _count(self, share: Share) -> None:
        self.tally.add(share.tally)
        self.coverage.add(share.coverage)
        self.kept += share.kept
        for row in share.rejects.rows:
            self._rejects.write(*row)
        for topic, latest in share.watermarks.items():
            self._watermarks.advance(topic, latest)

    def _load(self, part: Part, sorters: Mapping[str, Sorter]) -> None:
        """Read a part into sorters, without the rows that satisfy no predicate."""
        for piece in part.pieces:
            batches = read(piece.file, self.reading, self.tally, self._rejects, row_groups=piece.row_groups)
            for topic, batch in batches:
                if len(batch) and topic.name in sorters:
                    relevances = self._pushdown.relevance(topic.name, batch, self.coverage)
                    relevant = satisfying(relevances)
                    self.kept += int(np.count_nonzero(relevant))
                    sorters[topic.name].add(batch.filter(pa.array(relevant)))
                    self._watermarks.advance(topic.name, int(times(batch).max()))
                self._progress(self.tally)

    def _take_final(self, until: Instant) -> list[Notification]:
        """Return the waiting notifications, in order, that no later notification can precede.

        ``until`` is the watermark.
        """
        margin = max((operator.machine.traits.lookaround or 0 for operator in self._operators), default=0)
        self._waiting.sort(key=attrgetter("order"))
        known = until if until == NEVER else min(until - margin, *self._due())
        final = next((i for i, n in enumerate(self._waiting) if n.event.time >= known), len(self._waiting))
        ready, self._waiting = self._waiting[:final], self._waiting[final:]
        self.passed.update(notification.subscription for notification in ready)
        return ready

    def _due(self) -> Iterator[Instant]:
        """Yield the due times of operators with timers.

        Each timer advances with the readings of the operator's own topics.
        """
        yield NEVER
        for i, operator in enumerate(self._operators):
            if operator.machine.traits.uses_watermark and (due := self._states.due(i)) is not None:
                yield due

    def misplaced(self) -> list[str]:
        """Return the conditions of which every event lay outside their scopes."""
        return self.coverage.out_of_scope(self._operators)

    def holding(self) -> list[tuple[str, str | None, Instant]]:
        """Return the scopes that are active at the end: (subscription, scope, start)."""
        found = [
            row for i, operator in enumerate(self._operators) for row in operator.active(self._states.take(i))
        ]
        return sorted(found, key=lambda row: (row[0], row[1] or ""))


def _rows(operator: Operator, rows: pa.RecordBatch) -> Emission:
    """Return the output rows of an operator over one topic as an emission."""
    (topic,) = operator.topics
    return Emission({topic: rows})


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
    """Replay a definition over files, folders and globs, or over tables of pyarrow, pandas or polars.

    The options are those of ``holdfast replay``. ``map`` leads from Holdfast's column names to those of the
    input: ``{"source": "room"}``.
    """
    checked = check(as_app(app), lets=lets, tables=tables)
    reading = Reading(checked.topics, map or {}, parse_zone(zone), time_format, time_unit, topic, wide)
    return Replay(checked, _found(inputs, [t.name for t in checked.topics]), reading)


def _found(inputs: Sequence[Any], topics: Sequence[str]) -> list[InputFile]:
    """Return the input files, or the tables as input files. Raises ``UsageError`` for a mixture."""
    if not any(map(is_table, inputs)):
        return find([str(path) for path in inputs], topics)
    if not all(map(is_table, inputs)):
        raise UsageError("give files or tables, not both: nobody could say who comes first at one moment")
    return [in_memory(table, rank) for rank, table in enumerate(inputs)]
