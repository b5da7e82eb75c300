"""Canonical text, with no more parentheses than needed."""

import pytest

from holdfast.definition.parse import parse
from holdfast.definition.show import show
from holdfast.errors import UsageError
from holdfast.lang.grammar import parse_expression
from holdfast.lang.ops import Negative, Number


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("((a)) > (1)", "a > 1"),
        ("(a || b) && c", "(a || b) && c"),
        ("a || (b && c)", "a || b && c"),
        ("a && (b && c)", "a && (b && c)"),
        ("(a + b) * c - (d - e)", "(a + b) * c - (d - e)"),
        ("a / (b * c)", "a / (b * c)"),
        ("not (a and b)", "!(a && b)"),
        ("not a > 1", "!(a > 1)"),
        ("!!a", "!!a"),
        ("20 < a < 25", "20 < a && a < 25"),
        ("|a|", "abs(a)"),
        ("a ≤ 5kmh", "a <= 5 kmh"),
        ("a - -5", "a - -5"),
        ("-(5)", "-(5)"),
        ("--5", "--5"),
        ("-(a + b)", "-(a + b)"),
        ("(a < b) == c", "(a < b) == c"),
        ("a in [1, (2)]", "a in [1, 2]"),
        (r'a == "\u0007\"é\n"', r'a == "\u0007\"é\n"'),
    ],
)
def test_an_expression_is_printed(text, shown):
    assert show(parse_expression(text)) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("state F on T [a > 1; true]", "filter F on T where a > 1"),
        ("s = {a > 1, a < 1, {region : x, y}}", "s: [a > 1; a < 1] scope x, y"),
        (
            "state S on T [a > 1] late apply ordered 120 s",
            "state S on T [a > 1; !(a > 1)] ordered 2 min late apply",
        ),
        ('region "a b" = circle (1.0, 2.5) 1 km', 'region "a b" = circle (1, 2.5) 1000'),
        ("region a in b", "region a in b"),
        (
            'case "c" given T every 60 s: (1), (2, _) expect S: nothing',
            'case "c"\n  given T every 1 min: 1, (2, _)\n  expect S: nothing',
        ),
    ],
)
def test_a_statement_is_printed(text, shown):
    assert show(parse(text)) == shown + "\n"


def test_a_number_that_cannot_be_written_is_refused():
    with pytest.raises(UsageError, match="finite"):
        show(Negative(Number(float("inf"))))
