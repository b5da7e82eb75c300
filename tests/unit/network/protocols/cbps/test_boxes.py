"""Large sets of boxes: insertions, deletions and matches against comparing one by one."""

import os

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from holdfast.errors import UsageError
from holdfast.network.protocols.cbps import boxes as module
from holdfast.network.protocols.cbps.boxes import Boxes, BoxRanges
from support import naive_boxes as naive


def ranges(some, most=4):
    sizes, attributes, bounds = naive.columns(some, most)
    return BoxRanges.of(attributes, bounds[..., 0], bounds[..., 1], sizes)


def found(boxes, points):
    matches = boxes.match(np.array(points))
    return [sorted(matches.of(p).tolist()) for p in range(len(points))]


class AgainstComparing(RuleBasedStateMachine):
    """Boxes come, go and are matched; blocks are small, so that every arrangement happens."""

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(module, "WORDS", 1)
        self.patch.setattr(module, "TILE", 2)
        self.boxes, self.known = Boxes(naive.WIDTH), {}

    def teardown(self):
        self.patch.undo()

    @rule(
        some=st.lists(naive.boxes(), max_size=5), copies=st.sampled_from([1, 1, 30]), most=st.integers(4, 6)
    )
    def insert(self, some, copies, most):
        many = some * copies
        numbers = self.boxes.insert(ranges(many, most)).tolist()
        assert not self.known.keys() & set(numbers)
        self.known.update(zip(numbers, many, strict=True))

    @precondition(lambda self: self.known)
    @rule(data=st.data(), share=st.sampled_from([1, 2, 3]))
    def delete(self, data, share):
        numbers = sorted(self.known)
        begin = data.draw(st.integers(0, len(numbers) - 1))
        gone = numbers[begin::share]
        self.boxes.delete(gone)
        for number in gone:
            del self.known[number]

    @rule(points=st.lists(naive.points(), max_size=5))
    def match(self, points):
        if points:
            assert found(self.boxes, points) == naive.containing(self.known, points)

    @invariant()
    def it_counts(self):
        assert len(self.boxes) == len(self.known)


TestBoxesAgainstComparing = AgainstComparing.TestCase
TestBoxesAgainstComparing.settings = settings(
    max_examples=int(os.environ.get("HOLDFAST_EXAMPLES") or 100) // 3
)


def test_a_realistic_set_gives_the_result_of_brute_force():
    random = np.random.default_rng(5)
    count, width, most = 6000, 8, 4
    attributes = np.argsort(random.random((count, width)), axis=1)[:, :most]
    lows = random.random((count, most)) * 0.6
    boxes = Boxes(width, BoxRanges.of(attributes, lows, lows + 0.4))
    points = random.random((40, width))
    points[::7, 3] = np.nan
    matches = boxes.match(points)
    for p, point in enumerate(points):
        values = point[attributes]
        inside = ((lows <= values) & (values <= lows + 0.4)).all(axis=1)
        assert np.array_equal(np.sort(matches.of(p)), np.flatnonzero(inside))
    assert matches.ends[-1] > 1000


def test_numbers_of_deleted_boxes_are_reused():
    boxes = Boxes(1)
    first = boxes.insert(ranges([[(0, 0.0, 1.0)]] * 3))
    boxes.delete(first[1:2])
    assert boxes.insert(ranges([[(0, 2.0, 3.0)]])).tolist() == [1]
    assert found(boxes, [[0.5], [2.5]]) == [[0, 2], [1]]


def test_a_box_without_ranges_contains_every_point():
    boxes = Boxes(2, ranges([[]]))
    assert found(boxes, [[1.0, 2.0], [np.nan, np.nan]]) == [[0], [0]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda b: b.delete([7]), "there is no box of that number"),
        (lambda b: (b.delete([0]), b.delete([0])), "there is no box of that number"),
        (lambda b: b.match(np.zeros((3, 2))), "a point is a row of 1 values"),
        (lambda b: b.insert(ranges([[(2, 0.0, 1.0)]])), "attributes are numbered from 0 to 0"),
        (lambda b: b.insert(BoxRanges.of([[0]], [[1.0, 2.0]], [[1.0]])), "need the same shape"),
    ],
)
def test_wrong_use_of_the_index_raises_an_error(wrong, message):
    with pytest.raises(UsageError, match=message):
        wrong(Boxes(1, ranges([[(0, 0.0, 1.0)]])))
