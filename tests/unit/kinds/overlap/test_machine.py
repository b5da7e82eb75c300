"""Correlated states that change at one timestamp."""

from itertools import permutations

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.model.batch import from_events
from holdfast.model.event import Event
from holdfast.model.instant import SECOND
from holdfast.plan import compile as planning

ROOMS = check(
    parse(
        "topic T (v float, room text)\n"
        "state A on T [v > 1; v < 0] per room\n"
        "state B on T [v > 2; v < 1] per room\n"
        "correlate X = A, B overlapping\n"
    )
)
(MACHINE,) = (one.machine for one in planning.operators(ROOMS) if one.kind == "overlap")
MOMENT = 5 * SECOND


def member_event(state, status, source="s1", sequence=0, *, at=MOMENT, since=None):
    """An output of a condition for the only room."""
    own = {"@status": status, "@key": "", "@scope": "r", "@since": since}
    return Event(f"@{state}", at, source, {"v": 0.0, "room": "r", **own}, sequence)


B = member_event("B", "ingress", at=0)


def test_late_events_of_two_conditions_are_processed_in_order_of_time():
    """The order of the two names is irrelevant; single events would be processed in order of arrival."""
    ends, starts = member_event("B", "egress", at=MOMENT, since=0), member_event("A", "ingress", at=SECOND)
    until, late = 10 * SECOND, [ends, starts]

    def after_b():
        return MACHINE.advance(MACHINE.react(MACHINE.initial(), B)[0], until)[0]

    for order in permutations(late):
        batches = {event.topic: from_events(MACHINE.topics[event.topic], [event]) for event in order}
        _, out = MACHINE.step(after_b(), batches, until)
        assert [t.status for t in out.single] == ["ingress", "egress"]
    state = after_b()
    assert [t for event in late for t in MACHINE.react(state, event)[1]] == []
