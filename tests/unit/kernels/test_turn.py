"""Conditions that start and end in turn, and events that later ones contradict, beside slow obvious twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels.turn import end_at_contradiction, shared, turns

NEVER = 2**63 - 1
ways = pytest.mark.parametrize("way", ["body", "compiled"])


@ways
@given(st.lists(st.lists(st.tuples(st.booleans(), st.booleans()))), st.booleans(), st.booleans())
def test_starts_and_ends_are_found_key_by_key(way, keys, lasting, held):
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


instant = st.integers(0, 9)
own = st.lists(st.tuples(instant, st.sampled_from("abn"), st.sampled_from("abn")), max_size=5)


@ways
@given(
    st.lists(own, min_size=1, max_size=3),
    st.sets(instant, min_size=1),
    st.fixed_dictionaries({name: st.lists(st.booleans(), min_size=10, max_size=10) for name in "ab"}),
    st.booleans(),
    st.booleans(),
)
def test_common_instants_are_found_only_where_a_key_changes(way, keys, moments, true, lasting, held):
    """The remaining action for a key: one of two rules, or neither of them."""
    moments, rules = sorted(moments), {**true, "n": [False] * 10}
    every = [0, *moments] if moments[0] else moments
    nexts = np.full((3, len(every) + 1), len(every))
    for row, rule in enumerate(rules[name] for name in "abn"):
        for i in reversed(range(len(every))):
            nexts[row, i] = i if rule[every[i]] else nexts[row, i + 1]
    at, ends, real, enters, leaves, expected = [], [0], [], [], [], []
    for key in keys:
        mine = {time: rest for time, *rest in key}
        at += sorted({0, *mine})
        now, (enter, leave) = held, ("a", "b")
        for time in sorted({0, *mine, *moments}):
            enter, leave = mine.get(time, (enter, leave))
            if time in {0, *mine}:
                real.append(time in mine)
                enters.append("abn".index(enter))
                leaves.append("abn".index(leave))
            before = max(one for one in every if one <= time)
            if (time in mine or time in moments) and rules[leave if now else enter][before]:
                expected += [] if time in mine else [time]
                now = lasting and not now
        ends.append(len(at))
    found, found_ends = np.empty(99, int), np.zeros(len(keys) + 1, int)
    rows = [np.array(some) for some in (at, ends, real, every)]
    rules = [np.array(enters), np.array(leaves), nexts, np.full(len(keys), held)]
    size = getattr(shared, way)(*rows, every == moments, *rules, lasting, found, found_ends)
    assert found[:size].tolist() == expected
    assert found_ends[-1] == size
    if size:
        few = np.empty(size - 1, int)
        assert getattr(shared, way)(*rows, every == moments, *rules, lasting, few, found_ends) == -1


events = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9), st.integers(0, 1)))


@ways
@given(events, events)
def test_an_event_ends_where_a_later_one_of_its_name_has_another_status(way, mine, others):
    others = sorted(others, key=lambda row: row[:2])
    columns = [np.array([row[i] for row in some], int) for some in (mine, others) for i in range(3)]
    until = np.full(len(mine), 7)
    getattr(end_at_contradiction, way)(*columns, until)
    assert until.tolist() == [
        min([7, *(at for name, at, word in others if name == n and at > t and word != w)]) for n, t, w in mine
    ]
