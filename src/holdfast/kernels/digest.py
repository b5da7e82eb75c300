"""XXH64, the hash of Spark's ``xxhash64``. It is a part of the id of a row without a sequence number.

Spark hashes a text as its bytes, a 64-bit number as its eight bytes (little endian), and a boolean as a
32-bit number. Several values are hashed one after the other, each with the previous hash as its seed.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel

SEED = 42
"""The initial seed in Spark."""

PRIMES = np.array(
    [0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5],
    np.uint64,
)
"""The five primes of XXH64."""


@kernel
def xxh64(starts, stops, data, primes, seed, hashes):  # type: ignore[no-untyped-def]
    """Hash each ``data[starts[i]:stops[i]]`` with the same seed into ``hashes[i]``."""
    one, two, three, four, five = primes[0], primes[1], primes[2], primes[3], primes[4]
    lanes = np.zeros(4, np.uint64)
    for i in range(len(starts)):
        at, stop = starts[i], stops[i]
        size = stop - at
        if size >= 32:
            lanes[0] = seed + one + two
            lanes[1] = seed + two
            lanes[2] = seed
            lanes[3] = seed - one
            while at + 32 <= stop:
                for lane in range(4):
                    word = np.uint64(0)
                    for j in range(8):
                        word |= np.uint64(data[at + j]) << np.uint64(8 * j)
                    mixed = lanes[lane] + word * two
                    lanes[lane] = ((mixed << np.uint64(31)) | (mixed >> np.uint64(33))) * one
                    at += 8
            h = np.uint64(0)
            for lane in range(4):
                shift = (1, 7, 12, 18)[lane]
                h += (lanes[lane] << np.uint64(shift)) | (lanes[lane] >> np.uint64(64 - shift))
            for lane in range(4):
                mixed = lanes[lane] * two
                h ^= ((mixed << np.uint64(31)) | (mixed >> np.uint64(33))) * one
                h = h * one + four
        else:
            h = seed + five
        h += np.uint64(size)
        while at + 8 <= stop:
            word = np.uint64(0)
            for j in range(8):
                word |= np.uint64(data[at + j]) << np.uint64(8 * j)
            mixed = word * two
            h ^= ((mixed << np.uint64(31)) | (mixed >> np.uint64(33))) * one
            h = ((h << np.uint64(27)) | (h >> np.uint64(37))) * one + four
            at += 8
        if at + 4 <= stop:
            word = np.uint64(0)
            for j in range(4):
                word |= np.uint64(data[at + j]) << np.uint64(8 * j)
            h ^= word * one
            h = ((h << np.uint64(23)) | (h >> np.uint64(41))) * two + three
            at += 4
        while at < stop:
            h ^= np.uint64(data[at]) * five
            h = ((h << np.uint64(11)) | (h >> np.uint64(53))) * one
            at += 1
        h ^= h >> np.uint64(33)
        h *= two
        h ^= h >> np.uint64(29)
        h *= three
        h ^= h >> np.uint64(32)
        hashes[i] = h
