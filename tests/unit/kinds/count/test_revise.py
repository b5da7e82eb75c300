"""A revised count knows the places of its members and the unknown ones, and claims no more."""

from __future__ import annotations

import pytest

from holdfast import Engine, Event, UsageError

SECOND = 1_000_000
TOPIC = "topic T (v float, room text, floor int)\n"


def push(engine, at, source, v, room="r"):
    return engine.push(Event("T", at * SECOND, source, {"v": v, "room": room, "floor": 3}))


def many(engine):
    """The scopes of the count that hold, and whether that is known; and those that are unknown."""
    held = [(one.scope, one.known) for one in engine.holding() if one.subscription == "Many"]
    return held, [scope for name, scope in engine.unknown() if name == "Many"]


def as_rows(notifications):
    return [(n.scope, n.status) for n in notifications if n.subscription == "Many"]


@pytest.mark.parametrize("edits", [("joined",), ("joined", "")])
def test_a_member_with_a_waiting_event_is_counted_in_its_room(edits):
    text = TOPIC + (
        "state W on T [v > 25 for 1 readings; v < 22] per source unknown after 1000 s\n"
        "state Many = at least 2 of W within room {}\n"
    )
    engine = Engine(text.format(""))
    push(engine, 0, "a", 30.0)
    push(engine, 5, "b", 30.0)
    for edit in edits:
        assert engine.revise(text.format(edit)) == []
    assert as_rows(engine.advance(10 * SECOND)) == [("r", "ingress")]
    push(engine, 11, "a", 1.0, room="s")  # it counts where it started
    assert as_rows(engine.advance(20 * SECOND)) == [("r", "egress")]


def test_a_member_that_ended_at_this_time_is_counted_where_it_starts_next():
    text = TOPIC + (
        "state W on T [v > 25 for 1 readings; v < 22] per source unknown after 1000 s\n"
        "state Many = at least 1 of W within room {}\n"
    )
    engine = Engine(text.format(""))
    push(engine, 0, "a", 30.0)
    push(engine, 5, "a", 1.0)
    assert [(n.scope, n.status, n.since) for n in engine.revise(text.format("joined"))] == [
        ("r", "revised", None)
    ]
    push(engine, 6, "a", 30.0, room="s")
    assert as_rows(engine.advance(10 * SECOND)) == [("s", "ingress")]


@pytest.fixture
def roster_of(tmp_path):
    (tmp_path / "r.csv").write_text("source,room\na,r\nb,r\n")
    return f'roster "{tmp_path / "r.csv"}"'


def test_a_roster_cannot_be_removed_if_the_groups_of_other_members_are_unknown(roster_of):
    text = TOPIC + "state W on T [v > 25; v < 22] per source\nstate Many = at least 2 of W within room {}\n"
    engine = Engine(text.format(roster_of))
    for at, source in enumerate("acd"):
        push(engine, at, source, 30.0)
    with pytest.raises(UsageError, match="the groups of members that were not on its roster are not known"):
        engine.revise(text.format(""))
    assert as_rows(push(engine, 4, "b", 30.0)) == [("r", "ingress")]


@pytest.mark.parametrize(("per", "within"), [("room, source", "within room"), ("source", "")])
def test_a_roster_can_be_removed_if_the_key_of_a_member_determines_its_group(tmp_path, per, within):
    (tmp_path / "r.csv").write_text("source,room\na,r\nb,r\n")
    text = TOPIC + f"state W on T [v > 25; v < 22] per {per}\nstate Many = at least 2 of W {within} {{}}\n"
    engine = Engine(text.format(f'roster "{tmp_path / "r.csv"}"'))
    for at, source in enumerate("acd"):
        push(engine, at, source, 30.0)
    assert as_rows(engine.revise(text.format(""))) == [("r" if within else None, "revised")]
    assert as_rows(push(engine, 4, "a", 20.0) + push(engine, 5, "c", 20.0)) == [
        ("r" if within else None, "egress")
    ]


