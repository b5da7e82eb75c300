"""The readers of a history: they read files with Arrow inside the executors and compact them as they read.

Each reader returns packets (see `pack`), the last of which is its report. If some operator needs nearly all
rows in any order, only rows that are relevant to no operator are dropped, and a part is read in one go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain

import msgspec
import numpy as np
import pyarrow as pa

from ....engine.machine import Relevance, compact_part, keep_rows, may_be_late
from ....engine.operator import Operator
from ....errors import HoldfastError
from ....files.plan import Part
from ....files.reading import Reading
from ....files.sort import Sorter
from ....model.batch import concatenate, times
from ....model.instant import BEGINNING
from ....plan.presorted import Following, extent
from ....plan.pushdown import satisfying
from ..job import Job
from ..numbering import number_rows
from ..pack import OperatorEvents, PacketKind, packet_row
from ..reading import Reader

MEMORY = 128 << 20
ROWS = 1 << 20
"""How many rows are read at a time: each time costs a look at all names of sources."""
MOST_IN_MEMORY = 256 << 20
"""How many bytes of reduced events may wait in memory until a part is read."""
REJECTS_AT_ONCE = 1 << 14
"""How many rows that cannot be used go on at a time."""
REJECTED = pa.schema(
    [("file", pa.int32()), ("row", pa.int64()), ("reason", pa.string()), ("data", pa.string())]
)
RejectedRow = tuple[int, int, str, str]
"""A row that cannot be used: the rank of its file, where it stands there, why, and what it says, as JSON."""


@dataclass(frozen=True)
class Task:
    """The part of a history that one reader reads.

    Rows that cannot change the output may be dropped only if the part is `closed`.
    """

    part: Part
    closed: bool


@dataclass(frozen=True)
class ReadJob:
    """All that a reader needs for its part of a replay. It is pickled to the executors."""

    job: Job
    reading: Reading
    tasks: tuple[Task, ...]
    shards: int
    strict: bool = False
    rejects_limit: int | None = 0
    """How many bytes of rows that cannot be used a reader may report."""
    numbers: bool = False
    """Whether rows are numbered by what they say, instead of by where they stand."""

    def reader(self) -> Reader:
        """Return a new reader with the job's settings."""
        return Reader(self.job, strict=self.strict, rejects_limit=self.rejects_limit)


def read_task(read_job: ReadJob, number: int, most: int | None = None) -> Iterator[pa.RecordBatch]:
    """Read a task. Yield the packed events, at most `most` bytes of them, then the watermarks and the
    report.
    """
    reader, size, failed = read_job.reader(), 0, None
    try:
        for events in reader.pack_history(
            select_events(read_job, read_job.tasks[number], reader), read_job.shards
        ):
            size += events.column("payload").nbytes
            if most is None or size <= most:
                yield events
    except HoldfastError as error:
        failed = (error.exit_status, str(error))
    report = reader.report(packed=size, failed=failed)
    yield packet_row(PacketKind.REPORT, number, msgspec.msgpack.encode(report))


def read_rejects(read_job: ReadJob, number: int) -> Iterator[pa.RecordBatch]:
    """Yield the rejected rows of a task, a batch at a time."""
    task, reader = read_job.tasks[number], replace(read_job, rejects_limit=None).reader()
    ranks = {piece.file.path: piece.file.rank for piece in task.part.pieces}
    for _ in chain(_read(read_job, task, reader), [None]):  # after the last there may be more
        rows = [(ranks[path], *details) for path, *details in reader.rejects.drain()]
        if rows:
            columns = map(pa.array, zip(*rows, strict=True), REJECTED.types)
            yield from pa.table([*columns], REJECTED).to_batches(REJECTS_AT_ONCE)


def select_events(read_job: ReadJob, task: Task, reader: Reader) -> Iterator[OperatorEvents]:
    """Yield the relevant events of each operator with all needed columns.

    They are yielded a batch at a time, because rows may be wide.
    """
    files = {piece.file.rank: piece.file for piece in task.part.pieces}.values()
    for selected in _compact_task(read_job, task, reader):
        for at in range(0, len(selected.events), ROWS):
            batch = reader.complete(
                selected._replace(events=selected.events.slice(at, ROWS)), files, read_job.reading
            )
            if read_job.numbers:
                batch = batch._replace(events=number_rows(batch.operator.topics[batch.topic], batch.events))
            yield batch


def _compact_task(read_job: ReadJob, task: Task, reader: Reader) -> Iterator[OperatorEvents]:
    """Yield the events that are relevant in a task.

    In a closed part these are the events that can change the output, otherwise those that satisfy a
    predicate.
    """
    if not (task.closed and all(operator.compacts for operator in read_job.job.operators.values())):
        for topic, batch in _read(read_job, task, reader):
            yield from reader.select(topic, batch)
        return
    found = _compact_in_order(read_job, task, reader)
    if found is None:
        reader.reset()
        yield from _compact_sorted(read_job, task, reader)
    else:
        yield from found


