"""The toggle kernels, as Python and as machine code, against a naive twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels.jit import SMALL
from holdfast.kernels.toggle import both_ways, pair, toggle
from support import naive_kernels as naive

NOWHEN = -(2**63)
SCOPES = 5
WORDS = {np.uint8: 8, np.uint64: 64}


@st.composite
def intervals(draw):
    """Codes, entrance and exit masks, words to begin with, and which filters move."""
    word = draw(st.sampled_from(list(WORDS)))
    masks = st.integers(0, 2 ** WORDS[word] - 1) | st.sampled_from([0, 1, 2 ** WORDS[word] - 1])
    rows = draw(st.lists(st.tuples(st.integers(-1, SCOPES - 1), masks, masks), max_size=25))
    words = draw(st.lists(masks, min_size=SCOPES, max_size=SCOPES))
    moving = draw(masks | st.just(2 ** WORDS[word] - 1))
    codes, enter, leave = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    return (
        np.array(codes, np.int32),
        np.array(enter, word),
        np.array(leave, word),
        np.array(words, word),
        word(moving),
    )


def run_toggle(how, codes, enter, leave, words, moving):
    words, hits = words.copy(), np.full_like(enter, 77)
    how(codes, enter, leave, words, moving, hits)
    return hits.tolist(), words.tolist()


def run_both_ways(how, codes, enter, leave, words, moving):
    low, high = words.copy(), ~words
    hits_low, hits_high = np.full_like(enter, 77), np.full_like(enter, 77)
    how(codes, enter, leave, low, high, moving, hits_low, hits_high)
    return (hits_low.tolist(), low.tolist()), (hits_high.tolist(), high.tolist())


@given(intervals())
def test_toggle_equals_its_naive_twin_in_python_and_machine_code(interval):
    expected = naive.toggle(*interval)
    assert run_toggle(toggle.body, *interval) == expected
    assert run_toggle(toggle.compiled, *interval) == expected


@given(intervals())
def test_toggling_both_ways_equals_two_toggles(interval):
    codes, enter, leave, words, moving = interval
    expected = (
        naive.toggle(codes, enter, leave, words, moving),
        naive.toggle(codes, enter, leave, ~words, moving),
    )
    assert run_both_ways(both_ways.body, *interval) == expected
    assert run_both_ways(both_ways.compiled, *interval) == expected


@st.composite
def passings(draw):
    rows = draw(st.lists(st.tuples(st.integers(0, SCOPES - 1), st.integers(-5, 5)), max_size=25))
    since = draw(st.lists(st.none() | st.integers(-9, -6), min_size=SCOPES, max_size=SCOPES))
    return [c for c, _ in rows], [t for _, t in rows], since


@given(passings())
def test_pair_gives_each_end_its_start(interval):
    codes, times, since = interval
    expected, still_open = naive.pair(codes, times, {c: t for c, t in enumerate(since) if t is not None})
    for how in (pair.body, pair.compiled):
        stored = np.array([NOWHEN if t is None else t for t in since], np.int64)
        began = np.zeros(len(codes), np.int64)
        how(np.array(codes, np.int32), np.array(times, np.int64), stored, began, NOWHEN)
        assert [None if t == NOWHEN else t for t in began.tolist()] == expected
        assert {c: t for c, t in enumerate(stored.tolist()) if t != NOWHEN} == still_open


@pytest.mark.parametrize("word", WORDS)
def test_a_large_call_runs_compiled_with_the_same_result(word):
    size, scopes = 120_000, 700
    random = np.random.default_rng(7)
    top = 2 ** WORDS[word] - 1
    codes = random.integers(-1, scopes, size, np.int32)
    enter, leave = (random.integers(0, top, size, word, endpoint=True) for _ in range(2))
    words = random.integers(0, top, scopes, word, endpoint=True)
    moving = word(top - 4)
    assert size >= SMALL
    by_call = run_toggle(toggle, codes, enter, leave, words, moving)
    assert by_call == run_toggle(toggle.body, codes, enter, leave, words, moving)
    both = run_both_ways(both_ways, codes, enter, leave, words, moving)
    assert both[0] == by_call
    assert both[1] == run_toggle(toggle.body, codes, enter, leave, ~words, moving)


def test_toggle_equals_one_filter_worked_by_hand():
    """[value > 25; value < 22] over two rooms: warm, warm, cool, cool, warm."""
    codes = np.array([0, 0, 1, 0, 1, 0], np.int32)
    values = np.array([26, 27, 30, 21, 20, 20])
    hits, words = run_toggle(
        toggle,
        codes,
        (values > 25).astype(np.uint8),
        (values < 22).astype(np.uint8),
        np.zeros(2, np.uint8),
        np.uint8(1),
    )
    assert hits == [1, 0, 1, 1, 1, 0]
    assert words == [0, 0]


def test_a_part_of_a_history_can_keep_set_reset_or_toggle_a_bit():
    """One filter in four scopes: nothing, a start, an end, and an event that is both."""
    codes = np.array([0, 1, 2, 3], np.int32)
    low, high = np.zeros(4, np.uint8), np.ones(4, np.uint8)
    hits = np.zeros(4, np.uint8), np.zeros(4, np.uint8)
    enter, leave = np.array([0, 1, 0, 1], np.uint8), np.array([0, 0, 1, 1], np.uint8)
    both_ways(codes, enter, leave, low, high, np.uint8(1), *hits)
    actions = {(0, 1): "keep", (1, 1): "set", (0, 0): "reset", (1, 0): "toggle"}
    assert [actions[pair] for pair in zip(low.tolist(), high.tolist(), strict=True)] == [
        "keep",
        "set",
        "reset",
        "toggle",
    ]
