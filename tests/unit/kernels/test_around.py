"""Distances around moving hosts, compared with slow obvious twins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels.around import MARGIN, closest, distances, is_true_at, latest_before, near

ways = pytest.mark.parametrize("way", ["body", "compiled"])
KEYS, PARTS = 2, 3


@st.composite
def scenes(draw):
    """Instants of two keys, the last move at each, how far their parts are after moves, and what happens to
    parts when."""
    at = [sorted(draw(st.sets(st.integers(0, 20), max_size=8))) for _ in range(KEYS)]
    moves = [
        np.maximum.accumulate(draw(st.lists(st.integers(0, 2), min_size=len(a), max_size=len(a)))) for a in at
    ]
    away = st.sampled_from((0.0, 1.0, 2.0, 2.0 * (1 + MARGIN / 2), 3.0, math.inf))
    far = [draw(st.lists(away, min_size=KEYS * PARTS, max_size=KEYS * PARTS)) for _ in range(3)]
    some = st.tuples(st.integers(0, 20), st.integers(0, KEYS * PARTS - 1), st.booleans())
    happens = draw(st.lists(some, max_size=12, unique_by=lambda row: row[:2]))
    happens.sort(key=lambda row: (row[1] // PARTS, row[0]))
    ends = np.cumsum([0, *map(len, at)])
    return np.concatenate(at).astype(int), ends, np.concatenate(moves).astype(int), np.array(far), happens


def known(happens, key, now):
    """The last change of each part of a key by now: its time, its number among all, and whether it is
    true."""
    return {
        part: (at, i, true)
        for i, (at, part, true) in enumerate(happens)
        if at <= now and part // PARTS == key
    }


def columns(happens):
    when, parts = (np.array([row[i] for row in happens], int) for i in range(2))
    starts = np.searchsorted(parts // PARTS, np.arange(KEYS + 1))
    return when, starts, parts, np.array([row[2] for row in happens], bool)


def each(at, ends):
    """The instants, each with its number and key."""
    return ((i, key, at[i]) for key in range(KEYS) for i in range(ends[key], ends[key + 1]))


OWNED = np.arange(KEYS + 1) * PARTS


@ways
@given(scenes(), st.permutations(range(KEYS * PARTS)))
def test_near_parts_are_counted_and_the_last_satisfying_part_is_chosen(way, scene, rank):
    at, ends, moves, far, happens = scene
    count, present, chosen = np.empty((3, len(at)), int)
    inside, found = far <= 2, (OWNED, np.array(rank), count, present, chosen)
    getattr(near, way)(at, ends, moves, inside, *columns(happens), *found)
    for i, key, now in each(at, ends):
        there = {p: row for p, row in known(happens, key, now).items() if inside[moves[i], p]}
        true = {p: row for p, row in there.items() if row[2]}
        best = min(true, key=lambda p: (-true[p][0], rank[p]), default=None)
        assert (count[i], present[i]) == (len(true), len(there))
        assert chosen[i] == (-1 if best is None else true[best][1])


@ways
@given(scenes(), st.permutations(range(KEYS * PARTS)))
def test_the_closest_part_is_chosen(way, scene, rank):
    at, ends, moves, far, happens = scene
    chosen, doubt = np.empty(len(at), int), np.empty(len(at), bool)
    getattr(closest, way)(at, ends, moves, far, *columns(happens)[:3], OWNED, np.array(rank), chosen, doubt)
    for i, key, now in each(at, ends):
        there = {p: row for p, row in known(happens, key, now).items() if far[moves[i], p] < math.inf}
        best = min(there, key=lambda p: (far[moves[i], p], rank[p]), default=None)
        assert chosen[i] == (-1 if best is None else there[best][1])
        limit = math.inf if best is None else far[moves[i], best] * (1 + MARGIN)
        assert doubt[i] == any(p != best and far[moves[i], p] <= limit for p in there)


@ways
@given(scenes(), st.data())
def test_a_predicate_that_becomes_true_by_the_last_move_is_seen(way, scene, data):
    at, ends, _, far, _ = scene
    times = np.array([-1, 5, 11])
    cells = np.array([data.draw(st.integers(-1, 3)) for _ in at], int)
    spots, true = np.array([2, 0, 5, 1]), far <= 2
    found, moves = np.empty(len(at), bool), np.empty(len(at), int)
    getattr(is_true_at, way)(at, ends, times, true, cells, spots, found)
    getattr(latest_before, way)(at, ends, times, moves)
    for i, _, now in each(at, ends):
        assert moves[i] == max(m for m in range(3) if times[m] <= now)
        assert found[i] == (cells[i] >= 0 and true[moves[i], spots[cells[i]]])


@ways
def test_distances_are_defined_for_equal_dimensions_and_a_place_is_near_itself(way):
    here = (np.array([2, 1, 0, 0]), np.array([[0.0, 0], [5, 0], [0, 0], [0, 0]]), np.array([-1, -1, 7, -1]))
    parts = (np.array([2, 1, 0, 0]), np.array([[3.0, 4], [2, 0], [0, 0], [0, 0]]), np.array([-1, -1, 7, -1]))
    inf, found = math.inf, np.empty(16)
    getattr(distances, way)(found, *here, *parts)
    assert found.reshape(4, 4).tolist() == [
        [5.0, inf, inf, inf],
        [inf, 3.0, inf, inf],
        [inf, inf, 0.0, inf],
        [inf, inf, inf, inf],
    ]


@ways
@pytest.mark.parametrize("size", [1e-170, 1e170])
def test_tiny_and_huge_distances_are_compared_exactly(way, size):
    found = np.empty(1)
    at = [(np.array([2]), np.array([xs]), np.array([-1])) for xs in ([0.0, 0.0], [3 * size, 4 * size])]
    getattr(distances, way)(found, *at[0], *at[1])
    assert found[0] == pytest.approx(5 * size)
