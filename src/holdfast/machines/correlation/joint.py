"""What correlations are made of, and which matches take part in them.  [J2]"""

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
from .entries import Entries, Kept, Words, chosen, points


class Slot(NamedTuple):
    """Where a filter finds its values: an attribute of a topic, of one sensor if it is named."""

    topic: str
    attribute: str
    sensor: str | None = None


@dataclass(frozen=True)
class Joint:
    """One correlation: the slots of its filters, how near they must be, what is told, and as what."""

    slots: tuple[int, ...]
    near: float
    tell: Tell
    topic: str
    labels: tuple[str, ...]


def participants(
    kept: Mapping[str, Kept],
    ready: Mapping[str, NDArray[np.bool_]],
    joints: Sequence[Joint],
    needs: Words,
    within: Duration,
) -> dict[str, Entries]:
    """Of the events that are ready, the entries of each topic, with the correlations they take part in."""
    parts = {name: chosen(one.entries, ready[name][one.entries.rows]) for name, one in kept.items()}
    when = np.concatenate([times(kept[name].events)[part.rows] for name, part in parts.items()])
    slots = np.concatenate([part.slots for part in parts.values()])
    words = np.concatenate([part.words for part in parts.values()])
    order = np.argsort(when, kind="stable")
    found = np.zeros(len(order), np.uint64)
    if len(order):
        when, slots = when[order], slots[order]
        participate(when, slots, words[order], needs, within, found)
        if any(joint.near < np.inf for joint in joints):
            spots = np.concatenate([points(kept[name].events)[part.rows] for name, part in parts.items()])
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
    """Take back what takes part in time but not in space; there are ``size`` slots."""
    grids = {near: grid(spots, near) for near in {joint.near for joint in joints} - {np.inf}}
    for i, joint in enumerate(joints):
        bit = np.uint64(1 << i)
        mine = np.flatnonzero(found & bit)
        if joint.near == np.inf or not mine.size:
            continue
        place = np.full(size, -1)
        place[list(joint.slots)] = np.arange(len(joint.slots))
        cells = grids[joint.near]
        own = cells._replace(cells=cells.cells[mine])
        agree = np.zeros(len(mine), np.bool_)
        close_by(
            when[mine], place[slots[mine]], spots[mine], own, len(joint.slots), within, joint.near, agree
        )
        found[mine[~agree]] &= ~bit
