"""Python builders make the operations that text makes."""

from datetime import timedelta

import pytest

from holdfast.definition.app import App, within
from holdfast.definition.parse import parse
from holdfast.definition.show import show
from holdfast.errors import UsageError
from holdfast.lang.expr import quantity
from holdfast.model.space import Rectangle

TEXT = """
topic Temperature (value float °C, humidity float, n int, name text, ok bool)
let high = 25
let limit = 77 °F
region lab = rectangle (0, 0) (10, 5) in hall
gazetteer "building.toml"
filter Hot on Temperature where value > 40
state Warm on Temperature [value > high; value < 22] per source
state Odd on Temperature [abs(value - 20) * 2 >= 1 / humidity && !(name == "x") || ok; n in [1, 3]]
  per n, name
state Deep on Temperature [-value < 3; !(-value < 3)] per name within n scope rooms within floors
state Late on Temperature [20 - value != 3 °F; x + y <= 2] ordered 30 s late apply
"""


def built():
    app = App()
    temp = app.topic("Temperature", value="float °C", humidity=float, n=int, name=str, ok=bool)
    high = app.let("high", 25)
    app.let("limit", quantity(77, "°F"))
    app.region("lab", Rectangle((0, 0), (10, 5)), parent="hall")
    app.gazetteer("building.toml")
    app.filter("Hot", on=temp, where=temp.value > 40)
    app.state("Warm", on="Temperature", enter=temp.value > high, exit="value < 22", per="source")
    app.state(
        "Odd",
        on=temp,
        enter=(abs(temp.value - 20) * 2 >= 1 / temp.humidity) & ~(temp["name"] == "x") | temp.ok,
        exit=temp.n.between(1, 3),
        per=("n", "name"),
    )
    app.state("Deep", on=temp, enter=-temp.value < 3, per=within("name", "n"), scope="rooms within floors")
    app.state(
        "Late",
        on=temp,
        enter=20 - temp.value != quantity(3, "°F"),
        exit=temp.x + temp.y <= 2,
        ordered=timedelta(seconds=30),
        late="apply",
    )
    return app


def test_builders_make_the_same_definition_as_text():
    assert built() == parse(TEXT)
    assert parse(show(built())) == built()


def test_levels_can_be_given_in_several_forms():
    def per(groups):
        app = App()
        app.state("S", on="T", enter="a > 1", per=groups)
        return app.statements[0].per

    assert per("a, b") == per(("a", "b")) == per([("a", "b")]) == (("a", "b"),)
    assert per("a within b") == per([("a",), ("b",)]) == per(within("a", "b")) == (("a",), ("b",))
    assert per(()) == ()


def test_converting_an_expression_to_a_truth_value_is_refused():
    temp = App().topic("T", value=float)
    with pytest.raises(UsageError, match=r"&.*\|.*~.*between"):
        bool(20 < temp.value < 25)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda app, t: t.vlaue, "topic 'T' has no 'vlaue'; it has value. Did you mean 'value'?"),
        (lambda app, t: quantity(3, "furlong"), "unknown unit 'furlong'"),
        (lambda app, t: t.value > object(), "cannot stand in a predicate"),
        (lambda app, t: t.value > float("inf"), "finite number"),
        (lambda app, t: app.topic("two words"), "cannot be the name of a topic"),
        (lambda app, t: app.let("per", 3), "cannot be the name of a parameter"),
        (lambda app, t: app.topic("U", a="double"), "is float, int, text or bool, not 'double'"),
        (lambda app, t: app.topic("U", a="float parsec"), "unknown unit 'parsec'"),
        (lambda app, t: app.state("S", on=t, enter="value >"), "ends too early"),
        (lambda app, t: app.state("S", on=t, enter="value > 1", ordered="-3 s"), "cannot be negative"),
        (lambda app, t: app.state("S", on=t, enter="value > 1", late="maybe"), "'drop' or 'apply'"),
    ],
)
def test_an_invalid_call_raises_an_error_that_explains_it(build, message):
    app = App()
    temp = app.topic("T", value=float)
    with pytest.raises(UsageError) as caught:
        build(app, temp)
    assert message in str(caught.value)


def test_a_built_definition_checks():
    app = App()
    temp = app.topic("T", value="float °C")
    high = app.let("high", quantity(77, "°F"))
    app.state("Warm", on=temp, enter=temp.value > high, per="source")
    (condition,) = app.check().conditions
    assert show(condition.enter) == "value > 25.0"
    assert show(condition.exit) == "value <= 25.0"
    assert show(app.check(high=50).conditions[0].enter) == "value > 10.0"
