"""The time span of a query, and the instants at which the result of the query changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ....kernels.window import instants
from ....model.instant import Duration, Instant
from ....model.query import Aggregate, Closest, Index, Query, QueryRange, Whole
from .rows import Ints

EVER: Duration = -(2**62)
"""The lower bound of a window that has no lower bound."""


class TimeSpan(NamedTuple):
    """The time span of a query relative to now: a window from `low` to `high`, or the value nearest to
    `high`."""

    low: Duration
    high: Duration
    nearest: bool

    @property
    def shifts(self) -> tuple[Duration, ...]:
        """The delays after a reading at which the reading arrives, enters the window, and has left the
        window."""
        if self.nearest or self.low == EVER:
            return (0,)
        return (0, 1 - self.low) if self.high == 0 else (0, -self.high, 1 - self.low)


def span(query: Query) -> TimeSpan | None:
    """Return the time span of a query, or `None` if columns do not support the query."""
    match query.time:
        case Closest(Index(int(at), True)) if at <= 0:
            return TimeSpan(at, at, True)
        case Aggregate(_, QueryRange(Index(int(low), True), Index(int(high), True))) if high <= 0:
            return TimeSpan(low, high, False)
        case Aggregate(_, Whole()):
            return TimeSpan(EVER, 0, False)
    return None


class Instants(NamedTuple):
    """Instants of evaluation: those of key ``k`` are ``at[ends[k]:ends[k + 1]]``."""

    at: Ints
    ends: Ints


def every_instant(streams: Sequence[tuple[Ints, Ints, Duration]], first: Instant, until: Instant) -> Instants:
    """Return the distinct instants of all streams in [`first`, `until`), by key.

    A stream is a triple: times sorted by key, the index of the first time of each key, and a shift that is
    added to all times.
    """
    sizes = [len(times) for times, _, _ in streams]
    base = np.cumsum([0, *sizes])
    ends = np.zeros(len(streams[0][1]), np.int64)
    found = np.empty(sum(sizes), np.int64)
    times = np.concatenate([times for times, _, _ in streams])
    starts = np.stack([starts + base[i] for i, (_, starts, _) in enumerate(streams)])
    shifts = np.array([shift for _, _, shift in streams])
    size = instants(times, starts, shifts, first, until, found, ends)
    return Instants(found[:size], ends)
