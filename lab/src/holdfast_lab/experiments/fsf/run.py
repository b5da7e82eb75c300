"""The way in which all four experiments are run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from ..data import locate
from ..experiment import Experiment, Progress, Result
from ..journal import place
from ..stbernard import FILE
from ..study import Spread, StoredRuns, conduct, on_spark
from .claim import claims
from .figure import figure
from .grid import FsfCell, FsfExhibit, FsfMeasurement, Grid
from .measure import draw, measure
from .report import parameters, rows, tables
from .setting import FSF, HOURS, MULTI_JOIN, PLACEMENT, SEEDS, STATIONS, FsfSetting, variants
from .stream import Recording, first, read

CODE = (
    "holdfast_lab/experiments/fsf",
    "holdfast/kernels/gap.py",
    "holdfast/kernels/member.py",
    "holdfast/model/correlation.py",
    "holdfast/network/protocols/fsf",
    "holdfast/network/overlay/memory",
)
"""The sources on which a run depends."""


def experiment(
    title: str,
    setting: FsfSetting,
    few: Sequence[int],
    varied: int | None = None,
    beside: FsfSetting | None = None,
) -> Experiment:
    """Return one of the four experiments.

    The default run measures only the numbers of subscriptions in ``few``. The full one measures all, and at
    the number ``varied`` it also varies choices that the document leaves open. Where the document compares an
    experiment with another, that one runs ``beside`` it, as far as it is compared.
    """

    def run_chosen(data: Path | None, full: bool, progress: Progress) -> Result:
        counts = setting.counts if full else tuple(few)
        others = variants(setting, varied) if full and varied else ()
        if beside:
            others = (*others, replace(beside, counts=counts, approaches=(PLACEMENT, MULTI_JOIN, FSF)))
        return run(replace(setting, counts=counts), others, data, full, progress)

    return Experiment(setting.name, title, run_chosen, tables, figure)


def run(
    setting: FsfSetting, others: Sequence[FsfSetting], data: Path | None, resume: bool, progress: Progress
) -> Result:
    """Run all approaches with all seeds, as Spark tasks."""
    progress("reading")
    every = read(locate(FILE, data), HOURS, STATIONS)

    def grid(one: FsfSetting) -> Grid:
        recording = first(every, one.groups)
        path = place(setting.name, (one, recording), CODE) if resume else None
        return Grid(measure_grid(one, recording, path, lambda what: progress(f"{one.name}, {what}")))

    exhibit = FsfExhibit(grid(setting), {one.name: grid(one) for one in others})
    draws = {
        one.name: [draw(one, first(every, one.groups), seed, max(one.counts)) for seed in SEEDS]
        for one in (setting, *others)
    }
    name = setting.name
    found = rows(name, exhibit), tuple(claims(name, exhibit)), exhibit
    return Result(name, parameters(setting, every, draws), *found)


def measure_grid(
    setting: FsfSetting,
    recording: Recording,
    path: Path | None,
    progress: Progress,
    spread: Spread = on_spark,
) -> dict[FsfCell, FsfMeasurement]:
    """Run all cells, seed by seed; with a file they are stored there and not repeated."""
    cells = {seed: _cells(setting, seed) for seed in SEEDS}
    rounds = {f"seed {seed}, to {SEEDS[-1]}": dict(zip(c, c, strict=True)) for seed, c in cells.items()}
    stored_runs = StoredRuns(path, FsfMeasurement._make) if path else None
    return conduct(partial(measure, setting, recording), rounds, progress, stored_runs, spread)


def _cells(setting: FsfSetting, seed: int) -> list[FsfCell]:
    """Return the runs of one seed, the long ones first."""
    counts = sorted(setting.counts, reverse=True)
    return [FsfCell(seed, approach, n) for n in counts for approach in setting.approaches]
