"""Syntax errors: their message, the position of the caret, and the hint."""

import pytest

from holdfast.definition.parse import parse
from holdfast.errors import DefinitionError
from support.mutants import SECONDS, at_once


@pytest.mark.parametrize(
    ("text", "caret", "message", "hint"),
    [
        (
            "filter F on T where v = 5",
            "                      ^",
            "'=' does not compare",
            "Did you mean '=='?",
        ),
        (
            "state W on T [v > 5 & ok]",
            "                    ^",
            "'&' is not an operator",
            "Did you mean '&&'?",
        ),
        ("state W on T [v > 5 | ok]", "                    ^", "'|' is not an operator here", "mean '||'"),
        ("state W on T [v > 5 AND ok]", "                    ^^^", "'AND' is not an operator", "mean 'and'"),
        ("filter F on T where v > 5 AND ok", "                          ^^^", "'AND' is not", "mean 'and'"),
        ("filter F on T where v <> 5", "                      ^^", "'<>' is not a comparison", "mean '!='"),
        ("filter F on T where v => 5", "                      ^^", "'=>' is not a comparison", ">="),
        ("state W on T [v > 5, v < 3]", "                   ^", "separated by ';'", "[enter; exit]"),
        (
            "state W on T [v > 5 v < 3]",
            "                    ^",
            "expected ';', '&&' or '||' before 'v'",
            "';'",
        ),
        ("state W T [v > 5]", "        ^", "expected 'on' and a topic", "state Warm on Temperature"),
        (
            "filter F on T where v > 5 furlongs",
            "                          ^^^^^^^^",
            "unknown unit 'furlongs'",
            "°C",
        ),
        ("state W on T [v > 5 °X]", "                    ^^", "unknown unit '°X'", None),
        ("topic X (a float meter)", "                 ^^^^^", "unknown unit 'meter'", "Did you mean 'm'?"),
        ("topic X (a float ug/m^3)", "                 ^^^^^^", "unknown unit 'ug/m^3'", "'ug/m3'?"),
        ("topic X (a double)", "           ^^^^^^", "unknown kind 'double'", "Did you mean 'float'?"),
        ("topic X (a boool)", "           ^^^^^", "unknown kind 'boool'", "Did you mean 'bool'?"),
        ("state W on T [v > 5; v < 3", "             ^", "'[' is never closed", "Add a ']'"),
        (
            "state W on T [v > 5; v < 3\nfilter F on T where v > 5",
            "             ^",
            "'[' is never closed",
            "']'",
        ),
        ('filter F on T where name == "abc', "                            ^^^^", "never closed", 'Add a "'),
        ("filter F on T where name == 'abc'", "                            ^", "in double quotes", '"John"'),
        (
            r'filter F on T where name == "a\q"',
            "                            ^^^^^",
            r"unknown escape \q",
            None,
        ),
        (r'filter F on T where n == "\ud800"', "                         ^^^^^^^^", "surrogate", None),
        ("stat W on T [ok]", "^^^^", "unknown word 'stat'", "Did you mean 'state'?"),
        ("State W on T [ok]", "^^^^^", "unknown word 'State'", "Did you mean 'state'?"),
        (
            "table X",
            "^^^^^",
            "'table' is not followed by what it needs",
            'As in: table Limits "limits.csv" (',
        ),
        ("mute W by night", "^^^^", "'mute' is not followed by what it needs", "As in: mute Warm during"),
        ("group G on T", "^^^^^", "'group' is not followed by what it needs", "As in: group Team of User"),
        ("frobnicate the thing", "^^^^^^^^^^", "unknown word 'frobnicate'", "starts with let, topic"),
        ("state W on T [ok] pr source", "                  ^^", "unknown word 'pr'", "Did you mean 'per'?"),
        ("state per on T [ok]", "      ^^^", "'per' is a word of the language", "per_"),
        ("filter F on T where and > 5", "                    ^^^", "'and' is a word of the language", None),
        (
            "filter F on T where v > && ok",
            "                        ^^",
            "a number, an attribute or '('",
            None,
        ),
        (
            "filter F on T where",
            "                  ^",
            "ends too early: expected a number, an attribute",
            None,
        ),
        ("filter F on T where v > 1e999", "                        ^^^^^", "too large", None),
        ("filter F on T where v ^ 2 > 5", "                      ^", "no powers", "Multiply"),
        ("filter F on T where |a - |b|| > 1", "                           ^^", "'||' means 'or' here", "abs"),
        ("state W on T [ok] ordered -3 s", "                          ^^^^", "cannot be negative", None),
        ("state W on T [ok] ordered 3", "                          ^", "needs a unit of time", None),
        ("state W on T [ok] ordered 3 m", "                          ^^^", "m is not a unit of time", None),
        (
            "state W on T [ok] ordered 0.1 us",
            "                          ^^^^^^",
            "whole number of micro",
            None,
        ),
        ("state W on T [ok] ordered 1e30 d", "                          ^^^^^^", "too long", None),
        ("state W on T [ok] late appl", "                       ^^^^", "unknown word 'appl'", "'apply'"),
        ("state W on T [ok] per a per b", "                        ^^^^^", "'per' is given twice", None),
        ("state W on T [ok] timely ordered 1 s", "                         ^^^^^^^^^^^", "given twice", None),
        ('case "x" given T every 0 s: 5', "                       ^^^", "above zero", None),
        ('case "x" given T: 5, 6', "               ^", "need a distance in time", "every 1 min"),
        (
            'case "x" given T at "a" at "b" every 1 s: 5',
            "                        ^^^^^^",
            "'at' is given twice",
            None,
        ),
        (
            'case "x" expect W: ingres at 5 s',
            "                   ^^^^^^",
            "unknown word 'ingres'",
            "'ingress'",
        ),
        (
            "region a = square (0,0) 5",
            "           ^^^^^^",
            "expected 'circle', 'polygon' or 'rectangle'",
            None,
        ),
        ("region a = circle (0,0) -5", "           ^^^^^^^^^^^^^^^", "radius must be above zero", None),
        ("region a = circle (0,0) 5 s", "                        ^^^", "s is not a unit of length", "metres"),
        ("region a = rectangle (0,0) (-1,3)", "           ^^^^^^^^^^^^^^^^^^^^^^", "low corner", None),
        ("region a = polygon (0,0) (1,1) (0,1) (1,0)", "           ^", "not a simple polygon", None),
    ],
)
def test_a_mistake_is_explained(text, caret, message, hint):
    with pytest.raises(DefinitionError) as caught:
        parse(text, "app.hf")
    error = caught.value
    assert message in error.message
    assert hint is None or hint in (error.hint or "")
    shown = str(error).splitlines()
    assert shown[0].startswith(f"app.hf:1:{caret.index('^') + 1}: ")
    assert shown[1] == "    " + text.splitlines()[0]
    assert shown[2].startswith("    " + caret)


def test_the_caret_stands_in_the_right_line():
    with pytest.raises(DefinitionError) as caught:
        parse("# one\n\nlet a = 5\n\tfilter F on T where v = 5\n")
    assert str(caught.value).splitlines()[1:3] == [
        "    \tfilter F on T where v = 5",
        "    \t                      ^",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("state First A # = Second\n any location enter A.valid", "expected 'on' and a topic before 'A'"),
        ("state First A = T B # = mean U\n  C = V", "expected '=', found 'C'"),
        ("correlate C within 10 s  Temp < 0  Wind # > 8", "expected a range after 'Wind'"),
        ("stat # Warm", "unknown word 'stat' at the start of a statement"),
    ],
)
def test_comments_are_ignored_in_error_messages(text, message):
    with pytest.raises(DefinitionError) as caught:
        parse(text)
    assert message in caught.value.message


def test_a_very_long_word_is_refused_quickly():
    with at_once(SECONDS), pytest.raises(DefinitionError):
        parse(f"filter F on T where v > {'9' * 60_000} foo")
