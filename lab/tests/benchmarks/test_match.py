"""The matching benchmark: all implementations find the same, and the rows have the expected columns."""

import numpy as np
import pytest

from holdfast.network.protocols.cbps.boxes import Boxes
from holdfast_lab.benchmarks import match
from holdfast_lab.benchmarks.brute import WAYS


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(match, "SIZES", (500, 3000))
    for name, value in {
        "BATCH": 60,
        "BRUTE_BATCH": 20,
        "ONE_BY_ONE": 5,
        "SINGLY": 200,
        "AT_ONCE": 300,
    }.items():
        monkeypatch.setattr(match, name, value)


@pytest.mark.parametrize("width", match.WIDTHS.values())
@pytest.mark.parametrize("way", WAYS)
def test_every_brute_force_finds_what_the_index_finds(way, width):
    ranges, points = match.subscriptions(5000, width), match.events(30)
    found = Boxes(match.ATTRIBUTES, ranges).match(points)
    brute = WAYS[way](ranges, match.ATTRIBUTES)(points)
    assert len(brute) == len(found.numbers) > 0
    assert match.same(brute, found.numbers, found.ends)
    assert not match.same(brute[::-1].copy(), found.numbers, found.ends)


def test_the_subscriptions_match_at_their_stated_rate():
    """Width w in each of ten different attributes: w^10."""
    for share, width in zip((0.4**10, 0.01), match.WIDTHS.values(), strict=True):
        assert width**match.RANGES == pytest.approx(share)
        ranges = match.subscriptions(1000, width)
        assert all(len(set(row)) == match.RANGES for row in ranges.attributes.tolist())
        assert np.allclose(ranges.bounds[..., 1] - ranges.bounds[..., 0], width)


def test_the_rows_have_time_ratio_and_goal():
    rows = list(match.matching("1 % matching", 0.01**0.1, 3000, lambda _: None))
    assert [row.what for row in rows] == [
        "1 % matching, 3,000 subscriptions, one at a time",
        "1 % matching, 3,000 subscriptions, in a batch of 60",
    ]
    assert [row.met is None for row in rows] == [True, False]
    for row in rows:
        assert row.value > 0
        assert row.detail["brute_force_ms"].keys() == {"rows", "columns", "ranks"}
        assert 10 < row.detail["matches"] < 100


def test_insertions_and_deletions_are_counted():
    rows = list(match.changing(lambda _: None))
    assert [row.unit for row in rows] == ["subscriptions/s"] * 5
    assert [row.detail["count"] for row in rows] == [3000, 200, 200, 300, 300]
