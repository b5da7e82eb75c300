"""Conversion of the service's data to JSON answers and to Prometheus metrics.

All functions are pure, so they can be tested without a running service.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import DefinitionError, HoldfastError
from ...files.interval import Interval
from ...lang.condition import Checked
from ...model.instant import NEVER, show_instant
from ...model.space import Circle, Polygon, Rectangle, Region, Shape
from ...model.topic import Topic
from ...plan.compile import operators
from ...runtimes.local.engine import Holding
from ..chart import plottable
from ..core import DefinitionChange
from ..store import Mark, NotificationRow
from .lines import threshold_lines


def notification(one: NotificationRow) -> dict[str, Any]:
    """Return a notification as JSON data, with its position in the store."""
    return {"position": one.position, **json.loads(one.line)}


def conditions(
    holding: Iterable[Holding],
    unknown_scopes: Iterable[NotificationRow],
    marks: Sequence[Mark],
    storms: Iterable[NotificationRow] = (),
) -> list[dict[str, Any]]:
    """Return active and unknown scopes as JSON data, with their acknowledgements and mutes.

    A storm of a fold also has its number of members and its outline.
    """
    folded = {(one.subscription, one.scope): _storm(one) for one in storms}
    values = {(mark.kind, mark.subscription, mark.scope): mark for mark in marks}
    doubts = {(one.subscription, one.scope): one.time for one in unknown_scopes}
    active = {one[:2]: one for one in holding}
    return [
        {
            "subscription": name,
            "scope": scope,
            "since": None if one is None else show_instant(one.since),
            "level": None if one is None else one.level,
            "unknown": None if (doubt := doubts.get((name, scope))) is None else show_instant(doubt),
            "acknowledged": _mark(values.get(("acknowledge", name, scope))),
            "muted": _mark(values.get(("mute", name, scope)) or values.get(("mute", name, None))),
            **folded.get((name, scope), {}),
        }
        for (name, scope), one in (active | {key: active.get(key) for key in doubts}).items()
    ]


def _storm(one: NotificationRow) -> dict[str, Any]:
    """Return the number of members of a storm and the corners of the polygon around them.

    The result is empty if the storm has no outline.
    """
    values = json.loads(one.line)["attributes"]
    if values.get("outline") is None:
        return {}
    corners = values["outline"].removeprefix("POLYGON ((").removesuffix("))").split(", ")
    polygon = [[float(number) for number in corner.split()] for corner in corners[:-1]]
    return {"members": values["members"], "outline": polygon}


def _mark(mark: Mark | None) -> dict[str, Any] | None:
    if mark is None:
        return None
    return {
        "who": mark.who,
        "at": show_instant(mark.at),
        "until": None if mark.until == NEVER else show_instant(mark.until),
        "note": mark.note,
    }


def change(it: DefinitionChange) -> dict[str, Any]:
    """Return the effects of a changed definition as JSON data."""
    return {
        "added": it.added,
        "removed": it.removed,
        "changed": it.changed,
        "afresh": it.incompatible,
        "holding": [
            {"subscription": one.subscription, "scope": one.scope, "since": show_instant(one.since)}
            for one in it.holding
        ],
    }


def definition(it: Checked) -> dict[str, Any]:
    """Return the topics, subscriptions and warnings of a definition as JSON data."""
    topics = {name: on for operator in operators(it) for name, on in operator.topics_by_name().items()}
    return {
        "topics": [_topic(topic) for topic in it.topics],
        "subscriptions": [
            {
                "name": one.name,
                "kind": one.api_kind,
                "topics": list(topics.get(one.name, ())),
                "lines": [line._asdict() for line in threshold_lines(one)],
            }
            for one in it.conditions
        ],
        "warnings": [{"message": w.message, **_place(w.place)} for w in it.warnings],
    }


def _topic(topic: Topic) -> dict[str, Any]:
    attributes = [{"name": a.name, "kind": a.kind, "unit": a.unit} for a in topic.attributes]
    return {"name": topic.name, "attributes": attributes, "plottable": plottable(topic)}


def fault(error: HoldfastError) -> dict[str, Any]:
    """Return an error as JSON data, with its place in the definition if it has one."""
    if isinstance(error, DefinitionError):
        return {"message": error.message, "hint": error.hint, **_place(error.place)}
    return {"message": str(error), "hint": None, **_place(None)}


def _place(place: Any) -> dict[str, int | None]:
    if place is None:
        return {"line": None, "column": None, "width": None}
    return {"line": place.line, "column": place.column, "width": place.width}


def interval(one: Holding) -> Interval:
    """Return an active scope as an interval without an end."""
    return Interval(one.subscription, one.scope, one.since, None, "", None, None, one.known)


def region(one: Region) -> dict[str, Any]:
    """Return a region as JSON data. Its outline is null unless it has a shape in the plane."""
    return {"name": one.name, "parent": one.parent, "level": one.level, "outline": _outline(one.shape)}


def _outline(shape: Shape | None) -> dict[str, Any] | None:
    match shape:
        case Polygon(corners):
            return {"polygon": corners}
        case Rectangle((left, low, *_), (right, high, *_)):
            return {"polygon": [(left, low), (right, low), (right, high), (left, high)]}
        case Circle((x, y, *_), radius):
            return {"circle": [x, y, radius]}
    return None


def part_troubles(feeds: Iterable[Mapping[str, Any]], sinks: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the problems of feeds and sinks by name.

    A problem is a feed that delivers no readings, or a task that was restarted.
    """
    found = {}
    for kind, parts in (("feed", feeds), ("sink", sinks)):
        for one in parts:
            name = f"{kind} {one['name']}"
            if one["ended"] is not None:
                found[name] = f"{name} ended and is started again: {one['ended']}"
            elif kind == "feed" and not one["connected"]:
                found[name] = f"{name} is not connected: {one['trouble'] or 'not yet'}"
            elif kind == "feed" and one["trouble"]:
                found[name] = f"{name}: {one['trouble']}"
    return found


def metrics(values: Mapping[str, tuple[str, Mapping[str, float]]]) -> str:
    """Format metrics in the text format of Prometheus.

    ``values`` maps each metric's name to its type and its values by label. The empty label stands for no
    label.
    """
    lines = []
    for name, (kind, numbers) in values.items():
        lines.append(f"# TYPE {name} {kind}")
        for label, value in numbers.items():
            lines.append(f"{name}{{{label}}} {value:g}" if label else f"{name} {value:g}")
    return "\n".join(lines) + "\n"


def label(name: str, value: str) -> str:
    """Return a label of a metric. Quotes and line ends in the value are escaped."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{name}="{escaped}"'
