"""Predicates: scalar, columns and the naive twin agree where it is easy to go wrong."""

import math

import numpy as np
import pyarrow as pa
import pytest

from holdfast.definition.parse import parse
from holdfast.lang.expressions import batch as columns
from holdfast.lang.expressions import event as scalar
from holdfast.lang.grammar import parse_expression
from holdfast.lang.types import NameScope, predicate
from holdfast.model.batch import from_events
from holdfast.model.event import Event
from holdfast.model.topic import Attribute, Topic
from support import naive
from support.running import dictionary_encoded

TOPIC = Topic(
    "T",
    (
        Attribute("a", "float"),
        Attribute("b", "float"),
        Attribute("n", "int"),
        Attribute("m", "int"),
        Attribute("k", "text"),
        Attribute("l", "text"),
        Attribute("flag", "bool"),
        Attribute("other", "bool"),
    ),
)
BIG = 2**53
inf, nan = math.inf, math.nan


def verdicts(text, rows, change=lambda batch: batch):
    """Which rows satisfy the predicate, three times over; they must agree."""
    written = parse_expression(text)
    op = predicate(written, NameScope(TOPIC, {}))
    events = [Event("T", i, "s", row, i) for i, row in enumerate(rows)]
    one_by_one = [scalar.predicate(op, TOPIC)(event) for event in events]
    together = columns.predicate(op, TOPIC)(change(from_events(TOPIC, events)))
    assert together.dtype == np.bool_
    assert len(together) == len(rows)
    assert together.tolist() == one_by_one
    assert [naive.truth(written, event) is True for event in events] == one_by_one
    return one_by_one


def satisfying(text, rows):
    """The values of one attribute that satisfy."""
    return [row for row, holds in zip(rows, verdicts(text, [dict(r) for r in rows]), strict=True) if holds]


def of(name, *values):
    return [{name: value} for value in values]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k == l", [True, False, False, False, False]),
        ("k != l", [False, True, False, False, False]),
        ("!(k == l)", [False, True, False, False, False]),
        ('k == "x"', [True, True, True, False, False]),
        ('k != "x"', [False, False, False, False, False]),
        ('"x" == k', [True, True, True, False, False]),
        ("k == k", [True, True, True, False, False]),
    ],
)
def test_texts_are_compared_with_texts_and_a_missing_one_is_neither_equal_nor_different(text, expected):
    rows = [{"k": k, "l": m} for k, m in [("x", "x"), ("x", "y"), ("x", None), (None, "x"), (None, None)]]
    assert verdicts(text, rows) == expected
    for names in (["k"], ["l"], ["k", "l"]):
        assert verdicts(text, rows, lambda batch, n=names: dictionary_encoded(batch, *n)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("flag", [True, True, True, False, False, False, False]),
        ("!flag", [False, False, False, True, True, False, False]),
        ("flag == true", [True, True, True, False, False, False, False]),
        ("flag == false", [False, False, False, True, True, False, False]),
        ("flag != true", [False, False, False, True, True, False, False]),
        ("flag == other", [True, False, False, False, True, False, False]),
        ("flag != other", [False, True, False, True, False, False, False]),
        ("flag || other", [True, True, True, True, False, True, False]),
        ("flag && !other", [False, True, False, False, False, False, False]),
        ("(flag && other) == true", [True, False, False, False, False, False, False]),
        ("(flag && other) == flag", [True, False, False, True, True, False, False]),
        ("(n > 0) == flag", [False] * 7),
    ],
)
def test_truth_values_are_compared_as_logic(text, expected):
    pairs = [
        (True, True),
        (True, False),
        (True, None),
        (False, True),
        (False, False),
        (None, True),
        (None, None),
    ]
    assert verdicts(text, [{"flag": x, "other": y} for x, y in pairs]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"n > {BIG}", [False, True, True]),
        (f"n == {BIG}", [True, False, False]),
        (f"n != {BIG + 1}", [True, False, True]),
        (f"n >= {BIG + 1}", [False, True, True]),
        (f"n > {BIG}.0", [False, False, True]),  # as floats BIG and BIG + 1 are one
        (f"n == {BIG}.0", [True, True, False]),
        (f"{BIG + 1}.0 == n", [True, True, False]),
        (f"n - 0 > {BIG}", [False, True, True]),  # of ints, sums and products are ints
        (f"n * 1 > {BIG}", [False, True, True]),
        (f"n / 1 > {BIG}", [False, False, True]),  # quotients are floats
        (f"n - 0.0 > {BIG}", [False, False, True]),
        (f"n in [{BIG + 1}, {BIG + 2}]", [False, True, True]),
        ("n == m", [True, True, False]),
        ("n > m", [False, False, True]),
    ],
)
def test_ints_remain_ints_until_they_meet_a_float(text, expected):
    rows = [{"n": BIG, "m": BIG}, {"n": BIG + 1, "m": BIG + 1}, {"n": BIG + 2, "m": BIG + 1}]
    assert verdicts(text, rows) == expected


