"""The placement of components in a network, and the cost of every choice."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from holdfast.cli import app
from holdfast.cli.hosting import draw_placement, explain
from holdfast.definition.check import check
from holdfast.definition.parse import parse
from holdfast.errors import UsageError
from holdfast.network.motes.study import read_text

NETWORK = """
nodes: {kind: grid, rows: 4, columns: 4, spacing: 10 m}
links: {kind: disk, range: 15 m}
definition: |
  topic T (value float)
publishers:
  - {topic: T, from: all, every: 60 s, readings: {value: {kind: uniform}}}
subscribers:
  - {node: 15, to: T}
duration: 60 s
"""
TOPIC = "topic T (value float)\n"


def found(text):
    return explain(check(parse(TOPIC + text)), read_text(NETWORK).points[0].case)


def plan(text):
    return found(text).text


def test_the_picture_has_a_step_for_each_component_with_upstreams_first(tmp_path):
    pytest.importorskip("matplotlib")
    text = (
        TOPIC + "state Hot A = T each location enter A.value > 5 exit A.value < 3\n"
        "state Alarm A = Hot any location enter A.valid exit !A.valid\n"
    )
    figure = draw_placement(found(text.removeprefix(TOPIC)))
    assert [panel.get_title(loc="left") for panel in figure.axes] == [
        "1. Hot: cut by advertisements",
        "2. Alarm: near its inputs",
    ]
    (tmp_path / "app.hf").write_text(text)
    (tmp_path / "net.yaml").write_text(NETWORK)
    words = ["explain", str(tmp_path / "app.hf"), "--figure", str(tmp_path / "map.png")]
    assert CliRunner().invoke(app, [*words, "--network", str(tmp_path / "net.yaml")]).exit_code == 0
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match="name one with --network"):
        CliRunner().invoke(app, words, catch_exceptions=False)


def test_a_component_keyed_by_place_is_placed_at_its_sensors():
    output = plan("state Hot A = T each location enter A.value > 5 exit A.value < 3")
    assert "→ cut by advertisements" in output
    assert "node 0: only 0 speaks of this place: no message is needed" in output
    assert "at the subscriber" in output
    assert " J a day" in output


def test_only_sensors_of_the_region_are_inputs_and_counts_are_joined():
    output = plan(
        "state Fire A = T all location within [(0, 0), (15, 15)] enter A.value > 5 exit A.value < 3"
    )
    assert "over T of 4 publishers" in output
    joined, apart = (
        _messages(plan(f"state Fire A = T {how} enter A.value > 5 exit A.value < 3"))
        for how in ("any location", "each location")
    )
    assert joined["cut by advertisements"] > 10 * apart["cut by advertisements"]
    assert joined["at the subscriber"] == apart["at the subscriber"]


def _messages(output):
    lines = [line[2:].split(": ") for line in output.splitlines() if " J a day" in line]
    return {name: int(rest.split(" ")[0].replace(",", "")) for name, rest in lines}


def test_components_over_components_come_after_their_upstreams():
    output = plan(
        "state Hot A = T each location enter A.value > 5 exit A.value < 3\n"
        "state Alarm A = Hot any location enter A.valid exit !A.valid"
    )
    assert output.index("Hot, over T") < output.index("Alarm, over Hot of 15 publishers")


def test_a_topic_that_no_node_publishes_is_refused():
    with pytest.raises(UsageError, match="'U', which nobody publishes in this network"):
        plan("topic U (value float) state Hot A = U each location enter A.value > 5 exit true")
    with pytest.raises(UsageError, match="has no component"):
        plan("filter F on T where value > 5")


def test_only_upstream_components_within_the_region_are_inputs():
    hot = "state Hot A = T each location enter A.value > 5 exit A.value < 3\n"
    output = plan(
        hot + "state Fire A = Hot all location within [(0, 0), (10, 10)]"
        " enter A.valid && A.status == ingress exit A.valid && A.status == egress"
    )
    assert "Hot, over T of 15 publishers" in output
    assert "Fire, over Hot of 4 publishers" in output


def test_the_picture_marks_chosen_nodes_and_subscribers():
    pytest.importorskip("matplotlib")
    far = found("state Hot A = T all location enter A.value > 5 exit A.value < 3")
    (panel,) = draw_placement(far).axes
    points = {each.get_label(): each.get_offsets().tolist() for each in panel.collections}
    assert points["subscribes"] == [[30.0, 30.0]]
    assert all(ring in [list(place) for place in far.places] for ring in points["hosts"])
