"""Scopes: the chain of one event and the codes of a batch name the same keys."""

import math

import numpy as np
import pyarrow as pa
import pytest

from holdfast.definition.parse import parse
from holdfast.lang.expressions import batch as columns
from holdfast.lang.expressions import event as scalar
from holdfast.model.batch import conform, from_events, to_events
from holdfast.model.event import Event

HEAD = """
topic T (a float, n int, k text, l text, flag bool)
region hall = rectangle (0) (8)
region east = rectangle (0) (4) in hall
region west = rectangle (5) (8) in hall
region shed = rectangle (10) (11)
"""


def scoping_of(it):
    return columns.scoping(it.keys, it.forest)


def condition(scope):
    return parse(f"{HEAD}\nstate S on T [a > 0; a < 0] {scope}").check().conditions[0]


def keys_of(batch, levels):
    """For each row its chain by the columns; ``None`` if it is in no scope."""
    named = [(codes.tolist(), keys.to_pylist()) for codes, keys in levels]
    for _, keys in named:
        assert len(set(keys)) == len(keys), "keys must be distinct"
    chains = [
        tuple(None if codes[i] < 0 else keys[codes[i]] for codes, keys in named) for i in range(len(batch))
    ]
    return [None if chain[-1] is None else chain for chain in chains]


def chains(scope, events, change=lambda batch: batch):
    """The chain of each event, twice over; they must agree."""
    it = condition(scope)
    one_by_one = [scalar.chain(it.keys, it.forest)(event) for event in events]
    batch = change(from_events(it.topic, events))
    assert keys_of(batch, columns.scoping(it.keys, it.forest)(batch)) == one_by_one
    return one_by_one


def rows(*attributes):
    return [Event("T", i, f"s{i}", row, i) for i, row in enumerate(attributes)]


def test_all_events_share_one_scope_without_keys():
    assert chains("", rows({}, {"k": "x"})) == [("",), ("",)]


def test_minus_zero_equals_zero_as_a_key_and_missing_values_are_no_key():
    found = chains("per a", rows({"a": 0.0}, {"a": -0.0}, {"a": None}, {"a": math.nan}, {"a": 2.5}))
    assert found == [("0.0",), ("0.0",), None, None, ("2.5",)]
    assert chains("per a", rows({"a": math.inf}, {"a": -math.inf})) == [("inf",), ("-inf",)]


def test_every_kind_of_value_can_be_a_key():
    assert chains("per n", rows({"n": 3}, {"n": -(2**63)}, {"n": None})) == [("3",), (str(-(2**63)),), None]
    assert chains("per flag", rows({"flag": True}, {"flag": False}, {})) == [("true",), ("false",), None]
    assert chains("per k", rows({"k": ""}, {"k": "é"}, {})) == [("",), ("é",), None]


SEPARATORS = ["a\x1fb", "a", "b", "\x1f", "\x1e", "\x1d", "\x1d0", "", "a\x1eb", "\x1d\x1d"]


def test_key_values_that_contain_separators_are_kept_apart():
    events = rows(*({"k": k, "l": m} for k in SEPARATORS for m in SEPARATORS))
    assert len(set(chains("per k, l", events))) == len(SEPARATORS) ** 2
    assert len(set(chains("per k within l", events))) == len(SEPARATORS) ** 2
    assert len(set(chains("per k", rows(*({"k": k} for k in SEPARATORS))))) == len(SEPARATORS)


@pytest.mark.parametrize("scope", ["per k", "per k, l", "per k within l", "per k, n scope hall"])
def test_dictionaries_with_duplicate_or_null_entries_make_distinct_keys(scope):
    coded = pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 3, None, 0], pa.int8()), pa.array(["x", None, "x", "y", "idle"], pa.string())
    )
    values = coded.to_pylist()
    events = [
        Event("T", i, "s", {"k": k, "l": "m", "n": 1}, i, (1.0,)) for i, k in enumerate(values)
    ]  # fmt: skip

    def change(batch):
        return batch.set_column(batch.schema.get_field_index("k"), "k", coded)

    found = chains(scope, events, change)
    assert found[0] == found[2] == found[5] != found[3]


