"""Covering and merging of boxes, which are added one by one.

Box ``i`` has ``sizes[i]`` ranges of integers, one per attribute. Range ``j`` is of attribute ``attributes[i,
j]``, from ``bounds[i, j, 0]`` to ``bounds[i, j, 1]``, both included. The attributes of a box are ascending.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel
def absorb(sizes, attributes, bounds, merging, active, remaining):  # type: ignore[no-untyped-def]
    """Add boxes one by one, and return the number of boxes that are left.

    A box that another box covers is dropped, and a new box drops the boxes that it covers. With ``merging``,
    a box is also united with a box that is equal in all attributes but one, if the two overlap there. This is
    repeated as often as possible and changes ``bounds``. The first elements of ``active`` are the boxes that
    are left; ``remaining[i]`` is their number after box ``i``.
    """

    def covers(wide: int, narrow: int) -> bool:
        k = 0
        for j in range(sizes[wide]):
            while k < sizes[narrow] and attributes[narrow, k] < attributes[wide, j]:
                k += 1
            if k == sizes[narrow] or attributes[narrow, k] != attributes[wide, j]:
                return False
            if bounds[wide, j, 0] > bounds[narrow, k, 0] or bounds[wide, j, 1] < bounds[narrow, k, 1]:
                return False
        return True

    def differs_in(one: int, other: int) -> int:
        """Return the only range in which two boxes differ if they overlap there, otherwise -1."""
        found = -1
        for j in range(sizes[one]):
            if attributes[one, j] != attributes[other, j]:
                return -1
            if bounds[one, j, 0] != bounds[other, j, 0] or bounds[one, j, 1] != bounds[other, j, 1]:
                if found >= 0:
                    return -1
                found = j
        if bounds[one, found, 0] > bounds[other, found, 1] or bounds[other, found, 0] > bounds[one, found, 1]:
            return -1
        return found

    count = 0
    signs = np.zeros(len(sizes), np.uint64)  # which attributes an active box mentions, modulo 64
    for new in range(len(sizes)):
        sign = np.uint64(0)
        for j in range(sizes[new]):
            sign |= np.uint64(1) << np.uint64(attributes[new, j] % 64)
        covered = False
        for k in range(count):
            if signs[k] & ~sign == 0 and covers(active[k], new):
                covered = True
                break
        k = count if covered else 0
        while k < count:
            old = active[k]
            gone, united = False, False
            if sign & ~signs[k] == 0:
                gone = covers(new, old)
                if not gone and merging and sizes[new] == sizes[old]:
                    j = differs_in(new, old)
                    if j >= 0:
                        bounds[new, j, 0] = min(bounds[new, j, 0], bounds[old, j, 0])
                        bounds[new, j, 1] = max(bounds[new, j, 1], bounds[old, j, 1])
                        gone, united = True, True
            if gone:
                count -= 1
                active[k], signs[k] = active[count], signs[count]
            k = 0 if united else k + (not gone)
        if not covered:
            active[count], signs[count] = new, sign
            count += 1
        remaining[new] = count
    return count
