"""The four experiments: one way to run them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..data import locate
from ..experiment import Experiment, Progress, Result
from ..journal import place
from ..stbernard import FILE
from ..study import Kept, Spread, conduct, on_spark
from .claim import claims
from .figure import figure
from .grid import Cell, Exhibit, Grid, Measured
from .measure import draw, measure
from .report import parameters, rows, tables
from .setting import FSF, HOURS, MULTI_JOIN, PLACEMENT, SEEDS, STATIONS, Setting, variants
from .stream import Stretch, first, read

CODE = (
    "holdfast_lab/experiments/fsf",
    "holdfast/kernels/gap.py",
    "holdfast/kernels/member.py",
    "holdfast/model/correlation.py",
    "holdfast/protocols/fsf",
    "holdfast/runtimes/overlay/memory",
)
"""The sources on which a run depends."""


def experiment(
    title: str,
    setting: Setting,
    few: Sequence[int],
    varied: int | None = None,
    beside: Setting | None = None,
) -> Experiment:
    """One of the four; the default run measures ``few`` numbers of subscriptions only, the full one also
    what depends on choices that the document leaves open, at the number that is ``varied``.  Where the
    document compares it with another, that one runs ``beside`` it, as far as it is compared."""

    def chosen(data: Path | None, full: bool, progress: Progress) -> Result:
        counts = setting.counts if full else tuple(few)
        others = variants(setting, varied) if full and varied else ()
        if beside:
            others = (*others, replace(beside, counts=counts, approaches=(PLACEMENT, MULTI_JOIN, FSF)))
        return run(replace(setting, counts=counts), others, data, full, progress)

    return Experiment(setting.name, title, chosen, tables, figure)


def run(
    setting: Setting, others: Sequence[Setting], data: Path | None, resume: bool, progress: Progress
) -> Result:
    """All approaches with all seeds, as Spark tasks."""
    progress("reading")
    every = read(locate(FILE, data), HOURS, STATIONS)

    def grid(one: Setting) -> Grid:
        stretch = first(every, one.groups)
        path = place(setting.name, (one, stretch), CODE) if resume else None
        return Grid(measured(one, stretch, path, lambda what: progress(f"{one.name}, {what}")))

    exhibit = Exhibit(grid(setting), {one.name: grid(one) for one in others})
    draws = {
        one.name: [draw(one, first(every, one.groups), seed, max(one.counts)) for seed in SEEDS]
        for one in (setting, *others)
    }
    return Result(
        setting.name,
        parameters(setting, every, draws),
        rows(setting.name, exhibit),
        tuple(claims(setting.name, exhibit)),
        exhibit,
    )


def measured(
    setting: Setting, stretch: Stretch, path: Path | None, progress: Progress, spread: Spread = on_spark
) -> dict[Cell, Measured]:
    """Every run, seed by seed; where a file is given they are kept there, and not made again."""
    rounds = {
        f"seed {seed}, to {SEEDS[-1]}": {cell: cell for cell in _cells(setting, seed)} for seed in SEEDS
    }
    kept = Kept(path, Measured._make) if path else None
    return conduct(partial(measure, setting, stretch), rounds, progress, kept, spread)


def _cells(setting: Setting, seed: int) -> list[Cell]:
    """The runs of one seed, the long ones first."""
    counts = sorted(setting.counts, reverse=True)
    return [Cell(seed, approach, n) for n in counts for approach in setting.approaches]
