"""State filters: sizes, chunks, columns of every form, nesting by hand, keeping a state."""

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from holdfast.definition.app import App, within
from holdfast.kinds.state import toggle as module
from holdfast.kinds.state.plan_toggle import operators
from holdfast.model.batch import from_events, latest_time, row_count, to_events
from holdfast.model.event import Event
from holdfast.model.topic import Attribute, Topic
from support.running import compact_batch, dictionary_encoded, fold, machine_of, readings, step_batch

TOPIC = Topic("T", (Attribute("v", "float"), Attribute("k", "text")))
HEAD = "topic T (v float, k text)\n"
WARM = HEAD + "state Warm on T [v > 25; v < 22] per source"


def thresholds(count, per="per k"):
    """So many filters with different thresholds; every fifth is momentary."""
    lines = [
        f"filter c{i} on T where v > {i} {per}"
        if i % 5 == 4
        else f"state c{i} on T [v > {i}; v < {i} - 3] {per}"
        for i in range(count)
    ]
    return HEAD + "\n".join(lines)


def walk(size, seed=1, keys=7, most=70):
    """Readings that rise and fall, of keys that take turns; some values and some keys are missing."""
    chance = random.Random(seed)
    return [
        Event(
            "T",
            i,
            f"s{chance.randrange(3)}",
            {
                "v": chance.choice([None, chance.uniform(-5, most), chance.uniform(-5, most)]),
                "k": chance.choice([None, *(f"k{n}" for n in range(keys))]),
            },
            i,
        )
        for i in range(size)
    ]


# --- how many filters, how many rows ---


@pytest.mark.parametrize(("count", "word"), [(1, np.uint8), (8, np.uint8), (9, np.uint64), (64, np.uint64)])
def test_a_word_full_of_filters_gives_the_same_by_step_and_react(count, word):
    it = machine_of(thresholds(count))
    assert (len(it.filters), it.word) == (count, word)
    events = walk(400)
    state, expected = fold(it, events)
    other, out = step_batch(it, from_events(TOPIC, events))
    assert out == expected
    assert {condition for condition, *_ in out} == set(range(count))
    assert it.active(state) == it.active(other)
    assert state.levels[0].words.dtype == word


def test_more_filters_than_bits_are_refused():
    it = machine_of(thresholds(64))
    with pytest.raises(AssertionError):
        replace(it, filters=(*it.filters, it.filters[0])).initial()


@pytest.mark.parametrize("size", [15, 16, 17, 32, 100])
@pytest.mark.parametrize("count", [1, 9])
def test_a_batch_of_several_chunks_equals_a_fold(size, count, monkeypatch):
    monkeypatch.setattr(module, "_CHUNK", 16)
    it = machine_of(thresholds(count))
    events = walk(size, seed=size)
    batch = from_events(TOPIC, events)
    state, expected = fold(it, events)
    other, out = step_batch(it, batch)
    assert out == expected
    assert it.active(state) == it.active(other)
    assert step_batch(it, compact_batch(it, batch))[1] == expected
    assert it.relevance("T", batch).satisfies.tolist() == [
        event.attributes["k"] is not None
        and any(f.enter(event) or (not f.momentary and f.leave(event)) for f in it.filters)
        for event in events
    ]
    assert step_batch(it, batch.filter(pa.array(it.relevance("T", batch).satisfies)))[1] == expected


def test_three_large_chunks_equal_a_plain_python_loop():
    size = 3 * 65_536 + 5
    chance = np.random.default_rng(3)
    values, keys = chance.uniform(15, 30, size), chance.integers(0, 500, size)
    holding, expected = {}, []
    for i, (value, key) in enumerate(zip(values.tolist(), keys.tolist(), strict=True)):
        if key in holding:
            if value < 22:
                expected.append((0, "egress", f"s{key}", holding.pop(key), (i, f"s{key}", i)))
        elif value > 25:
            holding[key] = i
            expected.append((0, "ingress", f"s{key}", None, (i, f"s{key}", i)))
    batch = from_events(TOPIC, [])
    rows = np.arange(size)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(rows).cast(batch.schema.field("time").type),
            pa.array([f"s{key}" for key in keys]),
            pa.array(rows),
            pa.array(values),
            pa.nulls(size, pa.string()),
        ],
        schema=batch.schema,
    )
    it = machine_of(WARM)
    state, out = step_batch(it, batch)
    assert out == expected
    assert {(scope, since) for _, scope, since in it.active(state)} == {
        (f"s{key}", since) for key, since in holding.items()
    }
    thin = compact_batch(it, batch)
    assert (row_count(thin), latest_time(thin)) == (size, size - 1)
    assert len(expected) <= len(thin) < size
    assert step_batch(it, thin)[1] == expected


