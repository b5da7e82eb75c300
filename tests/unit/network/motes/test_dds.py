"""The DDS family in a scenario: its settings, the place of the rendezvous node, and the fate of samples."""

from __future__ import annotations

import pytest

from holdfast.errors import DefinitionError
from holdfast.network.motes import dds
from holdfast.network.motes.account import LOST, WAITING
from holdfast.network.motes.outcome import RunOutcome
from holdfast.network.motes.run import SimulationRun
from holdfast.network.motes.study import read_text
from holdfast.network.sim.metrics import footprint
from support.protocols import scenario_text, underlined_text


def made(text: str, seed: int = 1) -> SimulationRun:
    return SimulationRun(read_text(text).points[0].case, seed)


def ran(text: str) -> RunOutcome:
    return made(text).finish()


def test_the_rendezvous_node_is_in_the_middle_by_default():
    assert made(scenario_text("{kind: dds}")).family.deployment.table == ("4",)
    assert made(scenario_text("{kind: dds, rendezvous: [8, 0]}")).family.deployment.table == ("8", "0")


def test_conditions_run_at_the_samples_and_only_their_transitions_are_sent():
    run = made(scenario_text("{kind: dds, mode: HyTDDS}"))
    outcome = run.finish()
    (row,) = outcome.subscriptions
    assert row["readings"] == 90
    assert 5 < row["expected"] == row["delivered"] == run.account.messages["Data"] < 45
    assert outcome.protocol["counted"]["filtered at the source"] == 90


def test_a_subscription_to_a_topic_delivers_every_sample_at_its_level():
    for level, acknowledged in (("full", True), ("best-effort", False), ("0.5", True)):
        run = made(scenario_text(f"{{kind: dds, level: {level}}}", "T"))
        (row,) = run.finish().subscriptions
        assert row["delivered"] == row["expected"] == 90
        assert bool(run.account.messages["Ack"]) == acknowledged


def test_the_sections_of_the_protocol_become_its_values():
    run = made(
        scenario_text(
            "{kind: dds, mode: EATDDS, ifs: true, percent: 90, reliable: {rto: 150 ms, ring: 3}, "
            "rotation: {round: 20 s, reporters: cluster}, discovery: {repeats: 2}, adaptive: {margin: 1}}",
            "T",
        )
    )
    found = run.family.deployment
    assert (found.reliable.rto, found.reliable.ring) == (150_000, 3)
    assert (found.rotation.round, found.rotation.reporters) == (20_000_000, "cluster")
    assert (found.discovery.repeats, found.adaptive.margin) == (2, 1.0)
    assert found.schedule is not None
    run.finish()
    assert run.account.messages["LevelRequest"] > 0


def test_memory_is_reported_for_rings_of_reliable_writers_and_tables():
    """[D70] Node 0 writes, and is the rendezvous node with one subscription."""
    table = {"subscriptions": 12}
    for level, stored in (("best-effort", table), ("full", {"rings": 20 * 20, **table})):
        run = made(scenario_text(f"{{kind: dds, level: {level}, rendezvous: [0]}}", "T"))
        found = run.finish().protocol
        assert {name: size for name, size in run.family.memory().items() if size} == stored
        assert found["ram_bytes"] == footprint(run.network).ram_bytes + sum(stored.values())
        assert found["fits"]


def test_the_fate_of_lost_samples_is_reported():
    """The rendezvous node dies, writers fill their rings, and one publisher goes down with its own."""
    dies = "failures:\n  - {kind: kill, at: 30 s, nodes: [4]}\n  - {kind: kill, at: 60 s, nodes: [8]}\n"
    text = scenario_text("{kind: dds, level: full, rendezvous: [4], reliable: {ring: 5}}", "T", dies)
    (row,) = ran(text.replace("{node: 4,", "{node: 6,")).subscriptions
    assert row["lost"].keys() == {dds.OVERFLOWED, dds.LOST_WITH_ITS_NODE}
    assert row["lost"][dds.LOST_WITH_ITS_NODE] == 5
    assert row["in_flight"] == 10
    assert row["expected"] == row["delivered"] + row["in_flight"] + sum(row["lost"].values())


def test_samples_before_a_subscription_is_known_have_their_own_fate():
    """The rendezvous node comes late, and with it the subscription to the publishers."""
    late = "failures:\n  - {kind: kill, at: 0 s, nodes: [3]}\n  - {kind: restart, at: 50 s, nodes: [3]}\n"
    protocol = "{kind: dds, mode: HyTDDS, rendezvous: [3], discovery: {repeats: 80}}"
    run = made(scenario_text(protocol, more=late))
    (row,) = run.finish().subscriptions
    assert row["lost"].keys() == {dds.UNKNOWN}
    assert min(what.event.time for _, _, what in run.account.notifications) > 50_000_000
    assert row["delivered"] > 3


