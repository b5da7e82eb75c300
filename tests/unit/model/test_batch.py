"""Batches of events: there and back, in order, together, as bytes."""

import math
import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.batch import (
    TIME,
    compact,
    concatenate,
    from_events,
    from_ipc,
    in_order,
    latest_time,
    row_count,
    schema,
    to_events,
    to_ipc,
    with_totals,
)
from holdfast.model.event import Event
from holdfast.model.topic import Attribute, Topic
from support import naive
from support.running import dictionary_encoded

TOPIC = Topic(
    "T", (Attribute("f", "float"), Attribute("n", "int"), Attribute("t", "text"), Attribute("b", "bool"))
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
events = st.builds(
    Event,
    st.just("T"),
    st.integers(-(2**62), 2**62) | st.integers(0, 3),
    texts,
    st.fixed_dictionaries(
        {
            "f": st.none() | st.floats(allow_nan=False),
            "n": st.none() | st.integers(-(2**63), 2**63 - 1),
            "t": st.none() | texts,
            "b": st.none() | st.booleans(),
        }
    ),
    st.integers(0, 3),
    st.none() | st.lists(st.floats(allow_nan=False), min_size=1, max_size=3).map(tuple),
    st.none() | texts,
)


def back(batch):
    return list(to_events(TOPIC, batch))


@given(st.lists(events, max_size=8))
def test_events_survive_conversion_to_a_batch(history):
    assert back(from_events(TOPIC, history)) == history


@given(st.lists(events, max_size=8))
def test_a_batch_survives_as_bytes(history):
    batch = from_events(TOPIC, history)
    assert from_ipc(to_ipc(batch)).equals(batch)
    encoded = dictionary_encoded(batch, "source", "t")
    assert back(from_ipc(to_ipc(encoded))) == history


@given(st.lists(events, max_size=12))
def test_sorting_a_batch_equals_sorting_its_events(history):
    """Stable: events with equal keys stay in order of arrival."""
    assert back(in_order(from_events(TOPIC, history))) == naive.in_order(history)


@given(st.lists(events, max_size=6), st.lists(events, max_size=6), st.lists(events, max_size=6))
def test_concatenated_batches_contain_the_events_of_all(a, b, c):
    """Whichever of the columns for places and coordinates each of them has."""
    whole = concatenate([from_events(TOPIC, part) for part in (a, b, c)])
    assert isinstance(whole, pa.RecordBatch)
    assert back(whole) == a + b + c


def test_nan_and_absent_values_become_none():
    history = [Event("T", 0, "s", {"f": math.nan}), Event("T", 1, "s", {})]
    assert [e.attributes for e in back(from_events(TOPIC, history))] == [dict.fromkeys("fntb")] * 2


def test_undeclared_attributes_are_omitted():
    (event,) = back(from_events(TOPIC, [Event("T", 0, "s", {"n": 1, "zzz": 2})]))
    assert event.attributes == {"f": None, "n": 1, "t": None, "b": None}


def test_a_batch_has_only_the_columns_it_needs():
    assert from_events(TOPIC, []).schema == schema(TOPIC)
    assert schema(TOPIC).names == ["time", "source", "sequence", "f", "n", "t", "b"]
    placed = from_events(
        TOPIC, [Event("T", 0, "s", {}, 0, (1.0, 2.0)), Event("T", 1, "s", {}, 1, None, "lab")]
    )
    assert placed.schema == schema(TOPIC, axes=2, place=True)
    assert placed.schema.field("time").type == TIME


def test_an_absent_column_is_missing_in_every_row():
    batch = from_events(TOPIC, [Event("T", 0, "s", {"n": 1, "t": "x"})]).drop_columns(["n", "b"])
    assert back(batch)[0].attributes == {"f": None, "n": None, "t": "x", "b": None}


def test_a_location_ends_where_a_coordinate_is_missing():
    batch = from_events(
        TOPIC, [Event("T", 0, "s", {}, 0, (1.0, math.nan, 3.0)), Event("T", 0, "s", {}, 0, (math.nan,))]
    )
    assert [e.location for e in back(batch)] == [(1.0,), None]


def test_dictionaries_of_different_batches_are_unified():
    a = dictionary_encoded(from_events(TOPIC, [Event("T", 0, "a", {}), Event("T", 1, "b", {})]), "source")
    b = dictionary_encoded(from_events(TOPIC, [Event("T", 2, "c", {}), Event("T", 3, "a", {})]), "source")
    assert [e.source for e in back(concatenate([a, b]))] == ["a", "b", "c", "a"]


def test_a_dictionary_and_a_plain_column_can_be_concatenated():
    plain = from_events(TOPIC, [Event("T", 0, "a", {})])
    assert len(concatenate([plain, dictionary_encoded(plain, "source")])) == 2


@given(st.lists(st.none() | st.integers(0, 9), max_size=6))
def test_a_compacted_batch_has_no_unused_dictionary_entries(codes):
    words = pa.array([f"w{i}" for i in range(10)])
    column = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), words)
    batch = pa.RecordBatch.from_arrays([column, pa.array(codes, pa.int64())], names=["source", "n"])
    lean = compact(batch.replace_schema_metadata({"note": "kept"}))
    assert lean.to_pylist() == batch.to_pylist()
    assert len(lean.column("source").dictionary) <= len(codes)
    assert lean.schema.metadata == {b"note": b"kept"}