def test_the_same_key_in_two_regions_makes_two_scopes():
    events = [
        Event("T", 0, "s", {"k": "x"}, 0, (1.0,)),
        Event("T", 1, "s", {"k": "x"}, 1, (6.0,)),
        Event("T", 2, "s", {"k": "x"}, 2, (4.5,)),
        Event("T", 3, "s", {"k": None}, 3, (1.0,)),
        Event("T", 4, "s", {"k": "x"}, 4, (9.0,)),
        Event("T", 5, "s", {"k": "x"}, 5, None),
        Event("T", 6, "s", {"k": "x"}, 6, (10.0,), "east"),
    ]
    found = chains("per k scope east, west within hall", events)
    assert [None if c is None else c[1:] for c in found] == [
        ("east", "hall"), ("west", "hall"), (None, "hall"), ("east", "hall"), None, None, ("east", "hall"),
    ]  # fmt: skip
    inner = [c[0] for c in found if c is not None]
    assert inner[3] is None
    assert len({inner[0], inner[1], inner[2]}) == 3
    assert inner[4] == inner[0]


def test_an_absent_key_column_is_in_no_scope():
    batch = from_events(condition("per k").topic, rows({"k": "x"})).drop_columns(["k"])
    for scope in ("per k", "per k, n", "per k within n", "per n within k"):
        assert keys_of(batch, scoping_of(condition(scope))(batch)) == [None]


@pytest.mark.parametrize(
    "scope", ["", "per k", "per k, n", "per k within n", "scope hall", "per k scope hall"]
)
def test_an_empty_batch_has_no_keys(scope):
    it = condition(scope)
    empty = from_events(it.topic, [])
    assert [len(codes) for codes, _ in columns.scoping(it.keys, it.forest)(empty)] == [0] * len(
        columns.scoping(it.keys, it.forest)(empty)
    )


def test_scopes_are_computed_once_for_each_batch():
    scoping = scoping_of(condition("per k"))
    batch, equal = (from_events(condition("per k").topic, rows({"k": "x"})) for _ in range(2))
    assert scoping(batch) is scoping(batch)
    assert scoping(equal) is not scoping(batch)
    assert keys_of(batch, scoping(batch)) == [("x",)]


def many_keys(size, count):
    """Rows in which each of several keys takes a new value every time."""
    names = [f"k{i}" for i in range(count)]
    topic = f"topic T ({', '.join(f'{name} int' for name in names)})"
    it = parse(f"{topic}\nstate S on T [k0 > 0; k0 < 0] per {', '.join(names)}").check()
    numbers = np.arange(size)
    batch = pa.RecordBatch.from_pydict(
        {
            "time": pa.array(numbers).cast(pa.timestamp("us", "UTC")),
            "source": ["s"] * size,
            "sequence": pa.array(numbers),
            **{name: pa.array(np.random.default_rng(i).permutation(size)) for i, name in enumerate(names)},
        }
    )
    return it.conditions[0], batch


def agree_at(it, batch, at):
    ((codes, keys),) = columns.scoping(it.keys, it.forest)(batch)
    (event,) = to_events(it.topic, batch.slice(at, 1))
    return keys[int(codes[at])].as_py() == scalar.chain(it.keys, it.forest)(event)[0]


def test_several_keys_with_many_values_are_kept_apart():
    it, batch = many_keys(50_000, 3)
    assert all(agree_at(it, batch, at) for at in (0, 25_000, 49_999))


def test_several_keys_with_very_many_values_are_kept_apart():
    it, batch = many_keys(70_000, 4)
    assert all(agree_at(it, batch, at) for at in (0, 35_000, 69_999))


def test_a_coordinate_counts_only_after_the_previous_ones():
    topic = condition("").topic
    nothing = pa.nulls(1, pa.float64())
    batch = from_events(topic, rows({})).append_column("x", nothing).append_column("y", pa.array([1.0]))
    batch = conform(topic, batch)
    (event,) = to_events(topic, batch)
    test = parse(HEAD + "\nfilter F on T where y > 0").check().conditions[0].enter
    assert columns.predicate(test, topic)(batch).tolist() == [scalar.predicate(test, topic)(event)]
