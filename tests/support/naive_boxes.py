"""Naive twins of the kernels over boxes, with dicts and lists; they share no code with the kernels."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st

WIDTH = 3
"""Attributes of the boxes and points made here."""

ENDS = [-math.inf, 0.0, 1.0, 2.0, 2.5, 3.0, math.inf]


def contains(box, point):
    """Whether a point has every attribute of a box, inside its ranges; NaN is missing, and inside of none."""
    return all(low <= point[a] <= high for a, low, high in box)


def containing(boxes, points):
    """The numbers of the boxes that contain each point."""
    return [sorted(n for n, box in boxes.items() if contains(box, point)) for point in points]


def buckets(cuts, value):
    """In which bucket a value lies; the last one is for missing values."""
    return len(cuts) + 1 if math.isnan(value) else sum(cut <= value for cut in cuts)


def boxes(most=4):
    """Lists of (attribute, low, high), of which some contradict one another or are empty."""
    ranges = st.tuples(st.integers(0, WIDTH - 1), st.sampled_from(ENDS), st.sampled_from(ENDS))
    return st.lists(ranges, max_size=most)


def points():
    values = st.sampled_from([*ENDS, -1.0, 0.5, 2.25, math.nan])
    return st.lists(values, min_size=WIDTH, max_size=WIDTH)


def columns(some, most=4):
    """Boxes as the arrays that the kernels take: sizes, attributes, bounds."""
    sizes = np.array([len(box) for box in some], np.int16)
    attributes = np.zeros((len(some), most), np.int16)
    bounds = np.zeros((len(some), most, 2))
    for i, box in enumerate(some):
        for j, (attribute, low, high) in enumerate(box):
            attributes[i, j], bounds[i, j] = attribute, (low, high)
    return sizes, attributes, bounds


def covers(wide, narrow):
    """Whether a box, as a dict of ranges, has no attribute that another lacks, and contains it in each."""
    return all(
        a in narrow and low <= narrow[a][0] and narrow[a][1] <= high for a, (low, high) in wide.items()
    )


def unite(one, other):
    """Two boxes as one: equal in all attributes but one, in which they overlap; else nothing."""
    if one.keys() != other.keys():
        return None
    different = [a for a in one if one[a] != other[a]]
    if len(different) != 1:
        return None
    (a,) = different
    (low, high), (begin, end) = one[a], other[a]
    if low > end or begin > high:
        return None
    return one | {a: (min(low, begin), max(high, end))}


def absorb(some, merging):
    """Let boxes come in turn: how many are left after each, and which in the end."""
    left, counts = [], []
    for box in some:
        if not any(covers(old, box) for old in left):
            while True:
                left = [old for old in left if not covers(box, old)]
                partner = next((old for old in left if merging and unite(box, old)), None)
                if partner is None:
                    break
                left.remove(partner)
                box = unite(box, partner)
            left.append(box)
        counts.append(len(left))
    return counts, left
