"""Common runs of two byte strings: every reported run is one, and few are missed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels.delta import BLOCK, LEAST, common, rebuilt

BYTES = st.binary(max_size=200) | st.integers(0, 200).map(bytes)


def found(how, old: bytes, new: bytes) -> np.ndarray:
    slots = np.full(1024, -1, np.int32)
    copies = np.empty((max(1, len(new) // LEAST), 3), np.int32)
    mine, theirs = (np.frombuffer(raw, np.uint8) for raw in (new, old))
    return copies[: how(mine, theirs, slots, copies)]


def put_together(copies: np.ndarray, old: bytes, new: bytes) -> bytes:
    others, done = b"", 0
    for at, _, length in copies.tolist():
        others, done = others + new[done:at], at + length
    out = np.empty(len(new), np.uint8)
    rebuilt(copies, np.frombuffer(old, np.uint8), np.frombuffer(others + new[done:], np.uint8), out)
    return out.tobytes()


@given(BYTES, st.lists(st.tuples(st.integers(0, 200), st.integers(0, 40), BYTES), max_size=4))
def test_a_delta_applied_to_the_old_bytes_gives_the_new_bytes(old, edits):
    new = old
    for at, length, by in edits:
        new = new[:at] + by + new[at + length :]
    copies = found(common.body, old, new)
    assert np.array_equal(copies, found(common.compiled, old, new))
    for at, source, length in copies.tolist():
        assert length >= LEAST
        assert new[at : at + length] == old[source : source + length]
    assert put_together(copies, old, new) == new


@pytest.mark.parametrize("how", [common.body, common.compiled], ids=["python", "compiled"])
def test_unchanged_bytes_are_found_at_their_old_and_new_positions(how):
    old = np.random.default_rng(1).bytes(20 * BLOCK)
    changed = old[:100] + b"12345678" + old[108:]
    assert found(how, old, changed).tolist() == [[0, 0, 100], [108, 108, len(old) - 108]]
    moved = b"first" + old[BLOCK:]
    assert found(how, old, moved).tolist() == [[5, BLOCK, len(old) - BLOCK]]
