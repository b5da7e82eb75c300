"""Tables: a row for each key, looked up for one event and for many; what covers all of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import App, DefinitionError, Engine, Event, check, parse, replay
from holdfast.definition.cover_text import in_writing
from holdfast.definition.show import show
from holdfast.kinds.state.condition import DurationCondition
from holdfast.kinds.state.cover import covering, gate, relevant_predicates
from holdfast.lang.expressions import event as scalar
from holdfast.model.batch import from_events

TEXT = """topic T (value float °C, room text)
table Limits "limits.csv" (source text, high float °C, low float °C)
state Warm on T [value > Limits.high; value < Limits.low] per source
"""


def as_rows(notifications):
    return [(n.scope, n.status, n.event.time) for n in notifications]


def events(*rows):
    return [Event("T", i, source, {"value": value}, i) for i, (source, value) in enumerate(rows)]


READINGS = events(("a", 26), ("b", 26), ("c", 26), ("b", 41), ("a", 21), ("c", 101), ("b", 29), ("c", 89))


@pytest.mark.parametrize("in_batches", [False, True])
def test_every_key_has_its_row_and_a_star_matches_all_others(tmp_path, in_batches):
    (tmp_path / "limits.csv").write_text("source, high ,low\na,25,22\n b ,40,30\n*,100,90\n")
    engine = Engine(TEXT, base=tmp_path)
    batch = from_events(check(parse(TEXT), tmp_path).topics[0], READINGS)
    push_all = engine.push_batch("T", batch) if in_batches else [n for e in READINGS for n in engine.push(e)]
    assert sorted(as_rows(push_all)) == [
        ("a", "egress", 4), ("a", "ingress", 0), ("b", "egress", 6), ("b", "ingress", 3),
        ("c", "egress", 7), ("c", "ingress", 5),
    ]  # fmt: skip


def test_a_reading_without_a_row_decides_nothing_and_is_counted():
    table = pa.table({"source": ["a"], "high": [25.0], "low": [22.0]})
    checked = check(parse(TEXT), tables={"Limits": table})
    engine = Engine(TEXT, tables={"Limits": table})
    assert as_rows(n for e in READINGS for n in engine.push(e)) == [("a", "ingress", 0), ("a", "egress", 4)]
    from holdfast.plan.compile import operators

    (only,) = operators(checked)
    assert only.machine.relevance("T", from_events(checked.topics[0], READINGS)).outside.tolist() == [6]


@pytest.mark.parametrize("care", ["", "for 1 s"])
def test_readings_without_a_row_are_counted_for_states_with_durations_too(tmp_path, care):
    """All of them are counted where they are read, whatever is dropped there."""
    text = TEXT.replace(", room text", "").replace("high;", f"high {care};")
    table = pa.table({"source": ["a"], "high": [25.0], "low": [22.0]})
    rows = pa.table({
        "time": pa.array([event.time for event in READINGS]), "source": [event.source for event in READINGS],
        "value": [event.attributes["value"] for event in READINGS],
    })  # fmt: skip
    for path in range(2):
        pq.write_table(rows.slice(4 * path, 4), tmp_path / f"{path}.parquet")
    for inputs in ([rows], [rows.slice(0, 3), rows.slice(3)], [str(tmp_path)]):
        replayed = replay(text, *inputs, topic="T", time_unit="us", tables={"Limits": table})
        list(replayed)
        assert replayed.coverage.outside == {"Warm": 6}


def test_active_scopes_continue_when_a_table_changes():
    engine = Engine(TEXT, tables={"Limits": pa.table({"source": ["a"], "high": [25.0], "low": [22.0]})})
    (first, second, third) = events(("a", 26), ("a", 23), ("a", 23))
    assert as_rows(engine.push(first)) == [("a", "ingress", 0)]
    assert engine.push(second) == []
    engine.take_table("Limits", pa.table({"source": ["a"], "high": [25.0], "low": [24.0]}))
    assert [h.since for h in engine.holding()] == [0]
    assert as_rows(engine.push(third)) == [("a", "egress", 2)]


def test_tables_with_empty_cells_in_different_columns_are_different():
    """They were once mistaken for each other: a comparison with a missing cell was true."""
    push_all = []
    for high, low in [(0.0, None), (None, 0.0)]:
        columns = {"high": pa.array([high], pa.float64()), "low": pa.array([low], pa.float64())}
        engine = Engine(TEXT, tables={"Limits": pa.table({"source": ["a"], **columns})})
        push_all.append(as_rows(engine.push(events(("a", 1))[0])))
    assert push_all == [[("a", "ingress", 0)], []]


def test_units_of_a_table_are_converted_and_keys_may_have_several_columns():
    text = """topic T (value float °C, room text)
