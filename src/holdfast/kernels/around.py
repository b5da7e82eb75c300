"""Search for parts near a moving key, among parts that do not move.

Distances are exact up to the relative error `MARGIN`. A caller that compares two distances must compute them
again if they differ by less.
"""

from __future__ import annotations

import math

import numpy as np

from .jit import kernel

MARGIN = 1e-9
"""The bound of the relative error of distances."""


@kernel
def distances(found, dims, xs, names, part_dims, part_xs, part_names):  # type: ignore[no-untyped-def]
    """Compute the distance of each part from each position, position after position.

    A position has up to three coordinates, and the number of a named place or -1. A named place has a
    distance only from itself.
    """
    for i in range(len(dims)):
        for p in range(len(part_dims)):
            far = math.inf
            if dims[i] == part_dims[p] and dims[i] > 0:
                squares = 0.0
                for axis in range(dims[i]):
                    along = float(xs[i, axis]) - float(part_xs[p, axis])
                    squares += along * along
                far = math.sqrt(squares)
                if not 1e-200 < squares < 1e300:  # squares may be none, or too many
                    far = 0.0
                    for axis in range(dims[i]):
                        far = math.hypot(far, float(xs[i, axis]) - float(part_xs[p, axis]))
            elif dims[i] == part_dims[p] and names[i] >= 0 and names[i] == part_names[p]:
                far = 0.0
            found[i * len(part_dims) + p] = far


@kernel
def latest_before(at, ends, times, moves):  # type: ignore[no-untyped-def]
    """Find for each instant the index of the last of ``times`` at or before it, or -1. The instants of each
    key are ascending."""
    for k in range(len(ends) - 1):
        move = -1
        for i in range(ends[k], ends[k + 1]):
            while move + 1 < len(times) and times[move + 1] <= at[i]:
                move += 1
            moves[i] = move


@kernel
def is_true_at(at, ends, times, true, cells, spots, found):  # type: ignore[no-untyped-def]
    """Set for each instant whether a predicate is true for the spot of the cell at that instant.

    ``true[m]`` has for each spot whether the predicate is true after the move at ``times[m]``. The last move
    at or before the instant is used.
    """
    for k in range(len(ends) - 1):
        move = -1
        for i in range(ends[k], ends[k + 1]):
            while move + 1 < len(times) and times[move + 1] <= at[i]:
                move += 1
            found[i] = cells[i] >= 0 and true[move, spots[cells[i]]]


@kernel
def near(at, ends, moves, inside, when, starts, parts, true, owned, rank, count, present, chosen):  # type: ignore[no-untyped-def]
    """Count for each instant the present near parts of the key, and those of them for which a predicate is
    true.

    ``chosen`` is the last event of the latter; of equal times the first by rank, or -1. The instants of key
    ``k`` are ``at[ends[k]:ends[k + 1]]``, and its parts are those from ``owned[k]`` up to, but not including,
    ``owned[k + 1]``. Its events are numbered likewise by ``starts``: at ``when`` one of the ``parts`` becomes
    true or false, and is present from then on. ``inside[m]`` marks the parts that are near after move ``m``;
    ``moves`` has the last move at each instant.
    """
    newest = np.full(inside.shape[1], -1)
    for k in range(len(ends) - 1):
        event, last, best = starts[k], -1, -1
        there = satisfied = 0
        for i in range(ends[k], ends[k + 1]):
            again = moves[i] != last
            last = moves[i]
            while event < starts[k + 1] and when[event] <= at[i]:
                p, before = parts[event], newest[parts[event]]
                newest[p] = event
                if inside[last, p] and not again:
                    there += before < 0
                    if before >= 0 and true[before]:
                        satisfied -= 1
                    if true[event]:
                        satisfied += 1
                        if best < 0 or when[newest[best]] < when[event] or rank[p] <= rank[best]:
                            best = p
                    else:
                        again = best == p
                event += 1
            if again:
                best = -1
                there = satisfied = 0
                for p in range(owned[k], owned[k + 1]):
                    if newest[p] >= 0 and inside[last, p]:
                        there += 1
                        if true[newest[p]]:
                            satisfied += 1
                            if (
                                best < 0
                                or when[newest[best]] < when[newest[p]]
                                or (when[newest[best]] == when[newest[p]] and rank[p] < rank[best])
                            ):
                                best = p
            count[i], present[i] = satisfied, there
            chosen[i] = newest[best] if best >= 0 else -1


@kernel
def closest(at, ends, moves, far, when, starts, parts, owned, rank, chosen, doubt):  # type: ignore[no-untyped-def]
    """Find for each instant the last event of the key's closest present part.

    ``doubt`` is set where another part is about as close. Parts at equal distances are ordered by rank.
    Instants, parts and events are as in ``near``.
    """
    newest = np.full(far.shape[1], -1)
    for k in range(len(ends) - 1):
        event, last, best = starts[k], -1, -1
        tied = False
        for i in range(ends[k], ends[k + 1]):
            again = moves[i] != last
            last = moves[i]
            while event < starts[k + 1] and when[event] <= at[i]:
                again = again or newest[parts[event]] < 0
                newest[parts[event]] = event
                event += 1
            if again:
                best = -1
                least = math.inf
                for p in range(owned[k], owned[k + 1]):
                    d = far[last, p] if newest[p] >= 0 else math.inf
                    if d < least or (d == least and best >= 0 and rank[p] < rank[best]):
                        best, least = p, d
                tied = False
                for p in range(owned[k], owned[k + 1]):
                    tied = tied or (
                        p != best and newest[p] >= 0 and best >= 0 and far[last, p] <= least * (1 + MARGIN)
                    )
            chosen[i] = newest[best] if best >= 0 else -1
            doubt[i] = tied
