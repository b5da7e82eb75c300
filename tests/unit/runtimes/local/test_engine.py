"""The engine as its users meet it."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import App, Engine, Event, Holding, UsageError
from holdfast.lang import ops
from holdfast.model.batch import from_events
from holdfast.model.instant import SECOND
from support import histories as made
from support.histories import TOPIC, histories, ordered, subscriptions

WARM = """
topic Temperature (value float)
state Warm on Temperature [value > 25; value < 22] per source
"""


def reading(time, value, source="s1", **more):
    return Event("Temperature", time, source, {"value": value}, **more)


def as_rows(notifications):
    return [(n.subscription, n.scope, n.status, n.event.time) for n in notifications]


# --- events in, notifications out ---


def test_a_condition_starts_and_ends_and_reports_since_when():
    engine = Engine(WARM)
    out = [n for t, v in enumerate([24, 26, 27, 23, 21.9]) for n in engine.push(reading(t, v))]
    assert as_rows(out) == [("Warm", "s1", "ingress", 1), ("Warm", "s1", "egress", 4)]
    assert [n.since for n in out] == [None, 1]


def test_active_conditions_are_listed_as_a_table():
    engine = Engine(WARM)
    engine.push(reading(3, 30, "a"))
    engine.push(reading(5, 30, "b"))
    engine.push(reading(7, 10, "a"))
    assert engine.holding() == [Holding("Warm", "b", 5)]


def test_the_table_of_active_conditions_contains_the_level_of_levels():
    engine = Engine(
        "topic Temperature (value float)\nlevels Heat on Temperature: warn [value > 25; value < 22], "
        "alarm [value > 30; value < 27] per source"
    )
    engine.push(reading(3, 26, "a"))
    engine.push(reading(5, 31, "b"))
    assert engine.holding() == [
        Holding("Heat", "a", 3, level="warn"),
        Holding("Heat", "b", 5, level="alarm"),
    ]


def test_a_batch_emits_what_its_events_would_emit():
    events = [
        reading(t, v, s, sequence=t) for t, (v, s) in enumerate([(26, "a"), (27, "b"), (20, "a"), (20, "b")])
    ]
    engine = Engine(WARM)
    batch = from_events(engine._running.topics["Temperature"], events)
    one_by_one = [n for e in events for n in Engine.push(engine, e)]
    assert sorted(as_rows(Engine(WARM).push_batch("Temperature", batch))) == sorted(as_rows(one_by_one))


@given(subscriptions(most=4), histories())
def test_random_batches_emit_what_their_events_emit(subs, events):
    app = App((ops.DeclareTopic(TOPIC), *made.REGIONS, *subs))
    events = [
        Event(e.topic, e.time, e.source, e.attributes, i + 1, e.location, e.place)
        for i, e in enumerate(events)
    ]
    single, batched = Engine(app), Engine(app)
    one_by_one = [n for e in events for n in single.push(e)]
    together = batched.push_batch(TOPIC.name, from_events(TOPIC, events))
    for sub in subs:
        assert _visible(one_by_one, sub.name) == _visible(together, sub.name)
    assert single.holding() == batched.holding()


def _visible(notifications, name):
    return [(n.scope, n.status, n.since, n.event.order) for n in notifications if n.subscription == name]


def test_events_are_numbered_in_order_of_arrival():
    engine = Engine(WARM)
    (first,) = engine.push(reading(0, 30, "a"))
    (second,) = engine.push(reading(0, 30, "b"))
    assert first.event.sequence < second.event.sequence


def test_an_int_becomes_the_declared_float():
    (note,) = Engine(WARM).push(reading(0, 30))
    assert note.event.attributes == {"value": 30.0}
    assert isinstance(note.event.attributes["value"], float)


def test_a_missing_attribute_is_none_and_nan_is_shown_as_null():
    engine = Engine("topic T (a float, b float)\nfilter F on T where a > 1")
    (note,) = engine.push(Event("T", 0, "s", {"a": 2.0}))
    assert note.event.attributes == {"a": 2.0, "b": None}
    (note,) = engine.push(Event("T", 1, "s", {"a": 2.0, "b": math.nan}))
    assert note.to_json()["attributes"] == {"a": 2.0, "b": None}


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (Event("Temprature", 0, "s", {"value": 1.0}), "Did you mean 'Temperature'?"),
        (Event("Temperature", 0, "s", {"vlaue": 1.0}), "Did you mean 'value'?"),
        (Event("Temperature", 0, "s", {"value": "hot"}), "must be float, not 'hot'"),
        (Event("Temperature", 0, "s", {"value": True}), "must be float, not True"),
    ],
)
def test_a_wrong_event_is_refused_with_a_remedy(event, message):
    engine = Engine(WARM)
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        engine.push(event)
    assert as_rows(engine.push(reading(0, 30))) == [("Warm", "s1", "ingress", 0)]


def test_a_batch_without_time_is_refused():
    with pytest.raises(UsageError, match="needs a 'time' column"):
        Engine(WARM).push_batch("Temperature", pa.RecordBatch.from_pydict({"source": ["a"], "value": [1.0]}))


# --- subscribers ---


def test_a_callback_receives_only_notifications_of_its_condition():
    engine, received = Engine(WARM + "filter Hot on Temperature where value > 40"), []
    engine.subscribe("Warm", received.append)
    engine.push(reading(0, 50))
    assert as_rows(received) == [("Warm", "s1", "ingress", 0)]


def test_notifications_without_a_callback_wait_to_be_read():
    engine = Engine(WARM)
    subscription = engine.subscribe("Warm")
    engine.push(reading(0, 30))
    engine.push(reading(1, 10))
    assert [n.status for n in subscription] == ["ingress", "egress"]
    assert list(subscription) == []
    subscription.cancel()
    engine.push(reading(2, 30))
    assert list(subscription) == []
    assert len(engine.holding()) == 1


def test_a_new_condition_can_be_subscribed_to_while_events_flow():
    engine = Engine(WARM)
    engine.push(reading(0, 3))
    cold = engine.subscribe("state Cold on Temperature [value < 5; value > 8] per source")
    assert list(cold) == []
    engine.push(reading(1, 3))
    engine.push(reading(2, 9))
    assert [(n.status, n.event.time) for n in cold] == [("ingress", 1), ("egress", 2)]
    assert engine.subscriptions == ["Warm", "Cold"]


def test_a_name_can_be_used_again_after_its_subscription_ended():
    engine = Engine(WARM)
    engine.push(reading(0, 30))
    engine.unsubscribe("Warm")
    assert engine.push(reading(1, 10)) == []
    assert engine.holding() == []
    again = engine.subscribe("state Warm on Temperature [value > 35; value < 22] per source")
    engine.push(reading(2, 30))
    assert list(again) == []


def test_unknown_names_are_refused_with_a_remedy():
    engine = Engine(WARM)
    with pytest.raises(UsageError, match="Did you mean 'Warm'"):
        engine.subscribe("Warn")
    with pytest.raises(UsageError, match="Did you mean 'Warm'"):
        engine.unsubscribe("warm")
    with pytest.raises(UsageError, match="one new subscription at a time"):
        engine.subscribe("let x = 3")


def test_a_failing_subscriber_stops_neither_the_engine_nor_the_others():
    engine, received = Engine(WARM), []

    def fail(notification):
        raise RuntimeError("out of paper")

    engine.subscribe("Warm", fail)
    engine.subscribe("Warm", received.append)
    with pytest.raises(RuntimeError, match="out of paper"):
        engine.push(reading(0, 30))
    assert len(received) == 1
    with pytest.raises(RuntimeError):
        engine.push(reading(1, 10))
    assert [n.status for n in received] == ["ingress", "egress"]


def test_a_subscriber_may_push_subscribe_and_unsubscribe():
    engine = Engine(WARM + "topic Alarm (level float)\nfilter Any on Alarm where level > 0")
    alarms = engine.subscribe("Any")

    def react(notification):
        engine.push(Event("Alarm", notification.event.time, "rule", {"level": 1.0}))
        engine.unsubscribe("Warm")

    engine.subscribe("Warm", react)
    engine.push(reading(0, 30))
    assert len(list(alarms)) == 1
    assert engine.subscriptions == ["Any"]


# --- sharing ---


def test_equal_filters_share_one_machine():
    engine = Engine(WARM + "state Hot on Temperature [value > 25.0; !(value >= 22)] per source")
    ((operator, _),) = engine._running.operators
    assert operator.names == (("Warm", "Hot"),)
    assert as_rows(engine.push(reading(0, 30))) == [("Warm", "s1", "ingress", 0), ("Hot", "s1", "ingress", 0)]


def test_an_added_filter_shares_a_slot_only_where_that_makes_no_difference():
    newcomer = "state Late on Temperature [value > 25; value < 22] per source"
    engine = Engine(WARM)
    engine.push(reading(0, 30))
    late = engine.subscribe(newcomer)
    engine.push(reading(1, 10))  # the end of what it never saw begin
    assert list(late) == []
    engine = Engine(WARM)
    engine.push(reading(0, 10))
    late = engine.subscribe(newcomer)
    assert len(engine._running.graph.operators) == 1
    engine.push(reading(1, 30))
    assert [n.status for n in late] == ["ingress"]


# --- order ---

ORDERED = WARM.replace("per source", "per source ordered 10 s")


def at(seconds, value, **more):
    return reading(seconds * SECOND, value, **more)


def test_timely_conditions_process_events_in_order_of_arrival():
    engine = Engine(WARM)
    out = [n for e in (at(5, 30), at(1, 10), at(6, 30)) for n in engine.push(e)]
    assert [n.status for n in out] == ["ingress", "egress", "ingress"]


def test_ordered_conditions_wait_and_process_events_in_order():
    engine = Engine(ORDERED)
    assert [n for e in (at(5, 30), at(1, 10), at(6, 30), at(15, 24)) for n in engine.push(e)] == []
    assert [(n.status, n.event.time) for n in engine.push(at(16, 24))] == [("ingress", 5 * SECOND)]
    assert engine.finish() == []
    assert engine.late == []


def test_late_events_are_counted_and_readable():
    engine = Engine(ORDERED)
    engine.push(at(20, 30))
    engine.push(at(40, 30))
    assert engine.push(at(9, 10)) == []
    assert [(n.subscription, n.status, n.event.time) for n in engine.late] == [("Warm", "late", 9 * SECOND)]
    assert engine.late_counts == {"Warm": 1}


def test_late_apply_processes_late_events_on_arrival():
    engine = Engine(ORDERED.replace("10 s", "10 s late apply"))
    engine.push(at(20, 30))
    engine.push(at(40, 30))
    assert [(n.status, n.event.time) for n in engine.push(at(9, 10))] == [("egress", 20 * SECOND)]
    assert engine.late_counts == {}


def test_time_can_be_advanced_without_events():
    engine = Engine(ORDERED)
    engine.push(at(5, 30))
    assert engine.advance(15 * SECOND) == []
    assert [n.status for n in engine.advance(16 * SECOND)] == ["ingress"]


def test_run_ends_with_all_waiting_notifications():
    assert [n.status for n in Engine(ORDERED).run([at(2, 10), at(1, 30)])] == ["ingress", "egress"]


# --- restart ---


def test_a_restart_repeats_and_loses_no_notification():
    engine = Engine(WARM)
    engine.push(reading(3, 30))
    restored = Engine.restore(WARM, engine.snapshot())
    assert restored.push(reading(4, 30)) == []
    (note,) = restored.push(reading(5, 10))
    assert (note.status, note.since) == ("egress", 3)


@given(
    (ordered | st.none()).flatmap(
        lambda d: subscriptions(delivery=d, most=3) if d else subscriptions(most=3)
    ),
    histories(),
    histories(),
)
def test_a_restart_at_any_time_changes_nothing(subs, first, second):
    app = App((ops.DeclareTopic(TOPIC), *made.REGIONS, *subs))
    engine = Engine(app)
    for event in first:
        engine.push(event)
    restored = Engine.restore(app, engine.snapshot())
    assert restored.holding() == engine.holding()
    for event in second:
        assert _plain(restored.push(event)) == _plain(engine.push(event))
    assert _plain(restored.finish()) == _plain(engine.finish())
    assert restored.late_counts == engine.late_counts


def _plain(notifications):
    return [(n.subscription, n.scope, n.status, n.since, n.event.order) for n in notifications]


def test_subscriptions_can_be_added_and_removed_between_snapshot_and_restart():
    both = WARM + "state Cold on Temperature [value < 5; value > 8] per source"
    engine = Engine(both)
    engine.push(reading(0, 30))
    engine.push(reading(1, 1, "s2"))
    without = Engine.restore(
        both.replace("state Warm on Temperature [value > 25; value < 22] per source", ""), engine.snapshot()
    )
    assert without.holding() == [Holding("Cold", "s2", 1)]
    more = Engine.restore(both + "\nfilter Any on Temperature where value > 0", engine.snapshot())
    assert more.holding() == [Holding("Cold", "s2", 1), Holding("Warm", "s1", 0)]
    assert more.holding({"Warm", "Mild"}) == [Holding("Warm", "s1", 0)]
    assert as_rows(more.push(reading(2, 10))) == [("Warm", "s1", "egress", 2), ("Any", None, "atomic", 2)]


def test_a_changed_condition_under_its_old_name_is_refused_at_a_restart():
    snapshot = Engine(WARM).snapshot()
    with pytest.raises(UsageError, match="'Warm' means something else"):
        Engine.restore(WARM.replace("25", "26"), snapshot)
    with pytest.raises(UsageError, match="not a snapshot"):
        Engine.restore(WARM, b"garbage")


# --- wrong use ---


def test_parameters_can_be_overridden():
    app = WARM.replace("25", "high") + "let high = 25"
    engine = Engine(app, lets={"high": 30})
    assert engine.push(reading(0, 26)) == []
    later = engine.subscribe("state Hot on Temperature [value > high; value < 22] per source")
    engine.push(reading(1, 31))
    assert [n.status for n in later] == ["ingress"]
    again = Engine.restore(engine.app, engine.snapshot(), lets={"high": 30})
    assert as_rows(again.push(reading(2, 20))) == [("Warm", "s1", "egress", 2), ("Hot", "s1", "egress", 2)]
    with pytest.raises(UsageError, match="'Warm'"):
        Engine.restore(engine.app, engine.snapshot())


@pytest.mark.parametrize("name", ["warm.hf", Path("rules/warm.hf")])
def test_a_file_name_as_a_definition_is_refused_with_a_hint_to_load(name):
    with pytest.raises(UsageError, match=r"holdfast\.load\('.*warm\.hf'\) reads it"):
        Engine(name)


WRONG_EVENTS = [
    {"topic": "Temperature"},
    None,
    ("Temperature", 0, "s", {"value": 1.0}),
    Event(["Temperature"], 0, "s", {"value": 1.0}),
    Event(None, 0, "s", {"value": 1.0}),
    Event("Temperature", 0, "s", [("value", 1.0)]),
    Event("Temperature", 0, "s", None),
    Event("Temperature", 0, "s", {1: 1.0}),
    Event("Temperature", 0, "s", {"value": [1.0]}),
    Event("Temperature", 0, "s", {"value": 1.0}, place=3),
    Event("Temperature", 0, "s", {"value": 1.0}, location=3.0),
    Event("Temperature", 0, "s", {"value": 1.0}, location="north"),
    Event("Temperature", 0, "s", {"value": 1.0}, sequence="first"),
    Event("Temperature", "2026-01-01", "s", {"value": 1.0}),
    Event("Temperature", 0.5, "s", {"value": 1.0}),
    Event("Temperature", 0, 7, {"value": 1.0}),
]


@pytest.mark.parametrize("event", WRONG_EVENTS, ids=lambda e: repr(e)[:60])
def test_an_invalid_event_is_a_usage_error(event):
    engine = Engine(WARM)
    with pytest.raises(UsageError):
        engine.push(event)
    assert as_rows(engine.push(reading(0, 30))) == [("Warm", "s1", "ingress", 0)]


@pytest.mark.parametrize("batch", [None, {"time": [0]}, [reading(0, 30)]])
def test_an_invalid_batch_is_a_usage_error(batch):
    with pytest.raises(UsageError, match="RecordBatch or Table"):
        Engine(WARM).push_batch("Temperature", batch)


@pytest.mark.parametrize("until", [None, 1.5, "2026-01-01"])
def test_advancing_to_an_invalid_time_is_a_usage_error(until):
    with pytest.raises(UsageError, match="instant"):
        Engine(WARM).advance(until)


@pytest.mark.parametrize("callback", ["print", 3, lambda: None, lambda note, more: None])
def test_an_invalid_callback_is_refused_when_it_is_given(callback):
    engine = Engine(WARM)
    with pytest.raises(UsageError, match="one notification"):
        engine.subscribe("Warm", callback)
    assert engine.push(reading(0, 30))


@pytest.mark.parametrize("callback", [print, [].append, lambda note, more=None: None, lambda *notes: None])
def test_every_callable_with_one_argument_is_a_callback(callback):
    Engine(WARM).subscribe("Warm", callback)


def test_subscribing_to_something_that_is_not_text_is_refused():
    with pytest.raises(UsageError, match="name or its definition"):
        Engine(WARM).subscribe(None)


NOW = 1_767_225_600_000_000


@pytest.mark.parametrize(
    ("time", "unit"), [(NOW // 1_000_000, "in seconds"), (NOW // 1_000, "in milliseconds")]
)
def test_times_in_seconds_or_milliseconds_cause_one_warning(time, unit):
    engine = Engine(WARM)
    with pytest.warns(UserWarning, match=f"2026-01-01T00:00:00.000000Z {unit}"):
        engine.push(reading(time, 30))
    engine.push(reading(time + 1, 20))


def test_a_batch_or_an_advance_in_another_unit_causes_a_warning():
    batch = from_events(Engine(WARM)._running.topics["Temperature"], [reading(NOW // 1000, 30.0, sequence=1)])
    with pytest.warns(UserWarning, match="in milliseconds"):
        Engine(WARM).push_batch("Temperature", batch)
    engine = Engine(WARM)
    engine.push(reading(NOW, 30))
    with pytest.warns(UserWarning, match="in seconds"):
        engine.advance(NOW // 1_000_000 + 60)


def test_a_clock_that_starts_from_zero_causes_no_warning():
    engine = Engine(WARM)
    for hour in range(10):
        engine.push(reading(hour * 1_800 * SECOND, 30))


@pytest.mark.parametrize(
    ("lets", "message"),
    [
        (5, "lets are parameters by name"),
        ({"high": []}, "'high' cannot be []: it is neither number, text nor truth"),
        ({"high": None}, "'high' cannot be None"),
        ({"high": math.nan}, "'high' cannot be nan"),
    ],
)
def test_an_invalid_parameter_is_a_usage_error(lets, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        Engine("topic T (value float) let high = 5 filter F on T where value > high", lets=lets)


def test_a_snapshot_that_is_not_bytes_is_refused():
    with pytest.raises(UsageError, match="a snapshot is the bytes"):
        Engine.restore("topic T (value float)", "holdfast snapshot 3")


def test_a_late_end_is_not_before_its_start():
    engine = Engine("topic T (v float)\nstate Warm on T [v > 25; v < 22] per source")
    start = 1_750_000_000_000_000
    for at, value in [(0, 20.0), (10, 26.0), (5, 21.0)]:
        notes = engine.push(Event("T", start + at, "s", {"v": value}))
    assert [(n.status, n.event.time - start, n.since - start) for n in notes] == [("egress", 10, 10)]


PAUSED = """
topic T (v float)
state Hot  on T [v > 25 for 1 min; v < 22] per source
state Dead on T [silent 1 min; !silent 1 min] per source
"""


def test_pauses_advance_no_timer_of_silent_sources_while_arriving_readings_do():
    """Readings of 'b' wait somewhere for five minutes, those of 'a' come."""
    start, more = 1_750_000_000 * SECOND, PAUSED + "state Any = any of Dead\n"

    def push(one, seconds, source, value):
        event = Event("T", start + seconds * SECOND, source, {"v": value})
        return [(n.subscription, n.scope, (n.event.time - start) // SECOND) for n in one.push(event)]

    engine = Engine(PAUSED)
    assert push(engine, 0, "a", 30.0) == push(engine, 0, "b", 30.0) == []
    engine.pause(["T"])
    engine = Engine.restore(PAUSED, engine.snapshot())
    assert push(engine, 30, "a", 30.0) == []
    assert push(engine, 61, "a", 30.0) == [("Hot", "a", 60)], "its own readings say so"
    assert push(engine, 300, "a", 30.0) == [("Dead", "a", 121), ("Dead", "a", 300)]
    assert engine.due is None
    assert engine.revise(more) == [], "a definition may change meanwhile"
    engine.pause([])
    assert push(engine, 310, "a", 30.0) == push(engine, 355, "a", 30.0) == []
    found = push(engine, 362, "a", 30.0)
    assert found == [("Hot", "b", 60), ("Dead", "b", 60), ("Any", None, 60)], "a minute without the pause"
