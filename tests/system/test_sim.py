"""``holdfast sim`` as typed: its output, its files, and its error messages."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from holdfast.network.motes.study import label
from support.protocols import scenario_text
from support.scenarios import GRID

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").rglob("*.yaml"))
SWEPT = f"{GRID}name: nine motes\nseeds: 2\nsweep: {{traffic.0.every: [1 s, 2 s]}}\n"


@pytest.fixture
def scenario(tmp_path) -> Path:
    path = tmp_path / "nine.yaml"
    path.write_text(GRID)
    return path


def test_a_scenario_runs_and_prints_its_results(holdfast, scenario):
    ran = holdfast("sim", scenario)
    assert ran.status == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0] == "nine: 1 point, 1 seed; at rest: radio sleep, mcu sleep"
    assert [line.split() for line in lines if line.startswith("hops of network messages")] == [
        ["hops", "of", "network", "messages", "2"]
    ]


def test_the_example_scenario_can_be_copied_and_runs(holdfast, tmp_path):
    example = holdfast("sim", "--example").out
    shorter = yaml.safe_load(example) | {"duration": "30 s", "seeds": 1}
    for failure in shorter["failures"]:
        failure["at"] = "25 s"
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(shorter, sort_keys=False))
    ran = holdfast("sim", path)
    assert ran.status == 0, ran.err
    assert len(ran.out.splitlines()) == 2 + 6
    assert "every  routing" in ran.out


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_of_a_network_is_valid(path, data):
    from holdfast.network.motes.study import read

    assert read(path).points


def test_equal_scenarios_print_equal_results(holdfast, tmp_path):
    path = tmp_path / "swept.yaml"
    path.write_text(SWEPT)
    first, second = (holdfast("sim", path, "--json") for _ in range(2))
    assert first.status == 0, first.err
    assert first.out == second.out
    found = json.loads(first.out)
    assert [run["seed"] for run in found["runs"]] == [1, 2, 1, 2]


def test_the_seed_can_be_given_as_an_option(holdfast, scenario):
    one, two = (json.loads(holdfast("sim", scenario, "--json", "--seed", seed).out) for seed in ("5", "6"))
    assert (one["seeds"], two["seeds"]) == ([5], [6])
    assert one["runs"][0]["delay_ms"] != two["runs"][0]["delay_ms"]


def test_the_out_option_writes_a_report_figures_tables_and_optionally_a_trace(holdfast, tmp_path):
    path, out = tmp_path / "traced.yaml", tmp_path / "out"
    path.write_text(f"{GRID}trace: true\n")
    ran = holdfast("sim", path, "--out", out)
    assert ran.status == 0, ran.err
    assert {p.name for p in out.iterdir()} == {
        "report.md", "timeline.png", "map.png", "scenario.yaml", "trace",
        "runs.parquet", "summary.parquet", "nodes.parquet", "timeline.parquet",
    }  # fmt: skip
    frames = pq.read_table(out / "trace" / "frames.parquet").to_pylist()
    assert sum(row["what"] == "transmit" and row["kind"] == "data" for row in frames) == 40
    assert pq.read_table(out / "trace" / "energy.parquet").num_rows > 0
    assert str(out / "report.md") in ran.err


def test_conservation_can_be_checked_from_outside(holdfast, tmp_path):
    """Nodes die in the middle, links break, the network is cut in two: still nothing gets lost unseen."""
    path = tmp_path / "chaos.yaml"
    busy = GRID.replace("from: 0", "from: all").replace("20 s", "60 s")
    path.write_text(f"""{busy}
seeds: [4]
failures:
  - {{kind: kill, at: 20 s, nodes: [4, 0]}}
  - {{kind: cut, at: 21 s, links: [[5, 8], [7, 8]]}}
  - {{kind: restart, at: 30 s, nodes: [4]}}
  - {{kind: partition, at: 40 s, groups: [[6, 7, 8]]}}
  - {{kind: heal, at: 45 s}}
