"""Conditions that restart where their definition changes: components, correlations of readings,
relationships and folds."""

from __future__ import annotations

import pytest

from holdfast import Engine, Event, check, parse
from holdfast.plan.revise import preview

SECOND = 1_000_000
TODAY = 1_700_000_000 * SECOND
HEAD = "topic T (v float)\ntopic U (v float)\n"
BUSY = "state Busy\n  A = avg T over 3 s each {}\n  enter A.v > {}\n  exit  {}\n"


def push(engine, at, source="a", v=5.0, topic="T", location=None):
    emitted = engine.push(Event(topic, TODAY + at * SECOND, source, {"v": v}, location=location))
    return [(n.subscription, n.scope, n.status) for n in emitted]


def as_rows(emitted):
    return [(n.subscription, n.scope, n.status, n.since is not None) for n in emitted]


def standing(engine):
    return [(one.subscription, one.scope, one.known) for one in engine.holding()]


def busy(high, low, each="source"):
    return HEAD + BUSY.format(each, high, low)


def busy_engine(text=None):
    """An engine in which Busy holds of a and b."""
    engine = Engine(text or busy(4, "A.v < 2"))
    for at in (0, 1):
        for source in "ab":
            push(engine, at, source)
    return engine


def test_active_scopes_are_unknown_until_the_new_definition_decides_them():
    engine = busy_engine()
    emitted = engine.revise(busy(6, "A.v < 3"))
    assert as_rows(emitted) == [("Busy", "a", "unknown", True), ("Busy", "b", "unknown", True)]
    assert standing(engine) == [("Busy", "a", False), ("Busy", "b", False)]
    rows = [(at, source, v) for at in range(2, 9) for source, v in (("a", 9.0), ("b", 0.0))]
    emitted = [
        n for at, *one in rows for n in engine.push(Event("T", TODAY + at * SECOND, one[0], {"v": one[1]}))
    ]
    assert [(n.scope, n.status) for n in emitted] == [("a", "known"), ("b", "egress")]
    first, second = (n.event.time - TODAY for n in emitted)
    assert first == 2 * SECOND, "with what is heard first"
    assert 1 * SECOND + 3 * SECOND < second < 6 * SECOND, "when three seconds have been heard"
    assert standing(engine) == [("Busy", "a", True)]


def test_a_scope_without_readings_is_evaluated_once_when_the_window_is_full():
    engine = busy_engine()
    push(engine, 2, "z", 0.0)
    engine.revise(busy(6, "A.v < 3"))
    again = Engine.restore(engine.app, engine.snapshot())
    for one in (engine, again):
        assert [push(one, 3, "a", 0.0), push(one, 5, "z", 0.0)] == [[], []]
        (emitted,) = one.push(Event("T", TODAY + 9 * SECOND, "z", {"v": 0.0}))
        assert (emitted.scope, emitted.status, emitted.event.time) == ("a", "egress", TODAY + 5 * SECOND + 1)
        assert one.unknown() == [("Busy", "b")], "of which nothing was heard"


def test_a_value_between_start_and_end_leaves_the_scope_unknown():
    engine = busy_engine()
    engine.revise(busy(6, "A.v < 3"))
    assert [push(engine, at, "a", 5.0) for at in range(2, 20)] == [[]] * 18
    assert ("Busy", "a") in engine.unknown()


@pytest.mark.parametrize(
    "new", [busy(4, "A.v < 2", "place"), busy(4, "true")], ids=["other scopes", "nothing lasts"]
)
def test_scopes_that_the_new_definition_cannot_have_end_with_the_revision(new):
    engine = busy_engine()
    emitted = engine.revise(new)
    assert as_rows(emitted) == [("Busy", "a", "revised", False), ("Busy", "b", "revised", False)]
    assert standing(engine) == []


