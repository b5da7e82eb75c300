"""Joining: which of the events that a node has seen are wanted, now that some have come.  [J2]"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels import member
from ...kernels.jit import Kernel
from ...model.protocol import Peer
from .events import Events, Seen
from .matching import Group
from .operator import inside
from .sources import HERE

FEW = 1_000
"""So many comparisons are not worth loading compiled code for."""

Flags = NDArray[np.bool_]
Positions = NDArray[np.int64]
Places = NDArray[np.float64]


class Around(NamedTuple):
    """Events that filters of a group speak of, in the order of time."""

    seen: list[Seen]
    times: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float64]


Join = Callable[[Group, Around], Flags]
"""For each of the events, a row, which operators of the group want it; more events never make it fewer."""


def around(group: Group, events: Events, new: Sequence[Seen], link: Peer) -> Around:
    """The new events, and all that may agree with one of them; but for those that came over the link that
    asks: nobody there wants them."""
    after, before = new[0].time - group.within, new[-1].time + group.within
    seen, columns = [], []
    for column, key in enumerate(group.keys):
        some = [
            one
            for one in events.between(key, after, before)
            if (link == HERE or one.origin != link)
            and (group.region is None or inside(group.region, one.event.sensor, one.event.at))
        ]
        seen += some
        columns += [column] * len(some)
    times = np.array([one.time for one in seen], np.int64)
    order = times.argsort(kind="stable")
    values = np.array([one.event.value for one in seen], np.float64)
    return Around(
        [seen[at] for at in order.tolist()], times[order], np.array(columns, np.int64)[order], values[order]
    )


def alone(group: Group, found: Around) -> Flags:
    """An event is wanted if it satisfies its filter."""
    values = found.values[:, None]
    return (group.lows[found.columns] <= values) & (values <= group.highs[found.columns])


def ring(group: Group, found: Around) -> Flags:
    """Binary joins: an event is wanted if it satisfies its filter, the main one, and an event that satisfies
    the next filter, the filtering one, agrees with it; the next of the last filter is the first."""
    wanted = _run(member.ring, group, found)
    return wanted if group.near == math.inf else _sanctioned(group, found, wanted)


def complete(group: Group, found: Around) -> Flags:
    """An event is wanted if it is a member of a complex event: one event for each filter, all of them
    within δt and δl."""
    if len(set(found.columns.tolist())) < len(group.keys):
        return np.zeros((0, 0), bool)
    wanted = _run(member.complete, group, found)
    if group.near < math.inf:
        wanted = _near(group, found, wanted)
    return wanted & np.array(group.wanted)[found.columns][:, None]


def _run(kernel: Kernel, group: Group, found: Around) -> Flags:
    wanted = np.zeros((len(found.seen), group.lows.shape[1]), bool)
    run: Any = kernel.compiled if wanted.size > FEW else kernel
    run(found.times, found.columns, found.values, group.lows, group.highs, group.within, wanted)
    return wanted


# --- the same in space: for those that agree in time ---------------------------------------------


def _near(group: Group, found: Around, wanted: Flags) -> Flags:
    """Of the events that are wanted by their times, those of complex events that are near as well."""
    places, left = _places(found), np.zeros_like(wanted)
    for row in np.flatnonzero(wanted.any(axis=0)):
        members = np.flatnonzero(wanted[:, row])
        by_column = [members[found.columns[members] == column] for column in range(len(group.keys))]
        for one in members:
            if not left[one, row]:
                others = [some for column, some in enumerate(by_column) if column != found.columns[one]]
                left[_complex_event(group, found, places, one, others), row] = True
    return left


def _complex_event(
    group: Group, found: Around, places: Places, one: np.int64, others: list[Positions]
) -> list[np.int64]:
    """One event and one of each of the others, all of which agree; none if there are none."""
    others = [_agreeing(group, found, places, one, some) for some in others]
    if not others:
        return [one]
    first, *rest = sorted(others, key=len)
    for other in first:
        chosen = _complex_event(group, found, places, other, rest)
        if chosen:
            return [one, *chosen]
    return []


def _sanctioned(group: Group, found: Around, wanted: Flags) -> Flags:
    """Of the events that are wanted by their times, those that an event of the next filter is near to."""
    places, satisfied, left = _places(found), alone(group, found), np.zeros_like(wanted)
    by_column = [np.flatnonzero(found.columns == column) for column in range(len(group.keys))]
    for one in np.flatnonzero(wanted.any(axis=1)):
        following = by_column[(found.columns[one] + 1) % len(by_column)]
        partners = _agreeing(group, found, places, one, following)
        left[one] = wanted[one] & satisfied[partners].any(axis=0)
    return left


def _agreeing(group: Group, found: Around, places: Places, one: np.int64, others: Positions) -> Positions:
    """Those of some events that agree with one of them in time and space."""
    time = found.times[one]
    begin = np.searchsorted(found.times, time - group.within, "right")
    end = np.searchsorted(found.times, time + group.within, "left")
    near = others[np.searchsorted(others, begin) : np.searchsorted(others, end)]
    apart = np.sqrt(((places[near] - places[one]) ** 2).sum(axis=1))
    return near[apart < group.near]


def _places(found: Around) -> Places:
    """Where the events were; a coordinate that a place lacks is 0, and one without a place is nowhere."""
    nowhere = (math.nan,) * 3
    return np.array([(*one.event.at, 0.0, 0.0, 0.0)[:3] if one.event.at else nowhere for one in found.seen])
