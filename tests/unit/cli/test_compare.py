"""``holdfast compare`` as it is typed."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from holdfast import Event, load, parse, replay
from holdfast.cli import app, comparison
from holdfast.errors import HoldfastError
from holdfast.model.instant import SECOND, show_instant

FROST = "topic T (value float)\nstate Frost on T [value < 0; value > 1] per source\n"
NETWORK = """
nodes: {kind: grid, rows: 3, columns: 3, spacing: 10 m}
links: {kind: disk, range: 16 m}
routing: {kind: id-grid}
energy: {platform: telosb, rest: {radio: sleep, mcu: sleep}}
subscribers:
  - {node: 4, to: Frost}
warm-up: 30 s
duration: 2 h
sweep:
  protocol: [{kind: direct}, {kind: dds, mode: HyTDDS}]
"""
TWO_NODES = NETWORK.replace("rows: 3, columns: 3", "rows: 1, columns: 2").replace("node: 4", "node: 1")
SOURCES = ["attic", "barn", "cellar"]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Three places that freeze for ten minutes, one after the other, and again; a reading a minute."""
    monkeypatch.chdir(tmp_path)
    rows = ["time,source,value"]
    for minute in range(60):
        for k, source in enumerate(SOURCES):
            cold = (minute - 5 * k) % 30 in range(10, 20)
            rows.append(f"2026-02-03T01:{minute:02}:{7 * k:02}Z,{source},{-2 if cold else 3}")
    (tmp_path / "history.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "frost.hf").write_text(FROST)
    (tmp_path / "net.yaml").write_text(NETWORK)
    return tmp_path


def compare(*options: str) -> dict[str, dict]:
    ran = CliRunner().invoke(
        app, ["compare", "frost.hf", "--input", "history.csv", "--network", "net.yaml", "--json", *options]
    )
    if ran.exception is not None:
        raise ran.exception
    return {world["world"]: world for world in json.loads(ran.stdout)["worlds"]}


def test_an_ideal_network_equals_a_replay_and_a_good_one_delivers_everything(home):
    ideal = [
        (one.scope, show_instant(one.start), None if one.end is None else show_instant(one.end))
        for one in replay(load("frost.hf"), "history.csv").intervals()
    ]
    comparison = compare()
    assert list(comparison) == ["live, up to 30 s late", "direct", "dds mode=HyTDDS"]
    for world in comparison.values():
        assert {(each["scope"], each["start"], each["end"]) for each in world["each"]} == set(ideal)
        assert world["told"] == world["alarms"] == len(ideal) == 6
        assert not world["made_up"]
    assert comparison["dds mode=HyTDDS"]["joules"] < comparison["direct"]["joules"]


def test_alarms_of_a_dead_node_are_lost_and_listed(home):
    (home / "net.yaml").write_text(
        NETWORK.replace(
            "warm-up: 30 s", "warm-up: 30 s\nfailures: [{kind: kill, at: 25 min, nodes: [0]}]"
        )  # it plays the first source, whose second frost begins later
    )
    comparison = compare()
    lost = [each for each in comparison["direct"]["each"] if each["fate"] == "lost"]
    assert [(each["scope"], each["start"]) for each in lost] == [("attic", "2026-02-03T01:40:00.000000Z")]
    ran = CliRunner().invoke(
        app, ["compare", "frost.hf", "--input", "history.csv", "--network", "net.yaml", "--figure", "w.png"]
    )
    assert "Frost attic 2026-02-03T01:40:00.000000Z: lost (direct, seed 1)" in ran.stdout
    assert "saves" in ran.stdout
    assert (home / "w.png").stat().st_size > 5_000


def test_late_readings_shift_or_double_notifications_of_a_live_engine(home):
    late = compare("--lateness", "20 min", "--seed", "2")["live, up to 20 min late"]
    assert late["told"] + late["shifted"] + late["merged"] + late["lost"] == 6
    assert late["told"] < 6 or late["doubled"] or late["false"], "twenty minutes of disorder change something"
    assert compare("--lateness", "0 s")["live, in time"]["told"] == 6


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({"history.csv": "time,source,value\n2026-02-03T01:00Z,a,3\n"}, (), "the history is too short"),
        ({"net.yaml": NETWORK.replace("  - {node: 4, to: Frost}", "  []")}, (), "nobody in this network"),
        ({"net.yaml": TWO_NODES}, (), "for 2 of 3 sources of the history, such as 'barn'"),
        ({"net.yaml": NETWORK.replace("to: Frost", "to: Fros")}, (), "the definition has no 'Fros'"),
        ({"frost.hf": FROST.replace("value < 0", "value < -90")}, (), "no condition holds in this history"),
        ({}, ("--lateness", "soon"), "--lateness soon"),
        ({}, ("--figure", "worlds.foo"), "name it .png, .svg or .pdf"),
        ({"net.yaml": NETWORK.replace("to: Frost", "to: T")}, (), "wants to know of a condition"),
        ({"frost.hf": FROST.replace("per source", "per place")}, (), "are names of places"),
        ({"frost.hf": FROST + 'mute Frost during "Sat 00:00 – Mon 06:00" in "UTC"\n'}, (), "do not mute"),
    ],
)  # fmt: skip
def test_impossible_comparisons_are_refused(home, change, options, message):
    for name, text in change.items():
        (home / name).write_text(text)
    with pytest.raises(HoldfastError, match=message):
        compare(*options)


def test_corrected_notifications_are_compared_in_their_final_form():
    def lost(delivery):
        text = FROST.replace("per source", f"per source ordered 1 s {delivery}")
        events = [Event("T", i * SECOND, "s", {"value": -2.0 if i % 7 < 3 else 3.0}, i) for i in range(200)]
        ideal = comparison.ideal(parse(text), events)
        live = comparison.live(parse(text), events, ideal, 20 * SECOND, 1)
        return live.against[0].counts(), live.late

    counts, late = lost("late correct 1 min")
    assert (counts["told"], late) == (counts["alarms"], 0)
    assert counts["doubled"] == counts["false"] == counts["unended"] == 0
    counts, late = lost("late drop")
    assert counts["told"] < counts["alarms"]
    assert late
