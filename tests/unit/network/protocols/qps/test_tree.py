"""The tree of scopes, and areas that can be cut without losing a point.  [F28, F29]"""

import math
import random
from collections import Counter

import pytest

from holdfast.errors import UsageError
from holdfast.model.space import Circle, Polygon, Rectangle
from holdfast.network.protocols.qps.area import (
    NOTHING,
    box,
    centroid,
    contains_point,
    difference,
    intersection,
    of,
    size,
    union,
    union_of,
)
from holdfast.network.protocols.qps.deployment import QpsDeployment
from holdfast.network.protocols.qps.tree import ROOT, QuadScope, ScopeTree, elf

TREE = ScopeTree((0.0, 0.0), 256.0, 4)
REGION = box((64, 64), (128, 128))


def test_four_levels_have_85_brokers_and_64_leaves():
    scopes = list(TREE.scopes())
    assert len(scopes) == len(set(scopes)) == (4**4 - 1) // 3 == 85
    leaves = [scope for scope in scopes if TREE.is_leaf(scope)]
    assert len(leaves) == 64
    assert {size(TREE.cell(leaf)) for leaf in leaves} == {32.0**2}


def test_children_are_numbered_clockwise_from_the_least():
    assert [TREE.corners(child)[0] for child in TREE.children(ROOT)] == [
        (0, 0),
        (0, 128),
        (128, 128),
        (128, 0),
    ]
    assert TREE.children(QuadScope(4, 3, 3)) == ()


def test_a_scope_is_half_open_and_the_space_is_closed_above():
    assert TREE.leaf((32.0, 0.0)) == QuadScope(4, 1, 0)
    assert TREE.leaf((31.999, 0.0)) == QuadScope(4, 0, 0)
    assert TREE.leaf((256.0, 256.0)) == QuadScope(4, 7, 7)
    with pytest.raises(UsageError, match="outside of space"):
        TREE.leaf((256.1, 0.0))
    for point in [(128.0, 128.0), (96.0, 32.0), (0.0, 0.0), (255.5, 64.0)]:
        at_each_level = Counter(
            s.level for s in TREE.scopes() if contains_point(TREE.cell(s), TREE.inside(point))
        )
        assert at_each_level == {1: 1, 2: 1, 3: 1, 4: 1}


def test_the_address_of_a_broker_is_inside_its_scope_and_computable():
    for topic in ("Temperature", "Humidity"):
        for scope in TREE.scopes():
            assert contains_point(TREE.cell(scope), TREE.address(topic, scope))
            assert TREE.address(topic, scope) == ScopeTree((0.0, 0.0), 256.0, 4).address(topic, scope)
    assert TREE.address("Temperature", ROOT) != TREE.address("Humidity", ROOT)


def test_brokers_are_spread_over_their_scopes():
    for topic in ("Temperature", "Humidity", "t"):
        shares = [
            TREE.address(topic, QuadScope(4, c, r))[axis] % 32 / 32
            for c in range(8)
            for r in range(8)
            for axis in (0, 1)
        ]
        assert all(sum(low <= share < low + 0.5 for share in shares) > 30 for low in (0.0, 0.5))


def test_the_hash_is_the_elf_hash_of_object_files():
    assert elf("printf") == 0x077905A6
    assert elf("") == 0
    assert elf("a long name with more than seven letters") < 1 << 28


def test_three_brokers_can_serve_a_third_level_scope_and_the_nearest_is_taken():
    assert TREE.enclosing(REGION) == [ROOT, QuadScope(2, 0, 0), QuadScope(3, 1, 1)]
    assert len(TREE.enclosing(box((16, 16), (32, 32)))) == 4
    for scope in TREE.enclosing(REGION):
        assert TREE.nearest("Temperature", REGION, TREE.address("Temperature", scope)) == scope


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        (lambda: ScopeTree((0.0, 0.0), 256.0, 30), "30 levels; it has 1 to 10"),
        (lambda: ScopeTree((0.0, 0.0), 256.0, 0), "0 levels"),
        (lambda: ScopeTree((0.0, 0.0), -1.0, 4), "above 0"),
        (lambda: ScopeTree((0.0, math.nan), 1.0, 4), "square in the plane"),
    ],
)
def test_an_impossible_tree_is_refused(tree, why):
    with pytest.raises(UsageError, match=why):
        tree()


@pytest.mark.parametrize(
    ("shape", "why"),
    [
        (Rectangle((1.0, 1.0), (1.0, 5.0)), "is empty"),
        (Rectangle((200.0, 1.0), (300.0, 5.0)), "not all in space"),
        (Circle((5.0, 5.0), 1.0), "draw a polygon"),
        (Rectangle((1.0,), (2.0,)), "two coordinates"),
    ],
)
def test_an_impossible_region_is_refused(shape, why):
    deployment = QpsDeployment(tree=TREE, topics=("T",))
    with pytest.raises(UsageError, match=why):
        deployment.region(shape)


def test_parts_of_an_area_are_disjoint_and_cover_it():
    chance = random.Random(1)
    for _ in range(200):
        some = [_random(chance), _random(chance)]
        both, first, second = intersection(*some), difference(*some), difference(some[1], some[0])
        parts = [part for part in (both, first, second) if part]
        for _ in range(20):
            point = (float(chance.randint(0, 16)), float(chance.randint(0, 16)))
            in_any = any(contains_point(area, point) for area in some)
            assert sum(contains_point(part, point) for part in parts) == in_any
            assert contains_point(union(*some), point) == in_any


def _random(chance):
    low = (chance.randint(0, 15), chance.randint(0, 15))
    return box(low, (chance.randint(low[0] + 1, 16), chance.randint(low[1] + 1, 16)))


def test_an_area_has_one_canonical_form():
    whole = box((0, 0), (4, 4))
    quarters = [box((x, y), (x + 2, y + 2)) for x in (0, 2) for y in (0, 2)]
    assert union_of(reversed(quarters)) == union_of(quarters) == whole
    assert difference(whole, whole) == intersection(quarters[0], quarters[1]) == NOTHING
    holed = difference(whole, box((1, 1), (2, 2)))
    assert size(holed) == 15.0
    assert not contains_point(holed, (1.0, 1.0))
    assert contains_point(holed, (2.0, 2.0))


def test_centroids_are_weighted_by_area():
    assert centroid(REGION) == (96.0, 96.0)
    two = union(box((0, 0), (1, 1)), box((2, 0), (4, 1)))
    assert centroid(two)[0] == pytest.approx((0.5 + 2 * 3.0) / 3)
    assert centroid(of(Polygon(((0.0, 0.0), (3.0, 0.0), (0.0, 3.0))))) == pytest.approx((1.0, 1.0))
