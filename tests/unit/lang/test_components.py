"""Components as text: the thesis' tables, the readable form, and what is wrong with a definition."""

from __future__ import annotations

import pytest

from holdfast.definition.app import App
from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.definition.show import show
from holdfast.errors import DefinitionError, UsageError
from holdfast.kinds.component.condition import ComponentCondition
from holdfast.kinds.component.parse import parse_query
from holdfast.kinds.component.syntax import DefineComponent
from holdfast.lang.literal import QUERY_WORDS
from holdfast.model.query import (
    HERE,
    NOW,
    Aggregate,
    Ball,
    Closest,
    Index,
    MemberSet,
    Multiple,
    PooledDimension,
    Query,
    QueryRange,
)
from holdfast.model.topic import Attribute
from support import thesis

SECOND = 1_000_000


def ago(low, high=0.0):
    return QueryRange(Index(round(-low * SECOND), relative=True), Index(round(-high * SECOND), relative=True))


def of(name):
    return Closest(Index(name))


# --- the thesis' tables ------------------------------------------------------------------------


@pytest.mark.parametrize("table", thesis.ALL.values(), ids=thesis.ALL)
def test_printed_tables_of_the_thesis_parse_and_each_form_converts_to_the_other(table):
    app = parse(table)
    assert parse(show(app)) == app
    assert parse(show(app, "thesis")) == app
    assert all(isinstance(statement, DefineComponent) for statement in app.statements)


def test_table_5_4_is_readable():
    assert show(parse(thesis.TABLE_5_4)) == (
        "state TrafficCongestion\n"
        "  A = avg atomic InductiveLoop over 30 s each location\n"
        "  B = avg atomic CarSpeed over 1 min each location\n"
        "  enter A.value > 2.5 && B.value < 7 && A.location == B.location"
        " set location = A.location, level = B.value\n"
        "  exit B.value > 15 && B.location == last.location set location = last.location, level = B.value\n"
    )


def test_the_readable_form_converts_to_the_table_of_the_thesis():
    app = parse(
        "state Fire A = Temperature all location within 10 m of here enter A.value > 50 exit A.value < 30"
    )
    assert show(app, "thesis") == (
        'N "Fire"\n'
        "Q A := ((closest, Temperature, null, null),\n"
        "          (closest, 0^r, null, null),\n"
        "          (multiple: all, null, null, 0^r ± 10),\n"
        "          (multiple: any, null, null, D_S))\n"
        "P^n A.value > 50\n"
        "P^x A.value < 30\n"
    )


def test_0_r_is_now_or_here_depending_on_the_other_operand():
    (statement,) = parse(thesis.TABLE_5_14_A).statements
    assert show(statement.enter.when) == "last.valid == 0 || last.time < now - 10"
    near = thesis.TABLE_5_16.replace("|A.location - B.location|", "|A.location - 0^r|")
    assert show(parse(near).statements[0].enter.when) == "abs(A.location - here) <= 2"


def test_a_table_without_topics_makes_them_from_use():
    checked = check(parse(thesis.TABLE_5_4))
    assert [(t.name, t.attributes) for t in checked.topics] == [
        ("InductiveLoop", (Attribute("value", "float"),)),
        ("CarSpeed", (Attribute("value", "float"),)),
    ]


