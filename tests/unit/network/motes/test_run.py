"""The counts of one run agree with its events."""

from __future__ import annotations

from statistics import stdev

import pytest
from hypothesis import given

from holdfast.model.instant import MILLISECOND, SECOND
from holdfast.network.motes.outcome import RunOutcome
from holdfast.network.motes.run import SimulationRun, run
from holdfast.network.motes.study import read_text
from holdfast.network.sim.routing.ledger import UNACCOUNTED
from holdfast.network.sim.trace import Trace, integrate
from support.scenarios import GRID, scenarios


def ran(text: str, seed: int = 1, trace: Trace | None = None) -> RunOutcome:
    return run(read_text(text).points[0].case, seed, trace)


def assert_adds_up(found: RunOutcome) -> None:
    """Require that every sent message was delivered, dropped with a reason, or is on its way; energy is
    never negative."""
    measures = found.measures
    dropped = sum(measures["dropped"].values())
    assert measures["sent"] == measures["delivered"] + dropped + measures["in_flight"]
    assert UNACCOUNTED not in measures["dropped"]
    assert sum(row["received"] for row in found.nodes) == measures["delivered"]
    assert sum(row["arrived"] for row in found.nodes) == measures["delivered"]
    assert sum(row["sent"] for row in found.nodes) == measures["sent"]
    assert measures["energy_mj"] >= 0
    assert measures["seconds"] >= 0
    assert measures["collisions"] >= 0
    assert all(row["radio_mj"] >= 0 and row["mcu_mj"] >= 0 for row in found.nodes)
    assert max(row["relative"] for row in found.nodes) in (0.0, 1.0)


@given(scenarios())
def test_a_random_scenario_runs_adds_up_and_repeats_with_the_same_seed(text):
    found = ran(text, seed=3)
    assert_adds_up(found)
    assert found == ran(text, seed=3)


def test_another_seed_gives_another_run():
    text = GRID.replace("every: 1 s", "every: 1 s, arrivals: poisson")
    assert ran(text, seed=1) != ran(text, seed=2)


def test_a_quiet_network_delivers_everything_in_the_expected_number_of_hops():
    measures = ran(GRID).measures
    assert measures["sent"] == measures["delivered"] == 20
    assert measures["hops"] == 2.0
    assert measures["transmissions"] == 80, "two hops of a frame and its acknowledgement"
    assert measures["throughput_bps"] == 20 * 20 * 8 / 20
    assert 2 < measures["delay_ms"] < measures["delay_p95_ms"] < 20


def test_a_message_to_all_counts_once_for_each_node():
    measures = ran(GRID.replace("to: 8", "to: all")).measures
    assert measures["sent"] == 20 * 8
    assert measures["delivery_ratio"] > 0.9


def test_a_message_to_several_goes_to_each():
    measures = ran(GRID.replace("to: 8", "to: [2, 6, 8]")).measures
    assert measures["sent"] == measures["delivered"] == 60


def test_the_warm_up_is_not_counted():
    whole, later = ran(GRID).measures, ran(f"{GRID}warm-up: 10 s\n").measures
    assert (whole["sent"], later["sent"]) == (20, 10)
    assert later["seconds"] == 10
    assert later["transmissions"] == 40
    assert later["energy_mj"] == pytest.approx(whole["energy_mj"] / 2, rel=0.05)


def test_traffic_starts_and_stops_at_its_times():
    found = ran(GRID.replace("every: 1 s", "every: 1 s, start: 5 s, stop: 10 s"))
    assert [row["sent"] for row in found.timeline] == [0] * 5 + [1] * 5 + [0] * 10


def test_senders_that_start_together_collide_and_others_do_not():
    text = GRID.replace("from: 0", "from: all").replace("{kind: id-grid}", "{kind: id-grid, resends: 0}")
    text = text.replace("links:", "mac: {kind: aloha}\nlinks:").replace("duration: 20 s", "duration: 60 s")
    apart = ran(text).measures
    together = ran(text.replace("every: 1 s", "every: 1 s, phase: together")).measures
    assert together["collisions"] > 10 * apart["collisions"]
    assert together["delivery_ratio"] < apart["delivery_ratio"]


def test_poisson_traffic_has_the_configured_rate():
    text = GRID.replace("every: 1 s", "every: 100 ms, arrivals: poisson").replace(
        "duration: 20 s", "duration: 60 s"
    )
    assert ran(text).measures["sent"] == pytest.approx(600, abs=4 * 600**0.5)


def test_energy_by_cause_adds_up_and_shows_the_cost_of_routing():
    measures = ran(GRID.replace("id-grid", "tree")).measures
    causes = measures["energy_by_cause_mj"]
    assert set(causes) == {"rest", "flow 0", "routing"}
    assert sum(causes.values()) == pytest.approx(measures["energy_mj"])
    assert causes["routing"] > 0


READ_OFTEN = """\
nodes: {kind: grid, rows: 1, columns: 3, spacing: 10 m}
energy: {sampling: 2 ms}
definition: "topic T (value float)"
publishers:
  - {topic: T, from: [1], every: 10 s, sampled: 250 ms, readings: {value: {kind: uniform}}}
subscribers: [{node: 0, to: T}]
duration: 100 s
"""


def test_a_frequently_read_sensor_publishes_its_mean_and_costs_processor_energy():
    """[D62] Forty readings for each sample; only the publisher's processor works for it."""
    it = SimulationRun(read_text(READ_OFTEN).points[0].case, 1)
    it.finish()
    values = [event.attributes["value"] for event in it.account.published]
    assert len(values) == 10
    assert all(0.2 < value < 0.8 for value in values)
    assert stdev(values) < 0.1
    worked = [node.energy.mcu.times(node.clock.now)[0].get("sampling", 0) for node in it.network.nodes]
    assert worked == [0, 399 * 2 * MILLISECOND, 0], "the last one begins as the run ends"


