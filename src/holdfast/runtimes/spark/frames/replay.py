"""The replay of a DataFrame, by the fastest plan that fits the definition and the frame.

`files`: the frame only reads Parquet files. Holdfast's readers read them, as in `replay_files`.

`native`: no event both starts and ends a state, and scopes have one level. Spark's window query computes the
same: each row that satisfies a predicate is compared with the row before it.

`closed`: no scope has readings in one partition between those in another. Each partition is compacted by
itself, and only the rest is shuffled.

`packed`: any other case. Rows that satisfy no predicate are dropped in the JVM. The others cross to Python
once and are packed by operator and shard; operators run in the shards.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, get_args

from pyspark.sql import DataFrame

from ....definition.app import App
from ....definition.check import check
from ....definition.parse import as_app
from ....errors import InputError, UsageError
from ....files.reading import Reading
from ..batch.reader import ReadJob
from ..batch.replay import notifications, plan_tasks, read_packets
from ..classic import core_count
from ..job import Job
from ..reading import decode_report
from . import closed, native
from .rows import Bad, add_sequence, pack_rows, require_known, to_own_columns, usable_rows
from .scan import PlanDoesNotFit, scan
from .zones import restore_zone, zone_of

log = logging.getLogger("holdfast.spark")

PlanName = Literal["files", "native", "closed", "packed"]


def replay(
    app: App | str,
    frame: DataFrame,
    *,
    map: Mapping[str, str] | None = None,
    topic: str | None = None,
    zone: str | None = None,
    lets: Mapping[str, float | int | str | bool] | None = None,
    bad: Bad = "fail",
    plan: PlanName | None = None,
) -> DataFrame:
    """Return the notifications of a batch DataFrame, in no particular order.

    The columns are those of files: `time` (a timestamp), `source`, and optionally `topic`, `sequence`,
    `place`, `x`, `y`, `z` and the attributes. `map` leads from Holdfast's names to those of the frame;
    `topic` is the topic of rows without one. `zone` is the time zone of times without one (`timestamp_ntz`),
    by default UTC; such times are refused in a session with another zone. Times are returned in the type of
    the frame.

    A row without time, source or topic is rejected. By default the action that meets such a row fails with
    the reason; with `bad="drop"` such rows are left out.

    Rows are processed by (time, source, sequence). A row without a sequence gets a hash of its content. Ids
    therefore do not depend on partitions, the order of rows or the other rows of the frame, and rows with
    equal content have equal ids.

    `plan` chooses the plan, by default the first that fits of `files`, `native`, `closed` and `packed`. The
    log of `holdfast.spark` shows the plan and the reason.
    """
    if frame.isStreaming:
        raise UsageError("replay takes a DataFrame that ends, and this one is a stream")
    if plan not in (None, *get_args(PlanName)):
        raise UsageError(f"plan={plan!r}: there is {', '.join(get_args(PlanName))}")
    require_known(bad)
    checked = check(as_app(app), lets=lets)
    reading = Reading(checked.topics, map or {}, topic=topic)
    query = _FrameReplay(Job.on_history(checked), frame, zone_of(frame, reading, zone), bad)
    query.rows_in_own_columns  # noqa: B018 -- what is wrong with the frame is said now, whatever the plan
    return restore_zone(_choose_plan(query, plan), frame, query.reading)


@dataclass(frozen=True)
class _FrameReplay:
    """The replay of a frame: its job, rows and settings."""

    job: Job
    frame: DataFrame
    reading: Reading
    bad: Bad

    @cached_property
    def rows(self) -> DataFrame:
        """The rows that satisfy some predicate. They have a sequence only if the frame has one."""
        return self.select(None)

    def select(self, wanted: Mapping[str, str] | None) -> DataFrame:
        """Return the rows that satisfy the predicate of their topic.

        They have a sequence only if the frame has one.
        """
        return usable_rows(self.job, self.frame, self.rows_in_own_columns, self.reading, self.bad, wanted)

    @cached_property
    def rows_in_own_columns(self) -> DataFrame:
        """All rows, in Holdfast's columns and types."""
        return to_own_columns(self.job.checked, self.frame, self.reading)

    @property
    def cores(self) -> int:
        return core_count(self.frame.sparkSession)

    @property
    def shards(self) -> int:
        return self.job.shards(self.cores)


def _choose_plan(query: _FrameReplay, plan: PlanName | None) -> DataFrame:
    """Return the notifications by the given plan, or by the first that fits."""
    refusals = []
    for name in get_args(PlanName) if plan is None else [plan]:
        try:
            found = _PLANS[name](query)
        except PlanDoesNotFit as reason:
            if plan is not None:
                raise UsageError(f"plan={plan!r} does not fit this frame: {reason}") from None
            refusals.append(f"; not {name}: {reason}")
            continue
        log.info("replay of a frame: %s%s", name, "".join(refusals))
        return found
    raise AssertionError("any frame can be packed")


def _run_on_files(query: _FrameReplay) -> DataFrame:
    job = query.job
    files, reading = scan(job, query.frame, query.reading)
    parts = tuple(plan_tasks(files, reading, query.cores))
    read_job = ReadJob(job, reading, parts, query.shards, numbers="sequence" not in reading.rename)
    judge = partial(_require_rows, query.bad)
    return notifications(job, read_packets(query.frame.sparkSession, read_job), query.shards, judge)


def _require_rows(bad: Bad, report: bytes) -> None:
    """Raise the error of a reader, or an error for a rejected row unless such rows are dropped."""
    decoded = decode_report(report)
    decoded.require_success()
    for reason in decoded.rejected if bad == "fail" else ():
        raise InputError(f"a row of the frame has {reason}; bad='drop' leaves such rows out")


def _run_natively(query: _FrameReplay) -> DataFrame:
    native.require(query.job, query.frame)
    has_sequence = query.reading.theirs("sequence") in query.frame.columns
    return native.notifications(
        query.job, query.rows_in_own_columns.columns, query.select, has_sequence=has_sequence
    )


def _run_by_partition(query: _FrameReplay) -> DataFrame:
    rows = add_sequence(query.rows)
    counts = closed.count_rows(query.job, query.frame, rows)
    return notifications(
        query.job, closed.pack_partitions(query.job, rows, counts, query.shards), query.shards
    )


def _run_packed(query: _FrameReplay) -> DataFrame:
    rows = pack_rows(query.job, add_sequence(query.rows), query.shards)
    return notifications(query.job, rows, query.shards)


_PLANS: Mapping[str, Callable[[_FrameReplay], DataFrame]] = {
    "files": _run_on_files,
    "native": _run_natively,
    "closed": _run_by_partition,
    "packed": _run_packed,
}
