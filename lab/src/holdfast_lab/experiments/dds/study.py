"""Points, each run with several seeds, read as means and deviations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from .measure import Key, Measured


@dataclass(frozen=True)
class Study:
    """All runs, by point; the seeds of a point in order."""

    runs: Mapping[Key, Sequence[Measured]]

    def where(self, **wanted: Any) -> list[Key]:
        """The points with these values, in the order in which they were planned."""
        return [key for key in self.runs if wanted.items() <= dict(key).items()]

    def values(self, quantity: str, **wanted: Any) -> list[float]:
        """A quantity of the one point with these values, seed by seed; runs without it are left out."""
        (key,) = self.where(**wanted)
        return [run[quantity] for run in self.runs[key] if run[quantity] is not None]

    def mean(self, quantity: str, **wanted: Any) -> float:
        return fmean(self.values(quantity, **wanted))

    def deviation(self, quantity: str, **wanted: Any) -> float:
        """The standard deviation over seeds.  [D66]"""
        return spread(self.values(quantity, **wanted))

    def every(self, quantity: str, keep: Callable[[Mapping[str, Any]], bool]) -> list[float]:
        """A quantity of every run of the points that are kept."""
        return [value for key in self.runs if keep(dict(key)) for value in self.values(quantity, **dict(key))]

    def means(self, quantity: str, keep: Callable[[Mapping[str, Any]], bool]) -> list[float]:
        """The means of a quantity at the points that are kept."""
        return [self.mean(quantity, **dict(key)) for key in self.runs if keep(dict(key))]

    def levels(self, name: str) -> list[Any]:
        """The values that a parameter takes."""
        return list(dict.fromkeys(dict(key)[name] for key in self.runs))


def spread(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0
