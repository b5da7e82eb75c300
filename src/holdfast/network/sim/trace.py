"""The trace of a run as columns, for Parquet files and independent analysis.

frames.parquet   time, node, what, frame, kind, source, destination, bytes, airtime, cause
                 what: transmit | receive | cause of the loss; frame: its number; airtime in µs
states.parquet   time, node, part, state
                 part: radio | mcu; rows of a node and part are in order of time
energy.parquet   time, node, radio_j, mcu_j, residual_j
                 one row for each node and round [D38]
"""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...model.instant import Duration, Instant
from .energy import MCU_STATES, RADIO_STATES, Draw
from .frame import Frame, NodeId

if TYPE_CHECKING:
    from .transceiver import Transceiver

_WORD = pa.dictionary(pa.int16(), pa.string())
_TIME, _NODE = ("time", pa.int64()), ("node", pa.int32())
FRAMES = pa.schema([
    _TIME, _NODE, ("what", _WORD), ("frame", pa.int64()), ("kind", _WORD), ("source", pa.int32()),
    ("destination", pa.int32()), ("bytes", pa.int32()), ("airtime", pa.int64()), ("cause", _WORD),
])  # fmt: skip
STATES = pa.schema([_TIME, _NODE, ("part", _WORD), ("state", _WORD)])
ENERGY = pa.schema([_TIME, _NODE, *((name, pa.float64()) for name in ("radio_j", "mcu_j", "residual_j"))])
_CODES = {pa.int64(): "q", pa.int32(): "i", pa.float64(): "d", _WORD: "h"}


class TraceTable:
    """A table of columns that grows row by row."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._columns = [array(_CODES[field.type]) for field in schema]
        self._words: list[dict[str, int] | None] = [{} if field.type == _WORD else None for field in schema]

    def __len__(self) -> int:
        return len(self._columns[0])

    def append(self, *row: Any) -> None:
        for column, words, value in zip(self._columns, self._words, row, strict=True):
            column.append(value if words is None else words.setdefault(value, len(words)))

    def table(self) -> pa.Table:
        """Return the appended rows as an Arrow table."""
        arrays = []
        for column, words, field in zip(self._columns, self._words, self._schema, strict=True):
            values = np.array(column, dtype=column.typecode)
            if words is None:
                arrays.append(pa.array(values, field.type, from_pandas=True))  # NaN is missing
            else:
                arrays.append(pa.DictionaryArray.from_arrays(pa.array(values), pa.array(words, pa.string())))
        return pa.Table.from_arrays(arrays, schema=self._schema)


class Trace:
    """Records the frames, the changes of state and the energy of a run.

    With ``states_of``, only the states of these nodes are recorded, because states are most of the rows.
    """

    def __init__(self, states_of: Container[NodeId] | None = None) -> None:
        self.states_of = states_of
        self.frames = TraceTable(FRAMES)
        self.states = TraceTable(STATES)
        self.energy = TraceTable(ENERGY)

    def record_transmission(self, now: Instant, frame: Frame, airtime: Duration) -> None:
        self._frame(now, frame.source, "transmit", frame, airtime)

    def record_end(
        self, now: Instant, frame: Frame, came: Iterable[Transceiver], missed: Mapping[Transceiver, str]
    ) -> None:
        for receiver in came:
            self._frame(now, receiver.id, "receive", frame, 0)
        for receiver, why in missed.items():
            self._frame(now, receiver.id, why, frame, 0)

    def _frame(self, now: Instant, node: int, what: str, frame: Frame, airtime: Duration) -> None:
        ends = frame.source, frame.destination
        self.frames.append(now, node, what, frame.id, frame.kind, *ends, frame.bytes, airtime, frame.cause)

    def tables(self) -> dict[str, pa.Table]:
        """Return the three tables ``frames``, ``states`` and ``energy`` by name."""
        return {"frames": self.frames.table(), "states": self.states.table(), "energy": self.energy.table()}

    def write(self, folder: Path) -> list[Path]:
        """Write the tables as Parquet files into a folder; return the paths of the files."""
        folder.mkdir(parents=True, exist_ok=True)
        files = {folder / f"{name}.parquet": table for name, table in self.tables().items()}
        for file, table in files.items():
            pq.write_table(table, file, compression="zstd")
        return list(files)


def integrate(states: pa.Table, draw: Draw, until: Instant) -> dict[tuple[NodeId, str], float]:
    """Return the joules of each node and part (``radio``, ``mcu``), computed from the trace of states alone.

    This function shares no code with the energy accounts of a run, so that it can verify them. It multiplies
    the time from one row of a node and part to the next by the power of the earlier row.
    """
    found: dict[tuple[NodeId, str], float] = {}
    for part, names, levels in (("radio", RADIO_STATES, draw.radio), ("mcu", MCU_STATES, draw.mcu)):
        power = dict(zip(names, levels, strict=True))
        rows = states.filter(pc.equal(states["part"], part))
        node, time = rows["node"].to_numpy(), rows["time"].to_numpy()
        order = np.lexsort((time, node))  # by node, then time; rows with equal times keep their order
        node, time = node[order], time[order]
        drawn = np.array([power[state] for state in rows["state"].to_pylist()])[order]
        ends = np.append(time[1:], until)
        ends[np.flatnonzero(np.diff(node))] = until
        used = np.bincount(node, (ends - time) * drawn)
        found |= {(node_id, part): float(used[node_id]) * 1e-9 for node_id in np.unique(node).tolist()}
    return found
