"""Participation by search in order of time equals what trying every combination finds."""

from __future__ import annotations

import math
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import correlate
from holdfast.kernels.correlate import agree, close_by, grid, participate
from support.naive_correlate import participants

entries = st.lists(
    st.tuples(st.integers(-3, 25), st.integers(0, 3), st.integers(1, 7)), min_size=1, max_size=14
).map(sorted)


def in_some_window(rows, needs, within, run=participate):
    times, slots, words = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    found = np.zeros(len(rows), np.uint64)
    run(times, slots, words.astype(np.uint64), np.array(needs, np.uint64), within, found)
    return found.tolist()


def search(rows, needs, within):
    found = [0] * len(rows)
    for bit in (1, 2, 4):
        wanted = [slot for slot, need in enumerate(needs) if need & bit]
        candidates = [
            [(time, (), i) for i, (time, of, word) in enumerate(rows) if of == slot and word & bit]
            for slot in wanted
        ]
        for _, _, i in participants(candidates, within) if wanted else ():
            found[i] |= bit
    return found


@given(entries, st.lists(st.integers(0, 7), min_size=4, max_size=4), st.integers(1, 9))
def test_an_event_takes_part_if_some_window_around_it_has_a_match_of_every_filter(rows, needs, within):
    rows = [(time, slot, word & needs[slot]) for time, slot, word in rows if word & needs[slot]]
    if rows:
        assert in_some_window(rows, needs, within) == search(rows, needs, within)


@pytest.mark.parametrize(("apart", "takes_part"), [(9, [1, 1]), (10, [0, 0]), (-10, [0, 0])])
def test_the_time_bound_of_correlations_is_strict(apart, takes_part):
    rows = sorted([(0, 0, 1), (apart, 1, 1)])
    assert in_some_window(rows, [1, 1], 10) == takes_part


points = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.integers(0, 2),
        st.integers(-2, 6).map(float),
        st.integers(-2, 2).map(float),
        st.sampled_from((0.0, 1.0)),
    ),
    min_size=1,
    max_size=12,
).map(sorted)


def near_one_another(rows, width, within, near, run=agree):
    times, slots = (np.array([row[i] for row in rows], np.int64) for i in (0, 1))
    found = np.zeros(len(rows), np.bool_)
    spots = np.array([row[2:] for row in rows])
    with patch.object(correlate, "agree", run):
        close_by(times, slots, spots, grid(spots, near), width, within, near, found)
    return found.tolist()


@given(points, st.integers(1, 6), st.sampled_from((1.0, math.sqrt(2), 2.0, 3.5, 100.0)))
def test_an_event_takes_part_if_partners_are_near_it_and_near_one_another(rows, within, near):
    candidates = [[(r[0], r[2:], i) for i, r in enumerate(rows) if r[1] == slot] for slot in range(3)]
    expected = {i for _, _, i in participants(candidates, within, near)}
    assert near_one_another(rows, 3, within, near) == [i in expected for i in range(len(rows))]


def test_partners_that_are_each_near_an_event_must_be_near_one_another_too():
    rows = [(0, 0, 0.0, 0.0, 0.0), (0, 1, -4.0, 0.0, 0.0), (0, 2, 4.0, 0.0, 0.0)]
    assert near_one_another(rows, 3, 10, 5.0) == [False] * 3
    assert near_one_another(rows, 3, 10, 8.0) == [False] * 3  # strictly
    assert near_one_another(rows, 3, 10, 8.5) == [True] * 3


@settings(max_examples=3)
@given(st.integers(0, 2**32))
def test_the_compiled_search_in_windows_equals_its_python(seed):
    rng = np.random.default_rng(seed)
    size = 400
    times, slots = np.sort(rng.integers(0, 4_000, size)), rng.integers(0, 4, size)
    words, needs = rng.integers(1, 2**40, size).astype(np.uint64), np.full(4, 2**40 - 1, np.uint64)
    rows = list(zip(times.tolist(), slots.tolist(), words.tolist(), strict=True))
    compiled, python = (
        in_some_window(rows, needs, 37, run) for run in (participate.compiled, participate.body)
    )
    assert any(python)
    assert compiled == python


@settings(max_examples=3)
@given(st.integers(0, 2**32))
def test_the_compiled_search_in_space_equals_its_python(seed):
    rng = np.random.default_rng(seed)
    rows = sorted((*rng.integers((400, 3)).tolist(), *rng.uniform(0, 20, 3).tolist()) for _ in range(300))
    compiled, python = (near_one_another(rows, 3, 12, 7.0, run) for run in (agree.compiled, agree.body))
    assert set(python) == {True, False}
    assert compiled == python
