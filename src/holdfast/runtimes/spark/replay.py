"""History on Spark: readers reduce, scopes meet in shards, machines step.

Stage 1, in the data source: read, keep what can matter [law 2], pack by shard.  Stage 2, after one
shuffle: put the events of a shard in order and step the machine through them [law 3].
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from ...compilers.machine import Coverage, groups
from ...errors import InputError, UsageError
from ...files.find import InputFile, find
from ...files.plan import Part, Piece, closed_parts
from ...files.read import inspect
from ...files.reading import Reading, TimeUnit, parse_zone
from ...files.tally import Rejects, Tally
from ...lang.app import App
from ...lang.check import check
from ...lang.condition import Checked, Condition
from ...lang.parse import parse
from ...machines.machine import transitions
from ...model.batch import concatenate, from_ipc, in_order
from ...model.event import Notification
from ...model.instant import BEGINNING, Instant
from ...model.qos import TIMELY
from ...model.topic import Topic
from .notice import from_table, schema_of, spark_schema, to_table
from .pack import REPORT
from .session import session
from .source import FORMAT, HoldfastSource, Job, Report, Task

LARGE = 4 << 20
"""An interleaved part of more rows is read by several readers, which then reduce less."""

_ORDER = ("time", "subscription", "scope", "source", "sequence")


class Replay:
    """The notifications of a history, computed on Spark: ``dataframe``, or iterate in order."""

    def __init__(
        self,
        checked: Checked,
        files: Sequence[InputFile],
        reading: Reading,
        *,
        spark: SparkSession | None = None,
        rejects: Rejects | None = None,
    ) -> None:
        self._rejects = rejects if rejects is not None else Rejects()
        self._spark = spark if spark is not None else session()
        self._topics = checked.topics
        self._conditions = tuple(replace(c, delivery=TIMELY) for c in checked.conditions)
        files = [replace(file, path=os.path.abspath(file.path)) for file in files]  # workers are elsewhere
        for file in files:
            inspect(file, reading)
        self._job = Job(
            self._conditions,
            reading,
            tuple(tasks(files, reading, self._spark.sparkContext.defaultParallelism)),
            shards=2 * self._spark.sparkContext.defaultParallelism,
            strict=self._rejects.strict,
            keep_rejects=rejects is not None,
        )
        self.passed: Counter[str] = Counter()
        """How many notifications each subscription had, once they have been iterated over."""
        self._open: dict[tuple[str, str | None], Instant] = {}

    @cached_property
    def _packed(self) -> DataFrame:
        self._spark.dataSource.register(HoldfastSource)
        return self._spark.read.format(FORMAT).option("job", self._job.to_text()).load().persist()

    @cached_property
    def dataframe(self) -> DataFrame:
        """The notifications, in no particular order: one row each, one column for each attribute."""
        conditions, topics = self._conditions, self._topics

        def stepped(key: tuple[Any, ...], rows: pa.Table) -> pa.Table:
            return step_shard(conditions, topics, key[0].as_py(), rows.column("events").to_pylist())

        packed = self._packed.filter(col("machine") != REPORT)
        return packed.groupBy("machine", "shard").applyInArrow(stepped, spark_schema(topics))

    def __iter__(self) -> Iterator[Notification]:
        self.tally  # noqa: B018 -- what went wrong in reading is said first
        ordered = self.dataframe.orderBy(*_ORDER)
        for notification in from_table(self._topics, ordered.toArrow()):
            self._count(notification)
            yield notification

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

    @cached_property
    def reports(self) -> list[Report]:
        """What the readers said."""
        rows = self._packed.filter(col("machine") == REPORT).orderBy("shard").collect()
        return [msgspec.msgpack.decode(bytes(row.events), type=Report) for row in rows]

    @cached_property
    def coverage(self) -> Coverage:
        """How many events lay in scopes."""
        whole = Coverage()
        for report in self.reports:
            whole.events.update(report.events)
            whole.outside.update(report.outside)
        return whole

    def misplaced(self) -> list[str]:
        """The subscriptions that not one event could concern."""
        return self.coverage.misplaced(groups(self._conditions))

    @property
    def kept(self) -> int:
        """How many events satisfied some predicate."""
        return sum(report.kept for report in self.reports)

    @cached_property
    def tally(self) -> Tally:
        """What was read; what went wrong in a reader is raised here."""
        tally = Tally()
        files = {file.path: file for task in self._job.tasks for file in _files_of(task)}
        for report in self.reports:
            if report.failed is not None:
                status, message = report.failed
                raise (UsageError if status == UsageError.exit_status else InputError)(message)
            part = Tally(report.rows, Counter(report.rejected), Counter(report.other_topics))
            tally.add(part)
            for path, row, reason, data in report.rejects:
                self._rejects.write(files[path], row, reason, msgspec.json.decode(data))
        if tally.rejected and not tally.used:
            first = next(report.first for report in self.reports if report.first is not None)
            raise InputError(f"not one row can be used ({tally.rows:,} read).  The first:\n  {first}")
        return tally


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
    lets: Mapping[str, float | int | str | bool] | None = None,
) -> Replay:
    """As ``holdfast.replay``, on Spark."""
    checked = check(parse(app) if isinstance(app, str) else app, lets=lets)
    reading = Reading(checked.topics, map or {}, parse_zone(zone), time_format, time_unit, topic)
    files = find([str(path) for path in inputs], [t.name for t in checked.topics])
    return Replay(checked, files, reading, spark=spark)


def tasks(files: Sequence[InputFile], reading: Reading, cores: int) -> Iterator[Task]:
    """What each reader reads: closed parts where they are not too large, else files one by one."""
    parts = closed_parts(files, reading)
    rows = [part.rows for part in parts]
    known = [r for r in rows if r is not None]
    if len(known) == len(parts) and len(parts) > 2 * cores:
        parts = closed_parts(files, reading, small=sum(known) // (2 * cores))
    for part in parts or [Part((), 0, 0)]:  # even nothing is read by somebody, who reports it
        if len(part.pieces) > 1 and (part.rows is None or part.rows > LARGE):
            yield from (Task(_alone(piece), closed=False) for piece in part.pieces)
        else:
            yield Task(part, closed=True)


def _alone(piece: Piece) -> Part:
    return Part((piece,), None, piece.file.size)


def step_shard(
    conditions: tuple[Condition, ...], topics: tuple[Topic, ...], number: int, raw: list[bytes]
) -> pa.Table:
    """The notifications of one machine over all events of a shard."""
    group = groups(conditions)[number]
    if not raw:
        return schema_of(topics).empty_table()
    history = in_order(concatenate([from_ipc(part) for part in raw]))
    _, passed = group.machine.step(group.machine.initial(), history, BEGINNING)
    return to_table(topics, list(group.addressed(transitions(group.topic, passed))))
