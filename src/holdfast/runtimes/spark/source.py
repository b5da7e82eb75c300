"""Reading history: files are read with Arrow inside the executor and reduced as they are read.

What leaves a reader is packed (see ``pack``), with one more row that reports what was read, what
was rejected, and what went wrong.  Components need nearly all of it, in any order: beside them
filters drop only what satisfies no predicate, and a part is read in one go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...compilers.gathering import whole
from ...compilers.machine import Coverage, Group, decisive
from ...compilers.stages import needed
from ...errors import HoldfastError, InputError, UsageError
from ...files.find import InputFile
from ...files.plan import Part
from ...files.read import read
from ...files.reading import Reading
from ...files.rest import Decisive, completed
from ...files.sort import OutOfOrder, Sorter, stretches
from ...files.tally import Rejects, Tally
from ...machines.filter import Filters
from ...model.batch import concatenate, times
from ...model.instant import BEGINNING
from .pack import REPORT, held, packed, reaching, row
from .shard import Work
from .slices import spread

MEMORY = 128 << 20
ROWS = 1 << 20
"""How many rows are read at a time: each time costs a look at all names of sources."""
MOST_HELD = 256 << 20
"""How many bytes of reduced events may wait in memory until a part is read."""

Mask = NDArray[np.bool_]
Mine = list[tuple[int, Group]]
"""The machines that watch a topic, numbered."""


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
    keep_rejects: bool = False
    whole: bool = False
    """Whether components are given columns that they do not need, too."""

    @cached_property
    def decisive(self) -> Decisive:
        """The columns that are read first; the rest only of rows that are kept."""
        return joined(
            decisive(self.work.conditions),
            needed(self.work.components, self.work.topics, whole=self.whole),
            whole(self.work.correlations),
        )


def joined(*some: dict[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """For each topic the columns that somebody needs."""
    topics = dict.fromkeys(topic for one in some for topic in one)
    return {topic: frozenset().union(*(one.get(topic, ()) for one in some)) for topic in topics}


Rejected = tuple[str, int, str, str]
"""A file, a row, why it cannot be used, and what it says, as JSON."""


class Report(msgspec.Struct):
    """What a reader says of its reading."""

    rows: int = 0
    kept: int = 0
    events: dict[str, int] = field(default_factory=dict)
    outside: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)
    other_topics: dict[str, int] = field(default_factory=dict)
    rejects: list[Rejected] = field(default_factory=list)
    first: str | None = None
    failed: tuple[int, str] | None = None
    """Exit status and message of an error."""
    bytes: int = 0
    """Of packed events."""

    def require_success(self) -> None:
        """Raise what went wrong, if something did."""
        raise_again(self.failed)


def raise_again(failed: tuple[int, str] | None) -> None:
    """Raise an error that a reader reported: its exit status and message."""
    if failed is not None:
        status, message = failed
        raise (UsageError if status == UsageError.exit_status else InputError)(message)


class KeptRejects(Rejects):
    """Rejected rows, kept to be reported."""

    def __init__(self, strict: bool, keep: bool = True) -> None:
        super().__init__(strict=strict)
        self.rows: list[Rejected] = []
        self._keep = keep

    def write(self, file: InputFile, row: int, reason: str, data: Any) -> None:
        super().write(file, row, reason, data)
        if self._keep:
            self.rows.append((file.path, row, reason, msgspec.json.encode(data, enc_hook=str).decode()))


def run(job: Job, task: Task, number: int) -> Iterator[pa.RecordBatch]:
    """Read a task: packed events, then the report."""
    seen, failed = _Seen(job), None
    try:
        yield from _events(job, task, seen)
    except HoldfastError as error:
        failed = (error.exit_status, str(error))
    yield row(REPORT, number, msgspec.msgpack.encode(seen.report(failed)))


class _Seen:
    """What a reader has read."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.tally, self.coverage, self.kept = Tally(), Coverage(), 0
        self.rejects = KeptRejects(self._job.strict, self._job.keep_rejects)
        self.bytes = 0
        """Of packed events."""

    def count(self, topic: str, batch: pa.RecordBatch, mine: Mine, looked_at: Mask | None = None) -> Mask:
        """Which events satisfy some predicate; they, those that are looked at, and the others are
        counted."""
        self.coverage.count(topic, batch, [group for _, group in mine])
        matters = np.zeros(len(batch), np.bool_)
        for _, group in mine:
            matters |= group.machine.matters(batch)
        self.kept += int(np.count_nonzero(matters if looked_at is None else matters | looked_at))
        return matters

    def report(self, failed: tuple[int, str] | None) -> Report:
        return Report(
            self.tally.rows,
            self.kept,
            dict(self.coverage.events),
            dict(self.coverage.outside),
            dict(self.tally.rejected),
            dict(self.tally.other_topics),
            self.rejects.rows,
            self.rejects.first,
            failed,
            self.bytes,
        )


