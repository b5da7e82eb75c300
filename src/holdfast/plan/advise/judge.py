"""Evaluation of every variant of a state over a history, in one pass of a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...definition.tune import Threshold, Tunable
from ...kernels.vary import MOST_EXITS, STARTS, count_satisfied, vary
from ...lang.expressions.key_text import readable_key
from ...model.instant import MINUTE, Duration, Instant
from .rows import Floats, Interval, MeasuredRows, Times

Counts = NDArray[np.int64]
Ranks = NDArray[np.uint16]

FLAP = 5 * MINUTE
"""A start within this time after an end counts as a flap."""

NO_STARTS = np.empty((0, 3), np.int64)


class VariantGrid(NamedTuple):
    """All combinations of entrances, exits and minimum durations.

    ``None`` stands for a predicate without a threshold.
    """

    enters: tuple[float | None, ...]
    exits: tuple[float | None, ...]
    guards: tuple[Duration, ...]


Labels = Mapping[str | None, Sequence[Interval]]
"""The intervals in which the condition was really active, by scope; those of a scope are in order and
disjoint."""


@dataclass(frozen=True)
class KnownTruth:
    """The reference: the intervals in which the condition should be active.

    Scope s has the intervals from ``ends[s]`` to ``ends[s + 1]``, in order.
    """

    ends: Times
    start: Times
    end: Times

    @property
    def count(self) -> int:
        return len(self.start)

    @property
    def length(self) -> Duration:
        return int((self.end - self.start).sum())


class Trial(NamedTuple):
    """The input of a comparison of variants.

    It has a history that ends at ``until``, the state, and the reference. ``flap`` is the longest pause, in
    microseconds, after which a new interval counts as a flap.
    """

    rows: MeasuredRows
    found: Tunable
    known: KnownTruth
    until: Instant
    flap: Duration = FLAP


def judge(trial: Trial, grid: VariantGrid) -> Counts:
    """Return the counts of each variant, indexed by entrance, exit and minimum duration."""
    rows, found, *_ = trial
    result = np.zeros((len(grid.enters), len(grid.exits), len(grid.guards), 8), np.int64)
    enters = np.argsort(_to_rising(grid.enters, found.enter), kind="stable")
    exits = np.argsort(_to_rising(grid.exits, found.exit), kind="stable")
    entering = _ranks(rows.enter, _to_rising(grid.enters, found.enter)[enters], found.enter)
    for at in range(0, len(exits), MOST_EXITS):
        selected = exits[at : at + MOST_EXITS]
        leaving = _ranks(rows.exit, _to_rising(grid.exits, found.exit)[selected], found.exit)
        waits = np.array([(guard, e) for e in range(len(enters)) for guard in grid.guards], np.int64)
        counts = _count(trial, waits, (entering, leaving), len(selected))
        result[np.ix_(enters, selected)] = counts.reshape(len(enters), -1, len(selected), 8).swapaxes(1, 2)
    return result


def as_it_stands(rows: MeasuredRows, found: Tunable, until: Instant) -> KnownTruth:
    """Return the intervals of the state as it is defined now, as the reference."""
    ranks = tuple(
        _ranks(values, _to_rising((None if threshold is None else threshold.value,), threshold), threshold)
        for values, threshold in ((rows.enter, found.enter), (rows.exit, found.exit))
    )
    trial, waits = Trial(rows, found, labels_of(rows, {}), until), np.array([(found.guard, 0)], np.int64)
    starts = np.empty((int(_count(trial, waits, ranks, 1)[0, STARTS]), 3), np.int64)
    _count(trial, waits, ranks, 1, starts)
    return KnownTruth(
        np.searchsorted(starts[:, 0], np.arange(len(rows.ends))), starts[:, 1].copy(), starts[:, 2].copy()
    )


def labels_of(rows: MeasuredRows, labels: Labels) -> KnownTruth:
    """Return the labels of the scopes that have readings, as the reference."""
    names = [readable_key(key) if key else None for key in rows.keys.all().to_pylist()] if labels else []
    intervals = [labels.get(name, ()) for name in names]
    sizes = [len(scope_intervals) for scope_intervals in intervals] if labels else [0] * len(rows.keys)
    every = np.array([pair for scope_intervals in intervals for pair in scope_intervals], np.int64).reshape(
        -1, 2
    )
    return KnownTruth(np.cumsum([0, *sizes], dtype=np.int64), every[:, 0].copy(), every[:, 1].copy())


def within(labels: Labels, first: Instant, last: Instant) -> dict[str | None, list[Interval]]:
    """Return labels cut to the time of a history. Labels that touch are merged."""
    return {
        scope: list(_join((max(a, first), min(b, last)) for a, b in intervals if a <= last and b >= first))
        for scope, intervals in labels.items()
    }


def _join(intervals: Iterable[Interval]) -> Iterator[Interval]:
    last: Interval | None = None
    for start, end in sorted(intervals):
        if last is not None and start <= last[1]:
            last = last[0], max(end, last[1])
            continue
        if last is not None:
            yield last
        last = start, end
    if last is not None:
        yield last


def _to_rising(values: Sequence[float | None], threshold: Threshold | None) -> Floats:
    """Return thresholds, negated for falling comparisons.

    Then greater values always satisfy the predicate.
    """
    sign = 1.0 if threshold is None or threshold.rises else -1.0
    return np.array([0.0 if value is None else sign * value for value in values])


def _ranks(values: Floats, bounds: Floats, threshold: Threshold | None) -> Ranks:
    ranks = np.empty(len(values), np.uint16)
    count_satisfied(values, bounds, threshold is not None and threshold.is_closed, ranks)
    return ranks


def _count(
    trial: Trial, waits: Times, ranks: tuple[Ranks, ...], exits: int, starts: Counts = NO_STARTS
) -> Counts:
    rows, found, known, until, flap = trial
    counts = np.zeros((len(waits) * exits, 8), np.int64)
    vary(
        rows.times, *ranks, rows.ends, waits, found.care.exit.length, exits, flap, until,
        known.ends, known.start, known.end,
        np.zeros((6, len(waits)), np.int64), np.zeros((5, len(counts)), np.int64), counts, starts,
    )  # fmt: skip
    return counts