table Limits "" (high float °F, room text, source text) by source, room
state Warm on T [value > Limits.high] per source
"""
    table = pa.table({"high": [212.0, 50.0], "source": ["a", "a"], "room": ["r", "s"]})
    engine = Engine(text, tables={"Limits": table})
    rooms = [Event("T", i, "a", {"value": 99.0, "room": room}, i) for i, room in enumerate("rs")]
    assert as_rows(n for e in rooms for n in engine.push(e)) == [("a", "ingress", 1)]


def test_a_table_can_be_given_in_python():
    app = App()
    temp = app.topic("T", value="float")
    limits = app.table("Limits", pa.table({"source": ["a"], "high": [1.0]}), source=str, high="float")
    app.state("Warm", on=temp, enter=temp.value > limits.high, per="source")
    assert as_rows(Engine(app).push(Event("T", 0, "a", {"value": 2.0}))) == [("a", "ingress", 0)]


@pytest.mark.parametrize(
    ("rows", "push_all"),
    [
        ("source,high,low\na,1,1\nb,2,2\na,3,3\n", "'a' stands in row 2 and again in row 4"),
        ("source,high,low\na,warm,1\n", "row 2: 'warm' in 'high' is not a number"),
        ("source,hihg,low\na,1,1\n", "has no column 'high'; it has source, hihg, low"),
        ("source,high,low\n,1,1\n", "row 2 has no source"),
        ("source,high,low,high\na,1,1,2\n", "has two columns 'high'"),
        ("source,high,low\na,1\n", "cannot be read: CSV parse error: Expected 3 columns, got 2"),
        ("", "cannot be read: Empty CSV file"),
    ],
)
def test_a_wrong_table_is_an_error_at_its_place(tmp_path, rows, push_all):
    (tmp_path / "limits.csv").write_text(rows)
    with pytest.raises(DefinitionError) as caught:
        check(parse(TEXT), tmp_path)
    assert push_all in str(caught.value)
    assert caught.value.place.line == 2
    assert "^^^^^^" in str(caught.value)


def test_a_missing_table_file_and_a_topic_without_its_key_are_refused(tmp_path):
    with pytest.raises(DefinitionError, match="cannot be read: No such file"):
        check(parse(TEXT), tmp_path)
    text = TEXT.replace("source text", "owner text")
    with pytest.raises(DefinitionError, match="looked up by 'owner', which topic 'T' does not have"):
        check(parse(text), tables={"Limits": pa.table({"owner": ["a"], "high": [1.0], "low": [1.0]})})


# --- what covers all rows ----------------------------------------------------------------------------

_bounds = st.integers(0, 6).map(float) | st.none()
_tests = (
    "value > Limits.high", "value >= Limits.high", "Limits.high < value && value != 3",
    "value > Limits.high + 1", "value == Limits.high", "value > Limits.high || room == \"s\"",
    "value - Limits.high > 1",
)  # fmt: skip
_exits = (
    "value < Limits.low", "value <= Limits.low", "value < Limits.low || value == Limits.low",
    "2 * Limits.low > value", "value != Limits.low", "value < Limits.low && room == \"r\"",
)  # fmt: skip
_scopes = (
    "per source",
    "per room",
    "",
    "per source within room",
    "per room, source",
    "scope r, s within all",
)
_regions = "region all\nregion r in all\nregion s in all\n"


@st.composite
def tables_of(draw):
    """A condition with a table, which may lack rows and cells."""
    names = draw(st.lists(st.sampled_from(["s0", "s1", "s2", "*"]), min_size=1, unique=True))
    cells = {name: pa.array([draw(_bounds) for _ in names], pa.float64()) for name in ("high", "low")}
    text = TEXT.replace("value > Limits.high", draw(st.sampled_from(_tests)))
    text = text.replace("value < Limits.low", draw(st.sampled_from(_exits)))
    text = _regions + text.replace("per source", draw(st.sampled_from(_scopes)))
    return text, {"Limits": pa.table({"source": pa.array(names), **cells})}


@settings(max_examples=2 * settings().max_examples)
@given(
    tables_of(),
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(-1, 8) | st.none(), st.sampled_from(["r", "s", "all"])),
        max_size=30,
    ),
)
def test_a_publisher_with_only_the_cover_sends_all_relevant_readings(definition, readings):
    text, tables = definition
    history = [
        Event("T", i, f"s{who}", {"value": value, "room": room}, i, None, room)
        for i, (who, value, room) in enumerate(readings)
    ]
    (condition,) = check(parse(text), tables=tables).conditions
    through = gate(covering(condition))
    held, sent = through.initial(), []
    for event in history:
        held, passed = through.react(held, event)
        sent += [one.event for one in passed]

    def push_all(some):
        engine = Engine(text, tables=tables)
        return as_rows(n for event in some for n in engine.push(event))

    assert push_all(sent) == push_all(history)
    some = [scalar.predicate(op, condition.topic) for op in relevant_predicates(condition)]
    assert push_all(event for event in history if any(test(event) for test in some)) == push_all(history)


@given(tables_of())
def test_the_text_of_a_cover_has_the_meaning_of_the_cover(definition):
    text, tables = definition
    (condition,) = check(parse(text), tables=tables).conditions
    cover = covering(condition)
    state, ends = check(parse(in_writing(parse(text).statements, condition))).conditions
    assert (state.enter, state.exit, ends.enter) == (cover.condition.enter, cover.condition.exit, cover.ends)
    assert (state.keys, state.forest) == (condition.keys, condition.forest)


def test_the_cover_of_many_rows_is_one_band():
    table = pa.table({"source": ["a", "b"], "high": [25.0, 40.0], "low": [22.0, 30.0]})
    (condition,) = check(parse(TEXT), tables={"Limits": table}).conditions
    cover = covering(condition)
    quiet = [Event("T", i, "a", {"value": value}, i) for i, value in enumerate((20.0, 24.0, 25.0, 21.0))]
    through = gate(cover)
    assert [passed for event in quiet for passed in through.react(set(), event)[1]] == []
    assert show(cover.condition.enter) == "value > 25.0"
    assert show(cover.condition.exit) == "value < 22.0 && value <= 25.0"
    assert show(cover.ends) == "value < 30.0"


def test_the_cover_of_rows_in_another_unit_is_a_band_too():
    text = TEXT.replace("high float °C", "high float °F")
    table = pa.table({"source": ["a", "b"], "high": [77.0, 104.0], "low": [22.0, 30.0]})
    (condition,) = check(parse(text), tables={"Limits": table}).conditions
    assert show(covering(condition).condition.enter) == "value > 25.0"


def test_the_cover_has_no_exit_where_events_without_a_row_share_a_scope():
    """One room has one bit, and its sensors have their own rows, or none."""
    table = pa.table({"source": ["a"], "high": [25.0], "low": [22.0]})
    text = TEXT.replace("per source", "per room")
    (condition,) = check(parse(text), tables={"Limits": table}).conditions
    assert show(covering(condition).condition.exit) == "false"


def test_closing_the_filter_of_a_room_leaves_the_filter_of_the_house_open():
    table = {"Limits": pa.table({"source": ["a", "*"], "high": [1.0, 5.0], "low": [1.0, 1.0]})}
    text = _regions + TEXT.replace("per source", "scope r, s within all")
    rows = [("b", 3.0, "s"), ("a", 3.0, "r"), ("a", 0.0, "s"), ("a", 0.0, "all")]
    some = [Event("T", i, who, {"value": v}, i, None, place) for i, (who, v, place) in enumerate(rows)]
    (condition,) = check(parse(text), tables=table).conditions
    through = gate(covering(condition))
    held, sent = through.initial(), []
    for event in some:
        held, passed = through.react(held, event)
        sent += [one.event for one in passed]
    engine = Engine(text, tables=table)
    assert as_rows(n for event in sent for n in engine.push(event)) == [
        ("all", "ingress", 1),
        ("all", "egress", 3),
    ]


def test_a_state_with_a_minimum_duration_and_silence_uses_its_table_row():
    text = TEXT.replace("value < Limits.low]", "value < Limits.low || silent 3 s]").replace(
        "Limits.high;", "Limits.high for 1 µs;"
    )
    table = pa.table({"source": ["a", "b"], "high": [25.0, 40.0], "low": [22.0, 30.0]})
    engine = Engine(text, tables={"Limits": table})
    assert as_rows(n for e in READINGS for n in engine.push(e)) == [
        ("a", "ingress", 1), ("a", "egress", 4), ("b", "ingress", 4), ("b", "egress", 6),
    ]  # fmt: skip


WAITS = """topic T (value float °C, room text)
table Limits "limits.csv" (source text, high float °C, wait duration)
state Warm on T [value > Limits.high for Limits.wait; value < 22 °C] per source
"""


@pytest.mark.parametrize("in_batches", [False, True])
def test_a_minimum_duration_comes_from_the_row_and_never_elapses_without_one(tmp_path, in_batches):
    (tmp_path / "limits.csv").write_text("source,high,wait\na,25,1 µs\nb,25,5 µs\nc,25,\n")
    engine, some = Engine(WAITS, base=tmp_path), events(("a", 26), ("b", 26), ("c", 26), ("a", 26), ("d", 26))
    batch = from_events(check(parse(WAITS), tmp_path).topics[0], some)
    push_all = engine.push_batch("T", batch) if in_batches else [n for e in some for n in engine.push(e)]
    assert as_rows(push_all) == [("a", "ingress", 1)]
    assert as_rows(Engine.restore(WAITS, engine.snapshot(), base=tmp_path).advance(100)) == [
        ("b", "ingress", 6)
    ]
    assert as_rows(engine.advance(100)) == [("b", "ingress", 6)]


@pytest.mark.parametrize("cell", ["-5 min", "soon", "5", "5 °C", "1e400 h"])
def test_an_invalid_duration_in_a_table_is_an_error_at_its_place(tmp_path, cell):
    (tmp_path / "limits.csv").write_text(f"source,high,wait\na,25,1 s\nb,25,{cell}\n")
    with pytest.raises(DefinitionError, match=f"row 3: '{cell}' in 'wait' is not a duration") as caught:
        check(parse(WAITS), tmp_path)
    assert "^^^^^^" in str(caught.value)
    assert ("which cannot be negative" in str(caught.value)) == cell.startswith("-")


def test_durations_may_be_of_the_arrow_duration_type():
    columns = {"source": ["a"], "high": [25.0]}
    for length, wrong in [(3_000, False), (-1, True)]:
        table = pa.table({**columns, "wait": pa.array([length], pa.duration("ms"))})
        if wrong:
            with pytest.raises(DefinitionError, match="row 2: a duration in 'wait' cannot be negative"):
                check(parse(WAITS), tables={"Limits": table})
        else:
            (state,) = check(parse(WAITS), tables={"Limits": table}).of(DurationCondition)
            assert state.tables[0].data[1].to_pylist() == [3_000_000]


def test_an_invalid_key_is_an_error_at_its_place():
    table = pa.table({"source": [["a"]], "high": [25.0], "wait": ["1 s"]})
    with pytest.raises(DefinitionError, match=r"'source' is a key, and list.* cannot be one"):
        check(parse(WAITS), tables={"Limits": table})


def test_the_rows_of_a_table_can_be_a_roster(tmp_path):
    (tmp_path / "limits.csv").write_text("source,high,wait\na,25,1 s\nb,25,1 s\n*,25,1 s\n")
    text = WAITS + "state Missing on T [silent 5 µs; !silent 5 µs] per source roster Limits\n"
    engine = Engine(text, base=tmp_path)
    engine.push(events(("a", 20))[0])
    assert as_rows(engine.advance(9)) == [("a", "ingress", 5), ("b", "ingress", 5)]


def test_an_expected_scope_without_readings_uses_the_duration_of_the_state(tmp_path):
    """The row of a reading has the duration of the exit, and the state itself that of the entrance."""
    (tmp_path / "limits.csv").write_text("source,high,wait\na,25,2 µs\nb,25,2 µs\n")
    guards = "[silent 5 µs for 3 µs; !silent 5 µs for Limits.wait]"
    text = WAITS + f"state Missing on T {guards} per source roster Limits\n"
    engine = Engine(text, base=tmp_path)
    engine.push(events(("a", 20))[0])
    assert as_rows(engine.advance(7)) == []
    assert as_rows(engine.advance(20)) == [("a", "ingress", 8), ("b", "ingress", 8)]


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ("for Limits.wait", "for Limits.high", "'Limits.high' is not a duration"),
        ("for Limits.wait", "for Limits.wiat", "has no column 'wiat'"),
        ("for Limits.wait", "for Limit.wait", "there is no table 'Limit'"),
        ("value > Limits.high", "value > Limit.high", "no table is named 'Limit'; there is Limits"),
        ("per source", "per source roster Limit", "there is no table 'Limit'"),
        ("per source", "per room roster Limits", "has no text column 'room'"),
    ],
)
def test_a_duration_or_roster_without_its_table_is_an_error_at_its_place(tmp_path, was, now, message):
    (tmp_path / "limits.csv").write_text("source,high,wait\na,25,1 s\n")
    with pytest.raises(DefinitionError, match=message) as caught:
        check(parse(WAITS.replace(was, now)), tmp_path)
    assert "^" in str(caught.value)