# --- queries -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("T", Query(of("T"))),
        ("latest T", Query(of("T"))),
        (
            "avg InductiveLoop over 30 s each location",
            Query(of("InductiveLoop"), Aggregate("avg", ago(30)), Multiple("separate")),
        ),
        ("max T over [-60 s, -30 s]", Query(of("T"), Aggregate("max", ago(60, 30)))),
        ("sum T ever", Query(of("T"), Aggregate("sum"))),
        (
            "(avg value, max speed) T over 1 min",
            Query(of("T"), Aggregate((("value", "avg"), ("speed", "max")), ago(60))),
        ),
        ("T at -5 min", Query(of("T"), Closest(Index(-300 * SECOND, relative=True)))),
        ('T at "1970-01-01T00:00:10Z"', Query(of("T"), Closest(Index(10 * SECOND)))),
        ("T any time over 5 s", Query(of("T"), Multiple("any", ago(5)))),
        ("all T within 10 m of here", Query(of("T"), location=Multiple("all", Ball(HERE, 10.0)))),
        ("T all locations within 10 m of here", Query(of("T"), location=Multiple("all", Ball(HERE, 10.0)))),
        ("T one location", Query(of("T"), location=Multiple("one"))),
        (
            "T within [-10, 10]",
            Query(of("T"), location=PooledDimension(QueryRange(Index((-10.0,)), Index((10.0,))))),
        ),
        (
            "T any location within [here + (-1, -1), here + (1, 1)]",
            Query(
                of("T"),
                location=Multiple(
                    "any", QueryRange(Index((-1.0, -1.0), relative=True), Index((1.0, 1.0), relative=True))
                ),
            ),
        ),
        (
            'T all locations of ("A5", (3, 4))',
            Query(of("T"), location=Multiple("all", MemberSet((Index("A5"), Index((3.0, 4.0)))))),
        ),
        ("T closest to here", Query(of("T"), location=Closest(HERE))),
        ("T closest to (1, 2, 3)", Query(of("T"), location=Closest(Index((1.0, 2.0, 3.0))))),
        ("T max location", Query(of("T"), location=Aggregate("max"))),
        ("T whatever status", Query(of("T"), status=PooledDimension())),
        ("ingress T", Query(of("T"), status=of("ingress"))),
        ("T each status", Query(of("T"), status=Multiple("separate"))),
        (
            "T any status of (ingress, egress)",
            Query(of("T"), status=Multiple("any", MemberSet((Index("ingress"), Index("egress"))))),
        ),
        ("any of (T, U)", Query(Multiple("any", MemberSet((Index("T"), Index("U")))))),
        ("each of (T, U)", Query(Multiple("separate", MemberSet((Index("T"), Index("U")))))),
        (
            "avg max of (T, U) over 5 s",
            Query(Aggregate("max", MemberSet((Index("T"), Index("U")))), Aggregate("avg", ago(5))),
        ),
        (
            "count T over 1 h each road, lane",
            Query(of("T"), Aggregate("count", ago(3600)), each=("road", "lane")),
        ),
        (
            "T within 1 km of (0, 0) each source",
            Query(of("T"), location=PooledDimension(Ball(Index((0.0, 0.0)), 1000.0)), each=("source",)),
        ),
    ],
)
def test_a_query_parses(text, query):
    assert parse_query(text) == query
    assert query.time != Closest(NOW) or "over" not in text


def test_python_builds_the_same_component():
    text = """
        topic T (value float)
        state Hot
          A = avg T over 30 s each location
          enter A.value > 25 for 5 min set level = A.value
          exit A.value < 22
          tick 1 s
          here (3, 4)
          ordered 10 s
    """
    app = App()
    app.topic("T", value=float)
    app.detect(
        "Hot",
        {"A": "avg T over 30 s each location"},
        enter="A.value > 25",
        enter_for="5 min",
        enter_set={"level": "A.value"},
        exit="A.value < 22",
        tick="1 s",
        here=(3.0, 4.0),
        ordered="10 s",
    )
    assert app == parse(text)


# --- what it means -----------------------------------------------------------------------------

TWO = "topic T (value float °C, n int, name text, ok bool)\ntopic U (value float °C, speed float km/h)\n"


def component(text):
    return check(parse(TWO + text)).of(ComponentCondition)[-1]


def test_the_topic_of_a_component_has_set_attributes_and_those_of_its_queries():
    found = component(
        "state S A = avg T over 5 s B = U "
        "enter A.value > 20 °C set level = B.speed, high = A.value > 30 exit true"
    )
    assert found.topic.attributes == (
        Attribute("level", "float", "km/h"),
        Attribute("high", "bool"),
        Attribute("value", "float", "°C"),
        Attribute("n", "float"),
        Attribute("name", "text"),
        Attribute("ok", "bool"),
        Attribute("speed", "float", "km/h"),
    )


