"""Forecasts of a network lie within a tenth of the simulated energy, on five scenarios."""

from __future__ import annotations

import math
from dataclasses import replace
from math import pi, sin
from pathlib import Path

import numpy as np
import pytest

from holdfast.errors import UsageError
from holdfast.model.event import Event
from holdfast.model.instant import MINUTE, SECOND
from holdfast.network.estimate.forecast import A_DAY, Forecast, forecast
from holdfast.network.estimate.hop import RadioModel
from holdfast.network.estimate.rates import rates
from holdfast.network.estimate.rehearsal import rehearse
from holdfast.network.motes.case import SimulationCase, plan_run
from holdfast.network.motes.conditions import load_definition
from holdfast.network.motes.play import cast
from holdfast.network.motes.run import SimulationRun
from holdfast.network.motes.study import read_text
from holdfast.network.sim.energy import LISTEN, RECEIVE, TRANSMIT
from holdfast.network.sim.network import Network

FIELD = """
nodes: {{kind: grid, rows: 4, columns: 4, spacing: 16 m}}
links: {{kind: log-distance, exponent: 3.5, quality: [{quality}, 1]}}
mac: {mac}
routing: {{kind: {routing}}}
energy: {{platform: telosb, battery: 500 J, mains: [5], rest: {{radio: sleep, mcu: sleep}}, sampling: 30 ms}}
definition: |
  topic T (value float)
  state Frost on T [value < 0; value > 1] per source
protocol: {protocol}
subscribers: [{{node: 5, to: Frost}}]
warm-up: 5 min
duration: 1 h
"""
CSMA, UNHEARD = "{kind: csma}", "{kind: csma, acknowledged: false}"
FIVE = {
    "readings over lossy links": ("direct", "id-grid", 0.7, CSMA),
    "filters at the source, nothing acknowledged": ("direct, filters: source", "static", 1, UNHEARD),
    "hybrid DDS over lossy links": ("dds, mode: HyTDDS", "id-grid", 0.7, CSMA),
    "a tree with beacons": ("direct", "tree", 0.9, CSMA),
    "brokers over geographic routing": ("cbps", "geographic", 0.9, CSMA),
}
ROTATING, QUADS = "dds, mode: EATDDS", "qps"
BURSTS = {
    "rotating roles over lossy links": (ROTATING, "id-grid", 0.7, CSMA, 120),
    "rotating roles where nothing is lost": (ROTATING, "id-grid", 1, CSMA, 120),
    "rotating roles, nothing acknowledged": (ROTATING, "static", 1, UNHEARD, 120),
    "rotating roles over geographic routing": (ROTATING, "geographic", 0.9, CSMA, 120),
    "a quadtree over good links": (QUADS, "geographic", 1, CSMA, 30),
    "a quadtree over lossy links": (QUADS, "geographic", 0.9, CSMA, 30),
    "a quadtree, nothing acknowledged": (QUADS, "geographic", 1, UNHEARD, 30),
}
"""What a protocol says by itself comes in bursts, in which messages meet."""
SLEEPING = ("direct", "static", 1, "{kind: low-power-listening, interval: 200 ms}")


def case(protocol: str, routing: str, quality: float, mac: str) -> SimulationCase:
    text = FIELD.format(protocol=f"{{kind: {protocol}}}", routing=routing, quality=quality, mac=mac)
    return read_text(text).points[0].case


def history(minutes: int) -> list[Event]:
    """Eleven places that freeze every two hours, a reading every two minutes."""

    def value(minute: int, k: int) -> float:
        return 1.5 + 3 * sin((minute - 5 * k) / 60 * pi)

    return [
        Event("T", minute * MINUTE + 3 * k * SECOND, f"s{k:02}", {"value": value(minute, k)}, minute)
        for minute in range(0, minutes, 2)
        for k in range(11)
    ]


def forecast_of(case: SimulationCase, events: list[Event], seed: int = 1) -> Forecast:
    case = cast(case, events)
    return forecast(case, seed, rates(events, case.definition, plan_run(case, seed).subscriptions))


