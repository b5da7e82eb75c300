"""The report: a page with the settings and results of a run, and its figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from holdfast.network.motes.report.axis import axes
from holdfast.network.motes.report.curves import curves
from holdfast.network.motes.report.maps import maps
from holdfast.network.motes.report.page import report
from holdfast.network.motes.report.terminal import summary_lines
from holdfast.network.motes.report.timeline import timeline
from holdfast.network.motes.results import StudyResults, collect
from holdfast.network.motes.study import read_text
from support.protocols import scenario_text
from support.scenarios import GRID

TWO_WAYS = (
    GRID
    + "name: nine motes\nwarm-up: 2 s\nfailures: [{kind: kill, at: 10 s, nodes: [4, 5]}]\nseeds: 2\n"
    + "sweep: {routing.kind: [id-grid, flooding], traffic.0.every: [2 s, 1 s, 4 s]}\n"
)


@pytest.fixture(scope="module")
def sweep() -> StudyResults:
    return collect(read_text(TWO_WAYS), map)


@pytest.fixture(scope="module")
def single() -> StudyResults:
    return collect(read_text(GRID), map)


@pytest.fixture(scope="module")
def files(sweep, tmp_path_factory) -> list[Path]:
    return report(sweep, tmp_path_factory.mktemp("report"))


def test_a_report_has_a_page_tables_figures_and_the_scenario(files):
    assert [path.name for path in files] == [
        "report.md", "sweep.png", "timeline.png", "map.png",
        "runs.parquet", "summary.parquet", "nodes.parquet", "timeline.parquet", "scenario.yaml",
    ]  # fmt: skip
    assert all(path.read_bytes()[:4] == b"\x89PNG" for path in files if path.suffix == ".png")
    assert files[-1].read_text() == TWO_WAYS
    page = files[0].read_text()
    assert page.startswith(
        "# nine motes\n\n9 nodes, links disk, mac csma, cc2420, micaz at rest with radio sleep"
    )
    assert "Means of 2 runs (seeds 1, 2) ± half of the 95 % interval" in page
    assert all(f"]({name})" in page for name in ("sweep.png", "timeline.png", "map.png"))


def test_messages_on_the_page_add_up(files):
    page = files[0].read_text()
    table = page.partition("### What became of the messages\n\n")[2].partition("\n\n")[0].splitlines()[2:]
    rows = {cells[1].strip(): [int(c) for c in cells[2:-1]] for cells in (row.split("|") for row in table)}
    sent = rows.pop("sent")
    assert len(sent) == 6
    assert [sum(column) for column in zip(*rows.values(), strict=True)] == sent


def test_many_points_become_rows_of_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.network.motes.report.page.find_spec", lambda name: None)
    many = collect(read_text(f"{GRID}sweep: {{traffic.0.size: [1, 2, 3, 4, 5, 6, 7]}}\n"), map)
    page = report(many, tmp_path)[0].read_text()
    assert re.search(r"(?m)^\| size 7 \| 20 \|", page)


def test_a_report_without_matplotlib_has_no_figures_and_names_the_reason(single, tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.network.motes.report.page.find_spec", lambda name: None)
    files = report(single, tmp_path)
    assert not [path for path in files if path.suffix == ".png"]
    assert "they need matplotlib" in files[0].read_text()


def test_subscriptions_are_shown_on_the_page_and_in_the_terminal(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.network.motes.report.page.find_spec", lambda name: None)
    found = collect(read_text(scenario_text(more="sweep: {protocol.kind: [direct, dds]}\n")), map)
    page = report(found, tmp_path)[0].read_text()
    table = page.partition("### Subscriptions\n\n")[2].partition("\n\n")[0].splitlines()
    assert table[0].startswith("| protocol.kind | subscription | to be told | told | lost | wrong |")
    emitted = [str(run.subscriptions[0]["delivered"]) for run in found.runs]
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in table[2:]]
    assert [row[:5] for row in cells] == [
        ["direct", "Warm", emitted[0], emitted[0], "0"],
        ["dds", "Warm", emitted[1], emitted[1], "0"],
    ]
    *_, heading, direct, dds = summary_lines(found)
    assert heading.startswith("protocol  subscription  to be told")
    assert direct.split()[:4] == ["direct", "Warm", emitted[0], emitted[0]]
    assert dds.split()[:4] == ["dds", "Warm", emitted[1], emitted[1]]


def test_the_protocol_is_among_the_common_settings(tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.network.motes.report.page.find_spec", lambda name: None)
    page = report(collect(read_text(scenario_text("{kind: dds}")), map), tmp_path)[0].read_text()
    assert "routing on-demand, protocol dds, cc2420" in page


# Figures.


def test_the_axis_is_the_parameter_with_numbers_and_curves_are_the_others(sweep, single):
    axis, groups = axes(sweep)
    assert (axis.name, axis.ordered) == ("every (s)", True)
    assert list(axis.at) == [2.0, 1.0, 4.0] * 2
    assert groups == {"routing id-grid": [1, 0, 2], "routing flooding": [4, 3, 5]}, "from left to right"


def test_bars_of_parameters_with_words_stand_side_by_side():
    words = collect(read_text(f"{GRID}sweep: {{mac: [{{kind: csma}}, {{kind: aloha}}]}}\n"), map)
    axis, _ = axes(words)
    assert (list(axis.at), list(axis.ticks), axis.ordered) == ([0.0, 1.0], ["csma", "aloha"], False)


def test_curves_pass_through_the_means(sweep):
    figure = curves(sweep)
    panels = [panel for panel in figure.axes if panel.get_visible()]
    assert [panel.get_title(loc="left") for panel in panels] == [
        "delivered, of what was sent", "delay (ms)",
        "energy per delivery (mJ)", "transmissions per delivery",
    ]  # fmt: skip
    drawn = [
        line for line in panels[1].lines if line.get_label() == "_nolegend_" or len(line.get_ydata()) == 3
    ]
    means = [sweep.summary(point)["delay_ms"].mean for point in (1, 0, 2)]
    assert any(list(line.get_ydata()) == pytest.approx(means) for line in drawn)


def test_a_timeline_shows_each_point_the_warm_up_and_failures(sweep):
    figure = timeline(sweep)
    assert [panel.get_title(loc="left") for panel in figure.axes] == [
        "delivered, of what was sent then", "transmissions in a second",
        "power of all nodes (mW)", "nodes alive",
    ]  # fmt: skip
    assert [text.get_text() for text in figure.axes[0].texts] == ["kill 4, 5"]
    alive = figure.axes[3].lines[0].get_ydata()
    assert (alive[0], alive[-1]) == (9, 7)
    (legend,) = figure.legends
    assert len(legend.get_texts()) == 6


def test_a_map_shows_every_node_in_steps_of_five_percent(single):
    figure = maps(single)
    panel = figure.axes[0]
    shares = sorted(value for some in panel.collections for value in some.get_array().tolist())
    assert shares == sorted(row["relative"] for row in single.runs[0].nodes)
    assert all(abs(share * 20 - round(share * 20)) < 1e-9 for share in shares)
    assert {text.get_text() for text in panel.texts} == set("012345678")
    roles = [text.get_text() for text in panel.get_legend().get_texts()]
    assert roles == ["node", "sends", "receives"]


# The terminal.


def test_one_point_is_shown_as_a_list(single):
    lines = list(summary_lines(single))
    assert lines[0] == "scenario: 1 point, 1 seed; at rest: radio sleep, mcu sleep"
    assert [line.rsplit("  ", 1) for line in lines if line.startswith("network messages delivered, of")] == [
        ["network messages delivered, of those sent         ", "1"]
    ]


def test_several_points_are_shown_as_a_table(sweep):
    lines = list(summary_lines(sweep))
    assert lines[0] == "nine motes: 6 points, 2 seeds; at rest: radio sleep, mcu sleep"
    assert lines[1].split("  ")[0] == "routing"
    assert len(lines) == 8
    assert all("±" in line for line in lines[2:])
