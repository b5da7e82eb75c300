"""Run the study of subsumption: rows, tables and registration."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from holdfast.kernels.cover import absorb

from ..experiment import Experiment, Progress, Result, Row, Table
from ..study import conduct
from .claim import Grid, Left, SubsumptionCell, claims
from .figure import figure
from .workload import SERIES, Subscriptions, SubsumptionSeries, subscriptions

NAME = "subsumption-study"
TITLE = "covered and merged subscriptions under Zipf's law and uniformly  [Fulcrum, Figures 3-7 to 3-10]"
SEEDS = 10
ALL_SEEDS = 50


def run(_: Path | None, full: bool, progress: Progress) -> Result:
    """Measure both series; with ``full``, averaged over more draws."""
    seeds = ALL_SEEDS if full else SEEDS
    rounds = {
        f"{series.name}, {d} dimensions": {(series.name, d, k): (series, d, k) for k in series.attributes}
        for series in SERIES
        for d in series.dimensions
    }
    parts = conduct(lambda cell: measure(*cell, range(seeds)), rounds, progress)
    grid = {cell: left for part in parts.values() for cell, left in part.items()}
    return Result(NAME, _parameters(seeds), [_row(*point) for point in grid.items()], claims(grid), grid)


def measure(series: SubsumptionSeries, dimensions: int, attributes: int, seeds: range) -> Grid:
    """Return the mean number of remaining subscriptions after each number of arrivals."""
    counts = np.array(series.counts)
    total = np.zeros((2, len(counts)))
    for seed in seeds:
        random = np.random.default_rng((seed, dimensions, attributes, series.most))
        drawn = subscriptions(series, dimensions, attributes, random)
        for i, merging in enumerate((False, True)):
            total[i] += left(drawn, merging)[counts - 1]
    return {
        SubsumptionCell(series.name, dimensions, attributes, int(n)): Left(float(a), float(b))
        for n, a, b in zip(counts, *(total / len(seeds)), strict=True)
    }


def left(drawn: Subscriptions, merging: bool) -> np.ndarray:
    """Return the number of remaining subscriptions after each arrival."""
    count = len(drawn.sizes)
    active, remaining = np.empty(count, np.int32), np.empty(count, np.int32)
    absorb(drawn.sizes, drawn.attributes, drawn.bounds.copy(), merging, active, remaining)
    return remaining


def _row(cell: SubsumptionCell, left: Left) -> Row:
    return {**cell._asdict(), **left._asdict()}


def _parameters(seeds: int) -> dict[str, object]:
    zipf, uniform = SERIES
    return {
        "zipf": f"{zipf.dimensions[0]} to {zipf.dimensions[-1]} dimensions, one to {zipf.attributes[-1]} "
        f"attributes (uniform), {zipf.counts[0]} to {zipf.most} subscriptions",
        "uniform": f"{uniform.dimensions[0]} to {uniform.dimensions[-1]} dimensions, one attribute, "
        f"{uniform.counts[0]} to {uniform.most} subscriptions",
        "contents": "whole numbers 1 to 10,000; start and length drawn as the dimensions are, the end cut at "
        "10,000; Zipf's exponent 1",
        "attributes of one subscription": "different; one that is there already is drawn again",
        "rules": "covered: dropped, both ways; merged: equal in all attributes but one, overlapping there",
        "seeds": f"0 to {seeds - 1}, averaged",
    }


def _tables(result: Result) -> list[Table]:
    grid: Grid = result.exhibit
    zipf, uniform = SERIES
    counts = uniform.counts[::2]
    zipf_cell, uniform_cell = partial(SubsumptionCell, zipf.name), partial(SubsumptionCell, uniform.name)
    zipf_lines = [
        (d, *(n for k in zipf.attributes for n in grid[zipf_cell(d, k, zipf.most)])) for d in zipf.dimensions
    ]
    uniform_lines = [(d, *(grid[uniform_cell(d, 1, n)].merged for n in counts)) for d in uniform.dimensions]
    zipf_heads = (f"up to {k}, {how}" for k in zipf.attributes for how in Left._fields)
    return [
        Table(
            f"Zipf: left of {zipf.most:,}, covered ones dropped, and merged as well",
            ("dimensions", *zipf_heads),
            zipf_lines,
        ),
        Table(
            "Uniform, one attribute: left after covering and merging, of",
            ("dimensions", *(f"{n:,}" for n in counts)),
            uniform_lines,
        ),
    ]


EXPERIMENT = Experiment(NAME, TITLE, run, _tables, figure)
