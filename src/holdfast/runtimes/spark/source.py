"""The data source: files are read with Arrow inside the executor and reduced as they are read.

What leaves a reader is packed (see ``pack``), with one more row that reports what was read, what
was rejected, and what went wrong.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from ...compilers.machine import Coverage, Group, groups
from ...errors import HoldfastError
from ...files.find import InputFile
from ...files.plan import Part
from ...files.read import read
from ...files.reading import Reading
from ...files.sort import Sorter
from ...files.tally import Rejects, Tally
from ...lang.condition import Condition
from ...machines.filter import Filters
from ...model.batch import concatenate
from .pack import REPORT, SPARK_SCHEMA, packed, row

FORMAT = "holdfast"
MEMORY = 128 << 20


@dataclass(frozen=True)
class Task:
    """What one reader reads.  Only of a closed part may more be dropped than what satisfies no
    predicate."""

    part: Part
    closed: bool


@dataclass(frozen=True)
class Job:
    """A replay as its readers need it: plain values, which travel."""

    conditions: tuple[Condition, ...]
    reading: Reading
    tasks: tuple[Task, ...]
    shards: int
    strict: bool = False
    keep_rejects: bool = False

    def to_text(self) -> str:
        return base64.b64encode(pickle.dumps(self)).decode()

    @staticmethod
    def from_text(text: str) -> Job:
        job: Job = pickle.loads(base64.b64decode(text))
        return job


class Report(msgspec.Struct):
    """What a reader says of its reading."""

    rows: int = 0
    kept: int = 0
    events: dict[str, int] = field(default_factory=dict)
    outside: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)
    other_topics: dict[str, int] = field(default_factory=dict)
    rejects: list[tuple[str, int, str, str]] = field(default_factory=list)
    first: str | None = None
    failed: tuple[int, str] | None = None
    """Exit status and message of an error."""


class _Kept(Rejects):
    """Rejected rows, kept to be reported."""

    def __init__(self, strict: bool, keep: bool) -> None:
        super().__init__(strict=strict)
        self.rows: list[tuple[str, int, str, str]] = []
        self._keep = keep

    def write(self, file: InputFile, row: int, reason: str, data: Any) -> None:
        super().write(file, row, reason, data)
        if self._keep:
            self.rows.append((file.path, row, reason, msgspec.json.encode(data, enc_hook=str).decode()))


class HoldfastSource(DataSource):
    """``spark.read.format("holdfast").option("job", …)``."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SPARK_SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        return _Reader(self.options["job"])


class _Partition(InputPartition):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Reader(DataSourceReader):
    def __init__(self, job: str) -> None:
        self.job = job

    def partitions(self) -> Sequence[InputPartition]:
        return [_Partition(i) for i in range(len(Job.from_text(self.job).tasks))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Partition)
        job = Job.from_text(self.job)
        yield from run(job, job.tasks[partition.number], partition.number)


def run(job: Job, task: Task, number: int) -> Iterator[pa.RecordBatch]:
    """Read a task: packed events, then the report."""
    report = Report()
    rejects = _Kept(job.strict, job.keep_rejects)
    tally, coverage = Tally(), Coverage()
    try:
        yield from _events(job, task, tally, rejects, report, coverage)
    except HoldfastError as error:
        report.failed = (error.exit_status, str(error))
    report.rows, report.rejected = tally.rows, dict(tally.rejected)
    report.other_topics = dict(tally.other_topics)
    report.events, report.outside = dict(coverage.events), dict(coverage.outside)
    report.rejects, report.first = rejects.rows, rejects.first
    yield row(REPORT, number, msgspec.msgpack.encode(report))


def _events(
    job: Job, task: Task, tally: Tally, rejects: Rejects, report: Report, coverage: Coverage
) -> Iterator[pa.RecordBatch]:
    machines = list(enumerate(groups(job.conditions)))
    with ExitStack() as stack:
        topics = {group.topic.name for _, group in machines}
        sorters = {name: stack.enter_context(Sorter(MEMORY // len(topics))) for name in topics}
        for piece in task.part.pieces:
            batches = read(piece.file, job.reading, tally, rejects, row_groups=piece.row_groups)
            for topic, batch in batches:
                mine = [group for _, group in machines if group.topic == topic]
                if not mine:
                    continue
                coverage.count(topic.name, batch, mine)
                kept = batch.filter(
                    pa.array(np.logical_or.reduce([group.machine.matters(batch) for group in mine]))
                )
                report.kept += len(kept)
                if task.closed:
                    sorters[topic.name].add(kept)
                else:
                    yield from _packed(job, machines, topic.name, [kept], closed=False)
        for name, sorter in sorters.items():
            if task.closed:
                yield from _packed(job, machines, name, sorter.drain(), closed=True)


def _packed(
    job: Job, machines: list[tuple[int, Group]], topic: str, batches: Any, *, closed: bool
) -> Iterator[pa.RecordBatch]:
    """Reduced and packed, machine by machine; of a closed part the whole is reduced once more."""
    reduced: dict[int, list[pa.RecordBatch]] = {}
    for batch in batches:
        for number, group in machines:
            if group.topic.name == topic:
                reduced.setdefault(number, []).append(group.machine.reduce(batch, closed=closed))
    for number, group in machines:
        if number in reduced:
            assert isinstance(group.machine, Filters)
            whole = concatenate(reduced[number])
            if closed and len(reduced[number]) > 1:
                whole = group.machine.reduce(whole)
            if len(whole):
                yield from packed(number, group.machine, whole, job.shards)
