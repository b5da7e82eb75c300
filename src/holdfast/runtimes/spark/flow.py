"""A user's own stream goes in, whatever it comes from; notifications come out as a stream.

Rows are given our columns in the JVM, and what satisfies no predicate is dropped there, unless an
ordered condition must see how far time has come, or a component listens.  The rest is packed and
stepped as in ``stream``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from ...compilers.resume import kept, started
from ...errors import UsageError
from ...lang.app import App
from ...lang.check import check
from ...lang.condition import Checked
from ...lang.parse import parse
from ...model.batch import from_ipc, in_order
from ...model.instant import BEGINNING, Instant
from .checkpoint import SHARDS, Runner, operators_in
from .frame import Bad, batches_by_topic, events
from .notice import spark_schema
from .pack import PROGRESS, SPARK_SCHEMA, gathered, inmost, packed, row, time_in
from .state import NOTIFICATIONS, STORE, stated
from .stepping import Machines


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
    waits = any(condition.delivery.wait is not None for condition in checked.conditions)
    rows = events(checked, frame, map=map, topic=topic, bad=bad, all=waits)
    for name, value in STORE.items():
        frame.sparkSession.conf.set(name, value)
    blobs = rows.mapInArrow(partial(_packed, checked, shards), SPARK_SCHEMA)
    made = partial(machines, checked)
    stages = 1 + max((operator.stage for operator in made().operators.values()), default=0)
    said = stated(blobs, made, checked.published, in_order, stages=stages, shards=shards)
    return said.mapInArrow(_unpacked, spark_schema(checked.published))


def machines(checked: Checked) -> Machines:
    """The machines of a definition, numbered."""
    runners = [
        Runner(number, group, kept(group, of).fingerprints)
        for number, (group, of) in enumerate(started(checked.conditions))
    ]
    return Machines(runners, dict(enumerate(operators_in(checked), len(runners))))


def _packed(checked: Checked, shards: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    running = machines(checked)
    latest: dict[str, Instant] = {}
    for topic, batch in batches_by_topic(checked, batches):
        latest[topic.name] = max(latest.get(topic.name, BEGINNING), time_in(batch))
        for runner in running.runners:
            if runner.group.topic == topic:
                mine = batch.filter(pa.array(runner.group.machine.matters(batch)))
                if len(mine):
                    yield from packed(runner.number, inmost(runner.group.machine), mine, shards)
        for number, operator in running.operators.items():
            if topic.name in operator.topics:
                mine = operator.needed(topic.name, batch)
                if operator.strictest is None:  # else any event may be late, and is told of
                    mine = mine.filter(pa.array(operator.machine.matters(topic.name, batch)))
                yield from gathered(number, operator, topic.name, mine, shards)
    told = {name: latest[name] for name in running.waiting & latest.keys()}
    if told:
        raw = msgspec.msgpack.encode(told)
        yield from (row(PROGRESS, shard, raw) for shard in range(shards))


def _unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        said = batch.filter(pc.equal(batch.column("kind"), NOTIFICATIONS))
        yield from map(from_ipc, said.column("payload").to_pylist())
