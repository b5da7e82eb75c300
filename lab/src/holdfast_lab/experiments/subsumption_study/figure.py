"""The pictures that the document lost."""

from __future__ import annotations

from typing import Any

from holdfast.network.motes.report.style import new_figure

from ..experiment import Drawing, Result
from .claim import Grid, SubsumptionCell
from .workload import SERIES, SubsumptionSeries


def figure(result: Result) -> Drawing:
    """What is left of growing numbers of subscriptions; and that it depends on how many share a dimension."""
    grid: Grid = result.exhibit
    zipf, uniform = SERIES
    drawing = new_figure(13, 8)
    *growing, last = drawing.subplots(2, 3).flat
    for panel, (series, k) in zip(
        growing, [*((zipf, k) for k in zipf.attributes), (uniform, 1)], strict=True
    ):
        _growth(panel, grid, series, k)
    _crowding(last, grid)
    return drawing


def _growth(panel: Any, grid: Grid, series: SubsumptionSeries, k: int) -> None:
    """Figures 3-7 to 3-10: one line for each number of dimensions."""
    shades = [0.15 + 0.75 * i / (len(series.dimensions) - 1) for i in range(len(series.dimensions))]
    for d, shade in zip(series.dimensions, shades, strict=True):
        left = [grid[SubsumptionCell(series.name, d, k, n)].merged for n in series.counts]
        panel.loglog(series.counts, left, "-", color=(0.1, 0.35, 1 - shade * 0.6, shade), label=f"{d}")
    panel.loglog(series.counts, series.counts, ":", color="0.5", linewidth=1)
    panel.set_title(f"{series.name}, {f'one to {k} attributes' if k > 1 else 'one attribute'}")
    panel.set_xlabel("subscriptions")
    panel.set_ylabel("left")
    panel.legend(title="dimensions", fontsize=7, title_fontsize=7)


def _crowding(panel: Any, grid: Grid) -> None:
    """All points with one attribute, by subscriptions for each dimension."""
    for series, colour in zip(SERIES, ("tab:blue", "tab:orange"), strict=True):
        cells = [SubsumptionCell(series.name, d, 1, n) for d in series.dimensions for n in series.counts]
        panel.semilogx(
            [c.subscriptions / c.dimensions for c in cells],
            [grid[c].merged / c.subscriptions for c in cells],
            ".",
            color=colour,
            label=series.name,
        )
    panel.set_title("one attribute, all points")
    panel.set_xlabel("subscriptions for each dimension")
    panel.set_ylabel("share that is left")
    panel.legend()
