"""History on Spark: readers reduce, scopes meet in shards, machines step.

Stage 1: read, keep what can matter [law 2], pack by shard.  Stage 2, after one shuffle: put the
events of a shard in order and step the machine through them [law 3]; conditions that build on others
under another key follow in further stages.  Where little is left to matter and the driver wants it
all, it steps the machines itself.
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
from pyspark import __version__ as version
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ....compilers.operator import Coverage
from ....errors import InputError
from ....files.find import InputFile, find
from ....files.plan import Part, shares, split, touching_parts, with_shared
from ....files.read import inspect
from ....files.reading import Reading, TimeUnit, parse_zone
from ....files.tally import Rejects, Tally
from ....lang.app import App
from ....lang.check import check
from ....lang.condition import Checked
from ....lang.parse import as_app
from ....model.batch import from_ipc, to_ipc
from ....model.event import Notification
from ....model.instant import Instant
from ...table import ORDER, from_table, ordered, schema_of
from ..pack import REPORT, SCHEMA, SPARK_SCHEMA, passed_on
from ..plan import Work
from ..reading import Report, reported
from ..session import session
from .reader import PUT_ASIDE, REJECTED, Job, Task, Unable, rejected, run
from .shard import Step, finished, staged, step_shard

LARGE = 4 << 20
"""An interleaved part of more rows is read by several readers, which then reduce less."""

SHARES = 4
"""How many readers there are for each core, so that none waits long for another."""

FEW = 64 << 20
"""Up to so many bytes of events that can matter are taken by the driver at once, and of rows that cannot be
used."""

AT_ONCE = FEW // 4
"""As many bytes of events lead to the notifications that the driver takes at once, where there are many."""

ROWS = 1 << 16
"""How many notifications become objects at a time."""


class Replay:
    """The notifications of a history, computed on Spark: ``dataframe``, or iterate in order."""

    def __init__(
        self,
        checked: Checked,
        files: Sequence[InputFile],
        reading: Reading,
        *,
        spark: SparkSession | str | None = None,
        rejects: Rejects | None = None,
    ) -> None:
        """``spark`` is a session, or the master on which one is started, by default that of ``session``."""
        self._rejects = rejects if rejects is not None else Rejects()
        self._work = Work.on_history(checked)
        with ThreadPoolExecutor(1) as beside:  # files are looked at while Spark starts
            looked = beside.submit(parts_of, files, reading)
            self._spark = spark if isinstance(spark, SparkSession) else session(spark, is_brief=True)
            parts = looked.result()
        cores = self._spark.sparkContext.defaultParallelism
        tasks = tuple(divided(parts, cores))
        self._job = Job(
            self._work,
            reading,
            tasks,
            shards=self._work.shards(cores),
            strict=self._rejects.strict,
            rejects_kept=FEW // len(tasks) if self._rejects.keeps else 0,
        )
        self.passed: Counter[str] = Counter()
        """How many notifications each subscription had, once they have been iterated over."""
        self._open: dict[tuple[str, str | None], Instant] = {}

    def _packed(self, most: int | None = None) -> DataFrame:
        """What the readers give, each of them no more than ``most`` bytes of events."""
        return given(self._spark, self._job, most)

    @cached_property
    def _read(self) -> tuple[list[Report], dict[int, list[bytes]] | None]:
        """What the readers said, and unless it is too much the packed events of each machine."""
        most, is_heavy = FEW // self._told_by_one // len(self._job.tasks), self._work.is_heavy
        rows = self._given.filter(f"machine = {REPORT}") if is_heavy else self._packed(most)
        events = _by_machine(rows)
        reports = [reported(raw) for raw in events.pop(REPORT)]
        if any(report.packed > most for report in reports):
            return reports, None
        return reports, _by_machine(self._given.filter("machine >= 0")) if is_heavy else events

    @cached_property
    def _told_by_one(self) -> int:
        """How many notifications there may be of one event, or nearly as many."""
        return max(1, sum(len(one.subscriptions) for one in self._work.operators.values()) // 4)

    @cached_property
    def _given(self) -> DataFrame:
        """What the readers give, kept where it is so much that it should not be read twice."""
        return self._packed().persist()

    @cached_property
    def dataframe(self) -> DataFrame:
        """The notifications, in no particular order: one row each, one column for each attribute.

        What goes wrong in a reader fails the job that asks for them.
        """
        return notifications(self._work, self._packed(), self._job.shards)

    def __iter__(self) -> Iterator[Notification]:
        self.tally  # noqa: B018 -- what went wrong in reading is said first
        self.passed, self._open = Counter(), {}
        _, events = self._read
        try:
            for table in self._from_executors() if events is None else self._stepped(events):
                for notification in from_table(self._work.published, table):
                    self._count(notification)
                    yield notification
        finally:
            if self._work.is_heavy:
                self._given.unpersist()

    def _stepped(self, events: dict[int, list[bytes]]) -> Iterator[pa.Table]:
        """The notifications in order, computed here."""
        tables, heard = list[pa.Table](), dict[int, list[bytes]]()
        for number in self._work.operators:  # by stage
            if mine := [*events.get(number, ()), *heard.get(number, ())]:
                table, said = step_shard(self._work, number, mine)
                tables.append(table)
                for row in passed_on(self._work.operators, said, shards=1):
                    raw = row.column("events")[0].as_py()
                    heard.setdefault(row.column("machine")[0].as_py(), []).append(raw)
        if tables:
            whole = ordered(pa.concat_tables(tables))
            yield from (whole.slice(at, ROWS) for at in range(0, len(whole), ROWS))

    def _from_executors(self) -> Iterator[pa.Table]:
        """The notifications in order, computed there, some at a time."""
        size = sum(report.packed for report in self.reports) * self._told_by_one
        parts = max(self._job.shards, size // AT_ONCE)
        if self._work.is_heavy:  # to sort them is to look at them twice
            told = notifications(self._work, self._given, self._job.shards).persist()
        else:
            told = self.dataframe
        try:
            yield from _some_at_a_time(told, ORDER, parts)
        finally:
            if self._work.is_heavy:
                told.unpersist()

    def _count(self, notification: Notification) -> None:
        self.passed[notification.subscription] += 1
        scope = (notification.subscription, notification.scope)
        if notification.status == "ingress":
            self._open[scope] = notification.event.time
        elif notification.status == "egress":
            self._open.pop(scope, None)

    def holding(self) -> list[tuple[str, str | None, Instant]]:
        """The conditions that hold at the end, once all has been iterated over."""
        found = [(name, scope, since) for (name, scope), since in self._open.items()]
        return sorted(found, key=lambda row: (row[0], row[1] or ""))

    @property
    def reports(self) -> list[Report]:
        """What the readers said."""
        return self._read[0]

    @cached_property
    def coverage(self) -> Coverage:
        """How many events lay in scopes."""
        whole = Coverage()
        for report in self.reports:
            whole.add(Coverage(Counter(report.events), Counter(report.outside)))
        return whole

    def misplaced(self) -> list[str]:
        """The subscriptions that not one event could concern."""
        return self.coverage.misplaced(self._work.operators.values())

    @property
    def kept(self) -> int:
        """How many events satisfied some predicate."""
        return sum(report.kept for report in self.reports)

    @cached_property
    def tally(self) -> Tally:
        """What was read; what went wrong in a reader is raised here."""
        tally = Tally()
        for report in self.reports:
            report.require_success()
            unable, others = Counter(report.rejected), Counter(report.other_topics)
            tally.add(Tally(report.rows, unable, others, twice=report.twice, never=report.never))
        if tally.rejected and not tally.used:
            first = next(report.first for report in self.reports if report.first is not None)
            raise InputError(f"not one row can be used ({tally.rows:,} read).  The first:\n  {first}")
        if self._rejects.keeps:
            self._put_aside(tally.rejected.total())
        return tally

    def _put_aside(self, count: int) -> None:
        """Write the rows that could not be used; where they are more than readers may report, they are read
        again, and come some at a time."""
        files = {file.rank: file for task in self._job.tasks for file in _files_of(task)}
        ranks = {file.path: file.rank for file in files.values()}
        told: list[Unable] = [
            (ranks[path], row, reason, data)
            for report in self.reports
            for path, row, reason, data in report.rejects
        ]
        for rank, row, reason, data in told if len(told) == count else self._rejected(count):
            self._rejects.write(files[rank], row, reason, msgspec.json.decode(data))

    def _rejected(self, count: int) -> Iterator[Unable]:
        """So many rows that cannot be used, in order of files and rows."""
        rows = by_reader(self._spark, self._job, rejected, from_arrow_schema(REJECTED))
        for table in _some_at_a_time(rows, REJECTED.names[:2], 1 + count // PUT_ASIDE):
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
    """As ``holdfast.replay``, on Spark."""
    checked = check(as_app(app), lets=lets, tables=tables)
    reading = Reading(checked.topics, map or {}, parse_zone(zone), time_format, time_unit, topic, wide)
    files = find([str(path) for path in inputs], [t.name for t in checked.topics])
    return Replay(checked, files, reading, spark=spark)


def parts_of(files: Sequence[InputFile], reading: Reading) -> list[Part]:
    """What belongs together of files that can be read, wherever the workers are."""
    files = [replace(file, path=os.path.abspath(file.path)) for file in files]
    for file in files:
        inspect(file, reading)
    return touching_parts(files, reading)


def tasks(files: Sequence[InputFile], reading: Reading, cores: int) -> Iterator[Task]:
    """What each reader of some files reads."""
    return divided(touching_parts(files, reading), cores)


def divided(parts: Sequence[Part], cores: int) -> Iterator[Task]:
    """What each reader reads: shares of like size that are closed but for moments at their ends.

    A part that cannot be divided so and is too large for one reader is divided by row groups, or
    files, which are not closed.
    """
    count = SHARES * cores
    each = sum(part.rows or 0 for part in parts) // count
    found: list[tuple[Part, bool]] = []
    for large, some in groupby(parts, _is_large):
        if large:
            found += ((share, False) for part in some for share in split(part, count))
        else:
            found += ((share, True) for share in shares(list(some), each))
    if not found:
        found = [(Part((), 0, 0), True)]  # even nothing is read by somebody, who reports it
    for part, (_, closed) in zip(with_shared([part for part, _ in found]), found, strict=True):
        yield Task(part, closed)


def _is_large(part: Part) -> bool:
    units = sum(len(piece.row_groups or (None,)) for piece in part.pieces)
    return units > 1 and (part.rows is None or part.rows > LARGE)


def given(spark: SparkSession, job: Job, most: int | None = None) -> DataFrame:
    """What the readers of a job give, each of them no more than ``most`` bytes of events."""
    return by_reader(spark, job, partial(run, most=most), SPARK_SCHEMA)


def by_reader(
    spark: SparkSession,
    job: Job,
    read: Callable[[Job, int], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """What becomes of each task of a job."""
    count = len(job.tasks)

    def readers(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for some in numbers for number in some.column(0).to_pylist()):
            yield from read(job, number)

    return spark.range(0, count, 1, count).mapInArrow(readers, schema)


def _some_at_a_time(rows: DataFrame, order: Sequence[str], parts: int) -> Iterator[pa.Table]:
    """The rows in order, of which the driver has one of so many parts at a time."""
    sorted_ = rows.repartitionByRange(parts, *order).sortWithinPartitions(*order)
    for row in sorted_.mapInArrow(_blobs, "raw binary").toLocalIterator():
        yield pa.Table.from_batches([from_ipc(bytes(row.raw))])


def _blobs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Each batch as the bytes of one row."""
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([to_ipc(batch)], pa.binary())], names=["raw"])


