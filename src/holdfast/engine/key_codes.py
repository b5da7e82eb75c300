"""A growing dictionary of scope keys. It is compact enough for millions of keys."""

from __future__ import annotations

from typing import Any, TypeVar
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..errors import UsageError
from ..kernels import keys as kernels
from ..model.batch import in_use

Codes = NDArray[np.int32]
Scalar = TypeVar("Scalar", bound=np.generic)

_RECENT = 1 << 16
_ENTRY = 150  # bytes of a recent key
_FEW = 4096
_PIECES = 1 << 12  # arrays of changed codes before they are merged
_AT_ONCE = 1 << 16  # keys for which room is made before they are looked up


class KeyCodes:
    """Dense codes 0, 1, 2, … for text keys, in the order in which the keys first occurred.

    One array contains the text of all keys, and a hash table refers to it. This takes about 30 bytes for each
    key and its text, a quarter of the size of a ``dict``. A small ``dict`` of recent keys makes single
    look-ups fast.
    """

    def __init__(self) -> None:
        self._count = 0
        self._slots = np.full(16, -1, np.int32)
        self._hashes = np.zeros(8, np.uint32)
        self._ends = np.zeros(8, np.int64)
        self._data = np.zeros(64, np.uint8)
        self._after = np.full(8, -1, np.int32)
        self._recent: dict[str, int] = {}

    @classmethod
    def of(cls, keys: pa.StringArray) -> KeyCodes:
        """Return a table that contains the given keys."""
        found = cls()
        found.codes(keys)
        return found

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        arrays = (self._slots, self._hashes, self._ends, self._data, self._after)
        return sum(array.nbytes for array in arrays)

    @property
    def held(self) -> int:
        """The approximate size in bytes, including recent keys."""
        return self.nbytes + _ENTRY * len(self._recent)

    def code(self, key: str) -> int:
        """Return the code of a key; an unknown key gets the next code."""
        code = self._recent.get(key)
        return self._find(key) if code is None else code

    def codes(self, keys: pa.StringArray) -> Codes:
        """Return the code of each key; unknown keys get the next codes."""
        if len(keys) < _FEW:
            return np.fromiter(map(self.code, keys.to_pylist()), np.int32, len(keys))
        bounds, text = _bytes(keys)
        codes = np.empty(len(keys), np.int32)
        for at in range(0, len(keys), _AT_ONCE):
            some = codes[at : at + _AT_ONCE]
            self._make_room(len(some), int(bounds[at + len(some)] - bounds[at]))
            self._look_up(bounds[at : at + len(some) + 1], text, some)
        return codes

    def known(self, keys: pa.StringArray) -> Codes:
        """Return the code of each key, -1 for unknown keys.

        Several threads may call this method at the same time. They share only a hint about the next key,
        which may be wrong.
        """
        if len(keys) < _FEW:
            return np.fromiter(map(self._known, keys.to_pylist()), np.int32, len(keys))
        codes = np.empty(len(keys), np.int32)
        self._look_up(*_bytes(keys), codes, self._count)
        return codes

    def encode(self, names: pa.StringArray) -> pa.DictionaryArray:
        """Return names as a dictionary array, with the codes of this table if that is faster."""
        if names.null_count or len(names) < self._count // 8:
            return names.dictionary_encode()
        codes = pa.array(self.codes(names))
        return in_use(pa.DictionaryArray.from_arrays(codes, self.all()))

    def _look_up(
        self, bounds: NDArray[np.int32], text: NDArray[np.uint8], codes: Codes, most: int = -1
    ) -> None:
        """Write the code of each key to `codes`. Unknown keys are added while the table has fewer than `most`
        keys."""
        self._count = kernels.look_up(
            bounds[:-1],
            bounds[1:],
            text,
            kernels.CRC,
            self._slots,
            self._hashes,
            self._ends,
            self._data,
            self._after,
            self._count,
            most,
            codes,
        )

    def key(self, code: int) -> str:
        """Return the key of a code."""
        begin = self._ends[code - 1] if code else 0
        return self._data[begin : self._ends[code]].tobytes().decode()

    def take(self, codes: NDArray[np.int_]) -> pa.StringArray:
        """Return the keys of many codes as an Arrow array."""
        if len(codes) < _FEW:
            return pa.array([self.key(int(code)) for code in codes], pa.string())
        return self.all().take(pa.array(codes))

    def all(self) -> pa.StringArray:
        """Return every key, in the order of the codes. The result shares memory with the table."""
        offsets = np.zeros(self._count + 1, np.int32)
        offsets[1:] = self._ends[: self._count]
        return pa.StringArray.from_buffers(
            self._count, pa.py_buffer(offsets), pa.py_buffer(self._data[: int(offsets[-1])])
        )

    def _find(self, key: str) -> int:
        """Return the code of a key that is not among the recent keys; add an unknown key."""
        try:
            raw = key.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"the key {key!r} is not valid text: {error.reason}") from None
        h = crc32(raw)
        code = self._seek(key, h)
        if code < 0:
            code = self._add(raw, h)
        if len(self._recent) >= _RECENT:
            self._recent.clear()
        self._recent[key] = code
        return code

    def _known(self, key: str) -> int:
        """Return the code of a key, -1 if it is unknown."""
        code = self._recent.get(key)
        return self._seek(key, crc32(key.encode())) if code is None else code

    def _seek(self, key: str, h: int) -> int:
        """Return the code of a key with the hash `h`, -1 if it is unknown."""
        mask = len(self._slots) - 1
        at = h & mask
        while (code := int(self._slots[at])) >= 0:
            if self._hashes[code] == h and self.key(code) == key:
                break
            at = (at + 1) & mask
        return code

    def _add(self, raw: bytes, h: int) -> int:
        """Add a key with the hash `h`, and return its code."""
        code = self._count
        base = int(self._ends[code - 1]) if code else 0
        if code >= len(self._ends) or 2 * code >= len(self._slots) or base + len(raw) > len(self._data):
            self._make_room(1, len(raw))
        mask = len(self._slots) - 1
        at = h & mask
        while self._slots[at] >= 0:
            at = (at + 1) & mask
        self._data[base : base + len(raw)] = np.frombuffer(raw, np.uint8)
        self._ends[code] = base + len(raw)
        self._hashes[code] = h
        self._slots[at] = code
        self._count += 1
        return code

    def _make_room(self, keys: int, text: int) -> None:
        """Extend the arrays for a number of new keys with `text` bytes in total."""
        used = int(self._ends[self._count - 1]) if self._count else 0
        self._data = with_room(self._data, used + text)
        self._ends = with_room(self._ends, self._count + keys)
        self._hashes = with_room(self._hashes, self._count + keys)
        self._after = with_room(self._after, self._count + keys, -1)
        if 2 * (self._count + keys) > len(self._slots):
            size = 1 << (2 * (self._count + keys) - 1).bit_length()
            self._slots = np.full(size, -1, np.int32)
            kernels.rebuild(self._hashes, self._count, self._slots)


