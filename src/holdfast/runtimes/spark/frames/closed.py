"""The plan `closed`, for frames whose partitions are closed.

A partition is closed if no scope has readings in another partition between those in this one. One aggregate
over the frame verifies that: the first and the last time of each scope in each partition. Then each partition
is sorted and compacted by itself, in one pass through Python, and only the rest is shuffled. The frame is
read twice, so both reads must return the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.functions import (
    coalesce,
    col,
    count,
    expr,
    lit,
    spark_partition_id,
    unix_micros,
    when,
    xxhash64,
)
from pyspark.sql.functions import max as most
from pyspark.sql.functions import min as least

from ....errors import InputError
from ....files.plan import Part
from ....files.sort import Sorter
from ....lang.condition import ScopedCondition
from ....lang.expressions.sql import literal
from ....model.topic import Topic
from ..batch.reader import MEMORY, MOST_IN_MEMORY, Compaction
from ..classic import optimized_plan
from ..job import Job
from ..pack import SPARK_SCHEMA
from ..reading import Reader
from .rows import batches_by_topic, naming, whole_topics, without_topic
from .scan import PlanDoesNotFit

Counts = Mapping[int, int]
"""How many rows each partition has."""

SPANS = 4_000_000
"""The largest number of pairs of scope and partition for which the plan is tried."""

_REPEATABLE = {
    "Project", "Filter", "LogicalRelation", "DataSourceV2ScanRelation", "InMemoryRelation", "LocalRelation",
    "Range",
}  # fmt: skip


def is_repeatable(frame: DataFrame) -> bool:
    """Whether a frame only reads and filters files, a table or the cache.

    A second read of such a frame is cheap and returns the same rows in the same partitions.
    """
    plan = optimized_plan(frame)
    if plan is None or not plan.deterministic():
        return False
    return all(name in _REPEATABLE for name in _nodes(plan))


def _nodes(plan: Any) -> Iterator[str]:
    yield plan.getClass().getSimpleName()
    children = plan.children()
    for i in range(children.size()):
        yield from _nodes(children.apply(i))


def count_rows(job: Job, frame: DataFrame, rows: DataFrame) -> Counts:
    """Read the frame once. Return the number of rows of each partition, or raise `PlanDoesNotFit`.

    The plan fits if all partitions are closed.
    """
    if whole_topics(job) or not all(operator.compacts for operator in job.operators.values()):
        raise PlanDoesNotFit("it is more than state filters")
    if any(condition.forest is not None for condition in job.checked.of(ScopedCondition)):
        raise PlanDoesNotFit("only Python can tell in which region an event lies")
    if not is_repeatable(frame):
        raise PlanDoesNotFit("to read it twice may be dear, or give other rows")
    micros = unix_micros("time")
    spans = (
        rows.groupBy(spark_partition_id().alias("part"), _scope_hash(job).alias("scope"))
        .agg(least(micros).alias("first"), most(micros).alias("last"), count("*").alias("rows"))
        .limit(SPANS + 1)
        .toArrow()
    )
    if len(spans) > SPANS:
        raise PlanDoesNotFit(f"it has more than {SPANS:,} scopes in its partitions")
    part, scope, first, last, size = (spans.column(i).to_numpy() for i in range(5))
    order = np.lexsort((last, first, scope))
    follows = scope[order][1:] == scope[order][:-1]
    if np.any(follows & (first[order][1:] <= last[order][:-1])):
        raise PlanDoesNotFit("partitions have readings of one scope from one time")
    parts, at = np.unique(part, return_inverse=True)
    return dict(zip(parts.tolist(), np.bincount(at, size).astype(int).tolist(), strict=True))


def _scope_hash(job: Job) -> Any:
    """Return a hash of each row's topic and outermost scope; scopes with equal hashes are treated as one."""
    watching: dict[Topic, list[ScopedCondition]] = {}
    for condition in job.checked.of(ScopedCondition):
        watching.setdefault(condition.topic, []).append(condition)
    cases = []
    for topic, own in watching.items():
        outermost = {condition.keys[-1] if condition.keys else () for condition in own}
        named = naming(job.checked, topic)
        names = [col(named(name)) for name in (outermost.pop() if len(outermost) == 1 else ())]
        is_its = expr(f"topic = {literal(topic.name)}")
        cases.append(when(is_its, xxhash64(lit(topic.name), *names)))
    return coalesce(*cases)


def pack_partitions(job: Job, rows: DataFrame, counts: Counts, shards: int) -> DataFrame:
    """Compact the rows of closed partitions and pack them by operator and shard."""
    return without_topic(job, rows).mapInArrow(partial(_pack_partition, job, counts, shards), SPARK_SCHEMA)


def _pack_partition(
    job: Job, counts: Counts, shards: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    reader, seen, compaction = Reader(job), 0, Compaction(job, Part((), None, 0))
    topics = job.pushdown.consumers
    with ExitStack() as stack:
        sorters = {name: stack.enter_context(Sorter(MEMORY // len(topics))) for name in topics}
        for topic, batch in batches_by_topic(job, batches):
            seen += len(batch)
            sorters[topic].add(batch)
        context = TaskContext.get()
        if context is not None and seen != counts.get(context.partitionId(), 0):
            raise InputError("the frame gave other rows when it was read again; plan='packed' reads it once")
        for topic, sorter in sorters.items():
            for batch in sorter.drain():
                compaction.add(topic, batch)
                if compaction.bytes > MOST_IN_MEMORY:
                    yield from reader.pack_history(compaction.drain(), shards)
        yield from reader.pack_history(compaction.drain(), shards)