def _events(job: Job, task: Task, seen: _Seen) -> Iterator[pa.RecordBatch]:
    """Of a closed part what can matter at all; else what satisfies a predicate."""
    watching: dict[str, Mine] = {}
    for number, group in enumerate(job.work.groups):
        watching.setdefault(group.topic.name, []).append((number, group))
    for events in _chosen(job, task, seen, watching):
        seen.bytes += held(events)
        yield events


def _chosen(job: Job, task: Task, seen: _Seen, watching: dict[str, Mine]) -> Iterator[pa.RecordBatch]:
    if job.work.operators:
        yield from _for_all(job, task, seen, watching)
        return
    if not task.closed:
        for topic, batch in _read(job, task, seen, watching):
            yield from _satisfying(
                job, task, seen.count(topic, batch, watching[topic]), batch, watching[topic]
            )
        return
    found = _as_it_comes(job, task, seen, watching)
    if found is None:
        seen.forget()
        yield from _sorted(job, task, seen, watching)
    else:
        yield from found


def _satisfying(
    job: Job, task: Task, matters: Mask, batch: pa.RecordBatch, mine: Mine
) -> Iterator[pa.RecordBatch]:
    thin = batch.filter(pa.array(matters))
    for number, group in mine:
        yield from _packed(job, task, number, group, group.machine.reduce(thin, closed=False))


def _for_all(job: Job, task: Task, seen: _Seen, watching: dict[str, Mine]) -> Iterator[pa.RecordBatch]:
    """What filters and components look at, and at the end how far time has come."""
    reached = BEGINNING
    for topic, batch in _read(job, task, seen, {*watching, *job.work.progress}):
        looked_at = np.zeros(len(batch), np.bool_)
        if len(batch) and topic in job.work.progress:
            reached = max(reached, int(times(batch).max()))
            for number, operator in job.work.operators.items():
                if topic in operator.topics:
                    matters = operator.machine.matters(topic, batch)
                    looked_at |= matters
                    seen.coverage.outside.update(operator.outside(topic, batch))
                    mine = (batch if job.whole else operator.needed(topic, batch)).filter(pa.array(matters))
                    yield from spread(number, operator, topic, mine, job.shards)
        filters = watching.get(topic, [])
        satisfying = seen.count(topic, batch, filters, looked_at)
        yield from _satisfying(job, task, satisfying, batch, filters)
    for number, operator in job.work.operators.items():
        yield from reaching(number, operator, reached, job.shards)


