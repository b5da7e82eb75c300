"""The difference of two byte strings: which parts of the new string occur in the old string, and where.

A rolling hash finds blocks of the old string anywhere in the new string, as in rsync. After a difference the
search also continues at the same offset. Matches are compared byte by byte. If two blocks have the same hash,
only the first is found, which costs size but not correctness.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel

BLOCK = 32
"""The number of equal bytes that a match at another offset needs."""
LEAST = 16
"""The number of equal bytes that a match at the same offset needs."""

_FACTOR, _SPREAD, _LOW = 0x01000193, 0x4F1BBCDD, 0xFFFFFFFF


@kernel
def common(new, old, slots, copies):  # type: ignore[no-untyped-def]
    """Fill ``copies`` with (offset in the new, offset in the old, length) in order, and return their number.

    ``slots`` is a hash table for blocks. Its length is a power of two, and all its items must be -1.
    """
    size, had, room = len(new), len(old), len(slots) - 1
    top = 1
    for _ in range(BLOCK - 1):
        top = top * _FACTOR & _LOW
    for start in range(0, had - BLOCK + 1, BLOCK):
        rolled = np.int64(0)
        for i in range(start, start + BLOCK):
            rolled = (rolled * _FACTOR + np.int64(old[i])) & _LOW
        slot = ((rolled * _SPREAD & _LOW) >> 7) & room
        if slots[slot] < 0:
            slots[slot] = start
    count, at, shift, rolled = 0, 0, np.int64(0), np.int64(-1)
    while at < size and count < len(copies):
        found, length = at + shift, 0
        while 0 <= found + length < had and at + length < size and new[at + length] == old[found + length]:
            length += 1
        if length < LEAST and at + BLOCK <= size:
            if rolled < 0:
                rolled = np.int64(0)
                for i in range(at, at + BLOCK):
                    rolled = (rolled * _FACTOR + np.int64(new[i])) & _LOW
            found, length = np.int64(slots[((rolled * _SPREAD & _LOW) >> 7) & room]), 0
            while (
                found >= 0
                and found + length < had
                and at + length < size
                and new[at + length] == old[found + length]
            ):
                length += 1
        if length >= LEAST:
            copies[count, 0], copies[count, 1], copies[count, 2] = at, found, length
            count, at, shift, rolled = count + 1, at + length, found - at, np.int64(-1)
        else:
            if rolled >= 0 and at + BLOCK < size:
                gone = (rolled - np.int64(new[at]) * top) & _LOW
                rolled = (gone * _FACTOR + np.int64(new[at + BLOCK])) & _LOW
            else:
                rolled = np.int64(-1)
            at += 1
    return count


@kernel
def rebuilt(copies, old, others, new):  # type: ignore[no-untyped-def]
    """Fill ``new`` with the ``copies`` from ``old``, and with the bytes of ``others`` between them."""
    done, used = 0, 0
    for i in range(len(copies)):
        at, found, length = copies[i, 0], copies[i, 1], copies[i, 2]
        new[done:at] = others[used : used + at - done]
        used += at - done
        new[at : at + length] = old[found : found + length]
        done = at + length
    new[done:] = others[used:]
