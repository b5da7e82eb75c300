"""Points, each with several seeds: run as Spark tasks, kept in a file, and read as means and deviations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, stdev
from typing import Any

from .. import journal
from ..experiment import Progress
from .measure import Extra, Key, Measured, Point, measure

Cell = tuple[Point, int]
Spread = Callable[[Callable[[Cell], Measured], Sequence[Cell]], list[Measured]]
"""Applies a function to many cells."""

CODE = (
    "holdfast/compilers",
    "holdfast_lab/experiments/dds",
    "holdfast/lang",
    "holdfast/machines",
    "holdfast/model",
    "holdfast/protocols/dds",
    "holdfast/runtimes/sensornet",
    "holdfast/sim",
)
"""The sources on which a run depends."""


def one_after_the_other(function: Callable[[Cell], Measured], cells: Sequence[Cell]) -> list[Measured]:
    return [function(cell) for cell in cells]


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


def conduct(
    name: str,
    points: Sequence[Point],
    seeds: int,
    extra: Extra,
    full: bool,
    progress: Progress,
    apply: Spread | None = None,
) -> Study:
    """Run all points with all seeds; with ``full`` runs are kept in a file and not made again."""
    if apply is None:
        from holdfast.runtimes.spark.sweep import sweep

        apply = sweep
    kept = journal.place(name, None, CODE) if full else None
    done: dict[str, Measured] = journal.done(kept, dict) if kept else {}
    for seed in range(1, seeds + 1):
        progress(f"seed {seed} of {seeds}, {len(points)} points")
        missing = [(point, seed) for point in points if _label((point, seed)) not in done]
        if missing:
            found = apply(partial(measure, extra), missing)
            done |= zip(map(_label, missing), found, strict=True)
            if kept:
                journal.keep(kept, done)
    return Study(
        {point.key: [done[_label((point, seed))] for seed in range(1, seeds + 1)] for point in points}
    )


def _label(cell: Cell) -> str:
    return f"{cell[0].signature} seed {cell[1]}"
