"""Many comparisons as one search, beside a plain loop over the constants."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels.rank import mark

numbers = st.sampled_from([-math.inf, -1.5, -0.0, 0.0, 1.0, 1.5, 1e308, math.inf]) | st.floats(
    allow_nan=False
)


def cell(value: float, bounds: list[float]) -> int:
    """The cell of a value among constants, counted one by one."""
    if math.isnan(value):
        return 2 * len(bounds) + 1
    return sum(bound < value for bound in bounds) + sum(bound <= value for bound in bounds)


@given(st.lists(numbers | st.just(math.nan), max_size=20), st.lists(numbers, min_size=1, max_size=9))
def test_each_value_is_marked_with_its_cell(values, constants):
    bounds = np.unique(constants)
    table = np.arange(2 * len(bounds) + 2, dtype=np.uint64) << np.uint64(1)
    for run in (mark.body, mark.compiled):
        words = np.ones(len(values), np.uint64)
        run(np.array(values, np.float64), bounds, table, words)
        assert words.tolist() == [1 | cell(value, bounds.tolist()) << 1 for value in values]
