"""A sink that writes notifications as Parquet files to a folder. Each file is complete when it appears."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...model.batch import TIME
from ...runtimes.local.engine import Holding
from ..store import NotificationRow
from .sink import Unavailable

_FORM = pa.schema(
    [
        ("position", pa.int64()), ("id", pa.string()), ("subscription", pa.string()), ("scope", pa.string()),
        ("status", pa.string()), ("time", TIME), ("since", TIME), ("arrived", TIME), ("line", pa.string()),
        ("level", pa.string()), ("was", pa.string()),
    ]
)  # fmt: skip


class ParquetSink:
    """A sink that writes a file for each batch, named by its first position.

    A repeated batch replaces its file.
    """

    kind = "parquet"
    heeds_mutes = False
    refresh_every = None

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self._folder = name, folder

    async def deliver(self, rows: Sequence[NotificationRow]) -> None:
        """Write notifications to a file of their own."""
        try:
            await asyncio.to_thread(self._write, rows)
        except OSError as error:
            raise Unavailable(f"{self._folder}: {error.strerror}") from None

    def _write(self, rows: Sequence[NotificationRow]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        columns = [
            pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), _FORM, strict=True)
        ]
        path = self._folder / f"{rows[0].position:020}.parquet"
        part = path.with_name(f".{path.name}.part")
        pq.write_table(pa.Table.from_arrays(columns, schema=_FORM), part, compression="zstd")
        part.replace(path)

    async def refresh(self, active: Sequence[Holding]) -> None: ...

    async def close(self) -> None: ...