def beside(case: SimulationCase, minutes: int, seed: int = 1) -> dict[str, tuple[float, float]]:
    """For a history: what is expected, and what happens, since the warm-up."""
    events = history(minutes)
    found, run = forecast_of(case, events, seed), SimulationRun(cast(case, events), seed)
    before: list[float] = []
    run.network.at(case.scenario.warm_up, lambda: before.extend(run.network.joules()))
    measures = run.finish().measures
    nodes = np.array(run.network.joules()) - before
    caused = found.of_readings({kind: float(count) for kind, count in found.rates.counts.items()})
    expected = found.by_itself.times(measures["seconds"] / A_DAY) + caused
    resting = found.rest * measures["seconds"]
    return {
        "joules above rest": (float(expected.joules.sum()), float((nodes - resting).sum())),
        "the busiest node": (float(expected.joules.max()) + resting, float(nodes.max())),
        "frames": (expected.frames, measures["transmissions"]),
    }


def require_close(found: dict[str, tuple[float, float]], *but: str) -> None:
    for what, (expected, happened) in found.items():
        assert what in but or expected == pytest.approx(happened, rel=0.1), (what, found)


@pytest.mark.parametrize("name", FIVE)
def test_forecasts_are_within_a_tenth_of_simulations(name):
    require_close(beside(case(*FIVE[name]), 60 if "brokers" in name or "tree" in name else 120))


def test_forecasts_of_bursts_include_their_collisions():
    *network, _ = BURSTS["rotating roles, nothing acknowledged"]
    require_close(beside(case(*network), 60))


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", BURSTS)
def test_forecasts_of_bursts_are_within_a_tenth_of_simulations(name, seed):
    *network, minutes = BURSTS[name]
    require_close(beside(case(*network), minutes, seed))


def test_roles_of_a_quadtree_move_to_the_nearest_nodes_although_a_subscriber_asks_at_boot():
    """The subscriber knows no neighbour at that time and takes all roles; heartbeats bring them to their
    nodes."""
    events = history(4)
    one = cast(case(QUADS, "geographic", 1, CSMA), events)
    run = SimulationRun(one, 1)
    run.finish()
    held = {role: node for node, host in run.family.hosts.items() for role in host.state.own_roles}
    places, tree = run.plan.topology.positions, run.family.deployment.tree
    for role, node in held.items():
        assert node == min(run.family.hosts, key=lambda n: math.dist(places[n], tree.address(*role)))
    found = rehearse(one, 1, rates(events, one.definition, plan_run(one, 1).subscriptions).examples)
    assert {sent.path[0] for sent in found.idle if sent.word == "here"} == set(held.values())


@pytest.mark.parametrize("protocol", ["direct", ROTATING])
def test_forecasts_include_sensors_that_are_read_more_often_than_they_publish(protocol):
    text = FIELD.format(protocol=f"{{kind: {protocol}}}", routing="static", quality=1, mac=UNHEARD)
    output = "{topic: T, every: 2 min, sampled: 5 s, readings: {value: {kind: constant, value: 5}}}"
    with_it = read_text(f"{text}publishers: [{output}]\n").points[0].case
    once, often = (beside(each, 60) for each in (read_text(text).points[0].case, with_it))
    require_close(often)
    reads = 11 * 3600 / 5 * 0.03 * 5e-3
    assert often["joules above rest"][0] - once["joules above rest"][0] > 0.9 * reads


def test_forecasts_of_a_state_shared_by_sensors_match_simulations():
    """Readings that satisfy a predicate are forwarded, since other sensors may have changed the state;
    others stay."""
    one = case("cbps", "id-grid", 1, CSMA)
    shared = load_definition(one.scenario.definition.replace(" per source", ""), Path())
    require_close(beside(replace(one, definition=shared), 30))


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("name", FIVE)
def test_forecasts_of_a_day_are_within_a_tenth_of_simulations(name, seed):
    require_close(beside(case(*FIVE[name]), 1440, seed))


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
def test_forecasts_of_sleeping_radios_match_simulations(seed):
    require_close(beside(case(*SLEEPING), 240, seed), "frames")


