"""Whoever publishes a source: agents report what the relation machine tells, once the overlay is quiet."""

from __future__ import annotations

from importlib.resources import files

import pytest

from holdfast.protocols.agents.codes import digest_of
from support.gateways import NAMES, SHIPPED, STRATEGIES, World, chance_of, in_order

RING = files("holdfast").joinpath("examples/agents/ring.star").read_text()
GATEWAYS = {"g4": "b4", "g5": "b5", "g7": "b7", "h7": "b7", "g9": "b9"}
each = pytest.mark.parametrize("using", STRATEGIES)
SEEDS = [*range(3), *[pytest.param(seed, marks=pytest.mark.soak) for seed in range(3, 40)]]
seeds = pytest.mark.parametrize("seed", SEEDS)


def world(using, seed=None):
    one, strategy = STRATEGIES[using]
    code = RING if using == SHIPPED else ""
    return World(one, strategy, seed=seed, code=code, allowed=frozenset((digest_of(RING),)))


def walk(world, chance, steps, choose):
    """Readings of all sources by the gateway that is chosen; how often something started or ended."""
    count = 0
    for _ in range(steps):
        event = world.reading(chance.choice(NAMES), chance)
        received, expected = world.send(choose(event.source), event)
        if world.unknown:  # then only what is certain
            told = world.following.told
            assert {s for s in told if told[s] == "ingress"} <= world.machine.active(), event
            assert not {s for s in told if told[s] == "egress"} & world.machine.active(), event
        else:
            assert received == in_order(expected), event
        count += len(expected)
    return count


@each
@seeds
@pytest.mark.parametrize("when", ["first", "before the subscriber", "after", "in between"])
def test_a_stranger_that_advertises_a_source_and_sends_nothing_changes_nothing(using, seed, when):
    chance, one = chance_of(using, seed, when), world(using, seed)
    stranger = lambda: one.gateway("stranger", chance.choice(("b6", "b8", "b4", "b1")), chance.choice(NAMES))  # noqa: E731
    if when == "first":
        stranger()
    one.gateway("g4", "b4", "ann")
    one.gateway("g7", "b7", "bob", "eve")
    if when == "before the subscriber":
        stranger()
    one.subscribe()
    if when == "after":
        stranger()
    homes = {"ann": "g4", "bob": "g7", "eve": "g7"}
    count = walk(one, chance, 15, homes.get)
    if when == "in between":
        stranger()
    assert count + walk(one, chance, 25, homes.get) > 0
    assert one.unknown == 0


@each
@seeds
@pytest.mark.parametrize("first", ["gateways", "subscriber"])
def test_every_reading_may_come_by_another_gateway_that_advertises_the_topic_alone(using, seed, first):
    chance, one = chance_of(using, seed, first), world(using, seed)
    if first == "subscriber":
        one.subscribe()
    for name, home in GATEWAYS.items():
        one.gateway(name, home)
    if first == "gateways":
        one.subscribe()
    assert walk(one, chance, 50, lambda _: chance.choice(list(GATEWAYS))) > 0
    assert one.unknown == 0


@each
@seeds
def test_a_source_that_moves_from_gateway_to_gateway_is_followed(using, seed):
    """It is advertised at the new one before it is withdrawn at the old one."""
    chance, one = chance_of(using, seed), world(using, seed)
    one.subscribe()
    homes = {}
    for name in NAMES:
        homes[name] = chance.choice(list(GATEWAYS))
        one.gateway(homes[name], GATEWAYS[homes[name]], name)
    count = 0
    for _ in range(12):
        count += walk(one, chance, 5, homes.get)
        name, old = chance.choice(NAMES), dict(homes)
        homes[name] = chance.choice([gateway for gateway in GATEWAYS if gateway != homes[name]])
        one.gateway(homes[name], GATEWAYS[homes[name]], name)
        count += walk(one, chance, chance.choice((0, 1, 12)), homes.get)
        one.withdraw(old[name], name)
    assert count > 0
    assert one.unknown == 0 or using == SHIPPED  # whose code hands nothing over


@each
@seeds
def test_a_reading_that_is_older_than_the_latest_of_its_source_changes_nothing(using, seed):
    """Whether it comes by the same gateway or another."""
    chance, one = chance_of(using, seed), world(using, seed)
    one.subscribe()
    for name, home in GATEWAYS.items():
        one.gateway(name, home)
    count = 0
    for _ in range(30):
        source, gateway = chance.choice(NAMES), chance.choice(list(GATEWAYS))
        late = one.reading(source, chance)
        event = one.reading(source, chance)
        received, expected = one.send(gateway, event)
        assert received == in_order(expected), event
        count += len(expected)
        received, expected = one.send(chance.choice(list(GATEWAYS)), late)
        assert received == expected == [], late
    assert count > 0


@each
@seeds
def test_readings_that_arrive_in_any_order_tell_the_latest_of_all_sources(using, seed):
    """Between sources too: what holds in the end is what the machine says of the latest readings."""
    chance, one = chance_of(using, seed), world(using, seed)
    one.subscribe()
    for name, home in GATEWAYS.items():
        one.gateway(name, home)
    for _ in range(8):
        events = [one.reading(chance.choice(NAMES), chance) for _ in range(5)]
        for event in sorted(events, key=lambda _: chance.random()):
            received, expected = one.send(chance.choice(list(GATEWAYS)), event)
            assert [row[1:3] for row in received] == [row[1:3] for row in in_order(expected)], event
    assert one.unknown == 0
