"""Checking statements: names, topics, keys, scopes, cases, parameters."""

import pytest

from holdfast.definition.parse import parse
from holdfast.definition.show import show
from holdfast.errors import DefinitionError, UsageError
from holdfast.lang.ops import Compare, Name, Number, Truth
from holdfast.model.topic import Attribute, Topic

TOPIC = "topic Temperature (value float °C, humidity float %, n int, ok bool, name text)\n"


def wrong(text, base=None, **lets):
    with pytest.raises(DefinitionError) as caught:
        parse(text).check(base, **lets)
    return caught.value


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        (
            "filter F on Temperature where vlaue > 4",
            "topic 'Temperature' has no 'vlaue'; it has value, humidity",
            "Did you mean 'value'?",
        ),
        ("filter F on Temperatur where ok", "unknown topic 'Temperatur'", "Did you mean 'Temperature'?"),
        ("filter F on Temperature where time > 4", "cannot mention 'time'", None),
        ("filter F on Temperature where value", "expected a condition, but value is a number", "value > 0"),
        ("filter F on Temperature where value + 1", "value + 1 is a number", "Compare it"),
        ("filter F on Temperature where name", "name is a text", "=="),
        ('filter F on Temperature where name > "a"', "texts are compared with == and != only", None),
        ("filter F on Temperature where ok < true", "conditions are compared with == and != only", None),
        ("filter F on Temperature where name == 5", "a text cannot be compared with a number", "quotes"),
        (
            'filter F on Temperature where n == "5"',
            "a number cannot be compared with a text",
            "without quotes",
        ),
        ("filter F on Temperature where ok + 1 > 2", "expected a number, but ok is a condition", None),
        ('filter F on Temperature where name in ["a", "b"]', "expected a number", None),
        ("filter F on Temperature where n > 9223372036854775808", "does not fit in 64 bits", "decimal point"),
        (
            "let value = 3 filter F on Temperature where value > 3",
            "both a parameter and an attribute",
            "Rename",
        ),
        ("let a = b", "'b' is not a parameter that stands above", None),
        ("let a = 1 let a = 2", "parameter 'a' is declared twice; the first one is in line 2", "Rename"),
        ("topic Temperature ()", "topic 'Temperature' is declared twice; the first one is in line 1", None),
        ("region a region a", "region 'a' is declared twice", None),
        (
            "filter F on Temperature where ok state F on Temperature [ok]",
            "subscription 'F' is declared",
            None,
        ),
        ("topic A (time float)", "'time' is part of every event", "Leave it out"),
        ("topic A (a float, a int)", "attribute 'a' of topic 'A' is declared twice", None),
        ("topic A (a text m)", "is a text and cannot have a unit", None),
        ("state S on Temperature [ok] per rom", "has no 'rom'", None),
        ("state S on Temperature [ok] per n, n", "'per' names 'n' twice", None),
        ("state S on Temperature [ok] late apply", "'late apply' needs 'ordered'", "ordered 30 s"),
        ("state S on Temperature [ok] late correct 1 s", "'late correct' needs 'ordered'", "ordered 30 s"),
        (
            "state S on Temperature [ok] ordered 1 s late correct",
            "'late correct' needs how late a reading may be",
            "late correct 10 min",
        ),
        ("state S on Temperature [ok] ordered 1 s late drop 2 s", "'late drop' has no length", "late drop"),
        ("state S on Temperature [ok] ordered 1 s late corect 2 s", "unknown word 'corect'", "'correct'"),
        (
            "state S on Temperature [ok] per n ordered 1 s late correct 2 s unknown after 3 s",
            "which goes with guards ('for')",
            "Leave out",
        ),
        (
            "state S on Temperature [ok] per n ordered 1 s late correct 2 s state C = at least 2 of S",
            "'S' corrects what it has told ('late correct'), so nothing can build on it",
            "wait longer",
        ),
        (
            "state S on Temperature [ok] per n ordered 1 s late correct 2 s mute S while S",
            "so nothing can build on it",
            None,
        ),
        (
            "levels L on Temperature: a [ok; !ok] ordered 1 s late correct 2 s",
            "levels cannot be corrected",
            "late drop",
        ),
        (
            "correlate C within 1 s value > 1 n > 2 ordered 1 s late correct 2 s",
            "only states and filters of readings correct",
            "late drop",
        ),
        ("region lab state S on Temperature [ok] scope lap", "unknown region or level 'lap'", "'lab'"),
        ("region lab in hal region hall", "is in 'hal', which is not declared", "'hall'"),
        ("region a in b region b in a", "inside itself", None),
        (
            "region a = rectangle (0,0) (5,5) region b = rectangle (4,4) (9,9) "
            "state S on Temperature [ok] scope a, b",
            "the scopes 'a' and 'b' overlap in part",
            None,
        ),
        (
            "region a = rectangle (0,0) (9,9) in b region b = circle (0,0) 1",
            "declared to be in 'b', but its shape is not inside",
            None,
        ),
        (
            "region a region b state S on Temperature [ok] scope a within b",
            "'a' does not lie inside any of b",
            None,
        ),
        ("region a state S on Temperature [ok] scope a, a", "names region 'a' twice", None),
        ('gazetteer "nowhere.toml"', "cannot read the gazetteer", None),
        ('case "c" given Temperatur every 1 s: 5', "unknown topic", "'Temperature'"),
        ('case "c" given Temperature every 1 s: "x"', "'value' of topic 'Temperature' is float", None),
        ('case "c" given Temperature every 1 s: (1, 2, 3.5)', "'n' of topic 'Temperature' is int", None),
        ('case "c" given Temperature every 1 s: 5 m', "'value' is not measured in m", None),
        ('case "c" given Temperature every 1 s: (1,2,3,true,"x",6)', "a row has 6 values", None),
        ('case "c" expect Warm: nothing', "unknown subscription 'Warm'", None),
        ("[humidty > 5; ok]", "no topic has all of humidty, ok", "Name the topic"),
    ],
)
def test_errors_are_reported_at_their_place(text, message, hint):
    error = wrong(TOPIC + text)
    assert message in error.message
    assert hint is None or hint in (error.hint or "")
    assert error.place is not None
    assert error.text is not None


