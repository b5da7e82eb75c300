"""Scope keys as text."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.compilers.keys import joined, key_text, shown, values_of

parts = st.text(st.sampled_from('ab,"\\\x1d\x1e\x1f012é'), max_size=5)
several = st.lists(parts, min_size=1, max_size=4)


@given(several)
def test_a_key_is_shown_as_its_values_with_commas(values):
    assert values_of(joined(None, values)) == values
    if len(values) == 1 or not any(set(value) & {",", '"'} for value in values):
        assert shown(joined(None, values)) == ",".join(values)


@given(several, several)
def test_no_two_keys_of_one_size_are_shown_alike(a, b):
    size = min(len(a), len(b))
    a, b = a[:size], b[:size]
    assert (shown(joined(None, a)) == shown(joined(None, b))) == (a == b)


@given(several, several)
def test_different_keys_of_one_size_have_different_texts(a, b):
    size = min(len(a), len(b))
    a, b = a[:size], b[:size]
    assert (joined(None, a) == joined(None, b)) == (a == b)


@given(several, parts, several, parts)
def test_keys_inside_different_keys_have_different_texts(a, outer_a, b, outer_b):
    size = min(len(a), len(b))
    a, b = a[:size], b[:size]
    outer_a, outer_b = joined(None, [outer_a]), joined(None, [outer_b])
    assert (joined(outer_a, a) == joined(outer_b, b)) == ((a, outer_a) == (b, outer_b))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", ""),
        ("a,b", "a,b"),
        (0.0, "0.0"),
        (-0.0, "0.0"),
        (0.1, "0.1"),
        (1e22, "1e+22"),
        (math.inf, "inf"),
        (7, "7"),
        (2**63 - 1, "9223372036854775807"),
        (True, "true"),
        (False, "false"),
        (None, None),
        (math.nan, None),
    ],
)
def test_the_text_of_a_value(value, text):
    assert key_text(value) == text


def test_a_plain_key_is_itself():
    assert joined(None, ["room-12"]) == "room-12"
    assert shown("room-12") == "room-12"
