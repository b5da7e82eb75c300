"""Scope keys as text."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.lang.expressions.key_text import join_key, key_text, readable_key, values_of

parts = st.text(st.sampled_from('ab,"\\\x1d\x1e\x1f012é'), max_size=5)
several = st.lists(parts, min_size=1, max_size=4)


@given(several)
def test_a_key_is_shown_as_its_values_separated_by_commas(values):
    assert values_of(join_key(None, values)) == values
    if len(values) == 1 or not any(set(value) & {",", '"'} for value in values):
        assert readable_key(join_key(None, values)) == ",".join(values)


@given(several, several)
def test_no_two_keys_of_one_size_are_shown_alike(a, b):
    size = min(len(a), len(b))
    a, b = a[:size], b[:size]
    assert (readable_key(join_key(None, a)) == readable_key(join_key(None, b))) == (a == b)


@given(several, several)
def test_different_keys_of_one_size_have_different_texts(a, b):
    size = min(len(a), len(b))
    a, b = a[:size], b[:size]
    assert (join_key(None, a) == join_key(None, b)) == (a == b)


@given(several, parts, several, parts)
def test_keys_inside_different_keys_have_different_texts(a, outer_a, b, outer_b):
    size = min(len(a), len(b))
    a, b = a[:size], b[:size]
    outer_a, outer_b = join_key(None, [outer_a]), join_key(None, [outer_b])
    assert (join_key(outer_a, a) == join_key(outer_b, b)) == ((a, outer_a) == (b, outer_b))


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


def test_the_text_of_a_plain_key_is_its_value():
    assert join_key(None, ["room-12"]) == "room-12"
    assert readable_key("room-12") == "room-12"
