"""A mute whose causes change goes on with what people know; what is no longer muted is told."""

from __future__ import annotations

import pytest

from holdfast import Engine, Event, UsageError

TODAY = 1_768_046_400_000_000  # a Saturday at noon, UTC
MINUTE = 60_000_000
HEAD = "topic T (v float, room text)\nstate Warm on T [v > 25; v < 22] per source\n"
WEEKEND = 'mute Warm during "Sat 00:00 – Mon 06:00"\n'


def heard(engine, *rows):
    said = []
    for minute, source, v in rows:
        said += engine.push(Event("T", TODAY + minute * MINUTE, source, {"v": v, "room": "r"}, minute))
    return [(n.subscription, n.scope, n.status) for n in said]


def test_what_a_shorter_schedule_no_longer_mutes_is_told_once():
    engine = Engine(HEAD + WEEKEND)
    assert heard(engine, (0, "a", 30.0), (1, "b", 30.0), (2, "b", 20.0), (3, "c", 20.0)) == []
    said = engine.revise(HEAD + WEEKEND.replace("Sat 00:00", "Sun 00:00"))
    assert sorted((n.subscription, n.scope or "", n.status) for n in said) == [
        ("Warm", "", "summary"),
        ("Warm", "a", "ingress"),
    ]
    assert heard(engine, (4, "a", 20.0), (5, "c", 20.0)) == [("Warm", "a", "egress")]
    again = Engine.restore(engine.app, engine.snapshot())
    assert heard(again, (6, "a", 30.0), (7, "c", 20.0)) == [("Warm", "a", "ingress")]


def test_what_people_know_stays_so_where_more_is_muted():
    engine = Engine(HEAD + "mute Warm beyond 5\n")
    assert heard(engine, (0, "a", 30.0), (1, "b", 30.0), (2, "c", 20.0)) == [
        ("Warm", "a", "ingress"),
        ("Warm", "b", "ingress"),
    ]
    assert engine.revise(HEAD + "mute Warm beyond 1\n") == []
    assert heard(engine, (3, "c", 30.0), (4, "d", 20.0)) == []
    assert heard(engine, (5, "a", 20.0), (6, "b", 20.0), (7, "d", 20.0))[-1] == ("Warm", "b", "egress")


def test_other_siblings_are_refused_in_words():
    engine = Engine(HEAD + "mute Warm beyond 1\n")
    with pytest.raises(UsageError, match="other parents or siblings"):
        engine.revise(HEAD + "mute Warm beyond 1 within room\n")
