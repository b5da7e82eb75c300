"""The figures of the document: both loads against the number of subscriptions, and recall."""

from __future__ import annotations

from typing import Any

from holdfast.network.motes.report.style import new_figure

from ..experiment import Drawing, Result
from .grid import FsfExhibit, Grid, Quantity, publication_load, recall, subscription_load
from .setting import AGAIN, CENTRALIZED, EXACT, FSF, MULTI_JOIN, NAIVE, NAMED, PLACEMENT

STYLES = {
    CENTRALIZED: ("tab:gray", "v", "-"),
    NAIVE: ("tab:red", "s", "-"),
    PLACEMENT: ("tab:orange", "^", "-"),
    MULTI_JOIN: ("tab:green", "D", "-"),
    NAMED: ("tab:green", "<", "--"),
    AGAIN: ("tab:green", ">", ":"),
    FSF: ("tab:blue", "o", "-"),
    EXACT: ("tab:purple", "x", "--"),
}
FIGURES = {
    "fsf-small": (4, 5),
    "fsf-medium": (6, 7),
    "fsf-large-network": (8, 9),
    "fsf-large-sources": (10, 11),
}
RECALLS = 12
LEAST = 0.9
"""The lower end of the axis of recall, unless a value is below it."""


def figure(result: Result) -> Drawing:
    """Draw subscription load, event load and recall; bars are the standard deviation over seeds."""
    exhibit: FsfExhibit = result.exhibit
    grid = exhibit.grid
    drawing = new_figure(14, 4.2)
    operators, events, recalls = drawing.subplots(1, 3)
    first, second = FIGURES[result.experiment]
    _lines(operators, grid, subscription_load, grid.approaches)
    operators.set_title(f"Figure {first}: operators over links")
    _lines(events, grid, publication_load, grid.approaches)
    events.set_title(f"Figure {second}: events over links")
    _lines(recalls, grid, recall, [FSF, EXACT])
    recalls.set_title(f"Figure {RECALLS}: recall")
    recalls.set_ylim(min(LEAST, *(grid.mean(recall, FSF, n) for n in grid.counts)), 1.005)
    operators.legend(fontsize=8)
    for panel in (operators, events):
        panel.set_ylim(bottom=0)
        panel.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    return drawing


def _lines(panel: Any, grid: Grid, quantity: Quantity, approaches: list[str]) -> None:
    for approach in approaches:
        colour, marker, dashes = STYLES[approach]
        means = [grid.mean(quantity, approach, n) for n in grid.counts]
        spreads = [grid.spread(quantity, approach, n) for n in grid.counts]
        style = {"color": colour, "marker": marker, "linestyle": dashes, "markersize": 4, "capsize": 2}
        panel.errorbar(grid.counts, means, spreads, label=approach, **style)
    panel.set_xlabel("subscriptions")
