"""The runs of an experiment by approach, point and layout, with their statistics."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from statistics import fmean, stdev

from holdfast.network.sim.statistics import Estimate, estimate

from .outcome import QpsOutcome

Quantity = Callable[[QpsOutcome], float]
links, load, messages, hops, subscribing = map(attrgetter, QpsOutcome._fields)


@dataclass(frozen=True)
class Sweep:
    """The outcomes of each approach at each point, one for each layout."""

    points: Sequence[float]
    runs: dict[tuple[str, float], list[QpsOutcome]]

    @property
    def approaches(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self.runs))

    def of(self, quantity: Quantity, approach: str, point: float) -> list[float]:
        return [quantity(run) for run in self.runs[approach, point]]

    def mean(self, quantity: Quantity, approach: str, point: float) -> float:
        return fmean(self.of(quantity, approach, point))

    def spread(self, quantity: Quantity, approach: str, point: float) -> float:
        """Return the standard deviation over the layouts."""
        found = self.of(quantity, approach, point)
        return stdev(found) if len(found) > 1 else 0.0

    def estimate(self, quantity: Quantity, approach: str, point: float) -> Estimate:
        found = estimate(self.of(quantity, approach, point))
        assert found is not None
        return found

    def curve(self, quantity: Quantity, approach: str) -> list[float]:
        return [self.mean(quantity, approach, point) for point in self.points]


def trend(xs: Sequence[float], ys: Sequence[float]) -> float:
    """Return Spearman's rank correlation; 0 if one of the series is constant.

    >>> trend([1, 2, 3], [5, 6, 9]), trend([1, 2, 3], [9, 6, 5]), trend([1, 2, 3], [4, 4, 4])
    (1.0, -1.0, 0.0)
    """
    ranks = [_ranks(values) for values in (xs, ys)]
    middles = [fmean(some) for some in ranks]
    moves = [[rank - middle for rank in some] for some, middle in zip(ranks, middles, strict=True)]
    product = sum(a * b for a, b in zip(*moves, strict=True))
    sizes = [sum(move * move for move in some) for some in moves]
    return product / (sizes[0] * sizes[1]) ** 0.5 if all(sizes) else 0.0


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def line(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Return the slope of the least-squares line, and the share of the variance that it explains.

    >>> line([0, 1, 2], [1, 3, 5])
    (2.0, 1.0)
    """
    x, y = fmean(xs), fmean(ys)
    across = sum((a - x) ** 2 for a in xs)
    slope = sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / across
    whole = sum((b - y) ** 2 for b in ys)
    return slope, slope * slope * across / whole if whole else 1.0
