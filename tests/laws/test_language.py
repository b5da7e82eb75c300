"""The laws of the language: text and operations are one thing, checking is total, warnings are true."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.definition.app import App
from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.definition.show import show
from holdfast.errors import DefinitionError, UsageError
from holdfast.kinds.state.reason import example, satisfiable
from holdfast.lang.expressions.evaluate import value
from holdfast.lang.grammar import parse_expression
from holdfast.lang.types import NameScope, predicate
from support.components import collisions, detects, short_detects
from support.definitions import TOPIC, apps, expressions, meaning, predicates, readings

relaxed = settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)


@relaxed
@given(expressions)
def test_a_printed_expression_parses_to_itself(op):
    again = parse_expression(show(op))
    assert again == op
    assert repr(again) == repr(op)  # 1 and 1.0 are equal in Python, but not here


@relaxed
@given(apps)
def test_a_printed_definition_parses_to_itself(app):
    assert parse(show(app)) == app


@relaxed
@given(st.lists(detects | short_detects | collisions, min_size=1, max_size=2))
def test_printed_components_parse_to_themselves(statements):
    app = App(statements)
    assert parse(show(app)) == app
    assert repr(parse(show(app))) == repr(app)


@relaxed
@given(detects)
def test_a_component_printed_as_in_the_thesis_parses_to_itself(detect):
    app = App([detect])
    assert parse(show(app, "thesis")) == app


@relaxed
@given(apps)
def test_printing_is_idempotent(app):
    text = show(app)
    assert show(parse(text)) == text


@relaxed
@given(apps)
def test_checking_accepts_a_definition_or_raises_a_usage_error(app):
    for definition in (app, parse(show(app))):
        with suppress(UsageError):
            check(definition)


PIECES = r"""state W on T [ ] { } ( ) value > 25 °C ; , && || | = == "a "a" per scope within case given every
1 s : _ U region late ordered - ! let topic in abs ' & \ # ²"""
texts = st.text(max_size=40) | st.lists(st.sampled_from([*PIECES.split(), "\n", "\x00"]), max_size=14).map(
    " ".join
)
TERMINALS = {"LPAR", "RSQB", "NAME", "QUANTITY", "COMPARE", "_AND", "$END"}


@relaxed
@given(texts)
def test_any_text_parses_or_raises_an_error_without_grammar_terminals(text):
    message = ""
    try:
        parse(text)
    except DefinitionError as error:
        message = error.message.split("found")[0]
    assert not TERMINALS & set(message.replace(",", "").split())


@relaxed
@given(predicates, readings)
def test_the_core_of_a_predicate_has_the_meaning_of_its_text(op, reading):
    core = predicate(op, NameScope(TOPIC, {}))
    assert value(core, reading) == meaning(op, reading)


@relaxed
@given(predicates, st.lists(readings, min_size=1, max_size=10))
def test_an_unsatisfiable_predicate_is_never_true(op, some):
    core = predicate(op, NameScope(TOPIC, {}))
    if satisfiable(core, TOPIC) is False:
        assert not any(meaning(op, reading) for reading in some)


@relaxed
@given(predicates)
def test_an_example_of_a_predicate_satisfies_it(op):
    core = predicate(op, NameScope(TOPIC, {}))
    found = example(core, TOPIC)
    if found is not None:
        assert meaning(op, found) is True
        assert satisfiable(core, TOPIC) is True
