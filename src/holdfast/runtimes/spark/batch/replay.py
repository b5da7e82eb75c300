"""Replay of a history on Spark: readers compact, shards run the operators.

Readers drop rows that cannot change the output and pack the others by shard. After one shuffle each shard
puts its events in order and runs its operators. Operators that consume others under another key run in
further stages. If few events are left and the driver wants all notifications, it runs the operators itself.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import __version__ as version
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ....definition.app import App
from ....definition.check import check
from ....definition.parse import as_app
from ....errors import InputError
from ....files.find import InputFile, find
from ....files.plan import Part, shares, split, touching_parts, with_shared
from ....files.read import inspect
from ....files.reading import Reading, TimeUnit, parse_zone
from ....files.tally import Rejects, Tally
from ....lang.condition import Checked
from ....model.batch import from_ipc, to_ipc
from ....model.event import Notification
from ....model.instant import Instant
from ....plan.pushdown import Coverage
from ...table import ORDER, from_table, schema_of, sort_rows
from ..classic import core_count
from ..job import Job
from ..pack import SCHEMA, SPARK_SCHEMA, PacketKind, pack_derived
from ..reading import Report, decode_report
from ..session import session
from .reader import REJECTED, REJECTS_AT_ONCE, ReadJob, RejectedRow, Task, read_rejects, read_task
from .shard import GroupStep, last_step, run_shard, stage_step

LARGE = 4 << 20
"""A part that is not in order is split among several readers if it has more rows than this; they compact
less."""

SHARES = 4
"""How many tasks there are for each core, so that no core waits long for another."""

FEW = 64 << 20
"""Up to this size in bytes the driver takes relevant events, or rejected rows, at once."""

AT_ONCE = FEW // 4
"""The size in bytes of the events whose notifications the driver takes at a time, if there are many."""

ROWS = 1 << 16
"""How many notifications become Python objects at a time."""


class Replay:
    """The notifications of a history, computed on Spark. Use ``dataframe``, or iterate over them in order."""

    def __init__(
        self,
        checked: Checked,
        files: Sequence[InputFile],
        reading: Reading,
        *,
        spark: SparkSession | str | None = None,
        rejects: Rejects | None = None,
    ) -> None:
        """Plan the replay.

        ``spark`` is a session, or the master for a new one; by default that of ``session``.
        """
        self._rejects = rejects if rejects is not None else Rejects()
        self._job = Job.on_history(checked)
        with ThreadPoolExecutor(1) as pool:  # files are looked at while Spark starts
            found = pool.submit(parts_of, files, reading)
            self._spark = spark if isinstance(spark, SparkSession) else session(spark, is_brief=True)
            parts = found.result()
        cores = core_count(self._spark)
        tasks = tuple(divide(parts, cores))
        self._read_job = ReadJob(
            self._job,
            reading,
            tasks,
            shards=self._job.shards(cores),
            strict=self._rejects.strict,
            rejects_limit=FEW // len(tasks) if self._rejects.keeps else 0,
        )
        self.passed: Counter[str] = Counter()
        """How many notifications each subscription had, once they have been iterated over."""
        self._open: dict[tuple[str, str | None], Instant] = {}

    def _read_packets(self, most: int | None = None) -> DataFrame:
        """Return the packets of the readers, each of which returns at most `most` bytes of events."""
        return read_packets(self._spark, self._read_job, most)

    @cached_property
    def _read(self) -> tuple[list[Report], dict[int | None, list[bytes]] | None]:
        """The reports of the readers, and the packed events of each operator.

        The events are ``None`` if they are too large.
        """
        most, is_heavy = (
            FEW // self._notifications_per_event // len(self._read_job.tasks),
            self._job.is_heavy,
        )
        rows = (
            self._packets.filter(f"kind = {int(PacketKind.REPORT)}") if is_heavy else self._read_packets(most)
        )
        packets = rows.toArrow()
        reports = [decode_report(raw) for raw in _payloads(packets, PacketKind.REPORT)[None]]
        if any(report.packed > most for report in reports):
            return reports, None
        if is_heavy:
            packets = self._packets.filter(f"kind = {int(PacketKind.EVENTS)}").toArrow()
        return reports, _payloads(packets, PacketKind.EVENTS)

    @cached_property
    def _notifications_per_event(self) -> int:
        """The approximate number of notifications that one event can cause."""
        return max(1, sum(len(one.subscriptions) for one in self._job.operators.values()) // 4)

    @cached_property
    def _packets(self) -> DataFrame:
        """The packets of the readers, persisted if they are too many to read the files twice."""
        return self._read_packets().persist()

    @cached_property
    def dataframe(self) -> DataFrame:
        """The notifications in no particular order: one row each, one column for each attribute.

        An error in a reader fails the job that asks for the rows.
        """
        return notifications(self._job, self._read_packets(), self._read_job.shards)

    def __iter__(self) -> Iterator[Notification]:
        self.tally  # noqa: B018 -- what went wrong in reading is said first
        self.passed, self._open = Counter(), {}
        _, events = self._read
        try:
            for table in self._from_executors() if events is None else self._run_locally(events):
                for notification in from_table(self._job.published, table):
                    self._count(notification)
                    yield notification
        finally:
            if self._job.is_heavy:
                self._packets.unpersist()

    def _run_locally(self, events: Mapping[int | None, list[bytes]]) -> Iterator[pa.Table]:
        """Run the operators in the driver, and yield the notifications in order."""
        tables, derived = list[pa.Table](), dict[int, list[bytes]]()
        for number in self._job.operators:  # by stage
            if payloads := [*events.get(number, ()), *derived.get(number, ())]:
                table, said = run_shard(self._job, number, payloads)
                tables.append(table)
                for row in pack_derived(self._job.operators, said, shards=1):
                    raw = row.column("payload")[0].as_py()
                    derived.setdefault(row.column("operator")[0].as_py(), []).append(raw)
        if tables:
            whole = sort_rows(pa.concat_tables(tables))
            yield from (whole.slice(at, ROWS) for at in range(0, len(whole), ROWS))

    def _from_executors(self) -> Iterator[pa.Table]:
        """Run the operators in the executors, and yield the notifications in order, a table at a time."""
        size = sum(report.packed for report in self.reports) * self._notifications_per_event
        parts = max(self._read_job.shards, size // AT_ONCE)
        if self._job.is_heavy:  # to sort them is to look at them twice
            rejects = notifications(self._job, self._packets, self._read_job.shards).persist()
        else:
            rejects = self.dataframe
        try:
            yield from _in_order(rejects, ORDER, parts)
        finally:
            if self._job.is_heavy:
                rejects.unpersist()

    def _count(self, notification: Notification) -> None:
        self.passed[notification.subscription] += 1
        scope = (notification.subscription, notification.scope)
        if notification.status == "ingress":
            self._open[scope] = notification.event.time
        elif notification.status == "egress":
            self._open.pop(scope, None)

    def holding(self) -> list[tuple[str, str | None, Instant]]:
        """Return the conditions that are active at the end. Iterate over all notifications first."""
        found = [(name, scope, since) for (name, scope), since in self._open.items()]
        return sorted(found, key=lambda row: (row[0], row[1] or ""))

    @property
    def reports(self) -> list[Report]:
        """The reports of the readers. The first access starts the readers."""
        return self._read[0]

    @cached_property
    def coverage(self) -> Coverage:
        """The numbers of events inside and outside of scopes."""
        whole = Coverage()
        for report in self.reports:
            whole.add(Coverage(Counter(report.events), Counter(report.outside)))
        return whole

    def misplaced(self) -> list[str]:
        """Return the subscriptions whose scopes contain no event of the history."""
        return self.coverage.out_of_scope(self._job.operators.values())

    @property
    def kept(self) -> int:
        """The number of events that satisfied some predicate."""
        return sum(report.relevant for report in self.reports)

    @cached_property
    def tally(self) -> Tally:
        """The counts of what was read. The first access raises the error of a reader, if there was one."""
        tally = Tally()
        for report in self.reports:
            report.require_success()
            unable, others = Counter(report.rejected), Counter(report.other_topics)
            tally.add(Tally(report.rows, unable, others, twice=report.twice, never=report.never))
        if tally.rejected and not tally.used:
            first = next(report.first for report in self.reports if report.first is not None)
            raise InputError(f"not one row can be used ({tally.rows:,} read).  The first:\n  {first}")
        if self._rejects.keeps:
            self._write_rejects(tally.rejected.total())
        return tally

    def _write_rejects(self, count: int) -> None:
        """Write the rejected rows. If they are more than reports can contain, read them again."""
        files = {file.rank: file for task in self._read_job.tasks for file in _files_of(task)}
        ranks = {file.path: file.rank for file in files.values()}
        rejects: list[RejectedRow] = [
            (ranks[path], row, reason, data)
            for report in self.reports
            for path, row, reason, data in report.rejects
        ]
        for rank, row, reason, data in rejects if len(rejects) == count else self._read_rejects_again(count):
            self._rejects.write(files[rank], row, reason, msgspec.json.decode(data))

    def _read_rejects_again(self, count: int) -> Iterator[RejectedRow]:
        """Yield all rejected rows, ordered by file and row."""
        rows = run_readers(self._spark, self._read_job, read_rejects, from_arrow_schema(REJECTED))
        for table in _in_order(rows, REJECTED.names[:2], 1 + count // REJECTS_AT_ONCE):
            yield from zip(*(column.to_pylist() for column in table.columns), strict=True)


def _files_of(task: Task) -> Iterator[InputFile]:
    return (piece.file for piece in task.part.pieces)


def replay(
    app: App | str,
    *inputs: str | Path,
    spark: SparkSession | None = None,
    map: Mapping[str, str] | None = None,
    topic: str | None = None,
    zone: str = "UTC",
    time_format: str | None = None,
    time_unit: TimeUnit | None = None,
    wide: bool = False,
    lets: Mapping[str, float | int | str | bool] | None = None,
    tables: Mapping[str, Any] | None = None,
) -> Replay:
    """Replay a history as `holdfast.replay` does, on Spark."""
    checked = check(as_app(app), lets=lets, tables=tables)
    reading = Reading(checked.topics, map or {}, parse_zone(zone), time_format, time_unit, topic, wide)
    files = find([str(path) for path in inputs], [t.name for t in checked.topics])
    return Replay(checked, files, reading, spark=spark)


def parts_of(files: Sequence[InputFile], reading: Reading) -> list[Part]:
    """Return the parts of a history: groups of files that overlap in time.

    Raises an error for unreadable files.
    """
    files = [replace(file, path=os.path.abspath(file.path)) for file in files]
    for file in files:
        inspect(file, reading)
    return touching_parts(files, reading)


def plan_tasks(files: Sequence[InputFile], reading: Reading, cores: int) -> Iterator[Task]:
    """Yield the tasks of readers for files, as described at `divide`."""
    return divide(touching_parts(files, reading), cores)


def divide(parts: Sequence[Part], cores: int) -> Iterator[Task]:
    """Divide parts among readers, into shares of similar size that are closed except for times at their ends.

    A large part that has no such shares is divided by row groups or files; the resulting tasks are not
    closed.
    """
    count = SHARES * cores
    rows_per_share = sum(part.rows or 0 for part in parts) // count
    found: list[tuple[Part, bool]] = []
    for large, numbers in groupby(parts, _is_large):
        if large:
            found += ((share, False) for part in numbers for share in split(part, count))
        else:
            found += ((share, True) for share in shares(list(numbers), rows_per_share))
    if not found:
        found = [(Part((), 0, 0), True)]  # even nothing is read by somebody, who reports it
    for part, (_, closed) in zip(with_shared([part for part, _ in found]), found, strict=True):
        yield Task(part, closed)


def _is_large(part: Part) -> bool:
    units = sum(len(piece.row_groups or (None,)) for piece in part.pieces)
    return units > 1 and (part.rows is None or part.rows > LARGE)


def read_packets(spark: SparkSession, read_job: ReadJob, most: int | None = None) -> DataFrame:
    """Return the packets of all readers of a job, each of which returns at most `most` bytes of events."""
    return run_readers(spark, read_job, partial(read_task, most=most), SPARK_SCHEMA)


def run_readers(
    spark: SparkSession,
    read_job: ReadJob,
    read: Callable[[ReadJob, int], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """Call a function on each task of a job, as Spark tasks. Return the rows of all tasks."""
    count = len(read_job.tasks)

    def readers(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for numbers in numbers for number in numbers.column(0).to_pylist()):
            yield from read(read_job, number)

    return spark.range(0, count, 1, count).mapInArrow(readers, schema)


def _in_order(rows: DataFrame, order: Sequence[str], parts: int) -> Iterator[pa.Table]:
    """Yield rows in order, in tables. The driver has one table in memory at a time."""
    sorted_ = rows.repartitionByRange(parts, *order).sortWithinPartitions(*order)
    for row in sorted_.mapInArrow(_encode_batches, "raw binary").toLocalIterator():
        yield pa.Table.from_batches([from_ipc(bytes(row.raw))])


def _encode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Encode each batch as one row, so that the driver can fetch them one by one."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([to_ipc(batch)], pa.binary())], names=["raw"])


def require_success(report: bytes) -> None:
    """Raise the error in a reader's report, if there is one."""
    decode_report(report).require_success()


