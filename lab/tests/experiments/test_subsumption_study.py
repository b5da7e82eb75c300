"""The subsumption study again: its draws, its counts against a naive twin, its claims, its command."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from holdfast.cli import app
from holdfast_lab.experiments.registry import load
from holdfast_lab.experiments.subsumption_study import run as study
from holdfast_lab.experiments.subsumption_study.claim import RULES, Left, SubsumptionCell, claims
from holdfast_lab.experiments.subsumption_study.run import left, measure
from holdfast_lab.experiments.subsumption_study.workload import SERIES, VALUES, subscriptions, uniform, zipf
from support import naive_boxes as naive

PAGE = Path(__file__).resolve().parents[3] / "docs" / "experiments" / "subsumption-study.md"
ZIPF, UNIFORM = SERIES


@pytest.fixture(scope="module")
def once():
    """The whole grid, drawn once."""
    return {
        cell: counted
        for series in SERIES
        for d in series.dimensions
        for k in series.attributes
        for cell, counted in measure(series, d, k, range(1)).items()
    }


def boxes(drawn):
    return [
        {int(a): tuple(ends) for a, ends in zip(names[:size], bounds[:size].tolist(), strict=True)}
        for size, names, bounds in zip(*drawn, strict=True)
    ]


def test_the_series_are_those_of_the_document():
    assert (ZIPF.dimensions[0], ZIPF.dimensions[-1], ZIPF.counts[0], ZIPF.counts[-1]) == (8, 512, 8, 65_536)
    assert (UNIFORM.dimensions[0], UNIFORM.dimensions[-1]) == (8, 2048)
    assert (UNIFORM.counts[0], UNIFORM.counts[-1], UNIFORM.attributes) == (8, 8192, (1,))


def test_zipf_draws_rank_r_in_proportion_to_one_over_r():
    drawn = Counter(zipf(np.random.default_rng(1), 4, 120_000).tolist())
    expected = {rank: 120_000 / rank / (1 + 1 / 2 + 1 / 3 + 1 / 4) for rank in (1, 2, 3, 4)}
    assert drawn == pytest.approx(expected, rel=0.03)
    assert set(uniform(np.random.default_rng(1), 3, 100).tolist()) == {1, 2, 3}


@pytest.mark.parametrize("series", SERIES, ids=lambda series: series.name)
def test_a_subscription_has_different_dimensions_and_ranges_within_the_contents(series):
    most = 4
    drawn = subscriptions(replace(series, most=2000), 8, most, np.random.default_rng(3))
    made = boxes(drawn)
    assert Counter(map(len, made)).keys() == {1, 2, 3, 4}
    assert all(len(box) == size for box, size in zip(made, drawn.sizes, strict=True))
    assert all(list(box) == sorted(box) and set(box) <= set(range(8)) for box in made)
    assert all(1 <= low <= high <= VALUES for box in made for low, high in box.values())


@pytest.mark.parametrize("attributes", [1, 3])
@pytest.mark.parametrize("series", SERIES, ids=lambda series: series.name)
def test_counts_equal_those_of_pairwise_compared_boxes(series, attributes):
    drawn = subscriptions(replace(series, most=150), 8, attributes, np.random.default_rng(4))
    assert left(drawn, False).tolist() == naive.absorb(boxes(drawn), False)[0]
    if attributes == 1:
        assert left(drawn, True).tolist() == naive.absorb(boxes(drawn), True)[0]


def test_merging_leaves_no_more_boxes_than_covering(once):
    assert all(counted.merged <= counted.covered <= cell.subscriptions for cell, counted in once.items())
    assert len(once) == 7 * 4 * 14 + 9 * 11


def test_a_draw_is_equal_for_an_equal_seed():
    assert measure(ZIPF, 8, 2, range(1)) == measure(ZIPF, 8, 2, range(1))
    assert measure(ZIPF, 8, 2, range(1)) != measure(ZIPF, 8, 2, range(1, 2))


def test_the_claims_agree_with_the_page(once):
    judged = {claim.id: claim.holds for claim in claims(once)}
    assert judged == {"zipf-reduces": True, "uniform-little": False, "dimensions": True}
    page = PAGE.read_text("utf-8")
    for name, holds in judged.items():
        assert f"| `{name}` | {'holds' if holds else 'does not hold'} |" in page


@pytest.mark.parametrize(
    ("made", "verdicts"),
    [
        (lambda c: c.dimensions, {"zipf-reduces": True, "uniform-little": False, "dimensions": True}),
        (
            lambda c: 0.9 * c.subscriptions,
            {"zipf-reduces": False, "uniform-little": True, "dimensions": False},
        ),
        (
            lambda c: c.dimensions if c.attributes < 3 else c.subscriptions / 2,
            {"zipf-reduces": False, "uniform-little": False, "dimensions": False},
        ),
    ],
)
def test_broken_rules_make_claims_fail(made, verdicts):
    """Each claim is judged both ways by some made-up outcome."""
    grid = {
        cell: Left(made(cell), made(cell))
        for series in SERIES
        for d in series.dimensions
        for k in series.attributes
        for n in series.counts
        for cell in [SubsumptionCell(series.name, d, k, n)]
    }
    assert {claim.id: claim.holds for claim in claims(grid)} == verdicts


def test_the_command_prints_parameters_rows_and_claims_and_draws(monkeypatch, tmp_path):
    monkeypatch.setattr(study, "SEEDS", 1)
    monkeypatch.setattr(study, "SERIES", tuple(replace(s, most=4096) for s in SERIES))
    for module in ("claim", "figure"):
        monkeypatch.setattr(f"holdfast_lab.experiments.subsumption_study.{module}.SERIES", study.SERIES)
    sent = CliRunner().invoke(app, ["reproduce", "subsumption-study", "--json", "--figure", str(tmp_path)])
    assert sent.exit_code == 0, sent.output
    result = json.loads(sent.stdout.splitlines()[0])
    assert result["experiment"] == "subsumption-study"
    assert [claim["id"] for claim in result["claims"]] == list(RULES)
    assert {"series", "dimensions", "attributes", "subscriptions", "covered", "merged"} == result["rows"][
        0
    ].keys()
    (picture,) = tmp_path.iterdir()
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_the_tables_show_every_number_of_dimensions(once):
    experiment = load("subsumption-study")
    tables = experiment.tables(study.Result("subsumption-study", {}, [], (), once))
    assert [len(table.lines) for table in tables] == [7, 9]
    assert all(len(line) == len(table.columns) for table in tables for line in table.lines)