@pytest.mark.parametrize(
    ("enter", "core"),
    [
        ("A.value > 77 °F", "A.value > 25.0"),
        ("A.time > now - 10 s", "A.time > now - 10000000"),
        ("A.time > now - 10", "A.time > now - 10000000"),
        ("A.time - B.time < 30 s", "(A.time - B.time) / 1000000.0 < 30.0"),
        ('A.time >= "1970-01-01T00:00:01Z"', "A.time >= 1000000"),
        ("now - 1 min <= A.time", "now - 60000000 <= A.time"),
        ("A.time in [now - 2 s, now]", "A.time >= now - 2000000 && A.time <= now"),
        ("|A.location - B.location| <= 2 km", "abs(A.location - B.location) <= 2000.0"),
        ("A.status == ingress", 'A.status == "ingress"'),
        ('A.location == "A5"', 'A.location == "A5"'),
        ("!A.valid", "!A.valid"),
        ("A.valid == 0", "!A.valid"),
        ("A.count > 3 && A.source != B.source", "A.count > 3 && A.source != B.source"),
        ("!(A.value > 20 && last.value < 3)", "A.value <= 20.0 || last.value >= 3.0"),
        ("A.value > B.value else 77 °F", "A.value > B.value else 25.0"),
        ("!(A.ok else false) && B.speed else -1 > 5", "!A.ok else false && B.speed else -1.0 > 5.0"),
        ("A.n else 3 > A.n else 2.5", "A.n else 3.0 > A.n else 2.5"),
    ],
)
def test_expressions_are_typed(enter, core):
    assert show(component(f"state S A = T B = U enter {enter} exit true").enter.when) == core


def test_a_spread_is_converted_by_scale_alone():
    found = component("state S A = stddev T over 5 s enter A.value > 3.6 °F exit true")
    assert show(found.enter.when) == "A.value > 2.0"


def test_a_component_with_one_query_needs_no_names():
    found = component("state S on T each source enter value > 25 °C && status == atomic exit value < 20 °C")
    assert show(found.enter.when) == 'value > 25.0 && status == "atomic"'
    assert found.keys == ("source",)


def test_levels_are_counted_from_the_readings():
    checked = check(
        parse(
            TWO
            + """
        state Top A = Middle enter A.valid exit true
        state Middle A = Bottom B = T enter A.valid && B.value > 3 exit true
        state Bottom A = T enter A.value > 3 exit true
    """
        )
    )
    assert [(one.name, one.level) for one in checked.of(ComponentCondition)] == [
        ("Top", 3),
        ("Middle", 2),
        ("Bottom", 1),
    ]


