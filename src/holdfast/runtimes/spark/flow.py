"""A user's own stream goes in, whatever it comes from; notifications come out as a stream.

Rows are given our columns in the JVM, and what satisfies no predicate is dropped there, unless an
ordered condition must see how far time has come.  The rest is packed and stepped as in ``stream``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from ...compilers.detector import refuse_components
from ...compilers.resume import kept, started
from ...errors import UsageError
from ...lang.app import App
from ...lang.check import check
from ...lang.condition import Checked, Condition
from ...lang.parse import parse
from ...model.batch import from_ipc, in_order, reached
from ...model.instant import BEGINNING, Instant
from .checkpoint import SHARDS, Runner
from .frame import Bad, batches_by_topic, events
from .notice import spark_schema
from .pack import PROGRESS, SPARK_SCHEMA, inmost, packed, row
from .state import NOTIFICATIONS, OUTPUT, STORE, ShardProcessor


def stream(
    app: App | str,
    frame: DataFrame,
    *,
    map: Mapping[str, str] | None = None,
    topic: str | None = None,
    lets: Mapping[str, float | int | str | bool] | None = None,
    bad: Bad = "fail",
    shards: int = SHARDS,
) -> DataFrame:
    """The notifications of a streaming DataFrame, as a streaming DataFrame; columns as for ``replay``.

    Spark does not keep the order in which the rows of a micro-batch arrived: they are taken by
    (time, source, sequence), one micro-batch after the other.  Late events of ordered conditions
    are rows with the status ``late``.  Start it with ``writeStream`` and a checkpoint of its own;
    ``shards`` and the definition must stay as they are as long as that checkpoint is used.

    States live in RocksDB: the session's state store provider is set to it.
    """
    if not frame.isStreaming:
        raise UsageError("stream takes a streaming DataFrame; for one that ends there is replay")
    checked = check(parse(app) if isinstance(app, str) else app, lets=lets)
    refuse_components(checked, "on Spark")
    waits = any(condition.delivery.wait is not None for condition in checked.conditions)
    rows = events(checked, frame, map=map, topic=topic, bad=bad, all=waits)
    for name, value in STORE.items():
        frame.sparkSession.conf.set(name, value)
    blobs = rows.mapInArrow(partial(_packed, checked, shards), SPARK_SCHEMA)
    machines = partial(runners, checked.conditions)
    said = blobs.groupBy("shard").transformWithState(
        ShardProcessor(machines, checked.topics, in_order), OUTPUT, "append", "none"
    )
    return said.mapInArrow(_unpacked, spark_schema(checked.topics))


def runners(conditions: Iterable[Condition]) -> list[Runner]:
    """The machines of conditions, numbered."""
    return [
        Runner(number, group, kept(group, of).fingerprints)
        for number, (group, of) in enumerate(started(conditions))
    ]


def _packed(checked: Checked, shards: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    machines = runners(checked.conditions)
    latest: dict[str, Instant] = {}
    for topic, batch in batches_by_topic(checked, batches):
        latest[topic.name] = max(latest.get(topic.name, BEGINNING), reached(batch) or BEGINNING)
        for runner in machines:
            if runner.group.topic == topic:
                mine = batch.filter(pa.array(runner.group.machine.matters(batch)))
                if len(mine):
                    yield from packed(runner.number, inmost(runner.group.machine), mine, shards)
    waiting = {r.group.topic.name for r in machines if r.group.wait is not None} & latest.keys()
    if waiting:
        raw = msgspec.msgpack.encode({name: latest[name] for name in waiting})
        yield from (row(PROGRESS, shard, raw) for shard in range(shards))


def _unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        said = batch.filter(pc.equal(batch.column("kind"), NOTIFICATIONS))
        yield from map(from_ipc, said.column("payload").to_pylist())
