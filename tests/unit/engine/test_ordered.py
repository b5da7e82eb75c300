"""Ordered delivery by examples: which events wait, when they are processed, and which are late."""

from dataclasses import replace

import pytest

from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.engine.machine import compact_part, may_be_late, transitions
from holdfast.engine.ordered import Ordered
from holdfast.model.batch import from_events, row_count
from holdfast.model.event import Event
from holdfast.model.instant import BEGINNING, NEVER
from holdfast.plan import compile as planning
from support.running import compact_batch, dictionary_encoded, machine_of, readings

DROP = machine_of("topic T (v float)\nstate Warm on T [v > 25; v < 22] per source ordered 10 us")
APPLY = machine_of("topic T (v float)\nstate Warm on T [v > 25; v < 22] per source ordered 10 us late apply")
TOPIC = DROP.topic


def event(time, value, source="s", sequence=0):
    return Event("T", time, source, {"v": value}, sequence)


class OrderedHarness:
    """A machine without disorder, with its state, fed event by event; its output is (status, time) in
    order."""

    def __init__(self, machine=DROP):
        self.machine = replace(machine, wait=0)
        self.state = self.machine.initial()

    def react(self, *events):
        out = []
        for one in events:
            self.state, passed = self.machine.react(self.state, one)
            out += passed
        return plain(out)

    def step(self, events, until):
        return self.step_batch(from_events(TOPIC, events), until)

    def step_batch(self, batch, until):
        self.state, emitted = self.machine.step(self.state, {"T": batch}, until)
        return plain(transitions(self.machine.topics, emitted))

    def advance(self, until):
        self.state, passed = self.machine.advance(self.state, until)
        return plain(passed)

    @property
    def due(self):
        return self.machine.due(self.state)

    @property
    def holding(self):
        return self.machine.active(self.state)


def plain(passed):
    return [(t.status, t.event.time) for t in passed]


@pytest.fixture(params=["react", "step"])
def feed(request):
    """Give events one by one or in a batch; then let time come as far as ``until``."""

    def one_by_one(emitted, events, until=BEGINNING):
        return emitted.react(*events) + emitted.advance(until)

    def in_a_batch(emitted, events, until=BEGINNING):
        return emitted.step(events, until)

    return one_by_one if request.param == "react" else in_a_batch


def test_ordered_delivery_wraps_the_machine_of_the_condition():
    assert isinstance(DROP, Ordered)
    assert (DROP.late, APPLY.late, DROP.wait) == ("drop", "apply", 10)


def test_an_ordered_machine_stays_behind_the_watermark_by_its_wait(feed):
    emitted = OrderedHarness()
    emitted.machine = DROP
    assert feed(emitted, [event(5, 26.0)], 15) == []
    assert emitted.due == 15
    assert feed(emitted, [event(5, 21.0)], 16) == [("ingress", 5), ("egress", 5)]
    assert feed(emitted, [event(5, 26.0), event(6, 24.0)], 16) == [("late", 5)]
    assert emitted.due == 16


def test_an_event_waits_until_the_watermark_has_passed_it(feed):
    emitted = OrderedHarness()
    assert emitted.due is None
    assert feed(emitted, [event(5, 26.0)]) == []
    assert emitted.due == 5
    assert emitted.advance(5) == []  # as far as 5 is not beyond 5
    assert emitted.holding == []
    assert emitted.advance(6) == [("ingress", 5)]
    assert emitted.due is None
    assert emitted.holding == [(0, "s", 5)]


def test_events_are_processed_in_order_of_time_whatever_the_order_of_arrival(feed):
    emitted = OrderedHarness()
    arrived = [event(7, 26.0), event(3, 26.0), event(5, 21.0), event(9, 21.0)]
    assert feed(emitted, arrived, 8) == [("ingress", 3), ("egress", 5), ("ingress", 7)]
    assert emitted.due == 9
    assert emitted.advance(NEVER) == [("egress", 9)]


