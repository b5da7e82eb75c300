"""Validity: an event of a condition is valid until a newer one replaces it.  [F55]"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.kinds.component.detector.infospace import InfoSpace, insert, is_valid, record_status, visible
from holdfast.kinds.component.detector.knowledge import Knowledge


def knowledge(time, status, signature="7", topic="IL_High"):
    return Knowledge(topic, time, "s", {}, status=status, signature=signature)


def space(*known):
    info = InfoSpace()
    for one in known:
        record_status(info, one)
        insert(info, "A", "", one)
    return info


def test_a_reading_is_valid_only_at_its_own_time():
    info = space(knowledge(5, "atomic"))
    assert [is_valid(info, knowledge(5, "atomic"), now) for now in (5, 6)] == [True, False]


def test_a_start_is_valid_until_the_end_of_the_same_condition():
    start, end = knowledge(1, "ingress"), knowledge(5, "egress")
    assert is_valid(space(start), start, 9)
    assert not is_valid(space(start, end), start, 9)
    assert is_valid(space(start, end), end, 9)


def test_a_second_start_makes_the_end_invalid_and_not_the_first_start_valid():
    info = space(knowledge(1, "ingress"), knowledge(5, "egress"), knowledge(8, "ingress"))
    assert [(k.time, k.valid) for k in visible(info, "A", "", 9)] == [(1, False), (5, False), (8, True)]


def test_events_of_other_signatures_or_topics_do_not_change_validity():
    start = knowledge(1, "ingress")
    assert is_valid(space(start, knowledge(5, "egress", "9"), knowledge(5, "egress", topic="Slow")), start, 9)


def test_nothing_from_the_future_is_visible():
    assert visible(space(knowledge(1, "ingress"), knowledge(5, "egress")), "A", "", 4)[-1].time == 1


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(("ingress", "egress"))), min_size=1))
def test_an_invalid_event_never_becomes_valid_again(history):
    """The stories have any events in any order."""
    info, known, invalid = InfoSpace(), [], set()
    for time, status in history:
        known.append(knowledge(time, status))
        record_status(info, known[-1])
        for one in known:
            if not is_valid(info, one, 99):
                invalid.add((one.time, one.status))
            else:
                assert (one.time, one.status) not in invalid
