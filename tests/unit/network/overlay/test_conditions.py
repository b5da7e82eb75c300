"""Definitions that travel: what goes with a subscription, and what others make of it."""

from __future__ import annotations

import pytest

from holdfast import Engine, Event, check, load, parse
from holdfast.errors import DefinitionError, Unsupported, UsageError
from holdfast.network.overlay.conditions import compile_condition
from holdfast.network.protocols.cbps.content import Constraint, Filter
from holdfast.network.protocols.cbps.event import advertisement_for, to_content, to_event
from holdfast.plan.compile import meanings
from support.overlays import definitions

APP = """
let high = 25
topic Temperature (value float)
topic Door (open bool)
region floor
region lab in floor
region hall in floor
state Warm on Temperature [value > high; value < 22] per source
state Open on Door [open; !open] scope lab, hall within floor
filter Hot on Temperature where value > 40
"""


def test_each_subscription_is_sent_with_its_dependencies_and_keeps_its_meaning():
    app = parse(APP)
    texts = definitions(app)
    assert list(texts) == ["Warm", "Open", "Hot"]
    for name, text in texts.items():
        (alone,) = check(parse(text)).conditions
        (there,) = (c for c in check(app).conditions if c.name == name)
        assert alone == there


HOUSE = """
[floors]
ground = {}
[rooms]
lab = { in = "ground", rectangle = [0, 0, 10, 5] }
"long hall" = { in = "ground", circle = [20, 5, 4] }
"""
IN_A_HOUSE = """
gazetteer "house.toml"
topic T (v float)
region yard = rectangle (100, 100) (200, 200)
state Each on T [v > 1; v < 0] scope rooms within floors
state Redundant on T [v > 1; v < 0] scope regions
levels Heat on T: low [v > 1; v < 0], high [v > 2; v < 1] scope rooms
state Room on T [v > 1; v < 0] scope rooms
state Both = at least 2 of Room scope floors
"""


def test_the_regions_of_a_gazetteer_are_sent_with_the_same_meaning(tmp_path):
    (tmp_path / "house.toml").write_text(HOUSE)
    (tmp_path / "app.hf").write_text(IN_A_HOUSE)
    app = load(tmp_path / "app.hf")
    places = [("lab", None), (None, (20.0, 6.0, 0.0)), (None, (150.0, 150.0, 0.0)), ("ground", None)]
    readings = [
        Event("T", at, f"s{at % 3}", {"v": float(v)}, at, *reversed(places[at % 4]))
        for at, v in enumerate([2, 3, 2, 0.5, -1, 5, 2, 2, 2, -1, -1, -1, 4, -2, 1.5])
    ]

    def emissions_of(app, name):
        engine = Engine(app)
        emitted = [n for event in readings for n in engine.push(event)]
        return [(n.event.time, n.scope, n.status) for n in emitted if n.subscription == name]

    texts = definitions(app)
    assert list(texts) == ["Each", "Redundant", "Heat", "Room", "Both"]
    for name, text in texts.items():
        assert "gazetteer" not in text
        compile_condition(text)
        assert emissions_of(parse(text), name) == emissions_of(app, name) != []


def test_a_region_with_sources_is_not_sent(tmp_path):
    (tmp_path / "house.toml").write_text('[rooms]\noffice = { sources = ["s1"] }\n')
    (tmp_path / "app.hf").write_text(
        'gazetteer "house.toml"\ntopic T (v float)\nstate S on T [v > 1; v < 0] scope rooms\n'
    )
    with pytest.raises(Unsupported, match="region 'office' of the gazetteer lists its sources"):
        definitions(load(tmp_path / "app.hf"))


WHOLE = """
let high = 25 °C
topic Temperature (value float °C)
topic Humidity (value float)
topic Door (open bool)
region lab = rectangle (0, 0) (4, 4)
collide max
state Warm
  A = avg Temperature over 1 min each location
  enter A.value > high
  exit  A.value < 22 °C
state Muggy
  W = Warm
  H = Humidity
  enter W.valid && W.status == ingress && H.value > 70
  exit  W.valid && W.status == egress
correlate Storm within 2 min, 500 m in region lab  Temperature > high  Humidity >= 70
filter Opened on Door where open
"""


def test_conditions_of_every_kind_are_sent_with_their_dependencies_and_keep_their_meaning():
    app = parse(WHOLE)
    texts, meant = definitions(app), meanings(check(app))
    assert {name: set(meanings(check(parse(text)))) for name, text in texts.items()} == {
        "Warm": {"Warm"},
        "Muggy": {"Warm", "Muggy"},
        "Storm": {"Storm"},
        "Opened": {"Opened"},
    }
    for name, text in texts.items():
        assert meanings(check(parse(text)))[name] == meant[name]
        assert compile_condition(text).name == name
    assert "Door" not in texts["Muggy"]


def test_the_inputs_of_a_condition():
    texts = definitions(parse(WHOLE))
    of_topic = {
        name: [[c.value for c in i.constraints] for i in compile_condition(texts[name]).inputs]
        for name in texts
    }
    assert of_topic == {
        "Warm": [["Temperature"]],
        "Muggy": [["Temperature"], ["Humidity"]],
        "Storm": [["Temperature"], ["Humidity"]],
        "Opened": [["Door"]],
    }
    named = 'topic T (v float)\ncorrelate C within 1 s  T.v of "b" > 1  T.v of "a" > 1'
    assert [[(c.name, c.value) for c in i.constraints] for i in compile_condition(named).inputs] == [
        [("topic", "T"), ("source", "a")],
        [("topic", "T"), ("source", "b")],
    ]