sweep: {{routing.kind: [id-grid, geographic, flooding, on-demand, tree]}}
""")
    ran = holdfast("sim", path, "--json")
    assert ran.status == 0, ran.err
    for run in json.loads(ran.out)["runs"]:
        assert run["sent"] == run["delivered"] + sum(run["dropped"].values()) + run["in_flight"]
        assert "unaccounted" not in run["dropped"]
        assert 0.3 < run["delivery_ratio"] < 1.0, "much was lost, and much came through"


@pytest.mark.parametrize("side", [2, 4, 6])
def test_hops_on_grids_are_the_larger_of_rows_and_columns(holdfast, tmp_path, side):
    """Over the real MAC, from the first corner to all other nodes [D53]."""
    others = list(range(1, side * side))
    path = tmp_path / "grid.yaml"
    path.write_text(
        GRID.replace("rows: 3, columns: 3", f"rows: {side}, columns: {side}")
        .replace("to: 8", f"to: {others}")
        .replace("every: 1 s", "every: 10 s")
    )
    (run,) = json.loads(holdfast("sim", path, "--json").out)["runs"]
    assert run["delivery_ratio"] == 1.0
    assert run["hops"] == pytest.approx(sum(max(divmod(n, side)) for n in others) / len(others))


def test_spark_prints_equal_results(holdfast, tmp_path):
    from support.runtimes import session  # for this test alone: the others need no Spark

    session()
    path = tmp_path / "swept.yaml"
    path.write_text(SWEPT)
    assert holdfast("sim", path, "--engine", "spark").out == holdfast("sim", path).out


# Subscriptions.


AN_HOUR = {
    "every: 3 min": "every: 90 s",
    "period: 4 h": "period: 1 h",
    "lag: 30 min": "lag: 450 s",
    "stop: 235 min": "stop: 55 min",
    "duration: 4 h": "duration: 1 h",
}


@pytest.mark.parametrize(
    ("changes", "frosts", "times"),
    [
        pytest.param(AN_HOUR, 25, 12, id="an hour"),
        pytest.param({}, 33, 15, id="the night", marks=pytest.mark.soak),
    ],
)
def test_the_vineyard_example_shows_the_cost_of_frost_alarms(
    changes: Mapping[str, str], frosts: int, times: int, holdfast, tmp_path
):
    """The example with its definition: all protocols give the same notifications, at very different cost."""
    examples, out = ROOT / "examples" / "networks", tmp_path / "out"
    shutil.copy(examples / "vineyard.hf", tmp_path)
    scenario = (examples / "vineyard.yaml").read_text()
    for whole, short in changes.items():
        assert whole in scenario
        scenario = scenario.replace(whole, short)
    (tmp_path / "vineyard.yaml").write_text(scenario)
    ran = holdfast("sim", tmp_path / "vineyard.yaml", "--json", "--out", out)
    assert ran.status == 0, ran.err
    found = json.loads(ran.out)
    emitted = {
        label(point["settings"]["protocol"]): point["subscriptions"]["Frost"] for point in found["points"]
    }
    assert {name: each["delivered"]["mean"] for name, each in emitted.items()} == dict.fromkeys(
        emitted, frosts
    )
    assert all(
        each["expected"]["mean"] == frosts and each["unexpected"]["mean"] == 0 for each in emitted.values()
    )
    joules = {name: each["energy_mj"]["mean"] for name, each in emitted.items()}
    assert joules["dds mode=HyTDDS"] < joules["cbps"] / 3 < joules["direct"] / times
    messages = {name: each["messages"]["mean"] for name, each in emitted.items()}
    assert messages["dds mode=HyTDDS"] < messages["cbps"] < messages["direct"]
    assert "protocol" not in found["runs"][0]
    assert found["runs"][2]["protocol"]["brokers"] == 25
    rows = pq.read_table(out / "subscriptions.parquet").to_pylist()
    assert [row["subscription"] for row in rows] == ["Frost"] * 3
    assert "### Subscriptions" in (out / "report.md").read_text()


def test_a_definition_in_the_scenario_runs_and_prints_its_results(holdfast, tmp_path):
    path = tmp_path / "warm.yaml"
    path.write_text(scenario_text("{kind: cbps}", more="seeds: 2\n"))
    ran = holdfast("sim", path)
    assert ran.status == 0, ran.err
    heading, row = ran.out.splitlines()[-2:]
    assert heading.split() == [
        "subscription",
        "to",
        "be",
        "told",
        "told",
        "lost",
        "wrong",
        "delay",
        "(ms)",
        "messages",
        "energy",
        "(mJ)",
    ]
    assert row.split()[0] == "Warm"
    assert " 0 ± 0 " in row, "nothing is lost"


def test_readings_can_come_from_a_file_beside_the_scenario(holdfast, tmp_path):
    minutes = [
        f"2024-05-01T08:{i:02}:00Z,{room},{0.2 + 0.6 * (i % 5 > 2)}" for i in range(9) for room in "abc"
    ]
    (tmp_path / "rooms.csv").write_text("\n".join(["ts,room,co2", *minutes]) + "\n")
    path = tmp_path / "warm.yaml"
    recorded = "recorded: {file: rooms.csv, map: {time: ts, source: room, value: co2}}"
    path.write_text(
        scenario_text("{kind: dds}")
        .replace("readings: {value: {kind: uniform}}", recorded)
        .replace("every: 2 s", "every: 1 min\n    phase: together")
        .replace("stop: 80 s", "stop: 10 min")
        .replace("duration: 90 s", "duration: 10 min")
    )
    ran = holdfast("sim", path, "--json")
    assert ran.status == 0, ran.err
    (row,) = json.loads(ran.out)["runs"][0]["subscriptions"]
    assert (row["readings"], row["expected"], row["delivered"]) == (30, 9, 9)


# Mistakes.


def test_an_error_is_reported_with_file_line_and_column(holdfast, scenario):
    scenario.write_text(GRID.replace("id-grid", "id-gird"))
    ran = holdfast("sim", scenario)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        f"error: {scenario}:3:17: there is no such choice as 'id-gird'\n"
        "    routing: {kind: id-gird}\n"
        "                    ^^^^^^^\n"
        "  Did you mean 'id-grid'?\n"
    )


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "which scenario?  'holdfast sim --example > my.yaml' makes one to begin with"),
        (["nowhere.yaml"], 1, "nowhere.yaml: No such file or directory"),
        (["{}", "--engine", "sprak"], 2, "Did you mean 'spark'?"),
        (["{}", "--master", "local[2]"], 2, "--master is Spark's: add --engine spark"),
        (["{}", "--out", "{}"], 2, "this is a file; name a folder"),
    ],
)
def test_wrong_use_of_sim_is_reported(holdfast, scenario, arguments, status, message):
    ran = holdfast("sim", *(str(scenario) if word == "{}" else word for word in arguments))
    assert ran.status == status
    assert message in ran.err


def test_a_trace_requires_an_output_folder(holdfast, scenario):
    scenario.write_text(f"{GRID}trace: true\n")
    ran = holdfast("sim", scenario)
    assert ran.status == 2
    assert "wants a trace: say with --out DIR where it goes" in ran.err
