"""Reading history: files are read with Arrow inside the executor and reduced as they are read.

What leaves a reader is packed (see ``pack``), with one more row that reports what was read, what
was rejected, and what went wrong.  Where some operator needs nearly all of it, in any order, only what
matters to nobody is dropped, and a part is read in one go.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import chain

import msgspec
import numpy as np
import pyarrow as pa

from ....compilers.following import Following, extent
from ....compilers.operator import Operator
from ....errors import HoldfastError
from ....files.plan import Part
from ....files.reading import Reading
from ....files.sort import Sorter
from ....model.batch import concatenate, times
from ....model.instant import BEGINNING
from ..numbering import numbered
from ..pack import REPORT, Mine, row
from ..plan import Work
from ..reading import Reader

MEMORY = 128 << 20
ROWS = 1 << 20
"""How many rows are read at a time: each time costs a look at all names of sources."""
MOST_HELD = 256 << 20
"""How many bytes of reduced events may wait in memory until a part is read."""
PUT_ASIDE = 1 << 14
"""How many rows that cannot be used go on at a time."""
REJECTED = pa.schema(
    [("file", pa.int32()), ("row", pa.int64()), ("reason", pa.string()), ("data", pa.string())]
)
Unable = tuple[int, int, str, str]
"""A row that cannot be used: the rank of its file, where it stands there, why, and what it says, as JSON."""


@dataclass(frozen=True)
class Task:
    """What one reader reads.  Only of a closed part may more be dropped than what satisfies no
    predicate."""

    part: Part
    closed: bool


@dataclass(frozen=True)
class Job:
    """A replay as its readers need it: plain values, which travel."""

    work: Work
    reading: Reading
    tasks: tuple[Task, ...]
    shards: int
    strict: bool = False
    rejects_kept: int | None = 0
    """How many bytes of rows that cannot be used a reader may report."""
    numbers: bool = False
    """Whether rows are numbered by what they say, instead of by where they stand."""

    def reader(self) -> Reader:
        """One of its readers."""
        return Reader(self.work, strict=self.strict, rejects_kept=self.rejects_kept)


def run(job: Job, number: int, most: int | None = None) -> Iterator[pa.RecordBatch]:
    """Read a task: packed events, no more than so many bytes of them, how far time has come, then the
    report."""
    reader, size, failed = job.reader(), 0, None
    try:
        for events in reader.spread(chosen(job, job.tasks[number], reader), job.shards):
            size += events.column("events").nbytes
            if most is None or size <= most:
                yield events
    except HoldfastError as error:
        failed = (error.exit_status, str(error))
    yield row(REPORT, number, msgspec.msgpack.encode(reader.report(packed=size, failed=failed)))


def rejected(job: Job, number: int) -> Iterator[pa.RecordBatch]:
    """The rows of a task that cannot be used, some at a time."""
    task, reader = job.tasks[number], replace(job, rejects_kept=None).reader()
    ranks = {piece.file.path: piece.file.rank for piece in task.part.pieces}
    for _ in chain(_read(job, task, reader), [None]):  # after the last there may be more
        rows = [(ranks[path], *said) for path, *said in reader.rejects.drain()]
        if rows:
            columns = map(pa.array, zip(*rows, strict=True), REJECTED.types)
            yield from pa.table([*columns], REJECTED).to_batches(PUT_ASIDE)


def chosen(job: Job, task: Task, reader: Reader) -> Iterator[Mine]:
    """What can matter to each operator, completed by what was not read at first; some at a time, as it may
    be wide."""
    files = {piece.file.rank: piece.file for piece in task.part.pieces}.values()
    for mine in _reduced(job, task, reader):
        for at in range(0, len(mine.events), ROWS):
            some = reader.complete(mine._replace(events=mine.events.slice(at, ROWS)), files, job.reading)
            if job.numbers:
                some = some._replace(events=numbered(some.operator.topics[some.topic], some.events))
            yield some


def _reduced(job: Job, task: Task, reader: Reader) -> Iterator[Mine]:
    """Of a closed part what can matter at all; else what satisfies a predicate."""
    if not (task.closed and all(one.compacts for one in job.work.operators.values())):
        for topic, batch in _read(job, task, reader):
            yield from reader.take(topic, batch)
        return
    found = _as_it_comes(job, task, reader)
    if found is None:
        reader.forget()
        yield from _sorted(job, task, reader)
    else:
        yield from found


def _read(
    job: Job, task: Task, reader: Reader, *, whole: bool = False
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """What the pieces hold of topics to which somebody listens."""
    how = {"decisive": None} if whole else {}
    for piece in task.part.pieces:
        yield from reader.read(piece.file, job.reading, row_groups=piece.row_groups, chunk_rows=ROWS, **how)


def _as_it_comes(job: Job, task: Task, reader: Reader) -> Iterator[Mine] | None:
    """The reduced events of a part in which each scope is in order; nothing if one is not, if too much would
    have to wait until that is known, or if their order depends on what is read later."""
    reduced = Reduced(job.work, task.part)
    following = {number: Following(rising=job.numbers) for number in job.work.operators}
    for topic, batch in _read(job, task, reader):
        for number, operator in job.work.listening[topic]:
            found = extent(operator, topic, batch, rising=job.numbers)
            if found is None or not following[number].takes(found):
                return None
        reader.look(topic, batch)
        reduced.add(topic, batch)
        if reduced.bytes > MOST_HELD:
            return None
    return reduced.drain()


def _sorted(job: Job, task: Task, reader: Reader) -> Iterator[Mine]:
    """The reduced events of a part in any order."""
    topics = job.work.listening
    with ExitStack() as stack:
        sorters = {name: stack.enter_context(Sorter(MEMORY // len(topics))) for name in topics}
        for topic, batch in _read(job, task, reader, whole=job.numbers):
            if job.numbers:
                batch = numbered(job.work.listening[topic][0][1].topics[topic], batch)
            matters = np.logical_or.reduce(reader.look(topic, batch))
            sorters[topic].add(batch.filter(pa.array(matters)))
        reduced = Reduced(job.work, task.part)
        for topic, sorter in sorters.items():
            for batch in sorter.drain():
                reduced.add(topic, batch)
                if reduced.bytes > MOST_HELD:
                    yield from reduced.drain()
        yield from reduced.drain()


class Reduced:
    """The events of a closed part that can matter, gathered stretch by stretch, each scope in order.

    At a moment that is shared with another part nothing is closed: there all stay that satisfy a
    predicate.
    """

    def __init__(self, work: Work, part: Part) -> None:
        self.bytes = 0
        self._work, self._part = work, part
        self._inside: dict[int, list[pa.RecordBatch]] = {}
        self._at_ends: dict[int, list[pa.RecordBatch]] = {}

    def add(self, topic: str, batch: pa.RecordBatch) -> None:
        """Take a stretch of a topic which follows all before in each scope."""
        at_end = np.isin(times(batch), self._part.shared)
        edge = batch.filter(pa.array(at_end))
        inside = batch.filter(pa.array(~at_end)) if len(edge) else batch
        for number, operator in self._work.listening[topic]:
            reduce = operator.machine.reduce
            self._keep(self._inside, number, _in_order(operator, topic, inside))
            if len(edge):
                self._keep(self._at_ends, number, reduce({topic: edge}, closed=False)[topic])

    def _keep(self, where: dict[int, list[pa.RecordBatch]], number: int, batch: pa.RecordBatch) -> None:
        if len(batch):
            where.setdefault(number, []).append(batch)
            self.bytes += batch.nbytes

    def drain(self) -> Iterator[Mine]:
        """All that was gathered, operator by operator; forgets it."""
        inside, at_ends, self._inside, self._at_ends, self.bytes = self._inside, self._at_ends, {}, {}, 0
        for topic, listening in self._work.listening.items():
            for number, operator in listening:
                if number in inside:
                    whole = _in_order(operator, topic, concatenate(inside[number]))
                    yield Mine(number, operator, topic, operator.needed(topic, whole))
                if number in at_ends:
                    whole = concatenate(at_ends[number])
                    yield Mine(number, operator, topic, operator.needed(topic, whole))


def _in_order(operator: Operator, topic: str, batch: pa.RecordBatch) -> pa.RecordBatch:
    """What of a closed part of a history can matter: nothing that is taken before it is later."""
    latest = int(times(batch).min()) if len(batch) else BEGINNING
    return operator.machine.reduce({topic: batch}, latest=latest)[topic]
