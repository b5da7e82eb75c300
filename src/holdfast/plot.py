"""Pictures for notebooks and files: conditions over time, readings with their bands, regions, networks.

``import holdfast as hf``, then ``hf.plot.timeline(hf.replay(app, path))``: a notebook shows what comes back,
and ``save`` writes it.  It needs ``holdfast[figures]``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .compilers.keys import shown
from .errors import UsageError, did_you_mean
from .files.interval import Interval, Pairing
from .files.reading import parse_zone
from .files.tally import Tally
from .lang.check import check
from .lang.parse import as_app
from .lang.tune import tunable
from .model.event import Notification
from .model.instant import DAY, Instant
from .model.space import Circle, Gazetteer, Shape, dimensions, geometry
from .runtimes.local.advise import history
from .runtimes.local.replay import replay
from .runtimes.sensornet.report.style import COLOURS, INK, new_figure, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .lang.app import App
    from .lang.tune import Threshold
    from .runtimes.sensornet.results import Results

ROWS = 40
"""So many rows a timeline shows unless told otherwise."""
HOLDS, UNKNOWN, OFF = COLOURS[1], "#bbbbbb", "#f4f4f4"


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure of matplotlib's that a notebook shows."""

    figure: Figure

    def save(self, path: str | Path) -> None:
        """Write it; the suffix says how (``.png``, ``.svg``, ``.pdf``)."""
        self.figure.savefig(path, dpi=110)

    def _repr_png_(self) -> bytes:
        raw = BytesIO()
        self.figure.savefig(raw, format="png", dpi=100)
        return raw.getvalue()


# --- conditions over time ---


def timeline(told: Iterable[Notification | Interval], *, zone: str = "UTC", rows: int = ROWS) -> Picture:
    """When conditions held: a row for each subscription and scope, by name.

    ``told`` is a replay, its notifications, or its intervals.  What still holds goes on to the right edge;
    grey is what was not known at the end.
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
    return [*pairing.completed(found), *pairing.still_open()]


# --- readings with their bands ---


def bands(
    app: App | str,
    subscription: str,
    *inputs: Any,
    scope: str | None = None,
    zone: str = "UTC",
    **options: Any,
) -> Picture:
    """The readings of a state in one scope, its entrance and its exit, and when it held.

    ``inputs`` and ``options`` are those of ``holdfast.replay``.
    """
    told = replay(app, *inputs, zone=zone, **options)
    found = tunable(check(as_app(app), lets=options.get("lets"), tables=options.get("tables")), subscription)
    threshold = found.enter or found.exit
    assert threshold is not None  # one at least
    rows = history(found, told.files, told.reading, Tally()).rows
    names = [shown(key) for key in rows.keys.all().to_pylist()]
    at = _chosen(names, scope, subscription)
    part = slice(int(rows.ends[at]), int(rows.ends[at + 1]))
    values = (rows.enter if found.enter else rows.exit)[part] * (1 if threshold.rises else -1)
    figure = new_figure(9, 3.2)
    panel: Axes = figure.subplots()
    panel.plot(rows.times[part] / DAY, values, color=COLOURS[0], linewidth=1)
    _level(panel, "entrance", found.enter, "-")
    _level(panel, "exit", found.exit, "--")
    last = int(rows.times[part][-1])
    for one in told.intervals():
        if (one.subscription, one.scope or "") == (subscription, names[at]):
            start, length = bar(one.start, last if one.end is None else one.end)
            panel.axvspan(start, start + length, color=HOLDS, alpha=0.18, linewidth=0)
    panel.xaxis_date(tz=parse_zone(zone))
    tidy(panel, " ".join(filter(None, (subscription, names[at]))))
    panel.legend(frameon=False, fontsize=8, loc="upper right")
    return Picture(figure)


def _chosen(names: Sequence[str], scope: str | None, subscription: str) -> int:
    if scope is not None and scope in names:
        return list(names).index(scope)
    if scope is None and len(names) == 1:
        return 0
    hint = did_you_mean(scope or "", names) or f"There is {', '.join(map(repr, sorted(names)[:5]))}."
    said = "has several scopes: say which" if scope is None else f"has no scope '{scope}'"
    raise UsageError(f"'{subscription}' {said}. {hint}")


def _level(panel: Axes, name: str, threshold: Threshold | None, dashes: str) -> None:
    if threshold is not None:
        label = f"{name}: {threshold.sign} {threshold.value:g}"
        panel.axhline(threshold.value, color=INK, linestyle=dashes, linewidth=1, label=label)


# --- regions ---


def _places(scope: str) -> list[str]:
    """The regions of a scope: it is one, or several that meet, of which those with a comma stand in quotes.

    >>> _places('hall,"lab, north"')
    ['hall,"lab, north"', 'hall', 'lab, north']
    """
    parts = re.findall(r'"(?:\\.|[^"\\])*"|[^,]+', scope)
    return [scope, *(one[1:-1].replace('\\"', '"') if one[0] == '"' else one for one in parts)]


def regions(gazetteer: Gazetteer, holding: Iterable[Any] = (), *, subscription: str | None = None) -> Picture:
    """The regions of a gazetteer, those in colour in which a condition holds.

    ``holding`` is what an engine's ``holding()`` or a replay's ``intervals()`` says: the open ones count, and
    those of one subscription if it is named.
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
    """The shape as shapely has it, a circle with many corners."""
    import shapely

    if isinstance(shape, Circle):
        return shapely.Point(shape.centre[:2]).buffer(shape.radius)
    return geometry(shape)


# --- networks ---


def network(results: Results) -> Picture:
    """A map of a simulated network: what each node used, of what the busiest one used."""
    from .runtimes.sensornet.report.maps import maps

    return Picture(maps(results))


# --- times, as matplotlib counts them ---


def _days(at: Instant) -> float:
    return at / DAY


def bar(start: Instant, end: Instant) -> tuple[float, float]:
    """Where a bar begins, and how long it is."""
    return _days(start), _days(max(0, end - start))