def test_an_idle_network_uses_the_energy_of_its_nodes_at_rest():
    events = [Event("T", minute * MINUTE, "s00", {"value": 5.0}, minute) for minute in range(60)]
    found = forecast_of(case("direct, filters: source", "static", 1, CSMA), events)
    assert found.frames == 0.0
    *others, reader = sorted(found.joules())
    assert others == pytest.approx([found.rest * A_DAY] * 15, rel=1e-3)
    assert reader > 1.1 * others[-1], "who reads works for it"


def test_the_node_with_the_highest_consumption_dies_first_and_mains_never():
    found = forecast_of(case(*FIVE["readings over lossy links"]), history(120))
    days, node = found.days()
    joules = found.joules()
    assert node == max((n for n in range(16) if n != 5), key=lambda n: joules[n])
    assert days == pytest.approx((500 - found.start.joules[node]) / joules[node])


def test_losses_reduce_the_share_of_notifications():
    _, emitted = forecast_of(case("direct", "static", 0.7, UNHEARD), history(120)).delay("Frost")
    assert 0.6 < emitted < 0.95
    assert forecast_of(case("direct", "static", 0.7, CSMA), history(120)).delay("Frost")[1] > 0.99


# A hop, by hand.


def pair(quality: float = 1.0, **mac: object) -> RadioModel:
    text = FIELD.format(protocol="{kind: direct}", routing="static", quality=quality, mac=CSMA)
    text = text.replace("rows: 4, columns: 4", "rows: 1, columns: 2").replace("node: 5", "node: 1")
    setup = plan_run(read_text(text.replace("mains: [5], ", "")).points[0].case, 1).setup
    return RadioModel(Network(replace(setup, mac=replace(setup.mac, **mac))), overhears=False)


def test_the_energy_of_a_frame_and_its_acknowledgement_is_that_of_two_radios_and_processors():
    air = pair()
    hop, draw, radio = air.access.unicast(0, 1, 20), air.network.draw, air.network.setup.radio
    frame, ack = radio.airtime(20 + 11) / SECOND, radio.airtime(5) / SECOND
    sends, consumes = ((draw.radio[state] - draw.radio[LISTEN]) / 1e3 for state in (TRANSMIT, RECEIVE))
    works = 1.5e-3 * (draw.mcu[2] - draw.mcu[1]) / 1e3
    assert hop.frames == pytest.approx(2.0, rel=1e-6)
    sender, receiver = frame * sends + ack * consumes + works, frame * consumes + ack * sends + works
    assert hop.joules == pytest.approx([sender, receiver], rel=1e-6)


def test_a_frame_is_repeated_until_its_acknowledgement_arrives():
    air = pair(0.5, retries=2)
    there, back = air.right(0, 1, 31), air.right(1, 0, 5)
    hop, lost = air.access.unicast(0, 1, 20), 1 - there * back
    tries = 1 + lost + lost**2
    assert hop.frames == pytest.approx(tries + tries * there)
    assert hop.delivered == pytest.approx(1 - (1 - there) ** 3)
    assert pair(0.5, acknowledged=False).access.unicast(0, 1, 20).frames == 1.0


@pytest.mark.parametrize(
    ("what", "by", "message"),
    [
        ("kind: csma", "kind: tdma", "mac 'tdma'"),
        ("kind: static", "kind: on-demand", "routing 'OnDemand'"),
    ],
)
def test_unsupported_protocols_are_named(what, by, message):
    text = FIELD.format(protocol="{kind: direct}", routing="static", quality=1, mac=CSMA).replace(what, by)
    with pytest.raises(UsageError, match=message):
        forecast_of(read_text(text).points[0].case, history(20))
