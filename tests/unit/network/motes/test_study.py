"""A file asks for one network or, with a sweep, for many."""

from __future__ import annotations

import pytest

from holdfast.network.motes.study import read, read_text
from support.scenarios import GRID


def test_a_study_without_a_sweep_has_one_point():
    study = read_text(GRID)
    assert [point.settings for point in study.points] == [{}]
    assert study.parameters == ()


def test_a_sweep_makes_every_combination():
    study = read_text(f"{GRID}sweep:\n  traffic.0.every: [1 s, 2 s]\n  routing.kind: [id-grid, flooding]\n")
    assert [tuple(point.settings.values()) for point in study.points] == [
        ("1 s", "id-grid"), ("1 s", "flooding"), ("2 s", "id-grid"), ("2 s", "flooding"),
    ]  # fmt: skip
    assert [point.case.scenario.traffic[0].every for point in study.points] == [
        10**6,
        10**6,
        2 * 10**6,
        2 * 10**6,
    ]
    assert study.parameters == ("traffic.0.every", "routing.kind")


def test_a_list_makes_exactly_its_points():
    study = read_text(
        GRID.replace("to: 8", "to: 3")
        + "sweep:\n  - {nodes.rows: 2, nodes.columns: 2}\n  - {nodes.rows: 4, nodes.columns: 3}\n"
    )
    assert [len(point.case.topology_for(1)) for point in study.points] == [4, 12]


def test_a_sweep_may_change_a_whole_section_or_add_one():
    study = read_text(
        f"{GRID}sweep:\n  mac: [{{kind: csma, retries: 0}}, {{kind: aloha}}]\n  warm-up: [0 s, 1 s]\n"
    )
    assert [type(point.case.scenario.mac).__name__ for point in study.points] == [
        "Csma",
        "Csma",
        "Aloha",
        "Aloha",
    ]
    assert [point.case.scenario.warm_up for point in study.points] == [0, 10**6, 0, 10**6]


@pytest.mark.parametrize(("given", "seeds"), [("3", (1, 2, 3)), ("[7]", (7,)), ("[3, -1]", (3, -1))])
def test_seeds_are_a_number_or_a_list(given, seeds):
    assert read_text(f"{GRID}seeds: {given}\n").seeds == seeds


def test_the_name_of_a_study_defaults_to_that_of_its_file(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(GRID)
    assert read(path).name == "small"
    path.write_text(f"{GRID}name: nine motes\n")
    assert read(path).name == "nine motes"


def test_files_of_a_scenario_are_found_beside_it(tmp_path, monkeypatch):
    (tmp_path / "nodes.csv").write_text("node,x,y\ngate,0,0\nroof,5,0\n")
    (tmp_path / "links.csv").write_text("sender,receiver,quality\ngate,roof,1\nroof,gate,1\n")
    (tmp_path / "mote.toml").write_text(
        "radio = {receive = 10, transmit = [[0, 9]], idle = 1, sleep = 0.1}\n"
        "mcu = {active = 5, idle = 1, sleep = 0.1}\n"
    )
    path = tmp_path / "pair.yaml"
    path.write_text(
        "nodes: {kind: csv, file: nodes.csv, links: links.csv}\nlinks: {kind: measured}\n"
        "energy: {platform: mote.toml}\ntraffic: [{from: gate, to: roof, every: 1 s}]\nduration: 5 s\n"
    )
    monkeypatch.chdir("/")
    case = read(path).points[0].case
    assert case.platform.name == "mote"
    assert case.topology is not None
    assert case.topology.quality == {(0, 1): 1.0, (1, 0): 1.0}


def test_random_positions_depend_on_the_seed_unless_the_nodes_have_their_own():
    nodes = "nodes: {kind: uniform, count: 8, width: 30 m, height: 30 m, reach: 25 m}"
    text = f"{nodes}\nrouting: {{kind: flooding}}\nduration: 5 s\nseeds: 2\n"
    case = read_text(text).points[0].case
    assert case.topology_for(1) != case.topology_for(2)
    case = read_text(text.replace("25 m", "25 m, seed: 4")).points[0].case
    assert case.topology_for(1) == case.topology_for(2)