def test_an_unknown_attribute_is_shown_with_a_caret():
    assert str(wrong("topic T (value float)\nfilter F on T where vlaue > 4")) == (
        "definition:2:21: topic 'T' has no 'vlaue'; it has value\n"
        "    filter F on T where vlaue > 4\n"
        "                        ^^^^^\n"
        "  Did you mean 'value'?"
    )


def test_a_statement_without_a_topic_uses_the_one_that_fits():
    checked = parse("topic A (a float) topic B (b float) [b > 1; b < 1]").check()
    assert checked.conditions[0].topic.name == "B"


def test_a_statement_that_fits_two_topics_is_refused():
    assert "several topics have a: A, B" in wrong("topic A (a float) topic B (a float) [a > 1]").message


def test_a_definition_without_topics_derives_one_from_use():
    checked = parse(
        """
        warmness: [temperature > 25 °C; temperature < 22]
        [(Name == "John") && (Location == "FE05");(Name == "John") && (Location != "FE05")]
        a: [flag && p == q && q == "x" && source == "s1"; -m > k] per zone
        """
    ).check()
    assert checked.topics == (
        Topic(
            "Reading",
            (
                Attribute("temperature", "float", "°C"),
                Attribute("Name", "text"),
                Attribute("Location", "text"),
                Attribute("flag", "bool"),
                Attribute("p", "text"),
                Attribute("q", "text"),
                Attribute("m", "float"),
                Attribute("k", "float"),
                Attribute("zone", "text"),
            ),
        ),
    )


def test_a_type_that_use_does_not_determine_must_be_declared():
    error = wrong("[a == b; true]")
    assert "not clear from its use" in error.message
    assert error.place.column == 2


def test_parameters_are_inserted_and_folded():
    office = """
        let T_l = 20  let T_h = 26  let T_p = (T_l + T_h) / 2
        s = {temp > T_h, temp ≤ T_p, {region : office_1}}
    """
    (condition,) = parse(office).check().conditions
    assert condition.enter == Compare(">", Name("temp"), Number(26))
    assert condition.exit == Compare("<=", Name("temp"), Number(23))
    assert [region.name for region in condition.forest.regions] == ["office_1"]


def test_parameters_may_be_given_other_values():
    app = parse(
        TOPIC + "let high = 25 °C let low = high - 3 °C state W on Temperature [value > high; value < low]"
    )
    assert app.check(high=30).conditions[0].exit == Compare("<", Name("value"), Number(27))
    assert app.check(high="86 °F").conditions[0].enter == Compare(">", Name("value"), Number(30))
    with pytest.raises(UsageError, match=r"no parameter 'hihg'; it has high, low\. Did you mean 'high'"):
        app.check(hihg=30)
    with pytest.raises(UsageError, match="another kind"):
        app.check(high=True)
    with pytest.raises(UsageError, match="another dimension"):
        app.check(high="3 m")


def test_a_filter_is_momentary():
    (condition,) = parse("topic T (v float) filter F on T where v > 4").check().conditions
    assert condition.momentary
    assert condition.exit == Truth(True)