def test_an_empty_battery_ends_a_node_and_optionally_the_run():
    text = GRID.replace("energy: {", "energy: {battery: 30 mJ, mains: [8], ")
    measures = ran(text.replace("duration: 20 s", "duration: 200 s")).measures
    assert measures["lifetime_s"] is not None
    assert measures["alive"] < 9
    first = ran(f"{text.replace('duration: 20 s', 'duration: 200 s')}until-first-death: true\n")
    assert first.measures["seconds"] == first.measures["lifetime_s"] == measures["lifetime_s"]
    assert first.measures["alive"] == 8
    (dead,) = [row for row in first.nodes if not row["alive"]]
    assert dead["relative"] == 1.0
    assert dead["died_s"] == measures["lifetime_s"]


def test_a_run_that_ends_before_its_warm_up_has_counted_nothing():
    text = GRID.replace("energy: {", "energy: {battery: 1 mJ, ") + "warm-up: 19 s\nuntil-first-death: true\n"
    measures = ran(text).measures
    assert measures["lifetime_s"] < 19
    assert (measures["seconds"], measures["sent"], measures["energy_mj"]) == (0, 0, 0)


def test_a_killed_node_stops_and_a_restarted_one_continues():
    text = f"{GRID}failures:\n  - {{kind: kill, at: 5 s, nodes: [0]}}\n"
    assert ran(text).measures["sent"] == 5
    again = ran(f"{text}  - {{kind: restart, at: 15 s, nodes: [0]}}\n")
    assert again.measures["sent"] == again.measures["delivered"] == 10
    assert [row["alive"] for row in again.timeline] == [9] * 4 + [8] * 10 + [9] * 6


def test_a_partition_stops_messages_until_it_is_healed():
    text = (
        f"{GRID.replace('id-grid', 'flooding')}failures:\n"
        "  - {kind: partition, at: 5 s, groups: [[0, 1, 3]]}\n  - {kind: heal, at: 10 s}\n"
    )
    delivered = [row["delivered"] for row in ran(text).timeline]
    assert delivered[5:10] == [0] * 5
    assert sum(delivered[:5] + delivered[10:]) == 15


def test_a_cut_link_is_bypassed_and_a_mended_one_used_again():
    text = (
        f"{GRID}failures:\n  - {{kind: cut, at: 5 s, links: [[0, 4]]}}\n"
        "  - {kind: mend, at: 50 s, links: [[0, 4]]}\n"
    )
    measures = ran(text.replace("duration: 20 s", "duration: 100 s")).measures
    assert measures["delivery_ratio"] == 1.0
    assert 2.0 < measures["hops"] < 3.0


def test_losses_on_the_way_back_to_a_node_are_accounted_for():
    """Without acknowledgements datagrams go round a hole: a copy is lost to a node that had one before."""
    found = ran(
        "nodes: {kind: grid, rows: 2, columns: 3, spacing: 10 m}\nlinks: {kind: disk, range: 20 m}\n"
        "mac: {kind: csma, acknowledged: false}\nrouting: {kind: geographic, beacons: 8 s}\n"
        "traffic: [{from: all, to: 0, every: 100 ms, size: 1}]\nduration: 1 s\nwarm-up: 250 ms\n"
        "failures: [{kind: kill, at: 0 s, nodes: [0]}]\n"
    )
    assert_adds_up(found)
    assert found.measures["dropped"].keys() == {"no route", "not received"}


def test_a_clock_that_runs_fast_sends_more_often():
    text = (
        GRID.replace("duration: 20 s", "duration: 100 s")
        + "failures:\n  - {kind: drift, at: 0 s, nodes: [0], by: 50000 ppm}\n"
    )
    assert ran(text).measures["sent"] == 105


def test_the_trace_of_a_run_agrees_with_its_energy():
    trace = Trace()
    found = ran(GRID, trace=trace)
    from holdfast.network.sim.energy import Rest, draw
    from holdfast.network.sim.platforms import MICAZ

    joules = integrate(trace.states.table(), draw(MICAZ, Rest("sleep", "sleep"), 0.0), 20 * SECOND)
    for node, row in enumerate(found.nodes):
        assert joules[node, "radio"] * 1e3 == pytest.approx(row["radio_mj"], rel=1e-9)
        assert joules[node, "mcu"] * 1e3 == pytest.approx(row["mcu_mj"], rel=1e-9)
    assert found == ran(GRID), "tracing changes nothing"


def test_a_scenario_on_the_intel_lab_motes_runs(data):
    folder = data / "intel-lab"
    found = ran(
        f"nodes: {{kind: intel-lab, folder: {folder}}}\nlinks: {{kind: measured}}\nrouting: {{kind: tree}}\n"
        "traffic: [{from: {any: 6}, to: 17, every: 10 s}]\nduration: 100 s\nwarm-up: 40 s\n"
    )
    assert_adds_up(found)
    assert found.measures["delivery_ratio"] > 0.8
    assert found.measures["transmissions_per_delivery"] > 20, "real links lose most frames"
    assert found.measures["hops"] > 1


def test_a_scenario_in_a_redwood_runs(data):
    path = data / "redwoods-sonoma" / "mote-location-data.txt"
    found = ran(
        f"nodes: {{kind: redwood, file: {path}}}\nlinks: {{kind: disk, range: 12 m}}\n"
        "routing: {kind: on-demand}\ntraffic: [{from: 78, to: 139, every: 5 s}]\nduration: 60 s\n"
    )
    assert_adds_up(found)
    assert found.measures["delivery_ratio"] > 0.8
    assert found.measures["hops"] >= 5, "50 m of a tree, 12 m at a time"
