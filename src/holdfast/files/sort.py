"""Sorting of any number of rows by (time, source, sequence), in memory or on disk.

Up to a third of the budget is sorted in memory. Beyond that, sorted runs are written to a private folder and
merged block by block. The smallest last key of the loaded blocks is a cut, and all rows up to it are final.
"""

from __future__ import annotations

import shutil
import tempfile
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..model.batch import DICTIONARY, compact, concatenate, plain
from ..model.batch import times as instants

Key = tuple[int, str, int]
Indices = np.ndarray[Any, np.dtype[np.int64]]

BATCH_ROWS = 1 << 17

_FAN_IN = 64
_LARGEST_RUN = 1 << 30  # text columns count their bytes with 32 bits


class Sorter:
    """Accepts batches in any order and returns their rows sorted. Rows with equal keys keep their order.

    Batches can differ in their optional columns. ``source`` is returned dictionary-encoded, other text plain.
    ``budget_bytes`` bounds the memory of the rows, including their sorted copies. Call ``close`` to remove
    the files.
    """

    def __init__(self, budget_bytes: int, scratch: Path | None = None) -> None:
        self.spilled_bytes = 0
        self._run_bytes = min(max(1, budget_bytes // 3), _LARGEST_RUN)
        self._merge_bytes = budget_bytes // 6
        self._block_bytes = max(1, self._merge_bytes // _FAN_IN)
        self._scratch = scratch
        self._folder: Path | None = None
        self._held: list[pa.RecordBatch] = []
        self._held_bytes = 0
        self._runs: list[Path] = []
        self._count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def add(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch.

        Writes a sorted run to disk when the rows in memory exceed their share of the budget.
        """
        if not len(batch):
            return
        batch = _encode_source(batch)
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes > self._run_bytes:
            self._spill()

    def drain(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows in order, in batches of bounded size. Afterwards the sorter is empty."""
        if not self._runs:
            held, self._held, self._held_bytes = self._held, [], 0
            yield from _in_order(held, BATCH_ROWS)
            return
        if self._held:
            self._spill()
        while len(self._runs) > _FAN_IN:
            first, self._runs = self._runs[:_FAN_IN], self._runs[_FAN_IN:]
            self._runs.insert(
                0, self._write_run(merge(first, self._merge_bytes))
            )  # in front: it holds the oldest rows
            for path in first:
                path.unlink()
        yield from merge(self._runs, self._merge_bytes)
        self.close()

    def close(self) -> None:
        """Drop all rows and remove the files on disk."""
        self._held, self._held_bytes, self._runs = [], 0, []
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _spill(self) -> None:
        held, self._held, self._held_bytes = self._held, [], 0
        size = sum(batch.nbytes for batch in held)
        rows = max(16, self._block_bytes * sum(map(len, held)) // max(1, size))
        self._runs.append(self._write_run(_in_order(held, min(rows, BATCH_ROWS))))

    def _write_run(self, batches: Iterable[pa.RecordBatch]) -> Path:
        if self._folder is None:
            if self._scratch is not None:
                self._scratch.mkdir(parents=True, exist_ok=True)
            self._folder = Path(tempfile.mkdtemp(prefix="holdfast-sort-", dir=self._scratch))
        self._count += 1
        path = self._folder / f"{self._count}.arrow"
        writer = None
        with pa.OSFile(str(path), "wb") as file:
            for batch in batches:
                for block in _blocks(_plain(batch), self._block_bytes):
                    writer = writer or pa.ipc.new_stream(file, block.schema)
                    writer.write_batch(block)
            if writer is not None:
                writer.close()
        self.spilled_bytes += path.stat().st_size
        return path


def order(batch: pa.RecordBatch) -> Indices | None:
    """Return the indices that sort a batch, or ``None`` if it is sorted."""
    times = instants(batch)
    if _is_ordered(batch, times):
        return None
    ranks = _ranks(batch.column("source"))
    sequences = batch.column("sequence").to_numpy()
    indices = np.argsort(times, kind="stable")
    sorted_times = times[indices]
    ties = np.flatnonzero(sorted_times[1:] == sorted_times[:-1])
    if len(ties):
        tied = np.zeros(len(times), np.bool_)
        tied[ties] = tied[ties + 1] = True
        places = np.flatnonzero(tied)
        rows = indices[places]
        again = np.lexsort((sequences[rows], ranks[rows], sorted_times[places]))
        indices[places] = rows[again]
    return indices


def _is_ordered(batch: pa.RecordBatch, times: Indices) -> bool:
    steps = np.diff(times)
    if not len(steps) or steps.min() > 0:
        return True
    if steps.min() < 0:
        return False
    at = np.flatnonzero(steps == 0)
    first, second = (plain(batch.column("source").take(pa.array(rows))) for rows in (at, at + 1))
    sequences = batch.column("sequence").to_numpy()
    later = pc.greater(second, first).to_numpy(zero_copy_only=False)
    same = pc.equal(second, first).to_numpy(zero_copy_only=False)
    return bool(np.all(later | (same & (sequences[at + 1] >= sequences[at]))))


def in_order(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch sorted by (time, source, sequence), with ``source`` dictionary-encoded."""
    batch = _encode_source(batch)
    indices = order(batch)
    return batch if indices is None else batch.take(pa.array(indices))


def _ranks(source: pa.DictionaryArray) -> Indices:
    """Return the rank of each row's source among all sources, by code point."""
    by_name = pc.sort_indices(source.dictionary).to_numpy()
    names = source.dictionary.take(pa.array(by_name))
    rank = np.empty(len(by_name), np.int64)
    distinct = np.ones(len(by_name), np.int64)
    if len(by_name):
        distinct[0] = 0
        distinct[1:] = pc.not_equal(names[1:], names[:-1]).to_numpy(zero_copy_only=False)
    rank[by_name] = np.cumsum(distinct)  # a dictionary may hold a name twice
    result: Indices = rank[source.indices.to_numpy()]
    return result


def _in_order(held: list[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of batches in order, ``rows`` at a time. Empties the list, to free its memory."""
    if not held:
        return
    if _follow_one_another(held):
        while held:
            batch = held.pop(0)
            yield from (compact(batch.slice(at, rows)) for at in range(0, len(batch), rows))
        return
    whole = concatenate(held)
    held.clear()
    indices = order(whole)
    for at in range(0, len(whole), rows):
        if indices is None:
            yield compact(whole.slice(at, rows))
        else:
            yield compact(whole.take(pa.array(indices[at : at + rows])))


def _follow_one_another(batches: Sequence[pa.RecordBatch]) -> bool:
    """Whether each batch is sorted, later than the batch before, and of the same columns."""
    return all(
        a.schema.equals(b.schema) and instants(a)[-1] < instants(b)[0] for a, b in pairwise(batches)
    ) and all(order(batch) is None for batch in batches)


def _encode_source(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with ``source`` dictionary-encoded and all other columns decoded."""
    columns = [
        _as_source(column) if name == "source" else plain(column)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _as_source(column: pa.Array) -> pa.DictionaryArray:
    if column.type.equals(DICTIONARY):
        return column
    return plain(column).cast(pa.string()).dictionary_encode()


def _plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with its dictionaries decoded, so that a block of it is no larger than its rows."""
    columns = [plain(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _blocks(batch: pa.RecordBatch, size: int) -> Iterator[pa.RecordBatch]:
    rows = max(16, len(batch) * size // max(1, batch.nbytes))
    return (batch.slice(at, rows) for at in range(0, len(batch), rows))


# --- merging ---------------------------------------------------------------------------------------


class _SortedRun:
    """A sorted run on disk, with one loaded block and the next one read ahead."""

    def __init__(self, path: Path, block_bytes: int) -> None:
        self._block_bytes = block_bytes
        self._file = pa.OSFile(str(path))
        self._reader = pa.ipc.open_stream(self._file)
        self.schema: pa.Schema = self._reader.schema
        self._next = self._load()
        self.block: pa.RecordBatch | None = None
        self.advance()

    def advance(self) -> None:
        """Load the next block. At the end of the run, ``block`` becomes ``None``."""
        self.block, self._next = self._next, self._load()
        self.at = 0

    def _load(self) -> pa.RecordBatch | None:
        loaded: list[pa.RecordBatch] = []
        size = 0
        while size < self._block_bytes and not self._file.closed:
            try:
                loaded.append(self._reader.read_next_batch())
                size += loaded[-1].nbytes
            except StopIteration:
                self._file.close()
        return concatenate(loaded) if loaded else None

    @property
    def is_last(self) -> bool:
        return self._next is None

    def key(self, i: int) -> Key:
        assert self.block is not None
        time = self.block.column("time")[i].value
        return time, self.block.column("source")[i].as_py(), self.block.column("sequence")[i].as_py()

    def take(self, cut: Key | None, side: Callable[..., int]) -> pa.RecordBatch | None:
        """Remove and return the rows of the block up to a cut, or ``None`` if there are none."""
        if self.block is None:
            return None
        end = len(self.block)
        if cut is not None:
            end = side(range(end), cut, lo=self.at, key=self.key)
        part = self.block.slice(self.at, end - self.at)
        self.at = end
        if end == len(self.block):
            self.advance()
        return part if len(part) else None


def merge(paths: Sequence[Path], size: int) -> Iterator[pa.RecordBatch]:
    """Merge sorted runs and yield their rows in order. Of equal keys, those of an earlier run come first.

    ``size`` bounds the bytes of the loaded blocks; as many bytes again are read ahead.
    """
    runs = [_SortedRun(path, max(1, size // len(paths))) for path in paths]
    schema = pa.unify_schemas([run.schema for run in runs])
    collected: list[pa.RecordBatch] = []
    rows = 0
    while any(run.block is not None for run in runs):
        for batch in _final(runs, schema):
            collected.append(batch)
            rows += len(batch)
            if rows >= BATCH_ROWS // 2:
                yield concatenate(collected)
                collected, rows = [], 0
    if collected:
        yield concatenate(collected)


def _final(runs: Sequence[_SortedRun], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows that no later block can precede, in order."""
    bounds = [
        (run.key(len(run.block) - 1), i)
        for i, run in enumerate(runs)
        if run.block is not None and not run.is_last
    ]
    cut, at = min(bounds, default=(None, len(runs)))
    # Rows equal to the cut may follow in the next block of run `at`: later runs wait for them.
    parts = [run.take(cut, bisect_right if i <= at else bisect_left) for i, run in enumerate(runs)]
    found = [_encode_source(_pad(part, schema)) for part in parts if part is not None]
    return _in_order(found, BATCH_ROWS)


def _pad(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with all columns of a schema. Added columns have missing values."""
    if batch.schema.equals(schema):
        return batch
    columns = [
        batch.column(field.name) if field.name in batch.schema.names else pa.nulls(len(batch), field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