class Touched:
    """A collection of the codes of scopes whose state has changed."""

    def __init__(self) -> None:
        self._codes: list[NDArray[Any]] = []
        self._is_lost = False

    def add(self, codes: NDArray[Any]) -> None:
        """Add the codes of changed scopes; negative codes stand for no scope and are ignored."""
        self._codes.append(codes)
        if len(self._codes) > _PIECES:
            self._codes = [self._all()]

    def lose(self) -> None:
        """Mark all scopes as changed, because codes now stand for other scopes."""
        self._is_lost = True

    def take(self) -> NDArray[Any] | None:
        """Return the codes of changed scopes, each once, and clear the collection; ``None`` if all scopes may
        have changed."""
        found, lost = self._all(), self._is_lost
        self._codes, self._is_lost = [], False
        return None if lost else found

    def _all(self) -> NDArray[Any]:
        found = np.unique(np.concatenate(self._codes)) if self._codes else np.empty(0, np.int32)
        return found[np.searchsorted(found, 0) :]


def _bytes(keys: pa.StringArray) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
    """Return the bounds of each key, and the bytes of all keys."""
    _, offsets, text = keys.buffers()
    bounds = np.frombuffer(offsets, np.int32)[keys.offset : keys.offset + len(keys) + 1]
    return bounds, np.frombuffer(text, np.uint8) if bounds[-1] > bounds[0] else np.zeros(1, np.uint8)


def checksums(keys: pa.StringArray) -> NDArray[np.uint32]:
    """Return the CRC-32 of each key; 0 for a missing key."""
    if not len(keys):
        return np.zeros(0, np.uint32)
    bounds, text = _bytes(keys)
    found = np.empty(len(keys), np.uint32)
    kernels.checksums(bounds[:-1], bounds[1:], text, kernels.CRC, found)
    if keys.null_count:
        found[keys.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


def are_distinct(keys: pa.StringArray) -> bool:
    """Whether no two keys are equal. No key may be missing."""
    if len(keys) < _FEW:
        return len(keys.unique()) == len(keys)
    bounds, text = _bytes(keys)
    slots = np.full(1 << (2 * len(keys) - 1).bit_length(), -1, np.int32)
    return bool(kernels.differ(checksums(keys), bounds[:-1], bounds[1:], text, slots))


def with_room(array: NDArray[Scalar], size: int, fill: int = 0) -> NDArray[Scalar]:
    """Return the array with room for ``size`` items along its last axis. When it grows, its length at least
    doubles."""
    have = array.shape[-1]
    if size <= have:
        return array
    wider = np.full((*array.shape[:-1], max(size, 2 * have)), fill, array.dtype)
    wider[..., :have] = array
    return wider
