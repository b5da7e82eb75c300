"""Variants of a state beside one another: grids, what each variant is worth, and which are worth a choice."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...errors import UsageError
from ...kernels.vary import DELAY, FLAPS, HOLDING, OPEN, REACHED, RIGHT, SHARED, STARTS
from ...lang.tune import Numbers, Threshold, Tunable
from ...model.instant import MINUTE, SECOND, Duration
from .judge import Counts, Grid
from .rows import Moments

GUARDS = tuple(minutes * MINUTE for minutes in (0, 1, 2, 5, 10, 30))
STEPS = 4
"""How many steps of a grid there are on each side of what is written, unless somebody names them."""


class Judged(NamedTuple):
    """What was counted of the variants of a grid, and how much of a reference there was."""

    counts: Counts
    known: int
    length: Duration


@dataclass(frozen=True)
class Variant:
    """What a state would have done with other numbers.

    ``delay`` is how long on average the reference holds until the variant does too, ``excess`` how long the
    variant holds while the reference does not, both in seconds; ``precision`` is the part of its intervals
    that meet one of the reference, ``recall`` the part of these that it meets.
    """

    enter: float | None
    exit: float | None
    guard: float
    starts: int
    ends: int
    holding: float
    flaps: int
    delay: float | None
    excess: float
    precision: float | None
    recall: float | None
    front: bool = False

    @property
    def cost(self) -> tuple[float, ...]:
        """What is better the less there is of it."""
        return (self.flaps, self.delay or 0.0, self.excess)

    @property
    def numbers(self) -> Numbers:
        """Entrance, exit and guard, as a definition has them."""
        return self.enter, self.exit, round(self.guard * SECOND)


def variants(found: Tunable, grid: Grid, judged: Judged) -> list[Variant]:
    """What was counted, as people read it; without those that a reading could both start and end."""
    result = []
    own = standing(found)[:2]
    for e, enter in enumerate(grid.enters):
        for x, exit in enumerate(grid.exits):
            if not found.excludes(enter, exit) and (enter, exit) != own:
                continue
            for g, guard in enumerate(grid.guards):
                result.append(_variant(enter, exit, guard, [int(n) for n in judged.counts[e, x, g]], judged))
    return with_front(result)


def _variant(
    enter: float | None, exit: float | None, guard: Duration, n: list[int], judged: Judged
) -> Variant:
    late = n[DELAY] + judged.length
    return Variant(
        enter,
        exit,
        guard / SECOND,
        n[STARTS],
        n[STARTS] - n[OPEN],
        n[HOLDING] / SECOND,
        n[FLAPS],
        late / judged.known / SECOND if judged.known else None,
        (n[HOLDING] - n[SHARED]) / SECOND,
        n[RIGHT] / n[STARTS] if n[STARTS] and judged.known else None,
        n[REACHED] / judged.known if judged.known else None,
    )


def with_front(some: Sequence[Variant]) -> list[Variant]:
    """Which variants no other is better than: in nothing worse and in something better."""
    costs = np.array([one.cost for one in some])
    order = np.lexsort(costs.T[::-1])
    front: list[np.ndarray] = []
    on = np.zeros(len(some), np.bool_)
    for i in order:  # nothing that comes later can be better
        mine = costs[i]
        on[i] = not any((other <= mine).all() and (other < mine).any() for other in front)
        if on[i] and not any((other == mine).all() for other in front):
            front.append(mine)
    return [replace(one, front=bool(flag)) for one, flag in zip(some, on, strict=True)]


def best(some: Iterable[Variant]) -> Variant:
    """Of the front the one that is nearest to the least of everything, each measured by how far the front
    reaches; of several the first."""
    front = [one for one in some if one.front]
    costs = np.array([one.cost for one in front])
    least, most = costs.min(axis=0), costs.max(axis=0)
    scaled = (costs - least) / np.where(most > least, most - least, 1.0)
    return front[int(np.argmin((scaled**2).sum(axis=1)))]


def standing(found: Tunable) -> Numbers:
    """The numbers that are written."""
    enter, exit = (None if one is None else one.value for one in (found.enter, found.exit))
    return enter, exit, found.guard


# --- grids -------------------------------------------------------------------------------------------


def grid_of(
    found: Tunable,
    deviation: float,
    enters: Sequence[float] | None = None,
    exits: Sequence[float] | None = None,
    guards: Sequence[Duration] | None = None,
) -> Grid:
    """The grid that is wanted; what is not named goes some steps up and down from what is
    written; ``deviation`` is how much readings differ."""
    step = _step(found, deviation)
    return Grid(
        _axis("--enter", found.enter, enters, step),
        _axis("--exit", found.exit, exits, step),
        tuple(sorted({found.guard, *(GUARDS if guards is None else guards)})),
    )


def _axis(
    option: str, threshold: Threshold | None, wanted: Sequence[float] | None, step: float
) -> tuple[float | None, ...]:
    if threshold is None:
        if wanted:
            raise UsageError(f"{option}: this predicate compares nothing with a number, so it stays as it is")
        return (None,)
    if wanted is None:
        wanted = [_tidy(threshold.value + i * step, step) for i in range(-STEPS, STEPS + 1)]
    return tuple(sorted({threshold.value, *wanted}))


def _step(found: Tunable, deviation: float) -> float:
    """A round number: a quarter of the band or, without one, of how much readings differ."""
    a, b = found.enter, found.exit
    if a is not None and b is not None and a.of == b.of and a.value != b.value:
        return _round(abs(a.value - b.value) / 4)
    return _round(deviation / 4) if deviation > 0 else 1.0


def deviation(moments: Moments) -> float:
    """The standard deviation of numbers."""
    count, total, squares = moments
    return math.sqrt(max(0.0, squares / count - (total / count) ** 2)) if count else 0.0


def _round(size: float) -> float:
    """The nearest of 1, 2 and 5 with some power of ten.

    >>> _round(0.75), _round(3.2), _round(0.018)
    (0.5, 2.0, 0.02)
    """
    power = math.floor(math.log10(size))
    return min(
        (digit * 10.0**p for p in (power, power + 1) for digit in (1, 2, 5)), key=lambda n: abs(n - size)
    )


def _tidy(value: float, step: float) -> float:
    """Without the last bits, which sums of steps leave."""
    return round(value, max(0, 2 - math.floor(math.log10(step))))


def refined(grid: Grid, some: Iterable[Variant]) -> Grid:
    """The grid with what lies half-way between those on the front and their neighbours."""
    front = [one for one in some if one.front]
    return grid._replace(
        enters=tuple(_finer(grid.enters, {one.enter for one in front})),
        exits=tuple(_finer(grid.exits, {one.exit for one in front})),
    )


def _finer(axis: Sequence[float | None], wanted: set[float | None]) -> Iterator[float | None]:
    yield axis[0]
    for low, high in pairwise(axis):
        if low is not None and high is not None and wanted & {low, high}:
            yield _tidy((low + high) / 2, (high - low) / 2)
        yield high
