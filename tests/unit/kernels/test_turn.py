"""Conditions that start and end in turn, and events that later ones contradict, beside slow obvious twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels.turn import contradicted, turns

NEVER = 2**63 - 1
ways = pytest.mark.parametrize("way", ["body", "compiled"])


@ways
@given(st.lists(st.lists(st.tuples(st.booleans(), st.booleans()))), st.booleans(), st.booleans())
def test_what_is_told_is_found_key_after_key(way, keys, lasting, held):
    enter, leave = (np.array([row[i] for key in keys for row in key], bool) for i in (0, 1))
    ends = np.cumsum([0, *map(len, keys)])
    holds = np.full(len(keys), held and lasting)
    found, before = np.empty(len(enter), int), np.empty(len(enter), bool)
    size = getattr(turns, way)(enter, leave, ends, holds, lasting, found, before)
    expected, after = [], []
    for k, key in enumerate(keys):
        now = held and lasting
        for i, (starts, stops) in enumerate(key):
            if stops if now else starts:
                expected.append((ends[k] + i, now))
                now = lasting and not now
        after.append(now)
    assert list(zip(found[:size].tolist(), before[:size].tolist(), strict=True)) == expected
    assert holds.tolist() == after


events = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 1)))


@ways
@given(events, events)
def test_an_event_ends_where_a_later_one_of_its_name_says_otherwise(way, mine, others):
    others = sorted(others, key=lambda row: row[:2])
    columns = [np.array([row[i] for row in some], int) for some in (mine, others) for i in range(3)]
    until = np.full(len(mine), 7)
    getattr(contradicted, way)(*columns, until)
    assert until.tolist() == [
        min([7, *(at for name, at, word in others if name == n and at > t and word != w)]) for n, t, w in mine
    ]