def _read(
    job: Job, task: Task, seen: _Seen, watched: Collection[str]
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """What the pieces hold of topics that somebody watches."""
    for piece in task.part.pieces:
        batches = read(
            piece.file,
            job.reading,
            seen.tally,
            seen.rejects,
            row_groups=piece.row_groups,
            chunk_rows=ROWS,
            decisive=job.decisive,
        )
        for topic, batch in batches:
            if topic.name in watched:
                yield topic.name, batch


def _as_it_comes(
    job: Job, task: Task, seen: _Seen, watching: dict[str, Mine]
) -> Iterator[pa.RecordBatch] | None:
    """The reduced events of a part whose files are in order, packed; nothing if they are not, or if
    too much would have to wait until that is known."""
    reduced = _Reduced(job, task, watching)
    try:
        for topic, batch in stretches(_read(job, task, seen, watching)):
            seen.count(topic, batch, watching[topic])
            reduced.add(topic, batch)
            if reduced.bytes > MOST_HELD:
                return None
    except OutOfOrder:
        return None
    return reduced.packed()


def _sorted(job: Job, task: Task, seen: _Seen, watching: dict[str, Mine]) -> Iterator[pa.RecordBatch]:
    """The reduced events of a part in any order, packed."""
    with ExitStack() as stack:
        sorters = {name: stack.enter_context(Sorter(MEMORY // len(watching))) for name in watching}
        for topic, batch in _read(job, task, seen, watching):
            sorters[topic].add(batch.filter(pa.array(seen.count(topic, batch, watching[topic]))))
        reduced = _Reduced(job, task, watching)
        for topic, sorter in sorters.items():
            for batch in sorter.drain():
                reduced.add(topic, batch)
                if reduced.bytes > MOST_HELD:
                    yield from reduced.packed()
        yield from reduced.packed()


class _Reduced:
    """The events of a closed part that can matter, gathered stretch by stretch, each in order.

    At a moment that is shared with another part nothing is closed: there all stay that satisfy a
    predicate.
    """

    def __init__(self, job: Job, task: Task, watching: dict[str, Mine]) -> None:
        self.bytes = 0
        self._job, self._task, self._watching = job, task, watching
        self._inside: dict[int, list[pa.RecordBatch]] = {}
        self._at_ends: dict[int, list[pa.RecordBatch]] = {}

    def add(self, topic: str, batch: pa.RecordBatch) -> None:
        """Take a stretch of a topic, in order, which follows all before."""
        moments, shared = times(batch), self._task.part.shared
        begin, end = 0, len(batch)
        if len(batch) and moments[0] in shared:
            begin = int(np.searchsorted(moments, moments[0], "right"))
        if begin < end and moments[-1] in shared:
            end = int(np.searchsorted(moments, moments[-1], "left"))
        inside = batch if end - begin == len(batch) else batch.slice(begin, end - begin)
        for number, group in self._watching[topic]:
            self._keep(self._inside, number, group.machine.reduce(inside))
            for edge in (batch.slice(0, begin), batch.slice(end)):
                if len(edge):
                    self._keep(self._at_ends, number, group.machine.reduce(edge, closed=False))

    def _keep(self, where: dict[int, list[pa.RecordBatch]], number: int, batch: pa.RecordBatch) -> None:
        if len(batch):
            where.setdefault(number, []).append(batch)
            self.bytes += batch.nbytes

    def packed(self) -> Iterator[pa.RecordBatch]:
        """All that was gathered, machine by machine; forgets it."""
        inside, at_ends, self._inside, self._at_ends, self.bytes = self._inside, self._at_ends, {}, {}, 0
        for number, group in (machine for mine in self._watching.values() for machine in mine):
            if number in inside:
                whole = group.machine.reduce(concatenate(inside[number]))
                yield from _packed(self._job, self._task, number, group, whole)
            if number in at_ends:
                yield from _packed(self._job, self._task, number, group, concatenate(at_ends[number]))


def _packed(
    job: Job, task: Task, number: int, group: Group, batch: pa.RecordBatch
) -> Iterator[pa.RecordBatch]:
    """What is left, completed by what was not read at first; some at a time, as it may be wide."""
    assert isinstance(group.machine, Filters)
    files = {piece.file.rank: piece.file for piece in task.part.pieces}.values()
    for at in range(0, len(batch), ROWS):
        some = completed(batch.slice(at, ROWS), group.topic, files, job.reading, job.decisive)
        yield from packed(number, group.machine, some, job.shards)