def test_a_second_revision_before_any_decision_leaves_the_scope_unknown():
    engine = busy_engine()
    since = [one.since for one in engine.holding()]
    engine.revise(busy(6, "A.v < 3"))
    assert as_rows(engine.revise(busy(7, "A.v < 3"))) == []
    assert standing(engine) == [("Busy", "a", False), ("Busy", "b", False)]
    received = [
        n for at in range(2, 9) for n in engine.push(Event("T", TODAY + at * SECOND, "b", {"v": 0.0}))
    ]
    assert [(n.status, n.scope, n.since) for n in received] == [("egress", "b", since[1])]


def test_unrelated_components_continue_and_downstream_ones_consume_the_revision():
    above = "state Above\n  A = Busy each source\n  enter A.status == ingress\n  exit A.status == egress\n"
    other = BUSY.replace("Busy", "Other").format("source", 4, "A.v < 2")
    engine = busy_engine(busy(4, "A.v < 2") + other + above)
    emitted = engine.revise(busy(6, "A.v < 3") + other + above)
    assert {n.subscription for n in emitted} == {"Busy"}
    assert [one for one in standing(engine) if one[0] == "Other"] == [("Other", s, True) for s in "ab"]
    received = [one for at in range(2, 9) for one in push(engine, at, "b", 0.0)]
    assert {("Busy", "b", "egress"), ("Above", "b", "egress")} <= {*received}


def test_a_count_over_a_revised_component_consumes_its_unknown_scopes():
    many = "state Many = at least 2 of Busy unknown spreads\n"
    engine = busy_engine(busy(4, "A.v < 2") + many)
    engine.revise(busy(6, "A.v < 3") + many)
    again = Engine.restore(engine.app, engine.snapshot())
    for one in (engine, again):
        received = [n for at in range(2, 9) for source in "ab" for n in push(one, at, source, 9.0)]
        assert [n for n in received if n[0] == "Many"] == [("Many", None, "unknown"), ("Many", None, "known")]


def test_a_revised_correlation_starts_with_the_next_reading():
    text = HEAD + "correlate Both within {} s  T.v > 1  U.v > 1\n"
    engine = Engine(text.format(5))
    push(engine, 0, "a")
    assert engine.revise(text.format(9)) == []
    assert push(engine, 1, "b", topic="U") + push(engine, 2, "c") != []
    emitted = [n for at in (3, 4) for n in push(engine, at, "d", topic="U")]
    assert {n[0] for n in emitted} == {"Both"}


WARM = "state Warm on T [v > 2; v < 1] per source\nfold Storm = Warm cells 5 m within 40 m beyond {}\n"


@pytest.mark.parametrize(("was", "now"), [(2, 1), (1, 2)])
def test_a_fold_continues_with_active_members_in_the_cells_of_their_starts(was, now):
    engine, ideal = Engine(HEAD + WARM.format(was)), Engine(HEAD + WARM.format(now))
    for one in (engine, ideal):
        for i, source in enumerate("ab"):
            push(one, i, source, location=(6.0 * i, 1.0))
    emitted = engine.revise(HEAD + WARM.format(now))
    assert standing(engine) == standing(ideal)
    assert {n.status for n in emitted} == {"revised"}
    assert len({n.scope for n in emitted}) == len(emitted) == 3
    assert push(engine, 9, "a", 0.0) == push(ideal, 9, "a", 0.0)
    assert standing(engine) == standing(ideal)


STORM = "fold Storm = Warm cells 5 m within 40 m beyond {}\n"
RELATED = "relate Warm (a T, b T) {} when distance(a, b) <= 9 m until distance(a, b) >= 20 m\n"
EACH = "state Warm\n  A = T each {}\n  enter A.v > 2\n  exit A.v < 1\n"
SPELLS = "state Hot on T [v > 2; v < 1] per source\nstate Warm = at least {} of Hot within source\n"


