"""How far an event travels: the formula against counting, brokers against the formula, the claims."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from holdfast_lab.experiments.hop_model.claim import RULES, HopModelMeasurement, claims
from holdfast_lab.experiments.hop_model.measure import travel
from holdfast_lab.experiments.hop_model.network import (
    NETWORKS,
    diameter,
    leaves,
    mean_hops,
    mean_hops_by_listing,
    name_of,
    root_share,
)
from holdfast_lab.experiments.hop_model.run import measure, publishers
from holdfast_lab.experiments.registry import load

PAGE = Path(__file__).resolve().parents[3] / "docs" / "experiments" / "hop-model.md"
SMALL = [(2, 3), (3, 2), (2, 2, 2), (4, 1, 2), (5,)]


def ways(network):
    """The number of links between every two leaves, counted one by one."""
    ends = list(product(*(range(children) for children in network)))
    for a, b in product(ends, ends):
        shared = next((i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(network))
        yield 2 * (len(network) - shared)


@pytest.mark.parametrize("network", SMALL, ids=name_of)
def test_the_formula_is_the_average_over_all_pairs_of_leaves(network):
    counted = list(ways(network))
    assert mean_hops(network) == Fraction(sum(counted), len(counted))
    assert root_share(network) == Fraction(sum(w == diameter(network) for w in counted), len(counted))


@pytest.mark.parametrize("network", SMALL, ids=name_of)
@pytest.mark.parametrize("end", [0, -1])
def test_events_on_running_brokers_travel_the_computed_distance_from_any_leaf(network, end):
    publisher = [0 if end == 0 else children - 1 for children in network]
    found = travel(network, [publisher])
    assert Fraction(found.hops, found.sent) == mean_hops(network)
    assert Fraction(found.over_root, found.sent) == root_share(network)


def test_the_rounded_averages_equal_those_of_the_table():
    for network, printed in NETWORKS.items():
        assert leaves(network) == 640
        assert float(mean_hops(network)) == pytest.approx(printed.hops, abs=0.005)


def test_the_printed_listing_treats_a_leaf_as_its_own_sibling():
    for network in NETWORKS:
        assert mean_hops_by_listing(network) == mean_hops(network) + Fraction(2, leaves(network))


@pytest.mark.parametrize(
    ("network", "publisher", "share"),
    [((5, 4, 4), (3, 2, 1), 0.8), pytest.param((10, 8, 8), (3, 5, 7), 0.9, marks=pytest.mark.soak)],
    ids=lambda value: name_of(value) if isinstance(value, tuple) else str(value),
)
def test_a_network_like_those_of_the_table_on_brokers(network, publisher, share):
    """The table's have 640 leaves."""
    found = measure(network, [publisher])
    assert found.hops == pytest.approx(float(mean_hops(network)))
    assert found.root_share == pytest.approx(share)


def test_every_claim_is_judged_by_its_rule():
    exact = {n: HopModelMeasurement(float(mean_hops(n)), float(root_share(n))) for n in NETWORKS}
    judged = claims(exact)
    assert [claim.id for claim in judged] == list(RULES) == ["table-3-1", "0.95-diameter", "root-share"]
    assert all(claim.holds for claim in judged)
    off = {n: HopModelMeasurement(m.hops + 0.02, m.root_share) for n, m in exact.items()}
    assert [claim.holds for claim in claims(off)] == [False, True, True]
    wide = {n: HopModelMeasurement(float(diameter(n)), m.root_share + 0.01) for n, m in exact.items()}
    assert [claim.holds for claim in claims(wide)] == [False, False, False]


def test_publishers_of_the_full_run_are_leaves_and_reproducible():
    for network in NETWORKS:
        drawn = publishers(network)
        assert drawn == publishers(network)
        assert all(0 <= at < children for leaf in drawn for at, children in zip(leaf, network, strict=True))


def test_the_hop_model_is_registered_and_has_a_page():
    assert load("hop-model").name == "hop-model"
    page = PAGE.read_text("utf-8")
    assert all(f"`{claim}`" in page for claim in RULES)


@pytest.mark.soak
def test_all_ten_networks_on_running_brokers(tmp_path):
    experiment = load("hop-model")
    result = experiment.run(None, False, lambda _: None)
    assert all(claim.holds for claim in result.claims)
    assert all(row["measured hops"] == row["computed hops"] for row in result.rows)
    picture = experiment.figure(result, tmp_path)
    assert picture.stat().st_size > 10_000