def test_regions_of_files_and_of_the_definition_form_one_gazetteer(tmp_path):
    (tmp_path / "b.toml").write_text(
        "[building]\nsdh = {}\n[floors]\nf1 = { in = 'sdh' }\n"
        "[rooms]\nr1 = { in = 'f1' }\nr2 = { in = 'f1' }\n"
    )
    text = (
        'gazetteer "b.toml" region desk in r1 topic T (v float) '
        "state A on T [v > 1] scope rooms within floors within building "
        "state B on T [v > 1] scope desk within rooms"
    )
    (tmp_path / "app.hf").write_text(text)
    first, second = parse(text, str(tmp_path / "app.hf")).check().conditions
    assert [r.name for r in first.forest.regions] == ["r1", "r2", "f1", "sdh"]
    assert first.forest.parents == (2, 2, 3, -1)
    assert second.forest.depth == 2
    assert parse(text).check(tmp_path).conditions == (first, second)


def test_rows_of_a_case_are_completed_and_converted():
    text = TOPIC + "filter F on Temperature where value > 99\n"
    text += 'case "c" given Temperature every 1 s: 77 °F, (_, 0.5, 3) expect F: nothing'
    (case,) = parse(text).check().cases
    assert case.given[0].rows == (
        (Number(25.0), None, None, None, None),
        (None, Number(0.5), Number(3), None, None),
    )


def test_a_topic_without_attributes_may_be_given():
    text = 'topic Ack ()\nfilter F on Ack where source == "s"\n'
    app = parse(text + 'case "c" given Ack from "s" every 1 s: (), () expect F: atomic at 0 s, atomic at 1 s')
    assert parse(show(app)) == app
    (case,) = app.check().cases
    assert case.given[0].rows == ((), ())


@pytest.mark.parametrize(
    ("cases", "message"),
    [
        ('case "c" given Temperature: 1', "expects nothing to be checked"),
        ('case "c" given Temperature: 1 expect F: nothing ' * 2, "case 'c' is declared twice"),
        ('case "c" given Temperature: 1 expect R in "kitchn": nothing', "Did you mean 'kitchen'?"),
    ],
)
def test_a_case_that_could_not_fail_is_refused(cases, message):
    text = TOPIC + "filter F on Temperature where value > 99 region kitchen\n"
    text += "state R on Temperature [value > 9; value < 5] scope kitchen\n"
    with pytest.raises(DefinitionError) as error:
        parse(text + cases).check()
    assert message in str(error.value)


def test_a_case_at_an_undeclared_region_causes_a_warning():
    text = TOPIC + "region kitchen state R on Temperature [value > 9 °C; value < 5 °C] scope kitchen\n"
    text += 'case "c" given Temperature at "kitchn": 1 expect R: nothing'
    (caution,) = parse(text).check().warnings
    assert "no region is named 'kitchn'" in str(caution)
    assert "Did you mean 'kitchen'?" in str(caution)


def test_an_error_in_a_built_definition_names_the_subscription():
    from holdfast.definition.app import App

    app = App()
    app.topic("T", value=float)
    app.filter("F", on="T", where="vlaue > 4")
    with pytest.raises(DefinitionError, match="in 'F': topic 'T' has no 'vlaue'"):
        app.check()


REGIONS = """topic T (value float)
region house = rectangle (0, 0) (20, 10)
region east = rectangle (10, 0) (20, 10)
region west = rectangle (0, 0) (10, 10) in house
region shed = circle (50, 50) 3
"""


def test_scope_regions_stands_for_the_innermost_regions():
    """Every region that contains no other, by declaration or by shape."""
    (condition,) = parse(REGIONS + "state Warm on T [value > 25] scope regions").check().conditions
    assert [region.name for region in condition.forest.regions] == ["east", "west", "shed"]
    text = REGIONS.replace("region shed", "region regions") + "state Warm on T [value > 25] scope regions"
    assert [region.name for region in parse(text).check().conditions[0].forest.regions] == ["regions"]
    nested = REGIONS.replace("region shed = circle (50, 50) 3\n", "")
    nested += "state Warm on T [value > 25] scope regions within house"
    assert parse(nested).check().conditions[0].forest.depth == 2


def test_scope_regions_without_any_region_is_refused():
    error = wrong("topic T (value float)\nstate Warm on T [value > 25] scope regions")
    assert error.message == "'regions' stands for every region, and there is none"
    assert "broker --regions" in error.hint


def test_partially_overlapping_regions_are_refused_for_redundant_sensors():
    text = REGIONS + "region odd = circle (10, 5) 3\nstate Warm on T [value > 25] scope regions"
    error = wrong(text)
    assert "'east'" in error.message
    assert "'odd'" in error.message
    assert error.place is not None
    assert error.place.line == 7