def notifications(
    job: Job, rows: DataFrame, shards: int, judge: Callable[[bytes], None] = require_success
) -> DataFrame:
    """Run the operators on packets, with a shuffle for each stage. `judge` checks the reports of readers."""
    for stage in range(job.stages - 1):
        rows = _run_by_shard(rows, stage_step(job, stage, shards), SCHEMA)
    return _run_by_shard(rows, last_step(job, judge), schema_of(job.published))


def _run_by_shard(rows: DataFrame, step: GroupStep, schema: pa.Schema) -> DataFrame:
    """Apply a step to the packets of each operator and shard."""
    return run_in_groups(rows, ("kind", "operator", "shard"), step, schema)


def run_in_groups(rows: DataFrame, by: Sequence[str], step: GroupStep, schema: pa.Schema) -> DataFrame:
    """Apply a function to the rows of each group, and return the resulting rows."""

    def whole(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        return pa.Table.from_batches(step(key, iter(table.to_batches())), schema)

    takes_batches = tuple(map(int, version.split(".")[:2])) >= (4, 2)  # older Sparks take whole tables
    return rows.groupBy(*by).applyInArrow(step if takes_batches else whole, from_arrow_schema(schema))


def _payloads(packets: pa.Table, kind: PacketKind) -> dict[int | None, list[bytes]]:
    """Return the payloads of the packets of a kind by operator."""
    found: dict[int | None, list[bytes]] = {}
    rows = packets.filter(pc.equal(packets.column("kind"), int(kind)))
    for number, raw in zip(*(rows.column(n).to_pylist() for n in ("operator", "payload")), strict=True):
        found.setdefault(number, []).append(raw)
    return found
