"""Stored readings, for a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ..model.batch import TIME
from ..model.instant import Instant
from .log.seal import history
from .trial import overlaps


def readings_of(
    folder: Path, topic: str, where: Mapping[str, str], stretch: tuple[Instant, Instant], most: int
) -> dict[str, Any]:
    """Readings of a topic by time, thinned to so many: every so many-th."""
    start, end = (pa.scalar(at, pa.int64()).cast(TIME) for at in stretch)
    suffix = f"-{quote(topic, safe='')}.parquet"
    parts = []
    with history(folder) as paths:
        for path in paths:
            if path.endswith(suffix) and overlaps(path, *stretch):
                table = pq.read_table(path).drop_columns(["topic", "sequence"])
                mask = pc.and_(pc.greater_equal(table["time"], start), pc.less(table["time"], end))
                for name, value in where.items():
                    known = pc.equal(table[name], value) if name in table.column_names else pa.scalar(False)
                    mask = pc.and_(mask, pc.fill_null(known, False))
                parts.append(table.filter(mask))
    if not parts:
        return {"total": 0, "time": [], "source": []}
    whole = pa.concat_tables([_plain(part) for part in parts], promote_options="default").sort_by("time")
    step = -(-len(whole) // most) or 1
    thin = whole.take(pa.array(np.arange(0, len(whole), step))) if step > 1 else whole
    shown = {name: thin[name].to_pylist() for name in thin.column_names if name != "time"}
    return {"total": len(whole), "time": thin["time"].cast(pa.int64()).to_pylist(), **_finite(shown)}


def _plain(table: pa.Table) -> pa.Table:
    fields = [pa.field(f.name, pa.string()) if pa.types.is_dictionary(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields))


def _finite(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The values as JSON knows them: what is no finite number is missing."""
    return {
        name: [None if isinstance(v, float) and v - v != 0 else v for v in column]
        for name, column in columns.items()
    }