def test_the_widest_ints_are_compared_exactly_and_missing_ones_never_satisfy():
    rows = of("n", 2**63 - 1, 2**63 - 2, -(2**63), None)
    assert verdicts(f"n == {2**63 - 1}", rows) == [True, False, False, False]
    assert verdicts(f"n > -{2**63 - 1} - 0", rows) == [True, True, False, False]
    assert verdicts("n < 0", rows) == [False, False, True, False]
    assert verdicts("n >= m", rows) == [False] * 4
    assert verdicts("n != 0", rows) == [True, True, True, False]


EDGES = [0, 1, -1, 2, -2, 3, 2**31, 2**32, -(2**32), 2**62, -(2**62), 2**63 - 1, -(2**63) + 1, -(2**63), None]


@pytest.mark.parametrize(
    "text",
    ["n + m > n", "n - m <= n", "n * m > n", "n * m != m", "-n > m", "abs(n) > m", "n * m + n == m",
     "n + m > 0.5", "n * m / m == n", "(n - m) * 2 >= n", "n + 1 > n", "2 * n > m", "-1 * n >= m"],
)  # fmt: skip
def test_int_arithmetic_is_exact_and_missing_beyond_64_bits(text):
    rows = [{"n": n, "m": m} for n in EDGES for m in EDGES]
    assert True in verdicts(text, rows)


def test_results_beyond_64_bits_are_missing():
    rows = of("n", 2**63 - 1, 2**63 - 2, -(2**63), None)
    assert verdicts("n + 1 > 0 || n + 1 <= 0", rows) == [False, True, True, False]
    assert verdicts("n - 1 > 0 || n - 1 <= 0", rows) == [True, True, False, False]
    assert verdicts("abs(n) >= 0", rows) == [True, True, False, False]
    assert verdicts("-n != 0", rows) == [True, True, False, False]
    assert verdicts("n * 2 != 0", rows) == [False] * 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 / a > 0", [{"a": 2.0}]),
        ("1 / a < 0", []),
        ("1 / a == 0", [{"a": inf}, {"a": -inf}]),
        ("!(1 / a > 0)", [{"a": inf}, {"a": -inf}]),
        ("a / a == 1", [{"a": 2.0}]),
        ("a - a == 0", [{"a": 0.0}, {"a": -0.0}, {"a": 2.0}]),
        ("a - a != 0", []),
        ("a * 0 == 0", [{"a": 0.0}, {"a": -0.0}, {"a": 2.0}]),
        ("a == 0", [{"a": 0.0}, {"a": -0.0}]),
        ("-a == 0", [{"a": 0.0}, {"a": -0.0}]),
        ("a >= a", [{"a": 0.0}, {"a": -0.0}, {"a": 2.0}, {"a": inf}, {"a": -inf}]),
        ("a != 1", [{"a": 0.0}, {"a": -0.0}, {"a": 2.0}, {"a": inf}, {"a": -inf}]),
        ("abs(a) > 1", [{"a": 2.0}, {"a": inf}, {"a": -inf}]),
        ("|a| > 1 || a == 0", [{"a": 0.0}, {"a": -0.0}, {"a": 2.0}, {"a": inf}, {"a": -inf}]),
    ],
)
def test_division_by_zero_and_nan_are_missing(text, expected):
    assert satisfying(text, of("a", 0.0, -0.0, 2.0, inf, -inf, None)) == expected


def test_nan_is_missing():
    rows = of("a", nan, None, 1.0)
    for text in ("a == a", "a != 2", "!(a == 2)", "a < 2 || a >= 2", "a in [0, 2]", "!(a in [3, 4])"):
        assert verdicts(text, rows) == [False, False, True]


def test_infinity_minus_infinity_is_missing_and_too_large_is_infinite():
    rows = [{"a": inf, "b": inf}, {"a": inf, "b": -inf}, {"a": 1e308, "b": -1e308}, {"a": 1e308, "b": 1e308}]
    assert verdicts("a - b > 0", rows) == [False, True, True, False]
    assert verdicts("a - b <= 0", rows) == [False, False, False, True]
    assert verdicts("a * 10 == b * 10", rows) == [True, False, False, True]
    assert verdicts("a + b == 0 || a + b != 0", rows) == [True, False, True, True]


