"""The engine corrects earlier notifications: ``late correct``."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from holdfast import App, DefinitionError, Engine, Event, UsageError, parse, replay, show, standing
from holdfast.cli import app as cli
from holdfast.definition.check import require_final
from holdfast.files.interval import Pairing
from holdfast.model.batch import from_events
from holdfast.model.instant import SECOND
from holdfast.model.qos import Correct
from holdfast.model.topic import Attribute, Topic

TOPIC = Topic("T", (Attribute("value", "float"),))
TEXT = """topic T (value float)
state Warm on T [value > 25{}; value < 22] per source ordered 10 s late correct 1 min"""
WARM = TEXT.format("")


def at(second, value):
    return Event("T", second * SECOND, "s", {"value": value}, second)


def as_rows(notifications):
    return [(n.status, n.event.time // SECOND, n.since and n.since // SECOND) for n in notifications]


def warm_engine(text=WARM):
    """An engine after a start and an end, and its notifications."""
    engine = Engine(text)
    return engine, [n for event in (at(20, 30), at(60, 10), at(80, 23)) for n in engine.push(event)]


def test_a_late_reading_corrects_earlier_notifications():
    engine, emitted = warm_engine()
    assert as_rows(emitted) == [("ingress", 20, None), ("egress", 60, 20)]
    emitted += engine.push(at(40, 10))
    assert as_rows(emitted[2:]) == [("reopened", 60, 20), ("egress", 40, 20)]
    emitted += engine.push(at(45, 30))
    assert as_rows(emitted[4:]) == [("ingress", 45, None), ("egress", 60, 45)], "it is split"
    emitted += engine.push(at(15, 30))
    assert as_rows(emitted[6:]) == [
        ("reopened", 40, 20), ("retracted", 20, None), ("ingress", 15, None), ("egress", 40, 15),
    ]  # fmt: skip
    assert as_rows(standing(emitted)) == [
        ("ingress", 15, None), ("egress", 40, 15), ("ingress", 45, None), ("egress", 60, 45),
    ]  # fmt: skip
    assert engine.holding() == []
    assert engine.late_counts == {}


def test_an_active_condition_is_corrected():
    engine, _ = warm_engine()
    assert as_rows(engine.push(at(65, 30))) == [("ingress", 65, None)]
    assert [(h.scope, h.since // SECOND) for h in engine.holding()] == [("s", 65)]
    assert as_rows(engine.push(at(66, 10))) == [("egress", 66, 65)]
    assert engine.holding() == []


def test_a_reading_beyond_the_correction_time_is_late():
    engine, _ = warm_engine()
    assert engine.push(at(9, 30)) == []
    assert [n.event.time // SECOND for n in engine.late] == [9]
    assert as_rows(engine.push(at(10, 30)))[0] == ("reopened", 60, 20)


def test_corrections_of_a_batch_are_reported_at_once():
    engine, _ = warm_engine()
    late = [at(30 + i, 10 if i % 2 else 30) for i in range(4)]
    emitted = engine.push_batch("T", from_events(TOPIC, late))
    assert as_rows(emitted) == [
        ("reopened", 60, 20), ("egress", 31, 20), ("ingress", 32, None), ("egress", 33, 32),
    ]  # fmt: skip
    singly, _ = warm_engine()
    one_by_one = [n for event in late for n in singly.push(event)]
    assert len(one_by_one) > len(emitted)
    assert as_rows(standing(one_by_one)) == as_rows(standing(emitted))


def test_a_late_batch_that_changes_nothing_is_not_stored():
    engine, _ = warm_engine()
    ((_, state),) = engine._running.operators
    size = state.size
    late = [at(5, 23), *(at(30 + i, 23) for i in range(20))]
    assert engine.push_batch("T", from_events(TOPIC, late)) == []
    ((_, state),) = engine._running.operators
    assert state.size == size
    assert [n.event.time // SECOND for n in engine.late] == [5]


def test_a_restarted_engine_continues_to_correct():
    engine, _ = warm_engine()
    again = Engine.restore(WARM, engine.snapshot())
    expected = [("reopened", 60, 20), ("egress", 40, 20)]
    assert as_rows(engine.push(at(40, 10))) == as_rows(again.push(at(40, 10))) == expected


def test_a_condition_added_later_does_not_correct_events_before_it():
    other = Engine("topic T (value float)\nstate Any on T [value > 99] ordered 10 s late drop")
    for event in (at(20, 30), at(60, 10), at(80, 23)):
        other.push(event)
    stored = other.snapshot()
    other.subscribe(WARM.splitlines()[1])
    restored = Engine.restore(other.app, stored)
    for engine in (other, restored):
        assert engine.push(at(45, 30)) == []
        assert engine.holding() == []
        assert [n.subscription for n in engine.late if n.subscription == "Warm"] == ["Warm"]
        assert as_rows(engine.push(at(75, 30)) + engine.push(at(90, 23))) == [("ingress", 75, None)]
        assert as_rows(engine.push(at(72, 30))) == [("retracted", 75, None), ("ingress", 72, None)]


@pytest.mark.parametrize("guard", ["", " for 2 s"])
def test_a_revision_is_not_corrected(guard):
    """The output of a revision is ``revised``, and is never retracted."""
    history = [at(20, 10), at(40, 30), at(60, 30), at(80, 23)]
    engine = Engine("topic T (value float)\nstate Any on T [value > 99]")
    for event in history:
        engine.push(event)
    emitted = engine.revise(TEXT.format(guard), history)
    assert [n.status for n in emitted] == ["revised"]
    assert engine.push(at(30, 30)) == []
    assert [n.subscription for n in engine.late] == ["Warm"]
    since = emitted[0].since // SECOND
    assert as_rows(engine.push(at(90, 10)) + engine.push(at(120, 23))) == [("egress", 90, since)]
    assert as_rows(engine.push(at(85, 10))) == [("reopened", 90, since), ("egress", 85, since)]


def test_a_minimum_duration_is_corrected():
    engine, emitted = warm_engine(TEXT.format(" for 20 s"))
    assert as_rows(emitted) == [("ingress", 40, 20), ("egress", 60, 40)]
    emitted += engine.push(at(30, 10))
    assert as_rows(emitted[2:]) == [("reopened", 60, 40), ("retracted", 40, 20)]
    assert standing(emitted) == []


def test_intervals_are_made_of_the_final_notifications_only():
    engine, emitted = warm_engine()
    emitted += engine.push(at(40, 10))
    with pytest.raises(UsageError, match=r"take what stands of it, holdfast\.standing"):
        Pairing().pair(emitted)
    (interval,) = Pairing().pair(standing(emitted))
    assert (interval.start // SECOND, interval.end // SECOND) == (20, 40)


def test_builders_and_text_express_correction_alike():
    app = App()
    topic = app.topic("T", value=float)
    app.state("W", on=topic, enter=topic.value > 1, per="source", ordered="1 s", late="correct 2 min")
    assert show(app).splitlines()[-1].endswith("ordered 1 s late correct 2 min")
    assert list(parse(show(app)).statements) == list(app.statements)
    with pytest.raises(UsageError, match="such as 'correct 10 min'"):
        app.state("V", on=topic, enter=topic.value > 1, ordered="1 s", late=Correct(0))
    with pytest.raises(UsageError, match="late is 'drop' or 'apply', not Correct"):
        app.correlate("C", "a > 1", "b > 1", within="1 s", ordered="1 s", late=Correct(9))
    with pytest.raises(UsageError, match="such as 'correct 10 min', not 'corect'"):
        app.state("V", on=topic, enter=topic.value > 1, ordered="1 s", late="corect")


@pytest.mark.parametrize("guard", ["", " for 20 s"])
def test_explain_reports_the_state_stored_for_corrections(guard, tmp_path):
    (tmp_path / "warm.hf").write_text(TEXT.format(guard))
    as_rows = CliRunner().invoke(cli, ["explain", str(tmp_path / "warm.hf")]).stdout
    assert "a later one corrects earlier notifications" in as_rows
    assert "twice: now and 1 min ago; and live the readings since then" in as_rows


def test_correction_is_refused_at_its_place_where_output_is_final():
    with pytest.raises(DefinitionError, match="'Warm' corrects what it has told") as refused:
        require_final(parse(WARM), "a live query on Spark")
    assert "a live query on Spark cannot take anything back" in str(refused.value)
    assert "^^^^" in str(refused.value)


def test_a_replay_is_in_order_and_corrects_nothing(tmp_path):
    rows = [f"1970-01-01T00:{i // 60:02}:{i % 60:02}Z,s,{10 + 5 * (i % 5)}" for i in range(200)]
    (tmp_path / "readings.csv").write_text("\n".join(["time,source,value", *reversed(rows)]))
    emitted = list(replay(WARM, tmp_path / "readings.csv"))
    assert emitted
    assert emitted == list(replay(WARM.partition(" ordered")[0], tmp_path / "readings.csv"))
