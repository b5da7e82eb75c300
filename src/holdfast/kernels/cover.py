"""Covering and merging of many boxes, one after the other.

Box ``i`` has ``sizes[i]`` ranges of integers, the j-th of them from ``bounds[i, j, 0]`` to ``bounds[i, j,
1]``, both included, of attribute ``attributes[i, j]``; attributes ascend along a row.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel
def absorb(sizes, attributes, bounds, merging, active, remaining):  # type: ignore[no-untyped-def]
    """Add boxes one by one; ``remaining[i]`` is the number of boxes left after box ``i``.

    A box that another one covers is dropped, and drops those that it covers. With ``merging`` it is also
    united with a box that is equal in all attributes but one, where the two overlap, as often as possible;
    this changes ``bounds`` in place. The first elements of ``active`` are the boxes that are left.
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
        """The only range in which two boxes differ, if they overlap there; else -1."""
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
