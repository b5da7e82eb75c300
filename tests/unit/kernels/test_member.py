"""Which events operators want, by value and time, against trying every combination."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import member
from holdfast.model.correlation import Correlation, RangeFilter, Simple
from support import naive_fsf as naive

ATTRIBUTES = ("a", "b", "c")


@st.composite
def problems(draw, least):
    """Events of up to three attributes in the order of time, and subscriptions over all of them."""
    width = draw(st.integers(least, 3))
    times = sorted(draw(st.lists(st.integers(0, 12), max_size=10)))
    events = [
        Simple(draw(st.sampled_from(ATTRIBUTES[:width])), "s", time, draw(st.integers(0, 4)), None, number)
        for number, time in enumerate(times)
    ]
    some = st.tuples(
        *(
            st.builds(RangeFilter, st.just(attribute), st.integers(0, 2), st.integers(2, 4))
            for attribute in ATTRIBUTES[:width]
        )
    )
    subscriptions = draw(st.lists(some, min_size=1, max_size=3))
    within = draw(st.integers(1, 6))
    return events, [Correlation(filters, within) for filters in subscriptions]


def run(kernel, events, subscriptions):
    bounds = np.array([[(one.low, one.high) for one in wanted.filters] for wanted in subscriptions], float)
    found = np.zeros((len(events), len(subscriptions)), bool)
    kernel(
        np.array([event.time for event in events], np.int64),
        np.array([ATTRIBUTES.index(event.attribute) for event in events], np.int64),
        np.array([event.value for event in events], float),
        np.ascontiguousarray(bounds[:, :, 0].T),
        np.ascontiguousarray(bounds[:, :, 1].T),
        subscriptions[0].within,
        found,
    )
    return [{event for event, wanted in zip(events, column, strict=True) if wanted} for column in found.T]


@pytest.mark.parametrize(
    ("kernel", "meaning", "least"),
    [(member.complete, naive.participants, 1), (member.ring, naive.binary_joins, 2)],
)
@pytest.mark.parametrize("form", ["body", "compiled"])
def test_the_selected_events_are_those_of_all_combinations(kernel, meaning, least, form):
    @settings(max_examples=60)
    @given(problems(least))
    def check(problem):
        events, subscriptions = problem
        expected = [meaning(wanted, events) for wanted in subscriptions]
        assert run(getattr(kernel, form), events, subscriptions) == expected

    check()


def test_the_time_bound_of_members_is_strict():
    pair = Correlation((RangeFilter("a"), RangeFilter("b")), 5)
    near, far = ([Simple("a", "s", 0, 1.0), Simple("b", "s", time, 1.0)] for time in (4, 5))
    assert run(member.complete, near, [pair]) == [set(near)]
    assert run(member.complete, far, [pair]) == [set()]