def test_chunks_without_and_with_uncovered_rows_agree(monkeypatch):
    """The first chunk has no event outside every scope, the second has nothing else."""
    monkeypatch.setattr(module, "_CHUNK", 4)
    it = machine_of(HEAD + "state A on T [v > 0; v < 0] per k")
    values = [1, -1, 1, -1, 1, 1, -1, -1, 1, -1]
    keys = ["a"] * 4 + [None] * 4 + ["a", None]
    events = [
        Event("T", i, "s", {"v": float(v), "k": k}, i)
        for i, (v, k) in enumerate(zip(values, keys, strict=True))
    ]
    _, out = step_batch(it, from_events(TOPIC, events))
    assert [(status, order[0]) for _, status, _, _, order in out] == [
        ("ingress", 0), ("egress", 1), ("ingress", 2), ("egress", 3), ("ingress", 8),
    ]  # fmt: skip
    assert out == fold(it, events)[1]


# --- forms of columns ---


@pytest.mark.parametrize("names", [("source",), ("k",), ("source", "k")])
@pytest.mark.parametrize("per", ["per source", "per k", "per source, k", "per source within k"])
def test_dictionaries_and_plain_texts_give_the_same(names, per):
    it = machine_of(thresholds(3, per))
    batch = from_events(TOPIC, walk(200))
    encoded = dictionary_encoded(batch, *names)
    state, out = step_batch(it, encoded)
    expected_state, expected = step_batch(it, batch)
    assert out == expected
    assert sorted(it.active(state)) == sorted(it.active(expected_state))
    assert step_batch(it, compact_batch(it, encoded))[1] == expected


def test_batches_may_number_their_keys_differently():
    it = machine_of(WARM)
    one = from_events(TOPIC, readings(26.0, source="a") + readings(26.0, source="b"))
    two = from_events(TOPIC, readings(21.0, source="b", start=1) + readings(23.0, 21.0, source="a", start=1))
    state, _ = step_batch(it, one)
    state, out = step_batch(it, two, state)
    assert [(scope, order[0]) for _, _, scope, _, order in out] == [("b", 1), ("a", 2)]
    assert it.active(state) == []


def test_an_absent_column_is_missing_in_every_row():
    batch = from_events(TOPIC, walk(50))
    without = batch.drop_columns(["k"])
    per_source = machine_of(WARM)
    assert step_batch(per_source, without)[1] == step_batch(per_source, batch)[1]
    per_key = machine_of(HEAD + "state Warm on T [v > 25; v < 22] per k")
    state, out = step_batch(per_key, without)
    assert out == []
    assert per_key.is_initial(state, 0)
    assert len(compact_batch(per_key, without)) == 0
    assert not per_key.relevance("T", without).satisfies.any()
    assert step_batch(per_source, batch.drop_columns(["v"]))[1] == []


@pytest.mark.parametrize("count", [1, 9])
def test_an_empty_batch_does_nothing(count):
    it = machine_of(thresholds(count))
    events = walk(60)
    state, _ = fold(it, events)
    before = sorted(it.active(state))
    state, out = step_batch(it, from_events(TOPIC, []), state)
    assert (out, sorted(it.active(state))) == ([], before)
    empty = compact_batch(it, from_events(TOPIC, []))
    assert (len(empty), row_count(empty), latest_time(empty)) == (0, 0, None)
    assert it.relevance("T", from_events(TOPIC, [])).satisfies.tolist() == []


def test_a_batch_with_no_event_in_any_scope_leaves_the_state_fresh():
    it = machine_of(HEAD + "state Warm on T [v > 25; v < 22] per k")
    state, out = step_batch(it, from_events(TOPIC, readings(30.0, 31.0)))
    assert out == []
    assert it.is_initial(state, 0)
    assert it.active(state) == []


# --- nested scopes, by hand ---


def building():
    """Rooms x and u on floor f, room w on floor g, floors in building b; [v > 26; v <= 23]."""
    app = App()
    topic = app.topic("T", v=float)
    for name, parent in [("b", None), ("f", "b"), ("g", "b"), ("x", "f"), ("u", "f"), ("w", "g")]:
        app.region(name, parent=parent)
    app.state(
        "Heat",
        on=topic,
        enter=topic.v > 26,
        exit=topic.v <= 23,
        scope=within(["x", "u", "w"], ["f", "g"], "b"),
    )
    (operator,) = operators(app.check().conditions)
    return operator.machine


def story(text):
    """``x27 u28``: a reading of each place in turn."""
    return [
        Event("T", i, "s", {"v": float(word[1:])}, i, None, word[0]) for i, word in enumerate(text.split())
    ]