@pytest.mark.parametrize("keys", ["room, floor", "floor, room, source", "room"])
@pytest.mark.parametrize("kind", ["state W on T [v > 25; v < 22]", "levels W on T: w [v > 25; v < 22]"])
@pytest.mark.parametrize("within", ["room", "floor", "floor, room"])
def test_the_key_of_a_member_contains_all_its_values(keys, kind, within):
    if not {*within.split(", ")} <= {*keys.split(", ")}:
        return
    text = f"{TOPIC}{kind} per {keys}\nstate Many = at least 1 of W {{}}\n"
    engine, ideal = Engine(text.format("")), Engine(text.format(f"within {within}"))
    for one in (engine, ideal):
        push(one, 1, "a", 30.0, room='"lab", 3\\')
    engine.revise(text.format(f"within {within}"))
    assert engine.holding() == ideal.holding()
    assert len(many(engine)[0]) == 1
    for one in (engine, ideal):
        push(one, 2, "a", 20.0, room='"lab", 3\\')
    assert engine.holding() == ideal.holding() == []


@pytest.mark.parametrize("late", [False, True])
def test_a_member_that_became_unknown_at_its_start_is_unknown_for_a_count(late):
    text = TOPIC + (
        "state W on T [v > {}; v < 22] per source\nstate Many = at least {} of W unknown spreads\n"
    )
    engine = Engine(text.format(25, 2))
    for at, source in enumerate("ab"):
        push(engine, at, source, 26.0)
    if late:
        engine.advance(5 * SECOND)
    assert as_rows(engine.revise(text.format(28, 1))) == [(None, "unknown")]
    assert many(engine) == ([(None, False)], [None])
    assert as_rows(push(engine, 6, "b", 29.0)) == [(None, "known")]


def spread(engine):
    """Two members are active, a third is unknown, and the count has started with three."""
    rows = [(0, "d", 10.0), (50, "a", 30.0), (51, "b", 30.0), (52, "c", 30.0), (60, "c", 10.0)]
    for row in (*rows, (101, "a", 30.0), (102, "b", 30.0)):
        push(engine, *row)
    engine.advance(110 * SECOND)


SPREADS = TOPIC + (
    "state W on T [v > 25; v < 22] per source unknown after 100 s\n"
    "state Many = at least {} of W until fewer than {} unknown spreads\n"
)


def test_a_count_is_known_if_unknown_members_cannot_change_it():
    engine = Engine(SPREADS.format(3, 2))
    spread(engine)
    assert many(engine) == ([(None, True)], [])
    assert engine.revise(SPREADS.format(3, 1)) == []
    assert many(engine) == ([(None, True)], [])


def test_a_count_stays_unknown_if_an_unknown_member_may_have_ended_it():
    joined = SPREADS.replace(" unknown spreads", " joined unknown spreads").format(3, 2)
    engine, ideal = Engine(SPREADS.format(3, 2)), Engine(joined)
    for one in (engine, ideal):
        spread(one)
        push(one, 111, "b", 10.0)
        one.advance(120 * SECOND)
    assert many(engine) == many(ideal) == ([(None, False)], [None])
    assert engine.revise(joined) == []
    assert many(engine) == many(ideal)


@pytest.mark.parametrize("more", ["", " unknown after 1 h"])
def test_a_member_started_by_the_same_revision_is_counted_in_its_room(more):
    text = TOPIC + (
        f"state W on T [v > {{}}; v < 22] per source{more}\nstate Many = at least {{}} of W within room\n"
    )
    engine = Engine(text.format(25, 2), remember=True)
    for at, source in enumerate("ab"):
        push(engine, at, source, 24.0)
    engine.advance(5 * SECOND)
    assert as_rows(engine.revise(text.format(23, 1)) + engine.advance(6 * SECOND)) == [("r", "revised")]
    assert as_rows(push(engine, 7, "a", 20.0) + push(engine, 8, "b", 20.0) + engine.advance(9 * SECOND)) == [
        ("r", "egress")
    ]
