"""Instants and windows by key, as Python and as machine code, against a naive twin."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels.window import by_key, foremost, instants, nearest, positions, tally
from support import naive_windows as naive

times = st.lists(st.integers(0, 12), max_size=6).map(sorted)
few = settings(max_examples=40)


def ways(kernel):
    return kernel.body, kernel.compiled


def flat(lists):
    return np.array([value for some in lists for value in some], np.int64)


def starts(lists):
    return np.array([0, *accumulate(map(len, lists))], np.int64)


@few
@given(st.lists(st.integers(0, 4), max_size=12))
def test_rows_are_grouped_by_key_and_keep_their_order(codes):
    for run in ways(by_key):
        begins, order = np.zeros(6, np.int64), np.empty(len(codes), np.int64)
        run(np.array(codes, np.int64), begins, order)
        groups = [[i for i, code in enumerate(codes) if code == k] for k in range(5)]
        assert order.tolist() == [i for group in groups for i in group]
        assert begins.tolist() == starts(groups).tolist()


@few
@given(st.lists(st.tuples(times, times), min_size=1, max_size=4), st.integers(-2, 5), st.integers(0, 9))
def test_instants_are_the_distinct_times_of_all_streams(keys, shift, first):
    one, two = (list(stream) for stream in zip(*keys, strict=True))
    first_at = naive.instants([(one, 0), (two, shift)], first, 11)
    at = np.concatenate([flat(one), flat(two)])
    streams = np.stack([starts(one), starts(two) + len(flat(one))])
    for run in ways(instants):
        found, ends = np.empty(len(at), np.int64), np.zeros(len(keys) + 1, np.int64)
        size = run(at, streams, np.array([0, shift]), first, 11, found, ends)
        assert found[:size].tolist() == flat(first_at).tolist()
        assert ends.tolist() == starts(first_at).tolist()


@few
@given(st.lists(st.tuples(times, times), min_size=1, max_size=4), st.integers(-4, 4))
def test_an_instant_finds_the_first_row_of_its_key_at_or_after_it(keys, shift):
    rows, moments = (list(column) for column in zip(*keys, strict=True))
    base = starts(rows).tolist()
    for run in ways(positions):
        for after, search in ((0, bisect_left), (1, bisect_right)):
            found = np.empty(sum(map(len, moments)), np.int64)
            run(flat(rows), starts(rows), flat(moments), starts(moments), shift, after, found)
            first_at = [
                base[k] + search(rows[k], at + shift) for k, some in enumerate(moments) for at in some
            ]
            assert found.tolist() == first_at


@few
@given(st.lists(st.tuples(times, times), min_size=1, max_size=4), st.integers(-4, 0))
def test_an_instant_finds_the_first_of_the_rows_that_are_nearest(keys, shift):
    rows, moments = (list(column) for column in zip(*keys, strict=True))
    base = starts(rows).tolist()
    runs = flat([[base[k] + some.index(at) for at in some] for k, some in enumerate(rows)])

    def first_at(k, at):
        known = [i for i in range(len(rows[k])) if rows[k][i] <= at]
        found = min(known, key=lambda i: (abs(rows[k][i] - at - shift), rows[k][i], i), default=None)
        return -1 if found is None else base[k] + found

    for run in ways(nearest):
        found = np.empty(sum(map(len, moments)), np.int64)
        run(flat(moments), starts(moments), flat(rows), starts(rows), runs, shift, found)
        assert found.tolist() == [first_at(k, at) for k, some in enumerate(moments) for at in some]


@few
@given(
    st.lists(st.tuples(st.integers(0, 2), times, st.integers(-1, 1)), max_size=5),
    st.lists(times.map(lambda some: sorted(set(some))), min_size=3, max_size=3),
)
def test_changes_of_parts_are_added_up_at_the_instants_of_their_owner(parts, found):
    parts = sorted(parts, key=lambda part: part[0])
    changes = [[(at, change) for at in sorted(set(some))] for _, some, change in parts]
    owners = [owner for owner, _, _ in parts]
    for run in ways(tally):
        total = np.zeros(sum(map(len, found)), np.int64)
        moments, change = ([[row[i] for row in some] for some in changes] for i in (0, 1))
        run(
            flat(moments),
            starts(moments),
            np.array(owners, np.int64),
            flat(found),
            starts(found),
            flat(change),
            total,
        )
        assert total.tolist() == flat(naive.tally(changes, owners, found)).tolist()


@few
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.dictionaries(st.integers(0, 12), st.booleans(), max_size=5)),
        max_size=6,
    ),
    st.lists(times.map(lambda some: sorted(set(some))), min_size=3, max_size=3),
    st.randoms(use_true_random=False),
)
def test_the_first_non_empty_part_is_found_at_an_instant(parts, found, chance):
    parts = sorted(parts, key=lambda part: part[0])
    owners, shown = [owner for owner, _ in parts], [sorted(some.items()) for _, some in parts]
    order = chance.sample(range(len(parts)), chance.randint(0, len(parts)))
    moments, there = ([[row[i] for row in some] for some in shown] for i in (0, 1))
    for run in ways(foremost):
        chosen, free = np.full(len(flat(found)), -1), np.arange(len(flat(found)) + 1)
        numbers = (np.array(some, np.int64) for some in (order, owners))
        run(
            flat(moments), starts(moments), *numbers, flat(there).astype(bool), flat(found), starts(found),
            free, chosen,
        )  # fmt: skip
        assert chosen.tolist() == flat(naive.foremost(shown, owners, order, found)).tolist()
