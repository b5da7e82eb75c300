"""Reading of Parquet files in two passes.

The first pass reads the columns of predicates, the second the other columns of relevant rows. A column is
left for the second pass only if each of its values can be used, because unusable rows must be found in the
first pass.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.batch import AXES, locate
from ..model.topic import Kind, Topic
from . import from_parquet
from .chunk import ROW, Rows
from .convert import convert
from .find import InputFile
from .reading import Layout, Reading, lay_out

Decisive = Mapping[str, Collection[str]]
"""For each topic the columns (attributes, ``place``, axes) that decide which of its rows are kept."""

_ALWAYS_USABLE = {
    "float": lambda type: pa.types.is_integer(type) or pa.types.is_floating(type),
    "int": pa.types.is_signed_integer,
    "text": lambda type: pa.types.is_string(type) or pa.types.is_large_string(type),
    "bool": pa.types.is_boolean,
}
"""For each declared kind the column types of files without unusable values."""


def columns_for_later(file: InputFile, layout: Layout, reading: Reading, decisive: Decisive) -> list[str]:
    """Return the columns, by the file's names, that are not decisive and have no unusable values."""
    if file.format != "parquet" or layout.sensors:
        return []
    topics = layout.topics(reading)
    named = [column for topic in topics for column in _columns(topic, layout, reading)]
    deciding = {*layout.time, layout.source, layout.topic, layout.sequence}
    deciding |= {theirs for topic in topics for ours, theirs, _ in _columns(topic, layout, reading)
                 if ours in decisive.get(topic.name, ())}  # fmt: skip
    form = from_parquet.form(file)
    deciding |= {theirs for _, theirs, kind in named if not _ALWAYS_USABLE[kind](form.field(theirs).type)}
    if deciding & {*layout.axes}:
        deciding |= {*layout.axes}  # there is no y without x
    return list(dict.fromkeys(theirs for _, theirs, _ in named if theirs not in deciding))


def read_missing_columns(
    batch: pa.RecordBatch, topic: Topic, files: Iterable[InputFile], reading: Reading, decisive: Decisive
) -> pa.RecordBatch:
    """Return a batch with the columns of the second pass. ``files`` are the files that its rows came from."""
    if ROW not in batch.schema.names:
        return batch
    places = batch.column(ROW)
    waiting = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
    at = places.drop_null().to_numpy()
    parts: list[pa.Table] = []
    for file in files:
        mine = np.flatnonzero(at >> 32 == file.rank)
        if len(mine):
            parts += _rest(file, topic, at[mine] & 0xFFFF_FFFF, waiting[mine], reading, decisive)
    columns = {name: batch.column(name) for name in batch.schema.names if name != ROW}
    if parts:
        rest = pa.concat_tables(parts, promote_options="default").combine_chunks()
        where = np.full(len(batch), -1)
        where[rest.column(ROW).to_numpy()] = np.arange(len(rest))
        rows = pa.array(where, mask=where < 0)
        for name in rest.schema.names:
            if name != ROW:
                found = rest.column(name).combine_chunks().take(rows)
                columns[name] = pc.coalesce(found, columns[name]) if name in columns else found
    return pa.RecordBatch.from_pydict(locate(columns))


def _rest(
    file: InputFile,
    topic: Topic,
    rows: Rows,
    into: Rows,
    reading: Reading,
    decisive: Decisive,
) -> Iterator[pa.Table]:
    """Yield the missing columns of rows of a file, row group by row group.

    Each table also has the numbers of the rows of the batch that it belongs to.
    """
    layout = lay_out(file, from_parquet.names(file), reading)
    later = set(columns_for_later(file, layout, reading, decisive))
    wanted = [column for column in _columns(topic, layout, reading) if column[1] in later]
    for some, picked in from_parquet.read_rows(file, rows, sorted({theirs for _, theirs, _ in wanted})):
        columns = {ours: convert(picked.column(theirs), kind)[0] for ours, theirs, kind in wanted}
        yield pa.table({ROW: into[some], **columns})


def _columns(topic: Topic, layout: Layout, reading: Reading) -> list[tuple[str, str, Kind]]:
    """Return the columns of a topic's events beyond time, source and sequence.

    A column is given by Holdfast's name, the file's name, and its kind.
    """
    found: list[tuple[str, str, Kind]] = [(a.name, reading.theirs(a.name), a.kind) for a in topic.attributes]
    found += [(axis, theirs, "float") for axis, theirs in zip(AXES, layout.axes, strict=False)]
    if layout.place is not None:
        found.append(("place", layout.place, "text"))
    return [column for column in found if column[1] in layout.names]
