"""Batches of rows follow each other in every scope exactly if the whole is in order there."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from holdfast import parse
from holdfast.model.batch import from_events
from holdfast.model.event import Event
from holdfast.plan.compile import operators
from holdfast.plan.presorted import Following, extent

CHECKED = parse('topic T (k text)\nstate S on T [k == "a"; k == "b"] per k').check()
(OPERATOR,) = operators(CHECKED)
(TOPIC,) = CHECKED.topics

events = st.builds(
    lambda time, source, k, sequence: Event("T", time, source, {"k": k}, sequence),
    st.integers(0, 5),
    st.sampled_from(["s1", "s2", "é"]),
    st.sampled_from(["a", "b", None]),
    st.integers(0, 2),
)
histories = st.lists(events, max_size=10)


def follow(intervals, rising):
    following = Following(rising=rising)
    for some in intervals:
        found = extent(OPERATOR, "T", from_events(TOPIC, some), rising=rising)
        if found is None or not following.takes(found):
            return False
    return True


@given(
    history=histories | histories.map(lambda some: sorted(some, key=lambda event: event.order)),
    cuts=st.lists(st.integers(0, 10), max_size=3).map(sorted),
    rising=st.booleans(),
)
def test_presorted_parts_can_be_cut_anywhere(history, cuts, rising):
    intervals = [history[a:b] for a, b in pairwise([0, *cuts, len(history)])]
    by_scope = [[event for event in history if event.attributes["k"] == k] for k in ("a", "b")]
    wanted = all(some == sorted(some, key=lambda event: event.order) for some in by_scope)
    if rising:
        wanted = wanted and all(len({event.time for event in some}) == len(some) for some in by_scope)
    follows = follow(intervals, rising)
    assert wanted or not follows
    if len(intervals) <= 2 or history == sorted(history, key=lambda event: event.time):
        assert follows == wanted
