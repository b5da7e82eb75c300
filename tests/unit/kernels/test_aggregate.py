"""Functions of windows, as Python and as machine code, against a naive twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.kernels import aggregate
from holdfast.kernels.functions import AGGREGATES
from support import naive_windows as naive

numbers = st.one_of(
    st.sampled_from(
        (0.1, 0.2, 0.3, -0.3, 1.0, 1e16, -1e16, 1e308, -1e308, 5e-324, -0.0, math.inf, -math.inf)
    ),
    st.floats(allow_nan=True),
)


@st.composite
def windows(draw):
    """Values, and windows whose ends only move forward."""
    values = draw(st.lists(numbers, max_size=14))
    ends = st.integers(0, len(values))
    low = sorted(draw(st.lists(ends, min_size=1, max_size=8)))
    high = sorted(draw(st.lists(ends, min_size=len(low), max_size=len(low))))
    return values, low, [max(pair) for pair in zip(low, high, strict=True)]


@pytest.fixture(scope="module", params=["body", "compiled"])
def way(request):
    """Run a test with the Python function and with the compiled kernel."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_sums", "_extremes"):
            patch.setattr(aggregate, name, getattr(getattr(aggregate, name), request.param))
        yield request.param


@pytest.mark.parametrize("function", AGGREGATES)
@settings(max_examples=40)
@given(windows())
@example(([1e308, 1e308, -1e308], [0, 1], [3, 3]))
@example(([1.0, 2.0**-53, 2.0**-106], [0, 0, 1], [2, 3, 3]))
@example(([-5e-324, 5e-324, 2.0**-1022, math.nan], [0, 1, 2, 3], [2, 3, 4, 4]))
def test_every_window_equals_a_naive_computation(way, function, some):
    values, low, high = some
    found = AGGREGATES[function].of_windows(np.array(values, float), np.array(low), np.array(high))
    expected = [naive.FUNCTIONS[function](values[a:b]) for a, b in zip(low, high, strict=True)]
    np.testing.assert_array_equal(found, expected)


def test_values_that_left_a_window_have_no_effect():
    """A running float sum would keep the rounding of 1e16; a mean of tenths would drift."""
    values = np.array([0.1, 1e16, 0.1, 0.1, 0.1])
    found = aggregate.sums(values, np.array([0, 1, 2]), np.array([3, 4, 5]))
    assert found.tolist() == [1e16, 1e16, 0.30000000000000004]
    assert found[2] == math.fsum(values[2:])


def test_many_squared_differences_from_the_mean_are_computed_in_chunks(monkeypatch):
    values, high = np.arange(50.0) ** 2, np.arange(1, 51)
    whole = aggregate.deviations(values, np.maximum(high - 7, 0), high)
    monkeypatch.setattr(aggregate, "_PAIRS", 10)
    np.testing.assert_array_equal(aggregate.deviations(values, np.maximum(high - 7, 0), high), whole)
