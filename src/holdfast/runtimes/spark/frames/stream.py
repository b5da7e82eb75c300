"""A user's own stream goes in, whatever it comes from; notifications come out as a stream.

Rows are given our columns in the JVM, and what satisfies no predicate is dropped there, unless an
operator must see how far time has come.  The rest is packed and stepped as in a live query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from ....errors import UsageError
from ....files.reading import Reading
from ....lang.app import App
from ....lang.check import check, require_final
from ....lang.parse import as_app
from ....model.batch import from_ipc, in_order
from ..fingerprint import claim, fingerprint
from ..live.checkpoint import SHARDS
from ..live.state import STORE, stated
from ..pack import PROGRESS, SPARK_SCHEMA, TOLD, packed, progress, row
from ..plan import Work
from ..reading import Reader
from ..schema import spark_schema
from .rows import Bad, batches_by_topic, events
from .zones import returned, zone_of


def stream(
    app: App | str,
    frame: DataFrame,
    *,
    map: Mapping[str, str] | None = None,
    topic: str | None = None,
    zone: str | None = None,
    lets: Mapping[str, float | int | str | bool] | None = None,
    bad: Bad = "fail",
    shards: int = SHARDS,
    checkpoint: str | Path | None = None,
) -> DataFrame:
    """The notifications of a streaming DataFrame, as a streaming DataFrame; columns as for ``replay``.

    Spark does not keep the order in which the rows of a micro-batch arrived: they are taken by
    (time, source, sequence), one micro-batch after the other.  Late events of ordered conditions
    are rows with the status ``late``; ``zone`` is as for ``replay``.  Start it with ``writeStream``
    and a checkpoint of its own; ``shards`` and the definition must stay as they are as long as that
    checkpoint is used.  Name the folder of the checkpoint here, too: then another number of shards or
    another definition is refused now.  Otherwise the query fails in its first batch.

    States live in RocksDB: the session's state store provider is set to it.
    """
    if not frame.isStreaming:
        raise UsageError("stream takes a streaming DataFrame; for one that ends there is replay")
    known = as_app(app)
    require_final(known, "a stream on Spark")
    checked = check(known, lets=lets)
    work = Work(checked)
    reading = zone_of(frame, Reading(checked.topics, map or {}, topic=topic), zone)
    rows = events(work, frame, reading, bad=bad)
    mark = fingerprint(work, shards)
    if checkpoint is not None:
        claim(frame.sparkSession, str(checkpoint), mark)
    for name, value in STORE.items():
        frame.sparkSession.conf.set(name, value)
    blobs = rows.mapInArrow(partial(_packed, work, shards), SPARK_SCHEMA)
    said = stated(blobs, work, work.stages, shards, in_order, mark)
    return returned(said.mapInArrow(_unpacked, spark_schema(work.published)), frame, reading)


def _packed(work: Work, shards: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What can matter, and how far time has come; of what may be late nothing is dropped."""
    reader = Reader(work)
    for topic, batch in batches_by_topic(work, batches):
        for mine in reader.take(topic, batch):
            yield from packed(mine, shards)
    yield from progress({t: at for t, at in reader.reached.items() if t in work.clocks}, shards)
    yield row(PROGRESS, 0, msgspec.msgpack.encode({}), 0)  # every batch meets one shard, and its fingerprint


def _unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        said = batch.filter(pc.equal(batch.column("machine"), TOLD))
        yield from map(from_ipc, said.column("events").to_pylist())
