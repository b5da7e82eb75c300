"""Levels that may be unknown, and what they refuse."""

from __future__ import annotations

import msgspec
import pytest

from holdfast import DefinitionError, Engine, Event, check, parse
from holdfast.model.batch import from_events
from holdfast.runtimes.local.snapshot import opened, seal

MINUTE = 60_000_000
TODAY = 1_700_000_000_000_000
RUNGS = "topic T (v float)\nlevels Heat on T: low [v > 1; v < 1], high [v > 3; v < 2] per source"


def told(engine, *rows):
    said = []
    for minute, source, v in rows:
        said += engine.push(Event("T", TODAY + minute * MINUTE, source, {"v": v}, minute))
    return [((n.event.time - TODAY) // MINUTE, n.scope, n.status, n.event.attributes["level"]) for n in said]


def test_a_scope_whose_readings_stop_keeps_its_level_and_is_told_unknown_once():
    engine = Engine(f"{RUNGS} unknown after 10 min")
    rows = [(0, "a", 5.0), (5, "b", 0.0), (14, "b", 0.0), (20, "b", 0.0)]
    assert told(engine, *rows) == [(0, "a", "ingress", "high"), (10, "a", "unknown", "high")]
    assert [(one.scope, one.known) for one in engine.holding()] == [("a", False)]
    assert engine.unknown() == [("Heat", "a")]
    again = Engine.restore(engine.app, engine.snapshot())
    for one in (engine, again):
        assert told(one, (21, "a", 1.5)) == [(21, "a", "lowered", "low")]
    assert engine.unknown() == again.unknown() == []


def test_a_scope_that_is_forgotten_is_told_unknown_and_begins_anew():
    engine = Engine(f"{RUNGS} forget after 10 min")
    rows = [(0, "a", 5.0), (12, "b", 0.0), (13, "a", 1.5)]
    assert told(engine, *rows) == [
        (0, "a", "ingress", "high"), (10, "a", "unknown", "high"), (13, "a", "ingress", "low")
    ]  # fmt: skip


def test_one_who_is_expected_and_never_speaks_is_found(tmp_path):
    (tmp_path / "who.csv").write_text("source\na\nb\n")
    engine = Engine(f'{RUNGS} unknown after 10 min roster "who.csv"', base=tmp_path)
    assert told(engine, (0, "a", 5.0), (9, "a", 5.0), (11, "a", 5.0)) == [
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
def test_what_levels_cannot_be_is_refused_at_its_place(clauses, message):
    with pytest.raises(DefinitionError) as refused:
        check(parse(f"{RUNGS} {clauses}"))
    assert str(refused.value).startswith(f"definition:2:8: {message}")
    assert "       ^^^^" in str(refused.value)


def test_time_that_a_late_batch_lets_pass_is_told():
    """What becomes due by a late reading of a batch is told with it, whatever other levels say."""
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


def _as_once_kept(snapshot, heights):
    """A snapshot of levels from before it was kept who is unknown."""
    whole = opened(snapshot)
    inner, *_ = msgspec.msgpack.decode(whole.states[0])
    raw = msgspec.msgpack.encode(
        msgspec.structs.replace(whole, states=[msgspec.msgpack.encode((inner, heights))])
    )
    return seal(raw) + raw


_OLD = (
    "topic T (v float, room text, floor text)\n"
    "levels Heat on T: warn [v > 25; v < 22], alarm [v > 30; v < 27] "
)


def _reading(second, v):
    return Event("T", second * 1_000_000, "a", {"v": v, "room": "lab,3", "floor": "n"}, second)


def test_a_snapshot_that_had_no_height_for_one_who_is_unknown_does_not_lose_the_alarm():
    engine = Engine(_OLD + "per source unknown after 1 min\n")
    engine.push(_reading(0, 40.0))
    engine.advance(100_000_000)
    again = Engine.restore(engine.app, _as_once_kept(engine.snapshot(), []))
    assert again.unknown() == [("Heat", "a")]
    said = again.push(_reading(101, 41.0))
    assert [(n.scope, n.status, n.event.attributes["level"]) for n in said] == [("a", "ingress", "alarm")]


def test_a_snapshot_with_scopes_by_their_old_names_ends_what_it_began():
    engine = Engine(_OLD + "per floor, room\n")
    engine.push(_reading(3, 26.0))
    engine.push(_reading(5, 40.0))
    old = _as_once_kept(engine.snapshot(), [("n,lab,3", (3, 3_000_000, 5_000_000))])
    again = Engine.restore(engine.app, old)
    assert again.holding() == engine.holding()
    ends = [(n.scope, n.status, n.since) for n in again.push(_reading(101, 10.0))]
    assert ends == [('n,"lab,3"', "egress", 3_000_000)]
    assert again.holding() == []
