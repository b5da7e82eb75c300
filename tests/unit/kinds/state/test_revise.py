"""A definition that changes keeps what is known of its scopes, and claims no more."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Engine, Event, UsageError
from holdfast.kinds.state import revise as guarded
from holdfast.runtimes.local import revision
from holdfast.runtimes.local.running import RunningDefinition

TOPIC = "topic T (value float)\n"
LIMITS = (20.0, 22.0, 24.0, 26.0)


def warm(enter, leave, more=""):
    return f"{TOPIC}state W on T [value > {enter}; value < {leave}] per source {more}"


def push(engine, minute, source, value):
    return engine.push(Event("T", minute, source, {"value": value}, minute))


limits = st.tuples(st.sampled_from(LIMITS), st.sampled_from(LIMITS)).map(lambda pair: (max(pair), min(pair)))
readings = st.lists(
    st.tuples(st.sampled_from("ab"), st.sampled_from((19.0, 21.0, 23.0, 25.0, 27.0))), min_size=1, max_size=12
)


@settings(max_examples=60)
@given(before=limits, after=limits, first=readings, second=readings, remember=st.booleans())
def test_carried_over_scopes_equal_those_of_a_replay(before, after, first, second, remember):
    engine, ideal = Engine(warm(*before), remember=remember), Engine(warm(*after))
    for minute, (source, value) in enumerate(first):
        push(engine, minute, source, value)
        push(ideal, minute, source, value)
    held = {one.scope for one in engine.holding()}
    output = {n.scope: n.status for n in engine.revise(warm(*after))}
    lost = {scope for _, scope in engine.unknown()}
    right = {one.scope for one in ideal.holding()}
    now = {one.scope for one in engine.holding()}
    if remember:  # else a scope that did not hold is a new one
        assert now - lost == right - lost
        assert {scope for scope in output if output[scope] == "revised"} == (now ^ held) - lost
    assert now - lost <= right
    assert {scope for scope in output if output[scope] == "unknown"} == lost
    for minute, (source, value) in enumerate(second, 100):
        push(engine, minute, source, value)
        push(ideal, minute, source, value)
        assert (value > after[0] or value < after[1]) <= ((("W", source)) not in engine.unknown())
    published = {source for source, value in second if value > after[0] or value < after[1]}
    settled = [one.scope for one in engine.holding() if one.scope in published]
    assert settled == [one.scope for one in ideal.holding() if one.scope in published]


def test_a_revised_engine_continues_after_a_restart_and_another_revision():
    engine = Engine(warm(25, 22))
    push(engine, 0, "a", 26.0)
    assert [(n.status, n.scope) for n in engine.revise(warm(27, 22))] == [("unknown", "a")]
    again = Engine.restore(engine.app, engine.snapshot())
    assert again.unknown() == [("W", "a")]
    assert [(n.status, n.since) for n in push(again, 1, "a", 21.0)] == [("egress", 0)]
    assert again.revise(warm(27, 22, "unknown after 1 h")) == []


def test_an_unknown_scope_stays_unknown_in_another_revision():
    engine = Engine(warm(25, 22))
    push(engine, 0, "a", 26.0)
    engine.revise(warm(27, 22))
    assert engine.revise(warm(26.5, 22)) == []
    assert engine.unknown() == [("W", "a")]
    assert [n.status for n in push(engine, 1, "a", 28.0)] == ["known"]


@pytest.mark.parametrize("part", [None, 0, 1])
def test_expected_scopes_keep_their_start_after_a_revision(tmp_path, part):
    """A scope without readings for ten minutes is unknown, whatever decides the revision."""
    (tmp_path / "who.csv").write_text("source\na\nb\nc\n")
    more = 'unknown after 10 min roster "who.csv"'
    engine, minute = Engine(warm(25, 22, more), base=tmp_path), 60_000_000
    events = [
        Event("T", at * minute, who, {"value": v}, at) for at, who, v in [(1, "a", 26.0), (2, "b", 20.0)]
    ]
    for event in events:
        engine.push(event)
    engine.revise(warm(24, 22, more), None if part is None else events[part:], whole=False)
    push(engine, 5 * minute, "b", 20.0)
    output = engine.advance(12 * minute)
    assert [(n.scope, n.status, n.event.time) for n in output] == [
        ("a", "unknown", 11 * minute), ("c", "unknown", 11 * minute),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (f"{TOPIC}state W on T [value > 25; value < 22]", "scopes or its topic"),
        (f"{TOPIC}filter W on T where value > 25 per source", "momentary"),
        (f"{TOPIC}state W on T each source enter value > 25 exit value < 22", "of another kind"),
    ],
)
def test_a_revision_that_cannot_be_carried_over_is_refused_and_changes_nothing(now, why):
    engine = Engine(warm(25, 22))
    push(engine, 0, "a", 26.0)
    with pytest.raises(UsageError, match=why):
        engine.revise(now)
    assert [one.scope for one in engine.holding()] == ["a"]
    assert [n.status for n in push(engine, 1, "a", 21.0)] == ["egress"]


_AND = "state C on T [value > 10; value < 5] per source\ncorrelate B = W, C overlapping{}\n"


def test_a_revised_correlation_of_states_consumes_the_active_scopes():
    engine = Engine(warm(25, 22) + "\n" + _AND.format(" per source"))
    for minute, source in enumerate("ab"):
        push(engine, minute, source, 26.0)
    engine.advance(5)
    assert sorted(one.scope for one in engine.holding() if one.subscription == "B") == ["a,a", "b,b"]
    output = engine.revise(warm(25, 22) + "\n" + _AND.format(""))
    assert [(n.subscription, n.scope, n.status, n.since) for n in output] == [
        ("B", "a,b", "revised", 1),
        ("B", "b,a", "revised", 1),
    ]
    ended = push(engine, 6, "a", 20.0) + engine.advance(8)
    assert {n.scope: n.status for n in ended if n.subscription == "B"} == {"a,a": "egress", "a,b": "egress"}


_AFTER = "state C on T [value > 10; value < 5] per source\ncorrelate B = W before C within {} us{}\n"


@pytest.mark.parametrize(("edited_at", "within", "expected"), [(6, 60, True), (5, 60, True), (6, 3, False)])
def test_a_revised_correlation_keeps_ended_intervals(edited_at, within, expected):
    """This includes an end at the current watermark."""
    text = f"{warm(25, 22)}\n{_AFTER}"
    engine = Engine(text.format(50, ""))
    push(engine, 1, "a", 26.0)
    push(engine, 5, "a", 4.0)
    engine.advance(edited_at)
    assert engine.revise(text.format(within, "")) == []
    again = Engine.restore(engine.app, engine.snapshot())
    for one in (engine, again):
        output = push(one, 9, "b", 12.0) + one.advance(12)
        assert [n.scope for n in output if n.subscription == "B"] == ["a,b"] * expected


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (_AND.format(""), _AND.format(" within 30 s, 50 m"), "where active scopes started is not known"),
        (_AND.format(""), _AFTER.format(50, ""), "which intervals have ended is not known"),
        (_AFTER.format(50, ""), _AFTER.format(50, " per source"), "which intervals have ended is not known"),
        (
            _AFTER.format(50, ""),
            _AFTER.format(50, "").replace("W before C", "C before W"),
            "which intervals have ended is not known",
        ),
    ],
)
def test_a_revision_that_would_need_unknown_state_is_refused_with_the_reason(old, new, why):
    engine = Engine(f"{warm(25, 22)}\n{old}")
    push(engine, 0, "a", 26.0)
    held = engine.holding()
    with pytest.raises(UsageError, match=f"'B' cannot keep what is known of it: .*{why}"):
        engine.revise(f"{warm(25, 22)}\n{new}")
    assert engine.holding() == held


def test_a_scope_without_a_stored_reading_is_reported_by_a_timer_also_after_a_restart():
    minute = 60_000_000
    engine = Engine(warm(25, 22))
    push(engine, 0, "a", 26.0)
    engine.revise(warm(24, 22, "unknown after 10 min"))
    push(engine, minute, "b", 26.0)
    again = Engine.restore(engine.app, engine.snapshot())
    for one in (engine, again):
        output = one.advance(30 * minute)
        assert sorted((n.scope, n.status, n.event.source) for n in output) == [
            ("a", "unknown", "a"),
            ("b", "unknown", "b"),
        ]


def test_a_reading_carried_over_by_a_revision_is_reported_also_before_a_restart():
    minute = 60_000_000
    engine = Engine(warm(25, 22, "unknown after 10 min"))
    push(engine, minute, "a", 26.0)
    engine.revise(warm(24, 22, "unknown after 10 min"))
    again = Engine.restore(engine.app, engine.snapshot())
    for one in (engine, again):
        (output,) = one.advance(30 * minute)
        assert (output.event.source, output.event.attributes, output.event.sequence) == (
            "a",
            {"value": 26.0},
            minute,
        )


_TWO = "\nstate Many = at least 2 of W\n"


def test_a_scope_without_a_stored_reading_is_reported_by_name_when_another_revision_leaves_it_undecided():
    engine = Engine(warm(25, 22) + _TWO)
    push(engine, 0, "a", 30.0)
    engine.revise(warm(25, 22, "unknown after 15 min") + _TWO)
    engine.push(Event("T", 0, "b", {"value": 31.0}, 1))
    output = engine.revise(warm(33, 22, "unknown after 15 min") + _TWO)
    assert [(n.scope, n.status, n.event.source) for n in output] == [
        ("a", "unknown", "a"),
        ("b", "unknown", "b"),
    ]


def test_a_reading_stored_before_a_revision_is_replaced_by_later_ones():
    engine = Engine(warm(35, 22, "unknown after 15 min"))
    push(engine, 0, "a", 30.0)
    engine.revise(warm(35, 22))
    push(engine, 1, "a", 21.0)
    engine.revise(warm(25, 22))
    assert [one for one in engine.holding() if one.known] == []


def _failing(what):
    """The function, made to fail after its work is done."""

    def failing(*some, **more):
        list(what(*some, **more) or ())
        raise RuntimeError("on the way")

    return failing


_PLACES = ((revision, "notifications"), (RunningDefinition, "install"))


@pytest.mark.parametrize(
    ("place", "edit"),
    [
        (0, lambda engine: engine.revise(warm(33, 22) + _TWO)),
        (0, lambda engine: engine.revise(warm(33, 22) + _TWO.replace("2", "1"))),
        (1, lambda engine: engine.revise(warm(33, 22) + _TWO)),
        (1, lambda engine: engine.subscribe("state More = at least 1 of W")),
        (1, lambda engine: engine.unsubscribe("Many")),
    ],
)
def test_a_failing_revision_changes_nothing(monkeypatch, place, edit):
    engine = Engine(warm(25, 22) + _TWO)
    push(engine, 0, "a", 30.0)
    push(engine, 1, "b", 30.0)
    before, text = engine.snapshot(), engine.app
    with monkeypatch.context() as broken:
        where, name = _PLACES[place]
        broken.setattr(where, name, _failing(getattr(where, name)))
        with pytest.raises(RuntimeError, match="on the way"):
            edit(engine)
    assert engine.snapshot() == before
    assert engine.app == text
    assert engine.subscriptions == ["W", "Many"]
    output = [*push(engine, 2, "a", 20.0), *engine.advance(3)]
    assert [(n.subscription, n.status) for n in output] == [("W", "egress"), ("Many", "egress")]


def test_a_restored_engine_does_not_use_an_old_reading_as_the_latest():
    engine = Engine(warm(35, 22), remember=True)
    push(engine, 0, "a", 30.0)
    again = Engine.restore(engine.app, engine.snapshot())
    push(again, 1, "a", 20.0)
    assert again.revise(warm(25, 22)) == []
    assert again.holding() == []


def test_an_engine_that_remembers_readings_continues_to_after_a_restart():
    engine = Engine(warm(35, 22), remember=True)
    again = Engine.restore(engine.app, engine.snapshot())
    push(again, 1, "a", 30.0)
    assert [(n.scope, n.status) for n in again.revise(warm(25, 22))] == [("a", "revised")]


def test_readings_stored_for_a_component_are_forgotten_with_it():
    engine = Engine(warm(35, 22) + "\nstate C on T each source enter value > 25 exit value < 22\n")
    push(engine, 0, "a", 30.0)
    engine.unsubscribe("C")
    push(engine, 1, "a", 20.0)
    assert engine.revise(warm(25, 22)) == []
    assert engine.holding() == []


def test_each_revised_level_is_examined_once(monkeypatch):
    def text(more):
        rungs = ", ".join(f"l{i} [value > {10 + i + more}; value < {9 + i + more}]" for i in range(8))
        return f"{TOPIC}levels Heat on T: {rungs} per source"

    looked, known = [], guarded._known
    monkeypatch.setattr(guarded, "_known", lambda *some: looked.append(some) or known(*some))
    engine = Engine(text(0))
    push(engine, 0, "a", 14.0)
    engine.revise(text(1))
    assert len(looked) == 8
