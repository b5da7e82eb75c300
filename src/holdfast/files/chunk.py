"""Conversion of chunks of a file's rows to batches with the types of their topics.

The format modules produce chunks, and all formats are treated alike here. The exception is a Parquet column
of a wrong type, which is an error of the file and not of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..errors import InputError, UsageError
from ..model.batch import AXES, DICTIONARY, TYPES, locate
from ..model.topic import Attribute, Kind, Topic
from .convert import Mask, WrongType, convert, decode, name_text, truths
from .find import InputFile
from .reading import Sheet, require_attributes
from .tally import Rejects, Tally
from .times import NeedsUnit, ParsedTimes, to_instants

Rows = NDArray[np.int64]

ROW = "@row"
"""The column with the place of a row among all rows of all files, in batches that lack columns still to be
read."""

NO_TIME, BAD_TIME, NO_SOURCE, NO_TOPIC = "no time", "unreadable time", "no source", "no topic"


class RowFault(NamedTuple):
    """A row that cannot be used: its number in the file (from zero), the reason, and its content."""

    row: int
    reason: str
    data: Any


@dataclass(frozen=True)
class Chunk:
    """Columns by their names in the file, and the number of each row in the file (from zero).

    ``faults`` are rows that never became columns. ``later`` are columns that have not been read yet. ``show``
    returns the content of a row.
    """

    rows: Rows
    columns: Mapping[str, pa.Array]
    faults: tuple[RowFault, ...] = ()
    show: Callable[[int], Any] | None = None
    later: tuple[str, ...] = ()

    def data(self, i: int) -> Any:
        """Return the i-th row as it is in the file, for a rejection."""
        if self.show is not None:
            return self.show(i)
        return {name: plain(column[i].as_py()) for name, column in self.columns.items()}


def plain(value: Any) -> Any:
    """Return a value that JSON can represent: ``None`` in place of NaN."""
    return None if value != value else value


class _Blame:
    """The first reason for which each row of a chunk cannot be used."""

    def __init__(self, size: int) -> None:
        self.codes = np.zeros(size, np.int32)
        self.reasons: list[str] = [""]

    def add(self, rows: Mask, reason: str) -> None:
        """Record a reason for rows that have none yet."""
        fresh = rows & (self.codes == 0)
        if fresh.any():
            self.codes[fresh] = len(self.reasons)
            self.reasons.append(reason)


def to_batches(
    sheet: Sheet, chunk: Chunk, tally: Tally, rejects: Rejects
) -> Iterator[tuple[Topic, pa.RecordBatch]]:
    """Yield one batch for each topic of a chunk. Unusable rows are rejected."""
    work = _ChunkConversion(sheet, chunk, tally)
    tally.rows += len(chunk.rows) + len(chunk.faults)
    topics = work.topics()
    common_columns = work.common_columns(np.logical_or.reduce([mine for _, mine in topics])) if topics else {}
    parts: list[tuple[Topic, Mask, dict[str, pa.Array]]] = []
    for topic, mine in topics:
        if not sheet.layout.open_ended:
            require_attributes(sheet.file, topic, sheet.layout.names, sheet.reading)
        parts.append((topic, mine, work.attributes(topic, mine)))
    _put_aside(sheet.file, chunk, work.blame, tally, rejects)
    for topic, mine, attributes in parts:
        batch = pa.RecordBatch.from_pydict(locate({**common_columns, **attributes}))
        good = mine & (work.blame.codes == 0)
        if good.any():
            yield topic, batch if good.all() else batch.filter(pa.array(good))


class _ChunkConversion:
    """The conversion of one chunk, which collects the faults of its rows."""

    def __init__(self, sheet: Sheet, chunk: Chunk, tally: Tally) -> None:
        self.file, self.layout, self.reading = sheet.file, sheet.layout, sheet.reading
        self.chunk, self.tally = chunk, tally
        self.blame = _Blame(len(chunk.rows))

    def topics(self) -> list[tuple[Topic, Mask]]:
        """Return the declared topics of the chunk with their rows. Rows of other topics are only counted."""
        default = self.layout.default
        if self.layout.topic is None:
            assert default is not None
            every = np.ones(len(self.chunk.rows), np.bool_)
            return [(default, every)] if len(every) else []
        names = name_text(convert(self.chunk.columns[self.layout.topic], "text")[0])
        if default is not None:
            names = pc.fill_null(names, default.name)
        self.blame.add(truths(pc.is_null(names)), NO_TOPIC)
        coded = names.dictionary_encode()
        codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
        found: list[tuple[Topic, Mask]] = []
        for code, name in enumerate(coded.dictionary.to_pylist()):
            mine = codes == code
            topic = self.reading.by_name.get(name)
            if topic is None:
                self.tally.other(name, int(mine.sum()))
            else:
                found.append((topic, mine))
        return found

    def common_columns(self, mine: Mask) -> dict[str, pa.Array]:
        """Return the columns that events of every topic have, for the rows in `mine`."""
        layout, later = self.layout, self.chunk.later
        columns = {"time": self._time(mine)}
        source = self.chunk.columns[layout.source]
        if not (pa.types.is_dictionary(source.type) and source.type.equals(DICTIONARY)):
            source = name_text(self._convert(_SOURCE, layout.source, mine)).dictionary_encode()
        elif (blanks := _blank(source.dictionary)) is not None:
            source = (
                pa.DictionaryArray.from_arrays(source.indices, blanks).dictionary_decode().dictionary_encode()
            )
        self.blame.add(mine & truths(pc.is_null(source)), NO_SOURCE)
        columns["source"] = source
        columns["sequence"] = self._sequence(mine)
        if later:
            columns[ROW] = self._places()
        if layout.place is not None and layout.place not in later:
            columns["place"] = self._convert(_PLACE, layout.place, mine)
        for axis, theirs in zip(AXES, layout.axes, strict=False):
            if theirs not in later:
                columns[axis] = self._convert(Attribute(axis, "float"), theirs, mine)
        return columns

    def _time(self, mine: Mask) -> pa.Array:
        names = self.layout.time
        column = self.chunk.columns[names[0]]
        if len(names) > 1:
            parts = [convert(self.chunk.columns[name], "text")[0] for name in names]
            column = pc.binary_join_element_wise(*parts, " ")
        try:
            found = to_instants(column, self.reading)
        except NeedsUnit:
            raise UsageError(_needs_unit(self.file, names[0], column)) from None
        except WrongType:
            if self.file.is_typed:
                raise InputError(_wrong_type(self.file, names[0], column, "time", "a time")) from None
            found = ParsedTimes(pa.nulls(len(column), pa.timestamp("us", "UTC")), truths(pc.is_valid(column)))
        self.tally.twice += found.twice
        self.tally.never += found.never
        self.blame.add(mine & found.bad, BAD_TIME)
        self.blame.add(mine & truths(pc.is_null(found.instants)), NO_TIME)
        return found.instants

    def _sequence(self, mine: Mask) -> pa.Array:
        """Return the sequence numbers of rows.

        Without a sequence, it is the row's place among all rows of all files.
        """
        if self.layout.sequence is None:
            return self._places()
        return pc.coalesce(self._convert(_SEQUENCE, self.layout.sequence, mine), self._places())

    def _places(self) -> pa.Array:
        return pa.array((self.file.rank << 32) + self.chunk.rows, pa.int64())

    def attributes(self, topic: Topic, mine: Mask) -> dict[str, pa.Array]:
        """Return the columns of a topic's attributes, for the rows in `mine`."""
        columns: dict[str, pa.Array] = {}
        for attribute in topic.attributes:
            theirs = self.reading.theirs(attribute.name)
            if theirs in self.chunk.later:
                continue
            if theirs not in self.chunk.columns:
                columns[attribute.name] = pa.nulls(len(mine), TYPES[attribute.kind])
                continue
            columns[attribute.name] = self._convert(attribute, theirs, mine, topic)
        return columns

    def _convert(self, attribute: Attribute, theirs: str, mine: Mask, topic: Topic | None = None) -> pa.Array:
        column, kind = self.chunk.columns[theirs], attribute.kind
        try:
            values, bad = convert(column, kind)
        except WrongType:
            if self.file.is_typed:
                declared = f"{kind} (topic '{topic.name}')" if topic else kind
                raise InputError(_wrong_type(self.file, theirs, column, attribute.name, declared)) from None
            values, bad = pa.nulls(len(column), TYPES[kind]), truths(pc.is_valid(column))
        self.blame.add(mine & bad, not_a(attribute.name, kind))
        return values


