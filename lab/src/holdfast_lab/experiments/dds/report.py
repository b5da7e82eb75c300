"""The parts that all experiments here have in common: how they are run, tabled and drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any

from holdfast.network.motes.report.style import new_figure

from ..experiment import Claim, Drawing, Experiment, Judged, Progress, Result, Row, Table, to_claims
from ..journal import place
from ..study import Spread, StoredRuns, conduct, on_spark
from .measure import Extra, Point, measure, nothing
from .study import Study, spread

CODE = (
    "holdfast/definition",
    "holdfast/engine",
    "holdfast/kinds",
    "holdfast_lab/experiments/dds",
    "holdfast/lang",
    "holdfast/model",
    "holdfast/network/protocols/dds",
    "holdfast/network/motes",
    "holdfast/network/sim",
)
"""The sources on which a run depends."""


FIRST = 201
"""The first seed: 1 to 10 and 101 to 105 were in use when the fitted model and its rules were written."""

ASIDE = 3
"""The number of seeds for the older radio models in a default run; no claim is judged by them alone."""


@dataclass(frozen=True)
class Effort:
    """How often each point is run, and where. [D66]"""

    seeds: int = 10
    spread: Spread = on_spark

    @property
    def span(self) -> range:
        return range(FIRST, FIRST + self.seeds)

    def of(self, point: Point, full: bool) -> range:
        """Return the seeds of a point."""
        return self.span[:ASIDE] if point.aside and not full else self.span


EFFORT = Effort()


OUTCOMES = {"why": True, "why_not": False, "why_open": None}


@dataclass(frozen=True)
class CurveSpec:
    """A curve: its label, and what its points have in common."""

    label: str
    where: Mapping[str, Any]
    colour: int = 0
    """The colour of a bar; each curve has one of its own."""


@dataclass(frozen=True)
class Panel:
    """One picture: a quantity against a parameter, with a line for each set of points, or a bar for each
    point."""

    title: str
    quantity: str
    over: str
    lines: Sequence[CurveSpec]
    unit: str = ""
    log: bool = False
    paper: Sequence[tuple[float, float]] = ()
    """The values that the thesis prints, as (x, y)."""


@dataclass(frozen=True)
class Design:
    """An experiment before it is run."""

    name: str
    title: str
    points: Callable[[bool], Sequence[Point]]
    """Returns the points of the default and of the full run."""
    parameters: Callable[[bool], Mapping[str, Any]]
    rules: Mapping[str, str]
    """The claims and how they are judged, by the name of the claim."""
    verdicts: Callable[[Study], Sequence[Judged]]
    quantities: Sequence[str]
    """The columns of the rows."""
    panels: Callable[[], Sequence[Panel]]
    shown: Sequence[str] | None = None
    """The columns of the table; ``None``: all quantities."""
    extra: Extra = nothing
    more_tables: Callable[[Study], Sequence[Table]] = field(default=lambda _: ())
    draw: Callable[[Study], Drawing] | None = None
    """Draws a figure in place of the panels."""

    def claims(self, study: Study) -> tuple[Claim, ...]:
        """Return the judged claims."""
        return to_claims(self.rules, self.verdicts(study))

    @property
    def experiment(self) -> Experiment:
        """The experiment for ``holdfast reproduce``."""
        functions = partial(run, self), partial(_tables, self), partial(_figure, self)
        return Experiment(self.name, self.title, *functions)


def verdict(paper: Any, ours: Any, holds: bool | None, measured: str = "", **reasons: str) -> Judged:
    """Return a verdict with the reason of each outcome that has one.

    ``why`` is the reason if the claim holds, ``why_not`` if it does not, ``why_open`` if it cannot be judged.
    """
    return Judged(paper, ours, holds, measured, {OUTCOMES[name]: text for name, text in reasons.items()})


def judge_each(*judges: Callable[[Study], Judged]) -> Callable[[Study], list[Judged]]:
    """Return a function that applies one function for each claim to a study."""
    return lambda study: [judge(study) for judge in judges]


def run(design: Design, _: Path | None, full: bool, progress: Progress, effort: Effort = EFFORT) -> Result:
    """Run all points with all seeds; with ``full`` at the size of the thesis."""
    study, seeds = run_study(design, full, progress, effort), effort.span
    return Result(
        design.name,
        {
            **design.parameters(full),
            "runs for each point": f"{len(seeds)}, seeds {seeds[0]} to {seeds[-1]}; ± is the standard "
            "deviation" + ("" if full else f"; in the clear and the noisy air the first {ASIDE}"),
        },
        [_row(design, study, dict(key)) for key in study.runs],
        design.claims(study),
        study,
    )


def run_study(design: Design, full: bool, progress: Progress, effort: Effort) -> Study:
    """Run all points with all seeds; with ``full`` the runs are stored and not repeated."""
    points, seeds = design.points(full), effort.span
    found = conduct(
        partial(measure, design.extra),
        {
            f"seed {seed} of {seeds[0]} to {seeds[-1]}, {len(points)} points": {
                (point.signature, seed): (point, seed) for point in points if seed in effort.of(point, full)
            }
            for seed in seeds
        },
        progress,
        StoredRuns(place(design.name, None, CODE), dict) if full else None,
        effort.spread,
    )
    runs = {p.key: [found[p.signature, seed] for seed in effort.of(p, full)] for p in points}
    return Study(runs)


def _row(design: Design, study: Study, key: Mapping[str, Any]) -> Row:
    row: Row = dict(key)
    for quantity in design.quantities:
        values = study.values(quantity, **key)
        row[quantity] = study.mean(quantity, **key) if values else None
        row[f"{quantity}, sd"] = spread(values) if values else None
    return row


def _tables(design: Design, result: Result) -> list[Table]:
    study: Study = result.exhibit
    names = [name for name in result.rows[0] if name not in design.quantities and not name.endswith(", sd")]
    shown = design.quantities if design.shown is None else design.shown
    lines = [(*(row[n] for n in names), *(plus_minus(row, q) for q in shown)) for row in result.rows]
    whole = Table("Mean ± standard deviation over seeds", (*names, *shown), lines)
    return [whole, *design.more_tables(study)]


def plus_minus(row: Row, quantity: str) -> str:
    """Return a mean with its deviation as text."""
    if row[quantity] is None:
        return "–"
    return f"{row[quantity]:.4g} ± {row[f'{quantity}, sd']:.2g}"


def _figure(design: Design, result: Result) -> Drawing:
    if design.draw is not None:
        return design.draw(result.exhibit)
    panels = design.panels()
    columns = 2 if len(panels) == 4 else min(len(panels), 3)
    rows = ceil(len(panels) / columns)
    wide = 4.6 if any(panel.over for panel in panels) else 5.4
    drawing = new_figure(wide * columns, 3.6 * rows)
    for axes, panel in zip(drawing.subplots(rows, columns, squeeze=False).flat, panels, strict=False):
        _draw(axes, result.rows, panel)
    _explain(drawing)
    return drawing


def _explain(drawing: Drawing) -> None:
    """Draw one legend for all panels below them, because in a panel it would cover curves."""
    legends = [axes.get_legend_handles_labels() for axes in drawing.axes]
    known = {label: curve for legend in legends for curve, label in zip(*legend, strict=True)}
    if known:
        drawing.legend(known.values(), known, loc="outside lower center", ncols=4, fontsize=8, frameon=False)


MARKS = "osD^vx*P"


def _draw(axes: Any, rows: Sequence[Row], panel: Panel) -> None:
    """Draw a panel from rows alone, so that a record can be drawn again; thin bars are the standard
    deviation. [D66]"""
    (_curves if panel.over else _bars)(axes, rows, panel)
    axes.set_title(panel.title, fontsize=10)
    if panel.over:
        name, scale, limits, bounds = axes.set_ylabel, axes.set_yscale, axes.set_ylim, axes.get_ylim
    else:
        name, scale, limits, bounds = axes.set_xlabel, axes.set_xscale, axes.set_xlim, axes.get_xlim
    name(panel.unit or panel.quantity)
    if panel.log:
        scale("log")
    else:
        limits(0, 1.05 * bounds()[1])


def _where(rows: Sequence[Row], line: CurveSpec) -> list[Row]:
    return [row for row in rows if line.where.items() <= row.items()]


def _bars(axes: Any, rows: Sequence[Row], panel: Panel) -> None:
    """Draw horizontal bars, the first at the top, so that labels of any length fit beside them."""
    found = [row for line in panel.lines for row in _where(rows, line)]
    axes.barh(
        [line.label for line in panel.lines],
        [row[panel.quantity] for row in found],
        xerr=[row[f"{panel.quantity}, sd"] for row in found],
        color=[f"C{line.colour}" for line in panel.lines],
        capsize=2,
    )
    axes.invert_yaxis()
    axes.tick_params(axis="y", labelsize=7)
    axes.locator_params(axis="x", nbins=4)


def _curves(axes: Any, rows: Sequence[Row], panel: Panel) -> None:
    for number, line in enumerate(panel.lines):
        found = [
            (row[panel.over], row[panel.quantity], row[f"{panel.quantity}, sd"])
            for row in _where(rows, line)
            if not isinstance(row[panel.over], str) and row[panel.quantity] is not None
        ]
        if not found:
            continue
        style = {"marker": MARKS[number % len(MARKS)], "markersize": 4, "capsize": 2, "label": line.label}
        dashes = "--" if "noisy" in line.label else "-"
        axes.errorbar(*zip(*found, strict=True), linestyle=dashes, **style)
    if panel.paper:
        axes.plot(*zip(*panel.paper, strict=True), "kx", markersize=8, label="thesis")
    axes.set_xlabel(panel.over)
