"""What every variant of a state does over a history, in one pass of a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.vary import MOST_EXITS, STARTS, satisfied, vary
from ...lang.tune import Threshold, Tunable
from ...model.instant import MINUTE, Duration, Instant
from ..keys import shown
from .rows import Floats, Rows, Stretch, Times

Counts = NDArray[np.int64]
Ranks = NDArray[np.uint16]

FLAP = 5 * MINUTE
"""What begins again within this time after it has ended flaps."""

NOTHING_TOLD = np.empty((0, 3), np.int64)


class Grid(NamedTuple):
    """Every entrance with every exit and every guard; ``None`` for a predicate without threshold."""

    enters: tuple[float | None, ...]
    exits: tuple[float | None, ...]
    guards: tuple[Duration, ...]


Labels = Mapping[str | None, Sequence[Stretch]]
"""When the condition really held, by scope; the stretches of a scope are in order, and none meets another."""


@dataclass(frozen=True)
class Known:
    """A reference: when the condition ought to hold.  Scope s has the stretches from ``ends[s]`` to
    ``ends[s + 1]``, in order."""

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
    """What variants of a state go over: a history that ends at ``until``, beside what is known of it."""

    rows: Rows
    found: Tunable
    known: Known
    until: Instant
    flap: Duration = FLAP


def judged(trial: Trial, grid: Grid) -> Counts:
    """What is counted of each variant, by entrance, exit and guard."""
    rows, found, *_ = trial
    result = np.zeros((len(grid.enters), len(grid.exits), len(grid.guards), 8), np.int64)
    enters = np.argsort(_turned(grid.enters, found.enter), kind="stable")
    exits = np.argsort(_turned(grid.exits, found.exit), kind="stable")
    entering = _ranks(rows.enter, _turned(grid.enters, found.enter)[enters], found.enter)
    for at in range(0, len(exits), MOST_EXITS):
        some = exits[at : at + MOST_EXITS]
        leaving = _ranks(rows.exit, _turned(grid.exits, found.exit)[some], found.exit)
        waits = np.array([(guard, e) for e in range(len(enters)) for guard in grid.guards], np.int64)
        counts = _counted(trial, waits, (entering, leaving), len(some))
        result[np.ix_(enters, some)] = counts.reshape(len(enters), -1, len(some), 8).swapaxes(1, 2)
    return result


def as_it_stands(rows: Rows, found: Tunable, until: Instant) -> Known:
    """The stretches during which the state held, as it is defined."""
    ranks = tuple(
        _ranks(values, _turned((None if one is None else one.value,), one), one)
        for values, one in ((rows.enter, found.enter), (rows.exit, found.exit))
    )
    trial, waits = Trial(rows, found, labelled(rows, {}), until), np.array([(found.guard, 0)], np.int64)
    told = np.empty((int(_counted(trial, waits, ranks, 1)[0, STARTS]), 3), np.int64)
    _counted(trial, waits, ranks, 1, told)
    return Known(np.searchsorted(told[:, 0], np.arange(len(rows.ends))), told[:, 1].copy(), told[:, 2].copy())


def labelled(rows: Rows, labels: Labels) -> Known:
    """The labels of the scopes that have readings."""
    names = [shown(key) if key else None for key in rows.keys.all().to_pylist()] if labels else []
    mine = [labels.get(name, ()) for name in names]
    sizes = [len(some) for some in mine] if labels else [0] * len(rows.keys)
    every = np.array([pair for some in mine for pair in some], np.int64).reshape(-1, 2)
    return Known(np.cumsum([0, *sizes], dtype=np.int64), every[:, 0].copy(), every[:, 1].copy())


def within(labels: Labels, first: Instant, last: Instant) -> dict[str | None, list[Stretch]]:
    """Labels as far as they lie in a history, with those that meet made one."""
    return {
        scope: list(_joined((max(a, first), min(b, last)) for a, b in some if a <= last and b >= first))
        for scope, some in labels.items()
    }


def _joined(stretches: Iterable[Stretch]) -> Iterator[Stretch]:
    last: Stretch | None = None
    for start, end in sorted(stretches):
        if last is not None and start <= last[1]:
            last = last[0], max(end, last[1])
            continue
        if last is not None:
            yield last
        last = start, end
    if last is not None:
        yield last


def _turned(values: Sequence[float | None], threshold: Threshold | None) -> Floats:
    """Thresholds as numbers that lie below what satisfies them."""
    sign = 1.0 if threshold is None or threshold.rises else -1.0
    return np.array([0.0 if value is None else sign * value for value in values])


def _ranks(values: Floats, bounds: Floats, threshold: Threshold | None) -> Ranks:
    ranks = np.empty(len(values), np.uint16)
    satisfied(values, bounds, threshold is not None and threshold.closed, ranks)
    return ranks


def _counted(
    trial: Trial, waits: Times, ranks: tuple[Ranks, ...], exits: int, told: Counts = NOTHING_TOLD
) -> Counts:
    rows, found, known, until, flap = trial
    counts = np.zeros((len(waits) * exits, 8), np.int64)
    vary(
        rows.times, *ranks, rows.ends, waits, found.care.exit.length, exits, flap, until,
        known.ends, known.start, known.end,
        np.zeros((6, len(waits)), np.int64), np.zeros((5, len(counts)), np.int64), counts, told,
    )  # fmt: skip
    return counts
