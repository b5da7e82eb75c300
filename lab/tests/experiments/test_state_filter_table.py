"""Table II again: by hand on small series, against naive twins, and on the real temperatures."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from holdfast.cli import app
from holdfast.errors import InputError, UsageError
from holdfast_lab.experiments import redwoods, stbernard
from holdfast_lab.experiments.data import _bases, locate
from holdfast_lab.experiments.registry import find_experiments, load
from holdfast_lab.experiments.series import MINUTE, StationSeries, on_grid
from holdfast_lab.experiments.state_filter_table.claim import RULES, judge
from holdfast_lab.experiments.state_filter_table.count import (
    LINES,
    count_runs,
    late_ends,
    measure,
    overstays,
    spells,
)
from holdfast_lab.experiments.state_filter_table.field import (
    EVERY,
    READINGS,
    REGIONS,
    VALIDITY,
    Field,
    Sensor,
    Subscriber,
    TableSetting,
    draw,
)
from holdfast_lab.experiments.state_filter_table.period import held, join, plateau, running_mean
from holdfast_lab.experiments.state_filter_table.scheme import content_filters, state_filters

CLAIMS = [
    "source-pass-ratio",
    "delivered",
    "duplicates-suppressed",
    "shared-events",
    "resolution",
    "accounting",
]


PAGE = Path(__file__).resolve().parents[3] / "docs" / "experiments" / "state-filter-table.md"


# --- by hand ---

ONE = Field((Sensor("s01", 0, 50.0, 50.0),), (Subscriber("S1", 0, 0),), (1,))
TEN = TableSetting(centre=10.0, spread=0.0)


def minutes(passed):
    return sorted(p.at * 3 for p in passed)


def on_one_sensor(values):
    values = np.asarray([values], float)
    times = np.arange(values.shape[1], dtype=np.int64) * EVERY
    return measure(ONE, TEN, times, values)


def test_above_ten_from_minute_6_to_72_ecf_sends_at_6_39_72_and_sf_at_6_and_75():
    at = np.arange(0, 120, 3)
    found = on_one_sensor(np.where((at >= 6) & (at <= 72), 12.0, 8.0))
    sf, ecf = found.schemes
    assert minutes(sf.delivered) == [6, 75]
    assert minutes(ecf.delivered) == [6, 39, 72]
    assert found.ecf.worst_error == 27  # sent at 72, ended at 75, assumed until 102
    assert found.sf.worst_error == 0


def test_ecf_hides_a_condition_that_starts_within_the_validity_of_another():
    #                          0     3     6    9    12    15   18 …
    found = on_one_sensor([8.0, 12.0, 12.0, 8.0, 12.0, 8.0] + [8.0] * 20)
    sf, ecf = found.schemes
    assert minutes(sf.delivered) == [3, 9, 12, 15]
    assert minutes(ecf.delivered) == [3]
    assert (found.sf.conditions, found.ecf.conditions) == (2, 1)
    assert found.ecf.worst_error == 18  # ended for good at 15, believed until 33


def test_a_reading_at_the_threshold_is_not_above_it():
    found = on_one_sensor([10.0, 10.1, 10.0])
    assert minutes(found.schemes[0].delivered) == [3, 6]
    assert minutes(found.schemes[1].delivered) == [3]


def test_redundant_sensors_pass_at_the_source_and_once_at_the_region():
    field = Field(
        tuple(Sensor(f"s0{i + 1}", 0, 10.0 + i, 10.0) for i in range(3)),
        (Subscriber("S1", 0, 0), Subscriber("S2", 0, 9)),
        (1,),
    )
    values = np.tile([8.0, 12.0, 9.9, 8.0], (3, 1))  # 9.9 ends S2 (> 10.45), not S1 (> 9.55)
    found = measure(field, TableSetting(), np.arange(4, dtype=np.int64) * EVERY, values)
    sf, ecf = found.sf, found.ecf
    assert (sf.passes, sf.disseminated, sf.suppressed, sf.delivered) == (9, 3, 6, 4)
    assert (sf.shared_before, sf.shared_after) == (3, 1)
    assert (ecf.passes, ecf.suppressed, ecf.delivered, ecf.shared_before) == (3, 0, 6, 3)


def test_hysteresis_ends_a_condition_later():
    values = np.array([[8.0, 12.0, 9.9, 12.0, 9.4]])
    found = measure(ONE, replace(TEN, gap=0.5), np.arange(5, dtype=np.int64) * EVERY, values)
    assert minutes(found.schemes[0].delivered) == [3, 12]
    assert found.sf.worst_error == 0


def test_a_condition_counts_until_it_expires_or_starts_again():
    times = np.arange(6, dtype=np.int64) * 10
    warm = np.array([True, False, False, True, False, False])
    assert overstays(times, warm, [0], 30) == [20, 0]
    assert overstays(times, warm, [], 30) == []
    assert late_ends(times, ~warm, [0, 2]) == [10]


def test_events_that_follow_at_once_are_one_run():
    assert count_runs(np.array([], np.int64)) == 0
    assert count_runs(np.array([6, 39, 72]) * MINUTE) == 1
    assert count_runs(np.array([6, 39, 75]) * MINUTE) == 2


# --- the papers' field ---


def compositions(total, parts):
    """The ways to write a number as a sum of so many numbers from one up."""
    if parts == 1:
        return [(total,)] if total else []
    return [(k, *rest) for k in range(1, total) for rest in compositions(total - k, parts - 1)]


def test_only_one_field_has_11_publishers_27_and_10_filters_as_in_the_paper():
    found = set()
    for count in range(1, 11):  # regions that have subscribers; every subscription has one region
        for sizes in combinations_with_replacement((1, 2, 3), count):
            if sum(sizes) == 11:
                for shares in compositions(10, count):
                    pairs = list(zip(sizes, shares, strict=True))
                    if sum(size * share for size, share in pairs) == 27:
                        found.add((sizes, sum(share for size, share in pairs if size == 3)))
    assert found == {((2, 3, 3, 3), 7)}


@pytest.mark.parametrize("seed", range(5))
def test_every_drawn_field_has_the_counts_of_the_paper(seed):
    field = draw(seed, range(100, 100 + REGIONS))
    watched = [s for s in field.sensors if s.region in field.coverage]
    assert (len(field.sensors), len(field.subscribers), len(watched)) == (35, 10, 11)
    assert sum(len(field.sensors_of(s.region)) for s in field.subscribers) == 27
    assert {len(field.sensors_of(r)) for r in range(REGIONS)} <= {1, 2, 3}
    assert sorted(s.rank for s in field.subscribers) == list(range(10))
    assert sorted(field.stations) == list(range(100, 100 + REGIONS))
    assert draw(seed, range(100, 100 + REGIONS)) == field


def test_one_plateau_gives_the_state_filter_column_of_the_paper():
    found = measure(*plateau())
    sf = found.sf
    assert (sf.published, sf.covered, sf.source_filters, sf.scoping_filters) == (21000, 6600, 27, 10)
    assert (sf.passes, sf.suppressed, sf.disseminated) == (22, 14, 8)
    assert (sf.shared_before, sf.shared_after, sf.delivered) == (16, 6, 20)
    assert judge(found)["accounting"]


# --- against naive twins ---


def naive_ecf(field, setting, temps):
    """One event after the other; a table of when each filter is active again."""
    deaf_until, out = {}, []
    for at in range(temps.shape[1]):
        for number, sensor in enumerate(field.sensors):
            for who in field.subscribers:
                mine, now = (who.name, number), at * EVERY
                warm = who.region == sensor.region and temps[number, at] > setting.threshold(who)
                if warm and deaf_until.get(mine, -1) < now:
                    deaf_until[mine] = now + VALIDITY
                    out.append((*mine, at))
    return sorted(out)


def naive_sf(field, setting, temps):
    """One event after the other; a set of the sensors, and one of the regions, where it is warm."""
    sensors_on, regions_on, at_source, delivered = set(), set(), [], []
    for at in range(temps.shape[1]):
        for number, sensor in enumerate(field.sensors):
            for who in field.subscribers:
                if who.region != sensor.region:
                    continue
                warm = temps[number, at] > setting.threshold(who)
                if warm == ((who.name, number) in sensors_on):
                    continue
                sensors_on ^= {(who.name, number)}
                at_source.append((who.name, number, at))
                if warm != (who.name in regions_on):
                    regions_on ^= {who.name}
                    delivered.append((who.name, number, at))
    return sorted(at_source), sorted(delivered)


def plain(passed):
    return sorted(tuple(p) for p in passed)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("equal", [True, False])
def test_both_schemes_equal_their_naive_twins(seed, equal):
    """On random walks; also if the sensors of a region disagree."""
    chance = np.random.default_rng(seed)
    field = draw(seed, range(REGIONS))
    walks = 10 + np.cumsum(chance.normal(0, 0.2, (REGIONS, 120)), axis=1)
    temps = walks[[sensor.region for sensor in field.sensors]]
    if not equal:
        temps = temps + chance.normal(0, 0.2, temps.shape)
    times = np.arange(120, dtype=np.int64) * EVERY
    sf = state_filters(field, TableSetting(), times, temps)
    assert (plain(sf.at_source), plain(sf.delivered)) == naive_sf(field, TableSetting(), temps)
    ecf = content_filters(field, TableSetting(), times, temps)
    assert plain(ecf.at_source) == plain(ecf.delivered) == naive_ecf(field, TableSetting(), temps)


# --- the readings ---


def test_faults_are_dropped_and_counted():
    values = np.array([5.0, 5.1, np.nan, 123.0, -39.46, -1.0, 5.2, 12.0, 5.3, 5.4, 5.5])
    times = np.arange(len(values), dtype=np.int64)
    cleaned = stbernard.clean(times, np.full(len(values), 7), values)
    assert cleaned.stations[7].values.tolist() == [5.0, 5.1, 5.2, 5.3, 5.4, 5.5]
    assert cleaned.dropped == {"missing": 1, "implausible": 2, "fault code": 1, "spike": 1}


def test_the_grid_contains_sent_readings_and_marks_stale_ones():
    series = StationSeries(np.array([1, 3, 12]) * MINUTE, np.array([1.0, 2.0, 3.0]))
    values, fresh = on_grid(series, np.arange(0, 15, 3, dtype=np.int64) * MINUTE, stbernard.FRESH)
    assert values.tolist() == [1.0, 2.0, 2.0, 2.0, 3.0]
    assert fresh.tolist() == [False, True, True, True, True]
    values, fresh = on_grid(series, np.array([10 * MINUTE]), stbernard.FRESH)
    assert (values.tolist(), fresh.tolist()) == ([2.0], [False])


def test_missing_and_implausible_redwood_readings_are_dropped_and_counted(tmp_path):
    table = pa.table(
        {
            "time": pa.array([10, 5, 15, 20, 5], pa.timestamp("us")),
            "nodeid": [3, 3, 3, 3, 4],
            "humid_temp": [11.0, 10.0, float("nan"), 122.2, -38.4],
        }
    )
    pq.write_table(table, tmp_path / "some.parquet")
    cleaned = redwoods.read(tmp_path / "some.parquet")
    assert cleaned.stations[3].times.tolist() == [5, 10]
    assert cleaned.stations[3].values.tolist() == [10.0, 11.0]
    assert len(cleaned.stations[4].times) == 0
    assert cleaned.dropped == {"missing": 1, "implausible": 2}


def test_the_ratio_that_spells_imply_is_one_event_in_33_minutes_against_two():
    assert spells([11, 12]) == (2, 34.5, 34.5, (1 + 2) / 4)
    assert spells([]) == (0, 0.0, 0.0, 0.0)


def test_slow_series_keep_their_length():
    values = np.arange(25, dtype=float)
    assert held(values).tolist() == [0.0] * 10 + [10.0] * 10 + [20.0] * 5
    assert join(values)[:21].tolist() == values[:21].tolist()
    assert running_mean(values)[9:12].tolist() == [4.5, 5.5, 6.5]
    assert len(running_mean(values)) == len(join(values)) == 25


# --- the experiment on the real temperatures ---


@pytest.fixture(scope="module")
def result(data):
    return load("state-filter-table").run(data, False, lambda _: None)


def test_the_json_has_the_exact_form(result):
    found = json.loads(json.dumps(result.to_json(), allow_nan=False))
    assert list(found) == ["experiment", "parameters", "rows", "claims"]
    assert found["experiment"] == "state-filter-table"
    assert all(
        list(row) == ["setting", "statistic", "paper_sf", "paper_ecf", "sf", "ecf"] for row in found["rows"]
    )
    assert [claim["id"] for claim in found["claims"]] == CLAIMS == list(RULES)
    for claim in found["claims"]:
        assert list(claim) == ["id", "claim", "paper", "ours", "holds", "note"]
        assert claim["holds"] in (True, False)
        assert "Rule:" in claim["claim"]
        assert claim["note"]


def test_the_accounting_adds_up_in_every_setting(result):
    by = {(row["setting"], row["statistic"]): row for row in result.rows}
    for setting in {row["setting"] for row in result.rows}:
        for scheme in ("sf", "ecf"):
            line = {called: by[setting, called][scheme] for called, _, _, _ in LINES.values()}
            assert line["published events"] == 35 * 20 * 30
            assert line["covered events"] == 11 * READINGS
            assert line["source-side pass ratio"] == line["source-side passes"] / 6600
            suppressed = line["duplicates suppressed"]
            assert line["source-side passes"] - suppressed == line["disseminated events"]
            assert line["shared events after suppression"] <= line["shared events before suppression"]
    assert result.claims[-1].holds


def test_the_real_run_equals_the_naive_twins(result):
    shown = result.exhibit
    at_source, delivered = naive_sf(shown.field, shown.setting, shown.temps)
    sf, ecf = shown.schemes
    assert (plain(sf.at_source), plain(sf.delivered)) == (at_source, delivered)
    assert plain(ecf.delivered) == naive_ecf(shown.field, shown.setting, shown.temps)


def test_the_same_rules_give_another_verdict_under_trees(data):
    """The cause is the readings: spells of hours, not of minutes."""
    found = load("state-filter-redwoods").run(data, False, lambda _: None)
    assert found.experiment == "state-filter-redwoods"
    assert {claim.id: claim.holds for claim in found.claims} == dict.fromkeys(RULES, True)
    shown = found.exhibit
    assert plain(shown.schemes[0].delivered) == naive_sf(shown.field, shown.setting, shown.temps)[1]
    assert plain(shown.schemes[1].delivered) == naive_ecf(shown.field, shown.setting, shown.temps)


def test_the_experiment_is_reproducible(result, data):
    assert load("state-filter-table").run(data, False, lambda _: None) == result


def test_the_figure_is_drawn(result, tmp_path):
    pytest.importorskip("matplotlib")
    path = load("state-filter-table").figure(result, tmp_path / "figures")
    assert path.read_bytes().startswith(b"\x89PNG")


# --- the command ---


def test_the_command_prints_one_json_line(data):
    found = CliRunner().invoke(app, ["reproduce", "state-filter-table", "--json", "--data", str(data)])
    assert found.exit_code == 0
    (line,) = found.stdout.splitlines()
    assert [claim["id"] for claim in json.loads(line)["claims"]] == CLAIMS


def test_the_command_lists_failed_claims_and_the_page_shows_its_output(data):
    found = CliRunner().invoke(app, ["reproduce", "state-filter-table", "--data", str(data)])
    assert found.exit_code == 0
    tables, _, _ = found.stdout.partition("\nsource-pass-ratio: ")
    shown = "\n".join(line.rstrip() for line in tables.rstrip().splitlines())
    assert f"```text\n{shown}\n```" in PAGE.read_text(encoding="utf-8")
    assert "accounting: holds" in found.stdout
    assert "delivered: does not hold" in found.stdout


def test_the_command_lists_the_experiments():
    found = CliRunner().invoke(app, ["reproduce", "--list"])
    assert found.exit_code == 0
    assert any(line.startswith("state-filter-table ") for line in found.stdout.splitlines())


def test_an_unknown_experiment_is_reported_with_the_nearest_name():
    with pytest.raises(UsageError, match="Did you mean 'state-filter-table'"):
        find_experiments(["state-filter-tabel"])


def test_missing_data_is_named(tmp_path):
    with pytest.raises(InputError, match=r"needs the data set .*stbernard\.parquet.*--data DIR"):
        load("state-filter-table").run(tmp_path, False, lambda _: None)


def test_the_environment_can_set_the_path_of_the_data(tmp_path, monkeypatch):
    (tmp_path / "a.txt").write_text("x")
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path))
    assert locate("a.txt") == tmp_path / "a.txt"
    with pytest.raises(InputError, match="HOLDFAST_DATA="):
        locate("b.txt")


def test_data_is_searched_by_default_beside_the_checkout_and_the_current_directory(tmp_path, monkeypatch):
    monkeypatch.delenv("HOLDFAST_DATA", raising=False)
    place, work = tmp_path / "shared" / "data", tmp_path / "work"
    place.mkdir(parents=True)
    work.mkdir()
    monkeypatch.chdir(work)
    (place / "a.txt").write_text("x")
    assert locate("a.txt") == place / "a.txt"
    checkout = Path(__file__).resolve().parents[3]
    with pytest.raises(InputError) as missing:
        locate("b.txt")
    assert f"{checkout.parent / 'shared' / 'data'} and in {place}" in str(missing.value)


def test_an_installation_from_a_wheel_is_in_no_checkout(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = tmp_path / "lib" / "python3" / "site-packages" / "holdfast_lab" / "experiments" / "data.py"
    assert list(_bases(module)) == [tmp_path]


def test_a_file_with_other_contents_is_refused(tmp_path):
    folder = tmp_path / "sensorscope-stbernard"
    folder.mkdir()
    (folder / "stbernard.parquet").write_text("no")
    with pytest.raises(InputError, match=r"is not the St\. Bernard data set"):
        load("state-filter-table").run(tmp_path, False, lambda _: None)
