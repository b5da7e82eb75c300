"""Covering and merging of boxes, as Python and as machine code, against dicts and lists."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels.cover import absorb
from support import naive_boxes as naive

RANGES = st.tuples(st.integers(0, 6), st.integers(0, 3)).map(lambda r: (r[0], r[0] + r[1]))


def boxes(attributes=(0, 1, 2, 64, 65)):
    """Attributes 0 and 64, 1 and 65 have the same sign."""
    return st.dictionaries(st.sampled_from(attributes), RANGES, min_size=1, max_size=3)


def absorb_all(how, some, merging):
    sizes, attributes, bounds = naive.columns([[(a, *box[a]) for a in sorted(box)] for box in some], 3)
    bounds = bounds.astype(np.int32)
    active, remaining = np.zeros(len(some), np.int32), np.zeros(len(some), np.int32)
    count = getattr(absorb, how)(sizes, attributes, bounds, merging, active, remaining)
    left = [
        {int(attributes[i, j]): tuple(bounds[i, j].tolist()) for j in range(sizes[i])} for i in active[:count]
    ]
    return remaining.tolist(), left


def points(some, attributes):
    """Every point of a small grid that one of the boxes contains."""
    grid = (dict(zip(attributes, point, strict=True)) for point in product(range(10), repeat=len(attributes)))
    return [p for p in grid if any(all(low <= p[a] <= high for a, (low, high) in b.items()) for b in some)]


@pytest.mark.parametrize("how", ["body", "compiled"])
@given(some=st.lists(boxes(), min_size=1, max_size=15), merging=st.booleans())
def test_merged_boxes_are_irreducible_and_as_many_as_those_of_the_naive_twin(how, some, merging):
    counts, left = absorb_all(how, some, merging)
    assert len(left) == counts[-1]
    for a, b in product(left, left):
        assert a is b or not naive.covers(a, b)
        assert a is b or not merging or naive.unite(a, b) is None
    if not merging:
        expected, stored = naive.absorb(some, merging)
        assert counts == expected
        assert sorted(map(sorted_items, left)) == sorted(map(sorted_items, stored))


def sorted_items(box):
    return sorted(box.items())


@pytest.mark.parametrize("how", ["body", "compiled"])
@given(some=st.lists(boxes((0, 1)), min_size=1, max_size=10), merging=st.booleans())
def test_merging_boxes_neither_adds_nor_removes_points(how, some, merging):
    """The boxes that are left contain the points that all contained."""
    _, left = absorb_all(how, some, merging)
    assert points(left, (0, 1)) == points(some, (0, 1))


@pytest.mark.parametrize("how", ["body", "compiled"])
@given(some=st.lists(boxes((0,)), min_size=1, max_size=15))
def test_the_order_of_merging_does_not_matter_in_one_attribute(how, some):
    counts, left = absorb_all(how, some, True)
    expected, stored = naive.absorb(some, True)
    assert counts == expected
    assert sorted(map(sorted_items, left)) == sorted(map(sorted_items, stored))


def test_t4_two_overlapping_ranges_become_one():
    assert absorb_all("body", [{0: (1, 9)}, {0: (6, 14)}], True) == ([1, 1], [{0: (1, 14)}])
    assert absorb_all("body", [{0: (1, 9)}, {0: (6, 14)}], False)[0] == [1, 2]


def test_a_merged_box_is_merged_again():
    """The third joins the first two, and what they become covers the fourth."""
    some = [{0: (1, 3), 1: (5, 6)}, {0: (7, 9), 1: (5, 6)}, {0: (2, 8), 1: (5, 6)}, {0: (4, 6), 1: (6, 6)}]
    assert absorb_all("body", some, True) == ([1, 2, 1, 1], [{0: (1, 9), 1: (5, 6)}])