def _read(
    read_job: ReadJob, task: Task, reader: Reader, *, whole: bool = False
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield the batches of topics that some operator consumes."""
    how = {"decisive": None} if whole else {}
    for piece in task.part.pieces:
        yield from reader.read(
            piece.file, read_job.reading, row_groups=piece.row_groups, chunk_rows=ROWS, **how
        )


def _compact_in_order(read_job: ReadJob, task: Task, reader: Reader) -> Iterator[OperatorEvents] | None:
    """Compact a part whose scopes are in order, without sorting it.

    Return `None` if a scope is not in order, or if the order depends on rows that are read later. Also return
    `None` if too many rows would have to wait in memory until the order is known.
    """
    compaction = Compaction(read_job.job, task.part)
    following = {number: Following(rising=read_job.numbers) for number in read_job.job.operators}
    for topic, batch in _read(read_job, task, reader):
        for number, operator in read_job.job.pushdown.consumers[topic]:
            found = extent(operator, topic, batch, rising=read_job.numbers)
            if found is None or not following[number].takes(found):
                return None
        compaction.add(topic, batch, reader.evaluate(topic, batch))
        if compaction.bytes > MOST_IN_MEMORY:
            return None
    return compaction.drain()


def _compact_sorted(read_job: ReadJob, task: Task, reader: Reader) -> Iterator[OperatorEvents]:
    """Sort the events of a part, then compact it."""
    topics = read_job.job.pushdown.consumers
    with ExitStack() as stack:
        sorters = {name: stack.enter_context(Sorter(MEMORY // len(topics))) for name in topics}
        for topic, batch in _read(read_job, task, reader, whole=read_job.numbers):
            if read_job.numbers:
                batch = number_rows(read_job.job.pushdown.consumers[topic][0][1].topics[topic], batch)
            relevant = satisfying(reader.evaluate(topic, batch))
            sorters[topic].add(batch.filter(pa.array(relevant)))
        compaction = Compaction(read_job.job, task.part)
        for topic, sorter in sorters.items():
            for batch in sorter.drain():
                compaction.add(topic, batch)
                if compaction.bytes > MOST_IN_MEMORY:
                    yield from compaction.drain()
        yield from compaction.drain()


class Compaction:
    """Collects the events of a closed part that can change the output. Add the events of each scope in order.

    At a time that is shared with another part, nothing is closed: all events that satisfy a predicate remain.
    """

    def __init__(self, job: Job, part: Part) -> None:
        self.bytes = 0
        self._job, self._part = job, part
        self._inside: dict[int, list[pa.RecordBatch]] = {}
        self._at_ends: dict[int, list[pa.RecordBatch]] = {}

    def add(self, topic: str, batch: pa.RecordBatch, relevances: Sequence[Relevance] | None = None) -> None:
        """Add rows of a topic that follow all earlier rows of their scopes.

        `relevances` has their relevance if known.
        """
        at_end = np.isin(times(batch), self._part.shared)
        inside = batch.filter(pa.array(~at_end)) if at_end.any() else batch
        consumers = self._job.pushdown.consumers[topic]
        relevances_or_none = [None] * len(consumers) if relevances is None or at_end.any() else relevances
        for (number, operator), relevance in zip(consumers, relevances_or_none, strict=True):
            self._append(self._inside, number, _compact(operator, topic, inside, relevance))
            if at_end.any():
                edge = {topic: batch.filter(pa.array(at_end))}
                self._append(self._at_ends, number, compact_part(operator.machine, edge, closed=False)[topic])

    def _append(self, where: dict[int, list[pa.RecordBatch]], number: int, batch: pa.RecordBatch) -> None:
        if len(batch):
            where.setdefault(number, []).append(batch)
            self.bytes += batch.nbytes

    def drain(self) -> Iterator[OperatorEvents]:
        """Remove and return the collected events, operator by operator."""
        inside, at_ends, self._inside, self._at_ends, self.bytes = self._inside, self._at_ends, {}, {}, 0
        for topic, listening in self._job.pushdown.consumers.items():
            for number, operator in listening:
                if number in inside:
                    whole = _compact(operator, topic, concatenate(inside[number]))
                    yield OperatorEvents(number, operator, topic, operator.project(topic, whole))
                if number in at_ends:
                    whole = concatenate(at_ends[number])
                    yield OperatorEvents(number, operator, topic, operator.project(topic, whole))


def _compact(
    operator: Operator, topic: str, batch: pa.RecordBatch, relevance: Relevance | None = None
) -> pa.RecordBatch:
    """Return the rows of a closed part that can change the output. No earlier row is later than its first."""
    latest = int(times(batch).min()) if len(batch) else BEGINNING
    if relevance is None:
        return compact_part(operator.machine, {topic: batch}, latest=latest)[topic]
    return keep_rows(batch, relevance.decides | may_be_late(operator.machine, batch, latest))
