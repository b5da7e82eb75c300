"""Many predicates at once hold where each of them holds alone."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kinds.state.toggle import word_of
from holdfast.lang import ops
from holdfast.lang.expressions import batch as columns
from holdfast.lang.expressions import event as scalar
from holdfast.lang.expressions import written
from holdfast.model.event import Event
from holdfast.model.topic import Attribute, Topic

TOPIC = Topic("T", (Attribute("a", "float"), Attribute("b", "float"), Attribute("n", "int")))

constants = st.sampled_from([-math.inf, -2.5, -0.0, 0.0, 0.1, 0.3, 1, 2, 5e-324, 1e308, math.inf])
values = constants | st.sampled_from([math.nan, None, 0.2, 1.0000000000000002]) | st.floats()
signs = st.sampled_from(["<", "<=", "==", "!=", ">=", ">"])
names = st.sampled_from(["a", "a", "a", "a", "b", "n"]).map(ops.Name)
comparisons = st.builds(ops.Compare, signs, names, constants.map(ops.Number)) | st.builds(
    ops.Compare, signs, constants.map(ops.Number), names
)
predicates = st.recursive(
    comparisons,
    lambda inner: st.builds(ops.And, inner, inner) | st.builds(ops.Or, inner, inner),
    max_leaves=4,
)
numbers = st.recursive(
    names | constants.map(ops.Number),
    lambda inner: (
        st.builds(ops.Negative, inner)
        | st.builds(ops.Absolute, inner)
        | st.builds(ops.Arithmetic, st.sampled_from("+-*/"), inner, inner)
    ),
    max_leaves=3,
)
computed = st.builds(ops.Compare, signs, numbers, numbers)


@given(st.lists(predicates, min_size=1, max_size=20), st.lists(st.tuples(values, values), max_size=8))
def test_every_bit_of_a_word_is_its_own_predicate(tests, rows):
    batch = pa.RecordBatch.from_pydict(
        {
            "a": pa.array([a for a, _ in rows], pa.float64()),
            "b": pa.array([b for _, b in rows], pa.float64()),
            "n": pa.array(range(len(rows)), pa.int64()),
        }
    )
    word = word_of(len(tests))
    found = columns.words(tests, TOPIC, word)(batch)
    assert found.dtype == word
    alone = [scalar.predicate(op, TOPIC) for op in tests]
    for i, (a, b) in enumerate(rows):
        event = Event("T", 0, "s", {"a": a, "b": b, "n": i})
        assert int(found[i]) == sum(test(event) << f for f, test in enumerate(alone))


@given(
    st.lists(predicates | computed | st.builds(ops.Truth, st.booleans()), min_size=1, max_size=6),
    st.lists(st.tuples(values, values, st.integers(-(2**62), 2**62) | st.none()), max_size=8),
)
def test_a_generated_function_equals_the_closures_of_its_predicates(tests, rows):
    found = written.marks([(op, 1 << f) for f, op in enumerate(tests)], TOPIC)
    alone = [scalar.predicate(op, TOPIC) for op in tests]
    for a, b, n in rows:
        event = Event("T", 0, "s", {"a": a, "b": b, "n": n})
        assert found(event) == sum(test(event) << f for f, test in enumerate(alone))


def test_an_absent_column_is_missing():
    tests = [ops.Compare(">", ops.Name("a"), ops.Number(i)) for i in range(6)]
    batch = pa.RecordBatch.from_pydict({"b": [1.0, 2.0]})
    assert columns.words(tests, TOPIC, np.uint8)(batch).tolist() == [0, 0]


@pytest.mark.parametrize("count", [1, 3, 4, 50])
def test_words_of_many_thresholds_equal_single_predicates(count):
    tests = [ops.Compare(">", ops.Name("a"), ops.Number(25 + i / 25)) for i in range(count)]
    batch = pa.RecordBatch.from_pydict({"a": np.linspace(24, 28, 5_000)})
    found = columns.words(tests, TOPIC, word_of(count))(batch)
    for f, op in enumerate(tests):
        assert (((found >> f) & 1) == columns.predicate(op, TOPIC)(batch)).all()