def test_ties_in_time_are_processed_by_source_then_sequence_then_arrival(feed):
    emitted = OrderedHarness(machine_of("topic T (v float)\nstate Warm on T [v > 25; v < 22] ordered 10 us"))
    emitted_events = [
        event(1, 21.0, "b"),
        event(1, 26.0, "a", 2),
        event(1, 21.0, "a", 1),
        event(1, 26.0, "b"),
    ]
    # a1 cool, a2 warm, then of the equal pair b the one that came first: cool, then warm
    assert feed(emitted, emitted_events, 2) == [("ingress", 1), ("egress", 1), ("ingress", 1)]
    assert emitted.holding == [(0, None, 1)]


def test_a_late_event_is_marked_and_changes_nothing(feed):
    emitted = OrderedHarness()
    assert feed(emitted, [event(1, 26.0)], 10) == [("ingress", 1)]
    assert feed(emitted, [event(9, 21.0), event(10, 24.0)], 11) == [("late", 9)]
    assert emitted.holding == [(0, "s", 1)]
    assert emitted.due is None


def test_a_late_event_with_late_apply_is_processed_on_arrival(feed):
    emitted = OrderedHarness(APPLY)
    assert feed(emitted, [event(8, 26.0)], 10) == [("ingress", 8)]
    assert feed(emitted, [event(3, 21.0), event(11, 26.0)]) == [("egress", 3)]
    assert emitted.holding == []
    assert emitted.advance(12) == [("ingress", 11)]


def test_only_an_earlier_watermark_makes_an_event_late():
    """The until of the very step that brings the event does not."""
    emitted = OrderedHarness()
    assert emitted.step([event(1, 26.0), event(0, 21.0)], 100) == [("ingress", 1)]
    assert emitted.step([event(99, 21.0)], 100) == [("late", 99)]
    assert emitted.step([event(100, 21.0)], 100) == []  # as old as the until, not older
    assert emitted.step([], 101) == [("egress", 100)]


def test_late_events_are_emitted_before_the_others_of_the_same_step():
    emitted = OrderedHarness()
    emitted.step([], 10)
    assert emitted.step([event(12, 26.0), event(4, 1.0), event(3, 1.0)], 20) == [
        ("late", 4),
        ("late", 3),
        ("ingress", 12),
    ]


def test_the_watermark_does_not_go_backwards():
    emitted = OrderedHarness()
    emitted.advance(10)
    assert emitted.advance(5) == []
    assert emitted.react(event(7, 26.0)) == [("late", 7)]
    assert emitted.step([event(8, 26.0)], 3) == [("late", 8)]


def test_single_events_and_batches_can_be_mixed():
    emitted = OrderedHarness()
    assert emitted.react(event(5, 26.0)) == []
    assert emitted.step([event(3, 26.0), event(8, 26.0)], 4) == [("ingress", 3)]
    assert emitted.react(event(6, 21.0)) == []
    assert emitted.due == 5
    assert emitted.step([event(7, 21.0)], 7) == [("egress", 6)]
    assert emitted.advance(9) == [("ingress", 8)]
    assert emitted.due is None


def test_equal_events_keep_their_order_of_arrival_through_a_change_of_form():
    """Held singly, then as a batch, then singly again."""
    emitted = OrderedHarness()
    emitted.react(event(5, 26.0), event(5, 21.0))
    emitted.step([event(5, 26.0)], 0)
    emitted.react(event(5, 21.0), event(5, 26.0))
    assert [status for status, _ in emitted.advance(6)] == [
        "ingress",
        "egress",
        "ingress",
        "egress",
        "ingress",
    ]


def test_waiting_events_are_due_at_the_earliest_one():
    emitted = OrderedHarness()
    emitted.step([event(9, 26.0), event(4, 26.0)], 0)
    assert emitted.due == 4
    emitted.step([event(2, 26.0)], 0)
    assert emitted.due == 2
    emitted.react(event(1, 26.0))
    assert emitted.due == 1


def test_a_restored_state_still_holds_events_back_and_detects_late_ones():
    emitted = OrderedHarness()
    emitted.react(event(12, 26.0), event(15, 21.0), event(3, 26.0))
    emitted.advance(10)
    again = OrderedHarness()
    again.state = emitted.machine.load(emitted.machine.dump(emitted.state))
    assert (again.due, again.holding) == (12, [(0, "s", 3)])
    assert again.react(event(9, 21.0)) == [("late", 9)]
    assert again.react(event(11, 21.0)) == []
    assert again.advance(NEVER) == finish(emitted)


