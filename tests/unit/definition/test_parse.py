"""Every statement and every notation of the papers, as text."""

import re
from importlib.resources import files

import pytest

from holdfast.definition.parse import parse
from holdfast.definition.show import show
from holdfast.errors import DefinitionError
from holdfast.kinds.state.syntax import DefineState
from holdfast.lang.grammar import parse_duration, parse_expression, parse_levels, parser
from holdfast.lang.literal import QUERY_WORDS, RESERVED_WORDS, STARTING_WORDS
from holdfast.lang.ops import (
    Absolute,
    And,
    Arithmetic,
    Between,
    Case,
    Compare,
    DeclareRegion,
    DeclareTopic,
    Expect,
    Given,
    Let,
    Name,
    Negative,
    Not,
    Number,
    Or,
    Text,
    Truth,
    UseGazetteer,
)
from holdfast.model.qos import Delivery
from holdfast.model.space import Circle, Polygon, Rectangle
from holdfast.model.topic import Attribute, Topic

SECOND = 1_000_000
MINUTE = 60 * SECOND
GRAMMAR = files("holdfast.lang").joinpath("holdfast.lark").read_text(encoding="utf-8")


def above(name, value):
    return Compare(">", Name(name), Number(value))


def below(name, value):
    return Compare("<", Name(name), Number(value))


def only(text):
    (statement,) = parse(text).statements
    return statement


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("let high = 25 °C", Let("high", Number(25, "°C"))),
        (
            "topic T (value float °C, h float %, n int, ok bool, name text)",
            DeclareTopic(
                Topic(
                    "T",
                    (
                        Attribute("value", "float", "°C"),
                        Attribute("h", "float", "%"),
                        Attribute("n", "int"),
                        Attribute("ok", "bool"),
                        Attribute("name", "text"),
                    ),
                )
            ),
        ),
        ("topic Ping ()", DeclareTopic(Topic("Ping"))),
        (
            "region lab = rectangle (0, 0) (10, 5) in hall",
            DeclareRegion("lab", Rectangle((0, 0), (10, 5)), "hall"),
        ),
        ("region c = circle (1, -2, 3) 0.5 km", DeclareRegion("c", Circle((1, -2, 3), 500))),
        ("region c = circle (7) 500", DeclareRegion("c", Circle((7,), 500))),
        (
            "region p = polygon (0,0) (1,0) (1,1)",
            DeclareRegion("p", Polygon(((0, 0), (1, 0), (1, 1)))),
        ),
        ('region "room 12" in floor', DeclareRegion("room 12", None, "floor")),
        ('gazetteer "building.toml"', UseGazetteer("building.toml")),
        ("filter Hot on T where value > 40", DefineState("Hot", "T", above("value", 40), Truth(True))),
        (
            "state Warm on T [value > 25; value < 22] per source",
            DefineState("Warm", "T", above("value", 25), below("value", 22), (("source",),)),
        ),
        (
            "state Heat on T [value > 26; value < 23] late apply scope rooms within floors ordered 30 s",
            DefineState(
                "Heat",
                "T",
                above("value", 26),
                below("value", 23),
                scope=(("rooms",), ("floors",)),
                delivery=Delivery(30 * SECOND, "apply"),
            ),
        ),
        (
            "state W on T [value > 25] per room, sensor within floor timely",
            DefineState(
                "W", "T", above("value", 25), Not(above("value", 25)), (("room", "sensor"), ("floor",))
            ),
        ),
    ],
)
def test_a_statement_parses(text, statement):
    assert only(text) == statement


def test_a_case_parses():
    case = only(
        """
        case "a warm room cools down"
          given Temperature from "s1" at "kitchen" starting 5 min every 1 min:
            24, _, 21.9, (20, -55 %), "x", true
          expect Warm in "s1": ingress at 1 min, egress at 4 min
          expect Hot: nothing
        """
    )
    rows = (
        (Number(24),),
        (None,),
        (Number(21.9),),
        (Number(20), Number(-55, "%")),
        (Text("x"),),
        (Truth(True),),
    )
    assert case == Case(
        "a warm room cools down",
        (Given("Temperature", rows, MINUTE, 5 * MINUTE, "s1", "kitchen"),),
        (Expect("Warm", (("ingress", MINUTE), ("egress", 4 * MINUTE)), "s1"), Expect("Hot", ())),
    )


