"""Shapes, how they lie to one another, gazetteers, and nesting."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import UsageError
from holdfast.model.space import (
    Circle,
    Gazetteer,
    PartialOverlap,
    Polygon,
    Rectangle,
    Region,
    circle,
    contains,
    dimensions,
    inside,
    load_gazetteer,
    nest,
    polygon,
    rectangle,
    relation,
)
from support.naive_space import MARGIN, depth, witnesses

MIRROR = {"inside": "contains", "contains": "inside"}


def box(*numbers):
    half = len(numbers) // 2
    return Rectangle(tuple(map(float, numbers[:half])), tuple(map(float, numbers[half:])))


def ball(*numbers):
    return Circle(tuple(map(float, numbers[:-1])), float(numbers[-1]))


def poly(*corners):
    return Polygon(tuple((float(x), float(y)) for x, y in corners))


SQUARE = box(0, 0, 10, 10)
TRIANGLE = poly((0, 0), (10, 0), (0, 10))
ELL = poly((0, 0), (10, 0), (10, 2), (2, 2), (2, 10), (0, 10))


# --- points ---


@pytest.mark.parametrize(
    ("shape", "point", "expected"),
    [
        (SQUARE, (0, 0), True),
        (SQUARE, (10, 5), True),
        (SQUARE, (10.001, 5), False),
        (SQUARE, (5,), False),  # too few coordinates
        (SQUARE, (5, 5, 999), True),  # one too many
        (SQUARE, (math.nan, 5), False),
        (SQUARE, (math.inf, 5), False),
        (SQUARE, None, False),
        (box(2, 4), (2,), True),
        (box(2, 4), (4.5, 3), False),
        (box(0, 0, 0, 1, 1, 1), (1, 1, 1), True),
        (box(0, 0, 0, 1, 1, 1), (1, 1, 1.1), False),
        (ball(0, 0, 5), (3, 4), True),  # on the rim
        (ball(0, 0, 5), (3, 4.001), False),
        (ball(0, 0, 5), (3, 4, 100), True),
        (ball(5, 2), (7,), True),
        (ball(0, 0, 0, 3), (1, 2, 2), True),
        (ball(0, 0, 0, 3), (2, 2, 2), False),
        (ball(0, 0, 5), (math.nan, 0), False),
        (ball(0, 0, 5), (1e200, 1.2e154), False),  # too far to square
        (TRIANGLE, (5, 5), True),
        (TRIANGLE, (5.001, 5), False),
        (TRIANGLE, (0, 0), True),
        (TRIANGLE, (math.nan, 1), False),
        (TRIANGLE, (math.inf, 1), False),
        (ELL, (1, 9), True),
        (ELL, (5, 5), False),
        (ELL, (2, 2), True),
    ],
)
def test_shapes_are_closed_and_ignore_further_coordinates(shape, point, expected):
    assert contains(shape, point) is expected


small = st.integers(0, 6)


@st.composite
def boxes(draw, axes=None):
    axes = axes or draw(st.integers(1, 3))
    sides = [sorted(draw(st.lists(small, min_size=2, max_size=2, unique=True))) for _ in range(axes)]
    return box(*(lo for lo, _ in sides), *(hi for _, hi in sides))


@st.composite
def balls(draw, axes=None):
    axes = axes or draw(st.integers(1, 3))
    return ball(*(draw(small) for _ in range(axes)), draw(st.sampled_from([0.5, 1, 2, 2.5, 3])))


@st.composite
def polygons(draw):
    corners = draw(st.lists(st.tuples(small, small), min_size=3, max_size=6, unique=True))
    try:
        return polygon(tuple((float(x), float(y)) for x, y in corners))
    except ValueError:
        return TRIANGLE if draw(st.booleans()) else poly((1, 1), (3, 1), (3, 3), (2, 2))


shapes = boxes() | balls() | polygons()
points = st.lists(st.integers(-4, 32).map(lambda n: n / 4 + 0.0625), min_size=3, max_size=3)


@given(shapes, st.lists(points, min_size=1, max_size=20))
def test_a_point_clearly_inside_is_inside_and_one_clearly_outside_is_not(shape, at):
    found = inside(shape, [np.array(axis) for axis in zip(*at, strict=True)])
    for point, contained in zip(at, found.tolist(), strict=True):
        assert contained == contains(shape, point)
        if abs(depth(shape, point)) > MARGIN:
            assert contained == (depth(shape, point) > 0)


# --- how shapes lie to one another ---

RELATIONS = [
    # intervals
    (box(0, 4), box(4, 8), "disjoint"),
    (box(0, 4), box(5, 8), "disjoint"),
    (box(0, 4), box(0, 4), "equal"),
    (box(1, 4), box(0, 4), "inside"),
    (box(0, 4), box(3, 8), "overlaps"),
    (ball(2, 2), box(4, 8), "disjoint"),
    (ball(2, 1), box(0, 4), "inside"),
    (ball(4, 2), box(0, 4), "overlaps"),
    # rectangles
    (SQUARE, box(10, 0, 20, 10), "disjoint"),
    (SQUARE, box(10, 10, 20, 20), "disjoint"),  # touch in a corner
    (SQUARE, box(0, 0, 10, 10), "equal"),
    (box(0, 0, 5, 10), SQUARE, "inside"),
    (box(2, 2, 3, 3), SQUARE, "inside"),
    (SQUARE, box(5, 5, 20, 20), "overlaps"),
    (SQUARE, box(-5, 4, 15, 6), "overlaps"),  # a cross: no corner of one in the other
    # boxes
    (box(0, 0, 0, 9, 9, 3), box(0, 0, 3, 9, 9, 6), "disjoint"),  # one floor above the other
    (box(1, 1, 1, 2, 2, 2), box(0, 0, 0, 9, 9, 3), "inside"),
    (box(0, 0, 2, 9, 9, 4), box(0, 0, 0, 9, 9, 3), "overlaps"),
    # discs and balls
    (ball(0, 0, 1), ball(2, 0, 1), "disjoint"),
    (ball(0, 0, 1), ball(0, 0, 1), "equal"),
    (ball(1, 0, 1), ball(0, 0, 2), "inside"),  # touching from within
    (ball(1.1, 0, 1), ball(0, 0, 2), "overlaps"),
    (ball(0, 0, 0, 1), ball(0, 0, 2, 1), "disjoint"),
    (ball(0, 0, 1, 1), ball(0, 0, 0, 2), "inside"),
    # a disc and a rectangle
    (ball(-2, 5, 2), SQUARE, "disjoint"),
    (ball(13, 14, 5), SQUARE, "disjoint"),  # touches the corner
    (ball(13, 14, 5.1), SQUARE, "overlaps"),
    (ball(5, 5, 5), SQUARE, "inside"),
    (SQUARE, ball(5, 5, 7.08), "inside"),
    (SQUARE, ball(5, 5, 7.07), "overlaps"),
    (ball(0, 0, 0, 1), box(1, 0, 0, 2, 1, 1), "disjoint"),
    (box(-1, -1, -1, 1, 1, 1), ball(0, 0, 0, 1.74), "inside"),
    # polygons
    (TRIANGLE, poly((10, 0), (0, 10), (10, 10)), "disjoint"),  # share a side
    (TRIANGLE, poly((0, 10), (0, 0), (10, 0)), "equal"),  # the same, starting elsewhere
    (poly((0, 0), (0, 10), (10, 0)), TRIANGLE, "equal"),  # the other way round
    (poly((1, 1), (3, 1), (1, 3)), TRIANGLE, "inside"),
    (TRIANGLE, poly((4, 4), (10, 4), (4, 10)), "overlaps"),
    (ELL, poly((3, 3), (9, 3), (9, 9)), "disjoint"),  # in the corner of the L
    # a polygon and a rectangle
    (TRIANGLE, SQUARE, "inside"),
    (poly((0, 0), (10, 0), (10, 10), (0, 10)), SQUARE, "equal"),
    (box(1, 1, 2, 2), TRIANGLE, "inside"),
    (box(5, 5, 9, 9), TRIANGLE, "disjoint"),  # touches the long side
    (box(4, 4, 9, 9), TRIANGLE, "overlaps"),
    (box(3, 3, 9, 9), ELL, "disjoint"),
    (box(2, 2, 9, 9), ELL, "disjoint"),
    (box(0, 0, 2, 9), ELL, "inside"),
    # a disc and a polygon
    (ball(2, 2, 1), TRIANGLE, "inside"),
    (ball(9, 9, 1), TRIANGLE, "disjoint"),
    (ball(3, 3, 4), TRIANGLE, "overlaps"),
    (TRIANGLE, ball(5, 5, 7.08), "inside"),
    (ball(5, 5, 3), ELL, "disjoint"),  # touches both inner sides
    (ball(5, 5, 3.1), ELL, "overlaps"),
    (ball(1, 1, 1), ELL, "inside"),
    # different dimensions: the shape of fewer stands for all heights
    (box(0, 0, 0, 10, 10, 3), SQUARE, "inside"),
    (box(0, 0, 0, 11, 10, 3), SQUARE, "overlaps"),
    (box(10, 0, 0, 11, 10, 3), SQUARE, "disjoint"),
    (ball(5, 5, 50, 5), SQUARE, "inside"),
    (ball(5, 5, 50, 6), SQUARE, "overlaps"),
    (box(1, 1, 0, 2, 2, 9), TRIANGLE, "inside"),
    (ball(2, 2, 0, 1), TRIANGLE, "inside"),
    (TRIANGLE, box(0, 10), "inside"),
    (TRIANGLE, box(0, 9), "overlaps"),
    (TRIANGLE, box(10, 12), "disjoint"),
    (SQUARE, box(0, 10), "inside"),
    (SQUARE, box(-5, 20), "inside"),
    (ball(5, 5, 2), ball(5, 2), "inside"),
]


@pytest.mark.parametrize(("a", "b", "expected"), RELATIONS)
def test_relations_of_two_shapes_are_as_listed(a, b, expected):
    assert relation(a, b) == expected
    assert relation(b, a) == MIRROR.get(expected, expected)


def test_a_circle_on_a_line_can_equal_an_interval():
    assert relation(ball(5, 5), box(0, 10)) == "equal"


@settings(max_examples=60)
@given(shapes, shapes)
def test_the_relation_agrees_with_points(a, b):
    how = relation(a, b)
    assert relation(b, a) == MIRROR.get(how, how)
    both, only_a, only_b = witnesses(a, b)
    assert not (how == "disjoint" and both)
    assert not (how in ("inside", "equal") and only_a)
    assert not (how in ("contains", "equal") and only_b)


@given(
    st.integers(1, 2).flatmap(lambda axes: st.tuples(boxes(axes), boxes(axes)))
    | st.tuples(boxes(1), boxes(2))
)
def test_rectangles_relate_as_their_cells_do(pair):
    """Their corners are whole numbers, so that the cells decide."""
    both, only_a, only_b = witnesses(*pair)
    expected = (
        "disjoint" if not both
        else "overlaps" if only_a and only_b
        else "contains" if only_a
        else "inside" if only_b
        else "equal"
    )  # fmt: skip
    assert relation(*pair) == expected


@given(shapes)
def test_a_shape_equals_itself(shape):
    assert relation(shape, shape) == "equal"
    assert 1 <= dimensions(shape) <= 3


# --- checked shapes ---


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rectangle((0,), (1, 2)), "its low and its high corner"),
        (lambda: rectangle((), ()), "one to three coordinates"),
        (lambda: rectangle((0,) * 4, (1,) * 4), "one to three coordinates"),
        (lambda: rectangle((0, 5), (1, 4)), "must not be above"),
        (lambda: rectangle((math.nan,), (1,)), "must not be above"),
        (lambda: rectangle((0,), (math.inf,)), "rectangle"),
        (lambda: circle((), 1), "a centre of one to three"),
        (lambda: circle((0,) * 4, 1), "a centre of one to three"),
        (lambda: circle((math.nan, 0), 1), "centre"),
        (lambda: circle((0, 0), 0), "radius must be above zero, not 0"),
        (lambda: circle((0, 0), -1), "not -1"),
        (lambda: circle((0, 0), math.inf), "not inf"),
        (lambda: circle((0, 0), math.nan), "not nan"),
        (lambda: polygon([(0, 0), (1, 1)]), "three or more corners"),
        (lambda: polygon([(0, 0, 0), (1, 1, 1), (2, 0, 0)]), "two coordinates each"),
        (lambda: polygon([(0, 0), (1, 1), (0, 1), (1, 0)]), "not a simple polygon"),
        (lambda: polygon([(0, 0), (1, 1), (2, 2)]), "not a simple polygon"),
    ],
)
def test_an_invalid_shape_is_refused_with_the_missing_part(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_flat_region_may_lie_on_the_boundary_of_the_one_around_it():
    Gazetteer((Region("lab", SQUARE), Region("door", box(0, 2, 0, 3), "lab")))


def test_a_polygon_with_a_corner_that_is_not_a_number_is_refused():
    with pytest.raises(ValueError, match="polygon"):
        polygon([(0.0, 0.0), (1.0, math.nan), (2.0, 2.0)])


def test_valid_shapes_are_accepted():
    assert rectangle((0, 0), (1, 0)) == Rectangle((0, 0), (1, 0))  # flat, but a rectangle
    assert circle((1,), 2) == Circle((1,), 2)
    assert polygon(iter([(0, 0), (1, 0), (0, 1)])) == Polygon(((0, 0), (1, 0), (0, 1)))


# --- gazetteers ---

TOML = """
[building]
main = { rectangle = [0, 0, 20, 10] }

