"""Patches: the difference of new bytes from old bytes, for states of which little changes in a batch."""

from __future__ import annotations

import msgspec
import numpy as np

from ....kernels.delta import BLOCK, common, rebuilt
from ....kernels.jit import SMALL


class Patch(msgspec.Struct, array_like=True, frozen=True):
    """A patch: the size of the new bytes, the ranges copied from the old ones, and the bytes between them.

    `copies` has triples of 32-bit numbers: position in the new bytes, position in the old ones, length.
    """

    size: int
    copies: bytes
    others: bytes


def patch(old: bytes, new: bytes) -> bytes:
    """Return a patch that turns old bytes into new ones. Short bytes are included whole."""
    copies = _common(old, new)
    is_other = np.zeros(len(new) + 1, np.int8)
    is_other[copies[:, 0]] += 1
    is_other[copies[:, 0] + copies[:, 2]] -= 1
    others = np.frombuffer(new, np.uint8)[np.cumsum(is_other[:-1]) == 0]
    return msgspec.msgpack.encode(Patch(len(new), copies.tobytes(), others.tobytes()))


def _common(old: bytes, new: bytes) -> np.ndarray:
    if min(len(old), len(new)) < SMALL:
        return np.empty((0, 3), np.int32)
    slots = np.full(1 << (len(old) // BLOCK).bit_length() + 1, -1, np.int32)
    copies = np.empty((len(new) // 24, 3), np.int32)
    new_bytes, old_bytes = np.frombuffer(new, np.uint8), np.frombuffer(old, np.uint8)
    return copies[: common(new_bytes, old_bytes, slots, copies)]


def apply_patch(old: bytes, raw: bytes) -> bytes:
    """Return the new bytes, from the old ones and a patch."""
    decoded = msgspec.msgpack.decode(raw, type=Patch)
    new = np.empty(decoded.size, np.uint8)
    copies = np.frombuffer(decoded.copies, np.int32).reshape(-1, 3)
    rebuilt(copies, np.frombuffer(old, np.uint8), np.frombuffer(decoded.others, np.uint8), new)
    return new.tobytes()
