"""Algorithms R and R', with the values that were worked out by hand.  [F39, F41]"""

import math

import pytest

from holdfast.network.protocols.qps.area import NOTHING, box, size, union
from holdfast.network.protocols.qps.resolve import ResolvedPart, ResolveInputs, resolve, withdraw
from holdfast.network.protocols.qps.tree import ROOT, QuadScope, ScopeTree

TREE = ScopeTree((0.0, 0.0), 256.0, 4)
REGION = box((64, 64), (128, 128))
FIRST = TREE.children(ROOT)[0]


def no_nodes(_):
    return []


def root(covered=NOTHING, advertised=no_nodes, leaves=None):
    return ResolveInputs(TREE, ROOT, (128.0, 128.0), covered, advertised, leaves)


@pytest.mark.parametrize(("epsilon", "onward"), [(1.5, 2.625), (1.2, 1.65), (1.0, 1.0)])
def test_every_subscription_is_registered_on_the_direct_path(epsilon, onward):
    (found,) = resolve(root(), (200.0, 200.0), REGION, epsilon)
    assert found[:2] == (ROOT, REGION)
    assert found.epsilon == pytest.approx(onward, abs=5e-4)


def test_a_detour_is_registered_only_as_far_as_epsilon_allows():
    q = (20.0, 200.0)
    ratio = (math.dist(q, (128, 128)) + math.dist((128, 128), (96, 96))) / math.dist(q, (96, 96))
    assert ratio == pytest.approx(1.359, abs=5e-4)
    assert list(resolve(root(), q, REGION, 1.2)) == [ResolvedPart(FIRST, REGION, 1.2)]
    (found,) = resolve(root(), q, REGION, 1.5)
    assert found[:2] == (ROOT, REGION)
    assert found.epsilon == pytest.approx(1.401, abs=5e-4)


def test_each_quadrant_is_decided_separately():
    parts = list(resolve(root(), (250.0, 250.0), TREE.area, 1.2))
    assert [part.scope for part in parts] == [
        ROOT,
        QuadScope(2, 0, 1),
        QuadScope(2, 1, 1),
        QuadScope(2, 1, 0),
    ]
    assert sum(size(part.area) for part in parts) == 256.0**2


def test_a_leaf_always_registers():
    leaf = ResolveInputs(TREE, QuadScope(4, 0, 0), (200.0, 3.0), NOTHING, no_nodes)
    area = box((0, 0), (5, 5))
    assert list(resolve(leaf, (1.0, 1.0), area, 1.0)) == [ResolvedPart(QuadScope(4, 0, 0), area, 0.0)]


def test_covered_areas_cost_only_the_path_from_the_broker():
    q = (20.0, 200.0)
    (shared,) = resolve(root(covered=REGION), q, REGION, 1.2)
    assert shared.scope == ROOT  # |q − u| alone is 0.95 of |q − cen|
    (alone,) = resolve(root(covered=REGION, leaves=lambda area: [(96.0, 96.0)]), q, REGION, 1.2)
    assert alone.scope == FIRST  # guaranteed: the whole way counts


def test_the_centroid_is_that_of_the_uncovered_part():
    covered = box((64, 64), (128, 96))
    (found,) = resolve(root(covered), (200.0, 200.0), REGION, 1.5)
    assert found.area == REGION
    q, cen = (200.0, 200.0), (96.0, 112.0)
    onward = (1.5 * math.dist(q, cen) - math.dist(q, (128, 128))) / math.dist((128, 128), cen)
    assert found.epsilon == pytest.approx(onward)


def test_advertisers_replace_the_centroid():
    q = (20.0, 200.0)
    (found,) = resolve(root(advertised=lambda area: [(250.0, 10.0)]), q, REGION, 1.01)
    assert found.scope == ROOT
    (found,) = resolve(root(advertised=lambda area: [(250.0, 10.0), (60.0, 150.0)]), q, REGION, 1.2)
    assert found.scope == FIRST


def test_a_subscriber_at_the_centroid_is_registered():
    (found,) = resolve(root(), (96.0, 96.0), REGION, 1.0)
    assert found.scope == ROOT
    (there,) = resolve(ResolveInputs(TREE, ROOT, (96.0, 96.0), NOTHING, no_nodes), (5.0, 5.0), REGION, 1.0)
    assert there == ResolvedPart(ROOT, REGION, math.inf)


def test_an_unsubscription_ends_registered_parts_and_forwards_the_rest():
    here = box((64, 64), (96, 128))
    assert list(withdraw(TREE, ROOT, REGION, here)) == [
        ResolvedPart(ROOT, here, 0.0),
        ResolvedPart(FIRST, box((96, 64), (128, 128)), 0.0),
    ]
    assert list(withdraw(TREE, QuadScope(4, 2, 2), box((64, 64), (70, 70)), NOTHING)) == []
    across = union(REGION, box((128, 128), (130, 130)))
    assert [part.scope for part in withdraw(TREE, ROOT, across, NOTHING)] == [FIRST, QuadScope(2, 1, 1)]
