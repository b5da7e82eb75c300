"""Gaps between boxes, against every point of a small grid."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels.gap import GAP, NONE, UNKNOWN, find_gap

GRID = [(low, high) for low in range(4) for high in range(low, 4)]


def naive(boxes, box):
    """A point of the box, whole numbers and halves, that is in none of the boxes."""
    steps = [np.arange(low, high + 0.25, 0.5) for low, high in box]
    for point in product(*steps):
        if not any(all(low <= v <= high for (low, high), v in zip(b, point, strict=True)) for b in boxes):
            return GAP
    return NONE


@st.composite
def problems(draw):
    width = draw(st.integers(1, 3))
    one = st.lists(st.sampled_from(GRID), min_size=width, max_size=width)
    wide = st.lists(st.sampled_from([(0, 3), (0, 2), (1, 3), (2, 3), (0, 1)]), min_size=width, max_size=width)
    return np.array(draw(st.lists(one | wide, min_size=1, max_size=8)), float), np.array(draw(one), float)


@pytest.mark.parametrize("form", ["body", "compiled"])
def test_a_gap_is_found_if_and_only_if_there_is_one(form):
    @settings(max_examples=100)
    @given(problems())
    def check(problem):
        assert getattr(find_gap, form)(*problem, 10**6) == naive(*problem)

    check()


def test_the_gap_search_grows_its_memory_for_many_thin_boxes():
    edges = np.arange(301.0)
    thin = np.stack((edges[:-1], edges[1:]), axis=1)[:, None, :]
    box = np.array([[0.0, 300.0]])
    assert find_gap.compiled(thin, box, 10**6) == NONE
    assert find_gap.compiled(np.delete(thin, 150, axis=0), box, 10**6) == GAP
    assert find_gap.compiled(thin, box, 1000) == UNKNOWN
