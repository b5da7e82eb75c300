"""Correlations in this process: live, over history, in cases, stored and continued."""

from __future__ import annotations

import json
from functools import partial

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from holdfast import Engine, Event, UsageError, check, parse, replay
from holdfast.files.plan import closed_parts
from holdfast.model.batch import from_events
from holdfast.plan.explain import explain
from holdfast.runtimes.local.cases import run_cases
from support.correlated import SECOND, as_counts, check_text, definitions, histories, oracle

STORM = """
topic Temp (value float)
topic Wind (value float)
correlate Storm within 10 s  Temp < 0  Wind > 8
"""


def temp(at, value=-1.0, source="t"):
    return Event("Temp", at * SECOND, source, {"value": value})


def wind(at, value=9.0, source="w"):
    return Event("Wind", at * SECOND, source, {"value": value})


def as_rows(notifications):
    return [(n.subscription, n.status, n.event.topic, n.event.time // SECOND) for n in notifications]


# --- live --------------------------------------------------------------------------------------


def test_an_event_is_notified_with_its_own_time_when_its_partner_has_arrived():
    engine = Engine(STORM)
    assert as_rows(engine.push(temp(1))) == []
    assert as_rows(engine.push(temp(2, 5.0))) == []
    assert as_rows(engine.push(wind(4))) == [("Storm", "atomic", "Temp", 1), ("Storm", "atomic", "Wind", 4)]
    assert as_rows(engine.push(wind(5))) == [("Storm", "atomic", "Wind", 5)]
    assert as_rows(engine.push(wind(11))) == []  # ten seconds are not less than ten
    assert as_rows(engine.push(temp(12))) == [
        ("Storm", "atomic", "Wind", 11),
        ("Storm", "atomic", "Temp", 12),
    ]
    assert engine.holding() == []


def test_events_out_of_order_still_find_their_partners():
    engine = Engine(STORM)
    engine.push(wind(12))
    assert as_rows(engine.push(temp(3))) == [("Storm", "atomic", "Temp", 3), ("Storm", "atomic", "Wind", 12)]


def test_batches_emit_what_single_events_emit():
    engine, singly = Engine(STORM), Engine(STORM)
    one = singly.push(temp(1)) + singly.push(temp(5)) + singly.push(wind(6))
    topics = {topic.name: topic for topic in check(parse(STORM)).topics}
    engine.push_batch("Temp", from_events(topics["Temp"], [temp(1), temp(5)]).drop_columns(["sequence"]))
    other = engine.push_batch("Wind", from_events(topics["Wind"], [wind(6)]).drop_columns(["sequence"]))
    assert [n.id for n in other] == [n.id for n in one]


def test_ordered_correlations_wait_and_report_late_events():
    engine = Engine(STORM + "ordered 5 s")
    engine.push(wind(8))
    assert as_rows(engine.push(temp(4))) == []
    assert as_rows(engine.advance(14 * SECOND)) == [
        ("Storm", "atomic", "Temp", 4),
        ("Storm", "atomic", "Wind", 8),
    ]
    assert engine.push(temp(7)) == []
    assert as_rows(engine.late) == [("Storm", "late", "Temp", 7)]
    engine.push(temp(15))
    assert as_rows(engine.finish()) == [("Storm", "atomic", "Temp", 15)]
    engine.push(wind(16))  # more came after all
    assert as_rows(engine.finish()) == [("Storm", "atomic", "Wind", 16)]


def test_correlations_can_be_added_and_removed_while_events_arrive():
    engine = Engine(STORM)
    engine.push(temp(1))
    mild = engine.subscribe("correlate Mild within 10 s  Temp < 0  Wind > 1")
    assert as_rows(engine.push(wind(2))) == [("Storm", "atomic", "Temp", 1), ("Storm", "atomic", "Wind", 2)]
    engine.push(temp(3))
    assert as_rows(mild) == [("Mild", "atomic", "Wind", 2), ("Mild", "atomic", "Temp", 3)]
    again = engine.subscribe("correlate Again within 10 s  Temp < 0  Wind > 8")
    engine.unsubscribe("Storm")
    assert as_rows(engine.push(wind(4))) == [
        ("Mild", "atomic", "Wind", 4),
    ]
    engine.push(temp(5))
    assert as_rows(again) == [("Again", "atomic", "Wind", 4), ("Again", "atomic", "Temp", 5)]
    assert engine.subscriptions == ["Mild", "Again"]


def test_an_engine_continues_correlations_from_a_snapshot():
    engine = Engine(STORM)
    engine.push(temp(1))
    other = STORM + "correlate More within 20 s  Temp < 0  Wind > 8"
    again = Engine.restore(other, engine.snapshot())
    assert as_rows(again.push(wind(3))) == [("Storm", "atomic", "Temp", 1), ("Storm", "atomic", "Wind", 3)]
    once_more = Engine.restore(other, again.snapshot())
    out = as_rows(once_more.push(temp(4)))
    assert out == [
        ("Storm", "atomic", "Temp", 4),
        ("More", "atomic", "Wind", 3),
        ("More", "atomic", "Temp", 4),
    ]
    with pytest.raises(UsageError, match="'Storm' means something else"):
        Engine.restore(STORM.replace("> 8", "> 7"), engine.snapshot())


@pytest.mark.parametrize("gone", [0, 65])
def test_remaining_correlations_keep_their_events_when_one_of_many_is_removed(gone):
    """More than a machine runs: they stay on the machines on which they are."""
    lines = [f"correlate C{i} within 20 s  Temp in [{i}, {i + 3}]  Wind in [{i}, {i + 3}]" for i in range(70)]
    declared = STORM.partition("correlate")[0]
    many, fewer = (declared + "\n".join(some) for some in (lines, lines[:gone] + lines[gone + 1 :]))
    whole, before = Engine(many), Engine(many)
    for i in range(70):
        whole.push(temp(1, i))
        before.push(temp(1, i))
    after = Engine.restore(fewer, before.snapshot())
    for i in range(70):
        expected = [n for n in as_rows(whole.push(wind(2, i))) if n[0] != f"C{gone}"]
        assert as_rows(after.push(wind(2, i))) == expected


@settings(max_examples=15)
@given(definitions(), histories)
def test_an_engine_equals_a_search_over_every_combination(text, events):
    engine = Engine(text)
    assert as_counts(text, events, [n for event in events for n in engine.push(event)]) == oracle(
        text, events
    )


# --- history -----------------------------------------------------------------------------------


def write(path, events):
    columns = {
        "time": pa.array([event.time for event in events], pa.timestamp("us")),
        "source": [event.source for event in events],
        "topic": [event.topic for event in events],
        "value": [event.attributes["value"] for event in events],
    }
    pq.write_table(pa.table(columns), path)


def test_the_partner_of_an_event_may_be_in_the_next_file(tmp_path, monkeypatch):
    """Parts of a history are read one after another; what stands behind an event waits for its partner."""
    parts = partial(closed_parts, small=1)
    monkeypatch.setattr("holdfast.runtimes.local.replay.closed_parts", parts)
    write(tmp_path / "1.parquet", [temp(1), temp(4)])
    write(tmp_path / "2.parquet", [temp(8), temp(9), wind(10)])
    write(tmp_path / "3.parquet", [temp(30), temp(31, 5.0), wind(32)])
    it = replay(STORM + "filter Cold on Temp where value < 0", tmp_path)
    assert len(it.parts) == 3
    notifications = list(it)
    assert [n.order for n in notifications] == sorted(n.order for n in notifications)
    assert [n.event.time // SECOND for n in notifications if n.subscription == "Storm"] == [
        1,
        4,
        8,
        9,
        10,
        30,
        32,
    ]
    assert it.passed == {"Cold": 5, "Storm": 7}


@settings(max_examples=10)
@given(definitions(), histories)
def test_a_replay_equals_a_search_over_every_combination(tmp_path_factory, text, events):
    folder = tmp_path_factory.mktemp("history")
    for event in events:
        place = dict(zip("xy", event.location or (), strict=False))
        row = {"time": event.time, "source": event.source, "topic": event.topic, "sequence": event.sequence}
        values = {name: None if value != value else value for name, value in event.attributes.items()}
        with (folder / "events.jsonl").open("a") as file:
            file.write(json.dumps(row | place | values) + "\n")
    notifications = list(replay(text, folder, time_unit="us"))
    assert [n.order for n in notifications] == sorted(n.order for n in notifications)
    assert as_counts(text, events, notifications) == oracle(text, events)


def test_a_correlation_without_possible_events_is_reported(tmp_path):
    text = STORM.replace("Temp < 0", 'Temp of "x" < 0').replace("Wind > 8", 'Wind of "y" > 8')
    write(tmp_path / "events.parquet", [temp(1), wind(2)])
    it = replay(text, tmp_path)
    assert list(it) == []
    assert it.misplaced() == ["Storm"]


# --- cases and the plan ------------------------------------------------------------------------


def test_cases_test_the_output_of_a_correlation():
    case = """
    case "a storm"
      given Temp every 4 s: -1, 3, -2
      given Wind starting 9 s: 10
      expect Storm: atomic at 0 s, atomic at 8 s, atomic at 9 s
    case "too long ago"
      given Temp: -1
      given Wind starting 10 s: 10
      expect Storm: nothing
    """
    assert [outcome.holds for outcome in run_cases(check(parse(STORM + case)))] == [True, True]


def test_the_plan_of_a_correlation_explains_filters_output_and_state():
    plan = explain(
        check(
            parse(STORM + "ordered 30 s  correlate Near within 10 s, 5 m  Temp in [0, 2)  Wind > 1 tell all")
        )
    )
    assert "matches Temp.value < 0" in plan
    assert "matches Temp.value in [0, 2)" in plan
    assert "each pair less than 5 m apart" in plan
    assert "keeps     matching events of Temp, Wind, for 10 s" in plan  # ordered: no longer than the window
    assert "keeps     matching events of Temp, Wind, for 20 s" in plan


def test_equal_correlations_share_a_machine_under_their_own_names():
    text = STORM + "correlate Same within 10 s  Temp.value < 0  Wind > 8"
    assert len(check_text(text)) == 2
    engine = Engine(text)
    engine.push(temp(1))
    assert as_rows(engine.push(wind(2))) == [
        ("Storm", "atomic", "Temp", 1), ("Same", "atomic", "Temp", 1),
        ("Storm", "atomic", "Wind", 2), ("Same", "atomic", "Wind", 2),
    ]  # fmt: skip