def require_success(report: bytes) -> None:
    """Raise what went wrong in a reader."""
    reported(report).require_success()


def notifications(
    work: Work, rows: DataFrame, shards: int, judge: Callable[[bytes], None] = require_success
) -> DataFrame:
    """The notifications of packed rows: a shuffle for each stage; readers' reports are judged."""
    for stage in range(work.stages - 1):
        rows = _by_shard(rows, staged(work, stage, shards), SCHEMA)
    return _by_shard(rows, finished(work, judge), schema_of(work.published))


def _by_shard(rows: DataFrame, step: Step, schema: pa.Schema) -> DataFrame:
    """What becomes of the packed rows of each operator and shard."""
    return in_groups(rows, ("machine", "shard"), step, schema)


def in_groups(rows: DataFrame, by: Sequence[str], step: Step, schema: pa.Schema) -> DataFrame:
    """What becomes of the rows of each group."""

    def whole(key: tuple[pa.Scalar, ...], table: pa.Table) -> pa.Table:
        return pa.Table.from_batches(step(key, iter(table.to_batches())), schema)

    takes_batches = tuple(map(int, version.split(".")[:2])) >= (4, 2)  # older Sparks take whole tables
    return rows.groupBy(*by).applyInArrow(step if takes_batches else whole, from_arrow_schema(schema))


def _by_machine(rows: DataFrame) -> dict[int, list[bytes]]:
    """The packed rows of each machine."""
    found: dict[int, list[bytes]] = {}
    table = rows.toArrow()
    for number, raw in zip(*(table.column(n).to_pylist() for n in ("machine", "events")), strict=True):
        found.setdefault(number, []).append(raw)
    return found
