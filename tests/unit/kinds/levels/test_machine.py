"""Levels that may be unknown, and what they refuse."""

from __future__ import annotations

import pytest

from holdfast import DefinitionError, Engine, Event, check, parse
from holdfast.model.batch import from_events

MINUTE = 60_000_000
TODAY = 1_700_000_000_000_000
RUNGS = "topic T (v float)\nlevels Heat on T: low [v > 1; v < 1], high [v > 3; v < 2] per source"


def push_all(engine, *rows):
    output = []
    for minute, source, v in rows:
        output += engine.push(Event("T", TODAY + minute * MINUTE, source, {"v": v}, minute))
    return [
        ((n.event.time - TODAY) // MINUTE, n.scope, n.status, n.event.attributes["level"]) for n in output
    ]


def test_a_scope_without_readings_keeps_its_level_and_is_reported_unknown_once():
    engine = Engine(f"{RUNGS} unknown after 10 min")
    rows = [(0, "a", 5.0), (5, "b", 0.0), (14, "b", 0.0), (20, "b", 0.0)]
    assert push_all(engine, *rows) == [(0, "a", "ingress", "high"), (10, "a", "unknown", "high")]
    assert [(one.scope, one.known) for one in engine.holding()] == [("a", False)]
    assert engine.unknown() == [("Heat", "a")]
    again = Engine.restore(engine.app, engine.snapshot())
    for one in (engine, again):
        assert push_all(one, (21, "a", 1.5)) == [(21, "a", "lowered", "low")]
    assert engine.unknown() == again.unknown() == []


def test_a_forgotten_scope_is_reported_unknown_and_starts_again():
    engine = Engine(f"{RUNGS} forget after 10 min")
    rows = [(0, "a", 5.0), (12, "b", 0.0), (13, "a", 1.5)]
    assert push_all(engine, *rows) == [
        (0, "a", "ingress", "high"), (10, "a", "unknown", "high"), (13, "a", "ingress", "low")
    ]  # fmt: skip


def test_an_expected_scope_without_any_reading_is_reported(tmp_path):
    (tmp_path / "who.csv").write_text("source\na\nb\n")
    engine = Engine(f'{RUNGS} unknown after 10 min roster "who.csv"', base=tmp_path)
    assert push_all(engine, (0, "a", 5.0), (9, "a", 5.0), (11, "a", 5.0)) == [
        (0, "a", "ingress", "high"), (10, "b", "unknown", None)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("initially on", "levels begin with none: 'Heat' has 'initially'"),
        ("initially off quietly", "levels begin with none: 'Heat' has 'initially'"),
        ("unknown after 1 min forget after 2 min", "levels are unknown or forgotten: 'Heat' has"),
    ],
)
def test_invalid_levels_are_refused_at_their_place(clauses, message):
    with pytest.raises(DefinitionError) as refused:
        check(parse(f"{RUNGS} {clauses}"))
    assert str(refused.value).startswith(f"definition:2:8: {message}")
    assert "       ^^^^" in str(refused.value)


def test_timers_that_a_late_batch_fires_are_reported():
    """A timer that a late reading of a batch fires is notified with it, also beside output of other
    levels."""
    text = "topic T (v float)\nlevels Heat on T: low [v > 1 for 2 min; v < 1], high [v > 9; v < 2] per source"
    events = [Event("T", TODAY + at * MINUTE, who, {"v": v}, i) for i, (at, who, v) in
              enumerate([(10, "b", 0.0), (3, "a", 5.0), (6, "a", 5.0)])]  # fmt: skip
    one, other = Engine(text), Engine(text)
    topic = check(parse(text)).topics[0]
    singly = [n for event in events for n in one.push(event)]
    at_once = other.push_batch("T", from_events(topic, events[:1]))
    at_once += other.push_batch("T", from_events(topic, events[1:]))
    rows = [[(n.scope, n.status, n.event.time) for n in some] for some in (singly, at_once)]
    assert rows[0] == rows[1] == [("a", "ingress", TODAY + 5 * MINUTE)]
