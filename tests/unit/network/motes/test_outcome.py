"""The measures of a run: what subscribers received, and what the network carried for it."""

from __future__ import annotations

import pytest

from holdfast.network.motes.report.terminal import summary_lines
from holdfast.network.motes.results import collect
from holdfast.network.motes.run import SimulationRun
from holdfast.network.motes.study import read_text
from support.protocols import scenario_text
from support.scenarios import GRID

PROTOCOLS = {
    "direct": "{kind: direct}",
    "dds": "{kind: dds, mode: HyTDDS}",
    "cbps": "{kind: cbps}",
    "qps": "{kind: qps, levels: 2}",
}


def text(protocol: str, to: str = "Warm") -> str:
    return scenario_text(PROTOCOLS[protocol], f"{to}, start: 10 s").replace("on-demand", "geographic")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_packets_per_joule_count_what_subscribers_received_and_not_the_messages_between_nodes(protocol):
    outcome = SimulationRun(read_text(text(protocol)).points[0].case, 1).finish()
    (row,), measures = outcome.subscriptions, outcome.measures
    assert measures["expected"] == measures["received"] == row["delivered"] > 10
    assert measures["received_ratio"] == 1.0
    assert measures["received_delay_ms"] == row["delay_ms"]
    assert measures["packets_per_joule"] == pytest.approx(row["delivered"] / (measures["energy_mj"] / 1e3))
    assert measures["energy_per_delivery_mj"] == pytest.approx(measures["energy_mj"] / row["delivered"])
    assert measures["transmissions_per_delivery"] == measures["transmissions"] / row["delivered"]


def test_the_protocol_that_uses_less_energy_for_the_same_notifications_has_more_packets_per_joule():
    """Readings that stay on their mote once made a protocol look worse: it sends fewer messages."""
    runs = [SimulationRun(read_text(text(p)).points[0].case, 1).finish().measures for p in PROTOCOLS]
    assert len({run["received"] for run in runs}) == 1
    by_energy = sorted(range(len(runs)), key=lambda i: runs[i]["energy_mj"])
    assert by_energy == sorted(range(len(runs)), key=lambda i: -runs[i]["packets_per_joule"])


def test_messages_for_a_part_of_the_network_count_for_the_nodes_they_are_for():
    """Quad-PubSub sends to leaves and to neighbours: once 0.22 was "delivered" while all of it arrived."""
    measures = SimulationRun(read_text(text("qps", "T")).points[0].case, 1).finish().measures
    assert measures["delivery_ratio"] > 0.85  # a consuming handler found a node that knows more


def test_without_subscribers_a_delivery_is_a_network_message():
    outcome = SimulationRun(read_text(GRID).points[0].case, 1).finish()
    measures = outcome.measures
    assert measures["expected"] is measures["received_ratio"] is None
    assert measures["packets_per_joule"] == pytest.approx(
        measures["delivered"] / (measures["energy_mj"] / 1e3)
    )


def test_the_first_table_starts_with_subscribers_and_lists_network_messages_below():
    lines = list(summary_lines(collect(read_text(text("qps")), map)))
    assert [line.split("  ")[0] for line in lines[1:4]] == [
        "for subscribers",
        "received by subscribers",
        "received, of what was for subscribers",
    ]
    titles = [line.split("  ")[0] for line in lines]
    assert titles.index("received by subscribers") < titles.index("network messages delivered")
    assert "deliveries per joule, PPJ" in titles
    swept = text("qps") + "sweep: {protocol.levels: [1, 2]}\n"
    heading = list(summary_lines(collect(read_text(swept), map)))[1].split()
    assert heading[:4] == ["levels", "received", "delay", "(ms)"]
    assert "delivered" not in heading
