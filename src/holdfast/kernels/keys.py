"""A hash table with open addressing from byte strings to dense codes, as arrays.

``slots`` has a length that is a power of two; it contains codes, and -1 where free. ``hashes[code]`` is the
CRC-32 of the key. ``data[ends[code - 1]:ends[code]]`` is the key itself; the first key starts at 0.
``after[code]`` is the key that last followed this key, or -1. Sensors often report in the same order, so most
keys are the expected ones and need not be hashed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .jit import kernel


def _crc_table() -> NDArray[np.uint32]:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1).astype(np.uint32)
    return table


CRC = _crc_table()
"""The table of CRC-32 (ISO 3309). With it, the kernel computes the same hash as ``zlib.crc32``."""


@kernel
def look_up(starts, stops, text, crc, slots, hashes, ends, data, after, count, most, codes):  # type: ignore[no-untyped-def]
    """Find the code of each key ``text[starts[i]:stops[i]]``, and return the number of keys in the table.

    An unknown key gets the next code, or -1 if the table already has ``most`` keys. The arrays must have room
    for all keys to be new.
    """
    mask = len(slots) - 1
    before = -1
    for i in range(len(starts)):
        begin = starts[i]
        size = stops[i] - begin
        code = after[before] if before >= 0 else -1
        if code >= 0:
            base = ends[code - 1] if code > 0 else 0
            same = ends[code] - base == size
            j = 0
            while same and j < size:
                same = data[base + j] == text[begin + j]
                j += 1
            if same:
                codes[i] = code
                before = code
                continue
        h = np.uint32(0xFFFFFFFF)
        for j in range(size):
            h = crc[(h ^ text[begin + j]) & np.uint32(0xFF)] ^ (h >> np.uint32(8))
        h = h ^ np.uint32(0xFFFFFFFF)
        at = np.int64(h) & mask
        while True:
            code = slots[at]
            if code < 0 and count == most:
                break
            if code < 0:
                base = ends[count - 1] if count > 0 else 0
                for j in range(size):
                    data[base + j] = text[begin + j]
                ends[count] = base + size
                hashes[count] = h
                slots[at] = count
                after[count] = -1
                code = count
                count += 1
                break
            if hashes[code] == h:
                base = ends[code - 1] if code > 0 else 0
                same = ends[code] - base == size
                j = 0
                while same and j < size:
                    same = data[base + j] == text[begin + j]
                    j += 1
                if same:
                    break
            at = (at + 1) & mask
        codes[i] = code
        if before >= 0:
            after[before] = code
        before = code
    return count


@kernel
def checksums(starts, stops, text, crc, found):  # type: ignore[no-untyped-def]
    """Compute the CRC-32 of each ``text[starts[i]:stops[i]]``."""
    for i in range(len(starts)):
        h = np.uint32(0xFFFFFFFF)
        for j in range(starts[i], stops[i]):
            h = crc[(h ^ text[j]) & np.uint32(0xFF)] ^ (h >> np.uint32(8))
        found[i] = h ^ np.uint32(0xFFFFFFFF)


@kernel
def rebuild(hashes, count, slots):  # type: ignore[no-untyped-def]
    """Insert the first ``count`` codes into ``slots``, which must be empty."""
    mask = len(slots) - 1
    for code in range(count):
        at = np.int64(hashes[code]) & mask
        while slots[at] >= 0:
            at = (at + 1) & mask
        slots[at] = code


@kernel
def differ(hashes, starts, stops, text, slots):  # type: ignore[no-untyped-def]
    """Return whether all keys differ. ``slots`` must be empty and longer than the number of keys."""
    mask = len(slots) - 1
    for i in range(len(hashes)):
        at = np.int64(hashes[i]) & mask
        while slots[at] >= 0:
            other = slots[at]
            same = hashes[other] == hashes[i] and stops[other] - starts[other] == stops[i] - starts[i]
            j = 0
            while same and j < stops[i] - starts[i]:
                same = text[starts[other] + j] == text[starts[i] + j]
                j += 1
            if same:
                return False
            at = (at + 1) & mask
        slots[at] = i
    return True
