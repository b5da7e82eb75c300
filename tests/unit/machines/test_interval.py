"""What happens to correlated states within one moment."""

from itertools import permutations

import pytest

from holdfast.compilers import families
from holdfast.lang.check import check
from holdfast.lang.parse import parse
from holdfast.model.batch import from_events
from holdfast.model.event import Event
from holdfast.model.instant import SECOND

ROOMS = check(
    parse(
        "topic T (v float, room text)\n"
        "state A on T [v > 1; v < 0] per room\n"
        "state B on T [v > 2; v < 1] per room\n"
        "correlate X = A, B overlapping\n"
    )
)
(MACHINE,) = (one.machine for one in families.operators(ROOMS) if one.family == "intervals")
MOMENT = 5 * SECOND


def said(state, status, source="s1", sequence=0, *, at=MOMENT, since=None):
    """What a condition tells of the one room that there is."""
    own = {"@status": status, "@key": "", "@scope": "r", "@since": since}
    return Event(f"@{state}", at, source, {"v": 0.0, "room": "r", **own}, sequence)


def told(*parts):
    """What the correlation tells of parts of a history, in the end."""
    state, found = MACHINE.initial(), []
    for part in parts:
        batches = {name: from_events(MACHINE.topics[name], [event]) for name, event in part}
        state, out = MACHINE.step(state, batches, 0)
        found += out.single
    return [(t.status, t.event.source, t.since) for t in (*found, *MACHINE.advance(state, 10 * SECOND)[1])]


def in_any_order(before, *moment):
    """What is told of a moment after what was before it, whoever comes first."""
    found = {tuple(told(*([(e.topic, e)] for e in (*before, *some)))) for some in permutations(moment)}
    (only,) = found
    return list(only)


B = said("B", "ingress", at=0)


def test_what_starts_and_ends_at_one_moment_has_not_been_in_whatever_order_that_is_heard():
    ends = said("A", "egress", sequence=2, since=MOMENT)
    assert in_any_order([B], said("A", "ingress", sequence=1), ends) == []


def test_what_ends_and_starts_at_one_moment_ends_and_starts_in_whatever_order_that_is_heard():
    ends = said("A", "egress", sequence=1, since=SECOND)
    before = [B, said("A", "ingress", at=SECOND)]
    assert in_any_order(before, ends, said("A", "ingress", sequence=2)) == [
        ("ingress", "s1", None),
        ("egress", "s1", SECOND),
        ("ingress", "s1", None),
    ]


@pytest.mark.parametrize(("first", "then"), [("s1", "s2"), ("s2", "s1")])
def test_a_condition_may_have_heard_the_later_source_first(first, then):
    ends = said("A", "egress", then, since=MOMENT)
    assert in_any_order([B], said("A", "ingress", first), ends) == []
    before = [B, said("A", "ingress", at=SECOND)]
    moment = said("A", "egress", first, since=SECOND), said("A", "ingress", then)
    assert in_any_order(before, *moment)[-1] == ("ingress", then, None)


def test_an_end_of_what_nobody_has_heard_of_does_not_end_what_the_same_source_starts_after_it():
    ends = said("A", "egress", sequence=1, since=MOMENT)
    assert in_any_order([B], ends, said("A", "ingress", sequence=2)) == [("ingress", "s1", None)]


def test_what_comes_late_of_two_conditions_at_once_is_taken_by_time():
    """Which of the two is named first does not matter; one by one, it would be as they come."""
    ends, starts = said("B", "egress", at=MOMENT, since=0), said("A", "ingress", at=SECOND)
    until, late = 10 * SECOND, [ends, starts]

    def reached():
        return MACHINE.advance(MACHINE.react(MACHINE.initial(), B)[0], until)[0]

    for order in permutations(late):
        batches = {event.topic: from_events(MACHINE.topics[event.topic], [event]) for event in order}
        _, out = MACHINE.step(reached(), batches, until)
        assert [t.status for t in out.single] == ["ingress", "egress"]
    state = reached()
    assert [t for event in late for t in MACHINE.react(state, event)[1]] == []
