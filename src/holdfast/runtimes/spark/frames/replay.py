"""A user's own DataFrame goes in; notifications come out, by the fastest of the plans that fit it.

``files``: the frame is only a scan of Parquet files.  Our readers read them, as of ``replay_files``.
``native``: entrance and exit of no state can both hold, and scopes are one level deep.  Then Spark's own
window query says the same: what satisfies a predicate is compared with what did so before it.
``closed``: no scope has readings in one partition that fall between those in another.  Then each partition
is reduced by itself, and only what is left is shuffled.
``packed``: anything else.  Rows that satisfy no predicate are dropped in the JVM; the others cross to Python
once, are packed by machine and shard, meet in shards and are stepped there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal, get_args

from pyspark.sql import DataFrame

from ....errors import InputError, UsageError
from ....files.reading import Reading
from ....lang.app import App
from ....lang.check import check
from ....lang.parse import as_app
from ..history.reader import Job
from ..history.replay import given, notifications, tasks
from ..plan import Work
from ..reading import reported
from . import closed, native
from .rows import Bad, able, laid_out, numbered, packed_rows, require_known
from .scan import Unlike, scan
from .zones import returned, zone_of

log = logging.getLogger("holdfast.spark")

Plan = Literal["files", "native", "closed", "packed"]


def replay(
    app: App | str,
    frame: DataFrame,
    *,
    map: Mapping[str, str] | None = None,
    topic: str | None = None,
    zone: str | None = None,
    lets: Mapping[str, float | int | str | bool] | None = None,
    bad: Bad = "fail",
    plan: Plan | None = None,
) -> DataFrame:
    """The notifications of a batch DataFrame, in no particular order.

    Columns are those of files: ``time`` (a timestamp), ``source``, if there are such ``topic``,
    ``sequence``, ``place``, ``x``, ``y``, ``z``, and the attributes; ``map`` leads from our names to the
    frame's, ``topic`` is that of rows that do not say theirs.  ``zone`` is that of times which do not
    say it (``timestamp_ntz``); without it they are UTC, and refused in a session that has another zone.
    Times come back in the type in which they were given.

    A row without time, source or topic cannot be used.  The action that meets one fails, and
    Spark's error says why; with ``bad="drop"`` such rows are left out.

    Rows are processed by (time, source, sequence).  A row without a sequence gets a hash of what
    it says beside time and source: ids are the same whatever the partitions, the order of the rows
    and the other rows of the frame, and rows that are alike in everything have the same id.

    ``plan`` is the way to compute it, by default the first that fits of ``files``, ``native``, ``closed``
    and ``packed``; the log of ``holdfast.spark`` says which and why.
    """
    if frame.isStreaming:
        raise UsageError("replay takes a DataFrame that ends, and this one is a stream")
    if plan not in (None, *get_args(Plan)):
        raise UsageError(f"plan={plan!r}: there is {', '.join(get_args(Plan))}")
    require_known(bad)
    checked = check(as_app(app), lets=lets)
    reading = Reading(checked.topics, map or {}, topic=topic)
    asked = _Asked(Work.on_history(checked), frame, zone_of(frame, reading, zone), bad)
    asked.laid  # noqa: B018 -- what is wrong with the frame is said now, whatever the plan
    return returned(_planned(asked, plan), frame, asked.reading)


@dataclass(frozen=True)
class _Asked:
    """What is to be computed of which rows."""

    work: Work
    frame: DataFrame
    reading: Reading
    bad: Bad

    @cached_property
    def rows(self) -> DataFrame:
        """The rows that some predicate holds for, with a sequence only where the frame has one."""
        return self.having(None)

    def having(self, wanted: Mapping[str, str] | None) -> DataFrame:
        """The rows of which this holds, with a sequence only where the frame has one."""
        return able(self.work, self.frame, self.laid, self.reading, self.bad, wanted)

    @cached_property
    def laid(self) -> DataFrame:
        """All rows, in our columns."""
        return laid_out(self.work.checked, self.frame, self.reading)

    @property
    def cores(self) -> int:
        return self.frame.sparkSession.sparkContext.defaultParallelism

    @property
    def shards(self) -> int:
        return self.work.shards(self.cores)


def _planned(asked: _Asked, plan: Plan | None) -> DataFrame:
    """The notifications by the plan that is wanted, or by the first that fits."""
    against = []
    for name in get_args(Plan) if plan is None else [plan]:
        try:
            found = _PLANS[name](asked)
        except Unlike as reason:
            if plan is not None:
                raise UsageError(f"plan={plan!r} does not fit this frame: {reason}") from None
            against.append(f"; not {name}: {reason}")
            continue
        log.info("replay of a frame: %s%s", name, "".join(against))
        return found
    raise AssertionError("any frame can be packed")


def _from_files(asked: _Asked) -> DataFrame:
    work = asked.work
    files, reading = scan(work, asked.frame, asked.reading)
    parts = tuple(tasks(files, reading, asked.cores))
    job = Job(work, reading, parts, asked.shards, numbers="sequence" not in reading.rename)
    judge = partial(_require_rows, asked.bad)
    return notifications(work, given(asked.frame.sparkSession, job), asked.shards, judge)


def _require_rows(bad: Bad, report: bytes) -> None:
    """Fail where a reader did, or where it met a row that cannot be used."""
    said = reported(report)
    said.require_success()
    for reason in said.rejected if bad == "fail" else ():
        raise InputError(f"a row of the frame has {reason}; bad='drop' leaves such rows out")


def _natively(asked: _Asked) -> DataFrame:
    native.require(asked.work, asked.frame)
    numbered = asked.reading.theirs("sequence") in asked.frame.columns
    return native.notifications(asked.work, asked.laid.columns, asked.having, numbered=numbered)


def _by_partition(asked: _Asked) -> DataFrame:
    rows = numbered(asked.rows)
    counts = closed.counted(asked.work, asked.frame, rows)
    return notifications(asked.work, closed.packed(asked.work, rows, counts, asked.shards), asked.shards)


def _packed(asked: _Asked) -> DataFrame:
    rows = packed_rows(asked.work, numbered(asked.rows), asked.shards)
    return notifications(asked.work, rows, asked.shards)


_PLANS: Mapping[str, Callable[[_Asked], DataFrame]] = {
    "files": _from_files,
    "native": _natively,
    "closed": _by_partition,
    "packed": _packed,
}
