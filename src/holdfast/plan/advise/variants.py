"""Variants of a state: grids of numbers, the costs of a variant, and the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ...definition.tune import Numbers, Threshold, Tunable
from ...errors import UsageError
from ...kernels.vary import DELAY, FLAPS, HOLDING, OPEN, REACHED, RIGHT, SHARED, STARTS
from ...model.instant import MINUTE, SECOND, Duration
from .judge import Counts, VariantGrid
from .rows import Moments

GUARDS = tuple(minutes * MINUTE for minutes in (0, 1, 2, 5, 10, 30))
STEPS = 4
"""The default number of steps of a grid on each side of the current number."""


class Judged(NamedTuple):
    """The counts of the variants of a grid, and the number and total length of the reference's intervals."""

    counts: Counts
    known: int
    length: Duration


@dataclass(frozen=True)
class Variant:
    """The effect of a state with other numbers.

    ``delay`` is the mean time in seconds from the start of a reference interval until the variant is active.
    ``excess`` is the time in seconds for which the variant is active and the reference is not. ``precision``
    is the fraction of the variant's intervals that overlap a reference interval; ``recall`` is the fraction
    of reference intervals that overlap an interval of the variant.
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
        """The quantities to minimise: flaps, delay and excess."""
        return (self.flaps, self.delay or 0.0, self.excess)

    @property
    def numbers(self) -> Numbers:
        """The entrance, the exit and the minimum duration in microseconds, as a definition has them."""
        return self.enter, self.exit, round(self.guard * SECOND)


def variants(found: Tunable, grid: VariantGrid, judged: Judged) -> list[Variant]:
    """Return the variants of a grid with their counts.

    Variants are left out if one reading could both start and end them.
    """
    result = []
    current = standing(found)[:2]
    for e, enter in enumerate(grid.enters):
        for x, exit in enumerate(grid.exits):
            if not found.excludes(enter, exit) and (enter, exit) != current:
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


def with_front(variants: Sequence[Variant]) -> list[Variant]:
    """Return the variants with those on the Pareto front marked.

    A variant is on the front if no other is at least as good in every cost and better in one.
    """
    costs = np.array([variant.cost for variant in variants])
    order = np.lexsort(costs.T[::-1])
    front: list[np.ndarray] = []
    on = np.zeros(len(variants), np.bool_)
    for i in order:  # nothing later in this order can be better
        cost = costs[i]
        on[i] = not any((variant <= cost).all() and (variant < cost).any() for variant in front)
        if on[i] and not any((variant == cost).all() for variant in front):
            front.append(cost)
    return [replace(variant, front=bool(flag)) for variant, flag in zip(variants, on, strict=True)]


def best(variants: Iterable[Variant]) -> Variant:
    """Return the variant of the front that is nearest to the minimum of all costs; the first of several.

    Each cost is scaled by its range on the front.
    """
    front = [variant for variant in variants if variant.front]
    costs = np.array([variant.cost for variant in front])
    least, most = costs.min(axis=0), costs.max(axis=0)
    scaled = (costs - least) / np.where(most > least, most - least, 1.0)
    return front[int(np.argmin((scaled**2).sum(axis=1)))]


def standing(found: Tunable) -> Numbers:
    """Return the numbers of the state as it is defined now."""
    enter, exit = (None if threshold is None else threshold.value for threshold in (found.enter, found.exit))
    return enter, exit, found.guard


# --- grids -------------------------------------------------------------------------------------------


def grid_of(
    found: Tunable,
    deviation: float,
    enters: Sequence[float] | None = None,
    exits: Sequence[float] | None = None,
    guards: Sequence[Duration] | None = None,
) -> VariantGrid:
    """Return the grid of the requested numbers.

    Numbers that are ``None`` become some steps around the current number. ``deviation`` is the standard
    deviation of the compared values, which determines the step.
    """
    step = _step(found, deviation)
    return VariantGrid(
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
    """Return a round step for a grid of thresholds.

    It is a quarter of the distance between two thresholds or, with one threshold, of the standard deviation.
    """
    a, b = found.enter, found.exit
    if a is not None and b is not None and a.of == b.of and a.value != b.value:
        return _round(abs(a.value - b.value) / 4)
    return _round(deviation / 4) if deviation > 0 else 1.0


def deviation(moments: Moments) -> float:
    """Return the standard deviation from count, sum and sum of squares."""
    count, total, squares = moments
    return math.sqrt(max(0.0, squares / count - (total / count) ** 2)) if count else 0.0


def _round(size: float) -> float:
    """Return the nearest of 1, 2 and 5 times a power of ten.

    >>> _round(0.75), _round(3.2), _round(0.018)
    (0.5, 2.0, 0.02)
    """
    power = math.floor(math.log10(size))
    return min(
        (digit * 10.0**p for p in (power, power + 1) for digit in (1, 2, 5)), key=lambda n: abs(n - size)
    )


def _tidy(value: float, step: float) -> float:
    """Return a number without the rounding errors of sums of steps."""
    return round(value, max(0, 2 - math.floor(math.log10(step))))


def refine(grid: VariantGrid, variants: Iterable[Variant]) -> VariantGrid:
    """Return the grid with additional numbers half-way between those on the front and their neighbours."""
    front = [variant for variant in variants if variant.front]
    return grid._replace(
        enters=tuple(_finer(grid.enters, {variant.enter for variant in front})),
        exits=tuple(_finer(grid.exits, {variant.exit for variant in front})),
    )


def _finer(axis: Sequence[float | None], wanted: set[float | None]) -> Iterator[float | None]:
    yield axis[0]
    for low, high in pairwise(axis):
        if low is not None and high is not None and wanted & {low, high}:
            yield _tidy((low + high) / 2, (high - low) / 2)
        yield high
