"""Figures for notebooks and files: conditions over time, readings with thresholds, regions, networks.

Use ``import holdfast as hf``, then ``hf.plot.timeline(hf.replay(app, path))``. A notebook shows the result,
and ``save`` writes it to a file. This module needs ``holdfast[figures]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .definition.check import check
from .definition.parse import as_app
from .definition.tune import tunable
from .errors import UsageError, did_you_mean
from .files.interval import Interval, Pairing
from .files.reading import parse_zone
from .files.tally import Tally
from .lang.expressions.key_text import readable_key
from .model.event import Notification
from .model.instant import DAY, Instant
from .model.space import Circle, Gazetteer, Shape, dimensions, geometry
from .network.motes.report.style import COLOURS, INK, new_figure, tidy
from .runtimes.local.advise import history
from .runtimes.local.replay import replay

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .definition.app import App
    from .definition.tune import Threshold
    from .network.motes.results import StudyResults

ROWS = 40
"""The default number of rows of a timeline."""
HOLDS, UNKNOWN, OFF = COLOURS[1], "#bbbbbb", "#f4f4f4"


@dataclass(frozen=True, eq=False)
class Picture:
    """A matplotlib figure that a notebook shows."""

    figure: Figure

    def save(self, path: str | Path) -> None:
        """Write the picture. The suffix selects the format (``.png``, ``.svg``, ``.pdf``)."""
        self.figure.savefig(path, dpi=110)

    def _repr_png_(self) -> bytes:
        raw = BytesIO()
        self.figure.savefig(raw, format="png", dpi=100)
        return raw.getvalue()


# --- conditions over time ---


def timeline(told: Iterable[Notification | Interval], *, zone: str = "UTC", rows: int = ROWS) -> Picture:
    """Draw when conditions were active: a row for each subscription and scope, by name.

    ``told`` is a replay, its notifications, or its intervals. Active conditions extend to the right edge;
    grey marks conditions that are unknown at the end.
    """
    found = _intervals(told)
    names = sorted({(one.subscription, one.scope or "") for one in found})
    if not names:
        raise UsageError("there is nothing to draw: no condition held")
    drawn = names[:rows]
    end = max(max(one.start, one.end or one.start) for one in found)
    figure = new_figure(9, 0.9 + 0.24 * len(drawn))
    panel: Axes = figure.subplots()
    for at, name in enumerate(drawn):
        mine = [one for one in found if (one.subscription, one.scope or "") == name]
        for known, colour in ((True, HOLDS), (False, UNKNOWN)):
            some = [one for one in mine if one.known == known]
            bars = [bar(one.start, end if one.end is None else one.end) for one in some]
            panel.broken_barh(bars, (at - 0.35, 0.7), facecolors=colour)
    panel.set_yticks(range(len(drawn)), [" ".join(filter(None, name)) for name in drawn])
    panel.set_ylim(len(drawn) - 0.5, -0.5)
    panel.xaxis_date(tz=parse_zone(zone))
    more = f"; {len(names) - len(drawn):,} more are not shown" if len(drawn) < len(names) else ""
    tidy(panel, f"{len(found):,} stretches of {len(names):,} conditions{more}")
    return Picture(figure)


def _intervals(told: Iterable[Any]) -> list[Interval]:
    found = list(told)
    if all(isinstance(one, Interval) for one in found):
        return found
    if not all(isinstance(one, Notification) for one in found):
        raise UsageError("a timeline is drawn of a replay, of notifications, or of intervals")
    pairing = Pairing()
    return [*pairing.pair(found), *pairing.still_open()]


# --- readings with their bands ---


def bands(
    app: App | str,
    subscription: str,
    *inputs: Any,
    scope: str | None = None,
    zone: str = "UTC",
    **options: Any,
) -> Picture:
    """Draw the readings of a state in one scope, its thresholds, and when it was active.

    ``inputs`` and ``options`` are those of ``holdfast.replay``.
    """
    result = replay(app, *inputs, zone=zone, **options)
    found = tunable(check(as_app(app), lets=options.get("lets"), tables=options.get("tables")), subscription)
    threshold = found.enter or found.exit
    assert threshold is not None  # one at least
    rows = history(found, result.files, result.reading, Tally()).rows
    names = [readable_key(key) for key in rows.keys.all().to_pylist()]
    at = _scope_index(names, scope, subscription)
    part = slice(int(rows.ends[at]), int(rows.ends[at + 1]))
    values = (rows.enter if found.enter else rows.exit)[part] * (1 if threshold.rises else -1)
    figure = new_figure(9, 3.2)
    panel: Axes = figure.subplots()
    panel.plot(rows.times[part] / DAY, values, color=COLOURS[0], linewidth=1)
    _level(panel, "entrance", found.enter, "-")
    _level(panel, "exit", found.exit, "--")
    last = int(rows.times[part][-1])
    for one in result.intervals():
        if (one.subscription, one.scope or "") == (subscription, names[at]):
            start, length = bar(one.start, last if one.end is None else one.end)
            panel.axvspan(start, start + length, color=HOLDS, alpha=0.18, linewidth=0)
    panel.xaxis_date(tz=parse_zone(zone))
    tidy(panel, " ".join(filter(None, (subscription, names[at]))))
    panel.legend(frameon=False, fontsize=8, loc="upper right")
    return Picture(figure)


def _scope_index(names: Sequence[str], scope: str | None, subscription: str) -> int:
    if scope is not None and scope in names:
        return list(names).index(scope)
    if scope is None and len(names) == 1:
        return 0
    hint = did_you_mean(scope or "", names) or f"There is {', '.join(map(repr, sorted(names)[:5]))}."
    problem = "has several scopes: say which" if scope is None else f"has no scope '{scope}'"
    raise UsageError(f"'{subscription}' {problem}. {hint}")


def _level(panel: Axes, name: str, threshold: Threshold | None, dashes: str) -> None:
    if threshold is not None:
        label = f"{name}: {threshold.sign} {threshold.value:g}"
        panel.axhline(threshold.value, color=INK, linestyle=dashes, linewidth=1, label=label)


# --- regions ---


def _places(scope: str) -> list[str]:
    """Return the names of the regions in a scope, and the scope itself.

    Names with a comma are quoted in a scope.

    >>> _places('hall,"lab, north"')
    ['hall,"lab, north"', 'hall', 'lab, north']
    """
    parts = re.findall(r'"(?:\\.|[^"\\])*"|[^,]+', scope)
    return [scope, *(one[1:-1].replace('\\"', '"') if one[0] == '"' else one for one in parts)]


def regions(gazetteer: Gazetteer, holding: Iterable[Any] = (), *, subscription: str | None = None) -> Picture:
    """Draw the regions of a gazetteer, in colour where a condition is active.

    ``holding`` is the result of an engine's ``holding()`` or a replay's ``intervals()``; only open intervals
    count. ``subscription`` restricts it to one subscription.
    """
    drawn = [one for one in gazetteer.regions if one.shape is not None and dimensions(one.shape) >= 2]
    if not drawn:
        raise UsageError("no region has a shape in the plane: there is nothing to draw")
    state: dict[str, str] = {}
    for one in holding:
        if one.scope is None or getattr(one, "end", None) is not None:
            continue
        if subscription is None or one.subscription == subscription:
            state.update(dict.fromkeys(_places(str(one.scope)), HOLDS if one.known else UNKNOWN))
    figure = new_figure(6, 5)
    panel: Axes = figure.subplots()
    outlines = {one.name: _outline(one.shape) for one in drawn if one.shape is not None}
    for name, outline in sorted(outlines.items(), key=lambda one: -one[1].area):  # the inner over the outer
        colour, middle = state.get(name, OFF), outline.representative_point()
        panel.fill(*outline.exterior.xy, facecolor=colour, edgecolor=INK, alpha=0.8, linewidth=1)
        panel.annotate(name, (middle.x, middle.y), ha="center", va="center", fontsize=8, color=INK)
    panel.set_aspect("equal")
    tidy(panel, subscription or "what holds")
    return Picture(figure)


def _outline(shape: Shape) -> Any:
    """Return a shape as a shapely geometry. A circle becomes a polygon with many corners."""
    import shapely

    if isinstance(shape, Circle):
        return shapely.Point(shape.centre[:2]).buffer(shape.radius)
    return geometry(shape)


# --- networks ---


def network(results: StudyResults) -> Picture:
    """Draw a map of a simulated network: the energy of each node relative to the busiest one."""
    from .network.motes.report.maps import maps

    return Picture(maps(results))


# --- times, as matplotlib counts them ---


def _days(at: Instant) -> float:
    return at / DAY


def bar(start: Instant, end: Instant) -> tuple[float, float]:
    """Return the left edge and the width of a bar in days, as matplotlib counts them."""
    return _days(start), _days(max(0, end - start))
