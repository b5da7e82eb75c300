"""Bytes as what has changed in others: what a batch writes of a state that is mostly as it was."""

from __future__ import annotations

import msgspec
import numpy as np

from ....errors import UsageError
from ....kernels.delta import BLOCK, common, rebuilt
from ....kernels.jit import SMALL


class Patch(msgspec.Struct, array_like=True, frozen=True):
    """How long the new bytes are; what they have of the old ones, as triples of 32-bit numbers (where in the
    new, where in the old, how much); and the bytes between."""

    size: int
    copies: bytes
    others: bytes


def patch(old: bytes, new: bytes) -> bytes:
    """What brings the old bytes up to date; what is short is given whole."""
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
    mine, theirs = np.frombuffer(new, np.uint8), np.frombuffer(old, np.uint8)
    return copies[: common(mine, theirs, slots, copies)]


def patched(old: bytes, raw: bytes) -> bytes:
    """The new bytes."""
    try:
        it = msgspec.msgpack.decode(raw, type=Patch)
    except msgspec.ValidationError:
        raise UsageError(EARLIER) from None
    new = np.empty(it.size, np.uint8)
    copies = np.frombuffer(it.copies, np.int32).reshape(-1, 3)
    rebuilt(copies, np.frombuffer(old, np.uint8), np.frombuffer(it.others, np.uint8), new)
    return new.tobytes()


EARLIER = (
    "this checkpoint was made by an earlier version of Holdfast: end that query with the version "
    "that made it, then start a new checkpoint"
)
