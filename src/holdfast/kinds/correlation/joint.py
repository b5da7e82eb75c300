"""The parts of a correlation, and the search for matches that take part in complex events. [J2]"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...kernels.correlate import close_by, grid, participate
from ...model.batch import times
from ...model.correlation import Tell
from ...model.instant import Duration
from .entries import Entries, StoredEntries, Words, points, select


class Slot(NamedTuple):
    """The values that a filter compares: an attribute of a topic. If `sensor` is set, only readings of that
    source."""

    topic: str
    attribute: str
    sensor: str | None = None


@dataclass(frozen=True)
class Joint:
    """One correlation: the slots of its filters, the maximal distance, and its output.

    ``near`` is in metres. ``topic`` and ``labels`` are the topic and the attributes of complex events.
    """

    slots: tuple[int, ...]
    near: float
    tell: Tell
    topic: str
    labels: tuple[str, ...]


def participants(
    stored: Mapping[str, StoredEntries],
    ready: Mapping[str, NDArray[np.bool_]],
    joints: Sequence[Joint],
    needs: Words,
    within: Duration,
) -> dict[str, Entries]:
    """Return for each topic the entries of events that take part, with the correlations in which they do.

    Only events that are ``ready`` are searched. ``needs`` has for each slot the correlations with a filter on
    it.
    """
    parts = {name: select(one.entries, ready[name][one.entries.rows]) for name, one in stored.items()}
    when = np.concatenate([times(stored[name].events)[part.rows] for name, part in parts.items()])
    slots = np.concatenate([part.slots for part in parts.values()])
    words = np.concatenate([part.words for part in parts.values()])
    order = np.argsort(when, kind="stable")
    found = np.zeros(len(order), np.uint64)
    if len(order):
        when, slots = when[order], slots[order]
        participate(when, slots, words[order], needs, within, found)
        if any(joint.near < np.inf for joint in joints):
            spots = np.concatenate([points(stored[name].events)[part.rows] for name, part in parts.items()])
            _keep_near(joints, when, slots, len(needs), spots[order], within, found)
    words[order] = found
    ends = np.cumsum([len(part.rows) for part in parts.values()])[:-1]
    of_topics = zip(parts.items(), np.split(words, ends), strict=True)
    return {name: part._replace(words=mine) for (name, part), mine in of_topics}


def _keep_near(
    joints: Sequence[Joint],
    when: NDArray[np.int64],
    slots: NDArray[np.int64],
    size: int,
    spots: NDArray[np.float64],
    within: Duration,
    found: Words,
) -> None:
    """Remove the bits of matches that agree in time but not in space from ``found``. ``size`` is the number
    of slots."""
    grids = {near: grid(spots, near) for near in {joint.near for joint in joints} - {np.inf}}
    for i, joint in enumerate(joints):
        bit = np.uint64(1 << i)
        own_rows = np.flatnonzero(found & bit)
        if joint.near == np.inf or not own_rows.size:
            continue
        place = np.full(size, -1)
        place[list(joint.slots)] = np.arange(len(joint.slots))
        cells = grids[joint.near]
        own = cells._replace(cells=cells.cells[own_rows])
        agree = np.zeros(len(own_rows), np.bool_)
        entries = when[own_rows], place[slots[own_rows]], spots[own_rows]
        close_by(*entries, own, len(joint.slots), within, joint.near, agree)
        found[own_rows[~agree]] &= ~bit
