"""Six ways through a network: by hand, against definitions, on small networks, and on the real readings."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import InputError
from holdfast.runtimes.spark import sweep as spark
from holdfast_lab.experiments.data import locate
from holdfast_lab.experiments.fsf import run as running
from holdfast_lab.experiments.fsf.claim import RULES, claims
from holdfast_lab.experiments.fsf.grid import FsfCell, FsfExhibit, FsfMeasurement, Grid
from holdfast_lab.experiments.fsf.measure import draw, measure
from holdfast_lab.experiments.fsf.network import FsfLayout
from holdfast_lab.experiments.fsf.oracle import taking_part
from holdfast_lab.experiments.fsf.report import tables
from holdfast_lab.experiments.fsf.run import measure_grid
from holdfast_lab.experiments.fsf.setting import (
    AGAIN,
    CENTRALIZED,
    DISTRIBUTED,
    EXACT,
    FSF,
    HOURS,
    JOINS,
    MULTI_JOIN,
    NAIVE,
    NAMED,
    PLACEMENT,
    SEEDS,
    STATIONS,
    WITHIN,
    FsfSetting,
    variants,
)
from holdfast_lab.experiments.fsf.stream import (
    ATTRIBUTES,
    EVERY,
    HOUR,
    Recording,
    quartiles,
    read,
    sensor,
)
from holdfast_lab.experiments.fsf.workload import owing
from holdfast_lab.experiments.registry import load
from holdfast_lab.experiments.series import StationSeries
from holdfast_lab.experiments.stbernard import FILE

PAGE = Path(__file__).resolve().parents[3] / "docs" / "experiments" / "fsf.md"
NAMES = ("fsf-small", "fsf-medium", "fsf-large-network", "fsf-large-sources")


# --- what is owed ---


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 30), max_size=5, unique=True).map(sorted), min_size=1, max_size=4),
    st.integers(1, 12),
)
def test_an_event_is_expected_if_each_attribute_has_a_reading_in_its_window(times, within):
    owed = [set() for _ in times]
    for complex_event in product(*times):
        if max(complex_event) - min(complex_event) < within:
            for mine, time in zip(owed, complex_event, strict=True):
                mine.add(time)
    arrays = [np.array(some, np.int64) for some in times]
    found = taking_part(arrays, within)
    assert [set(t[takes].tolist()) for t, takes in zip(arrays, found, strict=True)] == owed


# --- streams ---


def reports(path: Path, stations: dict[int, list[tuple[int, list[float]]]]) -> Path:
    """A file as the data set has it: for each station (time in minutes, five readings)."""
    rows = [(minute, station, *values) for station, some in stations.items() for minute, values in some]
    columns = list(zip(*rows, strict=True))
    table = {
        "time": pa.array([m * 60_000_000 for m in columns[0]], pa.timestamp("us")),
        "station": columns[1],
    }
    pq.write_table(pa.table(table | dict(zip(ATTRIBUTES, columns[2:], strict=True))), path)
    return path


def varying(minutes, but=None):
    return [(m, [(but or {}).get(a, m % 7 + i) for i, a in enumerate(ATTRIBUTES)]) for m in minutes]


def test_the_recording_is_the_interval_with_enough_complete_stations(tmp_path):
    hour = range(60, 120, 2)
    stations = {
        1: varying(range(0, 180, 2)),
        2: varying(hour),
        3: varying(range(60, 100, 2)) + varying(range(100, 180, 2), {"wind_speed": float("nan")}),
        4: varying(range(0, 180, 2), {"humidity": 50.0}),
    }
    found = read(reports(tmp_path / "four.parquet", stations), 1, 3)
    assert found.start == HOUR
    assert found.stations == (1, 2, 3)  # the fourth's humidity never changes
    assert found.complete == {1: 1.0, 2: 1.0, 3: pytest.approx(2 / 3)}
    assert len(found.series[sensor(3, "wind_speed")].times) == 20
    assert len(found.series[sensor(3, "humidity")].times) == 30


def test_a_fault_code_of_a_temperature_is_no_reading(tmp_path):
    rows = varying(range(0, 60, 2))
    rows[3][1][:] = [-1.0, 2.5, -1.0, 1.0, 1.0]
    found = read(reports(tmp_path / "one.parquet", {1: rows}), 1, 1)
    lengths = {attribute: len(found.series[sensor(1, attribute)].times) for attribute in ATTRIBUTES}
    assert lengths == {**dict.fromkeys(ATTRIBUTES, 30), "ambient_temp": 29}


def test_too_few_stations_or_another_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="has 1 stations; 2 are needed"):
        read(reports(tmp_path / "one.parquet", {1: varying(range(0, 60, 2))}), 1, 2)
    with pytest.raises(InputError, match="no 1 h in which 1 stations have streams that vary"):
        read(reports(tmp_path / "flat.parquet", {1: varying(range(0, 60, 2), {"humidity": 1.0})}), 1, 1)
    pq.write_table(pa.table({"time": [1]}), tmp_path / "other.parquet")
    with pytest.raises(InputError, match=r"is not the St\. Bernard data set"):
        read(tmp_path / "other.parquet", 1, 1)


# --- a small network ---

SMALL = FsfSetting("fsf-small", 16, 2, (3, 5), (24,), (CENTRALIZED, *DISTRIBUTED))


def walk(stations: int, length: int) -> Recording:
    """Streams that wander, reported together; some reports are a little early."""
    random = np.random.default_rng(7)
    series = {}
    for station in range(stations):
        times = np.arange(length) * EVERY - random.integers(0, 2, length) * 1_000_000
        for attribute in ATTRIBUTES:
            series[sensor(station, attribute)] = StationSeries(times, np.cumsum(random.normal(size=length)))
    return Recording(0, 1, tuple(range(stations)), dict.fromkeys(range(stations), 1.0), series)


WALK = walk(2, 40)
DRAWN = draw(SMALL, WALK, 0, 24)


def side(layout: FsfLayout, start: str, without: str) -> set[str]:
    """The nodes that are on one side of a link."""
    found, beyond = {start}, [start]
    while beyond:
        at = beyond.pop()
        near = {b if a == at else a for a, b in layout.links if at in (a, b)} - found - {without}
        found |= near
        beyond += near
    return found


def crossings() -> list[list[frozenset]]:
    """For each link and direction, what each subscription beyond it is owed of the sensors on this side."""
    found = []
    for a, b in [*DRAWN.layout.links, *(link[::-1] for link in DRAWN.layout.links)]:
        here = side(DRAWN.layout, a, b)
        sets = []
        for subscription in DRAWN.subscriptions:
            filters = tuple(f for f in subscription.wanted.filters if DRAWN.layout.sensors[f.sensor] in here)
            if filters and subscription.node not in here:
                sets.append(owing(replace(subscription.wanted, filters=filters), WALK))
        found.append(sets)
    return found


@pytest.mark.parametrize("star", [False, True])
def test_the_network_is_a_tree_and_the_five_of_a_station_are_beside_one_another(star):
    layout = draw(replace(SMALL, star=star), WALK, 0, 1).layout
    nodes = {*layout.routers, *layout.sensors.values()}
    assert (len(nodes), len(layout.links)) == (16, 15)
    assert side(layout, layout.routers[0], "") == nodes
    above = {b: a for a, b in layout.links}
    for station in WALK.stations:
        five = {layout.sensors[sensor(station, attribute)] for attribute in ATTRIBUTES}
        routers = [above[node] for node in five if above[node] not in five]
        assert len(set(routers)) == 1
        assert len(routers) == (5 if star else 1)


def test_subscriptions_alternate_between_stations_come_from_routers_and_expect_events():
    assert [s.station for s in DRAWN.subscriptions] == [0, 1] * 12
    assert {len(s.wanted.filters) for s in DRAWN.subscriptions} == {3, 4, 5}
    assert {s.node for s in DRAWN.subscriptions} <= set(DRAWN.layout.routers)
    anywhere = draw(replace(SMALL, at_routers=False), WALK, 0, 24).subscriptions
    assert not {s.node for s in anywhere} <= set(DRAWN.layout.routers)
    for subscription in DRAWN.subscriptions:
        assert subscription.owed
        assert subscription.wanted.within == WITHIN


@pytest.mark.parametrize(
    ("width", "least", "most"), [("even", 0.5, 2), ("half", 0.25, 1), ("pareto", 1, 1e9)]
)
def test_ranges_have_a_centre_off_the_median_and_a_width(width, least, most):
    sides = set()
    for subscription in draw(replace(SMALL, width=width), WALK, 0, 24).subscriptions:
        for one in subscription.wanted.filters:
            middle = quartiles(WALK.series[one.sensor])
            assert least <= (one.high - one.low) / (middle.below + middle.above) <= most
            sides.add((one.low + one.high) / 2 > middle.median)
    assert sides == {False, True}


def test_separately_drawn_bounds_contain_the_quartiles():
    for subscription in draw(replace(SMALL, width="apart"), WALK, 0, 24).subscriptions:
        for one in subscription.wanted.filters:
            middle = quartiles(WALK.series[one.sensor])
            assert one.low <= middle.median - middle.below
            assert one.high >= middle.median + middle.above


def test_fewer_subscriptions_are_a_prefix_of_more():
    assert draw(SMALL, WALK, 0, 10).subscriptions == DRAWN.subscriptions[:10]
    assert draw(SMALL, WALK, 1, 10).subscriptions != DRAWN.subscriptions[:10]


def test_naive_and_exact_loads_are_those_of_the_definition():
    most = max(SMALL.counts)
    naive = measure(SMALL, WALK, FsfCell(0, NAIVE, most))
    exact = measure(SMALL, WALK, FsfCell(0, EXACT, most))
    sets = crossings()
    assert naive.subscription_load == sum(map(len, sets))
    assert naive.publication_load == sum(len(owed) for some in sets for owed in some)
    assert exact.publication_load == sum(len(frozenset().union(*some)) for some in sets)
    assert exact.subscription_load < naive.subscription_load


@pytest.mark.parametrize("approach", SMALL.approaches)
def test_only_probabilistic_filtering_loses_and_only_binary_joins_bring_too_much(approach):
    found = measure(SMALL, WALK, FsfCell(0, approach, max(SMALL.counts)))
    assert found.owed == sum(len(s.owed) for s in DRAWN.subscriptions)
    if approach != FSF:
        assert found.recall == 1
    assert approach in JOINS or not found.surplus


def test_each_reading_of_multi_join_sends_less_than_the_one_before():
    loads = [measure(SMALL, WALK, FsfCell(0, a, max(SMALL.counts))).publication_load for a in (*JOINS, EXACT)]
    assert loads == sorted(set(loads), reverse=True)


def test_few_sample_points_do_not_find_gaps():
    found = [measure(replace(SMALL, points=n), WALK, FsfCell(0, FSF, 200)) for n in (1, 10_000)]
    assert found[0].missed > found[1].missed


# --- resuming ---


def test_an_interrupted_sweep_continues(tmp_path):
    path = tmp_path / "kept" / "runs.json"
    one = FsfSetting("fsf-small", 16, 2, (3, 5), (4,), (FSF,))
    asked: list[FsfCell] = []

    def spread(_, cells):
        asked.extend(cells)
        if cells[0].seed == SEEDS[2] and len(asked) == 3:
            raise InputError("stopped")
        return [FsfMeasurement(cell.seed, 1, 1, 1, 1, 0, 0, 0, 0) for cell in cells]

    with pytest.raises(InputError, match="stopped"):
        measure_grid(one, WALK, path, lambda _: None, spread)
    assert [seed for (seed, *_), _ in json.loads(path.read_text())] == list(SEEDS[:2])
    runs = measure_grid(one, WALK, path, lambda _: None, spread)
    assert [cell.seed for cell in asked] == [*SEEDS[:3], *SEEDS[2:]]
    assert [run.subscription_load for run in runs.values()] == list(SEEDS)


# --- claims ---

AS_PRINTED = {
    CENTRALIZED: FsfMeasurement(400, 300, 9_000, 1_000, 1_000, 0, 0, 10, 0),
    NAIVE: FsfMeasurement(2_000, 300, 8_000, 1_000, 1_000, 0, 0, 10, 0),
    PLACEMENT: FsfMeasurement(1_210, 300, 5_000, 1_000, 1_000, 0, 0, 10, 0),
    MULTI_JOIN: FsfMeasurement(1_200, 300, 4_000, 1_000, 1_000, 50, 0, 10, 0),
    NAMED: FsfMeasurement(1_200, 300, 4_000, 1_000, 1_000, 40, 0, 10, 0),
    AGAIN: FsfMeasurement(1_200, 300, 3_900, 1_000, 1_000, 30, 0, 10, 0),
    FSF: FsfMeasurement(1_080, 300, 2_000, 1_000, 980, 0, 100, 10, 0),
    EXACT: FsfMeasurement(1_090, 300, 2_080, 1_000, 1_000, 0, 100, 10, 5),
}


def judge(**changed: FsfMeasurement) -> dict[str, bool | None]:
    """The verdicts on a medium network whose approaches have the results of the document, except for some."""
    runs = AS_PRINTED | {name.replace("_", "-"): run for name, run in changed.items()}
    cells = {FsfCell(seed, a, n): run for n in (100, 900) for seed in (0, 1) for a, run in runs.items()}
    return {claim.id: claim.holds for claim in claims("fsf-medium", FsfExhibit(Grid(cells), {}))}


def test_results_as_in_the_document_satisfy_every_claim():
    assert judge() == dict.fromkeys(RULES, True)


@pytest.mark.parametrize(
    ("approach", "change", "broken"),
    [
        (FSF, {"subscription_load": 900}, {"operators-placement", "operators-multi-join"}),
        (FSF, {"subscription_load": 1_150}, {"operators-multi-join"}),
        (FSF, {"subscription_load": 1_205}, {"operators-placement", "operators-multi-join", "ranking"}),
        (CENTRALIZED, {"subscription_load": 541}, {"centralized-operators"}),
        (FSF, {"publication_load": 1_000}, {"publication-load", "exact-cost"}),
        (PLACEMENT, {"publication_load": 3_000}, {"ranking"}),
        (NAIVE, {"publication_load": 9_500}, {"centralized-events"}),
        (FSF, {"delivered": 940}, {"recall"}),
        (MULTI_JOIN, {"delivered": 999}, {"others-recall"}),
        (EXACT, {"delivered": 999}, {"others-recall", "exact-recall"}),
        (EXACT, {"publication_load": 2_160}, {"exact-cost"}),
        (EXACT, {"undecided": 6}, {"undecided"}),
    ],
)
def test_a_claim_fails_where_its_rule_is_broken(approach, change, broken):
    verdicts = judge(**{approach.replace("-", "_"): AS_PRINTED[approach]._replace(**change)})
    assert {claim for claim, holds in verdicts.items() if not holds} == broken


# --- the whole ---


def test_a_run_prints_parameters_rows_and_claims_and_draws(tmp_path, monkeypatch):
    folder = tmp_path / Path(FILE).parent
    folder.mkdir()
    random = np.random.default_rng(1)
    hour = {s: [(m, list(random.normal(size=5))) for m in range(0, 60, 2)] for s in (1, 2)}
    reports(tmp_path / FILE, hour)
    monkeypatch.setattr(running, "STATIONS", 2)
    monkeypatch.setattr(running, "HOURS", 1)
    monkeypatch.setattr(running, "SEEDS", range(2))
    monkeypatch.setattr(spark, "sweep", lambda function, cells: [function(cell) for cell in cells])
    tiny = FsfSetting("fsf-medium", 16, 2, (5, 5), (6, 12), (CENTRALIZED, *DISTRIBUTED))
    result = running.run(tiny, variants(tiny, 12)[:1], tmp_path, False, lambda _: None)
    text = json.loads(json.dumps(result.to_json()))
    assert text["parameters"]["events"] == 2 * 5 * 30
    assert len(text["rows"]) == 8 * 2 + 6
    assert {row["setting"] for row in text["rows"]} == {"fsf-medium", "widths by Pareto too"}
    assert [claim["id"] for claim in text["claims"]] == list(RULES)
    *_, dependence = tables(result)
    assert [line[0] for line in dependence.lines] == ["as described", "widths by Pareto too"]
    path = load("fsf-medium").figure(result, tmp_path)
    assert path.name == "fsf-medium.png"
    assert path.stat().st_size > 10_000


# --- the four ---


def test_the_four_experiments_are_those_of_the_document():
    found = {name: load(name) for name in NAMES}
    assert [experiment.name for experiment in found.values()] == list(NAMES)


def test_less_is_saved_with_many_sources_than_with_few():
    runs = {FsfCell(seed, a, n): run for n in (100, 900) for seed in (0, 1) for a, run in AS_PRINTED.items()}
    more = {
        cell: run._replace(subscription_load=1_000) if cell.approach == FSF else run
        for cell, run in runs.items()
    }
    few, many = Grid(more), Grid(runs)

    def holds(here, there):
        found = claims("fsf-large-sources", FsfExhibit(here, {"fsf-large-network": there}))
        return {claim.holds for claim in found if claim.id.startswith("operators")}

    assert holds(many, few) == {True}
    assert holds(few, many) == {False}


def test_six_hours_of_a_windy_sunday_on_the_pass_are_replayed():
    try:
        path = locate(FILE)
    except InputError as error:
        pytest.skip(str(error))
    recording = read(path, HOURS, STATIONS)
    assert recording.began == "2007-10-21T10:00Z"
    assert len(recording.stations) == STATIONS
    assert min(recording.complete.values()) > 0.9


def test_the_page_shows_the_result_of_every_claim():
    text = PAGE.read_text(encoding="utf-8")
    assert not [claim for claim in RULES if f"`{claim}`" not in text]
    assert not [name for name in NAMES if name not in text]
