"""The bitmap kernels, as Python and as machine code, against boxes and points one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels.match import contain, gather, lie_within, locate, place, span
from support import naive_boxes as naive

CUTS = np.array([[0.5, 2.0], [1.0, 1.0], [-5.0, 2.75]])
"""Three buckets for each attribute; of the second, one is empty."""

WAYS = ["body", "compiled"]


def arrange(how, boxes, slots, words):
    """Boxes in their slots, and the bitmaps."""
    blocks = 1 + max(slots, default=0) // (64 * words)
    room = blocks * 64 * words
    sizes, attributes, bounds = naive.columns(boxes)
    rows = np.zeros(room, np.int16), np.zeros((room, 4), np.int16), np.zeros((room, 4, 2))
    for column, given_ in zip(rows, (sizes, attributes, bounds), strict=True):
        column[slots] = given_
    first, last = (np.zeros((len(boxes), naive.WIDTH), np.uint8) for _ in range(2))
    getattr(span, how)(sizes, attributes, bounds, CUTS, first, last)
    maps = np.full((blocks, naive.WIDTH, 4, words), 0xAAAAAAAAAAAAAAAA, np.uint64)
    tops = np.zeros((naive.WIDTH, 4, 1 + blocks // 64), np.uint64)
    live = np.zeros((blocks, words), np.uint64)
    getattr(place, how)(np.array(slots, np.int32), first, last, maps, tops, live)
    return rows, maps, tops, live


def match_all(how, rows, maps, tops, live, points, room):
    """The slots that contain each point, in as many calls as the room makes necessary."""
    buckets = np.zeros(points.shape, np.uint8)
    blocks = np.zeros((len(points), tops.shape[2]), np.uint64)
    getattr(locate, how)(points, CUTS, tops, buckets, blocks)
    slots, owners = np.zeros(room, np.int32), np.zeros(room, np.int32)
    at, calls = (0, 0, 0), 0
    while at[0] < len(maps):
        assert calls < 1000
        if calls:
            slots, owners = np.concatenate((slots, slots)), np.concatenate((owners, owners))
        at = getattr(contain, how)(*rows, points, maps, live, buckets, blocks, *at, slots, owners)
        calls += 1
    ends, found = np.zeros(len(points), np.int64), np.zeros(at[2], np.int32)
    getattr(gather, how)(owners[: at[2]], slots[: at[2]], np.arange(len(rows[0])), ends, found)
    return [part.tolist() for part in np.split(found, ends)[:-1]]


@pytest.mark.parametrize("how", WAYS)
@given(data=st.data())
def test_the_bitmaps_find_what_comparisons_find(how, data):
    words = data.draw(st.integers(1, 2), "words")
    boxes = data.draw(st.lists(naive.boxes(), min_size=1, max_size=12), "boxes")
    slots = data.draw(st.lists(st.integers(0, 200), min_size=len(boxes), max_size=len(boxes), unique=True))
    points = data.draw(st.lists(naive.points(), min_size=1, max_size=5), "points")
    rows, *bitmaps = arrange(how, boxes, slots, words)
    found = match_all(how, rows, *bitmaps, np.array(points), 64 * words)
    assert found == naive.containing(dict(zip(slots, boxes, strict=True)), points)


@pytest.mark.parametrize("how", WAYS)
def test_a_slot_can_be_written_again(how):
    rows, maps, tops, live = arrange(how, [[(0, 0.0, 1.0)]], [5], 1)
    sizes, attributes, bounds = naive.columns([[(0, 2.5, 3.0)]])
    for column, given_ in zip(rows, (sizes, attributes, bounds), strict=True):
        column[[5]] = given_
    first, last = np.zeros((1, 3), np.uint8), np.zeros((1, 3), np.uint8)
    getattr(span, how)(sizes, attributes, bounds, CUTS, first, last)
    getattr(place, how)(np.array([5], np.int32), first, last, maps, tops, live)
    points = np.array([[0.5, 0.0, 0.0], [2.75, 0.0, 0.0]])
    assert match_all(how, rows, maps, tops, live, points, 64) == [[], [5]]


@pytest.mark.parametrize("how", WAYS)
def test_more_matches_than_the_buffer_holds_take_several_calls(how):
    """130 boxes that contain everything, in three blocks, five points, and room for 64 at first."""
    everything = [[] for _ in range(130)]
    rows, *bitmaps = arrange(how, everything, list(range(130)), 1)
    found = match_all(how, rows, *bitmaps, np.zeros((5, naive.WIDTH)), 64)
    assert found == [list(range(130))] * 5


@pytest.mark.parametrize("how", WAYS)
@given(boxes=st.lists(naive.boxes(), min_size=1, max_size=6))
def test_a_bit_is_set_exactly_in_the_buckets_that_a_box_meets(how, boxes):
    _, maps, tops, live = arrange(how, boxes, list(range(len(boxes))), 1)
    assert live.tolist() == [[2 ** len(boxes) - 1]]
    for slot, box in enumerate(boxes):
        for a in range(naive.WIDTH):
            met = set(range(4))
            for attribute, low, high in box:
                if attribute == a:
                    met &= set(range(naive.buckets(CUTS[a], low), naive.buckets(CUTS[a], high) + 1))
            assert {k for k in range(4) if int(maps[0, a, k, 0]) >> slot & 1} == met
            assert all(tops[a, k, 0] == 1 for k in met)


@pytest.mark.parametrize("how", WAYS)
@given(values=st.lists(naive.points(), min_size=1, max_size=4))
def test_a_value_lies_in_the_bucket_above_the_cuts_that_it_reaches(how, values):
    points = np.array(values)
    buckets = np.zeros(points.shape, np.uint8)
    tops = np.full((naive.WIDTH, 4, 1), np.uint64(0b101))
    tops[0, 3] = 0b100
    blocks = np.zeros((len(points), 1), np.uint64)
    getattr(locate, how)(points, CUTS, tops, buckets, blocks)
    assert buckets.tolist() == [
        [naive.buckets(cuts, v) for cuts, v in zip(CUTS.tolist(), row, strict=True)] for row in values
    ]
    assert blocks[:, 0].tolist() == [0b100 if np.isnan(row[0]) else 0b101 for row in values]


@pytest.mark.parametrize("how", WAYS)
@given(data=st.data())
def test_boxes_inside_a_box_have_its_attributes_and_smaller_ranges(how, data):
    ends = st.tuples(st.sampled_from(naive.ENDS), st.sampled_from(naive.ENDS))
    boxes = st.dictionaries(st.integers(0, naive.WIDTH - 1), ends)
    some, wide = data.draw(st.lists(boxes, max_size=8), "boxes"), data.draw(boxes, "wide")
    rows = naive.columns([[(a, low, high) for a, (low, high) in box.items()] for box in some])
    lows, highs = (np.array([wide.get(a, (np.nan,) * 2)[i] for a in range(naive.WIDTH)]) for i in (0, 1))
    slots = np.zeros(len(some) + 1, np.int32)
    total = getattr(lie_within, how)(*rows, lows, highs, slots)
    assert slots[:total].tolist() == [i for i, box in enumerate(some) if naive.covers(wide, box)]
