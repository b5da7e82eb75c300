"""Files with a column for each sensor. A row has a reading of every sensor whose cell is not empty."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from .chunk import Chunk
from .convert import MISSING, decode, is_text, truths
from .reading import SENSOR, Sheet


def split_by_sensor(chunk: Chunk, sheet: Sheet) -> Chunk:
    """Convert a wide chunk to a chunk with a row for each cell that is not empty.

    Such a row has the sensor as its source, the value of the cell, and the other columns of the wide row.
    """
    layout, attribute = sheet.layout, sheet.layout.topics(sheet.reading)[0].attributes[0]
    cells = [decode(chunk.columns[name]) for name in layout.sensors]
    rows_of_sensors = [np.flatnonzero(_is_filled(cell)) for cell in cells]
    rows = np.concatenate(rows_of_sensors)
    order = np.argsort(rows, kind="stable")  # row by row, as the file has them
    sensors = pa.array(
        np.repeat(np.arange(len(cells), dtype=np.int32), [len(some) for some in rows_of_sensors])
    )
    names = pa.DictionaryArray.from_arrays(sensors.take(pa.array(order)), pa.array(layout.sensors))
    values = _join_cells(
        sheet, [cell.take(pa.array(some)) for cell, some in zip(cells, rows_of_sensors, strict=True)]
    )
    rest = {name: chunk.columns[name] for name in chunk.columns if name not in layout.sensors}
    which = pa.array(rows[order])
    columns = {name: column.take(which) for name, column in rest.items()}
    columns[SENSOR] = names
    columns[sheet.reading.theirs(attribute.name)] = values.take(pa.array(order))
    return Chunk(chunk.rows[rows[order]], columns, chunk.faults)


def _is_filled(cell: pa.Array) -> np.ndarray:
    """Return the mask of cells that are not empty."""
    if is_text(cell.type):
        words = pc.ascii_lower(pc.utf8_trim_whitespace(cell))
        return truths(pc.invert(pc.is_in(words, pa.array((*MISSING, None)))))
    if pa.types.is_floating(cell.type):
        return truths(pc.and_kleene(pc.is_valid(cell), pc.invert(pc.is_nan(cell))))
    return truths(pc.is_valid(cell))


def _join_cells(sheet: Sheet, cells: list[pa.Array]) -> pa.Array:
    """Return the cells of all sensors in one column."""
    types = {cell.type for cell in cells if not pa.types.is_null(cell.type)}
    if not types:
        return pa.nulls(0)
    wanted = types.pop() if len(types) == 1 else pa.float64()
    try:
        return pa.concat_arrays([cell.cast(wanted) for cell in cells])
    except pa.ArrowException:
        other = next(n for n, c in zip(sheet.layout.sensors, cells, strict=True) if is_text(c.type))
        raise InputError(
            f"{sheet.file.path}: the column '{other}' is of another type than those of other sensors; with "
            "--wide every column but the time is a sensor: leave it out, or map it"
        ) from None
