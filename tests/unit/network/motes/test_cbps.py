"""Brokers on motes: where they are, what they cost, and what they do when one of them dies."""

from __future__ import annotations

import pytest

from holdfast.errors import DefinitionError
from holdfast.network.motes.outcome import RunOutcome
from holdfast.network.motes.run import SimulationRun
from holdfast.network.motes.study import read_text
from support.protocols import scenario_text, underlined_text


def made(text: str, seed: int = 1) -> SimulationRun:
    return SimulationRun(read_text(text).points[0].case, seed)


def ran(text: str, seed: int = 1) -> RunOutcome:
    return made(text, seed).finish()


def test_every_node_has_a_broker_and_the_tree_grows_from_the_subscriber():
    run = made(scenario_text("{kind: cbps}"))
    outcome = run.finish()
    assert (outcome.protocol["brokers"], outcome.protocol["connections"]) == (9, 8)
    peers = {node: set(host.state.ends) for node, host in run.family.hosts.items()}
    assert peers.pop(4) == set("01235678")
    assert all(each == {"4"} for each in peers.values()), "on a disk all are its neighbours"


def test_a_node_without_a_broker_connects_to_the_first_on_its_path():
    run = made(scenario_text("{kind: cbps, brokers: [4, 0]}"))
    outcome = run.finish()
    assert set(run.family.hosts) == {0, 2, 4, 8}
    assert set(run.family.hosts[4].state.ends) == {"0", "2", "8"}
    (row,) = outcome.subscriptions
    assert row["delivered"] == row["expected"] > 5


def test_connections_may_be_listed():
    run = made(scenario_text("{kind: cbps, brokers: [4, 0, 2, 8], links: [[0, 2], [2, 8], [8, 4]]}"))
    (row,) = run.finish().subscriptions
    assert set(run.family.hosts[2].state.ends) == {"0", "8"}
    assert row["delivered"] == row["expected"] > 5


def test_filters_near_the_publishers_save_messages():
    """Every reading travels to who wants all, and hardly any to who wants to know when it is warm."""
    messages = {
        to: ran(scenario_text("{kind: cbps}", to, "warm-up: 20 s\n")).subscriptions[0]["messages"]
        for to in ("T", "Warm")
    }
    assert messages["Warm"] < messages["T"] / 2


def test_messages_and_joules_are_charged_to_the_subscription():
    outcome = ran(scenario_text("{kind: cbps}"))
    (row,) = outcome.subscriptions
    causes = outcome.measures["energy_by_cause_mj"]
    mine = {cause: joules for cause, joules in causes.items() if cause.startswith("Warm ")}
    assert {"Warm connection", "Warm notification", "Warm subscription", "Warm ack"} <= mine.keys()
    assert row["energy_mj"] == pytest.approx(sum(mine.values()))
    assert set(causes) == {*mine, "rest", "routing"}
    assert row["messages"] == outcome.measures["sent"]


DIES = """\
failures:
  - {kind: kill, at: 40 s, nodes: [1]}
  - {kind: restart, at: 50 s, nodes: [1]}
"""


def test_a_broker_that_dies_and_restarts_joins_again():
    """Two publishers behind it: their readings meanwhile are lost, and reported as lost."""
    text = scenario_text("{kind: cbps, brokers: [4, 1, 0, 2], links: [[4, 1], [1, 0], [1, 2]]}", "T", DIES)
    run = made(text)
    outcome = run.finish()
    (row,) = outcome.subscriptions
    assert sum(row["lost"].values()) > 5
    assert outcome.protocol["counted"]["connections lost"] >= 2
    assert row["expected"] == row["delivered"] + row["in_flight"] + sum(row["lost"].values())
    emitted = {what.event.source: what.event.time for _, _, what in run.account.notifications}
    assert all(last > 70_000_000 for last in emitted.values()), "in the end all are heard again"
    assert set(emitted) == {"0", "2", "8"}


def test_a_subscriber_that_restarts_subscribes_again():
    text = scenario_text("{kind: cbps}", "T", DIES.replace("[1]", "[4]"))
    run = made(text)
    (row,) = run.finish().subscriptions
    assert 0 < sum(row["lost"].values()) < row["expected"] / 2
    assert max(what.event.time for _, _, what in run.account.notifications) > 70_000_000


def test_events_published_before_a_connection_have_their_own_fate():
    text = scenario_text("{kind: cbps, brokers: [4]}", "T").replace("start: 20 s", "phase: together")
    (row,) = ran(text).subscriptions
    assert row["lost"] == {"its publisher had no connection": 3}


def test_equal_seeds_give_equal_runs():
    assert ran(scenario_text("{kind: cbps}")) == ran(scenario_text("{kind: cbps}"))
    assert ran(scenario_text("{kind: cbps}")) != ran(scenario_text("{kind: cbps}"), 2)


@pytest.mark.parametrize(
    ("protocol", "where", "message"),
    [
        ("{kind: cbps, brokers: [77]}", "77", "there is no node '77'"),
        ("{kind: cbps, brokers: []}", "[]", "one broker at least"),
        ("{kind: cbps, brokers: [0], root: 4}", "4", "node 4 has no broker"),
        ("{kind: cbps, brokers: [0, 1], links: [[0, 4]]}", "[0, 4]", "node 4 has no broker"),
        ("{kind: cbps, links: [[0, 1]]}", "[[0, 1]]", "some brokers are not connected"),
        ("{kind: cbps, tries: 0}", "0", "expected a whole number >= 1"),
    ],
)
def test_impossible_settings_are_reported_with_their_position(protocol, where, message):
    with pytest.raises(DefinitionError) as caught:
        read_text(scenario_text(protocol))
    assert message in str(caught.value)
    assert underlined_text(str(caught.value)) == where


def test_a_network_in_two_parts_has_no_tree():
    with pytest.raises(DefinitionError, match=r"no way leads from node \d to node 4"):
        read_text(scenario_text("{kind: cbps}").replace("range: 15 m", "range: 9 m"))


def test_conditions_that_brokers_cannot_run_are_evaluated_at_subscribers():
    text = scenario_text("{kind: cbps}")
    alone, ordered = (made(each) for each in (text, text.replace("per source", "per source ordered 2 s")))
    (row,), (late,) = alone.finish().subscriptions, ordered.finish().subscriptions
    assert late["delivered"] == late["expected"] == row["expected"]
    assert late["messages"] > row["messages"]
    assert late["delay_ms"] > 2_000 > row["delay_ms"]
