"""``holdfast explain --network --input`` as it is typed."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from holdfast.cli import app
from holdfast.errors import HoldfastError
from holdfast.network.estimate import rehearsal

FROST = "topic T (value float)\nstate Frost on T [value < 0; value > 1] per source\n"
NETWORK = """
nodes: {kind: grid, rows: 3, columns: 3, spacing: 10 m}
links: {kind: disk, range: 16 m}
routing: {kind: id-grid}
energy: {platform: telosb, battery: 100 J, mains: [4], rest: {radio: sleep, mcu: sleep}}
subscribers: [{node: 4, to: Frost}]
warm-up: 30 s
duration: 2 h
"""
WAYS = {
    "everything to the sink", "filters at the source", "brokers, nested scopes", "DDS, brokered",
    "DDS, brokerless", "DDS, hybrid", "DDS, energy-aware", "Quad-PubSub",
}  # fmt: skip


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Three places that freeze for ten minutes, one after the other; a reading a minute.

    The output of each protocol is tried for a short time only: ``estimate`` tests its precision.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rehearsal, "MESSAGES", 100)
    monkeypatch.setattr(rehearsal, "FRAMES", 1000)
    rows = ["time,source,value"]
    for minute in range(60):
        for k, source in enumerate(("attic", "barn", "cellar")):
            cold = (minute - 5 * k) % 30 in range(10, 20)
            rows.append(f"2026-02-03T01:{minute:02}:{7 * k:02}Z,{source},{-2 if cold else 3}")
    (tmp_path / "history.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "frost.hf").write_text(FROST)
    (tmp_path / "net.yaml").write_text(NETWORK)
    return tmp_path


def explain(*options: str) -> str:
    words = ["explain", "frost.hf", "--network", "net.yaml", "--input", "history.csv", *options]
    ran = CliRunner().invoke(app, words)
    if isinstance(ran.exception, HoldfastError):
        raise ran.exception
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def test_every_strategy_is_shown_with_its_nodes_and_the_cost_of_a_subscription(home):
    found = json.loads(explain("--json", "--must-last", "40 d", "--figure", "map.png"))
    ways = {way["way"]: way for way in found["ways"]}
    assert set(ways) == WAYS
    for way in ways.values():
        assert len(way["nodes"]) == 9
        assert sum(node["joules"] for node in way["nodes"]) == pytest.approx(way["joules"])
        (frost,) = way["subscriptions"]
        assert (frost["turns"], frost["told"]) == (11, pytest.approx(1.0))
        assert way["joules"] == pytest.approx(9 * way["rest"] + frost["adds_joules"] + way["beacons"])
    assert ways["filters at the source"]["joules"] < ways["everything to the sink"]["joules"]
    assert ways["Quad-PubSub"]["note"] == "over geographic routing"
    assert all(plan["days"] >= 40 for plan in found["plans"])
    assert (home / "map.png").stat().st_size > 10_000


def test_plans_that_last_are_listed_and_otherwise_the_nearest(home):
    (home / "net.yaml").write_text(NETWORK.replace("kind: id-grid", "kind: tree"))
    text = explain("--must-last", "400 d")
    assert "DDS, hybrid: cannot be here: a tree leads to its sinks only: 4" in text
    assert "nothing that can be planned lasts 400 d; nearest: " in text
    assert "a node to which nothing happens lasts 63." in text
    assert "to last 20 d:\n  1. filters at the source: " in explain("--must-last", "20 d")


def test_two_subscriptions_have_their_own_costs_and_one_can_be_selected(home):
    (home / "frost.hf").write_text(FROST + "state Mild on T [value > 2; value < 1] per source\n")
    (home / "net.yaml").write_text(NETWORK.replace(", to: Frost", ""))
    both = {way["way"]: way for way in json.loads(explain("--json"))["ways"]}
    (source,) = [way for name, way in both.items() if name == "everything to the sink"]
    assert [one["adds_joules"] for one in source["subscriptions"]] == [0.0, 0.0], "readings travel anyway"
    one = json.loads(explain("--json", "--subscription", "Mild"))["ways"]
    assert {each["subscription"] for way in one for each in way["subscriptions"]} == {"Mild"}
    with pytest.raises(HoldfastError, match="--subscription Frots: nobody in this network wants that"):
        explain("--subscription", "Frots")


def test_parameters_apply_in_the_network_and_a_short_history_is_reported(home):
    (home / "frost.hf").write_text("let cold = 0\n" + FROST.replace("value < 0", "value < cold"))
    words = ["explain", "frost.hf", "--network", "net.yaml", "--input", "history.csv", "--json"]
    found = [CliRunner().invoke(app, [*words, *let]) for let in ((), ("--let", "cold=-5"))]
    assert all("warning: the history covers 1 h: every hour of a day is taken" in one.stderr for one in found)
    turns = [json.loads(one.stdout)["ways"][0]["subscriptions"][0]["turns"] for one in found]
    assert turns == [11, 0], "it is never so cold"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--input", "history.csv"], "name one with --network"),
        (["--network", "net.yaml", "--must-last", "3 d"], "say by which history, with --input"),
        (["--network", "net.yaml", "--json"], "say by which history, with --input"),
        (["--network", "net.yaml", "--input", "short.csv"], "the history is too short"),
        (["--network", "net.yaml", "--input", "few.csv"], "no source has more than 9 readings"),
        (["--network", "mains.yaml", "--input", "history.csv", "--must-last", "9 d"], "no battery of this"),
        (["--network", "net.yaml", "--input", "history.csv", "--must-last", "long"], "--must-last long"),
        (["--network", "net.yaml", "--input", "history.csv", "--must-last", "0 d"], "every network lasts"),
        (["--network", "net.yaml", "--input", "history.csv", "--figure", "map.txt"], "name it .png"),
        (["--network", "deaf.yaml", "--input", "history.csv"], "nobody in this network wants to know"),
    ],
)
def test_invalid_options_are_refused(home, words, message):
    (home / "short.csv").write_text("time,source,value\n2026-02-03T01:00:00Z,attic,1\n")
    (home / "few.csv").write_text("\n".join((home / "history.csv").read_text().splitlines()[:28]))
    (home / "mains.yaml").write_text(NETWORK.replace("battery: 100 J, ", ""))
    (home / "deaf.yaml").write_text(NETWORK.replace("subscribers: [{node: 4, to: Frost}]\n", ""))
    ran = CliRunner().invoke(app, ["explain", "frost.hf", *words])
    assert ran.exit_code != 0
    assert message in f"{ran.exception} {ran.output}"
