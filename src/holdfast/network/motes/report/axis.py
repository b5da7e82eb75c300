"""The axis of a sweep's figure: which parameter it shows, and where the points lie on it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..results import StudyResults
from ..study import label

_NUMBER = re.compile(r"\s*([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(\S*)\s*")


@dataclass(frozen=True)
class SweepAxis:
    """An axis with the position and tick label of each point."""

    name: str
    at: Sequence[float]
    ticks: Sequence[str]
    ordered: bool
    """Whether values between two points are possible, so that a line between them has a meaning."""


def axes(results: StudyResults) -> tuple[SweepAxis, dict[str, list[int]]]:
    """Return the axis of a sweep, and its curves: for each title, the points that differ only along
    the axis.
    """
    points = results.study.points
    names = results.study.parameters
    chosen = next((name for name in names if _numbers([p.settings.get(name) for p in points])), names[0])
    given = [point.settings.get(chosen) for point in points]
    if numbers := _numbers(given):
        values, unit = numbers
        named = f"{short(chosen)} ({unit})" if unit else short(chosen)
        axis = SweepAxis(named, values, [f"{value:g}" for value in values], ordered=True)
    else:
        ticks = [label(value) for value in given]
        order = list(dict.fromkeys(ticks))
        axis = SweepAxis(short(chosen), [float(order.index(tick)) for tick in ticks], ticks, ordered=False)
    curves: dict[str, list[int]] = {}
    for i, point in enumerate(points):
        others = {name: label(value) for name, value in point.settings.items() if name != chosen}
        title = ", ".join(f"{short(name)} {value}" for name, value in others.items())
        curves.setdefault(title, []).append(i)
    for some in curves.values():
        some.sort(key=lambda i: axis.at[i])
    return axis, curves


def short(name: str) -> str:
    """Return the last meaningful word of a parameter's name.

    >>> short("traffic.0.every"), short("routing.kind"), short("mac")
    ('every', 'routing', 'mac')
    """
    *outer, last = name.split(".")
    return outer[-1] if last == "kind" and outer else last


def _numbers(values: Sequence[Any]) -> tuple[list[float], str] | None:
    """Return the values as numbers with a common unit; ``None`` if that is not possible.

    >>> _numbers(["2 s", "4 s"]), _numbers([1, 2.5]), _numbers(["2 s", "1 min"]), _numbers(["csma"])
    (([2.0, 4.0], 's'), ([1.0, 2.5], ''), None, None)
    """
    found = [_NUMBER.fullmatch(str(value)) for value in values if not isinstance(value, bool)]
    known = [match for match in found if match is not None]
    units = {match[2] for match in known}
    if len(known) < len(values) or len(units) != 1:
        return None
    return [float(match[1]) for match in known], units.pop()


def title_of(results: StudyResults, point: int) -> str:
    """Return the settings that distinguish a point from the other points, as text."""
    settings = results.settings(point)
    return ", ".join(f"{short(name)} {value}" for name, value in settings.items()) or "all"
