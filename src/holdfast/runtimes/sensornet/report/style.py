"""How all figures look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
"""Colours that everybody can tell apart (Okabe and Ito)."""
MARKS = "osD^vP"
INK = "#555555"

MOST = 6
"""How many points a timeline or a page of maps shows."""


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise UsageError("figures need matplotlib: pip install 'holdfast[figures]'") from error
    return Figure(figsize=(width, height), layout="constrained")


def tidy(panel: Axes, title: str) -> None:
    """A panel with its title, quiet lines and no box."""
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(axis="y", color="#e6e6e6", linewidth=0.8)
    panel.set_axisbelow(True)
    panel.tick_params(colors=INK, labelsize=9)
    panel.set_title(title, fontsize=10, loc="left")


def legend_above(figure: Figure, panel: Axes) -> None:
    """One legend for all panels."""
    figure.legend(
        *panel.get_legend_handles_labels(), loc="outside upper left", ncols=3, frameon=False, fontsize=9
    )