_SOURCE, _PLACE = Attribute("source", "text"), Attribute("place", "text")
_SEQUENCE = Attribute("sequence", "int")


def _blank(dictionary: pa.Array) -> pa.Array | None:
    """Return a dictionary whose blank words are missing values, or ``None`` if no word is blank."""
    dictionary.validate(full=True)
    words = name_text(dictionary)
    return words if words.null_count else None


def not_a(ours: str, kind: Kind) -> str:
    """Return the reason for rejecting a value that is not of its kind."""
    return f"{ours}: not {'an int of 64 bits' if kind == 'int' else 'a ' + kind}"


def _put_aside(file: InputFile, chunk: Chunk, blame: _Blame, tally: Tally, rejects: Rejects) -> None:
    """Reject the unusable rows, in the order of the file."""
    faults = list(chunk.faults)
    for i in np.flatnonzero(blame.codes):
        at = int(i)
        faults.append(RowFault(int(chunk.rows[at]), blame.reasons[blame.codes[at]], chunk.data(at)))
    for fault in sorted(faults, key=lambda fault: fault.row):
        tally.rejected[fault.reason] += 1
        rejects.write(file, fault.row + 1, fault.reason, fault.data)


def _wrong_type(file: InputFile, theirs: str, column: pa.Array, ours: str, declared: str) -> str:
    return (
        f"{file.path}: the column '{theirs}' is of type {decode(column).type}, but '{ours}' is declared as "
        f"{declared}. Correct the declaration, or map another column with --map {ours}=NAME."
    )


def _needs_unit(file: InputFile, theirs: str, column: pa.Array) -> str:
    value = next((v for v in column.to_pylist() if v is not None), None)
    return needs_unit(file, theirs, value)


def needs_unit(file: InputFile, theirs: str, value: Any) -> str:
    """Return the error message for numeric times without a unit.

    It suggests the likely unit by the size of a value.
    """
    unit = "s"
    if value is not None:
        size = abs(float(value))
        unit = "s" if size < 1e11 else "ms" if size < 1e14 else "us" if size < 1e17 else "ns"
    return (
        f"{file.path}: the times in column '{theirs}' are numbers ({value}); say what they count since 1970 "
        f"with --time-unit s, ms, us or ns (by their size probably {unit})"
    )
