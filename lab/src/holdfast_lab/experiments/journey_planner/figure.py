"""The figure: a map of congestion, and the readings and conditions of one road."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdfast.model.instant import HOUR, Instant
from holdfast.network.motes.report.style import new_figure

from ..experiment import Drawing, Result
from .central import Notice
from .definition import CONGESTION, HIGH, NEAR, SLOW, Limits
from .roads import FIRST_HOUR
from .scene import JourneyScene


@dataclass(frozen=True)
class JourneyExhibit:
    """Data of the figure: the notifications of both days, and the thresholds."""

    days: Sequence[tuple[JourneyScene, Sequence[Notice]]]
    limits: Limits


def figure(result: Result) -> Drawing:
    """Draw the map of the day with most reports, and details of the road with most reports."""
    exhibit: JourneyExhibit = result.exhibit
    scene, notifications = max(exhibit.days, key=lambda one: sum(s.component == NEAR for s in one[1]))
    drawing = new_figure(12, 6.5)
    grid = drawing.add_gridspec(3, 2, width_ratios=(5, 6), height_ratios=(3, 3, 2))
    _map(drawing.add_subplot(grid[:, 0]), scene, notifications)
    upper = drawing.add_subplot(grid[0, 1])
    panels = [upper, *(drawing.add_subplot(grid[i, 1], sharex=upper) for i in (1, 2))]
    _day(panels, exhibit.limits, scene, notifications)
    return drawing


def _map(axes: Any, scene: JourneyScene, notifications: Sequence[Notice]) -> None:
    """Draw all roads; watched roads and congested roads have colours."""
    reports = Counter(_road(one) for one in notifications if one.component == NEAR)
    map = scene.map
    for index, road in enumerate(map.roads):
        (x1, y1), (x2, y2) = map.degrees[road.start], map.degrees[road.end]
        reported, watched = reports[road.name], index in scene.roads
        color = "tab:red" if reported else "tab:blue" if watched else "0.8"
        axes.plot(
            [x1, x2], [y1, y2], color=color, linewidth=3 if reported else 1.6 if watched else 0.7,
            zorder=2 + watched + bool(reported), solid_capstyle="round",
        )  # fmt: skip
    axes.set_aspect(1 / np.cos(np.radians(np.mean([y for _, y in map.degrees]))))
    west, south = np.quantile(map.degrees, 0.02, axis=0) - 0.01
    east, north = np.quantile(map.degrees, 0.98, axis=0) + 0.01
    axes.set(xlim=(west, east), ylim=(south, north), xticks=[], yticks=[])
    title = f"{scene.day:%A %Y-%m-%d}: {len(scene.roads)} roads are watched (blue)"
    congested = f"{len(reports)} were congested (red): {reports.total()} reports to {len(scene.users)} users"
    axes.set_title(f"{title},\n{congested}", fontsize=10)


def _day(panels: Sequence[Any], limits: Limits, scene: JourneyScene, notifications: Sequence[Notice]) -> None:
    """Draw the readings of the road with most reports, and when each condition was active."""
    reports = Counter(_road(one) for one in notifications if one.component == NEAR)
    if not reports:
        panels[0].set_title("no congestion", fontsize=10)
        return
    name = min(reports, key=lambda road: (-reports[road], road))
    index = next(i for i, road in enumerate(scene.map.roads) if road.name == name)
    mine = scene.traffic.roads == index
    start = int(scene.times[0])
    hours = FIRST_HOUR + (scene.traffic.times[mine] - start) / HOUR
    driven = scene.traffic.vehicles[mine] > 0
    loop, pace, held = panels
    loop.plot(hours, scene.densities[mine], color="0.3", linewidth=0.9)
    loop.axhline(limits.busy, color="tab:red", linewidth=0.8)
    loop.set_ylabel("vehicles / km")
    loop.set_title(f"road {name}: loop, speed, and the conditions that held", fontsize=10)
    pace.plot(hours[driven], scene.paces[mine][driven], color="0.3", linewidth=0.9)
    for limit in (limits.slow, limits.fast):
        pace.axhline(limit, color="tab:red", linewidth=0.8)
    pace.set(ylabel="% of normal speed", ylim=(0, 150))
    colors = {HIGH: "tab:orange", SLOW: "tab:purple", CONGESTION: "tab:red"}
    for row, (component, color) in enumerate(colors.items()):
        for begin, end in _spans(notifications, component, name, scene.last):
            left, right = (FIRST_HOUR + (at - start) / HOUR for at in (begin, end))
            held.barh(row, right - left, left=left, height=0.5, color=color)
    reported = Counter(n.time for n in notifications if n.component == NEAR and _road(n) == name)
    for at, count in sorted(reported.items()):
        hour = FIRST_HOUR + (at - start) / HOUR
        held.annotate(f"{count} told", (hour, 2.45), fontsize=6, rotation=60, ha="left", va="bottom")
    held.set_ylim(-0.5, 4.2)
    held.set_yticks(range(3), list(colors), fontsize=8)
    held.set_xticks(range(0, 24, 3))
    held.set_xlabel("hour of the day; above: how many users were told")


def _road(notifications: Notice) -> str:
    return (notifications.scope or "").rpartition(",")[2]


def _spans(
    notifications: Sequence[Notice], component: str, scope: str, last: Instant
) -> list[tuple[Instant, Instant]]:
    """Return the active intervals of a condition."""
    mine = [s for s in notifications if s.component == component and s.scope == scope]
    starts = [s.time for s in mine if s.status == "ingress"]
    ends = [s.time for s in mine if s.status == "egress"]
    return list(zip(starts, [*ends, last], strict=False))
