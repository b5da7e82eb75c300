from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.files.convert import WrongType, convert


def convert_values(values, kind, type=None):
    """The values; those that are not of the kind are an ellipsis."""
    column, bad = convert(pa.array(values, type), kind)
    return [... if b else v for v, b in zip(column.to_pylist(), bad, strict=True)]


@given(st.lists(st.floats(allow_nan=False)))
def test_the_text_of_a_float_converts_to_that_float(values):
    assert convert_values([repr(v) for v in values], "float", pa.string()) == values


@given(st.lists(st.integers(-(2**70), 2**70)))
def test_the_text_of_an_int_of_64_bits_converts_to_that_int(values):
    expected = [v if -(2**63) <= v < 2**63 else ... for v in values]
    assert convert_values([str(v) for v in values], "int", pa.string()) == expected


@given(st.lists(st.text(st.characters(codec="ascii"), max_size=6)))
def test_every_text_converts_without_an_exception(values):
    for kind in ("float", "int", "bool", "text"):
        assert len(convert_values(values, kind, pa.string())) == len(values)


def test_texts_convert_to_floats_as_listed():
    words = [
        "+1.5",
        ".5",
        "1.",
        "1e5",
        " 2 ",
        "inf",
        "-Infinity",
        "",
        "NaN",
        "n/a",
        "null",
        "0x10",
        "1_0",
        "1,5",
    ]
    found = convert_values(words, "float")
    assert found[:7] == [1.5, 0.5, 1.0, 1e5, 2.0, math.inf, -math.inf]
    assert found[7:] == [None, None, None, None, ..., ..., ...]


def test_texts_convert_to_ints_as_listed():
    words = [
        "+1",
        "-01",
        "5.0",
        "1e3",
        "5.5",
        "0x10",
        "9223372036854775807",
        "9223372036854775808",
        "9007199254740993.0",
        "",
    ]
    assert convert_values(words, "int") == [1, -1, 5, 1000, ..., ..., 2**63 - 1, ..., ..., None]


def test_numbers_convert_to_ints_as_listed():
    assert convert_values([1.0, 1.5, math.nan, math.inf, 1e19, None], "int") == [1, ..., None, ..., ..., None]
    assert convert_values([2**64 - 1, 5], "int", pa.uint64()) == [..., 5]
    assert convert_values([2**53 + 1], "float") == [float(2**53)]


def test_texts_convert_to_truth_values_as_listed():
    words = ["true", "FALSE", "1", "0", "on", "Off", "yes", "no", "2", "maybe", "", "NA"]
    assert convert_values(words, "bool") == [
        True,
        False,
        True,
        False,
        True,
        False,
        True,
        False,
        ...,
        ...,
        None,
        None,
    ]
    assert convert_values([1, 0, 2, None], "bool") == [True, False, ..., None]
    assert convert_values([1.0, 0.0, 0.5, math.nan], "bool") == [True, False, ..., None]


def test_every_plain_value_converts_to_text():
    assert convert_values([5, None], "text") == ["5", None]
    assert convert_values([5.0, 2.5, math.nan], "text") == ["5", "2.5", None]
    assert convert_values([True], "text") == ["true"]
    assert convert_values(["NA", "null", "", "  ", " a"], "text") == ["NA", "null", "", "  ", " a"]


@pytest.mark.parametrize(
    ("values", "kind"), [([[1]], "float"), ([{"a": 1}], "text"), ([True], "float"), ([[True]], "bool")]
)
def test_columns_of_impossible_types_are_refused(values, kind):
    with pytest.raises(WrongType):
        convert(pa.array(values), kind)
