"""The benchmark of components: every implementation finds the same, and the rows have the expected
columns."""

import pytest

from holdfast_lab.benchmarks import Timing, component_kinds, components, traffic


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for name, value in {"EVENTS": 24_000, "LOOKED_AT": 1_200, "ROADS": 20}.items():
        monkeypatch.setattr(components, name, value)
    monkeypatch.setattr(traffic, "BATCH", 5_000)


def test_the_rows_of_the_components_benchmark_have_rates_and_goal():
    """Rates with ways that find other transitions would be refused."""
    rows = list(components.throughput(lambda _: None))
    assert [row.what for row in rows][:3] == [
        "events per second, congestion of 20 roads, two windows",
        "the same from Parquet files, read and sorted",
        "the same by the reference machine",
    ]
    assert [row.unit for row in rows] == ["events/s"] * len(rows)
    assert rows[0].detail["transitions"] == rows[1].detail["transitions"] > 10


def test_an_implementation_with_other_results_is_refused():
    timing = Timing(1.0, 1.0, [("road-0001", "ingress", 5)])
    with pytest.raises(AssertionError, match="Polars found other transitions"):
        components._beside("Polars", timing, 1, 1.0, [])


def test_state_and_memory_do_not_grow_with_history(monkeypatch):
    monkeypatch.setattr(components, "apart", lambda function, *given: function(*given))
    state, twice, memory = components.growth(lambda _: None)
    assert state.detail["readings_in_windows"] == 36
    assert 36 * 8 < state.value < 36 * 100
    assert twice.met
    assert memory.detail["events"] == [12_000, 24_000]


def test_every_kind_has_a_row_beside_the_reference_machine(monkeypatch):
    for name, value in {"EVENTS": 2_000, "LOOKED_AT": 300, "BATCH": 1_000, "ROADS": 20}.items():
        monkeypatch.setattr(component_kinds, name, value)
    rows = list(component_kinds.rows(lambda _: None))
    assert len(rows) == len(component_kinds.KINDS)
    assert all(row.detail["in_columns"] and row.detail["reference_machine"] > 0 for row in rows)
    assert [row.detail["told"] > 300 for row in rows][1:4] == [True] * 3
