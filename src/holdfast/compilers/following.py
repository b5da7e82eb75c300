"""Stretches of a history that need not be sorted: in every outermost scope they are in order already.

Outermost scopes share nothing [law 3], so only the order inside each of them matters.  A stretch whose scopes
are in order, and follow those of the stretch before, is a closed part wherever else its times lie.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..kernels.order import UNORDERED, extents
from ..machines.keys import Keys, grown
from ..model.batch import plain, times
from ..model.instant import BEGINNING, Instant
from .operator import Operator


class Extent(NamedTuple):
    """The scopes of a stretch, and the first and the last event of each."""

    scopes: pa.StringArray
    first: pa.RecordBatch
    last: pa.RecordBatch
    start: Instant
    end: Instant


def extent(operator: Operator, topic: str, batch: pa.RecordBatch, *, rising: bool = False) -> Extent | None:
    """Where the scopes of a batch begin and end; nothing if one of them is not in order, or where times
    must be ``rising`` has two events at one time."""
    keys = operator.keys(topic, batch)
    first, last = np.full((2, len(keys.array)), -1, np.int64)
    moments, sequences = times(batch), np.asarray(batch.column("sequence"))
    ranks = np.zeros(len(batch), np.int32)
    if extents(keys.codes, moments, ranks, sequences, first, last):
        if rising:
            return None
        first[:], last[:] = -1, -1
        ranks = _ranks(batch.column("source"))  # of one time those are in order that are by source
        if extents(keys.codes, moments, ranks, sequences, first, last) == UNORDERED:
            return None
    there = np.flatnonzero(first >= 0)
    begin, end = (batch.select(_ORDER).take(pa.array(rows[there])) for rows in (first, last))
    earliest, latest = (int(moments.min()), int(moments.max())) if len(batch) else (BEGINNING, BEGINNING)
    return Extent(keys.array.take(pa.array(there)), begin, end, earliest, latest)


_ORDER = ["time", "source", "sequence"]


def _ranks(source: pa.Array) -> NDArray[np.int32]:
    """For each row the place of its source among all, by code point."""
    coded = source if pa.types.is_dictionary(source.type) else source.dictionary_encode()
    ranks = pc.rank(coded.dictionary, tiebreaker="dense").to_numpy().astype(np.int32)
    found: NDArray[np.int32] = ranks[np.asarray(coded.indices)]
    return found


class Following:
    """Whether stretches, one after the other, follow one another in every scope, ``rising`` or not."""

    def __init__(self, *, rising: bool = False) -> None:
        self._rising = rising
        self._end = self._forgotten = BEGINNING - 1
        self._waiting: Extent | None = None
        self._forget()

    def _forget(self) -> None:
        self._scopes, self._sources = Keys(), Keys()
        self._time, self._sequence = np.zeros((2, 8), np.int64)
        self._source = np.zeros(8, np.int32)

    def takes(self, stretch: Extent) -> bool:
        """Take a stretch, if it follows what was taken before; not always if it begins before something
        that all of another followed, since of that no scopes are known any more."""
        if not len(stretch.scopes):
            return True
        if stretch.start > self._end:  # than all of it, so that nothing of it need be known
            self._forget()
            self._waiting, self._forgotten = stretch, self._end
        elif stretch.start <= self._forgotten:
            return False
        else:
            if self._waiting is not None:
                self._know(self._waiting)
                self._waiting = None
            if not self._follows(stretch):
                return False
            self._know(stretch)
        self._end = max(self._end, stretch.end)
        return True

    def _follows(self, stretch: Extent) -> bool:
        count = len(self._scopes)
        codes = self._scopes.codes(stretch.scopes)
        old = np.flatnonzero(codes < count)
        at, first = codes[old], stretch.first.take(pa.array(old))
        begin, before = times(first), self._time[at]
        if np.any(begin < before + self._rising):
            return False
        tied = np.flatnonzero(begin == before)
        at, first = at[tied], first.take(pa.array(tied))
        here, there = plain(first.column("source")), self._sources.take(self._source[at].astype(np.int64))
        less, same = (_truths(compare(here, there)) for compare in (pc.less, pc.equal))
        earlier = np.asarray(first.column("sequence")) < self._sequence[at]
        return not np.any(less | (same & earlier))

    def _know(self, stretch: Extent) -> None:
        """Remember with what each scope ended."""
        codes = self._scopes.codes(stretch.scopes)
        size = len(self._scopes)
        self._time, self._sequence = grown(self._time, size), grown(self._sequence, size)
        self._source = grown(self._source, size)
        self._time[codes] = times(stretch.last)
        self._sequence[codes] = np.asarray(stretch.last.column("sequence"))
        self._source[codes] = self._sources.codes(plain(stretch.last.column("source")))


def _truths(mask: pa.Array) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = mask.to_numpy(zero_copy_only=False)
    return found
