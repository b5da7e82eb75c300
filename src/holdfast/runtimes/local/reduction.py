"""Files read on all cores, and reduced as they are read, where nothing need be sorted for it.

Row groups go to threads: Arrow and compiled kernels let others run.  What a thread has read is in order in
each outermost scope and follows what was read before, or else the caller sorts.  [laws 2 and 3]
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import local
from typing import Any

import numpy as np
import pyarrow as pa

from ...compilers.following import Extent, Following, extent
from ...compilers.operator import Coverage, Operator
from ...files.find import InputFile
from ...files.plan import Part, split
from ...files.read import read
from ...files.reading import Reading
from ...files.rest import Decisive, completed
from ...files.tally import Rejects, Tally
from ...machines.keys import Keys
from ...model.batch import compact, concatenate, times
from ...model.instant import Instant

BYTES = 128
"""How much memory a row takes that a thread works on, or nearly so."""
LARGEST = 8
"""A row group with so many times the rows that fit is read some at a time instead."""
MOST_REJECTED = 10_000
"""So many rows may be put aside of a share; with more, all are read again in turn."""

Listening = Mapping[str, Sequence[Operator]]


class Unsorted(Exception):
    """What was read must be sorted."""


class Aside(Rejects):
    """Rows that cannot be used, kept until it is their turn."""

    def __init__(self, strict: bool) -> None:
        super().__init__(strict=strict)
        self.rows: list[tuple[InputFile, int, str, Any]] = []

    def write(self, file: InputFile, row: int, reason: str, data: Any) -> None:
        super().write(file, row, reason, data)
        self.rows.append((file, row, reason, data))
        if len(self.rows) > MOST_REJECTED:
            raise Unsorted


@dataclass
class Share:
    """What is left of some row groups, and what was counted on the way."""

    aside: Aside
    tally: Tally = field(default_factory=Tally)
    coverage: Coverage = field(default_factory=Coverage)
    kept: int = 0
    events: dict[str, pa.RecordBatch] = field(default_factory=dict)
    extents: list[tuple[int, Extent]] = field(default_factory=list)
    reached: dict[str, Instant] = field(default_factory=dict)

    def counted(self) -> Share:
        """What was counted alone."""
        return replace(self, events={}, extents=[])


class Reduction:
    """The shares of parts of the input, in their order, read ahead on all cores."""

    def __init__(
        self, parts: Sequence[Part], listening: Listening, reading: Reading, *, memory: int, strict: bool
    ) -> None:
        self._listening, self._reading, self._strict = listening, reading, strict
        self._numbers = {id(one): i for i, one in enumerate(_distinct(listening))}
        self._decisive: Decisive = {
            topic: frozenset().union(*(one.looks_at[topic] for one in mine))
            for topic, mine in listening.items()
        }
        rows = max(1, memory // BYTES)
        self._units = [_units(part, rows) for part in parts]
        every = (unit for units in self._units for unit in units or ())
        self._own = _Own()
        self._found = in_threads(self._taken, every, _cores())

    @staticmethod
    def serves(operators: Iterable[Operator]) -> bool:
        """Whether anything can be reduced for them."""
        return all(operator.compacts for operator in operators)

    def of(self, number: int) -> Iterator[Share]:
        """The shares of a part; raises ``Unsorted`` where one does not follow the others, and then there
        are no more."""
        units = self._units[number]
        if units is None:
            raise Unsorted
        following = [Following() for _ in self._numbers]
        for _ in units:
            share = next(self._found)
            if not all(following[i].takes(found) for i, found in share.extents):
                raise Unsorted
            yield share

    def splits(self, number: int) -> bool:
        """Whether a part has several shares, so that one of them may be found not to follow another."""
        return len(self._units[number] or ()) > 1

    def close(self) -> None:
        """Read no further."""
        self._found.close()

    def _taken(self, unit: Part) -> Share:
        """What is left of a unit, which is read whole."""
        share = Share(Aside(self._strict))
        gathered: dict[str, list[pa.RecordBatch]] = {}
        for piece in unit.pieces:
            batches = read(
                piece.file, self._reading, share.tally, share.aside,
                row_groups=piece.row_groups, chunk_rows=_WHOLE,
                decisive=self._decisive, encode=self._own.sources.coded,
            )  # fmt: skip
            for topic, batch in batches:
                if len(batch) and topic.name in self._listening:
                    gathered.setdefault(topic.name, []).append(batch)
        files = list({piece.file.rank: piece.file for piece in unit.pieces}.values())
        for name, some in gathered.items():
            left = self._reduced(name, concatenate(some) if len(some) > 1 else some[0], share)
            topic = self._listening[name][0].topics[name]
            share.events[name] = completed(left, topic, files, self._reading, self._decisive)
        return share

    def _reduced(self, topic: str, batch: pa.RecordBatch, share: Share) -> pa.RecordBatch:
        listening = self._listening[topic]
        for operator in listening:
            found = extent(operator, topic, batch)
            if found is None:
                raise Unsorted
            share.extents.append((self._numbers[id(operator)], found))
        matters = np.logical_or.reduce(share.coverage.survey(topic, batch, listening))
        share.kept += int(np.count_nonzero(matters))
        share.reached[topic] = int(times(batch).max())
        left = [one.machine.survey(topic, batch, closed=True).matters for one in listening]
        return compact(batch.take(pa.array(np.flatnonzero(np.logical_or.reduce(left)))))


_WHOLE = 1 << 30


class _Own(local):
    """What each thread has for itself: the names of sources that it has read."""

    def __init__(self) -> None:
        self.sources = Keys()


def _distinct(listening: Listening) -> list[Operator]:
    return list({id(one): one for mine in listening.values() for one in mine}.values())


def _units(part: Part, rows: int) -> list[Part] | None:
    """Row groups of a part that are read at once; nothing where only reading tells how many rows it has, or
    where they are too large."""
    if part.rows is None:
        return None
    units = split(part, -(-part.rows // rows))
    return units if part.rows // max(1, len(units)) < LARGEST * rows else None


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(
    function: Callable[[Part], Share], items: Iterable[Part], threads: int
) -> Generator[Share, None, None]:
    """What a function gives for each item, in their order, some of them ahead."""
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
            for one in waiting:
                one.cancel()
