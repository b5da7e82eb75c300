"""Curves of a sweep: each measure over the swept parameter, with 95 % intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from ...sim.statistics import Estimate
from ..results import StudyResults
from .axis import SweepAxis, axes
from .style import COLOURS, INK, MARKS, legend_above, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MEASURES: Mapping[str, str] = {
    "received_ratio": "received, of what was for subscribers",
    "received_delay_ms": "delay to subscribers (ms)",
    "delivery_ratio": "delivered, of what was sent",
    "delay_ms": "delay (ms)",
    "energy_per_delivery_mj": "energy per delivery (mJ)",
    "transmissions_per_delivery": "transmissions per delivery",
    "lifetime_s": "until the first battery is empty (s)",
}
"""The measures that curves show if they were measured, with their titles."""


def curves(results: StudyResults) -> Figure:
    """Draw a panel for each measure, with a curve for each setting of the parameters that are not on the
    axis.
    """
    summaries = [results.summary(i) for i in range(len(results.study.points))]
    known = [name for name in MEASURES if any(name in summary for summary in summaries)]
    network = ("delivery_ratio", "delay_ms") if "received_ratio" in known else ()
    shown = [name for name in known if name not in network] or ["transmissions"]
    columns = min(2, len(shown))
    rows = math.ceil(len(shown) / columns)
    figure = new_figure(5.2 * columns, 3.1 * rows + 0.6)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    axis, groups = axes(results)
    for panel, name in zip_longest(panels, shown):
        if name is None:
            panel.set_visible(False)
            continue
        for i, (title, points) in enumerate(groups.items()):
            found = [(axis.at[p], summaries[p][name]) for p in points if name in summaries[p]]
            _curve(panel, axis, i, len(groups), title, found)
        tidy(panel, MEASURES.get(name, name))
        panel.set_xticks(list(dict.fromkeys(axis.at)), list(dict.fromkeys(axis.ticks)))
        panel.set_xlabel(axis.name, fontsize=9, color=INK)
        panel.margins(x=0.05 if axis.ordered else 0.15)
        panel.set_ylim(bottom=0, top=1.05 if name == "delivery_ratio" else None)
    if len(groups) > 1:
        legend_above(figure, panels[0])
    return figure


def _curve(
    panel: Axes, axis: SweepAxis, i: int, of: int, title: str, found: Sequence[tuple[float, Estimate]]
) -> None:
    """Draw a curve, shifted slightly so that the intervals of several curves do not cover each other."""
    apart = (max(axis.at) - min(axis.at) or 1.0) * 0.012 * (i - (of - 1) / 2)
    at, means = [at + apart for at, _ in found], [estimate.mean for _, estimate in found]
    halves = [estimate.half or 0.0 for _, estimate in found]
    look: dict[str, Any] = {"color": COLOURS[i % len(COLOURS)], "marker": MARKS[i % len(MARKS)]}
    look |= {"linestyle": "-" if axis.ordered else "none", "linewidth": 1.4, "elinewidth": 1.0}
    panel.errorbar(at, means, yerr=halves, markersize=5, capsize=3, label=title, **look)