JOHN, FE05 = Compare("==", Name("Name"), Text("John")), Text("FE05")
METHANE = (above("methane", 500), Or(below("methane", 500), below("temp", 20)))


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        (
            "warmness: [temperature > 25; temperature < 22]",
            DefineState("warmness", None, above("temperature", 25), below("temperature", 22)),
        ),
        (
            '[(Name == "John") && (Location == "FE05");(Name == "John") && (Location != "FE05")]',
            DefineState(
                "state_1",
                None,
                And(JOHN, Compare("==", Name("Location"), FE05)),
                And(JOHN, Compare("!=", Name("Location"), FE05)),
            ),
        ),
        ('[Name == "John"; true]', DefineState("state_1", None, JOHN, Truth(True))),
        (
            "s = {methane > 500, (methane < 500) || (temp < 20), U}",
            DefineState("s", None, *METHANE),
        ),
        (
            "s = {temp > T_h, temp ≤ T_p, {region : office_1}}",
            DefineState(
                "s",
                None,
                Compare(">", Name("temp"), Name("T_h")),
                Compare("<=", Name("temp"), Name("T_p")),
                scope=(("office_1",),),
            ),
        ),
        ("s_1 = methane > 500", DefineState("s_1", None, METHANE[0], Truth(True))),
        ("s_2 = (methane < 500) || (temp < 20)", DefineState("s_2", None, METHANE[1], Truth(True))),
        (
            "state R on Mine {methane > 500, (methane < 500) || (temp < 20), U}",
            DefineState("R", "Mine", *METHANE),
        ),
    ],
)
def test_the_papers_notations_parse_as_printed(text, statement):
    assert only(text) == statement


@pytest.mark.parametrize("scope", ["{region : a, region : b}", "{region : a, b}"])
def test_several_regions_can_be_written_in_two_forms(scope):
    assert only(f"s = {{a > 1, a < 1, {scope}}}").scope == (("a", "b"),)


def test_anonymous_conditions_are_numbered_among_themselves():
    app = parse("[a > 1; a < 1]  named: [a > 1; a < 1]  [a > 2]")
    assert [s.name for s in app.statements] == ["state_1", "named", "state_2"]


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("a || b && !c", Or(Name("a"), And(Name("b"), Not(Name("c"))))),
        ("a or b and not c", Or(Name("a"), And(Name("b"), Not(Name("c"))))),
        ("!a > 1", Not(above("a", 1))),
        ("20 < a < 25", And(Compare("<", Number(20), Name("a")), below("a", 25))),
        ("a in [1, 2.5]", Between(Name("a"), Number(1), Number(2.5))),
        (
            "a - 1 - 2 * b",
            Arithmetic(
                "-",
                Arithmetic("-", Name("a"), Number(1)),
                Arithmetic("*", Number(2), Name("b")),
            ),
        ),
        ("-a", Negative(Name("a"))),
        ("-5 °C", Number(-5, "°C")),
        ("-(5)", Negative(Number(5))),
        ("abs(a)", Absolute(Name("a"))),
        ("|a - |b| |", Absolute(Arithmetic("-", Name("a"), Absolute(Name("b"))))),
        ("||a| - b|", Absolute(Arithmetic("-", Absolute(Name("a")), Name("b")))),
        ("a ≥ 1", Compare(">=", Name("a"), Number(1))),
        ("a ≠ 1", Compare("!=", Name("a"), Number(1))),
        ("5 m/s", Number(5, "m/s")),
        ("5 m/speed", Arithmetic("/", Number(5, "m"), Name("speed"))),
        ("5kmh", Number(5, "kmh")),
        ("1e3", Number(1000.0)),
        (".5", Number(0.5)),
        ("state", Name("state")),
        (r'"a\"\\\n\t\u00e9\ud83d\ude00"', Text('a"\\\n\té😀')),
    ],
)
def test_an_expression_parses(text, expression):
    assert parse_expression(text) == expression


def test_integers_and_floats_keep_their_types():
    assert isinstance(parse_expression("5").value, int)
    assert isinstance(parse_expression("5.0").value, float)


def test_a_unit_must_stand_on_the_line_of_its_number():
    first, second = parse("s_1 = methane > 500\ns = {methane > 1, methane < 1, U}").statements
    assert first.enter == above("methane", 500)
    assert second.name == "s"


def test_line_breaks_and_comments_are_ignored():
    text = "# all\nstate\n Warm # name\n on T [value\n> 25;\n\n value < 22]\r\n per source # end"
    assert only(text) == only("state Warm on T [value > 25; value < 22] per source")


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("30 s", 30 * SECOND),
        ("500 ms", SECOND // 2),
        ("1.5 h", 90 * MINUTE),
        ("1 d", 1440 * MINUTE),
        ("0 s", 0),
    ],
)
def test_a_duration_is_whole_microseconds(text, length):
    assert parse_duration(text) == length


def test_levels_are_nested_innermost_first():
    assert parse_levels('a, "b c" within d') == (("a", "b c"), ("d",))


def test_positions_point_at_the_expression():
    statement = only("state Warm on T\n  [value > 25; value + 1 < 22]")
    assert (statement.at.line, statement.at.column, statement.at.width) == (1, 7, 4)
    assert (statement.exit.at.line, statement.exit.at.column, statement.exit.at.width) == (2, 16, 14)