def test_dictionary_columns_sort_by_value():
    plain = from_events(TOPIC, [Event("T", 0, source, {}) for source in "cab"])
    assert [e.source for e in back(in_order(dictionary_encoded(plain, "source")))] == ["a", "b", "c"]


def test_sorting_many_rows_is_stable():
    chance = random.Random(2)
    history = [
        Event("T", chance.randrange(50), f"s{chance.randrange(9)}", {"n": i}, i % 3) for i in range(5_000)
    ]
    assert back(in_order(from_events(TOPIC, history))) == [
        Event(
            e.topic, e.time, e.source, {"f": None, "n": e.attributes["n"], "t": None, "b": None}, e.sequence
        )
        for e in naive.in_order(history)
    ]


# --- progress ---


def test_a_batch_counts_its_rows_unless_it_was_compacted():
    batch = from_events(TOPIC, [Event("T", 5, "s", {}), Event("T", 3, "s", {})])
    assert (row_count(batch), latest_time(batch)) == (2, 5)
    changes = with_totals(batch.slice(0, 1), 10, 99)
    assert (len(changes), row_count(changes), latest_time(changes)) == (1, 10, 99)
    assert back(changes) == back(batch)[:1]


def test_an_empty_batch_has_no_watermark():
    empty = from_events(TOPIC, [])
    assert (row_count(empty), latest_time(empty)) == (0, None)
    assert (row_count(with_totals(empty, 0, None)), latest_time(with_totals(empty, 0, None))) == (
        0,
        None,
    )
    assert (row_count(with_totals(empty, 7, -3)), latest_time(with_totals(empty, 7, -3))) == (7, -3)


def test_totals_survive_as_bytes_beside_other_metadata():
    batch = from_events(TOPIC, [Event("T", 5, "s", {})]).replace_schema_metadata({"mine": "kept"})
    again = from_ipc(to_ipc(with_totals(batch, 10, 99)))
    assert (row_count(again), latest_time(again)) == (10, 99)
    assert again.schema.metadata[b"mine"] == b"kept"
    later = with_totals(again, 11, 100)
    assert (row_count(later), latest_time(later)) == (11, 100)


def test_concatenated_batches_add_up_their_totals():
    parts = [with_totals(from_events(TOPIC, [Event("T", i, "s", {})]), 10 + i, 100 + i) for i in range(3)]
    whole = concatenate(parts)
    assert (row_count(whole), latest_time(whole)) == (33, 102)
