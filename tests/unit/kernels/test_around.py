"""What is around somebody who moves, beside slow obvious twins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels.around import MARGIN, closest, counted, distances, latest

ways = pytest.mark.parametrize("way", ["body", "compiled"])
PARTS = 3


@st.composite
def scenes(draw):
    """Instants, the last move at each, how far parts are after moves, and what happens to parts when."""
    at = sorted(draw(st.sets(st.integers(0, 20), max_size=8)))
    steps = draw(st.lists(st.integers(0, 2), min_size=len(at), max_size=len(at)))
    moves = np.maximum.accumulate(steps or [0])
    away = st.sampled_from((0.0, 1.0, 2.0, 2.0 * (1 + MARGIN / 2), 3.0, math.inf))
    far = [draw(st.lists(away, min_size=PARTS, max_size=PARTS)) for _ in range(3)]
    some = st.tuples(st.integers(0, 20), st.integers(0, PARTS - 1), st.integers(0, 1))
    happens = sorted(draw(st.lists(some, max_size=8, unique_by=lambda row: row[:2])), key=lambda row: row[0])
    return np.array(at, int), moves[: len(at)].astype(int), np.array(far), happens


def known(happens, now):
    """What happened last to each part by now: when, its number among all, and whether it is true."""
    return {part: (at, i, true) for i, (at, part, true) in enumerate(happens) if at <= now}


def columns(happens):
    return [np.array([row[i] for row in happens], int) for i in range(3)]


@ways
@given(scenes())
def test_near_parts_are_counted(way, scene):
    at, moves, far, happens = scene
    when, parts, true = columns(happens)
    count, present, doubt = np.empty((3, len(at)), int)
    getattr(counted, way)(at, moves, far, when, parts, true, 2.0, count, present, doubt)
    for i, now in enumerate(at):
        near = {p: row for p, row in known(happens, now).items() if far[moves[i], p] <= 2 * (1 + MARGIN)}
        doubtful = [p for p in near if far[moves[i], p] > 2 * (1 - MARGIN)]
        expected = (sum(row[2] for row in near.values()), len(near), len(doubtful))
        assert (count[i], present[i], doubt[i]) == expected


@ways
@given(scenes(), st.permutations(range(PARTS)))
def test_the_near_part_that_spoke_last_is_chosen(way, scene, rank):
    at, moves, far, happens = scene
    when, parts, _ = columns(happens)
    chosen, doubt = np.empty(len(at), int), np.empty(len(at), bool)
    numbers = np.arange(len(happens))
    getattr(latest, way)(at, moves, far, np.array(rank), when, parts, numbers, 2.0, chosen, doubt)
    for i, now in enumerate(at):
        near = {p: row for p, row in known(happens, now).items() if far[moves[i], p] <= 2 * (1 + MARGIN)}
        best = min(near, key=lambda p: (-near[p][0], rank[p]), default=None)
        assert chosen[i] == (-1 if best is None else near[best][1])
        assert doubt[i] == any(far[moves[i], p] > 2 * (1 - MARGIN) for p in near)


@ways
@given(scenes(), st.permutations(range(PARTS)))
def test_the_closest_part_is_chosen(way, scene, rank):
    at, moves, far, happens = scene
    when, parts, _ = columns(happens)
    chosen, doubt = np.empty(len(at), int), np.empty(len(at), bool)
    getattr(closest, way)(at, moves, far, np.array(rank), when, parts, np.arange(len(happens)), chosen, doubt)
    for i, now in enumerate(at):
        there = {p: row for p, row in known(happens, now).items() if far[moves[i], p] < math.inf}
        best = min(there, key=lambda p: (far[moves[i], p], rank[p]), default=None)
        assert chosen[i] == (-1 if best is None else there[best][1])
        limit = math.inf if best is None else far[moves[i], best] * (1 + MARGIN)
        assert doubt[i] == any(p != best and far[moves[i], p] <= limit for p in there)


def test_points_of_as_many_coordinates_are_a_distance_apart_and_a_place_is_near_itself():
    here = (np.array([2, 1, 0, 0]), np.array([[0.0, 0], [5, 0], [0, 0], [0, 0]]), np.array([-1, -1, 7, -1]))
    parts = (np.array([2, 1, 0, 0]), np.array([[3.0, 4], [2, 0], [0, 0], [0, 0]]), np.array([-1, -1, 7, -1]))
    inf = math.inf
    assert distances(here, parts).tolist() == [
        [5.0, inf, inf, inf],
        [inf, 3.0, inf, inf],
        [inf, inf, 0.0, inf],
        [inf, inf, inf, inf],
    ]
