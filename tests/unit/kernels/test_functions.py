"""The table of aggregate functions."""

from __future__ import annotations

from holdfast.kernels.functions import AGGREGATES
from holdfast.lang.grammar import keywords
from holdfast.model.query import FUNCTIONS


def test_every_function_of_the_language_has_a_row_in_the_table():
    assert set(AGGREGATES) == set(FUNCTIONS)


def test_functions_are_keywords_of_the_language():
    assert set(FUNCTIONS) <= set(keywords())
