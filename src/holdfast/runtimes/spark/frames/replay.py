"""A user's own DataFrame goes in, natively as far as possible; notifications come out.

In the JVM: columns are given our names and kinds, rows that satisfy no predicate are dropped, and
stretches in which nothing changes are collapsed (see ``collapse``); of topics that must be seen
whole all rows stay.  What is left crosses to Python once, is packed by machine and shard, meets in
shards and is stepped there.

Collapsing reads the frame three times (a sample, the spans, the rows) instead of once, so it is
done only where that is cheap and gives the same rows: files, tables and the cache, at most selected
and filtered.  Ten million rows of 1,000 sensors in eight Parquet files, ``[value > 25; value < 22]``
per source: once Spark is warm 6.5 to 8 seconds of processor time with it and 9 to 11.5 without; in
the first run of a session, most of which is starting and compiling, as much with it as without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import pyarrow as pa
from pyspark.sql import DataFrame

from ....errors import UsageError
from ....files.reading import Reading
from ....lang.app import App
from ....lang.check import check
from ....lang.parse import as_app
from ....model.instant import Duration
from ..history.replay import notifications
from ..pack import SPARK_SCHEMA
from ..plan import Work
from ..reading import Reader
from .collapse import collapsed, is_repeatable, stretches, width
from .rows import Bad, able, batches_by_topic, laid_out, naming, numbered, seen_whole, without_topic


def replay(
    app: App | str,
    frame: DataFrame,
    *,
    map: Mapping[str, str] | None = None,
    topic: str | None = None,
    lets: Mapping[str, float | int | str | bool] | None = None,
    bad: Bad = "fail",
    span: Duration | Literal["auto"] | None = "auto",
) -> DataFrame:
    """The notifications of a batch DataFrame, in no particular order.

    Columns are those of files: ``time`` (a timestamp; without a time zone it is UTC), ``source``,
    if there are such ``topic``, ``sequence``, ``place``, ``x``, ``y``, ``z``, and the attributes;
    ``map`` leads from our names to the frame's, ``topic`` is that of rows that do not say theirs.

    A row without time, source or topic cannot be used.  The action that meets one fails, and
    Spark's error says why; with ``bad="drop"`` such rows are left out.

    Rows are processed by (time, source, sequence).  A row without a sequence gets a hash of what
    it says beside time and source: ids are the same whatever the partitions, the order of the rows
    and the other rows of the frame, and rows that are alike in everything have the same id.

    ``span`` is the length of the stretches that are collapsed, in microseconds: chosen by a sample
    of the rows, which is read at once, or given, or ``None`` to collapse nothing.
    """
    if frame.isStreaming:
        raise UsageError("replay takes a DataFrame that ends, and this one is a stream")
    checked = check(as_app(app), lets=lets)
    work, reading = Work.on_history(checked), Reading(checked.topics, map or {}, topic=topic)
    rows = able(work, frame, reading, bad)
    found = stretches(work.checked.conditions, lambda topic: naming(checked, topic))
    found = {topic: own for topic, own in found.items() if topic.name not in seen_whole(work)}
    if span == "auto":
        ours = laid_out(checked, frame, reading)
        span = width(ours, found) if found and is_repeatable(frame) else None
    if found and span is not None:
        rows = collapsed(rows, found, span)
    shards = work.shards(frame.sparkSession.sparkContext.defaultParallelism)
    return notifications(work, packed_rows(work, numbered(rows), shards), shards)


def packed_rows(work: Work, rows: DataFrame, shards: int) -> DataFrame:
    """Rows that ``events`` gave, packed by operator and shard."""

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        reader = Reader(work)
        found = (mine for some in batches_by_topic(work, batches) for mine in reader.take(*some))
        return reader.spread(found, shards)

    return without_topic(work, rows).mapInArrow(pack, SPARK_SCHEMA)
