"""Points, each run with several seeds, read as means and deviations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Any

from .measure import Key, Measured


@dataclass(frozen=True)
class Study:
    """All runs by point; the seeds of a point are in order."""

    runs: Mapping[Key, Sequence[Measured]]

    def where(self, **wanted: Any) -> list[Key]:
        """Return the points with these values, in the order in which they were planned."""
        return [key for key in self.runs if wanted.items() <= dict(key).items()]

    def values(self, quantity: str, **wanted: Any) -> list[float]:
        """Return a quantity of the only point with these values, by seed; runs without it are left out."""
        (key,) = self.where(**wanted)
        return [run[quantity] for run in self.runs[key] if run[quantity] is not None]

    def mean(self, quantity: str, **wanted: Any) -> float:
        return fmean(self.values(quantity, **wanted))

    def over(self, quantity: str, name: str, values: Iterable[Any], **wanted: Any) -> dict[Any, float]:
        """Return the means of a quantity for several values of one parameter."""
        return {value: self.mean(quantity, **{**wanted, name: value}) for value in values}

    def deviation(self, quantity: str, **wanted: Any) -> float:
        """Return the standard deviation over seeds. [D66]"""
        return spread(self.values(quantity, **wanted))

    def every(self, quantity: str, keep: Callable[[Mapping[str, Any]], bool]) -> list[float]:
        """Return a quantity of every run of the points that ``keep`` selects."""
        return [value for key in self.runs if keep(dict(key)) for value in self.values(quantity, **dict(key))]

    def means(self, quantity: str, keep: Callable[[Mapping[str, Any]], bool]) -> list[float]:
        """Return the means of a quantity at the points that ``keep`` selects."""
        return [self.mean(quantity, **dict(key)) for key in self.runs if keep(dict(key))]

    def levels(self, name: str) -> list[Any]:
        """Return the values that a parameter has."""
        return list(dict.fromkeys(dict(key)[name] for key in self.runs))


def spread(values: Sequence[float]) -> float:
    return stdev(values) if len(values) > 1 else 0.0
