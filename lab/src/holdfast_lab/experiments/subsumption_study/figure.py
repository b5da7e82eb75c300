"""The figures that are lost in the document."""

from __future__ import annotations

from typing import Any

from holdfast.network.motes.report.style import new_figure

from ..experiment import Drawing, Result
from .claim import Grid, SubsumptionCell
from .workload import SERIES, SubsumptionSeries


def figure(result: Result) -> Drawing:
    """Draw the remaining subscriptions by number, and by the number per dimension."""
    grid: Grid = result.exhibit
    zipf, uniform = SERIES
    drawing = new_figure(13, 8)
    *growing, last = drawing.subplots(2, 3).flat
    shown = [*((zipf, k) for k in zipf.attributes), (uniform, 1)]
    for panel, (series, k) in zip(growing, shown, strict=True):
        _growth(panel, grid, series, k)
    _crowding(last, grid)
    return drawing


def _growth(panel: Any, grid: Grid, series: SubsumptionSeries, k: int) -> None:
    """Draw one of Figures 3-7 to 3-10: a line for each number of dimensions."""
    shades = [0.15 + 0.75 * i / (len(series.dimensions) - 1) for i in range(len(series.dimensions))]
    for d, shade in zip(series.dimensions, shades, strict=True):
        left = [grid[SubsumptionCell(series.name, d, k, n)].merged for n in series.counts]
        panel.loglog(series.counts, left, "-", color=(0.1, 0.35, 1 - shade * 0.6, shade), label=f"{d}")
    panel.loglog(series.counts, series.counts, ":", color="0.5", linewidth=1)
    panel.set_title(f"{series.name}, {f'one to {k} attributes' if k > 1 else 'one attribute'}")
    panel.set(xlabel="subscriptions", ylabel="left")
    panel.legend(title="dimensions", fontsize=7, title_fontsize=7)


def _crowding(panel: Any, grid: Grid) -> None:
    """Draw all points with one attribute, by subscriptions per dimension."""
    for series, colour in zip(SERIES, ("tab:blue", "tab:orange"), strict=True):
        cells = [SubsumptionCell(series.name, d, 1, n) for d in series.dimensions for n in series.counts]
        crowding = [c.subscriptions / c.dimensions for c in cells]
        left = [grid[c].merged / c.subscriptions for c in cells]
        panel.semilogx(crowding, left, ".", color=colour, label=series.name)
    panel.set(xlabel="subscriptions for each dimension", ylabel="share that is left")
    panel.set_title("one attribute, all points")
    panel.legend()