def test_the_short_form_of_the_paper_gets_a_topic():
    ((name, text),) = definitions(parse("[value > 25; value < 22]")).items()
    assert compile_condition(text).name == name


def test_a_file_is_not_sent():
    text = 'gazetteer "rooms.toml"\ntopic T (v float)\nstate S on T [v > 1; v < 0] scope lab\n'
    with pytest.raises(Unsupported, match="declare the regions"):
        compile_condition(text)
    with pytest.raises(DefinitionError, match=r"cannot read the gazetteer .*rooms\.toml"):
        definitions(parse(text))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (APP, UsageError),
        ("topic T (v float)", UsageError),
        ("state", DefinitionError),
        ("#" * 70_000, UsageError),
        ("topic T (v float)\nstate S on T [" + "(" * 5_000, UsageError),
    ],
)
def test_anything_but_one_condition_is_an_error(text, error):
    with pytest.raises(error):
        compile_condition(text)


# --- which scopes a publisher reaches ---

PER = "topic T (v float, room text, n int)\n{}state S on T [v > 1; v < 0] {}"
NESTED = "region floor\nregion lab in floor\n"


@pytest.mark.parametrize(
    ("regions", "scope", "pinned", "scopes"),
    [
        ("", "per source", {"source": "s1"}, {"s1"}),
        ("", "per source", {}, None),
        ("", "", {}, {""}),
        ("", "per room, n", {"room": "r", "n": 3}, {"r\x1f3"}),
        ("", "per room, n", {"room": "r"}, None),
        ("", "per source within room", {"source": "s1", "room": "r"}, {"r", "r\x1es1"}),
        (NESTED, "scope lab within floor", {"place": "lab"}, {"lab", "floor"}),
        (NESTED, "scope lab within floor", {"place": "floor"}, {"floor"}),
        (NESTED, "scope lab within floor", {"place": "elsewhere"}, None),
        (NESTED, "scope lab within floor", {"source": "s1"}, None),
        (NESTED, "per source scope lab", {"source": "s1", "place": "lab"}, {"lab", "lab\x1es1"}),
        (NESTED, "scope lab", {"place": "floor"}, set()),
    ],
)
def test_an_advertisement_covers_the_scopes_whose_keys_it_pins(regions, scope, pinned, scopes):
    text = PER.format(regions, scope)
    (checked,) = check(parse(text)).conditions
    found = compile_condition(text).reach(advertisement_for(checked.topic, **pinned))
    assert found == (None if scopes is None else frozenset(scopes))


def test_covered_scopes_equal_those_of_events():
    text = PER.format("", "per source within room")
    (checked,) = check(parse(text)).conditions
    event = Event("T", 1, "s1", {"v": 2.0, "room": "r", "n": 1}, 1)
    chain = compile_condition(text).chain(event)
    assert compile_condition(text).reach(
        advertisement_for(checked.topic, source="s1", room="r")
    ) == frozenset(chain)


# --- events as notifications ---

TOPIC = check(parse("topic T (v float, n int, k text, b bool)")).topics[0]


@pytest.mark.parametrize(
    "event",
    [
        Event("T", 5, "s", {"v": 1.5, "n": 2, "k": "x", "b": True}, 7, (1.0, 2.0), "lab"),
        Event("T", -5, "", {"v": None, "n": None, "k": None, "b": None}, -1),
        Event("T", 5, "s", {"v": float("inf"), "n": -(2**63), "k": "", "b": False}, 7, (0.0,)),
    ],
)
def test_an_event_survives_conversion_to_a_notification(event):
    assert to_event(TOPIC, to_content(event)) == event


def test_a_missing_number_is_omitted():
    event = Event("T", 5, "s", {"v": float("nan"), "n": 1, "k": None, "b": None}, 7)
    assert to_content(event) == {"topic": "T", "time": 5, "source": "s", "sequence": 7, "n": 1}


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("v", 3, 3.0),
        ("v", "3", None),
        ("v", True, None),
        ("n", 3.0, None),
        ("n", 2**70, None),
        ("k", 3, None),
        ("b", 1, None),
    ],
)
def test_a_value_of_another_type_is_missing(name, value, stored):
    event = to_event(TOPIC, {"topic": "T", "time": 1, "source": "s", "sequence": 1, name: value})
    assert event.attributes[name] == stored


@pytest.mark.parametrize(
    "content",
    [
        {"topic": "U", "time": 1, "source": "s"},
        {"topic": "T", "source": "s"},
        {"topic": "T", "time": "now", "source": "s"},
        {"topic": "T", "time": True, "source": "s"},
        {"topic": "T", "time": 2**70, "source": "s"},
        {"topic": "T", "time": 1, "source": 5},
        {"topic": "T", "time": 1, "source": "s", "sequence": "x"},
        {},
    ],
)
def test_notifications_of_other_topics_give_no_event(content):
    assert to_event(TOPIC, content) is None


def test_an_advertisement_of_a_topic_promises_its_fields_and_pins_some():
    promise = advertisement_for(TOPIC, source="s1")
    assert Constraint("source", "text", "=", "s1") in promise.constraints
    assert {c.name for c in promise.constraints if c.op == "any"} == {"time", "sequence", "v", "n", "k", "b"}
    assert isinstance(promise, Filter)