@pytest.mark.parametrize(
    ("was", "now", "left"),
    [
        (EACH.format("source"), EACH.format("place"), []),
        (RELATED.format(""), RELATED.format('pairs ("a", "b")'), []),
        (RELATED.format('pairs ("a", "b"), ("b", "c")'), RELATED.format('pairs ("a", "b")'), ["a,b"]),
        (SPELLS.format(1), SPELLS.format(2), []),
    ],
    ids=["other scopes", "pairs", "fewer pairs", "a count"],
)
def test_a_fold_revised_with_its_condition_drops_members_that_the_revision_ends(was, now, left):
    engine = Engine(HEAD + was + STORM.format(1))
    for i, source in enumerate("abc"):
        push(engine, i, source, location=(6.0 * i, 1.0))
    push(engine, 3, "z", 0.0)
    assert [one for one in standing(engine) if one[0] == "Storm"] != []
    engine.revise(HEAD + now + STORM.format(2))
    held = {name: [one[1] for one in standing(engine) if one[0] == name] for name in ("Warm", "Storm")}
    assert held == {"Warm": left, "Storm": left}


TYPED = "topic T (v {})\nstate {}\n  A = T each source\n  enter {}\n  exit {}\n"


SWITCHED = ("text", 'A.v == "on"', 'A.v == "off"', "on", "off")
CHANGED = ("text", 'A.v == "on"', "A.v != last.v", "on", "off")
MEASURED = ("float", "A.v > 2", "A.v < 1", 5.0, 0.0)
COUNTED = ("int", "A.v > 2", "A.v < last.v", 3, 0)


@pytest.mark.parametrize("name", ["Busy", "Other"])
@pytest.mark.parametrize(
    ("was", "now"), [(MEASURED, SWITCHED), (MEASURED, CHANGED), (MEASURED, COUNTED), (SWITCHED, COUNTED)]
)
def test_stored_readings_of_another_type_are_ignored(was, now, name):
    engine = Engine(TYPED.format(was[0], "Busy", *was[1:3]))
    for at in (0, 1):
        push(engine, at, "a", was[3])
    kind, enter, leave, on, off = now
    engine.revise(TYPED.format(kind, name, enter, leave))
    emitted = [one for at, v in [(2, on), (3, on), (4, off), (5, off)] for one in push(engine, at, "c", v)]
    assert emitted == [(name, "c", "ingress"), (name, "c", "egress")]
    assert [n for at in (6, 7, 8) for n in push(engine, at, "a", off) if n[2] == "ingress"] == []


def test_stored_readings_in_another_unit_are_ignored():
    text = (
        "topic T (v float {0})\nstate Busy\n  A = T each source\n  enter A.v > {1} {0}\n  exit A.v < 1 {0}\n"
    )
    engine = Engine(text.format("km", 9))
    push(engine, 0, "a", 5.0)
    engine.revise(text.format("m", 3))
    assert [push(engine, at, "b", 0.0) for at in (1, 2, 3)] == [[], [], []]


def test_the_preview_describes_the_effect_of_a_revision():
    pairs = [
        (busy(4, "A.v < 2"), busy(6, "A.v < 3")),
        (busy(4, "A.v < 2"), busy(4, "A.v < 2", "place")),
        (
            HEAD + "correlate Both within 5 s  T.v > 1  U.v > 1\n",
            HEAD + "correlate Both within 9 s  T.v > 1  U.v > 1\n",
        ),
        (HEAD + WARM.format(1), HEAD + WARM.format(2)),
        (HEAD + RELATED.format('pairs ("a", "b"), ("b", "c")'), HEAD + RELATED.format('pairs ("a", "b")')),
    ]
    words = [dict(preview(*(check(parse(text)) for text in pair))) for pair in pairs]
    assert words[0]["Busy"].endswith("starts them or, 3 s after the edit at the soonest, ends them")
    assert words[1]["Busy"].endswith("in other scopes: active scopes end")
    assert words[2]["Both"].endswith("what came before takes part in nothing")
    assert words[4]["Warm"].endswith("starts or ends them; active pairs that it no longer has end")
    assert (
        words[3]["Storm"]
        == "it consumes the active members again, and reports them by cells or by themselves"
    )
