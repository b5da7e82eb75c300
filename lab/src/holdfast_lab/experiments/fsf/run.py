"""The four experiments: one way to run them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from ..data import locate
from ..experiment import Experiment, Progress, Result
from ..journal import done, keep, place
from ..stbernard import FILE
from .claim import claims
from .figure import figure
from .grid import Cell, Exhibit, Grid, Measured
from .measure import draw, measure
from .report import parameters, rows, tables
from .setting import HOURS, SEEDS, STATIONS, Setting, variants
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

Spread = Callable[[Callable[[Cell], Measured], list[Cell]], list[Measured]]
"""A way to make many runs."""


def experiment(title: str, setting: Setting, few: Sequence[int], varied: int | None = None) -> Experiment:
    """One of the four; the default run measures ``few`` numbers of subscriptions only, the full one also
    what depends on choices that the document leaves open, at the number that is ``varied``."""
    short = replace(setting, counts=tuple(few))
    others = variants(setting, varied) if varied else ()

    def chosen(data: Path | None, full: bool, progress: Progress) -> Result:
        return run(setting, others, data, True, progress) if full else run(short, (), data, False, progress)

    return Experiment(setting.name, title, chosen, tables, figure)


def run(
    setting: Setting, others: Sequence[Setting], data: Path | None, resume: bool, progress: Progress
) -> Result:
    """All approaches with all seeds, as Spark tasks."""
    from holdfast.runtimes.spark.sweep import sweep

    progress("reading")
    stretch = first(read(locate(FILE, data), HOURS, STATIONS), setting.groups)

    def grid(one: Setting) -> Grid:
        kept = place(setting.name, (one, stretch), CODE) if resume else None
        return Grid(measured(one, stretch, kept, sweep, lambda what: progress(f"{one.name}, {what}")))

    exhibit = Exhibit(grid(setting), {one.name: grid(one) for one in others})
    draws = {
        one.name: [draw(one, stretch, seed, max(one.counts)) for seed in range(SEEDS)]
        for one in (setting, *others)
    }
    return Result(
        setting.name,
        parameters(setting, stretch, draws),
        rows(setting.name, exhibit),
        tuple(claims(setting.name, exhibit)),
        exhibit,
    )


def measured(
    setting: Setting, stretch: Stretch, kept: Path | None, spread: Spread, progress: Progress
) -> dict[Cell, Measured]:
    """Every run, seed by seed; where a file is given they are kept there, and not made again."""
    runs = done(kept, _runs) if kept else {}
    cells = {seed: _cells(setting, seed) for seed in range(SEEDS)}
    for seed, wanted in cells.items():
        missing = [cell for cell in wanted if cell not in runs]
        if missing:
            progress(f"seed {seed + 1} of {SEEDS}")
            runs |= zip(missing, spread(partial(measure, setting, stretch), missing), strict=True)
            if kept:
                keep(kept, list(runs.items()))
    return {cell: runs[cell] for wanted in cells.values() for cell in wanted}


def _runs(kept: Any) -> dict[Cell, Measured]:
    return {Cell(*cell): Measured(*run) for cell, run in kept}


def _cells(setting: Setting, seed: int) -> list[Cell]:
    """The runs of one seed, the long ones first."""
    counts = sorted(setting.counts, reverse=True)
    return [Cell(seed, approach, n) for n in counts for approach in setting.approaches]
