"""Detection of parts of a history that need not be sorted, because each outermost scope is in order already.

Outermost scopes are independent [law 3], so only the order inside each of them matters. A part whose scopes
are in order, and follow those of the part before, is closed even if its times overlap those of other parts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..engine.key_codes import KeyCodes, with_room
from ..engine.operator import Operator
from ..kernels.order import UNORDERED, extents
from ..model.batch import plain, times
from ..model.instant import BEGINNING, Instant


class Extent(NamedTuple):
    """The scopes of a part, with the first and the last event of each."""

    scopes: pa.StringArray
    first: pa.RecordBatch
    last: pa.RecordBatch
    start: Instant
    end: Instant


def extent(operator: Operator, topic: str, batch: pa.RecordBatch, *, rising: bool = False) -> Extent | None:
    """Return the scopes of a batch with their first and last events, or ``None`` if a scope is not in order.

    With ``rising``, two events of a scope with equal times also give ``None``.
    """
    keys = operator.keys(topic, batch)
    first, last = np.full((2, len(keys.array)), -1, np.int64)
    moments, sequences = times(batch), np.asarray(batch.column("sequence"))
    ranks = np.zeros(len(batch), np.int32)
    if extents(keys.codes, moments, ranks, sequences, first, last):
        if rising:
            return None
        first[:], last[:] = -1, -1
        ranks = _ranks(batch.column("source"))  # events with one timestamp are in order if their sources are
        if extents(keys.codes, moments, ranks, sequences, first, last) == UNORDERED:
            return None
    present = np.flatnonzero(first >= 0)
    begin, end = (batch.select(_ORDER).take(pa.array(rows[present])) for rows in (first, last))
    earliest, latest = (int(moments.min()), int(moments.max())) if len(batch) else (BEGINNING, BEGINNING)
    return Extent(keys.array.take(pa.array(present)), begin, end, earliest, latest)


_ORDER = ["time", "source", "sequence"]


def _ranks(source: pa.Array) -> NDArray[np.int32]:
    """Return the rank of each row's source, by code point."""
    coded = source if pa.types.is_dictionary(source.type) else source.dictionary_encode()
    ranks = pc.rank(coded.dictionary, tiebreaker="dense").to_numpy().astype(np.int32)
    found: NDArray[np.int32] = ranks[np.asarray(coded.indices)]
    return found


class Following:
    """Tests whether parts follow one another in every scope. With ``rising`` their times must increase."""

    def __init__(self, *, rising: bool = False) -> None:
        self._rising = rising
        self._end = self._forgotten = BEGINNING - 1
        self._waiting: Extent | None = None
        self._forget()

    def _forget(self) -> None:
        self._scopes, self._sources = KeyCodes(), KeyCodes()
        self._time, self._sequence = np.zeros((2, 8), np.int64)
        self._source = np.zeros(8, np.int32)

    def takes(self, part: Extent) -> bool:
        """Accept a part and return true if it follows all accepted parts in every scope.

        The test may refuse a part that starts before the end of an earlier part whose scopes are no longer
        stored.
        """
        if not len(part.scopes):
            return True
        if part.start > self._end:  # later than all parts before, so that their scopes need not be stored
            self._forget()
            self._waiting, self._forgotten = part, self._end
        elif part.start <= self._forgotten:
            return False
        else:
            if self._waiting is not None:
                self._know(self._waiting)
                self._waiting = None
            if not self._follows(part):
                return False
            self._know(part)
        self._end = max(self._end, part.end)
        return True

    def _follows(self, part: Extent) -> bool:
        count = len(self._scopes)
        codes = self._scopes.codes(part.scopes)
        old = np.flatnonzero(codes < count)
        at, first = codes[old], part.first.take(pa.array(old))
        begin, before = times(first), self._time[at]
        if np.any(begin < before + self._rising):
            return False
        tied = np.flatnonzero(begin == before)
        at, first = at[tied], first.take(pa.array(tied))
        here, last_sources = (
            plain(first.column("source")),
            self._sources.take(self._source[at].astype(np.int64)),
        )
        less, same = (_truths(compare(here, last_sources)) for compare in (pc.less, pc.equal))
        earlier = np.asarray(first.column("sequence")) < self._sequence[at]
        return not np.any(less | (same & earlier))

    def _know(self, part: Extent) -> None:
        """Store the last event of each scope."""
        codes = self._scopes.codes(part.scopes)
        size = len(self._scopes)
        self._time, self._sequence = with_room(self._time, size), with_room(self._sequence, size)
        self._source = with_room(self._source, size)
        self._time[codes] = times(part.last)
        self._sequence[codes] = np.asarray(part.last.column("sequence"))
        self._source[codes] = self._sources.codes(plain(part.last.column("source")))


def _truths(mask: pa.Array) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = mask.to_numpy(zero_copy_only=False)
    return found
