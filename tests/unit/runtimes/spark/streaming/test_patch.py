"""A patch brings bytes up to date, and is short where little has changed."""

import numpy as np
import pytest

patches = pytest.importorskip("holdfast.runtimes.spark.streaming.patch")


def test_a_patch_is_as_long_as_the_changes():
    rng = np.random.default_rng(1)
    old = rng.bytes(100_000)
    new = old[:1_000] + b"changed!" + old[1_008:50_000] + b"more" + old[50_000:-5]
    change = patches.patch(old, new)
    assert patches.apply_patch(old, change) == new
    assert len(change) < 100
    other = rng.bytes(90_000)
    assert patches.apply_patch(old, patches.patch(old, other)) == other


@pytest.mark.parametrize("old", [b"", b"abc", bytes(5_000)])
@pytest.mark.parametrize("new", [b"", b"abd", bytes(6_000)])
def test_patches_of_short_empty_and_uniform_bytes_restore_the_new_bytes(old, new):
    assert patches.apply_patch(old, patches.patch(old, new)) == new
