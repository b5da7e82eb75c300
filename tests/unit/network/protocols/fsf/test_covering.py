"""Filtering: whether boxes cover a box, by chance and exactly, against every point of a small grid."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import UsageError
from holdfast.network.protocols.fsf.covering import (
    ExactCovering,
    PairwiseCovering,
    ProbabilisticCovering,
    Verdict,
    relevant_boxes,
    smallest_share,
)

CERTAIN = ProbabilisticCovering(error=1e-9, most=10**6)


def chance():
    return np.random.default_rng(7)


@st.composite
def sides(draw, width):
    lows = draw(st.lists(st.integers(0, 4), min_size=width, max_size=width))
    return [(low, draw(st.integers(low, 4))) for low in lows]


@st.composite
def problems(draw):
    """A box and others of one width, with whole numbers for ends."""
    width = draw(st.integers(1, 3))
    box = draw(sides(width))
    others = draw(st.lists(sides(width), min_size=1, max_size=6))
    return np.array(box, float), np.array(others, float)


def has(box, point):
    return all(low <= value <= high for (low, high), value in zip(box, point, strict=True))


def is_covered(box, boxes):
    """By looking at whole numbers and halves, between which nothing changes."""
    steps = [np.arange(low, high + 0.25, 0.5) for low, high in box]
    return all(any(has(other, point) for other in boxes) for point in product(*steps))


@settings(max_examples=150)
@given(problems())
def test_exact_filtering_agrees_with_a_search_over_every_point(problem):
    box, boxes = problem
    right = Verdict.COVERED if is_covered(box, boxes) else Verdict.NOT_COVERED
    assert ExactCovering().decide(box, boxes, chance()) is right


@settings(max_examples=100)
@given(problems(), st.integers(0, 5))
def test_probabilistic_filtering_errs_in_one_direction_only(problem, seed):
    box, boxes = problem
    hasty = ProbabilisticCovering(error=0.9, most=1).decide(box, boxes, np.random.default_rng(seed))
    if is_covered(box, boxes):
        assert hasty is Verdict.COVERED
    else:
        assert CERTAIN.decide(box, boxes, chance()) is Verdict.NOT_COVERED


@settings(max_examples=100)
@given(problems())
def test_unnecessary_boxes_do_not_change_the_answer(problem):
    box, boxes = problem
    boxes = boxes[((boxes[:, :, 0] <= box[:, 1]) & (boxes[:, :, 1] >= box[:, 0])).all(axis=1)]
    assert is_covered(box, relevant_boxes(box, boxes)) == is_covered(box, boxes)


def test_two_boxes_together_cover_what_neither_covers_alone():
    wanted, stored = np.array([[15.0, 35.0]]), np.array([[[10.0, 30.0]], [[20.0, 40.0]]])
    assert PairwiseCovering().decide(wanted, stored, chance()) is Verdict.NOT_COVERED
    assert ExactCovering().decide(wanted, stored, chance()) is Verdict.COVERED
    assert ProbabilisticCovering().decide(wanted, stored, chance()) is Verdict.COVERED


def test_there_is_no_gap_between_two_neighbouring_numbers():
    wanted = np.array([[0.0, 1.0]])
    half = np.nextafter(0.5, 1)
    assert ExactCovering().decide(wanted, np.array([[[0, 0.5]], [[half, 1]]]), chance()) is Verdict.COVERED
    later = np.nextafter(half, 1)
    assert (
        ExactCovering().decide(wanted, np.array([[[0, 0.5]], [[later, 1]]]), chance()) is Verdict.NOT_COVERED
    )


def test_ranges_may_have_no_end():
    everything = np.array([[-np.inf, np.inf]] * 2)
    halves = np.array([[[-np.inf, 3], [-np.inf, np.inf]], [[3, np.inf], [-np.inf, np.inf]]])
    for filtering in (ExactCovering(), ProbabilisticCovering()):
        assert filtering.decide(everything, halves, chance()) is Verdict.COVERED
        assert filtering.decide(everything, halves[:1], chance()) is Verdict.NOT_COVERED


def test_an_exceeded_work_limit_gives_not_covered():
    """Four boxes leave a hole in the middle that no corner shows; one more closes it."""
    wanted = np.array([[0.0, 3.0], [0.0, 3.0]])
    around = [[[0, 2], [0, 1]], [[2, 3], [0, 2]], [[1, 3], [2, 3]], [[0, 1], [1, 3]]]
    closed = np.array([*around, [[1, 2], [1, 2]]], float)
    assert ExactCovering().decide(wanted, np.array(around, float), chance()) is Verdict.NOT_COVERED
    assert ExactCovering().decide(wanted, closed, chance()) is Verdict.COVERED
    assert ExactCovering(most=4).decide(wanted, closed, chance()) is Verdict.UNDECIDED


def test_a_smaller_error_takes_more_points_up_to_a_bound():
    wanted, stored = np.array([[0.0, 10.0]]), np.array([[[0.0, 4.0]], [[5.0, 10.0]]])
    assert smallest_share(wanted, stored) == pytest.approx(0.1)  # between 4 and 5
    trials = [ProbabilisticCovering(error, most=100).trials(wanted, stored) for error in (0.5, 0.01, 1e-6)]
    assert trials == [7, 44, 100]


def test_an_error_that_is_no_probability_is_refused():
    with pytest.raises(UsageError, match="error probability between 0 and 1"):
        ProbabilisticCovering(error=0)
