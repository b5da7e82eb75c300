"""The appearance of figures: colours, marks, and the format of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import UsageError
from ...sim.statistics import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Colours that colour-blind readers can distinguish (Okabe and Ito)."""
MARKS = "osD^vP"
INK = "#555555"

MOST = 6
"""The greatest number of points that a timeline or a page of maps shows."""


def new_figure(width: float, height: float) -> Figure:
    """Create an empty figure with a size in inches. Raise an error if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise UsageError("figures need matplotlib: pip install 'holdfast[figures]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def tidy(panel: Axes, title: str) -> None:
    """Set a panel's title, remove its box, and draw light grid lines."""
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(colors=INK, labelsize=9)
    panel.set_title(title, fontsize=10, loc="left")


def legend_above(figure: Figure, panel: Axes) -> None:
    """Add one legend above all panels of a figure, from the labels of one panel."""
    shown = panel.get_legend_handles_labels()
    figure.legend(*shown, loc="outside upper left", ncols=3, frameon=False, fontsize=9)


def format_estimate(estimate: Estimate | None) -> str:
    """Format an estimate with half of its confidence interval.

    >>> format_estimate(Estimate(0.98123, 0.0104, 5)), format_estimate(None)
    ('0.9812 ± 0.01', '–')
    """
    if estimate is None:
        return "–"
    half = "" if estimate.half is None else f" ± {format_number(estimate.half, 2)}"
    return format_number(estimate.mean, 4) + half


def format_number(number: float, digits: int) -> str:
    """Format a number with ``digits`` significant digits, but never fewer than its integer part has.

    >>> format_number(0.123456, 4), format_number(1234.5, 4), format_number(210.4, 2)
    ('0.1235', '1,234', '210')
    """
    return f"{number:,.0f}" if abs(number) >= min(1_000, 10**digits) else f"{number:.{digits}g}"