STORIES = [
    # sps.md 3.3: out, dropped by outer, dropped by inner, out, dropped by outer, out
    ("x27 u28 x28 x22 u22 u27", "x27+ x22- u27+"),
    # the building ends with the first exit that reaches it, from whichever floor
    ("x27 w28 w22 x22 w27", "x27+ w22- w27+"),
    # x starts and ends under an active floor; the floor ends with u
    ("u27 x27 x22 u22 u27", "u27+ x22- u27+"),
    # a reading of the floor itself enters at the floor
    ("f27 x28 f22 x28 x22 x28", "f27+ f22- x28+"),
    ("b27 x28 x22 b22", "b27+ x22-"),
    ("z27 x25 x23", ""),
]


@pytest.mark.parametrize(("text", "expected"), STORIES)
def test_events_that_pass_the_inner_filter_reach_the_outer_one(text, expected):
    it, events = building(), story(text)
    words, signs = text.split(), {"ingress": "+", "egress": "-"}
    state, out = fold(it, events)
    assert [f"{words[order[0]]}{signs[status]}" for _, status, _, _, order in out] == expected.split()
    assert {scope for _, _, scope, _, _ in out} <= {"b"}
    batch = from_events(it.topic, events)
    other, by_step = step_batch(it, batch)
    assert by_step == out
    assert it.active(state) == it.active(other)
    assert step_batch(it, compact_batch(it, batch))[1] == out


def test_the_outer_state_is_active_since_the_reading_that_reached_it():
    it = building()
    state, _ = fold(it, story("x25 x27 w28 u27"))
    assert it.active(state) == [(0, "b", 1)]
    state, out = fold(it, story("w20"), state)
    assert [(status, since) for _, status, _, since, _ in out] == [("egress", 1)]
    assert it.active(state) == []
    assert not it.is_initial(state, 0)  # rooms x and u are still warm


# --- a part of a history alone ----


def test_compaction_preserves_the_watermark_and_the_number_of_rows():
    it = machine_of(WARM)
    batch = from_events(TOPIC, readings(20.0, 26.0, 27.0, 23.0, 24.0))
    tight = compact_batch(it, batch)
    assert [e.time for e in to_events(TOPIC, tight)] == [0, 1]  # may end, may start
    assert (row_count(tight), latest_time(tight)) == (5, 4)
    again = compact_batch(it, tight)
    assert (len(again), row_count(again), latest_time(again)) == (2, 5, 4)
    thin = compact_batch(it, tight, closed=False)
    assert (row_count(thin), latest_time(thin)) == (5, 4)
    loose = compact_batch(it, batch, closed=False)
    assert [e.time for e in to_events(TOPIC, loose)] == [0, 1, 2]
    assert (row_count(loose), latest_time(loose)) == (5, 4)
    assert loose.schema.names == tight.schema.names == batch.schema.names


@pytest.mark.parametrize("count", [1, 9])
def test_the_relevance_of_a_closed_part_selects_the_rows_of_compaction(count):
    it, batch = machine_of(thresholds(count)), from_events(TOPIC, walk(500))
    found = it.relevance(TOPIC.name, batch)
    for closed, rows in ((True, found.decides), (False, found.satisfies)):
        assert batch.filter(pa.array(rows)).equals(compact_batch(it, batch, closed=closed))
        assert found.outside.tolist() == [sum(k is None for k in batch.column("k").to_pylist())] * count


def test_a_part_without_relevant_rows_still_carries_its_watermark():
    thin = compact_batch(machine_of(WARM), from_events(TOPIC, readings(23.0, 24.0, None, start=7)))
    assert (len(thin), row_count(thin), latest_time(thin)) == (0, 3, 9)


# --- what holds, and keeping it ---


def test_active_scopes_are_listed_with_their_start():
    it = machine_of(
        HEAD + "state A on T [v > 25; v < 22] per source\nstate B on T [v > 30; v < 22] per source"
    )
    state, _ = fold(it, readings(26.0, 31.0) + readings(27.0, source="t", start=5))
    assert sorted(it.active(state)) == [(0, "s", 0), (0, "t", 5), (1, "s", 1)]
    assert (it.is_initial(state, 0), it.is_initial(state, 1)) == (False, False)
    state, _ = fold(it, readings(21.0, start=9), state)
    assert it.active(state) == [(0, "t", 5)]
    assert (it.is_initial(state, 0), it.is_initial(state, 1)) == (False, True)


def test_a_momentary_filter_has_no_active_scopes_and_keeps_its_initial_state():
    it = machine_of(HEAD + "filter Hot on T where v > 40 per source")
    state, out = fold(it, readings(41.0, 42.0, 39.0, 43.0))
    assert [(status, since, order[0]) for _, status, _, since, order in out] == [
        ("atomic", None, 0),
        ("atomic", None, 1),
        ("atomic", None, 3),
    ]
    assert it.active(state) == []
    assert it.is_initial(state, 0)
    assert step_batch(it, from_events(TOPIC, readings(41.0, 42.0, 39.0, 43.0)))[1] == out