def finish(emitted):
    emitted.react(event(11, 21.0))
    return emitted.advance(NEVER)


def test_an_ordered_machine_is_in_its_initial_state_only_without_waiting_events():
    emitted = OrderedHarness()
    assert emitted.machine.is_initial(emitted.state, 0)
    emitted.react(event(5, 24.0))
    assert not emitted.machine.is_initial(emitted.state, 0)
    emitted.advance(6)
    assert emitted.machine.is_initial(emitted.state, 0)
    emitted.step([event(7, 24.0)], 0)
    assert not emitted.machine.is_initial(emitted.state, 0)


def test_live_input_is_never_a_closed_part():
    batch = from_events(TOPIC, readings(26.0, 27.0, 24.0, 28.0))
    thin = compact_batch(APPLY, batch)
    assert thin.column("v").to_pylist() == [26.0, 27.0, 28.0]
    assert row_count(thin) == 4
    assert APPLY.relevance("T", batch).satisfies.tolist() == [True, True, False, True]


def test_every_event_may_be_late_and_must_be_reported():
    batch = from_events(TOPIC, readings(26.0, 27.0, 24.0, 28.0))
    assert len(compact_batch(DROP, batch)) == 4
    assert may_be_late(DROP, batch, NEVER).all()
    assert may_be_late(DROP, batch, 12).tolist() == [True, True, False, False]
    assert len(compact_batch(DROP, batch, latest=10)) == 3  # 24 is irrelevant, and cannot be late


def test_batches_with_different_columns_wait_together():
    emitted = OrderedHarness()
    placed = from_events(TOPIC, [Event("T", 5, "s", {"v": 26.0}, 0, (1.0, 2.0), "lab")])
    emitted.step_batch(placed, 0)
    emitted.step_batch(from_events(TOPIC, [event(3, 26.0)]).drop_columns(["v"]), 0)
    assert emitted.step([event(4, 24.0), event(6, 21.0)], NEVER) == [("ingress", 5), ("egress", 6)]


def test_sources_may_be_dictionary_encoded():
    emitted = OrderedHarness()
    batch = dictionary_encoded(from_events(TOPIC, [event(3, 26.0), event(2, 24.0)]), "source")
    assert emitted.step_batch(batch, 9) == [("ingress", 3)]


def test_a_dictionary_may_follow_single_events():
    emitted = OrderedHarness()
    emitted.react(event(3, 26.0))
    emitted.step_batch(dictionary_encoded(from_events(TOPIC, [event(4, 21.0)]), "source"), 0)
    assert emitted.step([], 9) == [("ingress", 3), ("egress", 4)]


def test_compaction_does_not_lose_the_watermark():
    """A reading in no scope can be dropped; that it came at 9 still ends what a guard waits for."""
    text = (
        "topic T (v float, k text)\nstate Warm on T [v > 25 for 2 us; v < 22] per k ordered 1 us late apply"
    )
    (operator,) = planning.operators(check(parse(text)))
    it = operator.machine
    topic = it.topics["T"]
    parts = [
        ([Event("T", 0, "s", {"v": 0.0, "k": "x"}, 0)], 0),
        ([Event("T", 9, "s", {"v": 30.0, "k": None}, 1)], 9),
        ([Event("T", 7, "s", {"v": 30.0, "k": "x"}, 2)], 9),
    ]
    for compact in (dict, lambda batches: compact_part(it, batches)):
        state = it.initial()
        for events, until in parts:
            state, _ = it.step(state, compact({"T": from_events(topic, events)}), until)
        _, emitted = it.step(state, {}, NEVER)
        assert [(t.status, t.event.time, t.since) for t in transitions(it.topics, emitted)] == [
            ("ingress", 9, 7)
        ]


def test_waiting_events_do_not_store_the_names_of_all_sources():
    state, sizes = DROP.initial(), []
    for at in range(0, 2000, 20):
        names = [f"s{at + i}" for i in range(20)]
        batch = dictionary_encoded(
            from_events(TOPIC, [event(at + 15, 20.0, name) for name in names]), "source"
        )
        state, _ = DROP.step(state, {"T": batch}, at + 15)
        sizes.append(len(DROP.dump(state)))
    assert max(sizes[50:]) < 2 * sizes[0]
