"""Functions over the parts of keys, compared with a slow obvious twin."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels import fold
from holdfast.kernels.functions import AGGREGATES

VALUES = (0.1, 0.3, -2.0, 1.0, 1e16, 1e308, -1e308, math.inf, -math.inf, math.nan, math.nan)
changes = st.lists(st.tuples(st.integers(0, 3), st.sampled_from(VALUES)), max_size=12)
keys = st.lists(st.tuples(changes, st.lists(st.integers(0, 12), max_size=8)), min_size=1, max_size=3)
PARTS = 4


def one_by_one(some, function):
    """The function, at each instant, of what every part showed last."""
    for of_key, instants in some:
        for seen in sorted(instants):
            shown = dict(of_key[:seen])
            values = np.array(list(shown.values()), np.float64)
            (found,) = AGGREGATES[function].of_windows(values, np.array([0]), np.array([len(values)]))
            yield float(found)


@pytest.mark.parametrize("function", AGGREGATES)
@pytest.mark.parametrize("together", [3, 1 << 20])
@given(keys)
def test_functions_over_parts_equal_those_of_their_last_values(function, together, some):
    starts = np.append(0, np.cumsum([len(of_key) for of_key, _ in some]))
    ends = np.append(0, np.cumsum([len(instants) for _, instants in some]))
    reach = [starts[k] + min(seen, len(of_key)) for k, (of_key, at) in enumerate(some) for seen in sorted(at)]
    parts = [k * PARTS + part for k, (of_key, _) in enumerate(some) for part, _ in of_key]
    values = np.array([value for of_key, _ in some for _, value in of_key], np.float64)
    owned = np.arange(len(some) + 1) * PARTS
    folded = fold.FoldParts(np.array(reach, np.int64), ends, starts, np.array(parts, np.int64), owned)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fold, "_TOGETHER", together)
        found = AGGREGATES[function].of_parts(folded, values)
    np.testing.assert_array_equal(found, list(one_by_one(some, function)))


def deviations(shown):
    """Deviations of parts from an instant on, and of windows over the same values."""
    size = np.arange(1, len(shown) + 1)
    parts = fold.FoldParts(
        size, np.array([0, len(shown)]), np.array([0, len(shown)]), size - 1, np.array([0, len(shown)])
    )
    return AGGREGATES["stddev"].of_parts(parts, shown), AGGREGATES["stddev"].of_windows(
        shown, np.zeros(len(shown), np.int64), size
    )


@pytest.mark.parametrize("scale", [1e-160, 1e-8, 1.0, 1e16, 1e150, 1e154])
def test_a_deviation_is_rounded_once_whatever_the_order_and_size_of_squares(scale):
    chance = np.random.default_rng(1)
    for spread in (0.0, 1.0, 20.0):
        found, expected = deviations(
            scale * chance.normal(size=300) * np.exp(spread * chance.normal(size=300))
        )
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("least", [0.0, 2.0**-40])
def test_a_sum_of_squares_halfway_between_two_floats_is_rounded_exactly(least):
    halfway = [2.0**26, -(2.0**26), 0.5, -0.5, 0.5, -0.5, least, -least]
    found, expected = deviations(np.array(halfway))
    np.testing.assert_array_equal(found, expected)
    squares = 2.0**53 if least == 0 else 2.0**53 + 2
    assert found[-1] == math.sqrt(squares / 7)
