"""Partitions that are closed: no scope has readings in one of them that fall between those in another.

One aggregate over the frame tells: the first and the last time of each scope in each partition.  Then each
partition is put in order and reduced by itself [law 2], in one pass through Python, and only what is left is
shuffled.  The frame is read twice, so it must be one that gives the same rows again.
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

from ....compilers.sql import literal
from ....errors import InputError
from ....files.plan import Part
from ....files.sort import Sorter
from ....lang.condition import Condition
from ....model.topic import Topic
from ..history.reader import MEMORY, MOST_HELD, Reduced
from ..pack import SPARK_SCHEMA
from ..plan import Work
from ..reading import Reader
from .rows import batches_by_topic, naming, seen_whole, without_topic
from .scan import Unlike

Counts = Mapping[int, int]
"""How many rows each partition has."""

SPANS = 4_000_000
"""How many scopes of partitions may be looked at, at most."""

_REPEATABLE = {
    "Project", "Filter", "LogicalRelation", "DataSourceV2ScanRelation", "InMemoryRelation", "LocalRelation",
    "Range",
}  # fmt: skip


def is_repeatable(frame: DataFrame) -> bool:
    """Whether a frame is only read (from files, a table, the cache) and cut, so that reading it again is
    cheap and gives the same rows in the same partitions."""
    plan = frame._jdf.queryExecution().optimizedPlan()
    return bool(plan.deterministic()) and all(name in _REPEATABLE for name in _nodes(plan))


def _nodes(plan: Any) -> Iterator[str]:
    yield plan.getClass().getSimpleName()
    children = plan.children()
    for i in range(children.size()):
        yield from _nodes(children.apply(i))


def counted(work: Work, frame: DataFrame, rows: DataFrame) -> Counts:
    """How many rows each partition has, if all of them are closed; reads the frame."""
    if seen_whole(work) or not all(one.compacts for one in work.operators.values()):
        raise Unlike("it is more than state filters")
    if any(condition.forest is not None for condition in work.checked.conditions):
        raise Unlike("only Python can tell in which region an event lies")
    if not is_repeatable(frame):
        raise Unlike("to read it twice may be dear, or give other rows")
    micros = unix_micros("time")
    spans = (
        rows.groupBy(spark_partition_id().alias("part"), _apart(work).alias("scope"))
        .agg(least(micros).alias("first"), most(micros).alias("last"), count("*").alias("rows"))
        .limit(SPANS + 1)
        .toArrow()
    )
    if len(spans) > SPANS:
        raise Unlike(f"it has more than {SPANS:,} scopes in its partitions")
    part, scope, first, last, size = (spans.column(i).to_numpy() for i in range(5))
    order = np.lexsort((last, first, scope))
    follows = scope[order][1:] == scope[order][:-1]
    if np.any(follows & (first[order][1:] <= last[order][:-1])):
        raise Unlike("partitions have readings of one scope from one time")
    parts, at = np.unique(part, return_inverse=True)
    return dict(zip(parts.tolist(), np.bincount(at, size).astype(int).tolist(), strict=True))


def _apart(work: Work) -> Any:
    """A hash of each row's topic and outermost scope; two scopes that have one are taken for one."""
    watching: dict[Topic, list[Condition]] = {}
    for condition in work.checked.conditions:
        watching.setdefault(condition.topic, []).append(condition)
    cases = []
    for topic, mine in watching.items():
        outermost = {condition.keys[-1] if condition.keys else () for condition in mine}
        named = naming(work.checked, topic)
        names = [col(named(name)) for name in (outermost.pop() if len(outermost) == 1 else ())]
        is_its = expr(f"topic = {literal(topic.name)}")
        cases.append(when(is_its, xxhash64(lit(topic.name), *names)))
    return coalesce(*cases)


def packed(work: Work, rows: DataFrame, counts: Counts, shards: int) -> DataFrame:
    """What is left of the rows of closed partitions, packed by operator and shard."""
    return without_topic(work, rows).mapInArrow(partial(_packed, work, counts, shards), SPARK_SCHEMA)


def _packed(
    work: Work, counts: Counts, shards: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    reader, seen, reduced = Reader(work), 0, Reduced(work, Part((), None, 0))
    topics = work.listening
    with ExitStack() as stack:
        sorters = {name: stack.enter_context(Sorter(MEMORY // len(topics))) for name in topics}
        for topic, batch in batches_by_topic(work, batches):
            seen += len(batch)
            sorters[topic].add(batch)
        context = TaskContext.get()
        if context is not None and seen != counts.get(context.partitionId(), 0):
            raise InputError("the frame gave other rows when it was read again; plan='packed' reads it once")
        for topic, sorter in sorters.items():
            for batch in sorter.drain():
                reduced.add(topic, batch)
                if reduced.bytes > MOST_HELD:
                    yield from reader.spread(reduced.drain(), shards)
        yield from reader.spread(reduced.drain(), shards)
