"""What is around somebody who moves, among parts that stay where they are.

Distances are compared with a margin: what is nearly at the boundary, or nearly as far as the closest, is in
doubt.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .jit import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MARGIN = 1e-9


def distances(here: tuple[Ints, Floats, Ints], parts: tuple[Ints, Floats, Ints]) -> Floats:
    """How far each part is from each position: each has so many coordinates, which, and the number of a named
    place if it has none, or -1.  A place is only near itself."""
    (dims, xs, names), (part_dims, part_xs, part_names) = here, parts
    squares = np.zeros((len(dims), len(part_dims)))
    for axis in range(xs.shape[1]):
        squares += (xs[:, axis, None] - part_xs[None, :, axis]) ** 2
    alike = dims[:, None] == part_dims[None, :]
    found: Floats = np.where(alike & (dims > 0)[:, None], np.sqrt(squares), np.inf)
    same = alike & (dims == 0)[:, None] & (names >= 0)[:, None] & (names[:, None] == part_names[None, :])
    found[same] = 0.0
    return found


@kernel
def counted(at, moves, far, when, parts, true, within, count, present, doubt):  # type: ignore[no-untyped-def]
    """At each instant how many of the parts that are near are there, of how many something is true, and how
    many of them are in doubt.

    ``far[m]`` is how far the parts are after move ``m``, the last one at each instant; at ``when`` parts
    become true or false, and are there from then on.
    """
    size = far.shape[1]
    is_there = [False] * size
    is_true = [0] * size
    last = -1
    event = there = true_now = doubtful = 0
    for i in range(len(at)):
        moved = moves[i] != last
        last = moves[i]
        while event < len(when) and when[event] <= at[i]:
            p = parts[event]
            if not moved and far[last, p] <= within * (1 + MARGIN):
                there += not is_there[p]
                true_now += true[event] - is_true[p]
                doubtful += not is_there[p] and far[last, p] > within * (1 - MARGIN)
            is_there[p] = True
            is_true[p] = true[event]
            event += 1
        if moved:
            there = true_now = doubtful = 0
            for p in range(size):
                if is_there[p] and far[last, p] <= within * (1 + MARGIN):
                    there += 1
                    true_now += is_true[p]
                    doubtful += far[last, p] > within * (1 - MARGIN)
        count[i], present[i], doubt[i] = true_now, there, doubtful


@kernel
def latest(at, moves, far, rank, when, parts, cells, within, chosen, doubt):  # type: ignore[no-untyped-def]
    """At each instant the cell of the near part that came last, of several the first by rank; and whether one
    is in doubt.  At ``when`` parts come to have cells."""
    size = far.shape[1]
    cell = [-1] * size
    since = [0] * size
    last = best = -1
    event = doubtful = 0
    for i in range(len(at)):
        moved = moves[i] != last
        last = moves[i]
        while event < len(when) and when[event] <= at[i]:
            p = parts[event]
            if not moved and far[last, p] <= within * (1 + MARGIN):
                doubtful += cell[p] < 0 and far[last, p] > within * (1 - MARGIN)
                if best < 0 or since[best] < when[event] or rank[p] < rank[best]:
                    best = p
            cell[p] = cells[event]
            since[p] = when[event]
            event += 1
        if moved:
            best = -1
            doubtful = 0
            for p in range(size):
                if cell[p] >= 0 and far[last, p] <= within * (1 + MARGIN):
                    doubtful += far[last, p] > within * (1 - MARGIN)
                    if (
                        best < 0
                        or since[best] < since[p]
                        or (since[best] == since[p] and rank[p] < rank[best])
                    ):
                        best = p
        chosen[i] = cell[best] if best >= 0 else -1
        doubt[i] = doubtful > 0


@kernel
def closest(at, moves, far, rank, when, parts, cells, chosen, doubt):  # type: ignore[no-untyped-def]
    """At each instant the cell of the closest part that is there, of several the first by rank; and whether
    another is about as close.  At ``when`` parts come to have cells."""
    size = far.shape[1]
    cell = [-1] * size
    last = best = -1
    event = 0
    tied = False
    for i in range(len(at)):
        changed = moves[i] != last
        last = moves[i]
        while event < len(when) and when[event] <= at[i]:
            changed = changed or cell[parts[event]] < 0
            cell[parts[event]] = cells[event]
            event += 1
        if changed:
            best = -1
            least = math.inf
            for p in range(size):
                d = far[last, p] if cell[p] >= 0 else math.inf
                if d < least or (d == least and best >= 0 and rank[p] < rank[best]):
                    best, least = p, d
            tied = False
            for p in range(size):
                tied = tied or (
                    p != best and cell[p] >= 0 and best >= 0 and far[last, p] <= least * (1 + MARGIN)
                )
        chosen[i] = cell[best] if best >= 0 else -1
        doubt[i] = tied
