"""Which part of time a query looks at, and when that changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...kernels.window import instants
from ...model.instant import Duration, Instant
from ...model.query import Aggregate, Closest, Index, Query, Range, Whole
from .rows import Ints

EVER: Duration = -(2**62)
"""From so long ago on a window reaches back to whatever there was."""


class Span(NamedTuple):
    """Which part of time a query looks at, from now: a window, or what is nearest to ``high``."""

    low: Duration
    high: Duration
    nearest: bool

    @property
    def shifts(self) -> tuple[Duration, ...]:
        """How long after its moment a reading is there, comes into the window, and has left it."""
        if self.nearest or self.low == EVER:
            return (0,)
        return (0, 1 - self.low) if self.high == 0 else (0, -self.high, 1 - self.low)


def span(query: Query) -> Span | None:
    """The span of a query; ``None`` if it is not of that kind."""
    match query.time:
        case Closest(Index(int(at), True)) if at <= 0:
            return Span(at, at, True)
        case Aggregate(_, Range(Index(int(low), True), Index(int(high), True))) if high <= 0:
            return Span(low, high, False)
        case Aggregate(_, Whole()):
            return Span(EVER, 0, False)
    return None


class Instants(NamedTuple):
    """Instants of evaluation: those of key ``k`` are ``at[ends[k]:ends[k + 1]]``."""

    at: Ints
    ends: Ints


def every_instant(streams: Sequence[tuple[Ints, Ints, Duration]], first: Instant, until: Instant) -> Instants:
    """The distinct instants of streams from ``first`` to before ``until``: a stream has times, by key
    and in order, where each key's begin, and by how much they are moved."""
    sizes = [len(times) for times, _, _ in streams]
    base = np.cumsum([0, *sizes])
    ends = np.zeros(len(streams[0][1]), np.int64)
    found = np.empty(sum(sizes), np.int64)
    size = instants(
        np.concatenate([times for times, _, _ in streams]),
        np.stack([starts + base[i] for i, (_, starts, _) in enumerate(streams)]),
        np.array([shift for _, _, shift in streams]),
        first,
        until,
        found,
        ends,
    )
    return Instants(found[:size], ends)
