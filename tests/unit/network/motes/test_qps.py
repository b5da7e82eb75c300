"""Quad-PubSub on motes: regions, roles, and what nodes do when one of them dies."""

from __future__ import annotations

import pytest

from holdfast.errors import DefinitionError
from holdfast.network.motes.run import SimulationRun
from holdfast.network.motes.study import read_text
from support.protocols import scenario_text, underlined_text


def text(protocol: str = "{kind: qps, levels: 2}", to: str = "Warm", more: str = "") -> str:
    """Subscribers ask when nodes know their neighbours."""
    return scenario_text(protocol, f"{to}, start: 10 s", more).replace("on-demand", "geographic")


def made(text: str, seed: int = 1) -> SimulationRun:
    return SimulationRun(read_text(text).points[0].case, seed)


def test_subscribers_are_notified_through_brokers_on_nodes():
    run = made(text())
    (row,) = run.finish().subscriptions
    assert row["expected"] == row["delivered"] > 10
    assert row["energy_mj"] > 0
    assert {"Subscribe", "Publication", "Here", "Tables"} <= run.account.messages.keys()


def test_only_events_of_the_region_are_notified():
    run = made(text(to="T, region: [[0 m, 0 m], [5 m, 20 m]]"))  # of three publishers only node 0
    outcome = run.finish()
    (row,) = outcome.subscriptions
    assert row["expected"] == row["delivered"] == row["readings"] == 30
    assert outcome.protocol["links"] > 0


def test_a_forwarding_node_that_dies_is_replaced():
    roles = made(text()).finish().protocol["roles"]
    leaf = roles["T 2:1,0"]
    dies = f"failures:\n  - {{kind: kill, at: 50 s, nodes: [{leaf}]}}\n"
    protocol = "{kind: qps, levels: 2, renewal: 5 s, roles: {check: 10 s, patience: 2 s}}"
    run = made(text(protocol, "T", dies).replace("from: [0, 2, 8]", "from: [2]"))
    outcome = run.finish()
    assert outcome.protocol["roles"]["T 2:1,0"] != leaf
    (row,) = outcome.subscriptions
    late = [d for e in run.account.expected.values() for d in e.deliveries.values() if d.event.time > 65e6]
    assert late
    assert all(d.arrived is not None for d in late)
    assert row["unexpected"] == 0


def test_equal_seeds_give_equal_runs():
    assert made(text()).finish() == made(text()).finish()


@pytest.mark.parametrize(
    ("wrong", "mark", "why"),
    [
        (text("{kind: qps, epsilon: 0.5}"), "0.5", "ε is 0.5; it is 1"),
        (text("{kind: qps, side: 5 m}"), "5 m", "nodes stand 20 m apart"),
        (text("{kind: qps, levels: 12}"), "12", "<= 10"),
        (text(to="T, region: [[0 m, 0 m], [90 m, 9 m]]"), "- {node: 4", "not all in space"),
        (text(to="T, region: [[3 m, 0 m], [3 m, 9 m]]"), "- {node: 4", "is empty"),
        (text(to="T, region: [[9 m, 9 m], [3 m, 3 m]]"), "- {node: 4", "first corner is the lower left"),
        (text(to="Tt"), "Tt", "Did you mean"),
        (text("{kind: direct}", "T, region: [[0 m, 0 m], [9 m, 9 m]]"), "[[0 m, 0 m]", "knows no places"),
        (text().replace("geographic", "flooding"), "flooding", "only geographic routing leads to a point"),
    ],
)
def test_impossible_settings_are_reported_with_their_position(wrong, mark, why):
    with pytest.raises(DefinitionError, match=why) as error:
        read_text(wrong)
    assert mark in underlined_text(str(error.value)) or mark in str(error.value)


def test_the_space_contains_all_nodes_despite_rounding():
    """A layout where the least coordinate and the extent add up to less than the greatest coordinate."""
    text = """\
nodes: {kind: uniform, count: 40, width: 100 m, height: 100 m, reach: 25 m}
links: {kind: disk, range: 25 m}
routing: {kind: geographic}
energy: {rest: {radio: sleep, mcu: sleep}}
definition: |
  topic T (value float)
protocol: {kind: qps}
publishers:
  - {topic: T, from: {any: 1}, every: 10 s, start: 60 s, readings: {value: {kind: uniform}}}
subscribers:
  - {node: 3, to: T, start: 20 s}
duration: 30 s
"""
    run = SimulationRun(read_text(text).points[0].case, 90)
    tree = run.family.deployment.tree
    assert all(tree.inside(place) for place in run.plan.topology.positions)
