"""Parallel reading and compaction of files whose scopes are in order already.

Row groups go to threads: Arrow and compiled kernels release the interpreter lock. A share has the relevant
rows of some row groups. A part whose shares follow one another in each scope is closed [law 2, law 3] and
need not be sorted.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import local
from typing import Any

import numpy as np
import pyarrow as pa

from ...engine.graph import OperatorId
from ...engine.key_codes import KeyCodes
from ...files.find import InputFile
from ...files.plan import Part, split
from ...files.read import read
from ...files.reading import Reading
from ...files.rest import read_missing_columns
from ...files.tally import Rejects, Tally
from ...model.batch import compact, concatenate, times
from ...model.instant import Instant
from ...plan.presorted import Extent, Following, extent
from ...plan.pushdown import Coverage, Pushdown, deciding, satisfying

BYTES = 128
"""The approximate memory of a row in a thread, in bytes."""
LARGEST = 8
"""A row group with more rows than this multiple of the limit is read in chunks instead."""
MOST_REJECTED = 10_000
"""The maximal number of rejected rows of a share; with more, the part is read again in order."""


class PendingRejects(Rejects):
    """The rejected rows of a share, which wait until the rejected rows of all earlier shares are written."""

    def __init__(self, strict: bool) -> None:
        super().__init__(strict=strict)
        self.rows: list[tuple[InputFile, int, str, Any]] = []
        self.overflows = False

    def write(self, file: InputFile, row: int, reason: str, data: Any) -> None:
        """Reject one row, and store it until it can be written. Too many rows are only counted."""
        super().write(file, row, reason, data)
        self.overflows = self.overflows or len(self.rows) >= MOST_REJECTED
        if not self.overflows:
            self.rows.append((file, row, reason, data))


@dataclass
class Share:
    """The relevant rows of some row groups, with counts.

    `extents` has for each consumer the first and last event of its scopes; `None` if a scope is not in order.
    """

    rejects: PendingRejects
    tally: Tally = field(default_factory=Tally)
    coverage: Coverage = field(default_factory=Coverage)
    kept: int = 0
    events: dict[str, pa.RecordBatch] = field(default_factory=dict)
    extents: list[tuple[OperatorId, Extent | None]] = field(default_factory=list)
    watermarks: dict[str, Instant] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """The size of the rows in bytes."""
        return sum(batch.nbytes for batch in self.events.values())

    def counts(self) -> Share:
        """Return the counts of the share without its rows, which frees their memory."""
        return replace(self, events={}, extents=[])


class Reduction:
    """The shares of the parts of an input, in their order. All cores read ahead."""

    def __init__(
        self, parts: Sequence[Part], pushdown: Pushdown, reading: Reading, *, memory: int, strict: bool
    ) -> None:
        self._pushdown, self._reading, self._strict = pushdown, reading, strict
        rows = max(1, memory // BYTES)
        self._units = [_units(part, rows) for part in parts]
        units = (unit for units in self._units for unit in units or ())
        self._own = _ThreadState()
        self._shares = in_threads(self._read, units, _cores())

    def of(self, number: int) -> Iterator[Share | None]:
        """Yield the shares of a part.

        Yields `None` if the part must be sorted; no later share can be read then.
        """
        units = self._units[number]
        following = {id: Following() for id in self._pushdown.operators}
        for _ in units or ():
            share = next(self._shares)
            if share.rejects.overflows or not all(
                found is not None and following[id].takes(found) for id, found in share.extents
            ):
                break
            yield share
        else:
            if units is not None:
                return
        self.close()
        yield None

    def close(self) -> None:
        """Stop reading ahead, and end the threads."""
        self._shares.close()

    def _read(self, unit: Part) -> Share:
        """Read and compact the row groups of a unit. Runs in a thread."""
        share = Share(PendingRejects(self._strict))
        consumers, decisive = self._pushdown.consumers, self._pushdown.decisive_columns
        found: dict[str, list[pa.RecordBatch]] = {}
        for piece in unit.pieces:
            batches = read(
                piece.file, self._reading, share.tally, share.rejects,
                row_groups=piece.row_groups, chunk_rows=_WHOLE,
                decisive=decisive, encode=self._own.sources.encode,
            )  # fmt: skip
            for topic, batch in batches:
                if len(batch) and topic.name in consumers:
                    found.setdefault(topic.name, []).append(batch)
        files = list({piece.file.rank: piece.file for piece in unit.pieces}.values())
        for name, batches_of in found.items():
            rows = self._compact(name, concatenate(batches_of), share)
            topic = consumers[name][0].operator.topics[name]
            share.events[name] = read_missing_columns(rows, topic, files, self._reading, decisive)
        return share

    def _compact(self, topic: str, batch: pa.RecordBatch, share: Share) -> pa.RecordBatch:
        """Return the rows of a closed part that can change the output."""
        share.extents += (
            (id, extent(consumer, topic, batch)) for id, consumer in self._pushdown.consumers[topic]
        )
        relevances = self._pushdown.relevance(topic, batch, share.coverage)
        share.kept += int(np.count_nonzero(satisfying(relevances)))
        share.watermarks[topic] = int(times(batch).max())
        return compact(batch.take(pa.array(np.flatnonzero(deciding(relevances)))))


_WHOLE = 1 << 30


class _ThreadState(local):
    """The state of a reading thread: the names of sources that it has read, so that they are decoded once."""

    def __init__(self) -> None:
        self.sources = KeyCodes()


def _units(part: Part, rows: int) -> list[Part] | None:
    """Split a part into units of row groups that one thread reads at once.

    Returns `None` if the number of rows is unknown before reading, or too large.
    """
    if part.rows is None:
        return None
    units = split(part, -(-part.rows // rows))
    return units if part.rows // max(1, len(units)) < LARGEST * rows else None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(
    function: Callable[[Part], Share], items: Iterable[Part], threads: int
) -> Generator[Share, None, None]:
    """Apply a function to items in threads, and yield the results in the order of the items."""
    waiting: deque[Future[Share]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