# --- what is wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "caret", "message", "hint"),
    [
        (
            "state A_ A = B_ enter A.valid exit true\nstate B_ A = A_ enter A.valid exit true",
            "      ^^",
            "components build on one another in a circle: A_ → B_ → A_",
            "derived",
        ),
        (
            "state S A = Tt enter A.value > 1",
            "            ^^",
            "unknown topic 'Tt'; known: T, U",
            "Did you mean 'T'?",
        ),
        (
            'state S A = avg T over 5 s enter A.name == "x" exit true',
            "                                 ^^^^^^",
            "A.name cannot be used: avg of text is not defined; only count is",
            None,
        ),
        (
            "topic W (name text) state S A = max W over 5 s enter A.count > 1 exit true",
            "                            ^",
            "max of text is not defined: W has no number",
            "Count it: count W",
        ),
        ("state S A = (avg name) T over 5 s enter true", "        ^", "avg of text is not defined", None),
        (
            "state S A = all T within 10 m of here enter A.value > 50 exit true",
            "        ^",
            "'S' is about what is near here, but nothing says where here is",
            "here (3, 4)",
        ),
        (
            "state S A = T enter |A.location - here| < 2 exit true",
            "        ^",
            "nothing says where here is",
            "here TOPIC",
        ),
        (
            "state S A = T each location B = U each source enter A.value > B.value",
            "                            ^",
            "queries of 'S' disagree on what is kept apart: A each location; B each source",
            "one key",
        ),
        (
            "state S A = T each road enter A.value > 1",
            "                   ^^^^",
            "topic 'T' has no 'road'",
            None,
        ),
        ("state S A = avg T enter A.value > 1", "            ^^^^^", "avg needs a window", "over 30 s"),
        (
            "state S A = T over 5 s enter A.value > 1",
            "            ^^^^^^^^^^",
            "a window needs a function",
            "any time",
        ),
        (
            "state S A = avg max T over 5 s enter true",
            "                    ^",
            "expected 'of', found 'T'",
            None,
        ),
        ("state S A = T at 5 enter true", "                 ^", "a duration needs a unit of time", None),
        (
            "state S A = T any place enter true",
            "                  ^^^^^",
            "'place' is not a dimension",
            "each",
        ),
        (
            "state S A = T enter B.value > 1",
            "                    ^^^^^^^",
            "no query is named 'B'; there is A, last",
            None,
        ),
        ("state S A = T enter A.valu > 1", "                    ^^^^^^", "there is no A.valu", "'value'"),
        (
            "state S A = T enter A.value > now",
            "                    ^^^^^^^",
            "A.value is not a time",
            "A time is",
        ),
        ("state S A = T enter A.time > 5 m", "                             ^^^", "5 m is not a time", None),
        (
            "state S A = T enter A.location > here here (1)",
            "                    ^^^^^^^^^^^^^^^^^",
            "locations are compared with == and != only",
            "|A.location",
        ),
        (
            "state S A = T enter A.value > 1 set status = 3",
            "                                    ^^^^^^",
            "'status' of a component's event cannot be set",
            "time and location",
        ),
        (
            "state S A = T enter A.value > 1 set time = 3",
            "                                           ^",
            "'time' must be a time, not a number",
            None,
        ),
        (
            "state S A = T enter A.value > 1 set a = 1, a = 2",
            "                                           ^",
            "'a' is set twice",
            None,
        ),
        (
            "state S A = T whatever location enter true",
            "                       ^^^^^^^^",
            "only the status can be whatever it is, not the location",
            "does not matter",
        ),
        (
            'state S A = T enter A.ok set a = 1 exit A.ok set a = "x"',
            "                                                 ^",
            "'a' is int in one place and text in the other",
            None,
        ),
        (
            "state S A = T enter A.ok set name = A.count exit !A.ok",
            "                             ^^^^",
            "'name' is int where it is set, and text, as a query shows it, where it is not",
            "at the start and at the end",
        ),
        (
            "state S A = T enter A.ok exit !A.ok set ok = A.value",
            "                                        ^^",
            "'ok' is float where it is set, and bool, as a query shows it, where it is not",
            "another name",
        ),
        (
            "state S A = T any location enter A.value > 1",
            "      ^",
            "'S' needs an exit: A looks at several values at once",
            "exit true",
        ),
        (
            "state S A = T closest to 1 within [0, 5] enter true exit true",
            "            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
            "the closest needs no region",
            "either",
        ),
        (
            "state S A = T any status of (3) enter true",
            "                             ^",
            "expected a status",
            None,
        ),
        (
            "state S A = T within 5 m of 9 s enter true",
            "                            ^^^",
            "s is not a unit",
            None,
        ),
        (
            "state S A = T within x of here enter true",
            "                     ^",
            "expected a distance",
            "10 m",
        ),
        (
            "state S A = T closest to home enter true",
            "                         ^^^^",
            "expected a location",
            "here",
        ),
        ("state S A = T at here enter true", "                 ^^^^", "expected a time", "now"),
        ("collide max collide min", "                    ^^^", "'collide' is given twice", None),
        ("state S enter true", "      ^", "'S' looks at nothing", "Add a query"),
        ("state T A = U enter true", "      ^", "'T' is a topic already", None),
        ("state now_ now = T enter true", "           ^^^", "'now' has a meaning of its own", None),
        (
            "filter F on T where value > 1 state S A = F enter true",
            "                                          ^",
            "'F' is a condition over single readings",
            "Make it a component",
        ),
        ("filter F on T where A.value > 1", "                    ^^^^^^^", "there is no 'A' here", "queries"),
        (
            'state S A = T enter A.value else "a" > 1',
            "                                 ^^^",
            'A.value is a number, and "a" is not a constant of that kind',
            "true or false, or a parameter",
        ),
        (
            "state S A = T enter A.value else n > 1",
            "                                 ^",
            "is not a constant",
            None,
        ),
        (
            "state S A = T enter A.value else 5 m > 1",
            "                                 ^^^",
            "'value' is not measured in m",
            None,
        ),
        ("state S A = max T over [-1 s, -9 s] enter true exit true", "        ^", "the range is empty", None),
        (
            "state S A = T enter true for 0 s",
            "                             ^^^",
            "this duration must be above zero",
            None,
        ),
    ],
)
def test_errors_are_reported_at_their_place(text, caret, message, hint):
    topics = "topic T (value float, n int, name text, ok bool)  topic U (value float)\n"
    with pytest.raises(DefinitionError) as caught:
        check(parse(topics + text, "app.hf"))
    error = caught.value
    assert message in error.message
    assert hint is None or hint in (error.hint or "")
    assert str(error).splitlines()[2][4:] == caret


