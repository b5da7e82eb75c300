"""In which order what conditions say is taken when its moment is over."""

from itertools import permutations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from holdfast.compilers.operator import in_turn
from holdfast.machines.waiting import Waiting
from holdfast.model.batch import from_events, to_events
from holdfast.model.event import Event
from holdfast.model.topic import Attribute, Topic

TOPIC = Topic("@S", (Attribute("@scope", "text"),))


def said(scope, time, source="s", sequence=0):
    return Event("@S", time, source, {"@scope": scope}, sequence)


def taken(waiting):
    return [waiting.take() for _ in range(len(waiting.held))]


def waits(*events, until=0):
    waiting = Waiting(until=until)
    for event in events:
        assert waiting.add(event) is not None
    return waiting


def merged(events):
    """Again and again the first of those that scopes have next to say."""
    queues, out = {}, []
    for event in events:
        queues.setdefault(event.attributes["@scope"], []).append(event)
    while queues := {scope: queue for scope, queue in queues.items() if queue}:
        out.append(min(queues.values(), key=lambda queue: queue[0].order).pop(0))
    return out


_events = st.lists(
    st.builds(said, st.sampled_from(("a", "b", "c", None)), st.integers(0, 3), st.sampled_from("st")),
    max_size=12,
).map(
    lambda some: [said(e.attributes["@scope"], e.time, e.source, -i % 5 + 5 * i) for i, e in enumerate(some)]
)
_said = _events.flatmap(st.permutations)


@given(_said)
def test_whoever_speaks_first_is_merged_by_order_and_each_scope_is_heard_in_turn(events):
    assert taken(waits(*events)) == merged(events)


@given(_said)
def test_shards_merge_what_they_hear_in_the_same_way(events):
    assert list(to_events(TOPIC, in_turn(from_events(TOPIC, events)))) == merged(events)


def test_of_several_scopes_it_does_not_matter_who_comes_first():
    events = [said("a", 1, "t"), said("b", 1, "s"), said("c", 0, "u")]
    assert all(taken(waits(*some)) == events[::-1] for some in permutations(events))


def test_what_is_older_than_what_waits_of_its_scope_waits_with_it():
    waiting = waits(said("a", 5), until=4)
    assert waiting.add(said("b", 3)) is None
    assert waiting.add(said("a", 3)) is not None
    assert waiting.first == 5
    assert [event.time for event in waiting.moment()] == [5, 3]
    assert waiting.add(said("a", 3)) is None, "nothing of it waits any longer"


@given(_said, st.integers(0, 12))
def test_what_was_kept_goes_on_to_wait(events, cut):
    waiting = waits(*events[:cut])
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(waiting), type=Waiting)
    for one in (waiting, again):
        for event in events[cut:]:
            one.add(event)
    assert taken(again) == taken(waiting) == merged(events)


def test_what_was_kept_can_be_taken_at_once():
    kept = msgspec.msgpack.encode(waits(said("a", 1)))
    assert taken(msgspec.msgpack.decode(kept, type=Waiting)) == [said("a", 1)]