def test_a_state_without_durations_has_no_timer():
    it = machine_of(WARM)
    state, _ = fold(it, readings(26.0))
    assert it.due(state) is None
    assert it.advance(state, 10**12)[1] == []


@pytest.mark.parametrize("count", [8, 64])
@pytest.mark.parametrize("picked", [[0], [7], [3, 1, 6], [6, 5, 3, 2, 1, 0]])
def test_a_stored_state_can_be_loaded_for_any_of_its_filters_in_any_order(count, picked):
    it = machine_of(thresholds(count))
    before, after = walk(150, seed=4, most=9), walk(150, seed=5, most=9)
    state, _ = fold(it, before)
    some = replace(it, filters=tuple(it.filters[f] for f in picked))  # taken one by one below
    restored = some.load(it.dump(state), picked)
    assert sorted(some.active(restored)) == sorted(
        (picked.index(f), scope, since) for f, scope, since in it.active(state) if f in picked
    )
    assert [some.is_initial(restored, i) for i in range(len(picked))] == [
        it.is_initial(state, f) for f in picked
    ]
    _, out = fold(some, after, restored)
    _, whole = fold(it, after, state)
    expected = [(picked.index(f), *rest) for f, *rest in whole if f in picked]
    assert out == sorted(expected, key=lambda t: t[0])


def test_a_nested_state_can_be_stored_and_restored_level_by_level():
    it = building()
    state, _ = fold(it, story("x27 u28 w28"))
    restored = it.load(it.dump(state))
    assert it.active(restored) == [(0, "b", 0)]
    rest = story("u22 u27 u22 x22")
    assert fold(it, rest, restored)[1] == fold(it, rest, state)[1] != []


def test_inactive_scopes_take_no_space_in_a_stored_state():
    it = machine_of(WARM)
    warm = readings(26.0, source="a")
    cool = [e for i in range(500) for e in readings(26.0, 21.0, source=f"s{i}")]
    assert len(it.dump(fold(it, warm + cool)[0])) == len(it.dump(fold(it, warm)[0]))


def test_an_initial_state_can_be_stored():
    it = machine_of(thresholds(9))
    restored = it.load(it.dump(it.initial()))
    assert it.active(restored) == []
    assert fold(it, walk(50), restored)[1] == fold(it, walk(50))[1]


def test_a_state_without_keys_has_no_scope_name():
    it = machine_of(HEAD + "state Any on T [v > 25; v < 22]")
    state, out = fold(it, readings(26.0, source="a") + readings(27.0, 21.0, source="b", start=1))
    assert [(status, scope) for _, status, scope, _, _ in out] == [("ingress", None), ("egress", None)]
    state, _ = fold(it, readings(26.0), state)
    assert it.active(state) == [(0, None, 0)]


# --- unused scopes --------------


def in_a_batch(it, events, state=None):
    return step_batch(it, from_events(TOPIC, events), state)


@pytest.mark.parametrize("way", [fold, in_a_batch])
def test_inactive_scopes_that_do_not_return_are_dropped(way):
    it = machine_of(WARM)
    state, _ = way(it, readings(26.0, source="stays"))
    for part in range(8):
        new = [e for i in range(2048) for e in readings(26.0, 21.0, source=f"{part}-{i}")]
        state, _ = way(it, new, state)
    (level,) = state.levels
    assert len(level.keys) <= 2 * 4096
    assert len(level.words) <= 2 * 4096
    assert it.active(state) == [(0, "stays", 0)]
    assert way(it, readings(21.0, source="stays", start=9), state)[1] == [
        (0, "egress", "stays", 0, (9, "stays", 0))
    ]


@pytest.mark.parametrize("per", ["per k", "per k within source"])
def test_dropping_scopes_changes_no_output(per, monkeypatch):
    """The test covers single events and batches, with few and with many active scopes."""
    it, events = machine_of(thresholds(3, per)), walk(900, seed=3, keys=60, most=5)
    _, whole = fold(it, events)
    monkeypatch.setattr(module, "_FEW", 8)
    let_go = []
    busy = module._busy
    monkeypatch.setattr(module, "_busy", lambda level: let_go.append(busy(level)) or let_go[-1])
    assert fold(it, events)[1] == whole
    state, out = it.initial(), []
    for at in range(0, len(events), 50):
        state, emitted = (in_a_batch if at % 100 else fold)(it, events[at : at + 50], state)
        out += emitted
    assert sorted(out, key=repr) == sorted(whole, key=repr)
    assert any(held is not None for _, held in let_go)