@pytest.mark.parametrize("text", ["a / b > 1", "a > 1 / 0", "1 / 0 == 1 / 0", "0 / 0 != 1", "k == place"])
def test_a_missing_value_satisfies_no_comparison(text):
    assert verdicts(text, [{"a": 3.0, "b": 0.0, "k": "x"}, {"a": None, "b": 1.0}]) == [False, False]


@pytest.mark.parametrize(
    "text",
    ["a > 0", "n > 0", "n == m", "n >= 0.5", 'k == "x"', "k != l", "flag", "!flag", "a + n > 0", "x > 0"],
)
def test_an_absent_column_satisfies_nothing(text):
    op = predicate(parse_expression(text), NameScope(TOPIC, {}))
    batch = from_events(TOPIC, [Event("T", 0, "s", {}), Event("T", 1, "s", {})])
    bare = batch.select(["time", "source", "sequence"])
    assert columns.predicate(op, TOPIC)(bare).tolist() == [False, False]
    assert columns.predicate(op, TOPIC)(bare.slice(0, 0)).tolist() == []


@pytest.mark.parametrize(("text", "expected"), [("true", True), ("false", False), ("1 < 2", True)])
def test_a_constant_satisfies_always_or_never(text, expected):
    assert verdicts(text, [{}, {}, {}]) == [expected] * 3


def test_one_side_suffices_in_three_valued_logic():
    rows = [{"a": None, "b": 1.0}, {"a": 1.0, "b": None}, {"a": None, "b": None}]
    assert verdicts("a > 0 || b > 0", rows) == [True, True, False]
    assert verdicts("!(a > 0 && b < 0)", rows) == [True, False, False]


def test_coordinates_and_place_can_be_compared_like_attributes():
    topic = parse("topic T (a float)").statements[0].topic
    events = [
        Event("T", 0, "s1", {}, 0, (1.0,)),
        Event("T", 1, "s2", {}, 1, (1.0, 5.0), "lab"),
        Event("T", 2, "s1", {}, 2, None, "lab"),
        Event("T", 3, "s1", {}, 3, (1.0, 5.0, -2.0)),
    ]
    batch = from_events(topic, events)
    expected = {
        "x > 0": [True, True, False, True],
        "y > 0": [False, True, False, True],
        "z < 0": [False, False, False, True],
        'place == "lab"': [False, True, True, False],
        'source == "s1"': [True, False, True, True],
    }
    for text, holds in expected.items():
        op = predicate(parse_expression(text), NameScope(topic, {}))
        assert [scalar.predicate(op, topic)(event) for event in events] == holds
        assert columns.predicate(op, topic)(batch).tolist() == holds


# --- dictionaries ---


def dictionary(indices, entries, kind=None):
    return pa.DictionaryArray.from_arrays(
        pa.array(indices, kind or pa.int32()), pa.array(entries, pa.string())
    )


@pytest.mark.parametrize("text", ['k == "x"', 'k != "x"', "k == l", "k != l", 'l == "x"'])
def test_dictionaries_with_duplicate_null_or_unused_entries_compare_by_value(text):
    k = dictionary([0, 1, 2, 3, None, 0], ["x", None, "x", "y", "idle"])
    other = dictionary([1, 1, 1, 1, 1, None], ["y", "x"])
    op = predicate(parse_expression(text), NameScope(TOPIC, {}))
    coded = pa.RecordBatch.from_pydict({"k": k, "l": other})
    plain = pa.RecordBatch.from_pydict({"k": k.dictionary_decode(), "l": other.dictionary_decode()})
    expected = columns.predicate(op, TOPIC)(plain).tolist()
    assert columns.predicate(op, TOPIC)(coded).tolist() == expected
    mixed = pa.RecordBatch.from_pydict({"k": k, "l": other.dictionary_decode()})
    assert columns.predicate(op, TOPIC)(mixed).tolist() == expected


@pytest.mark.parametrize(("kind", "most"), [(pa.int8(), 128), (pa.uint8(), 256), (pa.int16(), 300)])
def test_a_dictionary_may_use_every_index_it_has(kind, most):
    k = dictionary([0, most - 1, None], [str(i) for i in range(most)], kind)
    op = predicate(parse_expression(f'k == "{most - 1}"'), NameScope(TOPIC, {}))
    assert columns.predicate(op, TOPIC)(pa.RecordBatch.from_pydict({"k": k})).tolist() == [False, True, False]
    assert columns.encode_keys(k, 3).codes.tolist() == [0, most - 1, -1]