@pytest.mark.parametrize(
    ("text", "caret", "message", "hint"),
    [
        (
            "state S A = T entr A.value > 1",
            "              ^^^^",
            "unknown word 'entr' in a component",
            "'enter'",
        ),
        ("state S A = mean T over 5 s", "            ^^^^", "unknown function 'mean'", "'avg'"),
        ("state S A = T exit true", "              ^^^^", "expected 'enter' before 'exit'", None),
        ("state S A = T, B = U", "             ^", "there is no comma between queries", "'='"),
        ("state S on T per source", "             ^^^", "keeps things apart with 'each'", "each source"),
        ("state S A = T within 9 m enter", "                         ^^^^^", "expected 'of'", "of here"),
        ("state S A = T enter A.value > 1 tik 5 s", "                                ^^^", "'tik'", "'tick'"),
        (
            "state S A = T enter true enter true",
            "                         ^^^^^",
            "cannot stand here",
            "one 'enter'",
        ),
        (
            "state S A = T",
            "            ^",
            "expected 'over', 'each', 'within', another query or 'enter'",
            None,
        ),
        ('N "S" Q A := ((closest, T, null))', "                                ^", "expected ','", None),
    ],
)
def test_a_syntax_error_is_explained(text, caret, message, hint):
    with pytest.raises(DefinitionError) as caught:
        parse(text)
    assert message in caught.value.message
    assert hint is None or hint in (caught.value.hint or "")
    assert str(caught.value).splitlines()[2][4:] == caret


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (thesis.TABLE_5_4.replace("(closest, atomic, null, null));", "null);"), "expected"),
        (thesis.TABLE_5_4.replace("D_L", "D_T", 1), "unknown word 'D_T' for the domain"),
        (thesis.TABLE_5_4.replace("avg", "average", 1), "unknown word 'average' for a function"),
        (
            thesis.TABLE_5_4.replace("multiple: separate", "multiple: each", 1),
            "unknown word 'each' for multiple",
        ),
        (
            thesis.TABLE_5_4.replace("(closest, atomic, null, null)", "(closest, atomic)", 1),
            "a parameter is (operator",
        ),
        (
            thesis.TABLE_5_14_A.replace("(last.valid == 0) ||", "0^r > 3 ||"),
            "whether 0^r is a time or a location",
        ),
        (thesis.TABLE_5_14_A, "nothing says where here is"),
    ],
)
def test_a_wrong_table_is_explained(table, message):
    with pytest.raises(DefinitionError) as caught:
        check(parse(table))
    assert message in caught.value.message


_TABLE = """N "S"
Q {name} := ((closest, T, null, null), {time}, {location}, (closest, atomic, null, null){key})
P^n {name}.value > 1
P^x {name}.value < 1
"""
_PLAIN = {"name": "A", "time": "(closest, 0^r, null, null)", "location": "(pool, null, null, D_L)", "key": ""}


def table_text(**other):
    return _TABLE.format(**_PLAIN | other)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        *(({"name": word}, f"'{word}' has a meaning of its own") for word in ("last", "topic", "closest")),
        ({"time": f"(closest, {'9' * 40}^r, null, null)"}, "the time is too far away"),
        ({"time": "(closest, 1e15, null, null)"}, "the time is too far away"),
        ({"time": "(closest, 1e999999999^r, null, null)"}, "the number is too large"),
        ({"time": "(aggregate, null, {(avg, not)}, (-30^r, 0^r))"}, "'not' is a word of the language"),
        ({"time": "(aggregate, null, {avg}, (-30^r, 0^r))"}, "expected functions, each with an attribute"),
        ({"location": f"(closest, {'9' * 400}, null, null)"}, "the number is too large"),
        ({"location": "(pool, null, null, (0, 0) ± -5)"}, "a distance cannot be negative"),
        ({"location": "(pool, null, null, (0, 0) ± 1e400)"}, "the number is too large"),
        ({"key": ", (multiple: separate, null, null, D_location)"}, "expected an attribute to keep apart"),
        ({"key": ", (multiple: separate, null, null, D_per)"}, "expected an attribute to keep apart"),
    ],
)
def test_a_component_that_no_table_can_express_is_refused(other, message):
    with pytest.raises(DefinitionError) as caught:
        parse(table_text(**other))
    assert message in caught.value.message


