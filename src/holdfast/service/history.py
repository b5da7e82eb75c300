"""Access to stored readings, in sealed files and in segments that are not sealed yet."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..errors import InputError
from ..model.batch import TIME
from ..model.instant import Instant
from .log.frame import ORIGIN, Readings
from .log.log import read_segment, segments_of
from .log.seal import reading_files
from .trial import overlaps

log = logging.getLogger("holdfast.service")

Period = tuple[Instant, Instant]


def read_batches(folder: Path, topic: str, period: Period) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a topic that may have readings in a period.

    The service may seal segments meanwhile.
    """
    tail: list[pa.RecordBatch] = []
    unsealed = set()
    for segment in segments_of(
        folder
    ):  # listed first: a segment sealed meanwhile is read from one of the two
        try:
            found = [framed.entry for framed in read_segment(segment)]
        except FileNotFoundError:
            continue
        unsealed.add(f"{segment.first:020}")
        tail += [one.batch for one in found if isinstance(one, Readings) and one.topic == topic]
    suffix = f"-{quote(topic, safe='')}.parquet"
    for path in reading_files(folder):
        if path.name.endswith(suffix) and path.name.removesuffix(suffix) not in unsealed:
            try:
                if overlaps(str(path), *period):
                    yield from pq.ParquetFile(path, page_checksum_verification=True).iter_batches(1 << 18)
            except FileNotFoundError:  # removed by retention
                continue
            except (OSError, pa.ArrowException, InputError) as error:
                log.warning("%s: damaged, and left out: %s", path, error)
    yield from tail


def readings_of(
    folder: Path, topic: str, where: Mapping[str, str], period: Period, most: int
) -> dict[str, Any]:
    """Return readings of a topic in a period, by time.

    More than ``most`` are thinned by taking every n-th.
    """
    start, end = (pa.scalar(at, pa.int64()).cast(TIME) for at in period)
    parts = []
    for batch in read_batches(folder, topic, period):
        mask = pc.and_(pc.greater_equal(batch["time"], start), pc.less(batch["time"], end))
        for name, value in where.items():
            known = pc.equal(batch[name], value) if name in batch.schema.names else pa.scalar(False)
            mask = pc.and_(mask, pc.fill_null(known, False))
        parts.append(_plain(pa.Table.from_batches([batch.filter(mask)])))
    if not parts:
        return {"total": 0, "time": [], "source": []}
    whole = pa.concat_tables(parts, promote_options="default").sort_by("time")
    step = -(-len(whole) // most) or 1
    every_nth = whole.take(pa.array(np.arange(0, len(whole), step))) if step > 1 else whole
    columns = {name: every_nth[name].to_pylist() for name in every_nth.column_names if name != "time"}
    return {
        "total": len(whole),
        "time": every_nth["time"].cast(pa.int64()).to_pylist(),
        **_finite(columns),
    }


def _plain(table: pa.Table) -> pa.Table:
    """Return a table without the columns that only the log needs, and with dictionaries decoded."""
    selected = table.drop_columns(
        [name for name in table.column_names if name in ("topic", "sequence", ORIGIN)]
    )
    fields = [pa.field(f.name, pa.string()) if pa.types.is_dictionary(f.type) else f for f in selected.schema]
    return selected.cast(pa.schema(fields))


def _finite(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Replace numbers that JSON cannot represent by null."""
    return {
        name: [None if isinstance(v, float) and v - v != 0 else v for v in column]
        for name, column in columns.items()
    }
