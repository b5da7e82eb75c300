"""Streaming DataFrames as input. `stream` returns their notifications as a stream.

The JVM renames columns and drops rows that satisfy no predicate, unless an operator needs them for its
watermark. The other rows are packed and processed as in a streaming query over files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from ....definition.app import App
from ....definition.check import check, require_final
from ....definition.parse import as_app
from ....errors import UsageError
from ....files.reading import Reading
from ....model.batch import from_ipc, in_order
from ..fingerprint import claim, fingerprint
from ..job import Job
from ..pack import SPARK_SCHEMA, PacketKind, pack, pack_watermarks, packet_row
from ..reading import Reader
from ..schema import spark_schema
from ..streaming.checkpoint import SHARDS
from ..streaming.processor import STORE_SETTINGS, run_stages
from .rows import Bad, batches_by_topic, events
from .zones import restore_zone, zone_of


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
    """Return the notifications of a streaming DataFrame as a streaming DataFrame.

    Columns are as for `replay`. Spark does not preserve the order in which the rows of a micro-batch arrived,
    so each micro-batch is processed by (time, source, sequence). Late events of ordered conditions are rows
    with the status `late`. `zone` is as for `replay`.

    Start the result with `writeStream` and a checkpoint of its own. While that checkpoint is used, `shards`
    and the definition must not change. If you name its folder as `checkpoint`, a change is refused now;
    otherwise the query fails in its first batch.

    States are stored in RocksDB: this function sets the state store provider of the session.
    """
    if not frame.isStreaming:
        raise UsageError("stream takes a streaming DataFrame; for one that ends there is replay")
    known = as_app(app)
    require_final(known, "a stream on Spark")
    checked = check(known, lets=lets)
    job = Job(checked)
    reading = zone_of(frame, Reading(checked.topics, map or {}, topic=topic), zone)
    rows = events(job, frame, reading, bad=bad)
    mark = fingerprint(job, shards)
    if checkpoint is not None:
        claim(frame.sparkSession, str(checkpoint), mark)
    for name, value in STORE_SETTINGS.items():
        frame.sparkSession.conf.set(name, value)
    blobs = rows.mapInArrow(partial(_pack_frame, job, shards), SPARK_SCHEMA)
    packets = run_stages(blobs, job, job.stages, shards, in_order, mark)
    return restore_zone(
        packets.mapInArrow(_unpack_notifications, spark_schema(job.published)), frame, reading
    )


def _pack_frame(job: Job, shards: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack relevant events, then the watermarks. Rows that may be late are never dropped."""
    reader = Reader(job)
    for topic, batch in batches_by_topic(job, batches):
        for selected in reader.select(topic, batch):
            yield from pack(selected, shards)
    yield from pack_watermarks(
        {t: at for t, at in reader.watermarks.items() if t in job.watermark_topics}, shards
    )
    # Without rows no shard would check the fingerprint.
    yield packet_row(PacketKind.WATERMARKS, 0, msgspec.msgpack.encode({}))


def _unpack_notifications(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        found = batch.filter(pc.equal(batch.column("kind"), int(PacketKind.NOTIFICATIONS)))
        yield from map(from_ipc, found.column("payload").to_pylist())
