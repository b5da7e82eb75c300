"""Placement of components: the choices of the network, the results of a run, and their verdicts."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.model.instant import SECOND
from holdfast_lab.experiments.registry import load
from holdfast_lab.experiments.sps import placement, world
from holdfast_lab.experiments.sps.world import CONGESTION, FIRE, SpsLayout, application, by_hand, by_network

PAGE = Path(__file__).resolve().parents[3] / "docs" / "experiments" / "sps-placement.md"


FAILURES = (placement.PASSIVE, placement.QUICK, placement.ACTIVE, placement.COPIED)


@pytest.fixture(scope="module")
def layout():
    return SpsLayout(0)


def test_conditions_keyed_by_place_are_split_over_the_nodes_of_the_sensors(layout):
    parts, hosts = by_network(application(CONGESTION, "TrafficCongestion"), layout)
    assert {name.split()[0] for name in parts.smcs} == {"High", "Slow", "TrafficCongestion"}
    assert len(hosts) == 3 * len(layout.sensors)
    assert {host for host, alone in hosts.values() if alone} == set(layout.sensors)
    assert all(alone for _, alone in hosts.values())


def test_counts_are_placed_whole_nearer_to_the_sensors_than_to_the_user(layout):
    _, hosts = by_network(application(FIRE, "Fire"), layout)
    ((host, alone),) = hosts.values()
    assert host != layout.user
    assert not alone


def test_manual_placement_uses_no_sensor_node(layout):
    _, hosts = by_hand(application(FIRE, "Fire"), layout)
    assert not {host for host, _ in hosts.values()} & {layout.user, *layout.sensors}


def test_a_fire_is_notified_and_the_next_one_by_a_replica_of_the_failed_host(layout):
    app, hosts = by_hand(application(FIRE, "Fire"), layout)
    hot = [
        (30 + world.EVERY * step) * SECOND
        for step in range(world.MINUTES * 60 // world.EVERY)
        if all(value > 50 for _, _, value in world._readings(app.measured, layout.sensors, 0, step))
    ]
    failed = 30 * SECOND + world.MINUTES * 30 * SECOND
    whole = world.run(app, hosts, layout, 0)
    assert [(status, time) for status, time, _ in whole.notified] == [("ingress", hot[0])]
    restart = next(time for time in hot if time > failed)
    broken = world.run(app, hosts, layout, 0, world.Failing([hosts["Fire"][0]]))
    assert [(status, time) for status, time, _ in broken.notified] == [
        ("ingress", hot[0]),
        ("ingress", restart),
    ]
    assert whole.repeated == broken.repeated == 0


def rows(network=1, delay=1.0, same=True):
    """The rows of both applications, central and by hand at 10 and 5 messages."""
    return [
        {
            "application": app,
            "placed": way,
            "messages": {"centrally": 10, "by hand": 5}.get(way, network),
            "delay s": {"by the network": delay}.get(way, 1.0),
            "same": same,
        }
        for app in placement.APPS
        for way in placement.WAYS
    ]


@pytest.mark.parametrize(
    ("found", "lost", "broken"),
    [
        (rows(), 0.05, set()),
        (rows(network=6), 0.05, {"fewer-messages"}),
        (rows(delay=4.5), 0.05, {"delay"}),
        (rows(same=False), 0.05, {"same"}),
        (rows(), 0.2, {"recovery"}),
    ],
)
def test_each_claim_is_judged_by_its_rule(found, lost, broken):
    verdicts = placement._verdicts(found, {name: [lost] for name in FAILURES}, 0)
    held = dict(zip(placement.RULES, (each.holds for each in verdicts), strict=True))
    assert {name for name, holds in held.items() if not holds} == broken


def test_the_page_lists_every_claim_and_the_experiment_is_registered():
    assert load(placement.NAME).name == placement.NAME
    assert all(f"`{each}`" in PAGE.read_text("utf-8") for each in placement.RULES)
