"""A day in the life of guarded states; the laws try the rest."""

from __future__ import annotations

import msgspec
import pyarrow as pa
import pytest

from holdfast import Engine, Event, check, parse
from holdfast.engine.machine import compact_part, transitions
from holdfast.kernels import jit
from holdfast.kernels.guard import BEGUN
from holdfast.model.batch import from_events, from_ipc, to_ipc
from holdfast.model.instant import MINUTE
from holdfast.plan.compile import operators

TOPIC = "topic T (value float, room text)\n"


def reading(minute, source, value, room=None):
    return Event("T", minute * MINUTE, source, {"value": value, "room": room}, minute)


def as_rows(notes):
    return [(n.status, n.scope, n.event.time // MINUTE) for n in notes]


def test_a_minimum_duration_elapses_by_time_without_a_further_reading():
    engine = Engine(TOPIC + "state W on T [value > 25 for 5 min; value < 22] per source")
    assert engine.push(reading(0, "a", 26.0, "lab")) == []
    assert engine.due == 5 * MINUTE
    assert engine.advance(5 * MINUTE) == []
    (note,) = engine.advance(5 * MINUTE + 1)
    assert as_rows([note]) == [("ingress", "a", 5)]
    assert (note.since, note.event.source, note.event.attributes) == (0, "a", {"value": 26.0, "room": "lab"})
    assert engine.due is None


def test_a_reading_at_the_due_time_precedes_the_timer():
    engine = Engine(TOPIC + "state W on T [value > 25 for 5 min; value < 22] per source")
    engine.push(reading(0, "a", 26.0))
    assert engine.push(reading(5, "a", 20.0)) == []
    engine.push(reading(6, "a", 26.0))
    assert as_rows(engine.push(reading(11, "a", 27.0))) == [("ingress", "a", 11)]


def test_repeated_old_readings_do_not_revive_a_scope():
    engine = Engine(TOPIC + "state D on T [silent 10 min; !silent 10 min] per source unknown after 10 min")
    engine.push(reading(0, "a", 1.0))
    assert as_rows(engine.push(reading(30, "b", 1.0))) == [("ingress", "a", 10), ("unknown", "a", 10)]
    for minute in (5, 12, 19):
        assert engine.push(reading(minute, "a", 1.0)) == []
    assert as_rows(engine.push(reading(25, "a", 1.0))) == [("egress", "a", 25)]
    assert as_rows(engine.advance(44 * MINUTE)) == [("ingress", "b", 40), ("unknown", "b", 40)]
    assert as_rows(engine.advance(45 * MINUTE + 1)) == [("ingress", "a", 35), ("unknown", "a", 35)]


def test_unknown_scopes_are_listed_and_stored():
    text = TOPIC + "state W on T [value > 25; value < 22] per source unknown after 10 min"
    engine = Engine(text)
    engine.push(reading(0, "a", 26.0))
    engine.push(reading(0, "b", 20.0))
    engine.advance(11 * MINUTE)
    assert engine.unknown() == [("W", "a"), ("W", "b")]
    assert [(h.scope, h.known) for h in engine.holding()] == [("a", False)]
    again = Engine.restore(text, engine.snapshot())
    assert again.unknown() == engine.unknown()
    assert as_rows(again.push(reading(12, "a", 26.0))) == [("known", "a", 12)]
    assert again.unknown() == [("W", "b")]


def test_forgotten_scopes_take_no_memory():
    made = check(parse(TOPIC + "state W on T [value > 25; value < 22] per source forget after 10 min"))
    (operator,) = operators(made)
    machine = operator.machine
    state = machine.initial()
    for hour in range(60):
        some = [Event("T", hour * 60 * MINUTE, f"s{hour}-{i}", {"value": 20.0}, i) for i in range(500)]
        state, _ = machine.step(state, {"T": from_events(machine.topic, some)}, hour * 60 * MINUTE + 1)
    assert len(state.keys) < 10_000
    assert len(machine.dump(state)) < 60_000


def test_forgetting_an_active_scope_is_reported_as_unknown():
    engine = Engine(TOPIC + "state W on T [value > 25; value < 22] per source forget after 10 min")
    engine.push(reading(0, "a", 26.0))
    assert as_rows(engine.advance(11 * MINUTE)) == [("unknown", "a", 10)]
    assert engine.holding() == []
    assert as_rows(engine.push(reading(20, "a", 26.0))) == [("ingress", "a", 20)]


WARM = "state W on T [value > 25 for 5 min; value < 22 || silent 10 min] per source\n"
DEAD = "state D on T [silent 20 min; !silent 20 min] per source unknown after 15 min\n"


def test_states_of_the_same_scopes_share_a_machine():
    others = (
        "state R on T [value > 25 for 5 min; value < 22] per room\n",
        "state F on T [value > 25 for 5 min; value < 22] per source forget after 1 h\n",
    )
    made = operators(check(parse(TOPIC + WARM + DEAD + "".join(others))))
    assert [one.subscriptions for one in made] == [("W", "D"), ("R",), ("F",)]


def test_states_in_one_machine_emit_the_same_as_in_separate_machines():
    together, alone = Engine(TOPIC + WARM + DEAD), [Engine(TOPIC + WARM), Engine(TOPIC + DEAD)]
    for i in range(300):
        event = reading(i * i % 41 + 3 * i, f"s{i % 7}", 18.0 + i * 37 % 13, "lab")
        output = sorted((n for engine in alone for n in engine.push(event)), key=lambda n: n.order)
        assert sorted(together.push(event), key=lambda n: n.order) == output
    assert together.holding() == sorted(h for engine in alone for h in engine.holding())
    assert together.due == min(engine.due for engine in alone)


def test_one_of_several_states_continues_when_the_others_have_ended():
    engine, alone = Engine(TOPIC + WARM + DEAD), Engine(TOPIC + DEAD)
    for event in (reading(0, "a", 26.0), reading(4, "a", 26.0), reading(6, "b", 20.0)):
        assert [n for n in engine.push(event) if n.subscription == "D"] == alone.push(event)
    again = Engine.restore(TOPIC + DEAD, engine.snapshot())
    for event in (reading(30, "a", 1.0), reading(31, "b", 1.0)):
        assert again.push(event) == alone.push(event)


def test_a_running_machine_keeps_its_timer_when_a_state_with_a_table_joins():
    limits = pa.table({"source": ["a"], "wait": ["1 min"]})
    text = TOPIC + 'table Limits "" (source text, wait duration)\n' + WARM
    more = "state V on T [value > 25 for Limits.wait; value < 22] per source\n"
    before = operators(check(parse(text), tables={"Limits": limits}))
    after = operators(check(parse(text + more), tables={"Limits": limits}))
    (old,), (new,) = before, after
    state, _ = old.machine.react(old.machine.initial(), reading(0, "a", 26.0))
    again = new.machine.load(old.machine.dump(state), (0, None))
    assert new.machine.due(again) == old.machine.due(state) == 5 * MINUTE


def test_a_snapshot_of_one_state_in_the_earlier_format_is_read():
    (operator,) = operators(check(parse(TOPIC + WARM)))
    machine = operator.machine
    state, _ = machine.react(machine.initial(), reading(0, "a", 26.0, "lab"))
    stored = msgspec.msgpack.decode(machine.dump(state))
    table = from_ipc(stored["scopes"])
    started = table.column("@begun").cast("int64").to_numpy() == BEGUN
    at = table.schema.get_field_index("@begun")
    stored["scopes"] = to_ipc(table.set_column(at, "@begun", pa.array(started)))
    _, output = machine.advance(machine.load(msgspec.msgpack.encode(stored)), 6 * MINUTE)
    assert [(t.status, t.scope, t.since, t.event.attributes["room"]) for t in output] == [
        ("ingress", "a", 0, "lab")
    ]


@pytest.fixture
def at_once(monkeypatch):
    """Kernels are compiled, however little there is."""
    monkeypatch.setattr(jit, "SMALL", 0)


def test_compiled_and_interpreted_kernels_emit_the_same(at_once):
    text = "state W on T [value > 25 for 5 min; value < 22 || silent 10 min] per source unknown after 20 min"
    (operator,) = operators(check(parse(TOPIC + text)))
    machine = operator.machine
    minutes = (i + 40 * (i // 100) for i in range(0, 400, 2))
    events = [reading(i, f"s{i * i % 7}", 18.0 + i * 37 % 13, "lab") for i in minutes]
    one, many, first, second = machine.initial(), machine.initial(), [], []
    for at in range(0, len(events), 50):
        part, until = events[at : at + 50], events[at + 40].time
        many, some = machine.step(many, {"T": from_events(machine.topic, part)}, until)
        first += transitions(machine.topics, some)
        for event in part:
            one, output = machine.react(one, event)
            second += output
        one, output = machine.advance(one, until)
        second += output
        many = machine.load(machine.dump(many))

    def key(t):
        return (t.event.time, t.scope, t.status)

    assert sorted(first, key=key) == sorted(second, key=key)
    assert {t.status for t in first} == {"ingress", "egress", "unknown", "known"}


def test_most_readings_between_equal_ones_are_irrelevant():
    (operator,) = operators(
        check(parse(TOPIC + "state W on T [value > 25 for 5 min; silent 10 min] per source"))
    )
    machine = operator.machine
    batch = from_events(machine.topic, [reading(i, "a", 26.0) for i in range(100)])
    left = compact_part(machine, {"T": batch}, latest=0)["T"]
    assert 10 <= len(left) <= 15


def test_a_source_that_sends_stored_readings_has_its_own_clock():
    """The room was hot for a minute, hours ago; another device reports as it measures."""
    engine = Engine(TOPIC + "state Hot on T [value > 25 for 2 min; value < 25] per source")
    engine.push(reading(0, "live", 20.0))
    engine.push(reading(300, "live", 30.0))
    assert as_rows(engine.push(reading(100, "stored", 30.0))) == []
    assert as_rows(engine.push(reading(303, "live", 30.0))) == [("ingress", "live", 302)], (
        "it waits for nobody"
    )
    assert as_rows(engine.push(reading(101, "stored", 20.0))) == []
    assert as_rows(engine.push(reading(102, "stored", 30.0))) == []
    assert as_rows(engine.push(reading(110, "stored", 30.0))) == [("ingress", "stored", 104)]
    assert as_rows(engine.push(reading(111, "stored", 20.0))) == [("egress", "stored", 111)]


def test_a_source_that_is_always_late_becomes_silent_later_than_others():
    engine = Engine(TOPIC + "state D on T [silent 10 min; !silent 10 min] per source")
    engine.push(reading(0, "live", 1.0))
    engine.push(reading(30, "live", 1.0))
    engine.push(reading(28, "late", 1.0))
    assert as_rows(engine.advance(42 * MINUTE)) == [("ingress", "live", 40)]
    restored = Engine.restore(engine.app, engine.snapshot())
    for one in (engine, restored):
        assert one.due == 42 * MINUTE
        assert as_rows(one.advance(42 * MINUTE + 1)) == [("ingress", "late", 38)]
