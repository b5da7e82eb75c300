"""Search for the boxes that contain a point, by bitmaps.

A box occupies a *slot* and has ``sizes[slot]`` ranges. Range ``j`` is of attribute ``attributes[slot, j]``,
from ``bounds[slot, j, 0]`` to ``bounds[slot, j, 1]``, both included. An attribute without a range can have
any value or be missing. ``cuts[a]`` divides the values of attribute ``a`` into buckets; one more bucket is
for points without the attribute (NaN).

Slots are grouped in blocks. ``maps[block, a, bucket]`` has a bit for each slot of the block, which is set if
the box can contain a point with such a value. ``tops[a, bucket]`` has a bit for each block, which is set if a
bit of one of its slots is set. The AND of the bits of all attributes of a point leaves few candidates, which
are compared exactly.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel


@kernel
def span(sizes, attributes, bounds, cuts, first, last):  # type: ignore[no-untyped-def]
    """Find the buckets of each attribute that each box meets, from ``first`` to ``last``.

    An attribute without a range meets all buckets.
    """
    for slot in range(len(sizes)):
        for a in range(len(cuts)):
            first[slot, a], last[slot, a] = 0, cuts.shape[1] + 1
        for j in range(sizes[slot]):
            a = attributes[slot, j]
            low = np.searchsorted(cuts[a], bounds[slot, j, 0], "right")
            high = np.searchsorted(cuts[a], bounds[slot, j, 1], "right")
            first[slot, a] = max(first[slot, a], low)
            last[slot, a] = min(last[slot, a], high)


@kernel
def place(slots, first, last, maps, tops, live):  # type: ignore[no-untyped-def]
    """Write the bits of boxes into their slots, and clear the bits that were there before."""
    width, buckets, words = maps.shape[1:]
    one = np.uint64(1)
    for i in range(len(slots)):
        slot = slots[i]
        block, word = slot // (64 * words), slot // 64 % words
        bit = one << np.uint64(slot % 64)
        top = one << np.uint64(block % 64)
        live[block, word] |= bit
        for a in range(width):
            for bucket in range(buckets):
                if first[i, a] <= bucket <= last[i, a]:
                    maps[block, a, bucket, word] |= bit
                    tops[a, bucket, block // 64] |= top
                else:
                    maps[block, a, bucket, word] &= ~bit


@kernel
def locate(points, cuts, tops, buckets, blocks):  # type: ignore[no-untyped-def]
    """Find the bucket of each attribute of each point, and the blocks whose boxes may contain the point."""
    count, width = points.shape
    missing = tops.shape[1] - 1
    for p in range(count):
        blocks[p] = ~np.uint64(0)
        for a in range(width):
            value = points[p, a]
            k = missing if value != value else np.searchsorted(cuts[a], value, "right")
            buckets[p, a] = k
            for w in range(tops.shape[2]):
                blocks[p, w] &= tops[a, k, w]


@kernel
def contain(  # type: ignore[no-untyped-def]
    sizes, attributes, bounds, points, maps, live, buckets, blocks, block, point, total, slots, owners
):
    """Append to ``slots`` and ``owners`` the boxes and the points that they contain, starting at ``(block,
    point)``.

    Return the block and the point at which to continue, and the number of matches. The kernel stops early if
    the output may overflow.
    """
    words = maps.shape[3]
    count, width = points.shape
    one, two, four = np.uint64(1), np.uint64(2), np.uint64(4)
    fives, threes = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)
    nibbles = np.uint64(0x0F0F0F0F0F0F0F0F)
    left = np.empty(words, np.uint64)
    while block < len(maps):
        top = one << np.uint64(block % 64)
        while point < count:
            if blocks[point, block // 64] & top == 0:
                point += 1
                continue
            if total + words * 64 > len(slots):
                return block, point, total
            left[:] = live[block]
            for a in range(0, width, 2):
                other = min(a + 1, width - 1)
                here, there = maps[block, a, buckets[point, a]], maps[block, other, buckets[point, other]]
                some = np.uint64(0)
                for w in range(words):
                    both = left[w] & here[w] & there[w]
                    left[w] = both
                    some |= both
                if some == 0:
                    break
            for w in range(words):
                bits = left[w]
                while bits != 0:
                    below = (bits - one) & ~bits  # as many ones as there are zeros below the lowest bit
                    bits &= bits - one
                    below = below - ((below >> one) & fives)
                    below = (below & threes) + ((below >> two) & threes)
                    below = (below + (below >> four)) & nibbles
                    below = below + (below >> np.uint64(8))
                    below = below + (below >> np.uint64(16))
                    below = below + (below >> np.uint64(32))
                    slot = (block * words + w) * 64 + np.int64(below & np.uint64(127))
                    inside = True
                    for j in range(sizes[slot]):
                        value = points[point, attributes[slot, j]]
                        inside &= (bounds[slot, j, 0] <= value) & (value <= bounds[slot, j, 1])
                    slots[total] = slot
                    owners[total] = point
                    total += inside
            point += 1
        point = 0
        block += 1
    return block, 0, total


@kernel
def gather(owners, slots, numbers, ends, found):  # type: ignore[no-untyped-def]
    """Group the numbers of matched slots by owner. The numbers of owner ``p`` end at ``ends[p]``."""
    for owner in owners:
        ends[owner] += 1
    total = 0
    for p in range(len(ends)):
        mine = ends[p]
        ends[p] = total
        total += mine
    for i in range(len(owners)):
        owner = owners[i]
        found[ends[owner]] = numbers[slots[i]]
        ends[owner] += 1


@kernel
def lie_within(sizes, attributes, bounds, lows, highs, slots):  # type: ignore[no-untyped-def]
    """Find the slots whose boxes lie inside one box and have a range for each of its attributes.

    NaN in ``lows`` and ``highs`` means no range. Return the number of slots found.
    """
    wanted = 0
    for a in range(len(lows)):
        wanted += lows[a] == lows[a]
    total = 0
    for slot in range(len(sizes)):
        found = 0
        for j in range(sizes[slot]):
            a = attributes[slot, j]
            found += (lows[a] <= bounds[slot, j, 0]) & (bounds[slot, j, 1] <= highs[a])
        slots[total] = slot
        total += found == wanted
    return total