def test_a_writer_reports_samples_it_gives_up():
    dies = "failures:\n  - {kind: kill, at: 30 s, nodes: [4]}\n"
    text = scenario_text("{kind: dds, level: full, rendezvous: [4], reliable: {retries: 1}}", "T", dies)
    (row,) = ran(text.replace("{node: 4,", "{node: 6,")).subscriptions
    assert row["lost"][dds.GIVEN_UP] > 50
    assert row["lost"].keys() <= {dds.GIVEN_UP, LOST}


def test_samples_wait_for_their_slot():
    late = scenario_text("{kind: dds, ifs: true, level: full}", "T").replace("stop: 80 s", "stop: 91 s")
    outcome = ran(late.replace("duration: 90 s", "duration: 80.3 s"))
    assert outcome.protocol["issued"] == outcome.protocol["counted"]["accepted"] + outcome.protocol["slotted"]
    assert WAITING == "waiting at its publisher"


@pytest.mark.parametrize(
    ("protocol", "where", "message"),
    [
        ("{kind: dds, mode: HyTTDS}", "HyTTDS", "there is no such choice as 'HyTTDS'"),
        ("{kind: dds, level: fully}", "fully", "there is no such choice as 'fully'"),
        ("{kind: dds, rendezvous: [99]}", "99", "there is no node '99'"),
        ("{kind: dds, reliable: {ring: 0}}", "{ring: 0}", "a ring of 0 messages; it must hold one at least"),
        ("{kind: dds, percent: 120}", "120", "expected a number <= 100"),
        ("{kind: ddss}", "ddss", "there is no such choice as 'ddss'"),
    ],
)
def test_impossible_settings_are_reported_with_their_position(protocol, where, message):
    with pytest.raises(DefinitionError) as caught:
        read_text(scenario_text(protocol))
    assert message in str(caught.value)
    assert underlined_text(str(caught.value)) == where


def test_a_condition_over_several_sensors_is_evaluated_at_its_subscriber():
    run = made(scenario_text("{kind: dds, mode: HyTDDS, level: full}").replace(" per source", ""))
    (row,) = run.finish().subscriptions
    assert run.account.messages["Data"] == row["readings"] == 90, "all samples travel"
    assert 5 < row["expected"] == row["delivered"] < 45


def test_slots_need_a_grid():
    text = scenario_text("{kind: dds, ifs: true}").replace(
        "{kind: grid, rows: 3, columns: 3, spacing: 10 m}",
        "{kind: uniform, count: 9, width: 20 m, height: 20 m, reach: 15 m}",
    )
    with pytest.raises(DefinitionError, match="scenario:8:28: the slots are those of a grid"):
        read_text(text)


def test_only_samples_that_change_a_condition_are_acknowledged_by_transition():
    run = made(scenario_text("{kind: dds, mode: HyTDDS, level: transition}", "T"))
    (row,) = run.finish().subscriptions
    turns = made(scenario_text("{kind: dds, mode: HyTDDS}")).finish().subscriptions[0]["expected"]
    assert row["delivered"] == row["expected"] == 90
    assert run.account.messages["Ack"] == turns > 0


def test_the_level_transition_needs_a_condition_that_a_mote_can_evaluate():
    with pytest.raises(DefinitionError, match="nothing that a mote can tell turns with samples of 'T'") as e:
        made(scenario_text("{kind: dds, level: transition}", "T").replace(" per source", ""))
    assert underlined_text(str(e.value)) == "transition"


TOGETHER = """\
nodes: {kind: grid, rows: 6, columns: 6, spacing: 10 m}
links: {kind: disk, range: 15 m}
mac: {kind: aloha}
routing: {kind: id-grid}
energy: {rest: {radio: sleep, mcu: sleep}}
definition: |
  topic T (value float)
protocol: {kind: dds, mode: BLTDDS, level: full}
publishers:
  - {topic: T, from: [8, 20, 31], every: 10 s, start: 30 s, readings: {value: {kind: uniform}}}
subscribers: [SUBSCRIBERS]
duration: 60 s
"""


def test_subscribers_that_start_together_are_all_discovered_despite_collisions():
    """None was: each of the ten repetitions met those of all others at the same instant."""
    nodes = (0, 2, 5, 7, 10, 13, 16, 18, 22, 25, 27, 30, 33, 35)
    subscribers = ", ".join(f"{{node: {node}, to: T}}" for node in nodes)
    run = made(TOGETHER.replace("SUBSCRIBERS", subscribers))
    outcome = run.finish()
    assert all(run.family._registered[node, "T"].keys() >= {8, 20, 31} for node in nodes)
    assert dds.NEVER not in outcome.subscriptions[0]["lost"]


def test_losses_before_discovery_of_a_subscription_are_reported():
    dead = "failures:\n  - {kind: kill, at: 0 s, nodes: [8]}\n"
    text = scenario_text("{kind: dds, rendezvous: [8]}", "T", dead).replace("from: [0, 2, 8]", "from: [0, 2]")
    (row,) = ran(text).subscriptions
    assert row["delivered"] == 0
    assert row["lost"] == {dds.NEVER: row["expected"]}
