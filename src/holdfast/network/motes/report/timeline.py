"""A timeline of the first run of each point, with its failures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ....model.instant import SECOND
from ..account import Row
from ..failure import Cut, Drift, Failure, Kill, Mend, Restart
from ..results import StudyResults
from .axis import title_of
from .style import COLOURS, INK, MOST, legend_above, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def _delivery_ratio(row: Row) -> float:
    return row["delivered"] / row["sent"] if row["sent"] else math.nan


_PANELS: tuple[tuple[str, Callable[[Row], float]], ...] = (
    ("delivered, of what was sent then", _delivery_ratio),
    ("transmissions in a second", lambda row: row["transmissions"] / row["seconds"]),
    ("power of all nodes (mW)", lambda row: row["power_mw"]),
    ("nodes alive", lambda row: row["alive"]),
)


def timeline(results: StudyResults) -> Figure:
    """Draw a panel for each measure, with a line for each point."""
    points = range(min(len(results.study.points), MOST))
    rows = {point: results.of(point)[0].timeline for point in points}
    constant = len({row["alive"] for point_rows in rows.values() for row in point_rows}) == 1
    shown = _PANELS[:-1] if constant else _PANELS
    figure = new_figure(9.0, 1.9 * len(shown) + 0.7)
    panels = figure.subplots(len(shown), 1, sharex=True)
    for panel, (title, measure) in zip(panels, shown, strict=True):
        for point in points:
            at = [row["time_s"] + row["seconds"] / 2 for row in rows[point]]
            look: dict[str, Any] = {"color": COLOURS[point % len(COLOURS)], "label": title_of(results, point)}
            panel.plot(at, [measure(row) for row in rows[point]], linewidth=1.3, **look)
        tidy(panel, title)
        panel.margins(y=0.08)
        panel.set_ylim(bottom=0, top=1.05 if measure is _delivery_ratio else None)
    _mark(panels, results)
    panels[-1].set_xlabel(f"seconds (the run with seed {results.study.seeds[0]})", fontsize=9, color=INK)
    if len(points) > 1:
        legend_above(figure, panels[0])
    return figure


def _mark(panels: Iterable[Axes], results: StudyResults) -> None:
    """Mark the warm-up and the times of failures."""
    scenario = results.study.points[0].case.scenario
    for i, panel in enumerate(panels):
        panel.set_xlim(0, scenario.duration / SECOND)
        if scenario.warm_up:
            panel.axvspan(0, scenario.warm_up / SECOND, color="#f0f0f0", zorder=0)
        for failure in scenario.failures:
            at = failure.at / SECOND
            panel.axvline(at, color=INK, linewidth=0.8, linestyle=":")
            if i == 0:
                place: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "xytext": (3, 2)}
                style: dict[str, Any] = {"textcoords": "offset points", "fontsize": 8, "color": INK}
                panel.annotate(describe(failure), (at, 1.0), **place, **style)


def describe(failure: Failure) -> str:
    """Describe a failure in a few words.

    >>> describe(Kill(at=0, nodes=(3, 4)))
    'kill 3, 4'
    """
    match failure:
        case Kill(nodes=nodes) | Restart(nodes=nodes) | Drift(nodes=nodes):
            words = [str(node) for node in nodes]
        case Cut(links=links) | Mend(links=links):
            words = [f"{a}–{b}" for a, b in links]
        case _:
            words = []
    more = ", …" if len(words) > 3 else ""
    return f"{failure.kind} {', '.join(words[:3])}{more}".strip()