def test_an_attribute_may_be_called_like_a_statement():
    app = parse(table_text() + "A^x topic := 3; level := 4")
    assert [name for name, _ in app.statements[0].exit.sets] == ["topic", "level"]
    assert parse(show(app, "thesis")) == app


def test_the_thesis_form_refuses_a_component_without_queries():
    app = parse("state S enter true exit false")
    assert parse(show(app, "thesis")) == app


@pytest.mark.parametrize("name", sorted(QUERY_WORDS))
def test_a_keyword_of_components_cannot_name_a_query(name):
    for inputs in (f"{name} = T", f"A = avg T over 3 s\n  {name} = T"):
        with pytest.raises(DefinitionError):
            parse(f"state S\n  {inputs}\n  enter {name}.value > 1")
    with pytest.raises(UsageError, match="a meaning of its own"):
        App().detect("S", {name: "T"}, enter=True)


@pytest.mark.parametrize(
    ("predicate", "message"),
    [
        ("A.time > now - 1e308 s", "the number is too large"),
        ("A.time > now - 1e15 s", "1000000000000000.0 s is too far away in time"),
        ("A.time > 1e300", "1e+300 is too far away in time"),
        ("A.value > 1e308 km", "the number is too large"),
    ],
)
def test_a_number_that_is_too_large_in_its_unit_is_refused_at_its_place(predicate, message):
    with pytest.raises(DefinitionError) as caught:
        check(parse(f"topic T (value float mm)\nstate S\n  A = T\n  enter {predicate}"))
    assert message in caught.value.message
    assert caught.value.place is not None
    assert caught.value.place.line == 4


def test_the_mean_of_colliding_integers_may_be_a_fraction():
    text = "topic T (n int, road int)\nstate S\n  A = T each road\n  enter A.n > 1\n  exit A.n < 1\n"
    for collide, kind in (("", "float"), ("collide max\n", "int")):
        (component,) = check(parse(collide + text)).of(ComponentCondition)
        assert {a.name: a.kind for a in component.topic.attributes} == {"n": kind, "road": "int"}


def test_a_count_is_a_number_whatever_functions_were_applied_before():
    text = "topic T (value float, road text, wet bool)\nstate S\n  A = avg T over 1 s count location\n  "
    (made,) = check(parse(text + "enter A.value > 1 && A.road > 1\n  exit true\n")).of(ComponentCondition)
    assert {a.name: a.kind for a in made.topic.attributes} == {"value": "int", "road": "int", "wet": "int"}


EPISODES = """topic Level (value float)
state Episode on Level each location enter value > 10 set open = 1 exit value < 5 set open = 0
state EpisodeNow on Episode each location enter true exit true
state City A = {query} enter A.open >= 2 exit A.open < 2
"""


def test_a_function_over_locations_of_starts_and_ends_causes_a_warning():
    (caution,) = check(parse(EPISODES.format(query="Episode sum location"))).warnings
    assert "of its starts and of its ends apart" in caution.message
    assert caution.place is not None
    assert (caution.place.line, caution.place.column) == (4, 12)
    assert "each place: Episode sum location whatever status." in (caution.hint or "")
    assert "ingress Episode sum location" in (caution.hint or "")


@pytest.mark.parametrize(
    "query",
    [
        "EpisodeNow sum location",
        "Episode sum location whatever status",
        "ingress Episode sum location",
        "Episode sum location each status",
        "Episode any location",
        "Episode",
    ],
)
def test_a_function_over_locations_with_one_status_is_refused(query):
    assert check(parse(EPISODES.format(query=query))).warnings == ()


def test_a_duration_longer_than_the_ticks_continue_causes_a_warning():
    text = "topic T (value float)\nstate Old A = T enter {} exit A.value > 1 tick 1 s"
    (caution,) = check(parse(text.format("A.time < now - 3 h"))).warnings
    assert "'Old' has a tick of 1 s: there are 10,000 after a reading" in caution.message
    assert "before 3 h are over" in caution.message
    assert caution.hint == "Take a longer one: tick 2 s"
    assert (caution.place.line, caution.place.column) == (2, 38)
    for fits in ("A.time < now - 2 h", "A.value > 3", "now - A.time > 7200"):
        assert check(parse(text.format(fits))).warnings == ()
