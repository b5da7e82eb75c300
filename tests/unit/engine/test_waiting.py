"""The order in which derived events are processed once the watermark has passed their time."""

from itertools import permutations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from holdfast.engine.operator import sort_derived
from holdfast.engine.waiting import PendingEvents
from holdfast.model.batch import from_events, to_events
from holdfast.model.event import Event
from holdfast.model.topic import Attribute, Topic

TOPIC = Topic("@S", (Attribute("@scope", "text"),))


def derived_event(scope, time, source="s", sequence=0):
    return Event("@S", time, source, {"@scope": scope}, sequence)


def take_all(waiting):
    return [waiting.take() for _ in range(len(waiting.held))]


def waits(*events, until=0):
    waiting = PendingEvents(until=until)
    for event in events:
        assert waiting.add(event) is not None
    return waiting


def merge(events):
    """Take the first of the next events of all scopes, until none is left."""
    queues, out = {}, []
    for event in events:
        queues.setdefault(event.attributes["@scope"], []).append(event)
    while queues := {scope: queue for scope, queue in queues.items() if queue}:
        out.append(min(queues.values(), key=lambda queue: queue[0].order).pop(0))
    return out


_events = st.lists(
    st.builds(
        derived_event, st.sampled_from(("a", "b", "c", None)), st.integers(0, 3), st.sampled_from("st")
    ),
    max_size=12,
).map(
    lambda some: [
        derived_event(e.attributes["@scope"], e.time, e.source, -i % 5 + 5 * i) for i, e in enumerate(some)
    ]
)
_output = _events.flatmap(st.permutations)


@given(_output)
def test_events_of_upstreams_are_merged_by_order_and_each_scope_keeps_its_sequence(events):
    assert take_all(waits(*events)) == merge(events)


@given(_output)
def test_shards_merge_derived_events_in_the_same_order(events):
    assert list(to_events(TOPIC, sort_derived(from_events(TOPIC, events)))) == merge(events)


def test_the_order_of_arrival_of_scopes_does_not_matter():
    events = [derived_event("a", 1, "t"), derived_event("b", 1, "s"), derived_event("c", 0, "u")]
    assert all(take_all(waits(*some)) == events[::-1] for some in permutations(events))


def test_an_event_older_than_a_waiting_one_of_its_scope_waits_with_it():
    waiting = waits(derived_event("a", 5), until=4)
    assert waiting.add(derived_event("b", 3)) is None
    assert waiting.add(derived_event("a", 3)) is not None
    assert waiting.first == 5
    assert [event.time for event in waiting.take_first_time()] == [5, 3]
    assert waiting.add(derived_event("a", 3)) is None, "nothing of it waits any longer"


@given(_output, st.integers(0, 12))
def test_restored_events_continue_to_wait(events, cut):
    waiting = waits(*events[:cut])
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(waiting), type=PendingEvents)
    for one in (waiting, again):
        for event in events[cut:]:
            one.add(event)
    assert take_all(again) == take_all(waiting) == merge(events)


def test_restored_events_can_be_processed_at_once():
    stored = msgspec.msgpack.encode(waits(derived_event("a", 1)))
    assert take_all(msgspec.msgpack.decode(stored, type=PendingEvents)) == [derived_event("a", 1)]