[floors]
f1 = { in = "main" }
"floor two" = { in = "main", sources = ["s9"] }

[rooms]
lab = { in = "f1", rectangle = [0, 0, 10, 5] }
round = { in = "f1", circle = [15, 5, 2] }
corner = { in = "floor two", polygon = [[0, 5], [5, 10], [0, 10]], sources = ["s1", "s2"] }
"""
REGIONS = (
    Region("main", box(0, 0, 20, 10), None, "building"),
    Region("f1", None, "main", "floors"),
    Region("floor two", None, "main", "floors", ("s9",)),
    Region("lab", box(0, 0, 10, 5), "f1", "rooms"),
    Region("round", ball(15, 5, 2), "f1", "rooms"),
    Region("corner", poly((0, 5), (5, 10), (0, 10)), "floor two", "rooms", ("s1", "s2")),
)


@pytest.fixture
def write_file(tmp_path):
    def write(text, name="g.toml"):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_gazetteer_file_names_regions_by_level(write_file):
    import tomllib

    found = load_gazetteer(write_file(TOML))
    assert found.regions == REGIONS
    assert load_gazetteer(write_file(json.dumps(tomllib.loads(TOML)), "g.json")) == found
    assert list(found.levels) == ["building", "floors", "rooms"]
    assert found.regions_named("rooms") == REGIONS[3:]
    assert found.regions_named("lab") == (REGIONS[3],)
    assert found.regions_named("attic") is None
    assert [r.name for r in found.ancestors("corner")] == ["floor two", "main"]
    assert found.ancestors("main") == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[r]\nlab = { in = "hal" }\nhall = {}',
            "region 'lab' is in 'hal', which is not declared. Did you mean 'hall'?",
        ),
        ('[r]\nlab = { in = "zzz" }', "region 'lab' is in 'zzz', which is not declared."),
        ('[r]\na = { in = "a" }', "region 'a' is declared to be inside itself"),
        (
            '[r]\na = { in = "b" }\nb = { in = "c" }\nc = { in = "a" }',
            "region 'a' is declared to be inside itself",
        ),
        (
            "[r]\na = { circle = [0, 0, 1], rectangle = [0, 1] }",
            "region 'a' has two shapes: rectangle and circle",
        ),
        ("[r]\na = {}\n[q]\na = {}", "region 'a' is declared twice"),
        ("[r]\nr = {}", "'r' names both a region and a level of the gazetteer"),
        ("[r]\na = {}\n[q]\nr = {}", "'r' names both a region and a level of the gazetteer"),
        (
            "[r]\na = { rectangel = [0, 1] }",
            "region 'a' has an unknown entry 'rectangel'. Did you mean 'rectangle'?",
        ),
        ("[r]\na = { zzz = 1 }", "An entry may have in, rectangle, circle, polygon, sources."),
        ("[r]\na = { rectangle = [0, 0, 10] }", "region 'a': a rectangle needs its low and its high corner"),
        (
            "[r]\na = { rectangle = [5, 0, 1, 1] }",
            "region 'a': a rectangle's low corner must not be above its high one",
        ),
        ('[r]\na = { rectangle = ["x", 0, 1, 1] }', "region 'a': could not convert string to float: 'x'"),
        ("[r]\na = { circle = [0, 0, -1] }", "region 'a': a circle's radius must be above zero, not -1"),
        ("[r]\na = { circle = [1] }", "region 'a': a circle needs a centre"),
        ("[r]\na = { polygon = [[0, 0], [1, 1]] }", "region 'a': a polygon needs three or more corners"),
        (
            "[r]\na = { polygon = [[0, 0], [1, 1], [0, 1], [1, 0]] }",
            "region 'a': not a simple polygon: Self-intersection",
        ),
        ("[r]\na = { polygon = 3 }", "region 'a': "),
        ("[r]\na = { sources = 3 }", "region 'a': "),
        ("[r]\na = 3", "region 'a' must be a table such as { in = \"floor-1\" }"),
        ("r = 3", "is not a gazetteer: expected a table for each level, such as [rooms]"),
        ("[r\n", "is not a gazetteer: "),
        (
            "[r]\na = { rectangle = [0, 1] }\nb = { in = 'a', rectangle = [5, 6] }",
            "region 'b' is declared to be in 'a', but its shape is not inside that shape",
        ),
        (
            "[r]\na = { rectangle = [0, 1] }\nb = { in = 'a' }\nc = { in = 'b', rectangle = [0, 2] }",
            "region 'c' is declared to be in 'a', but its shape is not inside that shape",
        ),
    ],
)
def test_errors_of_a_gazetteer_name_the_file(write_file, text, message):
    path = write_file(text)
    with pytest.raises(UsageError) as error:
        load_gazetteer(path)
    assert str(error.value).startswith(str(path))
    assert message in str(error.value)


@pytest.mark.parametrize("text", ["[1]", '{"r": 3}', '{"r": {"a": {}}', ""])
def test_json_that_is_no_gazetteer_is_refused(write_file, text):
    with pytest.raises(UsageError, match="is not a gazetteer"):
        load_gazetteer(write_file(text, "g.json"))


def test_an_unreadable_gazetteer_is_refused(tmp_path):
    with pytest.raises(UsageError, match=r"cannot read the gazetteer .*none.toml: No such file"):
        load_gazetteer(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="cannot read the gazetteer"):
        load_gazetteer(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not a gazetteer"):
        load_gazetteer(tmp_path / "bytes.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("[r]\na = { in = 3 }", "region 'a'", id="a number as parent: AttributeError"),
        pytest.param('[r]\na = { in = ["b"] }', "region 'a'", id="a list as parent: TypeError"),
        pytest.param(
            '[r]\na = { sources = "s1" }', "sources", id="one text as sources: read letter by letter"
        ),
        pytest.param(
            '[r]\na = { rectangle = "0123" }', "rectangle", id="text as numbers: read digit by digit"
        ),
        pytest.param("[r]\na = { circle = [] }", "a circle needs", id="no numbers: tuple index out of range"),
        pytest.param(
            '[r]\na = { in = "b" }\nb = { in = "zzz" }', "region 'b' is in 'zzz'", id="blames the child"
        ),
        pytest.param(
            '[r]\na = { in = "b" }\nb = { in = "c" }\nc = { in = "b" }',
            "region 'b' is",
            id="blames one outside",
        ),
    ],
)
def test_entries_of_wrong_types_are_named(write_file, text, message):
    with pytest.raises(UsageError) as error:
        load_gazetteer(write_file(text))
    assert message in str(error.value)


def test_two_json_regions_of_one_name_are_refused(write_file):
    with pytest.raises(UsageError, match="twice"):
        load_gazetteer(write_file('{"r": {"a": {"rectangle": [0, 1]}, "a": {}}}', "g.json"))


# --- nesting ---


def nested(*regions, gazetteer=None):
    """The parents that nesting finds, by name."""
    forest = nest(regions, gazetteer or Gazetteer(regions))
    return {r.name: regions[p].name if p >= 0 else None for r, p in zip(regions, forest.parents, strict=True)}


def test_regions_become_trees_independent_of_their_order():
    regions = [
        Region("room", box(0, 0, 2, 2)),
        Region("hall", box(0, 0, 8, 8)),
        Region("desk", box(0, 0, 1, 1)),
        Region("shed", box(20, 20, 30, 30)),
        Region("pot", ball(25, 25, 1)),
        Region("wing", box(0, 0, 4, 8)),
    ]
    expected = {"room": "wing", "hall": None, "desk": "room", "shed": None, "pot": "shed", "wing": "hall"}
    assert nested(*regions) == expected
    assert nested(*reversed(regions)) == expected
    forest = nest(regions, Gazetteer(tuple(regions)))
    assert forest.chains[2] == (2, 0, 5, 1)
    assert forest.depth == 4
    assert [regions[i].name for _, i in forest.innermost_first] == [
        "desk",
        "room",
        "pot",
        "wing",
        "hall",
        "shed",
    ]


def test_a_region_without_a_shape_contains_what_its_subregions_contain():
    """Whether those are scopes themselves or not."""
    house = Region("house")
    regions = (house, Region("floor", parent="house"), Region("lab", box(0, 0, 2, 2), "floor"))
    for scopes, found in [((house,), "house"), (regions[:2], "floor"), ((house, regions[2]), "lab")]:
        forest = nest(scopes, Gazetteer(regions))
        assert scopes[forest.locate(None, "s", (1.0, 1.0))].name == found
        assert forest.locate(None, "s", (5.0, 1.0)) == -1


def test_an_error_about_a_partial_overlap_names_both_regions():
    regions = (Region("a", box(0, 5)), Region("b", box(9, 12)), Region("c", box(4, 8)))
    with pytest.raises(PartialOverlap, match="the scopes 'a' and 'c' overlap in part"):
        nest(regions, Gazetteer(regions))
    sets = (Region("a", sources=("s1", "s2")), Region("b", sources=("s2", "s3")))
    with pytest.raises(PartialOverlap, match="'a' and 'b'"):
        nest(sets, Gazetteer(sets))


def test_contradicting_shapes_and_sources_are_a_partial_overlap():
    regions = (Region("a", box(0, 5), sources=("s1", "s2")), Region("b", box(0, 9), sources=("s1",)))
    with pytest.raises(PartialOverlap):
        nest(regions, Gazetteer(regions))


def test_a_shared_boundary_belongs_to_the_first_region():
    regions = (Region("right", box(5, 0, 9, 9)), Region("left", box(0, 0, 5, 9)))
    forest = nest(regions, Gazetteer(regions))
    assert forest.parents == (-1, -1)
    assert forest.locate(None, "s", (5.0, 1.0)) == 0
    assert forest.locate(None, "s", (4.9, 1.0)) == 1
    again = nest(regions[::-1], Gazetteer(regions))
    assert again.locate(None, "s", (5.0, 1.0)) == 0


def test_of_equal_regions_the_first_is_inside_the_next():
    regions = (Region("a", box(0, 5)), Region("b", box(0, 5)), Region("c", box(0, 5)))
    assert nested(*regions) == {"a": "b", "b": "c", "c": None}
    sets = (Region("a", sources=("s",)), Region("b", sources=("s",)))
    assert nested(*sets) == {"a": "b", "b": None}


def test_sets_of_sources_nest_like_shapes():
    regions = (
        Region("all", sources=("s1", "s2", "s3")),
        Region("pair", sources=("s1", "s2")),
        Region("one", sources=("s1",)),
        Region("else", sources=("s9",)),
    )
    assert nested(*regions) == {"all": None, "pair": "all", "one": "pair", "else": None}
    forest = nest(regions, Gazetteer(regions))
    assert [forest.locate(None, s, None) for s in ("s1", "s2", "s3", "s9", "s0")] == [2, 1, 0, 3, -1]


def test_declared_nesting_counts_without_any_shape():
    gazetteer = Gazetteer(REGIONS)
    by_name = gazetteer.by_name
    assert nested(by_name["corner"], by_name["main"], gazetteer=gazetteer) == {"corner": "main", "main": None}
    assert nested(*REGIONS) == {r.name: r.parent for r in REGIONS}


def test_a_region_that_is_no_scope_counts_as_the_scope_around_it():
    gazetteer = Gazetteer(REGIONS)
    forest = nest((gazetteer.by_name["main"], gazetteer.by_name["f1"]), gazetteer)
    found = {r.name: forest.locate(r.name, "x", None) for r in REGIONS}
    assert found == {"main": 0, "f1": 1, "floor two": 0, "lab": 1, "round": 1, "corner": 0}
    rooms = nest((gazetteer.by_name["lab"],), gazetteer)
    assert rooms.locate("f1", "x", None) == -1


def test_a_place_decides_before_a_source_and_a_source_before_coordinates():
    regions = (Region("a", box(0, 5)), Region("b", box(6, 9), sources=("s1",)), Region("c", sources=("s2",)))
    outside = Region("d", sources=("s3",))
    forest = nest(regions, Gazetteer((*regions, outside)))
    at_a = (1.0,)
    assert forest.locate(None, "s0", at_a) == 0
    assert forest.locate(None, "s1", at_a) == 1
    assert forest.locate("c", "s1", at_a) == 2
    assert forest.locate("nowhere", "s1", at_a) == 1  # an unknown place decides nothing
    assert forest.locate("nowhere", "s0", at_a) == 0
    assert forest.locate("d", "s1", at_a) == -1  # a known place outside every scope does
    assert forest.locate(None, "s3", at_a) == -1
    assert forest.locate(None, "s0", (20.0,)) == -1
    assert forest.locate(None, "s0", None) == -1


def test_a_source_listed_in_two_regions_is_in_the_inner_one():
    gazetteer = Gazetteer((Region("hall", sources=("s1", "s2")), Region("lab", None, "hall", None, ("s1",))))
    forest = nest(gazetteer.regions, gazetteer)
    assert [forest.locate(None, s, None) for s in ("s1", "s2")] == [1, 0]


def test_two_regions_around_a_third_must_nest_themselves():
    """c lies around b by shape, d by the sources of a, and neither is inside the other."""
    regions = (
        Region("a", None, "b", None, ("s1",)),
        Region("b", box(0, 1)),
        Region("c", box(0, 5)),
        Region("d", sources=("s1", "s2")),
    )
    with pytest.raises(PartialOverlap):
        nest(regions, Gazetteer(regions))
