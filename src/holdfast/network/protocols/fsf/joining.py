"""Joining: functions that decide which stored events operators want after new events have arrived. [J2]"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ....kernels import member
from ....kernels.jit import Kernel
from ....model.protocol import Peer
from .events import EventStore, StoredEvent
from .matching import OperatorGroup
from .operator import is_in_region
from .sources import HERE

FEW = 1_000
"""Up to this size of the result the interpreted kernel runs, because loading compiled code costs more."""

Flags = NDArray[np.bool_]
Positions = NDArray[np.int64]
Places = NDArray[np.float64]


class JoinInput(NamedTuple):
    """The events to which the filters of a group apply, in the order of time."""

    seen: list[StoredEvent]
    times: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float64]


Join = Callable[[OperatorGroup, JoinInput], Flags]
"""A function that returns a mask: for each event (row), the operators of the group (columns) that want it.
More events never clear a flag.
"""


def join_input(group: OperatorGroup, store: EventStore, new: Sequence[StoredEvent], link: Peer) -> JoinInput:
    """Return the new events and the stored events that may match them, except events that came over
    ``link``.
    """
    after, before = new[0].time - group.within, new[-1].time + group.within
    seen, columns = [], []
    for column, key in enumerate(group.keys):
        some = [one for one in store.between(key, after, before) if link == HERE or one.origin != link]
        if group.region is not None:
            some = [one for one in some if is_in_region(group.region, one.event.sensor, one.event.at)]
        seen += some
        columns += [column] * len(some)
    times = np.array([one.time for one in seen], np.int64)
    order = times.argsort(kind="stable")
    values = np.array([one.event.value for one in seen], np.float64)
    events, keys = [seen[at] for at in order.tolist()], np.array(columns, np.int64)
    return JoinInput(events, times[order], keys[order], values[order])


def join_single(group: OperatorGroup, found: JoinInput) -> Flags:
    """Mark every event that satisfies its filter as wanted."""
    values = found.values[:, None]
    return (group.lows[found.columns] <= values) & (values <= group.highs[found.columns])


def join_ring(group: OperatorGroup, found: JoinInput) -> Flags:
    """Mark an event as wanted if it satisfies its filter and an event of the next filter matches it: binary
    joins.

    The next filter after the last is the first.
    """
    wanted = _run(member.ring, group, found)
    return wanted if group.near == math.inf else _restrict_ring(group, found, wanted)


def join_complete(group: OperatorGroup, found: JoinInput) -> Flags:
    """Mark every event of a complex event as wanted: one event for each filter, all within δt and δl."""
    if len(set(found.columns.tolist())) < len(group.keys):
        return np.zeros((0, 0), bool)
    wanted = _run(member.complete, group, found)
    if group.near < math.inf:
        wanted = _restrict_complete(group, found, wanted)
    return wanted & np.array(group.wanted)[found.columns][:, None]


def _run(kernel: Kernel, group: OperatorGroup, found: JoinInput) -> Flags:
    """Run a kernel on the events; many events use the compiled kernel."""
    wanted = np.zeros((len(found.seen), group.lows.shape[1]), bool)
    run: Any = kernel.compiled if wanted.size > FEW else kernel
    run(found.times, found.columns, found.values, group.lows, group.highs, group.within, wanted)
    return wanted


# --- the same in space: for those that agree in time ---------------------------------------------


def _restrict_complete(group: OperatorGroup, found: JoinInput, wanted: Flags) -> Flags:
    """Restrict the events that match in time to those of complex events that also match in space."""
    places, left = _positions(found), np.zeros_like(wanted)
    for row in np.flatnonzero(wanted.any(axis=0)):
        members = np.flatnonzero(wanted[:, row])
        by_column = [members[found.columns[members] == column] for column in range(len(group.keys))]
        for one in members:
            if not left[one, row]:
                others = [some for column, some in enumerate(by_column) if column != found.columns[one]]
                left[_complex_event(group, found, places, one, others), row] = True
    return left


def _complex_event(
    group: OperatorGroup, found: JoinInput, places: Places, one: np.int64, others: list[Positions]
) -> list[np.int64]:
    """Return the event ``one`` and one event of each of ``others`` such that all match each other; empty if
    there are none.
    """
    others = [_matching(group, found, places, one, some) for some in others]
    if not others:
        return [one]
    first, *rest = sorted(others, key=len)
    for other in first:
        chosen = _complex_event(group, found, places, other, rest)
        if chosen:
            return [one, *chosen]
    return []


def _restrict_ring(group: OperatorGroup, found: JoinInput, wanted: Flags) -> Flags:
    """Restrict the events that match in time to those for which an event of the next filter is near."""
    places, satisfied, left = _positions(found), join_single(group, found), np.zeros_like(wanted)
    by_column = [np.flatnonzero(found.columns == column) for column in range(len(group.keys))]
    for one in np.flatnonzero(wanted.any(axis=1)):
        following = by_column[(found.columns[one] + 1) % len(by_column)]
        partners = _matching(group, found, places, one, following)
        left[one] = wanted[one] & satisfied[partners].any(axis=0)
    return left


def _matching(
    group: OperatorGroup, found: JoinInput, places: Places, one: np.int64, others: Positions
) -> Positions:
    """Return those of ``others`` that match the event ``one`` in time and space."""
    time = found.times[one]
    begin = np.searchsorted(found.times, time - group.within, "right")
    end = np.searchsorted(found.times, time + group.within, "left")
    candidates = others[np.searchsorted(others, begin) : np.searchsorted(others, end)]
    distances = np.sqrt(((places[candidates] - places[one]) ** 2).sum(axis=1))
    return candidates[distances < group.near]


def _positions(found: JoinInput) -> Places:
    """Return the positions of events. A missing coordinate is 0; a missing position is NaN."""
    nowhere = (math.nan,) * 3
    return np.array([(*one.event.at, 0.0, 0.0, 0.0)[:3] if one.event.at else nowhere for one in found.seen])