def test_a_deeply_nested_expression_is_refused_and_a_long_flat_one_is_not():
    parse_expression(" || ".join(["a"] * 190))
    with pytest.raises(DefinitionError, match="nested more than"):
        parse_expression("(" * 5000 + "a" + ")" * 5000)


def test_a_comparison_chain_counts_as_deep_as_its_conjunction():
    op = parse_expression(" < ".join(["a"] * 199))
    assert parse_expression(show(op)) == op
    with pytest.raises(DefinitionError, match="nested more than"):
        parse_expression(" < ".join(["a"] * 500))


@pytest.mark.parametrize(
    "text", ["state W on T [{}]", "state W on T enter {}", "state W\n  A = T\n  enter {}"]
)
def test_an_entrance_of_maximal_depth_can_be_negated_for_the_exit(text):
    for depth in (198, 199, 200, 201):
        try:
            app = parse(text.format("!" * depth + "(a > 1)"))
        except DefinitionError as error:
            assert "nested more than" in error.message  # noqa: PT017
            continue
        assert parse(show(app)) == app


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("1e999999999", "too large"),
        ("1e-999999999", "too small"),
        ("1." + "3" * 5_000, "too many digits"),
        ("9" * 400, "too long"),
        ("9" * 5_000, "too large"),
    ],
    ids=lambda text: text[:12],
)
def test_an_absurdly_long_duration_is_refused_at_once(number, message):
    with pytest.raises(DefinitionError, match=message):
        parse_duration(f"{number} s")


def test_zero_with_a_huge_exponent_is_a_zero_duration():
    assert parse_duration("0e999999999 s") == 0


@pytest.mark.parametrize("length", ["9" * 400, "-" + "9" * 400, "1e308 km", "9" * 320 + " mm"])
def test_a_coordinate_is_a_float(length):
    for text in (f"region r = circle (0, {length}) 5", f"correlate C within 1 s, {length} a > 1 b > 1"):
        with pytest.raises(DefinitionError, match="the number is too large"):
            parse(text)


@pytest.mark.parametrize("before", ["x: [a > 1; a < 1] scope hall", "state S on T\n  enter v > 1 tick 3 s"])
@pytest.mark.parametrize("name", sorted(STARTING_WORDS))
def test_a_word_that_can_continue_a_statement_cannot_name_the_next_one(name, before):
    with pytest.raises(DefinitionError):
        parse(f"{before}\n{name}: [a > 1; a < 1]")
    with pytest.raises(DefinitionError):
        parse(f"{name} = {{a > 1, a < 1, U}}\n{before}")


WORDS = re.findall(r"[a-z]{2,}", " ".join(re.findall(r"^_?[A-Z]+\.2: /(.*)/", GRAMMAR, re.MULTILINE)))


@pytest.mark.parametrize("word", sorted({*WORDS} - RESERVED_WORDS))
def test_every_word_of_the_grammar_can_name_a_statement_or_is_a_listed_exception(word):
    """A new word of the grammar that goes on with a statement belongs into `STARTING_WORDS`."""
    if word not in STARTING_WORDS:
        for before in (
            "x: [a > 1] scope hall",
            "state S A = T enter v for 3 s",
            'case "c" given T: 3',
            "[a > 1]",
        ):
            app = parse(f"{before}\n{word}: [a > 1; a < 1]")
            assert parse(show(app)) == app
    if word not in QUERY_WORDS:
        for query in (
            "T",
            "avg T over 3 s",
            "T each road",
            "T at -3 s",
            "any of (T, U)",
            "T closest to here",
        ):
            app = parse(f"state S\n  A = {query}\n  {word} = {query}\n  enter {word}.value > 1")
            assert parse(show(app)) == app


def test_a_word_of_the_language_has_no_attributes():
    with pytest.raises(DefinitionError, match="'not' is a word of the language"):
        parse("state S\n  A = T\n  enter 1 == not.value")


def test_the_tables_of_the_parser_are_cached_and_rebuilt_if_damaged(tmp_path, monkeypatch):
    def read():
        return parser.__wrapped__().parse("topic T (v float)", start="file")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = read()
    (stored,) = (tmp_path / "holdfast" / "language").iterdir()
    whole, made = stored.read_bytes(), stored.stat().st_ino
    assert read() == first
    assert stored.stat().st_ino == made, "it was read, not made again"
    stored.write_bytes(whole[: len(whole) // 2])
    assert read() == first
    assert len(stored.read_bytes()) > len(whole) // 2
    stored.parent.chmod(0o777)
    stored.write_bytes(b"of somebody else")
    assert read() == first
    assert stored.read_bytes() == b"of somebody else", "where others may write, nothing is read or kept"
    stored.unlink()
    stored.parent.rmdir()
    stored.parent.write_text("no folder")
    assert read() == first
