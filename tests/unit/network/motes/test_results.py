"""Many runs: intervals, tables, JSON."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from holdfast.network.motes.results import StudyResults, collect, tables, to_json, write
from holdfast.network.motes.study import read_text
from holdfast.network.sim.statistics import estimate
from support.protocols import scenario_text
from support.scenarios import GRID

SWEPT = (
    GRID.replace("every: 1 s", "every: 1 s, arrivals: poisson")
    + "seeds: 3\nsweep:\n  traffic.0.every: [1 s, 2 s]\n  mac: [{kind: csma}, {kind: aloha}]\n"
)


@pytest.fixture(scope="module")
def results() -> StudyResults:
    return collect(read_text(SWEPT), map)


def test_every_point_is_run_with_every_seed(results):
    assert [(task.point, task.seed) for task in results.tasks] == [
        (p, s) for p in range(4) for s in (1, 2, 3)
    ]
    assert len(results.runs) == 12
    assert results.settings(1) == {"traffic.0.every": "1 s", "mac": "aloha"}


def test_a_summary_is_the_mean_of_the_runs_with_its_interval(results):
    sent = [run.measures["sent"] for run in results.of(2)]
    assert len(set(sent)) > 1
    assert results.summary(2)["sent"] == estimate(sent)
    assert "lifetime_s" not in results.summary(2), "nobody has a battery"


def test_tables_hold_every_run_node_and_step(results):
    made = tables(results)
    assert made["runs"].num_rows == 12
    assert made["nodes"].num_rows == 12 * 9
    assert made["timeline"].num_rows == sum(len(run.timeline) for run in results.runs)
    runs = made["runs"].to_pylist()
    assert runs[0]["traffic.0.every"] == "1 s"
    assert {name: type(value) for name, value in runs[0].items() if name in ("sent", "delay_ms", "rest")} == {
        "sent": int, "delay_ms": float, "rest": str,
    }  # fmt: skip
    assert dict(runs[0]["energy_by_cause_mj"])["flow 0"] > 0
    summary = made["summary"].to_pylist()
    (row,) = [r for r in summary if r["point"] == 3 and r["measure"] == "delivered"]
    found = results.summary(3)["delivered"]
    assert (row["mean"], row["low"], row["high"], row["runs"]) == (found.mean, found.low, found.high, 3)


def test_written_tables_are_read_back(results, tmp_path):
    for path in write(results, tmp_path / "new" / "folder"):
        assert pq.read_table(path).equals(tables(results)[path.stem])


def test_tables_as_csv_have_a_column_for_each_quantity(results, tmp_path):
    paths = write(results, tmp_path, "csv")
    assert {path.suffix for path in paths} == {".csv"}
    for path in paths:
        assert csv.read_csv(path).num_rows == tables(results)[path.stem].num_rows
    (runs,) = (path for path in paths if path.stem == "runs")
    header = runs.read_text().splitlines()[0]
    amounts = [
        name
        for name in tables(results)["runs"].column_names
        if "map" in str(tables(results)["runs"].schema.field(name).type)
    ]
    assert amounts
    assert any(f'"{name}.' in header for name in amounts)
    assert all(f'"{name}"' not in header for name in amounts)


def test_json_contains_points_and_runs(results):
    found = json.loads(to_json(results))
    assert found["seeds"] == [1, 2, 3]
    assert found["points"][3]["settings"] == {"traffic.0.every": "2 s", "mac": {"kind": "aloha"}}
    measure = found["points"][0]["measures"]["delivery_ratio"]
    assert measure["low"] <= measure["mean"] <= measure["high"]
    assert found["runs"][0]["dropped"] == results.runs[0].measures["dropped"]
    assert len(found["runs"]) == 12


def test_a_network_without_traffic_has_results():
    quiet = collect(read_text(GRID.replace("  - {from: 0, to: 8, every: 1 s}", "  []")), map)
    assert quiet.summary(0)["sent"].mean == 0
    assert "delivery_ratio" not in quiet.summary(0)
    assert tables(quiet)["runs"].to_pylist()[0]["delivery_ratio"] is None


# Subscriptions.


@pytest.fixture(scope="module")
def shared_results() -> StudyResults:
    return collect(read_text(scenario_text(to="[Warm, T]", more="seeds: 2\n")), map)


def test_each_subscription_is_summed_up_over_the_seeds(shared_results):
    found = shared_results.subscriptions(0)
    assert list(found) == ["Warm", "T"]
    expected = [run.subscriptions[0]["expected"] for run in shared_results.runs]
    assert found["Warm"]["expected"] == estimate(expected)
    assert found["T"]["loss"].mean == 0
    assert {"lost", "subscription"}.isdisjoint(found["T"])


def test_subscriptions_have_a_table_and_are_in_the_json(shared_results, tmp_path):
    rows = tables(shared_results)["subscriptions"].to_pylist()
    assert [(row["seed"], row["subscription"]) for row in rows] == [
        (1, "Warm"),
        (1, "T"),
        (2, "Warm"),
        (2, "T"),
    ]
    assert rows[1]["readings"] == 90
    assert {path.stem for path in write(shared_results, tmp_path)} >= {"subscriptions", "runs"}
    found = json.loads(to_json(shared_results))
    assert found["points"][0]["subscriptions"]["T"]["delivered"]["mean"] == 90
    assert found["runs"][0]["subscriptions"][1]["subscription"] == "T"


def test_without_subscriptions_results_omit_them(results):
    assert "subscriptions" not in tables(results)
    assert "subscriptions" not in to_json(results)
