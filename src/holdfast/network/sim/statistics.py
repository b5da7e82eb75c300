"""Statistics over several runs: means, confidence intervals, percentiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, quantiles, stdev

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """The mean of several runs, with half the width of its 95 % confidence interval."""

    mean: float
    half: float | None
    """Half the width of the interval; ``None`` for a single run, which has no interval."""
    runs: int

    @property
    def low(self) -> float | None:
        return None if self.half is None else self.mean - self.half

    @property
    def high(self) -> float | None:
        return None if self.half is None else self.mean + self.half

    def to_json(self) -> dict[str, float | None]:
        """Return the mean, the bounds of the interval, and the number of runs."""
        return {"mean": self.mean, "low": self.low, "high": self.high, "runs": self.runs}


def estimate(values: Iterable[float | None]) -> Estimate | None:
    """Return Student's confidence interval for the mean of independent runs; ``None`` if no run has a value.

    Runs without a value are ignored.

    >>> found = estimate([1.0, 2.0, 3.0])
    >>> found.mean, round(found.half, 3)
    (2.0, 2.484)
    """
    known = [float(value) for value in values if value is not None and math.isfinite(value)]
    if not known:
        return None
    if len(known) == 1:
        return Estimate(known[0], None, 1)
    from scipy.special import stdtrit

    t = float(stdtrit(len(known) - 1, (1 + CONFIDENCE) / 2))
    return Estimate(fmean(known), t * stdev(known) / math.sqrt(len(known)), len(known))


def ratio(part: float, whole: float) -> float | None:
    """Return ``part / whole``; ``None`` if ``whole`` is 0."""
    return part / whole if whole else None


def percentile(ordered: Sequence[float], percent: int) -> float | None:
    """Return a percentile of sorted values, interpolated linearly; ``None`` if there are no values.

    >>> percentile([1.0, 2.0, 3.0], 50), percentile([], 50)
    (2.0, None)
    """
    if len(ordered) < 2:
        return ordered[0] if ordered else None
    return quantiles(ordered, n=100, method="inclusive")[percent - 1]
