"""A mute with changed causes keeps the reported states; what is no longer muted is notified."""

from __future__ import annotations

import pytest

from holdfast import Engine, Event, UsageError

TODAY = 1_768_046_400_000_000  # a Saturday at noon, UTC
MINUTE = 60_000_000
HEAD = "topic T (v float, room text)\nstate Warm on T [v > 25; v < 22] per source\n"
WEEKEND = 'mute Warm during "Sat 00:00 – Mon 06:00"\n'


def push_all(engine, *rows):
    output = []
    for minute, source, v in rows:
        output += engine.push(Event("T", TODAY + minute * MINUTE, source, {"v": v, "room": "r"}, minute))
    return [(n.subscription, n.scope, n.status) for n in output]


def test_a_scope_that_a_shorter_schedule_no_longer_mutes_is_reported_once():
    engine = Engine(HEAD + WEEKEND)
    assert push_all(engine, (0, "a", 30.0), (1, "b", 30.0), (2, "b", 20.0), (3, "c", 20.0)) == []
    output = engine.revise(HEAD + WEEKEND.replace("Sat 00:00", "Sun 00:00"))
    assert sorted((n.subscription, n.scope or "", n.status) for n in output) == [
        ("Warm", "", "summary"),
        ("Warm", "a", "ingress"),
    ]
    assert push_all(engine, (4, "a", 20.0), (5, "c", 20.0)) == [("Warm", "a", "egress")]
    again = Engine.restore(engine.app, engine.snapshot())
    assert push_all(again, (6, "a", 30.0), (7, "c", 20.0)) == [("Warm", "a", "ingress")]


def test_a_wider_mute_keeps_the_reported_state_of_scopes():
    engine = Engine(HEAD + "mute Warm beyond 5\n")
    assert push_all(engine, (0, "a", 30.0), (1, "b", 30.0), (2, "c", 20.0)) == [
        ("Warm", "a", "ingress"),
        ("Warm", "b", "ingress"),
    ]
    assert [n.status for n in engine.revise(HEAD + "mute Warm beyond 1\n")] == ["summary"]
    assert push_all(engine, (3, "c", 30.0), (4, "d", 20.0)) == []
    assert push_all(engine, (5, "a", 20.0), (6, "b", 20.0), (7, "d", 20.0))[-1] == ("Warm", "b", "egress")


def test_incompatible_revisions_of_a_mute_are_refused_with_a_message():
    engine = Engine(HEAD + "mute Warm beyond 1\n")
    with pytest.raises(UsageError, match="other parents or siblings"):
        engine.revise(HEAD + "mute Warm beyond 1 within room\n")


def test_a_storm_caused_by_a_revision_is_reported_once():
    engine = Engine(HEAD + "mute Warm beyond 5\n")
    push_all(engine, (0, "a", 30.0), (1, "b", 30.0), (2, "c", 30.0), (3, "d", 20.0))
    (output,) = engine.revise(HEAD + "mute Warm beyond 2\n")
    assert (output.status, dict(output.event.attributes)) == (
        "summary",
        {"missed": 0, "scopes": 3, "holding": 3},
    )
    assert engine.revise(HEAD + "mute Warm beyond 1\n") == []


PARENT = (
    "topic T (v float, room text)\ntopic U (v float)\n{}\n"
    "state Child on T [v > 5; v < 2] per source\nmute Child while Parent\n"
)


@pytest.mark.parametrize(
    "parent", ["levels Parent on U: low [v > {}; v < {}]", "state Parent on U [v > {}; v < {}]"]
)
def test_a_parent_that_an_edit_ends_or_starts_mutes_no_longer_or_from_then_on(parent):
    text = PARENT.format(parent)
    engine = Engine(text.format(25, 22), remember=True)

    def beside(minute):
        return engine.push(Event("U", TODAY + minute * MINUTE, "p", {"v": 26.0}, minute))

    beside(0)
    assert push_all(engine, (1, "a", 30.0)) == []
    beside(2)
    output = [*engine.revise(text.format(30, 28)), *engine.advance(TODAY + 3 * MINUTE)]
    assert [(n.subscription, n.scope, n.status) for n in output] == [
        ("Parent", None, "revised"),
        ("Child", "a", "ingress"),
    ]
    push_all(engine, (4, "b", 30.0))
    beside(5)
    assert [(n.scope, n.status) for n in engine.advance(TODAY + 6 * MINUTE)] == []
    assert {one.scope for one in engine.holding(["Child"])} == {"a", "b"}
    engine.revise(text.format(25, 22))
    assert push_all(engine, (7, "c", 30.0)) == []
    assert engine.advance(TODAY + 8 * MINUTE) == []


def test_a_level_changed_by_a_revision_while_muted_is_reported_when_the_mute_ends():
    text = (
        "topic T (v float, room text)\n"
        "levels Heat on T: warn [v > 25; v < 22], alarm [v > {}; v < {}] per source\n"
        'mute Heat during "12:05 – 12:30"\n'
    )
    engine = Engine(text.format(35, 34), remember=True)
    push_all(engine, (0, "a", 32.0))
    engine.advance(TODAY + 10 * MINUTE)
    assert engine.revise(text.format(30, 29)) == []
    output = engine.advance(TODAY + 40 * MINUTE)
    assert [(n.scope, n.status, n.event.attributes["level"]) for n in output] == [("a", "revised", "alarm")]


STORM = "mute Warm beyond 1\n"
OTHER = HEAD.replace("v > 25; v < 22", "v > 35; v < 24")


@pytest.mark.parametrize("known", [True, False], ids=["known again", "still unknown"])
def test_an_end_that_ends_a_storm_is_reported_once_although_a_revision_was_withheld(known):
    engine = Engine(HEAD + STORM)
    assert push_all(engine, (0, "a", 30.0), (1, "b", 30.0), (2, "z", 0.0))[0] == ("Warm", "a", "ingress")
    assert engine.revise(OTHER + STORM) == []
    push_all(engine, *([(3, "a", 40.0), (4, "b", 40.0)] if known else []))
    emitted = push_all(engine, (5, "a", 0.0), (6, "z", 0.0), (7, "z", 0.0))
    assert sorted(emitted) == [("Warm", "a", "egress"), ("Warm", "b", "ingress")]


def test_a_scope_that_ends_and_starts_in_a_storm_and_ends_it_is_reported_once():
    engine = Engine(HEAD + STORM)
    push_all(engine, (0, "a", 30.0), (1, "b", 30.0), (2, "c", 30.0), (3, "a", 0.0), (4, "a", 30.0))
    push_all(engine, (5, "b", 0.0))
    emitted = push_all(engine, (6, "a", 0.0), (7, "z", 0.0), (8, "z", 0.0))
    assert [one for one in emitted if one[1] == "a"] == [("Warm", "a", "egress")]
