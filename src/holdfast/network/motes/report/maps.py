"""Maps of the nodes: each node's share of the largest energy consumption, in steps of 5 %. [D65]"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from ...sim.metrics import STEPS
from ..account import Row
from ..case import plan_run
from ..results import StudyResults
from .axis import title_of
from .style import INK, MOST, format_number, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMED = 64
"""The greatest number of nodes for which a map shows names."""


def maps(results: StudyResults) -> Figure:
    """Draw a map for the first run of each point, up to `MOST` points."""
    points = range(min(len(results.study.points), MOST))
    columns = min(3, len(points))
    side = 6.2 if columns == 1 else 4.2
    lines = math.ceil(len(points) / columns)
    figure = new_figure(side * columns + 0.9, lines * _height(results.of(0)[0].nodes, side))
    panels = figure.subplots(lines, columns, squeeze=False).ravel()
    colours = _colours()
    for panel, point in zip_longest(panels, points):
        if point is None:
            panel.set_visible(False)
        else:
            _map(panel, results, point, colours, side)
    bar = figure.colorbar(colours, ax=panels.tolist(), shrink=0.75, pad=0.02)
    bar.set_ticks([i / 10 for i in range(11)], labels=[f"{10 * i} %" for i in range(11)])
    bar.minorticks_off()
    bar.set_label("energy used, of what the busiest node used", fontsize=9, color=INK)
    bar.ax.tick_params(labelsize=8, colors=INK)
    return figure


def _colours() -> Any:
    """Return the colours, one for each step of 5 %."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm

    bounds = [(i - 0.5) / STEPS for i in range(STEPS + 2)]
    return ScalarMappable(BoundaryNorm(bounds, 256), colormaps["viridis_r"])


def _map(panel: Axes, results: StudyResults, point: int, colours: Any, side: float) -> None:
    """Draw the map of a point's first run into a panel."""
    rows = results.of(point)[0].nodes
    across, up = _widest(rows)
    _nodes(panel, rows, across, up, colours, _senders(results, point), side)
    if len(rows) <= _NAMED:
        style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7 if side > 5 else 5.5}
        for row in rows:
            color = "white" if row["relative"] > 0.45 else "black"
            panel.annotate(row["node"], (row[across], row[up]), color=color, **style)
    panel.set_aspect("equal" if _comparable(rows, across, up) else "auto")
    panel.margins(0.1)
    panel.spines[:].set_visible(False)
    panel.tick_params(labelsize=8, colors=INK)
    panel.set_xlabel(f"{across} (m)", fontsize=8, color=INK)
    panel.set_ylabel(f"{up} (m)", fontsize=8, color=INK)
    title = f"{title_of(results, point)}: " if results.study.parameters else ""
    most = max(row["radio_mj"] + row["mcu_mj"] for row in rows)
    panel.set_title(f"{title}100 % = {format_number(most, 4)} mJ", fontsize=9, loc="left", pad=20)


def _nodes(
    panel: Axes, rows: Sequence[Row], across: str, up: str, colours: Any, senders: set[str], side: float
) -> None:
    """Draw each node with a mark for its role. Senders are marked only if they are a minority."""
    marks = {"node": "o", "sends": "^", "receives": "s", "down": "X"}
    by_role: dict[str, list[Row]] = {role: [] for role in marks}
    for row in rows:
        sends = row["node"] in senders and 2 * len(senders) < len(rows)
        role = "receives" if row["received"] else "sends" if sends else "node"
        by_role[role if row["alive"] else "down"].append(row)
    for role, mark in marks.items():
        if role_rows := by_role[role]:
            panel.scatter(
                [row[across] for row in role_rows],
                [row[up] for row in role_rows],
                s=min(420.0, 9000.0 * (side / 6.0) ** 2 / len(rows)),
                c=[row["relative"] for row in role_rows],
                cmap=colours.cmap,
                norm=colours.norm,
                marker=mark,
                edgecolors="#b00020" if role == "down" else "#333333",
                linewidths=1.6 if mark in "sX" else 0.6,
                label=role,
            )
    style: dict[str, Any] = {"frameon": False, "fontsize": 8, "handletextpad": 0.2, "borderpad": 0}
    legend = panel.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, **style)
    for handle in legend.legend_handles:
        handle.set_sizes([45])  # type: ignore[union-attr]


def _senders(results: StudyResults, point: int) -> set[str]:
    case, seed = results.study.points[point].case, results.study.seeds[0]
    plan = plan_run(case, seed)
    senders = {sending.source for sending in plan.streams}.union(*(source.nodes for source in plan.sources))
    return {plan.topology.names[node] for node in senders}


def _widest(rows: Sequence[Row]) -> tuple[str, str]:
    """Return the two axes along which the nodes extend farthest, in the order horizontal, vertical."""
    widest = sorted(("x", "y", "z"), key=lambda axis: -_extent(rows, axis))[:2]
    across, up = sorted(widest)
    return across, up


def _extent(rows: Sequence[Row], axis: str) -> float:
    return float(max(row[axis] for row in rows) - min(row[axis] for row in rows))


def _height(rows: Sequence[Row], side: float) -> float:
    """Return the height of a map of width ``side``, including its titles."""
    across, up = _widest(rows)
    shape = _extent(rows, up) / (_extent(rows, across) or 1.0) if _comparable(rows, across, up) else 1.0
    return side * 0.85 * min(max(shape, 0.4), 1.5) + 1.3


def _comparable(rows: Sequence[Row], across: str, up: str) -> bool:
    """Return whether both axes can have the same scale while both stay readable."""
    shorter, longer = sorted((_extent(rows, across), _extent(rows, up)))
    return shorter * 4 >= longer
